"""Kernels that are functions, and tanh(gamma x.z + coef0): kernel machines treat them as matrices of values."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel, sigmoid_kernel
from sklearn.svm import SVC, SVR, OneClassSVM

from cutsvm import KernelOneClassSVM, KernelSVC, KernelSVR, nested_cross_validate, save_model
from cutsvm.kernel_machines.semidefinite import IndefiniteKernelError


def gaussian(X, Z):
    return rbf_kernel(X, Z, gamma=0.3)


def some_rows(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + 0.3 * rng.normal(size=n)


MACHINES = {
    "two classes": (KernelSVC, SVC, lambda y: (y > 0.0).astype(int)),
    "four classes": (KernelSVC, SVC, lambda y: np.digitize(y, [-1.0, 0.0, 1.0])),
    "regression": (KernelSVR, SVR, lambda y: y),
    "one class": (KernelOneClassSVM, OneClassSVM, lambda y: None),
}


def scores(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("name", MACHINES)
def test_a_function_is_the_kernel_that_it_computes(name, kind):
    machine, _, targets = MACHINES[name]
    X, y = some_rows()
    other = kind(some_rows(600, seed=1)[0])
    model = machine(kernel=gaussian, tol=1e-8).fit(kind(X), targets(y))
    named = machine(gamma=0.3, tol=1e-8).fit(kind(X), targets(y))
    assert model.converged_ and model.objective_ == pytest.approx(named.objective_, rel=1e-7)
    np.testing.assert_allclose(scores(model, other), scores(named, other), atol=1e-3)
    np.testing.assert_array_equal(
        model.support_vectors_ if kind is np.asarray else model.support_vectors_.toarray(), X[model.support_]
    )
    assert type(model.support_vectors_) is type(kind(X))


@pytest.mark.parametrize("name", MACHINES)
def test_as_scikit_learn(name):
    machine, peer, targets = MACHINES[name]
    X, y = some_rows()
    other = some_rows(50, seed=1)[0]
    model = machine(kernel=laplacian_kernel, tol=1e-8).fit(X, targets(y))
    known = peer(kernel=laplacian_kernel, tol=1e-8).fit(X, targets(y))
    np.testing.assert_allclose(scores(model, other), scores(known, other), atol=1e-3)


@pytest.mark.parametrize("solver", ["sgd", "isda", "min_norm"])
def test_other_solvers(solver):
    X, y = some_rows()
    model = KernelSVC(kernel=gaussian, solver=solver, tol=1e-5).fit(X, y > 0.0)
    named = KernelSVC(gamma=0.3, solver=solver, tol=1e-5).fit(X, y > 0.0)
    assert model.objective_ == pytest.approx(named.objective_, rel=2e-5)
    np.testing.assert_allclose(model.decision_function(X), named.decision_function(X), atol=0.05)


def test_it_is_called_with_rows_and_with_the_support():
    X, y = some_rows(700)
    calls = []

    def kernel(X, Z):
        calls.append((X.shape, Z.shape))
        return gaussian(X, Z)

    model = KernelSVR(kernel=kernel).fit(X, y)
    assert calls == [((700, 3), (700, 3))]
    model.predict(X)
    size = len(model.support_)
    assert calls[1:] == [((512, 3), (size, 3)), ((188, 3), (size, 3))]


def test_weights_are_repetitions():
    X, y = some_rows()
    times = np.random.default_rng(1).integers(0, 4, size=len(y))
    rows, targets = np.repeat(X, times, axis=0), np.repeat(y, times)
    weighted, repeated = KernelSVR(kernel=gaussian).fit(X, y, times), KernelSVR(kernel=gaussian).fit(rows, targets)
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=0, atol=1e-12)


def test_values_that_are_sparse_or_lists():
    X, y = some_rows()
    plain = KernelSVR(kernel=gaussian).fit(X, y).predict(X)
    for turned in (sparse.csr_matrix, np.ndarray.tolist, np.float32):
        model = KernelSVR(kernel=lambda A, B, turned=turned: turned(gaussian(A, B))).fit(X, y)
        np.testing.assert_allclose(model.predict(X), plain, atol=1e-2)


def nan_at_3_5(X, Z):
    found = gaussian(X, Z)
    found[3, 5] = np.nan
    return found


BAD = {
    "one row too few": (lambda X, Z: gaussian(X, Z)[1:], r"shape \(79, 80\): expected \(80, 80\)"),
    "a vector": (lambda X, Z: np.ones(len(X)), r"shape \(80,\): expected \(80, 80\)"),
    "NaN": (nan_at_3_5, "has returned nan for row 3 of X and row 5 of Z"),
    "text": (lambda X, Z: "no", "has returned no matrix of numbers"),
    "None": (lambda X, Z: None, r"shape \(\): expected \(80, 80\)|no matrix of numbers"),
}


@pytest.mark.parametrize("machine", [KernelSVC, KernelSVR, KernelOneClassSVM])
@pytest.mark.parametrize("name", BAD)
def test_bad_values(name, machine):
    X, y = some_rows()
    kernel, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        machine(kernel=kernel).fit(X, y > 0.0)


def test_bad_values_in_predict():
    X, y = some_rows()
    model = KernelSVR(kernel=gaussian).fit(X, y)
    model.kernel = lambda X, Z: gaussian(X, Z).T
    with pytest.raises(ValueError, match="has returned values of shape"):
        model.predict(X[:5])


def test_errors_of_the_function_are_its_own():
    def kernel(X, Z):
        raise RuntimeError("no values today")

    with pytest.raises(RuntimeError, match="no values today"):
        KernelSVC(kernel=kernel).fit(*some_rows()[:1], some_rows()[1] > 0.0)


@pytest.mark.parametrize("machine", [KernelSVC, KernelSVR, KernelOneClassSVM])
@pytest.mark.parametrize(
    "kernel, message",
    [
        (lambda X, Z: -gaussian(X, Z), r"not positive semi-definite: K\[0, 0\] = -1 is below 0"),
        (lambda X, Z: gaussian(X, Z) + 0.1 * (X[:, :1] - Z[:, 0]), r"not symmetric: K\["),
    ],
    ids=["negative", "asymmetric"],
)
def test_what_is_no_kernel_trains_with_a_warning_and_without_a_bound(kernel, message, machine):
    X, y = some_rows()
    with pytest.warns(ConvergenceWarning, match=message):
        model = machine(kernel=kernel, max_iter=50).fit(X, y > 0.0)
    assert model.lower_bound_ == -np.inf and not model.converged_
    assert np.isfinite(scores(model, X)).all()


def test_solvers_of_the_squared_hinge_refuse_what_is_no_kernel():
    X, y = some_rows()
    with pytest.raises(IndefiniteKernelError, match="not positive semi-definite"):
        KernelSVC(kernel=lambda X, Z: -gaussian(X, Z), solver="isda").fit(X, y > 0.0)


@pytest.mark.filterwarnings("ignore:the kernel matrix is not positive:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("name", MACHINES)
def test_sigmoid(name, kind):
    """As the same values precomputed."""
    machine, _, targets = MACHINES[name]
    X, y = some_rows()
    other = some_rows(50, seed=1)[0]
    X, other = X / 10.0, other / 10.0
    K = sigmoid_kernel(X, gamma=0.5, coef0=0.0)
    model = machine(kernel="sigmoid", gamma=0.5, tol=1e-6).fit(kind(X), targets(y))
    given = machine(kernel="precomputed", tol=1e-6).fit(K, targets(y))
    assert model.converged_ == given.converged_
    np.testing.assert_allclose(
        scores(model, kind(other)), scores(given, sigmoid_kernel(other, X, gamma=0.5, coef0=0.0)), atol=1e-3
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_indefinite_sigmoid_is_as_accurate_as_that_of_svc():
    X, y = some_rows(300)
    model = KernelSVC(kernel="sigmoid", gamma=0.2).fit(X, y > 0.0)
    known = SVC(kernel="sigmoid", gamma=0.2).fit(X, y > 0.0)
    assert model.score(X, y > 0.0) > known.score(X, y > 0.0) - 0.03
    assert KernelSVC(kernel="sigmoid").fit(X, y > 0.0).gamma_ == pytest.approx(1.0 / (3 * X.var()))


def test_limit_on_memory():
    X, y = some_rows(3000)
    with pytest.raises(ValueError, match=r"takes a matrix of all kernel values, of 3,000 rows in .*raise memory_limit"):
        KernelSVR(kernel="sigmoid", memory_limit="60 MB").fit(X, y)


def test_clone_pickle_and_files(tmp_path):
    X, y = some_rows()
    model = KernelSVR(kernel=rbf_kernel).fit(X, y)
    assert clone(model).kernel is rbf_kernel
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    with pytest.raises(ValueError, match="is a function, and model files hold no code"):
        save_model(model, tmp_path / "model")


@pytest.mark.parametrize("kernel", [gaussian, "sigmoid"])
def test_nested_cross_validation_takes_the_matrix(kernel):
    X, y = some_rows()
    with pytest.raises(ValueError, match="with the matrix of all kernel values as X"):
        nested_cross_validate(X, y > 0.0, param_grid={"C": [1.0]}, estimator=KernelSVC(kernel=kernel))
