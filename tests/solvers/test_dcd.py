"""Coordinate descent as a solver; tests/core/test_dcd.py tests the kernel."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from cutsvm.driver.records import Status, Stop
from cutsvm.driver.run import run, run_at
from cutsvm.matrix import as_rows
from cutsvm.problem.losses import Hinge, Pairwise
from cutsvm.problem.oracle import Oracle
from cutsvm.solvers import DCD, OCAS, Auto, Sifting
from cutsvm.solvers.protocol import new_context
from tests.support.problems import iterates, long_data, oracle_of

INTERCEPTS = ["none", "regularized", "free"]


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("positives", [0.4, 0.009])
def test_agrees_with_ocas(positives, intercept, asynchronous):
    X, a = long_data(n=8000, positives=positives)
    a *= np.random.default_rng(2).choice([0.0, 0.5, 1.0, 2.0], size=len(a))
    solver = DCD(asynchronous=asynchronous)
    result = run(solver, oracle_of(X, a, intercept, threads=2), 0.05, Stop(tol=1e-4))
    plain = run(OCAS(), oracle_of(X, a, intercept), 0.05, Stop(tol=1e-5))
    assert result.status is Status.CONVERGED
    assert plain.lower <= result.primal <= plain.primal * (1 + 2e-4)
    assert result.lower <= plain.primal


@pytest.mark.parametrize("solver", [DCD(), Sifting(), Sifting(inner=DCD()), Auto()], ids=str)
@pytest.mark.parametrize("intercept", ["regularized", "free"])
def test_threads_do_not_change_a_bit(solver, intercept):
    X, a = long_data()
    one, two, three = (
        run(solver, oracle_of(X, a, intercept, threads=threads), 0.003, Stop(tol=1e-3)) for threads in (1, 2, 3)
    )
    assert np.array_equal(one.w, two.w) and np.array_equal(one.w, three.w)
    assert one.lower == two.lower == three.lower


def test_duplicate_columns_are_summed():
    """A squared length that took them one by one would be too small, and steps too long."""
    X, a = long_data(n=500, d=3)
    twice = sparse.csr_matrix(
        (np.repeat(0.5 * X.ravel(), 2), np.tile(np.repeat(np.arange(3), 2), 500), np.arange(0, 3001, 6)), shape=(500, 3)
    )
    once = run(DCD(), oracle_of(X, a), 0.1, Stop(tol=1e-6))
    again = run(DCD(), Oracle(as_rows(twice), Hinge(a)), 0.1, Stop(tol=1e-6))
    assert again.status is Status.CONVERGED
    assert again.primal >= once.lower  # one intercept less
    assert twice.nnz == 3000  # the user's matrix is left alone


def test_resumes_from_a_dual_vector():
    """A context keeps the dual vector of the last C, from which the next one begins."""
    X, a = long_data(n=8000)
    context = new_context(DCD(), oracle_of(X, a), [0.1], 1e-4)
    first = run_at(DCD(), context, 0.1, Stop(tol=1e-4))
    assert context.dual is not None
    again = run_at(DCD(), context, 0.1, Stop(tol=1e-4))
    assert again.history[-1]["visits"] < 0.7 * first.history[-1]["visits"]


def test_rows_of_zeros_without_intercept():
    X, a = long_data(n=5000)
    X[::3] = 0.0
    result = run(DCD(), oracle_of(X, a, "none"), 0.01, Stop(tol=1e-5))
    assert result.status is Status.CONVERGED


def test_needs_a_dual_variable_for_each_row():
    X, a = long_data(n=50)
    oracle = replace(oracle_of(X, a), loss=Pairwise(a, np.ones(50), np.array([0, 50])))
    with pytest.raises(TypeError, match="dcd: rows in memory"):
        next(iterates(DCD(), oracle, 1.0))
