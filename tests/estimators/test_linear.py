"""LinearSVC: scikit-learn's conventions, the certificate, weights, intercepts, warnings."""

import os
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from cutsvm import LinearSVC, Status, convert
from cutsvm._utils import validation
from cutsvm.solvers import CPA, DCD, OCAS, Sifting
from tests.support.layouts import LAYOUTS
from tests.support.reference import svm


@pytest.mark.parametrize("intercept", ["free", "regularized", None])
def test_certificate_holds(intercept):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 5))
    y = rng.choice(["no", "yes"], size=60)
    model = LinearSVC(C=0.7, tol=1e-6, intercept=intercept or "free", fit_intercept=intercept is not None).fit(X, y)
    a = np.where(y == "yes", 1.0, -1.0)
    low, high = svm.optimum(X, a, 0.7, intercept or "none")
    assert model.lower_bound_ <= high
    assert model.objective_ >= low
    assert model.objective_ == pytest.approx(
        svm.objective(X, a, 0.7, intercept or "none", model.coef_[0], model.intercept_[0]), rel=1e-12
    )
    assert model.gap_ == (model.objective_ - model.lower_bound_) / model.objective_ <= 1e-6
    assert model.converged_
    assert model.status_ is Status.CONVERGED


def test_matches_svc():
    """The free intercept is SVC's: the same objective, the same predictions."""
    X, y = make_classification(400, 8, random_state=0)
    ours, theirs = LinearSVC(C=0.5, tol=1e-7).fit(X, y), SVC(C=0.5, kernel="linear", tol=1e-8).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-2)
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.99


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_agree(layout, overlapping):
    X, y = overlapping
    reference = LinearSVC(C=0.01).fit(X, y)
    model = LinearSVC(C=0.01).fit(LAYOUTS[layout](X), y)
    assert model.objective_ == pytest.approx(reference.objective_, rel=1e-3)
    assert np.mean(model.predict(LAYOUTS[layout](X)) == reference.predict(X)) > 0.99
    assert model.decision_function(LAYOUTS[layout](X)).shape == (len(y),)


@pytest.mark.parametrize("intercept", ["free", "regularized"])
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_n_jobs_does_not_change_a_bit(kind, intercept, overlapping):
    X, y = np.vstack([overlapping[0]] * 4), np.tile(overlapping[1], 4)
    X = sparse.csr_matrix(X) if kind == "csr" else X
    one, two = (LinearSVC(C=0.01, n_jobs=k, intercept=intercept, solver=OCAS(shards=8)).fit(X, y) for k in (1, 2))
    assert_array_equal(one.coef_, two.coef_)
    assert_array_equal(one.intercept_, two.intercept_)
    assert one.lower_bound_ == two.lower_bound_


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0}])
@pytest.mark.parametrize("intercept", ["free", "regularized"])
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_weight_is_repetition(kind, intercept, class_weight):
    """Weight k is k copies of the row, weight 0 none: the objective agrees to 1e-9."""
    rng = np.random.default_rng(5)
    X = np.round(rng.normal(size=(300, 6)), 2)
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    weights = rng.integers(0, 4, size=300)
    X = sparse.csr_matrix(X) if kind == "csr" else X
    params = {"C": 0.3, "intercept": intercept, "class_weight": class_weight}
    rows = np.repeat(np.arange(300), weights)
    weighted, repeated = LinearSVC(**params).fit(X, y, sample_weight=weights), LinearSVC(**params).fit(X[rows], y[rows])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-9)
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, rel=1e-9)
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-9)


def test_scalar_weight_scales_C(overlapping):
    X, y = overlapping
    assert_allclose(LinearSVC(C=0.01).fit(X, y, sample_weight=2.0).coef_, LinearSVC(C=0.02).fit(X, y).coef_)


def test_one_vs_rest():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = LinearSVC(tol=1e-4, multi_class="ovr").fit(X, y)
    assert model.coef_.shape == (3, 4)
    assert model.decision_function(X).shape == (150, 3)
    assert model.score(X, y) > 0.9
    assert list(model.feature_names_in_) == list(X.columns)
    parts = [LinearSVC(tol=1e-4).fit(X, y == k) for k in range(3)]
    assert model.objective_ == pytest.approx(sum(p.objective_ for p in parts), rel=1e-12)
    assert model.lower_bound_ <= model.objective_
    assert {record["label"] for record in model.history_} == {"0", "1", "2"}


