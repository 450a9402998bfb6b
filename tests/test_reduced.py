"""The reduced problem against quadprog, in both forms, with and without a free coordinate."""

import numpy as np
import pytest
import quadprog
from hypothesis import given
from hypothesis import strategies as st

from cutsvm.planes import Bundle, Planes
from cutsvm.reduced import ReducedProblem
from test_kernels import rng_of, seeds


def some_planes(rng, m, d, shards, n_free):
    shard = np.concatenate([np.arange(shards), rng.integers(0, shards, size=m)])[:m]
    slopes = rng.normal(size=(m, d + n_free))
    return slopes, np.abs(rng.normal(size=m)), shard


def by_quadprog(slopes, offsets, shard, n_free, C):
    """The dual's value: max C o.x - C^2 |A'x|^2/2."""
    m, d = len(offsets), slopes.shape[1] - n_free
    A = slopes[:, :d]
    Q = C * A @ A.T
    Q += 1e-10 * max(1.0, np.trace(Q) / m) * np.eye(m)
    member = (shard[:, None] == np.unique(shard)[None, :]).astype(float)
    constraints = np.hstack([slopes[:, d:], np.eye(m), -member])
    sides = np.concatenate([np.zeros(n_free), np.zeros(m), -np.ones(member.shape[1])])
    try:
        x = quadprog.solve_qp(Q, offsets, constraints, sides, n_free)[0]
    except ValueError:  # planes that all lean one way leave nothing but x = 0
        return 0.0
    x = np.maximum(x, 0.0)
    x /= np.maximum(1.0, member.T @ x)[np.unique(shard, return_inverse=True)[1]]  # it oversteps by 1e-6 or so
    return C * (offsets @ x - 0.5 * C * np.sum((A.T @ x) ** 2))


@pytest.mark.parametrize("n_free", [0, 1])
@pytest.mark.parametrize("form", ["planes", "features"])
@given(
    seed=seeds,
    m=st.integers(1, 40),
    d=st.integers(1, 12),
    shards=st.integers(1, 10),
    C=st.sampled_from([0.01, 1.0, 1e4]),
)
def test_solution_and_bound(form, n_free, seed, m, d, shards, C):
    slopes, offsets, shard = some_planes(rng_of(seed), m, d, shards, n_free)
    gram = slopes[:, :d] @ slopes[:, :d].T if form == "planes" else None
    expected = by_quadprog(slopes, offsets, shard, n_free, C)
    scale = max(expected, 1e-6 * C * offsets.max())
    reduced = ReducedProblem(slopes, offsets, shard, n_free, gram).solve(C, tol=1e-7 * scale)
    assert reduced.value - reduced.lower <= 1e-7 * scale
    # quadprog keeps to the constraints to 1e-6 or so, and its answer may be too high by what that is worth.
    assert reduced.value >= expected - 1e-3 * scale - 1e-5 * C * offsets.max()
    x = reduced.weights
    assert reduced.lower <= C * offsets @ x - 0.5 * C * C * np.sum((slopes[:, :d].T @ x) ** 2) + 1e-13 * scale
    heights = slopes @ reduced.w + offsets
    risk = sum(max(0.0, heights[shard == p].max()) for p in np.unique(shard))
    w = reduced.w[:d]
    assert reduced.value == pytest.approx(0.5 * w @ w + C * risk, rel=1e-9)
    assert reduced.value >= reduced.lower
    assert np.all(reduced.weights >= 0)
    for p in np.unique(shard):
        assert reduced.weights[shard == p].sum() <= 1 + 1e-12
    if n_free:
        assert abs(reduced.weights @ slopes[:, d]) <= 1e-12 * np.abs(slopes[:, d]).max()


def test_does_not_run_in_circles():
    """Planes on which predictor and corrector alone go round and round."""
    slopes, offsets, shard = some_planes(rng_of(383646), 24, 1, 1, 0)
    reduced = ReducedProblem(slopes, offsets, shard, 0).solve(0.01, tol=1e-10)
    assert reduced.value - reduced.lower <= 1e-10
    assert reduced.steps < 30


@given(seed=seeds, tol=st.sampled_from([10.0, 1.0, 0.1]))
def test_a_loose_tolerance_still_gives_a_bound(seed, tol):
    slopes, offsets, shard = some_planes(rng_of(seed), 20, 4, 3, 0)
    best = ReducedProblem(slopes, offsets, shard, 0).solve(100.0, tol=1e-6)
    rough = ReducedProblem(slopes, offsets, shard, 0).solve(100.0, tol=tol)
    assert rough.value - rough.lower <= tol
    assert rough.lower <= best.value + 1e-9
    assert rough.steps <= best.steps


def test_bundle_drops_only_idle_planes():
    """A plane that lies under the others goes; the minimum stays."""
    rng = rng_of(1)
    bundle = Bundle(3, 0)
    for _ in range(4):
        bundle.add(Planes(rng.normal(size=(2, 3)), 1 + rng.random(2)))
    bundle.add(Planes(np.zeros((2, 3)), np.full(2, 1e-9)))
    before = bundle.minimise(1.0, 1e-10)
    for _ in range(3):
        bundle._rising = True
        bundle._idle[: len(bundle)] += 1
        bundle._idle[: len(bundle)] *= bundle._weights[: len(bundle)] < 1e-3
    bundle.drop_idle(2)
    assert len(bundle) < 10
    assert bundle.minimise(1.0, 1e-10).lower == pytest.approx(before.lower, rel=1e-6)


def test_an_empty_bundle_says_zero():
    reduced = Bundle(3, 0).minimise(1.0, 1e-3)
    assert reduced.lower == 0.0
    assert not reduced.w.any()
