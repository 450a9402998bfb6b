"""The kernels for several classes against their NumPy twins."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from cutsvm._native import core
from cutsvm.matrix import Choices, as_rows
from cutsvm.problem import line_search
from cutsvm.problem.losses import CrammerSinger
from tests.support.layouts import LAYOUTS
from tests.support.reference import multiclass
from tests.support.strategies import examples, rng_of, seeds, some_rows

sizes = st.integers(1, 30) | st.sampled_from([4095, 4097, 9000])
classes = st.integers(2, 5) | st.sampled_from([8, 9, 17])


def some_scores(rng, n, K):
    """Scores with many ties among each other and at a distance of 1."""
    f = rng.integers(-3, 4, size=(n, K)) / 2.0
    return np.where(rng.random((n, 1)) < 0.5, f, rng.normal(size=(n, K)))


def problem(rng, n, K):
    y = rng.integers(0, K, size=n).astype(np.int32)
    return some_scores(rng, n, K), y, rng.integers(0, 4, size=n) / 2.0


@pytest.mark.parametrize("layout", LAYOUTS)
@given(seed=seeds, n=sizes, d=st.integers(1, 9), K=classes, threads=st.integers(1, 3))
def test_scores_many(layout, seed, n, d, K, threads):
    rng = rng_of(seed)
    X = some_rows(rng, n, d)
    W, b, out = rng.integers(-9, 9, size=(K, d)) / 2.0, rng.integers(-9, 9, size=K) / 2.0, np.empty((n, K))
    as_rows(LAYOUTS[layout](X), threads).scores_many(W, b, out)
    assert_array_equal(out, X @ W.T + b)


@given(seed=seeds, n=sizes, K=classes, threads=st.integers(1, 3))
def test_value(seed, n, K, threads):
    f, y, s = problem(rng_of(seed), n, K)
    assert core.multi_value(f, y, s, threads) == pytest.approx(multiclass.value(f, y, s), rel=1e-12)


@given(seed=seeds, n=sizes, K=classes, shards=st.integers(1, 20), threads=st.integers(1, 3))
def test_choices(seed, n, K, shards, threads):
    f, y, s = problem(rng_of(seed), n, K)
    bounds = np.linspace(0, n, shards + 1).astype(np.int64)
    choice, offsets, pulls = CrammerSinger(y, s, K, threads).choices(f, bounds)
    assert_array_equal(choice, multiclass.choices(f, y, s))
    expected_offsets, expected_pulls = multiclass.pulls(choice, y, s, bounds, K)
    assert_array_equal(offsets, expected_offsets)
    assert_array_equal(pulls, expected_pulls)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(seed=seeds, n=sizes, d=st.integers(1, 6), K=classes, shards=st.integers(1, 20), threads=st.integers(1, 3))
def test_accumulate_choices(layout, seed, n, d, K, shards, threads):
    rng = rng_of(seed)
    X, (_, y, s) = some_rows(rng, n, d), problem(rng, n, K)
    old, fresh = (np.where(rng.random(n) < 0.3, y, rng.integers(0, K, n)).astype(np.int32) for _ in range(2))
    bounds = np.linspace(0, n, shards + 1).astype(np.int64)
    before = multiclass.slope_sums(X, old, y, s, bounds, K)
    sums, moved, changed = before.copy(), np.zeros(shards), old != fresh
    rows = as_rows(LAYOUTS[layout](X), threads)
    assert rows.accumulate_choices(Choices(y, s, old, fresh, K), bounds, sums, moved) == changed.sum()
    assert_array_equal(old, fresh)
    assert_array_equal(sums, multiclass.slope_sums(X, fresh, y, s, bounds, K))
    assert_array_equal(moved, [(changed * s)[i:j].sum() for i, j in pairwise(bounds)])


@given(seed=seeds, n=sizes, K=classes, threads=st.integers(1, 3))
def test_look(seed, n, K, threads):
    rng = rng_of(seed)
    (f, y, s), to = problem(rng, n, K), some_scores(rng, n, K)
    ks = np.sort(rng.normal(size=core.LINE_POINTS))
    line = CrammerSinger(y, s, K, threads).line(f, to)
    values = line.evaluate(ks)
    assert_allclose(values.values, [multiclass.along(f, to, y, s, k) for k in ks], rtol=1e-11, atol=1e-11)
    ahead = np.array([multiclass.along(f, to, y, s, k + 1e-7) for k in ks])
    assert_allclose(values.slopes, (ahead - values.values) / 1e-7, rtol=1e-4, atol=1e-4 * (1.0 + s.sum()))
    assert np.all(np.diff(values.breakpoints) >= 0)
    assert np.all(np.diff(values.breakpoints)[np.diff(values.slopes) > 1e-9] > 0)  # a slope that changed has a reason
    few = line.evaluate(ks[:3])
    assert_array_equal(few.slopes, values.slopes[:3])


@pytest.mark.slow
@examples(2000)
@given(
    seed=seeds,
    n=st.integers(1, 12),
    K=st.integers(2, 6),
    tilt=st.sampled_from([0.0, -3.0, 0.5, 40.0]),
    curvature=st.sampled_from([0.0, 1e-6, 0.3, 20.0]),
    still=st.booleans(),
)
def test_exact_search_against_every_breakpoint(seed, n, K, tilt, curvature, still):
    """Thousands of segments, with ties and lines of slope 0: no breakpoint is better than the step found."""
    rng = rng_of(seed)
    (f, y, s), to = problem(rng, n, K), some_scores(rng, n, K)
    if still:
        to[:, rng.integers(0, K)] = f[:, rng.integers(0, K)]
        same = rng.random(n) < 0.5
        to[same] = f[same]  # rows that do not move at all
    k = line_search.exact(CrammerSinger(y, s, K).line(f, to), tilt, curvature)
    found = multiclass.along(f, to, y, s, k) + tilt * k + 0.5 * curvature * k * k
    best = multiclass.best_step(f, to, y, s, tilt, curvature)[1]
    assert found <= best + 1e-9 * (1.0 + abs(best) + s.sum())


@given(seed=seeds, n=st.sampled_from([5000, 20_000]), K=st.integers(2, 9), threads=st.integers(1, 2))
@examples(15)
def test_exact_search_on_many_rows(seed, n, K, threads):
    """With so many rows the search narrows several times before it extracts breakpoints."""
    rng = rng_of(seed)
    (f, y, s), to = problem(rng, n, K), some_scores(rng, n, K)
    line = CrammerSinger(y, s, K, threads).line(f, to)
    k = line_search.exact(line, -0.1 * n, 0.05 * n)

    def h(k):
        return multiclass.along(f, to, y, s, k) - 0.1 * n * k + 0.025 * n * k * k

    around = [h(max(0.0, k + step)) for step in (-1e-3, -1e-6, 1e-6, 1e-3)]
    assert h(k) <= min(around) + 1e-9 * n


@given(seed=seeds, n=sizes, K=classes, band=st.sampled_from([0.0, 0.25, 1.0, 9.0]), threads=st.integers(1, 3))
def test_sift_and_strays(seed, n, K, band, threads):
    rng = rng_of(seed)
    (f, y, s), later = problem(rng, n, K), some_scores(rng, n, K)
    loss = CrammerSinger(y, s, K, threads)
    distances = multiclass.distances(f, y)
    group = np.full(n, 77, dtype=np.int32)
    kept = loss.sift(f, band, group)
    clear = (distances > band) & (s > 0)
    assert_allclose(loss.distances(f, np.arange(n)), distances)
    assert_array_equal(kept, np.flatnonzero((distances <= band) & (s > 0)))
    assert_array_equal(group[clear], (y * K + multiclass.choices(f, y, s))[clear])
    assert np.all(group[~clear] < 0)
    moved = np.flatnonzero(clear & (group != y * K + multiclass.choices(later, y, s)))
    assert_array_equal(loss.violators(later, group), moved)
    assert len(loss.violators(f, group)) == 0


def test_wrong_shapes_raise():
    f, y, s, two = np.ones((2, 3)), np.zeros(2, dtype=np.int32), np.ones(2), np.array([0, 2])
    X, csr = core.Matrix(np.ones((2, 4))), core.Matrix(np.ones(2), np.array([0, 2]), np.array([0, 1, 2]), 3)

    def choices(rows, y, s, old, fresh, bounds, sums, moved):
        return rows.accumulate_choices((y, s, old, fresh, 3), bounds, sums, moved)

    calls = [
        lambda: core.multi_value(f, y[:1], s, 1),
        lambda: core.multi_value(f, y, s[:1], 1),
        lambda: core.multi_choose(f, y, s, two, y[:1].copy(), np.ones(1), np.ones((1, 3)), 1),
        lambda: core.multi_choose(f, y, s, two, y.copy(), np.ones(2), np.ones((1, 3)), 1),
        lambda: core.multi_choose(f, y, s, two, y.copy(), np.ones(1), np.ones((1, 2)), 1),
        lambda: core.multi_evaluate(f, f[:1], y, s, np.ones(8), np.ones((3, 8)), 1),
        lambda: core.multi_evaluate(f, f, y, s, np.ones(7), np.ones((3, 8)), 1),
        lambda: core.multi_crossing(f, f[:1], y, s, 0.0, 1.0, 0.0, 1.0, 0.0, 1),
        lambda: core.multi_sift(f, y, s, 0.1, y[:1].copy(), 1),
        lambda: core.multi_violators(f, y, s, y[:1], 1),
        lambda: X.scores_many(np.ones((3, 3)), np.ones(3), f.copy()),
        lambda: X.scores_many(np.ones((3, 4)), np.ones(2), f.copy()),
        lambda: X.scores_many(np.ones((4, 3)).T, np.ones(3), f.copy()),
        lambda: X.scores_many(np.ones((3, 4)), np.ones(3), np.ones((1, 3))),
        lambda: csr.scores_many(np.ones((3, 3)), np.ones(2), f.copy()),
        lambda: choices(X, y, s, y.copy(), y, two, np.ones((1, 11)), np.ones(1)),
        lambda: choices(X, y, s, y.copy(), y + 3, two, np.ones((1, 12)), np.ones(1)),
        lambda: choices(X, y, s, y.copy(), y, two[::-1].copy(), np.ones((1, 12)), np.ones(1)),
        lambda: choices(X, y, s[:1], y.copy(), y, two, np.ones((1, 12)), np.ones(1)),
        lambda: choices(csr, y, s, y.copy(), y, two, np.ones((1, 9)), np.ones(2)),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"expected|differ"):
            call()
    with pytest.raises(ValueError, match="labels from 0 to 1"):
        CrammerSinger(np.array([0, 2]), np.ones(2), 2)
    with pytest.raises(ValueError, match="a line towards"):
        CrammerSinger(np.array([0, 1]), np.ones(2), 2).line(np.ones((2, 2)))
