"""KernelSVC: the certificate, the layout of the model, limits, messages."""

import pickle
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from cutsvm import KernelSVC
from cutsvm._native import core
from cutsvm.kernel_machines import ISDA, SGD, MinNorm
from cutsvm.kernel_machines.sgd import SGDSettings
from tests.support.layouts import LAYOUTS
from tests.support.reference import kernel_machines as twin

SOLVERS = ["sgd", "isda", "min_norm"]
SETTINGS = [SGD(order="random"), SGD(C_times="mean"), ISDA("regularized")]
KERNELS = ["rbf", "poly", "linear", "precomputed"]
# A number of epochs ends wherever it is then, and says so.
may_stop_early = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@st.composite
def settings_of_a_fit(draw):
    """A solver with a kernel; its rows in memory of any kind, with kernel values that fit or do not."""
    solver = draw(st.sampled_from([*SOLVERS, *SETTINGS, SGD("1/m", intercept="regularized"), MinNorm()]))
    visits_rows = solver == "sgd" or isinstance(solver, SGD)
    return {
        "solver": solver,
        "kernel": draw(st.sampled_from(["rbf", "poly", "linear"])),
        "memory_limit": draw(st.sampled_from([None, 1])) if visits_rows else None,
        "fit_intercept": draw(st.booleans()),
        "average": draw(st.sampled_from([0.0, 0.5])),
        "class_weight": draw(st.sampled_from([None, {0: 3.0}, "balanced"])),
    }


