"""KernelOneClassSVM: the optimum of independent solvers, bounds, its scale, weights, layouts, limits, files."""

from __future__ import annotations

import pickle
import time

import numpy as np
import pytest
import quadprog
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import OneClassSVM

from cutsvm import KernelOneClassSVM, LinearOneClassSVM, Status, convert, load_model, report, save_model
from tests.support.layouts import LAYOUTS

KERNELS = ["rbf", "poly", "linear"]
NUS = [0.02, 0.1, 0.5, 0.9, 1.0]


def some_rows(n=60, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3)) + np.array([2.0, 1.0, 0.5])


def values(model, X, Z):
    if model.kernel == "rbf":
        return rbf_kernel(X, Z, gamma=model.gamma_)
    if model.kernel == "poly":
        return polynomial_kernel(X, Z, degree=model.degree, gamma=model.gamma_, coef0=model.coef0)
    return X @ Z.T


def objective(model, K, weights):
    """F by hand: the coefficients and rho are nu S times those of F."""
    scale, coef = model.nu * weights.sum(), np.zeros(len(K))
    coef[model.support_] = model.dual_coef_[0] / scale
    rho = model.offset_[0] / scale
    return 0.5 * coef @ K @ coef - rho + weights @ np.maximum(0.0, rho - K @ coef) / scale


def optimum(K, weights, nu):
    """min F by quadprog, of its dual: max -a'K a / 2, 0 <= a_i <= s_i / (nu S), sum a = 1."""
    n, caps = len(K), weights / (nu * weights.sum())
    if nu == 1.0:  # a = caps is the only point
        return -0.5 * caps @ K @ caps
    A, low = np.column_stack([np.ones(n), np.eye(n), -np.eye(n)]), np.r_[1.0, np.zeros(n), -caps * (1.0 + 1e-12)]
    return -quadprog.solve_qp(K + 1e-10 * np.trace(K) / n * np.eye(n), np.zeros(n), A, low, 1)[1]


@pytest.mark.parametrize("nu", NUS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_optimum_of_a_quadratic_program(kernel, nu):
    X = some_rows()
    weights = np.random.default_rng(1).choice([0.5, 1.0, 3.0], size=len(X))
    model = KernelOneClassSVM(nu=nu, kernel=kernel, coef0=1.0, degree=2, tol=1e-7).fit(X, None, weights)
    K = values(model, X, X)
    best = optimum(K, weights, nu)
    assert model.converged_ and 0.0 <= model.gap_ <= 1e-7 and model.objective_ < 0.0
    slack = 1e-6 * abs(best)
    assert model.lower_bound_ <= best + slack and best - slack <= model.objective_
    assert model.gap_ == (model.objective_ - model.lower_bound_) / -model.objective_
    assert model.objective_ == pytest.approx(objective(model, K, weights), rel=1e-9)
    assert model.dual_coef_.sum() == pytest.approx(nu * weights.sum(), rel=1e-12)
    assert np.all((model.dual_coef_ > 0.0) & (model.dual_coef_ <= weights[model.support_] * (1.0 + 1e-12)))


@pytest.mark.parametrize("nu", NUS[:-1])  # for 1 the offset of OneClassSVM is infinite
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of OneClassSVM
def test_as_one_class_svm(weighted, kernel, nu):
    """Scores, offset and coefficients are in the same scale."""
    X, other = some_rows(149), some_rows(80, seed=9)  # of 150 rows, nu n may be whole, and rho has an interval
    weights = np.random.default_rng(2).choice([0.5, 1.0, 3.0], size=149) if weighted else None
    params = {"nu": nu, "kernel": kernel, "coef0": 0.5, "degree": 2, "gamma": 0.2}
    model = KernelOneClassSVM(tol=1e-9, **params).fit(X, None, weights)
    peer = OneClassSVM(tol=1e-8, max_iter=300_000, **params).fit(X, None, weights)
    assert model.converged_
    size = np.abs(peer.score_samples(other)).max() + 0.1  # where w = 0 is the answer, only its rounding errors are left
    np.testing.assert_allclose(model.score_samples(other), peer.score_samples(other), atol=2e-4 * size)
    np.testing.assert_allclose(model.decision_function(other), peer.decision_function(other), atol=1e-3 * size)
    assert model.offset_.shape == model.intercept_.shape == (1,)
    assert model.dual_coef_.shape == (1, len(model.support_)) and model.n_support_.tolist() == [len(model.support_)]
    clear = np.abs(peer.decision_function(other)) > 1e-3 * size
    np.testing.assert_array_equal(model.predict(other)[clear], peer.predict(other)[clear])
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])