@pytest.mark.parametrize("labels", [[0, 1], [-1, 1], [1, 2], ["a", "b"], [True, False], [2.0, 7.0]])
def test_any_two_labels(labels, overlapping):
    X, y = overlapping
    named = np.array(sorted(labels))[(y > 0).astype(int)]
    model = LinearSVC(C=0.01).fit(X, named)
    assert model.classes_.dtype == named.dtype
    assert_array_equal(model.predict(X) == model.classes_[1], model.decision_function(X) > 0)
    assert model.score(X, named) > 0.7


def test_frames(overlapping):
    X, y = overlapping
    names = [f"x{j}" for j in range(X.shape[1])]
    reference = LinearSVC(C=0.01).fit(X, y)
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = LinearSVC(C=0.01).fit(frame, y)
        assert_allclose(model.coef_, reference.coef_, rtol=1e-9, atol=1e-12)
        assert list(model.feature_names_in_) == names
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pd.DataFrame(X, columns=names[::-1]))
    with pytest.raises(TypeError, match="collect"):
        LinearSVC().fit(pl.DataFrame(X).lazy(), y)


def test_small_integers_become_float32():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(200, 5), dtype=np.int8)
    y = X[:, 0] ^ (rng.random(200) < 0.1)
    assert LinearSVC().fit(X, y).score(X, y) > 0.85


def test_history_and_callbacks(overlapping):
    X, y = overlapping
    seen = []
    model = LinearSVC(C=0.01, callbacks=[seen.append]).fit(X, y)
    assert [r.to_dict() for r in seen] == model.history_
    assert model.n_iter_ == len(model.history_) - 1
    for key in ("iteration", "seconds", "primal", "lower", "gap", "planes", "passes"):
        assert key in model.history_[0]
    last = model.history_[-1]
    phases = sum(last[f"seconds_{phase}"] for phase in ("scores", "planes", "line_search", "qp"))
    assert 0 < phases <= last["seconds"]
    primal, lower = ([r[key] for r in model.history_] for key in ("primal", "lower"))
    assert all(np.diff(primal) <= 1e-9 * primal[0])
    assert all(np.diff(lower) >= 0)
    with pytest.warns(ConvergenceWarning, match="callback"):
        stopped = LinearSVC(C=0.01, tol=1e-6, callbacks=[lambda record: record.iteration == 2]).fit(X, y)
    assert stopped.status_ is Status.CALLBACK
    assert stopped.n_iter_ == 2


def test_ctrl_c_keeps_the_best_model(overlapping):
    X, y = overlapping

    def interrupt(record):
        if record.iteration == 3:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = LinearSVC(C=0.01, tol=1e-9, callbacks=[interrupt]).fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert model.lower_bound_ < model.objective_
    assert model.gap_ == pytest.approx(model.history_[-1]["gap"])
    assert model.score(X, y) > 0.5


@pytest.mark.parametrize(
    ("params", "status", "advice"),
    [
        ({"max_iter": 1}, Status.MAX_ITER, "raise max_iter"),
        ({"max_time": 1e-9}, Status.MAX_TIME, "raise max_time"),
        ({"tol": 1e-17}, Status.PRECISION, "raise tol"),
    ],
)
def test_limits_warn_with_the_gap(params, status, advice, overlapping):
    X, y = overlapping
    with pytest.warns(ConvergenceWarning, match=advice) as caught:
        model = LinearSVC(C=0.01, **params).fit(X, y)
    assert len(caught) == 1
    assert f"{model.gap_:.2g}" in str(caught[0].message)
    assert model.status_ is status
    assert not model.converged_


def test_badly_scaled_features_converge_and_the_warning_names_them():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 5)) * np.array([1e-4, 1.0, 1e3, 1e6, 1.0])
    y = X[:, 3] / 1e6 + X[:, 1] + 0.5 * rng.normal(size=400) > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert LinearSVC().fit(X, y).converged_
    with pytest.warns(ConvergenceWarning, match="scale the features"):
        LinearSVC(max_iter=1).fit(X, y)