@may_stop_early
@given(
    params=settings_of_a_fit(), seed=st.integers(0, 2**32 - 1), n=st.integers(6, 25), k=st.integers(2, 3),
    layout=st.sampled_from([np.asarray, np.float32, sparse.csr_matrix]),
)  # fmt: skip
def test_a_weight_is_a_number_of_rows(params, seed, n, k, layout):
    """The same steps on the same numbers, whatever the order of the rows is; gamma too."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), rng.integers(0, k, size=n - k)])
    X = rng.normal(size=(n, 3)) + 0.8 * np.eye(k, 3)[y]
    counts = rng.integers(0, 4, size=n)
    counts[:k] = 2
    again, mixed = np.repeat(np.arange(n), counts), rng.permutation(n)
    order = rng.permutation(len(again))
    weighted = KernelSVC(**params, n_jobs=1).fit(layout(X[mixed]), y[mixed], counts[mixed])
    repeated = KernelSVC(**params, n_jobs=2).fit(layout(X[again][order]), y[again][order])
    for name in ("gamma_", "objective_", "lower_bound_"):
        assert getattr(weighted, name) == pytest.approx(getattr(repeated, name), rel=1e-9), name
    assert weighted.n_iter_ == repeated.n_iter_
    assert not np.any(counts[mixed][weighted.support_] == 0)
    assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-9, atol=1e-12)
    scores = [model._pair_scores(layout(X)) for model in (weighted, repeated)]
    assert_allclose(*scores, rtol=1e-4 if layout is np.float32 else 1e-9, atol=1e-5 if layout is np.float32 else 1e-9)


@may_stop_early
@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
@pytest.mark.parametrize("solver", [*SOLVERS, *SETTINGS], ids=str)
def test_rows_without_weight_might_as_well_not_be_there(solver, kernel, three):
    X, y = three
    kept = np.flatnonzero(np.arange(80) % 4 != 1)
    data, part = (X, X[kept]) if kernel == "rbf" else (X @ X.T, X[kept] @ X[kept].T)
    weighted = KernelSVC(kernel=kernel, solver=solver).fit(data, y, np.isin(np.arange(80), kept))
    without = KernelSVC(kernel=kernel, solver=solver).fit(part, y[kept])
    assert_array_equal(weighted.support_, kept[without.support_])
    assert_allclose(weighted.dual_coef_, without.dual_coef_, rtol=1e-9)
    assert weighted.objective_ == pytest.approx(without.objective_, rel=1e-12)


@may_stop_early
@pytest.mark.parametrize("solver", ["sgd", "isda"])
def test_weights_of_one_keep_the_order_of_the_rows(solver, three):
    """Nothing is grouped then."""
    X, y = three
    plain = KernelSVC(gamma=0.3, solver=solver, epochs=3).fit(X, y)
    weighted = KernelSVC(gamma=0.3, solver=solver, epochs=3).fit(X, y, np.ones(80))
    assert_array_equal(weighted.support_, plain.support_)
    assert_array_equal(weighted.dual_coef_, plain.dual_coef_)
    if solver == "sgd":
        other = KernelSVC(gamma=0.3, solver=solver, epochs=3).fit(X[::-1], y[::-1])
        assert np.any(other.decision_function(X) != plain.decision_function(X))


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:700] / 16.0, y[:700], X[700:1200] / 16.0, y[700:1200]


@pytest.fixture(scope="module")
def three():
    """Three classes that overlap, far from the origin, of different sizes."""
    rng = np.random.default_rng(1)
    y = np.array([0] * 40 + [1] * 25 + [2] * 15)
    X = rng.normal(size=(80, 3)) + np.array([[0.0, 0.0, 0.0], [1.5, 0.0, 0.0], [0.0, 1.5, 1.0]])[y] + 2.0
    mixed = rng.permutation(80)
    return np.round(X[mixed], 3), y[mixed]


def kernel_of(model, X, Z):
    if model.kernel == "rbf":
        return rbf_kernel(X, Z, gamma=model.gamma_)
    if model.kernel == "poly":
        return polynomial_kernel(X, Z, degree=model.degree, gamma=model.gamma_, coef0=model.coef0)
    return X @ Z.T


def scores_by_hand(model, K):
    """f of each pair from support_, n_support_, dual_coef_ and intercept_; K: values with all training rows."""
    edges, n_classes = np.concatenate([[0], np.cumsum(model.n_support_)]), len(model.classes_)
    pairs = []
    for p, (low, high) in enumerate(combinations(range(n_classes), 2)):
        f = np.full(len(K), model.intercept_[p])
        for mine, other in ((low, high), (high, low)):
            for k in range(edges[mine], edges[mine + 1]):
                f += model.dual_coef_[other - (other > mine), k] * K[:, model.support_[k]]
        pairs.append(f)
    return np.column_stack(pairs)


@pytest.mark.parametrize("solver", SOLVERS)
def test_as_accurate_as_svc(solver, digits):
    X, y, test, labels = digits
    model = KernelSVC(C=4.0, solver=solver, random_state=0).fit(X, y)
    assert model.score(test, labels) > SVC(C=4.0).fit(X, y).score(test, labels) - 0.01
    assert model.converged_ and 0.0 <= model.gap_ <= 1e-3 and np.isfinite(model.objective_)
    assert model.gap_ == (model.objective_ - model.lower_bound_) / model.objective_
    assert model.dual_coef_.shape == (9, len(model.support_)) and model.n_support_.sum() == len(model.support_)


def test_two_classes_are_close_to_svc(digits):
    """SVC has an intercept, which a kernel of this kind hardly needs."""
    X, y, test, _ = digits
    two = y % 2
    model, peer = KernelSVC(C=1.0).fit(X, two), SVC(C=1.0).fit(X, two)
    assert model.gamma_ == pytest.approx(1.0 / (64 * X.var()))
    assert np.mean(model.predict(test) == peer.predict(test)) > 0.97


@pytest.mark.parametrize("kind", ["dense", "csr", "csr_array", "float32"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("solver", SOLVERS)
def test_certificate_and_layout(solver, intercept, kernel, kind, three):
    """The scores by hand, the objective from them, and the optima of an independent QP between the bounds.

    A regularised intercept is K + 1 in place of K, there.
    """
    X, y = three
    make = {"dense": np.asarray, "csr": sparse.csr_matrix, "csr_array": sparse.csr_array, "float32": np.float32}[kind]
    X = np.asarray(np.float32(X), dtype=np.float64)
    K, given = X @ X.T, X
    if kernel == "precomputed":
        K = given = np.asarray(np.float32(rbf_kernel(X, X, gamma=0.2)), dtype=np.float64)
    weight = {0: 1.0, 1: 2.0, 2: 0.5}
    model = KernelSVC(0.5, kernel=kernel, gamma=0.2, coef0=1.0, degree=2, solver=solver, class_weight=weight,
                      fit_intercept=intercept, tol=1e-4, random_state=3)  # fmt: skip
    model.fit(make(given), y)
    if kernel != "precomputed":
        K = kernel_of(model, X, X)
    scores = scores_by_hand(model, K)
    values, low, high, loss = 0.0, 0.0, 0.0, "hinge" if solver == "sgd" else "l2"
    for p, pair in enumerate(combinations(range(3), 2)):
        rows = np.flatnonzero(np.isin(y, pair))
        a = np.where(y[rows] == pair[1], 1.0, -1.0) * np.array([weight[k] for k in y[rows]])
        own = K[np.ix_(rows, rows)] + float(intercept)
        low, high = np.array([low, high]) + np.array(twin.optimum(own, a, 0.5, loss)) / (0.5 * len(a))
        miss = np.maximum(0.0, 1.0 - np.sign(a) * scores[rows, p])
        values += np.abs(a) @ (miss if loss == "hinge" else 0.5 * miss**2) / len(a)
    assert model.lower_bound_ <= high * (1.0 + 1e-9)
    assert low * (1.0 - 1e-9) <= model.objective_
    assert model.gap_ <= 1e-4 and model.converged_
    assert values < model.objective_  # the rest of it is |w|^2 and b^2
    assert model.intercept_.shape == (3,) and model.intercept_.all() == intercept == model.intercept_.any()
    rtol = 2e-4 if kind == "float32" else 1e-9
    expected = np.array([twin.votes(row, *np.array(list(combinations(range(3), 2))).T, 3) for row in scores])
    assert_allclose(model.decision_function(make(given)), expected, rtol=rtol, atol=rtol)
    assert_array_equal(model.predict(make(given)), expected.argmax(axis=1))
    assert_array_equal(np.sort(y[model.support_]), y[model.support_])
    assert_array_equal(np.bincount(y[model.support_], minlength=3), model.n_support_)
    if kernel == "precomputed":
        assert model.support_vectors_.shape == (0, 0)
    else:
        vectors = model.support_vectors_
        assert_array_equal(vectors.toarray() if sparse.issparse(vectors) else vectors, X[model.support_])
    assert hasattr(model, "coef_") == (kernel == "linear")
    if kernel == "linear":
        assert_allclose(X @ model.coef_.T + model.intercept_, scores, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_objective_of_two_classes(intercept, three):
    """b = sum_i coef_i, so that K + 1 in place of K gives b^2 / 2, and b in the scores."""
    X, y = three[0], three[1] > 0
    model = KernelSVC(2.0, gamma=0.3, solver="sgd", fit_intercept=intercept, random_state=0).fit(X, y)
    K = rbf_kernel(X, X, gamma=0.3) + float(intercept)
    coef = np.zeros(80)
    coef[model.support_] = model.dual_coef_[0]
    a = np.where(y, 1.0, -1.0)
    assert model.objective_ == pytest.approx(twin.primal(K, a, 2.0, coef, "hinge") / (2.0 * 80), rel=1e-12)
    f = model.decision_function(X)
    assert f.shape == (80,)
    assert_allclose(f, K @ coef, rtol=1e-10, atol=1e-12)
    assert_array_equal(model.predict(X), f > 0.0)


@pytest.mark.parametrize("solver", ["isda", "min_norm"])
def test_the_optimum_of_the_l2_machine(solver, three):
    """To 1e-5, in float64, and the two agree on the model."""
    X, y = three[0], three[1] > 0
    model = KernelSVC(2.0, gamma=0.3, solver=solver, fit_intercept=False, tol=1e-7).fit(X, y)
    low, high = np.array(twin.optimum(rbf_kernel(X, X, gamma=0.3), np.where(y, 1.0, -1.0), 2.0, "l2")) / 160.0
    assert model.objective_ == pytest.approx(high, rel=1e-5) and model.lower_bound_ == pytest.approx(low, rel=1e-5)
    other = KernelSVC(2.0, gamma=0.3, solver=ISDA(), tol=1e-7).fit(X, y)
    assert_allclose(model.decision_function(X), other.decision_function(X), atol=1e-3)


@may_stop_early
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize(("name", "kind"), [("sgd", SGD), ("isda", ISDA), ("min_norm", MinNorm)])
def test_solver_objects_are_as_configured(name, kind, kernel, three):
    """fit_intercept is for names: the solver object has its own setting, which is the paper's by default."""
    X, y = three
    known = {
        flag: KernelSVC(kernel=kernel, solver=name, fit_intercept=flag, epochs=2).fit(X, y) for flag in (True, False)
    }
    assert known[True].intercept_.all() and not known[False].intercept_.any()
    for flag in (True, False):
        for intercept in (None, "regularized"):
            solver = kind(intercept=intercept)
            model = KernelSVC(kernel=kernel, solver=solver, fit_intercept=flag, epochs=2).fit(X, y)
            same = known[intercept is not None]
            assert_array_equal(model.dual_coef_, same.dual_coef_)
            assert_array_equal(model.intercept_, same.intercept_)
            assert model.objective_ == same.objective_


