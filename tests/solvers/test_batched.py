"""Cutting planes for many C at once: bounds at every pass, few passes, and when batching stops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutsvm._utils.timing import clock
from cutsvm.driver.path import SHARE, Trail, walk
from cutsvm.driver.run import Stop
from cutsvm.problem.oracle import new_bundle
from cutsvm.solvers import OCAS, Sifting
from cutsvm.solvers import batched as abreast
from tests.support.problems import joint_risk, long_data, many_classes, risk_of
from tests.support.reference import svm
from tests.support.strategies import examples, rng_of, seeds

INTERCEPTS = ["none", "regularized", "free"]
AIM = 1e-3


def set_out(oracle, Cs):
    """A trail over these C."""
    oracle.trail = Trail(oracle, Cs)
    return oracle.trail


@pytest.fixture
def from_anywhere(monkeypatch):
    """Every start is accepted."""
    monkeypatch.setattr(abreast, "FAR", np.inf)


def passes(oracle, starts, aim=AIM):
    return sum(1 for _ in abreast.abreast(oracle, starts, aim))


@pytest.mark.parametrize("intercept", INTERCEPTS)
@examples(15)
@given(seed=seeds, n=st.integers(6, 50), d=st.integers(1, 4), shards=st.integers(1, 5))
def test_bounds_hold_after_every_pass(intercept, seed, n, d, shards):
    rng = rng_of(seed)
    X, a = rng.normal(size=(n, d)), rng.choice([-2.0, -1.0, 1.0, 1.0], size=n)
    a[:2] = 1.0, -1.0
    oracle = risk_of(X, a, intercept)
    oracle.split(shards)
    Cs = [1e-3, 0.1, 1.0, 30.0]
    trail = set_out(oracle, Cs)
    optima = {C: svm.optimum(X, a, C, intercept) for C in Cs}
    for _ in abreast.abreast(oracle, {C: 0.1 * rng.normal(size=oracle.size) for C in Cs}, AIM):
        for C, optimum in optima.items():
            best = trail.best(C)
            b = best.w[d] if intercept != "none" else 0.0
            assert best.objective(C) == pytest.approx(svm.objective(X, a, C, intercept, best.w[:d], b), rel=1e-10)
            assert best.objective(C) >= min(optimum) * (1.0 - 1e-12)
            assert trail.look(C, SHARE * AIM)[1] <= max(optimum) * (1.0 + 1e-12)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_one_pass_evaluates_all_C(intercept):
    """Twelve C in as many passes as the hardest of them takes."""
    X, a = long_data()
    Cs = (np.geomspace(1e-2, 1e3, 12) / len(a)).tolist()
    few = walk(OCAS(), risk_of(X[:3000], 10.0 * a[:3000], intercept), Cs, Stop(tol=0.01))
    oracle = risk_of(X, a, intercept)
    oracle.split(16)
    trail = set_out(oracle, Cs)
    with clock() as seen:
        made = passes(oracle, {C: result.w for C, result in zip(Cs, few, strict=True)})
    assert seen.counts["passes"] == made <= 12
    assert all(trail.gap(C, AIM) <= AIM for C in Cs)
    assert {tuple(known.w) for known in trail.points} >= {tuple(result.w) for result in few}


@pytest.mark.parametrize(("name", "value", "most"), [("FAR", 0.0, 1), ("MOST", 0.0, 3)])
def test_limits_on_slow_progress(monkeypatch, from_anywhere, name, value, most):
    monkeypatch.setattr(abreast, name, value)
    X, a = long_data(2000)
    oracle = risk_of(X, a)
    set_out(oracle, [1.0])
    assert passes(oracle, {1.0: np.zeros(oracle.size)}) == most


def test_zero_gap_ends(from_anywhere):
    X, a = long_data(500)
    oracle = risk_of(X, a)
    set_out(oracle, [0.01, 1.0])
    assert 1 < passes(oracle, {0.01: np.zeros(oracle.size), 1.0: np.zeros(oracle.size)}, 0.0) < 200


def test_more_points_than_one_pass_takes():
    X, a = long_data(2000)
    oracle = risk_of(X, a)
    Cs = (np.geomspace(1e-3, 1.0, 2 * oracle.abreast + 1) / len(a)).tolist()
    trail = set_out(oracle, Cs)
    rows = iter(abreast.abreast(oracle, {C: np.zeros(oracle.size) for C in Cs}, AIM))
    next(rows)
    assert len(trail.points) == 1 + (2 * oracle.abreast + 1) // 3


def test_multiclass_values_of_C_are_solved_in_turn():
    X, y = many_classes()
    oracle = joint_risk(X, y, intercept="free")
    trail = set_out(oracle, [1e-4, 1e-3, 1.0])
    assert oracle.abreast == 1
    assert 1 <= passes(oracle, {C: np.zeros(oracle.size) for C in trail.Cs}) <= 3


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_sifting_continues_with_the_remaining_C(monkeypatch, intercept):
    """Sifting solves all C if batched planes do not help."""
    monkeypatch.setattr(abreast, "FAR", 0.0)
    X, a = long_data()
    Cs = [1e-5, 1e-3, 1e-2]
    results = walk(Sifting(), risk_of(X, a, intercept), Cs, Stop(tol=AIM))
    for C, result in zip(Cs, results, strict=True):
        exact = walk(OCAS(), risk_of(X, a, intercept), [C], Stop(tol=1e-6))[0]
        assert result.gap <= AIM
        assert result.lower <= exact.primal and exact.lower <= result.primal * (1.0 + 1e-12)


@given(seed=seeds, shards=st.integers(1, 4), planes=st.integers(0, 5))
def test_value_of_a_bundle(seed, shards, planes):
    rng = rng_of(seed)
    X, a = rng.normal(size=(12, 2)), rng.choice([-1.0, 1.0], size=12)
    oracle, w = risk_of(X, a, "none"), rng.normal(size=2)
    oracle.split(shards)
    bundle, heights = new_bundle(oracle, 1.0), np.zeros((planes + 1, oracle.shards))
    for k in range(planes):
        made = oracle.planes(oracle.at(rng.normal(size=2)))
        bundle.add(made)
        heights[k] = made.slopes @ w + made.offsets
    assert bundle.height(w) == pytest.approx(np.maximum(0.0, heights).max(axis=0).sum())
