"""KernelSVC: validity of the certificate, and when a fit has converged."""

import warnings
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from cutsvm import KernelSVC, Status
from cutsvm.kernel_machines import SGD
from cutsvm.kernel_machines.ascent import AscentSettings
from cutsvm.kernel_machines.context import Deadline, KernelContext, OutOfTimeError
from cutsvm.kernel_machines.gram import GramSettings, Points
from cutsvm.kernel_machines.semidefinite import IndefiniteKernelError, SpectrumSettings, check_kernel_matrix
from cutsvm.kernel_machines.sgd import SGDSettings
from tests.support.reference import kernel_machines as twin

SOLVERS = ["sgd", "isda", "min_norm"]  # tests of "exact" are in test_kernel_exact.py


@pytest.fixture(scope="module")
def two():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(120, 3))
    return X, np.where(X[:, 0] + 0.7 * rng.normal(size=120) > 0, 1, -1)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize("C", [0.01, 1.0, 50.0])
def test_converged_means_that_the_gap_is_within_tol(C, kernel, solver, two):
    X, y = two
    for tol in (1e-1, 1e-3, 1e-5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = KernelSVC(C, kernel=kernel, solver=solver, tol=tol, max_iter=300).fit(X, y)
        assert model.converged_ == (model.gap_ <= tol) == (model.status_ is Status.CONVERGED)
        if kernel == "rbf":
            assert model.converged_


def test_fixed_epochs_end_with_a_certificate(two):
    X, y = two
    with pytest.warns(ConvergenceWarning) as caught:
        model = KernelSVC(10.0, solver="sgd", epochs=3).fit(X, y)
    assert (model.status_, model.converged_, model.n_iter_) == (Status.EPOCHS, False, 3)
    (warning,) = caught
    text = str(warning.message)
    assert text.startswith(
        f"Stopped at a gap of {model.gap_:.2g} (tol=0.001): the epochs asked for are done. It is within "
    )
    assert 'epochs="auto" continues until the gap is within tol' in text
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loose = KernelSVC(10.0, solver="sgd", epochs=3, tol=0.99).fit(X, y)
    assert loose.converged_ and loose.status_ is Status.CONVERGED


def test_max_iter_is_a_limit_on_cycles(two):
    X, y = two
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        few = KernelSVC(solver="sgd", epochs=5, max_iter=2).fit(X, y)
    assert (few.n_iter_, few.status_) == (2, Status.MAX_ITER)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        some = KernelSVC(100.0, solver="sgd", kernel="linear", tol=1e-9, max_iter=40).fit(X, y)
    assert some.n_iter_ <= 50 and some.status_ is Status.MAX_ITER


def test_without_memory_for_the_matrix_only_epochs_run(two):
    X, y = two
    with pytest.warns(ConvergenceWarning, match='memory_limit="48.2 MB" holds the kernel matrix'):
        model = KernelSVC(solver="sgd", memory_limit="1kB").fit(X, y)
    assert model.status_ is Status.EPOCHS and not model.converged_ and model.n_iter_ == 20


def test_the_same_call_gives_the_same_model(two):
    X, y = two
    one, two_, zero = (KernelSVC(solver="sgd", certify=False, random_state=seed).fit(X, y) for seed in (None, None, 0))
    assert_array_equal(one.dual_coef_, two_.dual_coef_)
    assert_array_equal(one.dual_coef_, zero.dual_coef_)


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e8, 1e10])
@pytest.mark.parametrize("gamma", [0.4, "scale"])
def test_sparse_and_dense_rows_far_from_the_origin_agree(offset, gamma, two):
    X, y = two[0] + offset, two[1]
    dense, thin = (KernelSVC(gamma=gamma, solver="sgd").fit(kind(X), y) for kind in (np.asarray, sparse.csr_matrix))
    assert thin.gamma_ == pytest.approx(dense.gamma_, rel=1e-12)
    assert thin.objective_ == pytest.approx(dense.objective_, rel=1e-9)
    assert dense.converged_ and thin.converged_
    Z = X[:20] + 0.25
    expected = dense.decision_function(Z)
    for found in (
        dense.decision_function(sparse.csr_array(Z)),
        thin.decision_function(sparse.csr_matrix(Z)),
        thin.decision_function(Z),
    ):
        assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    coef = np.zeros(len(y))
    coef[dense.support_] = dense.dual_coef_[0]
    gaps = ((X[:, None] - X) ** 2).sum(axis=2)  # from differences, as dense as that is
    value = twin.primal(np.exp(-dense.gamma_ * gaps) + 1.0, y.astype(float), 1.0, coef, "hinge") / len(y)
    assert dense.objective_ == pytest.approx(value, rel=1e-9)