def test_warm_start(overlapping):
    X, y = overlapping
    model = LinearSVC(C=0.01, warm_start=True).fit(X, y)
    first = model.n_iter_
    model.set_params(C=0.0101).fit(X, y)
    assert model.history_[0]["primal"] < 1.1 * model.objective_
    assert model.n_iter_ <= first + 2
    assert model.objective_ == pytest.approx(LinearSVC(C=0.0101, tol=1e-6).fit(X, y).objective_, rel=1e-3)


def test_pickle_clone_and_grid_search(overlapping):
    X, y = overlapping
    model = LinearSVC(C=0.01, solver=CPA(epsilon=0.01)).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert clone(model).get_params() == model.get_params()
    assert repr(OCAS(shards=64)) == (
        "OCAS(line_search='exact', safe=True, first_step=1.0, shards=64, cut_at=0.1, guard='stall', nudge=0.02, "
        "exact=False, epsilon=None, buckets=1, both_sides=True, whiten=True)"
    )
    search = GridSearchCV(make_pipeline(StandardScaler(), LinearSVC()), {"linearsvc__C": [1e-3, 1e-2]}, n_jobs=2)
    assert search.fit(X[:1000], y[:1000]).best_score_ > 0.8


BAD_PARAMS = [
    ({"C": 0}, "C=0"),
    ({"C": -1.0}, "C=-1.0"),
    ({"C": np.inf}, "C=inf"),
    ({"C": "1"}, "C='1'"),
    ({"tol": 0}, "tol=0"),
    ({"max_iter": 0}, "max_iter=0"),
    ({"max_iter": 1.5}, "max_iter=1.5"),
    ({"max_time": -1}, "max_time=-1"),
    ({"intercept": "both"}, "'free', 'regularized'"),
    ({"multi_class": "all"}, "multi_class='all'"),
    ({"solver": "sgd"}, "'ocas', 'cpa'"),
    ({"class_weight": {7: 1.0}}, "7, which is not a class"),
    ({"class_weight": {1: -1.0}}, "above 0"),
    ({"class_weight": "heavy"}, "'heavy'"),
]


@pytest.mark.parametrize(("params", "message"), BAD_PARAMS)
def test_bad_parameters_are_named(params, message, overlapping):
    with pytest.raises(ValueError, match=message.replace("[", r"\[")):
        LinearSVC(**params).fit(*overlapping)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OCAS(shards=0), "shards=0"),
        (lambda: OCAS(shards="many"), "shards='many'"),
        (lambda: OCAS(cut_at=1.5), "cut_at=1.5"),
        (lambda: OCAS(nudge=-0.1), "nudge=-0.1"),
        (lambda: OCAS(nudge=2), "nudge=2"),
        (lambda: OCAS(line_search="guess"), "line_search='guess'"),
        (lambda: CPA(epsilon=-1.0), "epsilon=-1.0"),
    ],
)
def test_bad_solver_settings_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


X0 = np.arange(8.0).reshape(4, 2)
Y0 = np.array([0, 1, 0, 1])
BAD_DATA = [
    ("NaN", (np.where(X0 == 3, np.nan, X0), Y0), "NaN: row 1 column 1"),
    ("infinity", (np.where(X0 > 3, np.inf, X0), Y0), "infinity: row 2 column 0, row 2 column 1, .* and 1 more"),
    ("NaN in CSR", (sparse.csr_matrix(np.where(X0 == 3, np.nan, X0)), Y0), "NaN: row 1 column 1"),
    ("numbers as objects", (X0, Y0.astype(object)), "astype"),
    ("one class", (X0, np.zeros(4)), "only one class"),
    ("continuous labels", (X0, np.array([0.1, 0.2, 0.3, 0.4])), "continuous"),
    ("no rows", (X0[:0], Y0[:0]), "0 sample"),
    ("no columns", (X0[:, :0], Y0), "0 feature"),
    ("lengths differ", (X0, Y0[:3]), "inconsistent"),
    ("weights too short", (X0, Y0, [1.0]), "sample_weight.shape"),
    ("negative weight", (X0, Y0, [1, 1, -1, 1]), r"sample_weight\[2\]"),
    ("NaN weight", (X0, Y0, [1, 1, np.nan, 1]), r"sample_weight\[2\]"),
    ("no weight left", (X0, Y0, [0, 0, 0, 0]), "zero for every row"),
    ("weight on one class", (X0, Y0, [1, 0, 1, 0]), "only one class"),
    ("strings", (np.array([["a", "b"]] * 4), Y0), "could not convert"),
    ("complex", (X0 + 1j, Y0), "Complex"),
    ("three dimensions", (X0[None], Y0), "dim 3"),
]