@pytest.mark.parametrize("solver", SOLVERS)
def test_same_seed_same_bits_for_any_n_jobs(solver, digits):
    X, y = digits[0][:300], digits[1][:300]
    one, *others = (KernelSVC(solver=solver, random_state=7, n_jobs=k).fit(X, y) for k in (1, 1, 2, 3))
    for other in others:
        assert_array_equal(one.support_, other.support_)
        assert_array_equal(one.dual_coef_, other.dual_coef_)
        assert (one.objective_, one.lower_bound_) == (other.objective_, other.lower_bound_)
        assert_array_equal(one.decision_function(X), other.decision_function(X))
    if solver == "sgd":
        assert not np.array_equal(one.dual_coef_, KernelSVC(solver="sgd", random_state=8).fit(X, y).dual_coef_)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_agree(layout, kernel, three):
    X, y = np.round(three[0], 2).astype(np.float32).astype(np.float64), three[1]
    plain = KernelSVC(kernel=kernel, gamma=0.3, random_state=0).fit(X, y)
    other = KernelSVC(kernel=kernel, gamma=0.3, random_state=0).fit(LAYOUTS[layout](X), y)
    assert other.objective_ == pytest.approx(plain.objective_, rel=1e-4)
    assert_allclose(other.decision_function(LAYOUTS[layout](X)), plain.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_predict_on_another_layout_than_fit(kernel, three):
    X, y = three
    for first, second in ((np.asarray, sparse.csr_matrix), (sparse.csr_array, np.asarray)):
        model = KernelSVC(kernel=kernel, random_state=0).fit(first(X), y)
        assert_allclose(model.decision_function(second(X)), model.decision_function(first(X)), rtol=1e-9, atol=1e-9)


def test_gamma_names(three):
    X, y = three
    for data in (X, sparse.csr_matrix(X)):
        assert KernelSVC().fit(data, y).gamma_ == pytest.approx(1.0 / (3 * X.var()))
        assert KernelSVC(gamma="auto").fit(data, y).gamma_ == 1.0 / 3.0
    assert KernelSVC().fit(np.ones((4, 2)), [0, 1, 0, 1]).gamma_ == 1.0


@pytest.mark.parametrize("solver", SOLVERS)
def test_class_weights(solver, three):
    X, y = three
    weight = {k: 80 / (3 * n) for k, n in enumerate((40, 25, 15))}
    balanced, named = (KernelSVC(solver=solver, class_weight=w, random_state=0).fit(X, y) for w in ("balanced", weight))
    assert_allclose(balanced.dual_coef_, named.dual_coef_)
    plain = KernelSVC(solver=solver, random_state=0).fit(X, y)
    heavy = KernelSVC(solver=solver, class_weight={2: 50.0}, random_state=0).fit(X, y)
    assert np.sum(heavy.predict(X) == 2) > np.sum(plain.predict(X) == 2)
    same = KernelSVC(solver=solver, C=0.5, class_weight={0: 2.0, 1: 2.0, 2: 2.0}, random_state=0).fit(X, y)
    assert_allclose(same.decision_function(X), plain.decision_function(X), atol=1e-8 if solver == "sgd" else 0.05)
    for key in "objective_", "lower_bound_":
        assert getattr(same, key) == pytest.approx(2.0 * getattr(plain, key), rel=5e-3)


def test_labels_of_any_kind(three):
    X, y = three
    plain = KernelSVC(random_state=0).fit(X, y)
    for labels in (np.array(["ant", "bee", "cat"]), np.array([-1, 1, 7]), np.array([0.0, 2.0, 5.0])):
        model = KernelSVC(random_state=0, class_weight={labels[0]: 1.0}).fit(X, labels[y])
        assert_array_equal(model.classes_, labels)
        assert_array_equal(model.predict(X), labels[plain.predict(X)])
    assert_array_equal(
        KernelSVC(random_state=0).fit(X, pd.Series(y).map({0: "a", 1: "b", 2: "c"})).classes_, list("abc")
    )


def test_frames(three):
    X, y = three
    reference = KernelSVC(random_state=0).fit(X, y)
    for frame in (pd.DataFrame(X, columns=list("abc")), pl.DataFrame(X, schema=list("abc"))):
        model = KernelSVC(random_state=0).fit(frame, y)
        assert_array_equal(model.predict(frame), reference.predict(X))
        assert list(model.feature_names_in_) == list("abc")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pd.DataFrame(X, columns=list("cab")))


