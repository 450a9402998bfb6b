"""Cutting planes for many C at once: bounds at every pass, few passes, and when batching stops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutsvm._utils.timing import clock
from cutsvm.driver.records import Stop
from cutsvm.driver.run import Fit, fit_path
from cutsvm.solvers import OCAS, Sifting
from cutsvm.solvers.batched import BatchSettings, presolve_batched
from cutsvm.solvers.protocol import FitContext
from cutsvm.solvers.sifting.solver import SiftingSettings
from tests.support.problems import long_data, many_classes, multiclass_oracle_of, oracle_of
from tests.support.reference import svm
from tests.support.strategies import examples, rng_of, seeds

INTERCEPTS = ["none", "regularized", "free"]
TOL = 1e-3
FROM_ANYWHERE = BatchSettings(far=np.inf)  # no start is too bad


def passes(context, starts, settings=FROM_ANYWHERE):
    return sum(1 for _ in presolve_batched(context, starts, settings))


def path_of(solver, oracle, Cs, tol):
    return fit_path(solver, oracle, Cs, Fit(Stop(tol=tol)))[0]


@pytest.mark.parametrize("intercept", INTERCEPTS)
@examples(15)
@given(seed=seeds, n=st.integers(6, 50), d=st.integers(1, 4), shards=st.integers(1, 5))
def test_bounds_hold_after_every_pass(intercept, seed, n, d, shards):
    rng = rng_of(seed)
    X, a = rng.normal(size=(n, d)), rng.choice([-2.0, -1.0, 1.0, 1.0], size=n)
    a[:2] = 1.0, -1.0
    oracle = oracle_of(X, a, intercept).with_shards(shards)
    Cs = [1e-3, 0.1, 1.0, 30.0]
    context = FitContext(oracle, Cs, TOL)
    optima = {C: svm.optimum(X, a, C, intercept) for C in Cs}
    for _ in presolve_batched(context, {C: 0.1 * rng.normal(size=oracle.size) for C in Cs}, BatchSettings()):
        for C, optimum in optima.items():
            best = context.best(C)
            b = best.w[d] if intercept != "none" else 0.0
            assert best.objective(C) == pytest.approx(svm.objective(X, a, C, intercept, best.w[:d], b), rel=1e-10)
            assert best.objective(C) >= min(optimum) * (1.0 - 1e-12)
            assert context.bound(C, 0.1 * TOL)[1] <= max(optimum) * (1.0 + 1e-12)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_one_pass_evaluates_all_C(intercept):
    """Twelve C in as many passes as the hardest of them takes."""
    X, a = long_data()
    Cs = (np.geomspace(1e-2, 1e3, 12) / len(a)).tolist()
    few = path_of(OCAS(), oracle_of(X[:3000], 10.0 * a[:3000], intercept), Cs, 0.01)
    context = FitContext(oracle_of(X, a, intercept).with_shards(16), Cs, TOL)
    with clock() as seen:
        made = passes(context, {C: result.w for C, result in zip(Cs, few, strict=True)}, BatchSettings())
    assert seen.counts["passes"] == made <= 12
    assert all(context.known_gap(C, 0.1) <= TOL for C in Cs)
    assert {tuple(known.w) for known in context.points} >= {tuple(result.w) for result in few}


@pytest.mark.parametrize(
    ("settings", "most"), [(BatchSettings(far=0.0), 1), (BatchSettings(far=np.inf, most_passes=0.0), 3)]
)
def test_a_slow_value_of_C_is_left_to_others(settings, most):
    X, a = long_data(2000)
    context = FitContext(oracle_of(X, a), [1.0], TOL)
    assert passes(context, {1.0: np.zeros(context.oracle.size)}, settings) == most


def test_zero_gap_ends():
    X, a = long_data(500)
    context = FitContext(oracle_of(X, a), [0.01, 1.0], 0.0)
    assert 1 < passes(context, {C: np.zeros(context.oracle.size) for C in context.Cs}) < 200


def test_more_points_than_one_pass_takes():
    X, a = long_data(2000)
    oracle = oracle_of(X, a)
    batch = oracle.supports.batch
    context = FitContext(oracle, (np.geomspace(1e-3, 1.0, 2 * batch + 1) / len(a)).tolist(), TOL)
    next(presolve_batched(context, {C: np.zeros(oracle.size) for C in context.Cs}, BatchSettings()))
    assert len(context.points) == 1 + (2 * batch + 1) // 3


def test_multiclass_values_of_C_are_solved_in_turn():
    X, y = many_classes()
    oracle = multiclass_oracle_of(X, y, intercept="free")
    context = FitContext(oracle, [1e-4, 1e-3, 1.0], TOL)
    assert oracle.supports.batch == 1
    assert 1 <= passes(context, {C: np.zeros(oracle.size) for C in context.Cs}) <= 3


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_sifting_solves_what_is_left(intercept):
    """All values of C, if the planes never help."""
    X, a = long_data()
    Cs = [1e-5, 1e-3, 1e-2]
    solver = Sifting(settings=SiftingSettings(batch=BatchSettings(far=0.0)))
    for C, result in zip(Cs, path_of(solver, oracle_of(X, a, intercept), Cs, TOL), strict=True):
        exact = path_of(OCAS(), oracle_of(X, a, intercept), [C], 1e-6)[0]
        assert result.gap <= TOL
        assert result.lower <= exact.primal and exact.lower <= result.primal * (1.0 + 1e-12)


@given(seed=seeds, shards=st.integers(1, 4), planes=st.integers(0, 5))
def test_value_of_a_bundle(seed, shards, planes):
    rng = rng_of(seed)
    X, a = rng.normal(size=(12, 2)), rng.choice([-1.0, 1.0], size=12)
    oracle, w = oracle_of(X, a, "none").with_shards(shards), rng.normal(size=2)
    bundle, heights = oracle.new_bundle(1.0), np.zeros((planes + 1, oracle.shards))
    for k in range(planes):
        made = oracle.planes(oracle.at(rng.normal(size=2)))
        bundle.add(made)
        heights[k] = made.slopes @ w + made.offsets
    assert bundle.height(w) == pytest.approx(np.maximum(0.0, heights).max(axis=0).sum())
