"""linear_path, ranking_path: every point has a valid certificate and equals a separate fit."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from cutsvm import LinearSVC, RankingSVM, Status, linear_path, ranking_path
from cutsvm.driver.parallel_path import SplitSettings
from cutsvm.driver.records import Stop
from cutsvm.driver.run import Fit, fit_path
from cutsvm.estimators.path import grid
from cutsvm.matrix import as_rows
from cutsvm.problem.losses import Hinge
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Intercept
from cutsvm.solvers import Sifting, resolve
from tests.support.bad_values import BAD_CS
from tests.support.problems import SIFT_ANYTHING
from tests.support.reference import svm
from tests.support.strategies import examples, rng_of, seeds

CS = np.geomspace(1e-4, 10.0, 7)


def certified(model, F, optimum):
    """lower <= optimum <= primal = F(w)"""
    low, high = min(optimum), max(optimum)  # round-off may have changed their order
    assert model.objective_ == pytest.approx(F, rel=1e-10)
    assert model.lower_bound_ <= high
    assert model.objective_ >= low * (1.0 - 1e-14)
    assert model.gap_ == pytest.approx((model.objective_ - model.lower_bound_) / model.objective_)


@pytest.mark.parametrize("intercept", ["free", "regularized", None])
@pytest.mark.parametrize("solver", ["auto", "ocas", "dcd", "cpa"])
@examples(10)
@given(seed=seeds, n=st.integers(6, 40), d=st.integers(1, 4))
def test_bounds_hold_at_every_C(solver, intercept, seed, n, d):
    rng = rng_of(seed)
    X, y = rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], size=n)
    y[:2] = 1.0, -1.0
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], size=n)
    weights[:2] = 1.0
    settings = {"solver": solver, "intercept": intercept or "free", "fit_intercept": intercept is not None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        models = linear_path(X, y, Cs=[0.01, 0.3, 10.0], sample_weight=weights, tol=1e-4, max_iter=60, **settings)
    for model in models:
        name, a = intercept or "none", y * weights
        F = svm.objective(X, a, model.C, name, model.coef_[0], model.intercept_[0])
        certified(model, F, svm.optimum(X, a, model.C, name))


@pytest.mark.parametrize("intercept", ["free", "regularized", None])
@examples(15)
@given(seed=seeds, n=st.integers(20, 120), d=st.integers(1, 4))
def test_bounds_hold_with_a_working_set(intercept, seed, n, d):
    rng = rng_of(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + rng.normal(size=n) > 0.0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    solver = Sifting(sample=0.3, band=0.2, settings=SIFT_ANYTHING)
    how = {"solver": solver, "intercept": intercept or "free", "fit_intercept": intercept is not None}
    for model in linear_path(X, y, Cs=[1e-3, 0.01, 0.1, 1.0], tol=1e-4, **how):
        name = intercept or "none"
        F = svm.objective(X, y, model.C, name, model.coef_[0], model.intercept_[0])
        certified(model, F, svm.optimum(X, y, model.C, name))
        assert model.converged_


@pytest.mark.parametrize("intercept", ["free", "regularized"])
@examples(8)
@given(seed=seeds, n=st.integers(40, 150))
def test_bounds_hold_with_more_classes(intercept, seed, n):
    rng = rng_of(seed)
    X = rng.normal(size=(n, 3))
    y = np.argmax(X + rng.normal(size=(n, 3)), axis=1)
    y[:3] = 0, 1, 2
    solver = Sifting(sample=0.3, band=0.2, settings=SIFT_ANYTHING)
    models = linear_path(X, y, Cs=[1e-3, 0.01, 0.1], solver=solver, intercept=intercept)
    for model in models:
        exact = LinearSVC(model.C, solver="ocas", intercept=intercept, tol=1e-6).fit(X, y)
        assert model.gap_ <= 1e-3
        assert model.lower_bound_ <= exact.objective_ and exact.lower_bound_ <= model.objective_ * (1.0 + 1e-12)


@pytest.fixture(scope="module")
def long_data():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30_000, 6)).astype(np.float32)
    return X, np.where(X @ rng.normal(size=6) + rng.normal(size=30_000) > 0.5, 1, -1)


@pytest.mark.slow
@pytest.mark.parametrize("intercept", ["free", "regularized"])
@pytest.mark.parametrize("solver", ["sifting", "ocas", "dcd"])
def test_points_equal_separate_fits(solver, intercept, long_data):
    X, y = long_data
    Cs = np.geomspace(1e-6, 1.0, 9)
    models, passes = linear_path(X, y, Cs=Cs, solver=solver, intercept=intercept), 0
    for model in models:
        alone = LinearSVC(model.C, solver=solver, intercept=intercept, tol=1e-5).fit(X, y)
        assert model.converged_ and model.gap_ <= 1e-3
        assert model.lower_bound_ <= alone.objective_ * (1 + 1e-9)
        assert alone.lower_bound_ <= model.objective_ * (1 + 1e-9)
        assert np.mean(model.predict(X) == alone.predict(X)) > 0.97
        passes += alone.history_[-1]["passes"]
    assert sum(model.history_[-1]["passes"] for model in models) < passes


@pytest.mark.parametrize("solver", ["auto", "sifting", "dcd"])
def test_n_jobs_does_not_change_a_bit(solver, long_data):
    X, y = long_data
    one, two = (linear_path(X, y, Cs=np.geomspace(1e-5, 0.1, 5), solver=solver, n_jobs=k) for k in (1, 2))
    for a, b in zip(one, two, strict=True):
        assert_array_equal(a.coef_, b.coef_)
        assert (a.objective_, a.lower_bound_) == (b.objective_, b.lower_bound_)


@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
@pytest.mark.parametrize("intercept", ["free", "regularized"])
def test_more_classes(multi_class, intercept):
    X, y = load_iris(return_X_y=True)
    settings = {"multi_class": multi_class, "intercept": intercept}
    for model in linear_path(X, y, Cs=CS, **settings):
        alone = LinearSVC(model.C, tol=1e-5, **settings).fit(X, y)
        assert model.converged_ and model.gap_ <= 1e-3
        assert model.lower_bound_ <= alone.objective_ * (1 + 1e-9)
        assert alone.lower_bound_ <= model.objective_ * (1 + 1e-9)
        assert_array_equal(model.classes_, alone.classes_)
        assert model.coef_.shape == (3, 4)


def test_ranking():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    y, qid = np.digitize(X @ rng.normal(size=5) + rng.normal(size=300), [-1, 0, 1]), rng.integers(0, 12, size=300)
    for model in ranking_path(X, y, qid=qid, Cs=[0.1, 1.0, 10.0, 100.0]):
        alone = RankingSVM(model.C, tol=1e-5).fit(X, y, qid=qid)
        assert model.gap_ <= 1e-3 and model.n_queries_ == 12 and model.n_pairs_ == alone.n_pairs_
        assert model.lower_bound_ <= alone.objective_ * (1 + 1e-9)
        assert alone.lower_bound_ <= model.objective_ * (1 + 1e-9)


def test_weights_are_repetition(overlapping):
    X, y = overlapping[0][:400], overlapping[1][:400]
    weights = np.random.default_rng(0).integers(0, 3, size=400)
    weighted = linear_path(X, y, Cs=CS, sample_weight=weights, tol=1e-6)
    repeated = linear_path(np.repeat(X, weights, axis=0), np.repeat(y, weights), Cs=CS, tol=1e-6)
    for a, b in zip(weighted, repeated, strict=True):
        assert a.objective_ == pytest.approx(b.objective_, rel=1e-6)


def test_one_C_is_a_fit(overlapping):
    X, y = overlapping
    (model,), alone = linear_path(X, y, Cs=[0.01]), LinearSVC(0.01).fit(X, y)
    assert_array_equal(model.coef_, alone.coef_)
    assert model.lower_bound_ == alone.lower_bound_


def test_grid_is_scaled_to_the_data():
    X = np.array([[3.0, 4.0], [0.0, 5.0]])
    assert_allclose(grid(3, as_rows(X), np.array([1.0, 3.0])), [0.01, 10.0, 1e4])
    assert_allclose(grid(3, as_rows(sparse.csr_matrix(X)), np.array([1.0, 3.0])), [0.01, 10.0, 1e4])
    assert grid(1, as_rows(np.zeros((2, 2))), np.ones(2)) == [1.0]
    models = linear_path(X, [0, 1], Cs=2)
    assert [model.C for model in models] == pytest.approx(grid(2, as_rows(X), np.ones(2)))


@pytest.mark.parametrize(("Cs", "message"), BAD_CS, ids=str)
def test_bad_Cs(Cs, message, overlapping):
    with pytest.raises(ValueError, match=message):
        linear_path(*overlapping, Cs=Cs)


def test_bad_parameters(overlapping):
    with pytest.raises(TypeError, match="C: a path has several of them, give Cs"):
        linear_path(*overlapping, Cs=CS, C=1.0)
    with pytest.raises(ValueError, match="checkpoint='x': a checkpoint is of one fit, not of a path"):
        linear_path(*overlapping, Cs=CS, checkpoint="x")
    with pytest.raises(ValueError, match="tol=0: expected a finite number above 0"):
        linear_path(*overlapping, Cs=CS, tol=0)
    with pytest.raises(ValueError, match="only one class"):
        linear_path(overlapping[0], np.ones(5000), Cs=CS)


def test_max_time_keeps_the_best_known_point(overlapping):
    with pytest.warns(ConvergenceWarning, match=r"\d of 7 C are not at tol; the worst is C="):
        models = linear_path(*overlapping, Cs=CS, max_time=1e-9)
    for model in models:
        assert model.lower_bound_ <= model.objective_ <= model.C * 5000 * (1 + 1e-12)
        assert model.status_ in (Status.MAX_TIME, Status.CONVERGED)


def test_ctrl_c_keeps_finished_points(overlapping):
    calls = []

    def interrupt(record):
        calls.append(record)
        if len(calls) == 6:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted; the best model so far is kept"):
        models = linear_path(*overlapping, Cs=CS, callbacks=[interrupt], tol=1e-6)
    assert Status.INTERRUPTED in [model.status_ for model in models]
    assert all(np.isfinite(model.coef_).all() and model.lower_bound_ <= model.objective_ for model in models)


def test_features_and_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "b": [1.0, 0.0, 1.0, 0.0]})
    for model in linear_path(frame, ["n", "n", "y", "y"], Cs=[0.1, 1.0]):
        assert model.feature_names_in_.tolist() == ["a", "b"] and model.n_features_in_ == 2
        assert set(model.predict(frame)) <= {"n", "y"}


def test_from_a_store(tmp_path, long_data):
    from cutsvm import convert

    X, y = long_data
    convert((X, y), tmp_path / "store")
    Cs = [1e-4, 1e-2]
    on_disk = linear_path(tmp_path / "store", Cs=Cs, memory_limit="2GB")
    for model, other in zip(on_disk, linear_path(X, y, Cs=Cs), strict=True):
        assert model.gap_ <= 1e-3
        assert model.lower_bound_ <= other.objective_ and other.lower_bound_ <= model.objective_


def in_two_parts(data, Cs, solver="auto", *, threads=1, tol=1e-3, callbacks=()):
    """The results of a path that is split into two parts, however little the data."""
    X, y = data
    oracle = Oracle(as_rows(X, threads), Hinge(y.astype(float), threads), Intercept.FREE, threads)
    return fit_path(resolve(solver), oracle, Cs, Fit(Stop(tol=tol), callbacks), SplitSettings(entries=0))[0]


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["auto", "sifting", "dcd"])
def test_path_in_two_parallel_parts(solver, long_data):
    X, y = long_data
    Cs = np.geomspace(1e-6, 0.1, 9).tolist()
    one, two = (in_two_parts(long_data, Cs, solver, threads=k) for k in (1, 2))
    for a, b, C in zip(one, two, Cs, strict=True):
        assert_array_equal(a.w, b.w)
        assert a.lower == b.lower
        exact = LinearSVC(C, tol=1e-5).fit(X, y)
        assert a.gap <= 1e-3 and a.lower <= exact.objective_ * (1 + 1e-9)
        assert exact.lower_bound_ <= a.primal * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("how", ["interrupt", "stop", "fail"])
def test_interruption_ends_both_parts(how, n_jobs, long_data):
    calls = []

    def callback(record):
        calls.append(record)
        if len(calls) >= 20 and how == "stop":
            return True
        if len(calls) == 20:
            raise KeyboardInterrupt if how == "interrupt" else RuntimeError("no")
        return False

    Cs = np.geomspace(1e-6, 0.1, 9).tolist()
    if how == "fail":
        with pytest.raises(RuntimeError, match="no"):
            in_two_parts(long_data, Cs, threads=n_jobs, tol=1e-7, callbacks=[callback])
        return
    results = in_two_parts(long_data, Cs, threads=n_jobs, tol=1e-7, callbacks=[callback])
    assert len(results) == 9 and all(result.lower <= result.primal for result in results)
