"""OCAS when the line search makes no step."""

from itertools import islice

import numpy as np
import pytest

from cutsvm.driver.records import Status, Stop
from cutsvm.driver.run import run
from cutsvm.problem.line_search import SEARCHES, Exact
from cutsvm.solvers import OCAS
from cutsvm.solvers.cutting_planes import best_step, objective
from tests.support.problems import iterates, long_data, oracle_of, some_problem
from tests.support.reference import svm
from tests.support.strategies import rng_of

C = 1e-3


class NoStep:
    """A line search that returns a step of 0."""

    def __call__(self, line, tilt, curvature, base=0.0):
        return 0.0


@pytest.fixture
def stalled(monkeypatch):
    monkeypatch.setitem(SEARCHES, "exact", NoStep)


@pytest.mark.parametrize("intercept", ["none", "regularized"])
def test_stalls_without_a_nudge(stalled, intercept):
    oracle = oracle_of(*long_data(2000), intercept)
    found = list(islice(iterates(OCAS(shards=1, nudge=0.0), oracle, C), 40))
    assert {iterate.primal for iterate in found} == {C * oracle.loss.total}
    assert not found[-1].w.any()


@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
def test_a_nudge_leaves_the_stall(stalled, intercept):
    oracle = oracle_of(*long_data(2000), intercept)
    found = list(islice(iterates(OCAS(shards=1), oracle, C), 80))
    first = [iterate.primal for iterate in found[: OCAS().stall.searches]]
    assert intercept == "free" or set(first) == {C * oracle.loss.total}
    assert found[-1].primal < first[0]
    assert all(iterate.step == 0.0 for iterate in found)  # what the search found, not the nudge


@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
def test_the_best_point_is_kept_while_the_centre_is_worse(stalled, intercept):
    """From an optimal start every nudge increases the objective."""
    X, a = long_data(2000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SEARCHES, "exact", Exact)
        best = run(OCAS(), oracle_of(X, a, intercept), C, Stop(tol=1e-9))
    oracle = oracle_of(X, a, intercept)
    previous = np.inf
    for iterate in islice(iterates(OCAS(shards=1), oracle, C, start=best.w), 40):
        assert iterate.primal <= previous
        assert iterate.primal == pytest.approx(objective(oracle, oracle.score(iterate.w.copy()), C), rel=1e-12)
        assert iterate.lower <= best.primal * (1 + 1e-12)
        previous = iterate.primal
    assert previous <= best.primal * (1 + 1e-9)


@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
def test_a_nudge_raises_the_objective_no_more_than_allowed(intercept):
    oracle = oracle_of(*long_data(2000), intercept)
    start = oracle.at(run(OCAS(), oracle, C, Stop(tol=1e-9)).w)
    end = oracle.at(30 * np.random.default_rng(3).normal(size=oracle.size))
    here = objective(oracle, start, C)
    longest = objective(oracle, oracle.between(start, end, 0.02), C) - here
    assert longest > 0.0
    assert best_step(oracle, start, end, C, 0.02, rise=2 * longest + here) == 0.02
    for rise in (0.5 * longest, 0.1 * longest, 0.01 * longest):
        step = best_step(oracle, start, end, C, 0.02, rise)
        assert 0.02 / 4**6 <= step < 0.02
        assert objective(oracle, oracle.between(start, end, step), C) <= here + rise
    assert best_step(oracle, start, end, C, 0.02, rise=0.0) == 0.02 / 4**6


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("shards", [1, 8])
def test_every_search_reaches_the_tolerance(name, shards):
    result = run(OCAS(line_search=name, shards=shards), oracle_of(*long_data(5000), "free"), 0.1, Stop(tol=1e-4))
    assert result.status is Status.CONVERGED
    exact = run(OCAS(shards=shards), oracle_of(*long_data(5000), "free"), 0.1, Stop(tol=1e-4))
    assert result.n_iter <= 2 * exact.n_iter
    assert result.primal == pytest.approx(exact.primal, rel=1e-4)


def test_free_intercept_undetermined_by_planes():
    """A reduced problem whose planes say nothing about b gives any b, even 1e16; scores must keep their digits."""
    X, a = long_data(n=60, d=3, seed=3)
    for iterate in islice(iterates(OCAS(shards=3), oracle_of(X, a, "free"), 0.1), 9):
        w, b = iterate.w[:3], iterate.w[3]
        assert iterate.primal == pytest.approx(svm.objective(X, a, 0.1, "free", w, b), rel=1e-9)


def test_steps_that_shrink_by_a_factor_are_a_stall():
    """With a free intercept and cuts at the best point, steps halve for ever 1.8 % above the optimum."""
    X, a = some_problem(rng_of(1178), 30, 2)
    result = run(OCAS(cut_at=0.0, shards=1), oracle_of(X, a, "free"), 1.0, Stop(tol=1e-5))
    assert result.status is Status.CONVERGED
    assert result.lower <= svm.optimum(X, a, 1.0, "free")[1]