def test_two_far_clusters_of_sparse_and_dense_rows(two):
    """Centring does not help here: rows of a cluster are close to each other, and far from the mean."""
    X, y = two[0].copy(), two[1]
    X[::2] += 1e9
    model = KernelSVC(gamma=0.4, solver="sgd").fit(X, y)
    thin = KernelSVC(gamma=0.4, solver="sgd").fit(sparse.csr_array(X), y)
    assert thin.objective_ == pytest.approx(model.objective_, rel=1e-9) and model.converged_ and thin.converged_


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("scale", [1e-150, 1e-3, 1.0, 1e3, 1e12])
def test_bound_holds_where_rounding_dominates(scale, intercept, solver):
    """Duplicates, weights and C over decades; the optimum of an independent solver lies between the bounds."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(12, 2)) * scale, 2, axis=0)
    y = rng.permutation(np.arange(24) % 2)
    weight = {0: 1e-3, 1: 1e3}
    gamma = 0.5 / scale**2 if 1e-100 < scale else 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        params = {"solver": solver, "class_weight": weight, "fit_intercept": intercept, "max_iter": 200}
        model = KernelSVC(2.0, gamma=gamma, **params).fit(X, y)
    a = np.where(y == 1, 1e3, -1e-3)
    distance = ((X[:, None] - X) ** 2).sum(axis=2)
    K = np.exp(-gamma * distance) + float(intercept)
    low, high = np.array(twin.optimum(K, a, 2.0, "hinge" if solver == "sgd" else "l2")) / 48.0
    assert model.lower_bound_ <= high * (1.0 + 1e-9) and low * (1.0 - 1e-9) <= model.objective_


@pytest.mark.parametrize("solver", SOLVERS)
def test_kernel_values_in_float32_are_allowed_for(solver, two):
    """The bound is one for every kernel whose values round to those that were given."""
    X, y = two
    K = rbf_kernel(X, gamma=0.3)
    model = KernelSVC(1.0, kernel="precomputed", solver=solver).fit(K.astype(np.float32), y)
    low, _ = np.array(twin.optimum(K + 1.0, y.astype(float), 1.0, "hinge" if solver == "sgd" else "l2")) / len(y)
    assert model.converged_ and model.lower_bound_ <= low
    exact = KernelSVC(1.0, kernel="precomputed", solver=solver, tol=1e-9).set_params(tol=1e-4).fit(K, y)
    assert exact.converged_


NOT_KERNELS = [
    (np.array([[1.0, 2.0], [2.0, 1.0]]), r"X\[0, 1\] = 2 with X\[0, 0\] = 1 and X\[1, 1\] = 1, and no kernel has"),
    (np.diag([1.0, -0.5]), r"X\[1, 1\] = -0.5 is below 0"),
    (np.array([[0.0, 1.0], [1.0, 0.0]]), r"X\[0, 1\] = 1 with X\[0, 0\] = 0"),
    (np.array([[1.0, 0.4], [0.1, 1.0]]), r"symmetric: X\[0, 1\] = 0.4, X\[1, 0\] = 0.1"),
    # Every pair of rows is fine, the three together are not.
    (np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]]), r"v'Xv = -\d.* of the rows 0, 1, 2"),
]


@pytest.mark.parametrize(("K", "why"), NOT_KERNELS, ids=["minor", "diagonal", "zeros", "asymmetric", "eigenvalue"])
def test_indefinite_matrix_raises(K, why):
    """Refused with the evidence, or trained as SVC does it: with a warning, and no bound."""
    y = np.arange(len(K)) % 2
    for solver in ("isda", "min_norm"):
        with pytest.raises(ValueError, match=f"the kernel matrix is not.*{why}"):
            KernelSVC(kernel="precomputed", solver=solver).fit(K, y)
    with pytest.warns(ConvergenceWarning, match=f"the kernel matrix is not.*{why}.*nothing is proven"):
        model = KernelSVC(kernel="precomputed").fit(K, y)
    assert model.lower_bound_ == -np.inf and not model.converged_ and np.isfinite(model.objective_)
    assert set(model.predict(K)) <= {0, 1}


def test_large_indefinite_matrix_raises():
    by_lanczos = SpectrumSettings(max_cholesky_rows=10)
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(60, 60)))[0]
    values = np.linspace(0.0, 2.0, 60)
    for dtype in (np.float64, np.float32):
        assert check_kernel_matrix((Q * values @ Q.T).astype(dtype), by_lanczos) < 1e-4
    values[0] = -0.2
    with pytest.raises(IndefiniteKernelError, match="v'Xv = -"):
        check_kernel_matrix(Q * values @ Q.T, by_lanczos)


def test_rounded_kernel_matrices_are_kernels(two):
    """Of rank 3, of one value, of rows that are 0, in float32: their smallest eigenvalues are rounding errors."""
    X = two[0].copy()
    X[3] = 0.0
    for K in (X @ X.T, np.ones((5, 5)), np.zeros((4, 4)), rbf_kernel(X, gamma=1e-9), np.float32(X) @ np.float32(X).T):
        assert check_kernel_matrix(K) < 1e-4
        assert check_kernel_matrix(sparse.csr_matrix(K.astype(np.float64))) < 1e-4


def test_indefinite_polynomial_raises(two):
    with pytest.raises(ValueError, match=r"coef0=-1: expected at least 0.*not positive semi-definite"):
        KernelSVC(kernel="poly", coef0=-1).fit(*two)
    assert KernelSVC(kernel="rbf", coef0=-1).fit(*two).converged_  # it has no use for it


@pytest.mark.parametrize("solver", SOLVERS)
def test_interrupted_certificate_keeps_the_model(solver, two, monkeypatch):
    X, y = two
    calls = []

    def scores(self, alpha, deadline):
        calls.append(1)
        if len(calls) > 1 or solver == "sgd":
            raise KeyboardInterrupt
        return np.zeros(len(alpha))

    for name in ("scores", "_extended_scores"):
        monkeypatch.setattr(KernelContext, name, scores)
    with pytest.warns(ConvergenceWarning, match="interrupted; the best model so far is kept"):
        model = KernelSVC(solver=solver).fit(X, y)
    assert model.status_ is Status.INTERRUPTED and not model.converged_
    if solver == "sgd":
        assert np.isnan(model.gap_) and model.score(X, y) > 0.7
    else:
        assert model.gap_ == 1.0  # the last that was certified


def test_no_time_for_the_certificate(two, monkeypatch):
    def scores(self, alpha, deadline):
        raise OutOfTimeError

    for name in ("scores", "_extended_scores"):
        monkeypatch.setattr(KernelContext, name, scores)
    X, y = two
    with pytest.warns(ConvergenceWarning, match="was not computed, for lack of time: raise max_time"):
        model = KernelSVC(solver="sgd", max_time=100.0).fit(X, y)
    assert model.status_ is Status.MAX_TIME and np.isnan(model.gap_) and model.score(X, y) > 0.7


def test_progress_is_shown(two, monkeypatch, caplog):
    monkeypatch.setattr("cutsvm.estimators._kernel.Deadline", partial(Deadline, log_every=0.0))
    monkeypatch.setattr("cutsvm.estimators._kernel.Points", partial(Points, settings=GramSettings(block_rows=40)))
    solver = SGD(settings=SGDSettings(ascent=AscentSettings(values_per_round=1.0)))
    with caplog.at_level("INFO", logger="cutsvm"):
        KernelSVC(1e3, solver=solver, verbose=1, max_iter=100_000).fit(*two)
    for words in ("kernel matrix: 33 %", "certificate: 66 %", "coordinate ascent: "):
        assert words in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_matrix_of_low_rank_and_large_values(solver):
    """In float32 it is not positive semi-definite: the coefficients stay at 0 or above, and the bounds hold."""
    rng = np.random.default_rng(3)
    X = rng.integers(-4, 5, size=(10, 3)).astype(float) * 4e5
    X[5:] = X[:5]
    y = np.arange(10) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KernelSVC(7e3, kernel="precomputed", solver=solver, tol=1e-8, max_iter=200).fit(X @ X.T, y)
    assert 0.0 <= model.lower_bound_ <= model.objective_
    coef = np.zeros(10)
    coef[model.support_] = model.dual_coef_[0]
    assert np.all(coef * (2 * y - 1) >= 0.0)


@pytest.mark.parametrize("kind", [np.asarray, np.float32, sparse.csr_matrix])
@pytest.mark.parametrize("solver", ["exact", "sgd"])
def test_the_objective_of_a_linear_kernel_is_that_of_its_weights(solver, kind, two):
    X, y = kind(two[0] * [1.0, 1e5, 1e-4] + [0.0, 1e7, 0.0]), two[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KernelSVC(3.0, kernel="linear", solver=solver, max_iter=50).fit(X, y)
    rows = (X.toarray() if sparse.issparse(X) else X).astype(np.longdouble)
    w, b = model.coef_[0].astype(np.longdouble), np.longdouble(model.intercept_[0])
    penalty = 0.5 * b * b if solver == "sgd" else 0.0  # that of "exact" is free
    value = 0.5 * w @ w + penalty + 3.0 * np.maximum(0.0, 1.0 - y * (rows @ w + b)).sum()
    exact = float(value) / (3.0 * len(y))
    assert exact * (1.0 - 1e-15) <= model.objective_ <= exact * (1.0 + 1e-9)