@pytest.mark.parametrize("nu", NUS)
def test_a_linear_kernel_is_the_linear_machine(nu):
    X = some_rows(100)
    model = KernelOneClassSVM(kernel="linear", nu=nu, tol=1e-8).fit(X)
    linear = LinearOneClassSVM(nu=nu, tol=1e-8).fit(X)
    assert model.objective_ == pytest.approx(linear.objective_, rel=1e-7)
    np.testing.assert_allclose(model.coef_ / (nu * 100), linear.coef_, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("nu", NUS[:-1])
def test_share_of_outliers(nu):
    X = some_rows(400)
    model = KernelOneClassSVM(nu=nu, tol=1e-9).fit(X)
    scores = model.decision_function(X)
    size = np.abs(scores).max()
    assert np.mean(scores < -1e-4 * size) <= nu <= np.mean(scores <= 1e-4 * size) + 1e-12
    np.testing.assert_array_equal(model.fit_predict(X), np.where(scores >= 0.0, 1, -1))


@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-6])
def test_the_origin_within_the_rows(kernel, tol):
    """No half-space without the origin holds the rows that nu leaves: w = 0, and it is proven."""
    X = np.random.default_rng(0).normal(size=(200, 3))
    model = KernelOneClassSVM(kernel=kernel, nu=0.3, tol=tol).fit(X)
    assert model.converged_ and model.objective_ == model.gap_ == 0.0
    assert -1e-9 < model.lower_bound_ <= 0.0 and not len(model.support_) and model.offset_.tolist() == [0.0]
    assert np.all(model.predict(X) == 1) and not model.decision_function(X).any()


def test_bounds_at_every_record():
    X = some_rows(500)
    seen = []
    model = KernelOneClassSVM(nu=0.1, tol=1e-7, callbacks=[seen.append]).fit(X)
    best = KernelOneClassSVM(nu=0.1, tol=1e-9).fit(X)
    assert len(seen) == len(model.history_) > 1
    for record in seen:
        assert record.lower <= best.objective_ and best.lower_bound_ <= record.primal


