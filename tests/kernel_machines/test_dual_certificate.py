"""Bounds of the dual problem: of a start that is not 0, without a kernel's values, and where the optimum is 0."""

from __future__ import annotations

import numpy as np
import pytest

from cutsvm.kernel_machines.context import FitOptions
from cutsvm.kernel_machines.dual_problem import one_class, tube, two_classes
from cutsvm.kernel_machines.dual_search import solve
from cutsvm.kernel_machines.exact_settings import DualSolution, ExactSettings
from cutsvm.kernel_machines.gram import Kernel, Points
from cutsvm.kernel_machines.kernel_rows import KernelRows


def last_of(problem, points, tol=1e-6) -> DualSolution:
    for found in solve(problem, KernelRows(points), FitOptions(0, 0.0, tol, 1), ExactSettings()):
        if found.bounds.primal - found.bounds.lower <= tol * abs(found.bounds.primal):
            return found
    raise AssertionError(found)


@pytest.mark.parametrize("nu", [0.05, 0.3, 0.9, 1.0])
def test_rows_of_the_start_may_leave_the_support(nu):
    """The bound counts what is missing to the sum of all coefficients, not of those that are left."""
    X = np.random.default_rng(0).normal(size=(80, 3))
    found = last_of(one_class(np.full(80, 1.0 / (80 * nu)), nu), Points(X, Kernel(gamma=0.2), 1))
    assert found.bounds.lower <= found.bounds.primal < 0.0
    assert np.isclose(found.s.sum(), 1.0)


def test_no_bound_without_a_kernel():
    """F may be below 0, if |w|^2 may."""
    K = np.array([[1.0, 2.0], [2.0, 1.0]])
    points = Points(K, Kernel("precomputed"), 1)
    points.given_rounding = np.inf
    problem = two_classes(np.array([1.0, -1.0]), np.ones(2), free_intercept=True)
    first = next(solve(problem, KernelRows(points), FitOptions(0, 0.0, 1e-3, 1), ExactSettings()))
    assert first.bounds.lower == -np.inf


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_an_optimum_of_0_is_found_and_proven(epsilon):
    """All targets are within the tube of w = 0: no rounding error makes a loss of them."""
    points = Points(np.random.default_rng(0).normal(size=(30, 3)), Kernel(gamma=0.2), 1)
    found = last_of(tube(np.zeros(30), np.full(30, 3.0), epsilon, free_intercept=True), points)
    assert found.bounds.primal == found.bounds.lower == 0.0


def test_the_intercept_is_the_middle_of_its_interval():
    """All rows are at a bound: every b between the margins is a best one, also where rows without a loss end it."""
    X = np.array([[-3.0], [-1.0], [2.0], [5.0]])
    problem = two_classes(np.array([-1.0, -1.0, 1.0, 1.0]), np.array([0.0, 0.01, 0.01, 0.01]), free_intercept=True)
    found = last_of(problem, Points(X, Kernel("linear"), 1))
    f = X[:, 0] * float(found.s @ X[:, 0])
    g = problem.c - f
    low = max(g[k] for k in range(4) if found.s[k] < problem.high[k])
    high = min(g[k] for k in range(4) if found.s[k] > problem.low[k])
    assert low < high and found.bounds.intercept == pytest.approx(0.5 * (low + high))
