"""Coordinate descent as a solver; tests/core/test_dcd.py tests the kernel."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from cutsvm.driver.records import Status, Stop
from cutsvm.driver.run import Fit, fit_path, run, run_at
from cutsvm.matrix import as_rows
from cutsvm.problem.losses import Hinge, Pairwise
from cutsvm.problem.losses.smooth import Huber, Logistic, SquaredHinge, SquaredTube
from cutsvm.problem.losses.tube import Tube
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Intercept
from cutsvm.solvers import DCD, OCAS, Auto, Sifting
from cutsvm.solvers.protocol import new_context
from tests.support.problems import iterates, long_data, oracle_of, some_problem
from tests.support.reference import row_losses
from tests.support.strategies import rng_of, seeds

INTERCEPTS = ["none", "regularized", "free"]
TWINS = row_losses.LOSSES
LOSSES = {
    "hinge": lambda twin, threads: Hinge(twin.a, threads),
    "squared hinge": lambda twin, threads: SquaredHinge(twin.a, threads),
    "logistic": lambda twin, threads: Logistic(twin.a, threads),
    "epsilon-insensitive": lambda twin, threads: _tube(twin, threads),
    "pinball": lambda twin, threads: _tube(twin, threads),
    "squared epsilon-insensitive": lambda twin, threads: SquaredTube(twin.t, twin.s, twin.epsilon, threads),
    "Huber": lambda twin, threads: Huber(twin.t, twin.s, twin.epsilon, threads),
}


def _tube(twin, threads):
    return Tube(twin.t, twin.s, twin.epsilon, twin.below, twin.above, threads)


def problem_of(name, X, a, rng):
    """The twin of a loss: with labels and weights, or with targets that X explains in part."""
    kind = TWINS[name]
    if issubclass(kind, row_losses.LabelLoss):
        return kind(a)
    scores = X @ rng.normal(size=X.shape[1])
    return kind(scores / (1.0 + np.abs(scores).max()) + rng.normal(size=len(a)) + 1.0, np.abs(a))


def any_oracle(name, X, twin, intercept, threads=1):
    return Oracle(as_rows(X, threads), LOSSES[name](twin, threads), intercept=Intercept(intercept), threads=threads)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("name", LOSSES)
@given(seed=seeds, n=st.integers(2, 30), d=st.integers(1, 6), C=st.sampled_from([1e-3, 0.1, 1.0, 100.0]))
def test_bounds_hold_at_every_iterate(name, intercept, asynchronous, seed, n, d, C):
    """Rows of all kinds, some of them 0 or repeated, with weights."""
    rng = rng_of(seed)
    X, a = some_problem(rng, n, d)
    X[rng.random(n) < 0.1] = 0.0
    twin = problem_of(name, X, a, rng)
    low, high = row_losses.optimum(X, twin, C, intercept)
    round_off = 1e-8 * high + 1e-13 * C * twin.s.sum()
    solver, previous = DCD(seed=seed, asynchronous=asynchronous), np.inf
    for iterate in islice(iterates(solver, any_oracle(name, X, twin, intercept, 1 + asynchronous), C), 40):
        assert iterate.lower <= high + round_off
        assert iterate.primal >= low - round_off
        w, b = iterate.w[:d], iterate.w[d] if len(iterate.w) > d else 0.0
        expected = row_losses.objective(X, twin, C, intercept, w, b)
        assert iterate.primal == pytest.approx(expected, rel=1e-9, abs=round_off)
        assert iterate.primal <= previous + round_off
        previous = iterate.primal
        if iterate.primal - iterate.lower <= 1e-8 * iterate.primal:
            break
    else:
        slow = C * float((twin.s * (1.0 + np.square(X).sum(axis=1))).max()) > 1.0
        # Updates that threads lose from each other may cost any number of passes.
        assert previous - iterate.lower <= 0.3 * previous or slow or asynchronous


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_reaches_its_optimum(name, intercept):
    """On several threads, with the same bits; the path's other C are no worse; weights are repetitions."""
    rng = rng_of(3)
    X, a = long_data(n=6000)
    a *= rng.choice([0.0, 1.0, 2.0], size=len(a))
    twin, Cs, tol = problem_of(name, X, a, rng), [0.0003, 0.003, 0.03], 1e-4
    one, two = (
        fit_path(DCD(), any_oracle(name, X, twin, intercept, threads), Cs, Fit(Stop(tol=tol)))[0] for threads in (1, 2)
    )
    copies = np.repeat(np.arange(len(a)), np.abs(a).astype(int))
    repeated = twin.take(copies)
    if hasattr(twin, "a"):
        repeated = type(twin)(np.sign(repeated.a))
    else:
        repeated = type(twin)(repeated.t, np.ones(len(copies)))
    for C, result, other in zip(Cs, one, two, strict=True):
        assert np.array_equal(result.w, other.w) and result.lower == other.lower
        again = run(DCD(seed=5), any_oracle(name, X[copies], repeated, intercept), C, Stop(tol=tol))
        for this, that in ((result, again), (again, result)):
            assert this.status is Status.CONVERGED
            assert this.lower <= that.primal * (1.0 + 1e-12)


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