def test_weights_are_repetitions():
    X = some_rows()
    times = np.random.default_rng(1).integers(0, 4, size=len(X))
    weighted = KernelOneClassSVM(nu=0.2, gamma=0.3).fit(X, None, times)
    repeated = KernelOneClassSVM(nu=0.2, gamma=0.3).fit(np.repeat(X, times, axis=0))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=0, atol=1e-12)
    assert weighted.objective_ == repeated.objective_
    # F has the mean of the losses: the scale of the weights does not matter.
    double = KernelOneClassSVM(nu=0.2, gamma=0.3).fit(X, None, 2.0 * times)
    assert double.objective_ == pytest.approx(weighted.objective_, rel=1e-12)
    np.testing.assert_allclose(double.decision_function(X), 2.0 * weighted.decision_function(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("nu", [0.1, 0.5])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_row_at_the_threshold_is_an_inlier(kernel, nu):
    """rho is the score of a row, whose sum has other rounding errors where rows are repeated."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, times = rng.normal(size=(15, 4)) + 1.0, rng.integers(1, 5, size=15)
        weighted = KernelOneClassSVM(nu=nu, kernel=kernel).fit(X, None, times)
        repeated = KernelOneClassSVM(nu=nu, kernel=kernel).fit(np.repeat(X, times, axis=0))
        np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))
        assert times[weighted.decision_function(X) < -1e-4].sum() <= nu * times.sum()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_agree(layout, kernel):
    X = some_rows()
    X[np.random.default_rng(2).random(X.shape) < 0.3] = 0.0
    X = np.float32(X).astype(np.float64)
    given = LAYOUTS[layout](X)
    params = {"kernel": kernel, "gamma": 0.3, "coef0": 1.0, "tol": 1e-8, "nu": 0.2}
    model, dense = KernelOneClassSVM(**params).fit(given), KernelOneClassSVM(**params).fit(X)
    size = np.abs(dense.score_samples(X)).max()
    np.testing.assert_allclose(model.decision_function(given), dense.decision_function(X), atol=2e-4 * size)
    assert model.objective_ == pytest.approx(dense.objective_, rel=1e-7)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("n", [300, 3000])
def test_threads_give_the_same_bits(n, kind):
    X = kind(some_rows(n))
    one, three = (KernelOneClassSVM(nu=0.1, n_jobs=jobs).fit(X) for jobs in (1, 3))
    np.testing.assert_array_equal(one.dual_coef_, three.dual_coef_)
    np.testing.assert_array_equal(one.decision_function(X), three.decision_function(X))
    assert (one.objective_, one.lower_bound_) == (three.objective_, three.lower_bound_)


def test_one_row_and_rows_that_are_all_the_same():
    for X in (np.ones((1, 2)), np.ones((7, 2))):
        for nu in (0.1, 1.0):
            model = KernelOneClassSVM(nu=nu).fit(X)
            assert model.converged_ and model.objective_ == pytest.approx(-0.5)
            assert abs(model.decision_function(X)).max() < 1e-12 and model.decision_function([[9.0, 9.0]])[0] < 0.0


def test_precomputed_values():
    X = some_rows()
    K = rbf_kernel(X, gamma=0.4)
    model = KernelOneClassSVM(kernel="precomputed", tol=1e-8).fit(K)
    other = KernelOneClassSVM(gamma=0.4, tol=1e-8).fit(X)
    np.testing.assert_allclose(model.decision_function(K), other.decision_function(X), atol=1e-4)
    assert model.support_vectors_.shape == (0, 0)


def test_limits_on_time_and_iterations():
    X = np.random.default_rng(0).normal(size=(6000, 10))
    began = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = KernelOneClassSVM(nu=0.5, gamma=0.05, tol=1e-12, max_time=0.1).fit(X)
    assert time.perf_counter() - began < 8.0
    assert model.status_ is Status.MAX_TIME and not model.converged_
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = KernelOneClassSVM(tol=1e-9, max_iter=1).fit(X[:500])
    assert model.status_ is Status.MAX_ITER and model.n_iter_ == 1 and model.gap_ > 1e-9


BAD = [
    {"nu": 0.0},
    {"nu": 1.5},
    {"nu": -0.1},
    {"nu": "half"},
    {"kernel": "cosine"},
    {"gamma": -1.0},
    {"degree": 1.5},
    {"coef0": np.nan},
    {"tol": -1.0},
    {"max_iter": 0},
    {"memory_limit": "much"},
]


@pytest.mark.parametrize("params", BAD, ids=str)
def test_bad_parameters(params):
    with pytest.raises(ValueError, match=next(iter(params))):
        KernelOneClassSVM(**params).fit(some_rows(10))


def test_not_fitted():
    with pytest.raises(NotFittedError):
        KernelOneClassSVM().predict(some_rows(3))
    with pytest.raises(NotFittedError):
        _ = KernelOneClassSVM().offset_


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, np.float32])
@pytest.mark.parametrize("kernel", KERNELS)
def test_model_files_and_pickles(kernel, kind, tmp_path):
    X = kind(some_rows())
    model = KernelOneClassSVM(nu=0.25, kernel=kernel, coef0=0.25).fit(X)
    save_model(model, tmp_path / "model")
    saved = load_model(tmp_path / "model")
    assert saved.task == "kernel-oneclass" and type(saved.estimator) is KernelOneClassSVM
    assert saved.estimator.get_params() == model.get_params()
    for again in (saved.estimator, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        for name in ("support_", "n_support_", "dual_coef_", "intercept_", "offset_", "gamma_", "gap_", "status_"):
            np.testing.assert_array_equal(getattr(again, name), getattr(model, name), strict=True)


def test_sources_and_reports(tmp_path):
    X = some_rows()
    convert((X, np.zeros(len(X))), tmp_path / "rows.store")
    model = KernelOneClassSVM().fit(str(tmp_path / "rows.store"))
    np.testing.assert_array_equal(model.predict(X), KernelOneClassSVM().fit(X).predict(X))
    np.testing.assert_array_equal(model.predict(str(tmp_path / "rows.store")), model.predict(X))
    report(model, X, file=tmp_path / "report.html")
    assert "KernelOneClassSVM" in (tmp_path / "report.html").read_text()
