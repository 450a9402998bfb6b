"""scikit-learn's checks of the kernel machines: for every solver and kernel, none of them expected to fail.

A variant of each kind runs in the usual tests, the others with `pytest -m exhaustive`. Where a check gives what a
machine cannot take, the test says so, and what happens instead.
"""

import os
import subprocess
import sys

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from cutsvm import KernelOneClassSVM, KernelSVC, KernelSVR
from cutsvm.kernel_machines import ISDA, SGD
from cutsvm.kernel_machines.semidefinite import IndefiniteKernelError
from tests.support.kernels import Laplacian

VECTORS = ["rbf", "poly", "linear"]
KERNELS = [*VECTORS, "precomputed"]
ESTIMATORS = [
    *[KernelSVC(solver="exact", kernel=kernel) for kernel in KERNELS],
    *[KernelSVC(solver="sgd", kernel=kernel) for kernel in ("rbf", "linear", "precomputed")],
    KernelSVC(solver="isda"),
    KernelSVC(solver="min_norm", kernel="poly"),
    *[KernelSVR(n_jobs=2, kernel=kernel) for kernel in ("rbf", "poly", "precomputed")],
    KernelSVR(n_jobs=2, kernel="linear", fit_intercept=False),
    *[KernelOneClassSVM(kernel=kernel) for kernel in VECTORS],
]
OTHER_ESTIMATORS = [
    KernelSVC(),
    KernelSVC(solver="exact", memory_limit=1, n_jobs=2),
    KernelSVC(solver="exact", fit_intercept=False),
    KernelSVC(solver="sgd", kernel="poly"),
    KernelSVC(solver="sgd", fit_intercept=False),
    *[KernelSVC(solver="isda", kernel=kernel) for kernel in ("poly", "linear")],
    *[KernelSVC(solver="min_norm", kernel=kernel) for kernel in ("rbf", "linear")],
    *[KernelSVC(solver=solver) for solver in (SGD(order="random"), SGD(C_times="mean"), ISDA("regularized"))],
    *[KernelSVC(solver="sgd", kernel=kernel, memory_limit=1, n_jobs=2) for kernel in ("rbf", "linear")],
    KernelSVR(n_jobs=2, kernel="linear"),
    KernelSVR(n_jobs=2, kernel=Laplacian()),
    *[KernelSVR(n_jobs=2, kernel=k, fit_intercept=False) for k in ("rbf", "poly", "precomputed", Laplacian())],
    *[KernelOneClassSVM(kernel=kernel, nu=0.1) for kernel in (*VECTORS, Laplacian())],
]
WITHOUT_INTERCEPT = [
    KernelSVC(solver=solver, kernel=kernel, fit_intercept=False)
    for solver in ("exact", "sgd")
    for kernel in ("poly", "linear", "precomputed")
]
# A number of epochs ends wherever it is then, and says so; so do polynomials far from the origin, and matrices that are
# no kernel's.
may_stop_early = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
pytestmark = pytest.mark.slow


def name_of(check):
    return getattr(check, "func", check).__name__


@may_stop_early
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.exhaustive
@may_stop_early
@parametrize_with_checks(OTHER_ESTIMATORS)
def test_scikit_learn_conventions_of_the_others(estimator, check):
    check(estimator)


@may_stop_early
@parametrize_with_checks([KernelOneClassSVM(kernel="precomputed")])
def test_one_class_of_matrices(estimator, check):
    """Two checks give 300 x 2 numbers to every outlier detector, and no kernel matrix; OneClassSVM fails them, too."""
    if name_of(check) not in ("check_outliers_fit_predict", "check_outliers_train"):
        check(estimator)
    else:
        with pytest.raises(ValueError, match=r"square|kernel matrix"):
            check(estimator)


@pytest.mark.exhaustive
@parametrize_with_checks([KernelSVC(solver=solver, kernel="precomputed") for solver in ("isda", "min_norm")])
def test_squared_losses_of_matrices(estimator, check):
    """Two checks take random matrices, which are no kernel's: the dual of the squared loss has no maximum then."""
    if name_of(check) in ("check_positive_only_tag_during_fit", "check_estimators_dtypes"):
        refused = "the kernel matrix is not|raised IndefiniteKernelError"
        with pytest.raises((IndefiniteKernelError, AssertionError), match=refused):
            check(estimator)
    else:
        check(estimator)


@pytest.mark.exhaustive
@may_stop_early
@parametrize_with_checks(WITHOUT_INTERCEPT)
def test_without_intercept(estimator, check):
    """One check wants a class that all rows are put into: without an intercept f(0) = 0, or f is near 0 far away."""
    if name_of(check) != "check_class_weight_classifiers":
        check(estimator)


def test_array_api_check_runs():
    """scikit-learn skips this check unless SCIPY_ARRAY_API is set."""
    code = (
        "from sklearn.utils.estimator_checks import estimator_checks_generator\n"
        "from cutsvm import KernelSVC\n"
        "for solver in ('exact', 'sgd', 'isda', 'min_norm'):\n"
        "    for estimator, check in estimator_checks_generator(KernelSVC(solver=solver)):\n"
        "        if 'array_api' in getattr(check, 'func', check).__name__:\n"
        "            check(estimator)\n"
        "            print(solver)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["exact", "sgd", "isda", "min_norm"]
