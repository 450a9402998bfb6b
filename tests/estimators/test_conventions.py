"""scikit-learn's checks of all estimators, none of them expected to fail.

A variant of each kind runs in the usual tests, the others with `pytest -m exhaustive`. Where a check gives what an
estimator cannot take, the test says so, and what happens instead.
"""

import os
import subprocess
import sys

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

import cutsvm.sklearn as dropin
from cutsvm import (
    KernelOneClassSVM,
    KernelSVC,
    KernelSVR,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    LinearSVRCV,
    OrdinalSVC,
    QuantileSVR,
    RankingSVM,
    ROCAreaSVC,
)
from cutsvm.kernel_machines import ISDA, SGD
from cutsvm.kernel_machines.semidefinite import IndefiniteKernelError
from cutsvm.solvers import OCAS
from tests.support import ROOT
from tests.support.kernels import Laplacian

TUBE, HUBER = "squared_epsilon_insensitive", "huber"
VECTORS = ["rbf", "poly", "linear"]
USUAL = [
    LinearSVC(),
    LinearSVC(solver="cpa"),
    LinearSVC(loss="squared_hinge", solver="newton"),
    LinearSVC(loss="logistic", intercept="regularized"),
    LinearSVCCV(),
    LinearSVR(),
    LinearSVR(loss=TUBE, epsilon=0.1, solver="newton"),
    LinearSVR(loss=HUBER),
    LinearSVRCV(Cs=3, cv=2),
    QuantileSVR(),
    LinearOneClassSVM(),
    RankingSVM(),
    ROCAreaSVC(),
    OrdinalSVC(),
    *[kind(loss="squared_hinge") for kind in (RankingSVM, ROCAreaSVC, OrdinalSVC)],
    dropin.LinearSVC(),
    dropin.LinearSVR(),
    *[KernelSVC(solver="exact", kernel=kernel) for kernel in (*VECTORS, "precomputed")],
    *[KernelSVC(solver="sgd", kernel=kernel) for kernel in ("rbf", "linear", "precomputed")],
    KernelSVC(solver="isda"),
    KernelSVC(solver="min_norm", kernel="poly"),
    *[KernelSVR(n_jobs=2, kernel=kernel) for kernel in ("rbf", "poly", "precomputed")],
    KernelSVR(n_jobs=2, kernel="linear", fit_intercept=False),
    *[KernelOneClassSVM(kernel=kernel) for kernel in VECTORS],
]
OTHERS = [
    *[LinearSVC(solver=solver) for solver in ("ocas", OCAS(shards=1))],
    LinearSVC(intercept="regularized"),
    LinearSVC(n_jobs=2),
    LinearSVC(random_state=0),
    *[LinearSVC(loss="squared_hinge", solver=solver) for solver in ("auto", "ocas")],
    *[LinearSVC(loss="logistic", solver=solver) for solver in ("auto", "ocas", "newton")],
    LinearSVC(loss="squared_hinge", intercept="regularized"),
    LinearSVCCV(Cs=[0.1, 1.0], cv=3, intercept="regularized"),
    LinearSVCCV(Cs=3, cv=2, loss="logistic", multi_class="ovr"),
    LinearSVR(solver="ocas"),
    LinearSVR(epsilon=0.1),
    LinearSVR(epsilon=0.1, intercept="regularized"),
    LinearSVR(loss=TUBE),
    LinearSVR(loss=HUBER, epsilon=1.35, solver="newton"),
    LinearSVRCV(Cs=3, cv=2, loss=TUBE, epsilon=0.1),
    QuantileSVR(quantile=0.4),
    LinearOneClassSVM(nu=0.1, solver="cpa"),
    OrdinalSVC(threshold_loss="zero_one"),
    RankingSVM(solver="cpa"),
    dropin.LinearSVC(loss="hinge"),
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
# Without an intercept f(0) = 0, or f is near 0 far away: no class is there that all rows could be put into.
WITHOUT_INTERCEPT = [
    KernelSVC(solver=solver, kernel=kernel, fit_intercept=False)
    for solver in ("exact", "sgd")
    for kernel in ("poly", "linear", "precomputed")
]
pytestmark = [
    pytest.mark.slow,
    # A number of epochs ends wherever it is then, and says so; so do polynomials far from the origin, and matrices that
    # are no kernel's.
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def name_of(check):
    return getattr(check, "func", check).__name__


def checks(usual, others=()):
    """A test for each check of each estimator; those of `others` are exhaustive."""
    cases = []
    for estimators, marks in ((usual, ()), (others, pytest.mark.exhaustive)):
        for given in estimators:
            for estimator, check in estimator_checks_generator(given):
                options = getattr(check, "keywords", {})
                name = "-".join([repr(given), name_of(check), *(f"{key}={value}" for key, value in options.items())])
                cases.append(pytest.param(estimator, check, marks=marks, id="".join(name.split())))
    return pytest.mark.parametrize(("estimator", "check"), cases)


@checks(USUAL, OTHERS)
def test_conventions(estimator, check):
    check(estimator)


@checks([KernelOneClassSVM(kernel="precomputed")])
def test_one_class_of_matrices(estimator, check):
    """Two checks give 300 x 2 numbers to every outlier detector, and no kernel matrix; OneClassSVM fails them, too."""
    if name_of(check) not in ("check_outliers_fit_predict", "check_outliers_train"):
        check(estimator)
    else:
        with pytest.raises(ValueError, match=r"square|kernel matrix"):
            check(estimator)


@checks([], [KernelSVC(solver=solver, kernel="precomputed") for solver in ("isda", "min_norm")])
def test_squared_losses_of_matrices(estimator, check):
    """Two checks take random matrices, which are no kernel's: the dual of the squared loss has no maximum then."""
    if name_of(check) in ("check_positive_only_tag_during_fit", "check_estimators_dtypes"):
        refused = r"the kernel matrix is not|raised IndefiniteKernelError"
        with pytest.raises((IndefiniteKernelError, AssertionError), match=refused):
            check(estimator)
    else:
        check(estimator)


@checks([], WITHOUT_INTERCEPT)
def test_without_intercept(estimator, check):
    if name_of(check) != "check_class_weight_classifiers":
        check(estimator)


def test_array_api_checks_run():
    """scikit-learn skips these unless SCIPY_ARRAY_API is set."""
    code = """
from sklearn.utils.estimator_checks import estimator_checks_generator
from tests.estimators.test_conventions import USUAL, name_of
for given in USUAL:
    found = [(own, check) for own, check in estimator_checks_generator(given) if "array_api" in name_of(check)]
    for own, check in found:
        check(own)
    print(len(found))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=ROOT,
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counts = [int(word) for word in done.stdout.split()]
    assert len(counts) == len(USUAL) and all(counts)
