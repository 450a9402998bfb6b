"""The kernels of piecewise linear losses with two breakpoints against their NumPy twins."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from cutsvm._native import core
from cutsvm.problem.losses import Tube
from tests.support.reference import hinge, tube
from tests.support.strategies import rng_of, seeds, sizes, some_scores

# Powers of 2 and their multiples: with weights that are whole numbers, sums are exact.
SHAPES = st.sampled_from([(0.5, 1.0, 1.0), (0.0, 1.0, 1.0), (0.0, 0.75, 0.25), (0.25, 2.0, 0.5), (0.25, 1.0, 0.0)])


def some_tube(rng, n, shape):
    return tube.Tube(some_scores(rng, n), rng.integers(0, 4, size=n) / 1.0, *shape)


def rows_of(loss):
    return core.RowLoss("tube", *loss)


@given(seed=seeds, n=sizes, shape=SHAPES, shards=st.integers(1, 20), threads=st.integers(1, 3))
def test_value_balance_and_slopes(seed, n, shape, shards, threads):
    rng = rng_of(seed)
    f, loss = some_scores(rng, n), some_tube(rng, n, shape)
    rows = rows_of(loss)
    assert_allclose(rows.value(f, threads), tube.value(f, loss), rtol=1e-12)
    assert_array_equal(rows.balance(f, threads), tube.balance(f, loss))
    bounds = np.linspace(0, n, shards + 1).astype(np.int64)
    g, sums = np.empty(n), np.empty((3, shards))
    rows.shared_slopes(f, 0.25, 0.5, bounds, g, sums, threads)
    expected, expected_sums = tube.slopes(f, loss, 0.25, 0.5, bounds)
    assert_array_equal(g, expected)
    assert_allclose(sums, expected_sums, rtol=1e-12, atol=1e-12)


@given(
    seed=seeds, n=sizes, shape=SHAPES, shares=st.tuples(st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([0.0, 1.0]))
)
def test_planes_are_nowhere_above_the_loss(seed, n, shape, shares):
    rng = rng_of(seed)
    f, loss = some_scores(rng, n), some_tube(rng, n, shape)
    rows, g, sums = rows_of(loss), np.empty(n), np.empty((3, 1))
    rows.shared_slopes(f, *shares, np.array([0, n]), g, sums, 1)
    round_off = 1e-12 * (1.0 + sums[2, 0])
    assert_allclose(sums[0, 0] + g @ f, tube.value(f, loss), atol=round_off)
    for other in (some_scores(rng, n), 9.0 * rng.normal(size=n), loss.t + loss.epsilon, loss.t - loss.epsilon):
        assert sums[0, 0] + g @ other <= tube.value(other, loss) + round_off


@given(seed=seeds, n=sizes, shape=SHAPES, band=st.sampled_from([0.0, 0.25, 1.0, 9.0]), threads=st.integers(1, 3))
def test_sift_and_violators(seed, n, shape, band, threads):
    rng = rng_of(seed)
    f, later, loss = some_scores(rng, n), some_scores(rng, n), some_tube(rng, n, shape)
    place, kept = tube.sift(f, loss, band)
    rows, found = rows_of(loss), np.full(n, 77, dtype=np.int32)
    assert_array_equal(rows.sift(f, band, found, threads), kept)
    names = {"kept": core.KEPT, "outside": core.OUTSIDE, "below": 0, "above": 1}
    assert_array_equal(found, [names[name] for name in place])
    assert_array_equal(rows.violators(later, found, threads), tube.violators(later, loss, place))
    assert len(rows.violators(f, found, threads)) == 0  # no row changes its group before scores move


@given(seed=seeds, n=sizes, shape=SHAPES, threads=st.integers(1, 3), shift=st.booleans())
def test_evaluate(seed, n, shape, threads, shift):
    rng = rng_of(seed)
    f, to, loss = some_scores(rng, n), None if shift else some_scores(rng, n), some_tube(rng, n, shape)
    ks = np.sort(rng.normal(size=core.LINE_POINTS))
    values = Tube(*loss, threads).line(f, to).evaluate(ks)
    at, jumps = tube.breakpoints(f, to, loss)
    assert_allclose(values.values, [tube.along(f, to, loss, k) for k in ks], rtol=1e-11, atol=1e-11)
    a = tube.hinges(loss)[0]
    rise = -a * (1.0 if to is None else np.tile(to - f, 2))
    slopes = [rise[rise < 0].sum() + jumps[at <= k].sum() for k in ks]
    assert_allclose(values.slopes, slopes, rtol=1e-11, atol=1e-9)
    assert np.all(np.diff(values.breakpoints) >= 0)


@given(seed=seeds, n=sizes, shape=SHAPES, threads=st.integers(1, 3), curved=st.booleans())
def test_crossing(seed, n, shape, threads, curved):
    rng = rng_of(seed)
    f, to, loss = some_scores(rng, n), some_scores(rng, n), some_tube(rng, n, shape)
    low, high = -0.5, 2.0
    at, jumps = tube.breakpoints(f, to, loss)
    inside = jumps[(low < at) & (at <= high)].sum()
    slope, curvature, level = 0.0, float(curved), 0.6 * inside + 0.1 * curved
    args = (slope, curvature, level, low, high)
    found = rows_of(loss).crossing(f, to, low, high, *args[:3], threads)
    assert_allclose(found, hinge.crossing(at, jumps, *args), rtol=1e-9, atol=1e-9)


@given(seed=seeds, n=sizes, shape=SHAPES)
def test_threads_do_not_change_a_bit(seed, n, shape):
    rng = rng_of(seed)
    f, to, loss = rng.normal(size=n), rng.normal(size=n), tube.Tube(rng.normal(size=n), rng.random(n), *shape)
    ks, found = np.sort(rng.normal(size=core.LINE_POINTS)), []
    for threads in (1, 2, 3):
        ours, g = Tube(*loss, threads), np.empty(n)
        heights = ours.slopes(f, np.array([0, n // 2, n]), g, balanced=True)
        found.append(np.concatenate([*ours.line(f, to).evaluate(ks), *heights, g, [ours.value(f)]]))
    assert_array_equal(found[0], found[1])
    assert_array_equal(found[0], found[2])