@pytest.mark.parametrize(("data", "message"), [row[1:] for row in BAD_DATA], ids=[row[0] for row in BAD_DATA])
def test_bad_data_raises(data, message):
    with pytest.raises(ValueError, match=message):
        LinearSVC().fit(*data)


def test_overflow_raises():
    X = np.array([[1e200, 1.0], [-1e200, 2.0], [1e200, 3.0], [-1e200, 4.0]])
    with pytest.raises(FloatingPointError, match="scale the features"):
        LinearSVC(C=1e150).fit(X, Y0)


def test_degenerate_data_converge():
    """All-zero rows, an all-zero matrix, one feature, repeated rows: a model, with its certificate."""
    for X in (np.zeros((6, 2)), np.ones((6, 1)), np.repeat([[1.0], [2.0]], 3, axis=0), np.eye(6)):
        model = LinearSVC().fit(X, [0, 1, 0, 1, 1, 1])
        assert model.gap_ <= 1e-3
        assert np.isfinite(model.decision_function(X)).all()


def test_read_only_memory_map(tmp_path, overlapping):
    X, y = overlapping
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert LinearSVC(C=0.01).fit(mapped, y).converged_


def test_forked_child_does_not_hang(overlapping):
    """OpenMP threads do not survive a fork: the child falls back to one."""
    X, y = overlapping
    LinearSVC(C=0.01, n_jobs=2).fit(X, y)
    child = os.fork()
    if child == 0:
        os._exit(0 if LinearSVC(C=0.01, n_jobs=2).fit(X, y).converged_ else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_fit_from_a_file(tmp_path):
    path = tmp_path / "train.svm"
    path.write_text("1 1:1 2:0.5\n-1 1:-1\n1 1:2\n-1 2:-1\n")
    model = LinearSVC().fit(str(path))
    assert model.n_features_in_ == 2
    assert_array_equal(model.classes_, [-1.0, 1.0])
    with pytest.raises(ValueError, match="leave y out"):
        LinearSVC().fit(str(path), [1, 2, 3, 4])


@pytest.mark.parametrize("tol", [1.0, 5.0])
@pytest.mark.parametrize("solver", ["ocas", "sifting", "dcd", "accpm", "auto"])
def test_large_tol_converges(tol, solver, overlapping):
    X, y = overlapping
    assert LinearSVC(tol=tol, solver=solver).fit(X, y).converged_


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_advice_for_scales_whose_ratio_overflows(dtype):
    X = np.array([[1.0, 0.5], [-1.0, 0.25], [0.5, -1.0]], dtype=dtype) * np.array([1e30, 1e-30], dtype=dtype)
    if dtype is np.float64:
        X *= [1e250, 1e-250]
    assert 1e59 < validation.scale_spread(X) < np.inf


@pytest.mark.parametrize("solver", ["dcd", "accpm", Sifting(inner=DCD())])
def test_solvers_of_two_classes_refuse_three(solver):
    X, y = np.eye(6), np.arange(6) % 3
    with pytest.raises(ValueError, match=r"'sifting', 'batched', or multi_class=.ovr."):
        LinearSVC(solver=solver).fit(X, y)


@pytest.mark.parametrize("solver", ["dcd", Sifting(inner=DCD())])
def test_coordinate_descent_refuses_rows_on_disk(solver, tmp_path):
    X, y = np.eye(6), np.arange(6) % 2
    convert([(X, y)], tmp_path / "rows.store")
    with pytest.raises(ValueError, match="rows on disk: use 'auto', 'ocas', 'cpa', 'sifting', 'accpm'"):
        LinearSVC(solver=solver, memory_limit="1GB").fit(tmp_path / "rows.store")