@may_stop_early
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize(
    "solver", ["sgd", SGD(step="1/m"), SGD(order="random", C_times="mean"), MinNorm(), ISDA(intercept="regularized")]
)
def test_pickle_and_clone(solver, kernel, three):
    X, y = three
    model = KernelSVC(solver=solver, kernel=kernel, random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert clone(model).get_params() == model.get_params()


def test_refit_discards_the_previous_fit(three):
    X, y = three
    model = KernelSVC(kernel="linear", random_state=0).fit(X, y)
    assert hasattr(model, "coef_")
    for kernel, data in (("rbf", X), ("precomputed", X @ X.T)):
        model.set_params(kernel=kernel).fit(data, y)
        assert not hasattr(model, "coef_")
        assert model.intercept_.shape == (3,)
    assert model.score(X @ X.T, y) > 0.5


def test_fit_from_a_file(tmp_path):
    path = tmp_path / "train.svm"
    path.write_text("1 1:1 2:0.5\n-1 1:-1\n1 1:2\n-1 2:-1\n")
    model = KernelSVC(random_state=0).fit(str(path))
    assert model.n_features_in_ == 2 and sparse.issparse(model.support_vectors_)
    assert_array_equal(model.predict(np.array([[1.5, 0.3], [-0.5, -0.5]])), [1.0, -1.0])


def test_search_and_probabilities(three):
    """Calibrated probabilities, and a precomputed kernel cut by rows and columns in cross-validation."""
    X, y = three
    pipeline = make_pipeline(MinMaxScaler(), KernelSVC(random_state=0))
    search = GridSearchCV(pipeline, {"kernelsvc__C": [0.1, 10.0], "kernelsvc__gamma": [0.5, 5.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.6
    model = CalibratedClassifierCV(pipeline, ensemble=False, cv=3).fit(X, y)
    chances = model.predict_proba(X)
    assert chances.shape == (80, 3)
    assert_allclose(chances.sum(axis=1), 1.0)
    assert np.mean(model.predict(X) == y) > 0.6
    plain = cross_val_score(KernelSVC(gamma=0.3, random_state=0), X, y, cv=4)
    given = cross_val_score(KernelSVC(kernel="precomputed", random_state=0), rbf_kernel(X, X, gamma=0.3), y, cv=4)
    assert_array_equal(plain, given)


@may_stop_early
def test_average_and_epochs(three):
    X, y = three
    last, tail, whole = (
        KernelSVC(solver="sgd", average=share, random_state=0, epochs=3).fit(X, y) for share in (0.0, 0.25, 1.0)
    )
    assert last.n_iter_ == tail.n_iter_ == 3
    assert len({m.objective_ for m in (last, tail, whole)}) == 3
    assert KernelSVC(solver="sgd", certify=False).fit(X, y).n_iter_ == 20  # 20,000 / 80, at most 20
    long = KernelSVC(solver="sgd", epochs=300, random_state=0).fit(X, y)
    assert long.gap_ < 0.1 * KernelSVC(solver="sgd", epochs=3, random_state=0).fit(X, y).gap_


@pytest.mark.slow
@may_stop_early
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "precomputed"])
def test_a_small_limit_streams_and_changes_little(kernel, kind, digits):
    """Dense values are float32 then, and a margin near 1 may be on the other side of it."""
    solver = SGD(settings=SGDSettings(block_rows=64))
    X, y, test, labels = digits
    X = kind(X[:300] if kernel != "precomputed" else rbf_kernel(X[:300], X[:300], gamma=0.05))
    test = kind(test if kernel != "precomputed" else rbf_kernel(test, digits[0][:300], gamma=0.05))
    models = [
        KernelSVC(kernel=kernel, gamma=0.05, solver=solver, memory_limit=m, random_state=0, epochs=2).fit(X, y[:300])
        for m in (None, "100kB")
    ]
    assert models[1].objective_ == pytest.approx(models[0].objective_, rel=1e-3)
    assert models[1].lower_bound_ <= models[0].objective_
    assert abs(models[1].score(test, labels) - models[0].score(test, labels)) <= 0.01


@pytest.mark.parametrize("solver", ["isda", "min_norm"])
def test_pairs_one_at_a_time(solver, three):
    """Where there is room for the kernel values of one pair of classes only, and where there is not."""
    X, y = three
    models = [KernelSVC(solver=solver, tol=1e-6, memory_limit=m).fit(X, y) for m in (None, 4 * 65 * 65)]
    assert models[1].objective_ == pytest.approx(models[0].objective_, rel=1e-5)
    assert_allclose(models[1].decision_function(X), models[0].decision_function(X), atol=1e-2)
    with pytest.raises(ValueError) as caught:
        KernelSVC(solver=solver, memory_limit="16kB").fit(X, y)
    assert str(caught.value) == (
        f"solver='{solver}' keeps the kernel values of two classes, 65 rows, in 16.9 kB: raise memory_limit, or use "
        'solver="sgd", which keeps a part of them'
    )


@may_stop_early
@pytest.mark.parametrize("kind", [np.asarray, np.float32, sparse.csr_matrix], ids=["float64", "float32", "csr"])
def test_one_feature_and_several_classes(kind, three):
    """The weights of a linear machine are then a matrix of one column, whose strides say little."""
    X, y = kind(three[0][:, :1]), three[1]
    model = KernelSVC(kernel="linear", solver="sgd", random_state=0, epochs=3).fit(X, y)
    assert model.coef_.shape == (3, 1)
    scores = X @ model.coef_.T + model.intercept_
    expected = [twin.votes(row, *np.array(list(combinations(range(3), 2))).T, 3) for row in np.asarray(scores)]
    assert_allclose(model.decision_function(X), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("strides", [(8, 8), (8, 24), (8, 80)])
def test_weights_of_one_feature_may_have_any_stride(strides):
    W = np.lib.stride_tricks.as_strided(np.arange(30.0), shape=(3, 1), strides=strides)
    out = np.empty((2, 3))
    core.Matrix(np.array([[1.0], [2.0]])).scores_many(W, np.zeros(3), out)
    assert_array_equal(out, [[0.0, 1.0, 2.0], [0.0, 2.0, 4.0]])
