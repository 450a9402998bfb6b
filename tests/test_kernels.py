"""Every compiled kernel against its NumPy twin, on random input of every layout and any number of threads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from conftest import LAYOUTS
from cutsvm._native import core
from cutsvm.losses import Hinge
from cutsvm.rows import as_rows
from reference import hinge, sweep

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 40) | st.sampled_from([4095, 4096, 4097, 9000])
NOWHERE = np.empty(0)


def rng_of(seed):
    return np.random.default_rng(seed)


def some_rows(rng, n, d):
    """Integers over 8: sums are exact, so the order in which they are added does not matter."""
    return rng.integers(-8, 9, size=(n, d)) * (rng.random((n, d)) < 0.5) / 8.0


def some_scores(rng, n):
    """Scores with many ties: at the margin, and among each other."""
    f = rng.integers(-8, 9, size=n) / 4.0
    return np.where(rng.random(n) < 0.5, f, rng.normal(size=n))


def some_labels(rng, n):
    return rng.choice([-1.0, 1.0], size=n) * rng.integers(0, 4, size=n)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(seed=seeds, n=sizes, d=st.integers(1, 9), threads=st.integers(1, 3))
def test_scores(layout, seed, n, d, threads):
    rng = rng_of(seed)
    X = some_rows(rng, n, d)
    w, b, out = rng.integers(-9, 9, size=d) / 2.0, 0.25, np.empty(n)
    as_rows(LAYOUTS[layout](X), threads).scores(w, b, out)
    assert_array_equal(out, sweep.scores(X, w, b))


@pytest.mark.parametrize("layout", LAYOUTS)
@given(
    seed=seeds, n=sizes, d=st.integers(1, 9), shards=st.integers(1, 20), threads=st.integers(1, 3), extra=st.booleans()
)
def test_accumulate(layout, seed, n, d, shards, threads, extra):
    rng = rng_of(seed)
    X = some_rows(rng, n, d)
    bounds = np.linspace(0, n, shards + 1).astype(np.int64)
    old, fresh = some_labels(rng, n), some_labels(rng, n)
    sums = rng.integers(-4, 5, size=(shards, d + extra)) / 1.0
    expected, travelled, read = sweep.accumulate(X, old, fresh, bounds, sums)
    moved = np.ones(shards)
    assert as_rows(LAYOUTS[layout](X), threads).accumulate(old, fresh, bounds, sums, moved) == read
    assert_array_equal(sums, expected)
    assert_array_equal(moved, 1.0 + travelled)
    assert_array_equal(old, fresh)


@given(seed=seeds, n=sizes, k=st.floats(-2, 2), threads=st.integers(1, 3))
def test_blend(seed, n, k, threads):
    rng = rng_of(seed)
    start, end = rng.normal(size=n), rng.normal(size=n)
    expected = sweep.blend(start, end, k)
    core.blend(start, end, k, start, threads)  # in place
    assert_allclose(start, expected, rtol=1e-13, atol=1e-13)


@given(seed=seeds, n=sizes, shards=st.integers(1, 20), threads=st.integers(1, 3))
def test_hinge_value_balance_and_slopes(seed, n, shards, threads):
    rng = rng_of(seed)
    f, a = some_scores(rng, n), some_labels(rng, n)
    assert_allclose(core.hinge_value(f, a, threads), hinge.value(f, a), rtol=1e-13)
    assert_array_equal(core.hinge_balance(f, a, threads), hinge.balance(f, a))
    bounds = np.linspace(0, n, shards + 1).astype(np.int64)
    g, offsets = np.empty(n), np.empty(shards)
    core.hinge_slopes(f, a, 0.25, 0.5, bounds, g, offsets, threads)
    expected, expected_offsets = hinge.slopes(f, a, 0.25, 0.5, bounds)
    assert_array_equal(g, expected)
    assert_allclose(offsets, expected_offsets, rtol=1e-13)


@given(seed=seeds, n=sizes, threads=st.integers(1, 3), shift=st.booleans())
def test_hinge_look(seed, n, threads, shift):
    rng = rng_of(seed)
    f, to, a = some_scores(rng, n), None if shift else some_scores(rng, n), some_labels(rng, n)
    ks = np.sort(rng.normal(size=core.LOOKS))
    look = Hinge(a, threads).line(f, to).look(ks)
    at, jumps = hinge.knots(f, to, a)
    assert_allclose(look.values, [hinge.along(f, to, a, k) for k in ks], rtol=1e-11, atol=1e-11)
    direction = np.ones(n) if to is None else to - f
    leftmost = (-a * direction)[(-a * direction) < 0].sum()
    assert_allclose(look.slopes, [leftmost + jumps[at <= k].sum() for k in ks], rtol=1e-11, atol=1e-11)
    assert np.all(np.diff(look.knots) >= 0)


@given(seed=seeds, n=sizes, threads=st.integers(1, 3), curved=st.booleans())
def test_hinge_crossing(seed, n, threads, curved):
    rng = rng_of(seed)
    f, to, a = some_scores(rng, n), some_scores(rng, n), some_labels(rng, n)
    low, high = -0.5, 2.0
    at, jumps = hinge.knots(f, to, a)
    inside = jumps[(low < at) & (at <= high)].sum()
    slope, curvature, level = 0.0, float(curved), 0.6 * inside + 0.1 * curved
    args = (slope, curvature, level, low, high)
    found = core.hinge_crossing(f, to, a, low, high, *args[:3], threads)
    assert_allclose(found, hinge.crossing(at, jumps, *args), rtol=1e-12, atol=1e-12)


def test_wrong_shapes_are_refused():
    """A caller's mistake is an error, not a read beyond the end."""
    one, two = np.ones(1), np.ones(2)
    bounds = np.array([0, 2], dtype=np.int64)
    X = np.ones((2, 3))
    calls = [
        lambda: core.dense_scores(X, two, 0.0, two, 1),
        lambda: core.dense_scores(X, np.ones(3), 0.0, one, 1),
        lambda: core.dense_accumulate(X, one, two, bounds, np.ones((1, 3)), one, 1),
        lambda: core.dense_accumulate(X, two, two, bounds, np.ones((1, 5)), one, 1),
        lambda: core.dense_accumulate(X, two, two, np.array([0, 3]), np.ones((1, 3)), one, 1),
        lambda: core.dense_accumulate(X, two, two, np.array([0, 2, 1]), np.ones((2, 3)), two, 1),
        lambda: core.hinge_value(one, two, 1),
        lambda: core.hinge_look(two, one, two, np.ones(8), np.ones((3, 8)), 1),
        lambda: core.hinge_look(two, two, two, np.ones(7), np.ones((3, 8)), 1),
        lambda: core.blend(one, two, 0.5, two, 1),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"expected|differ"):
            call()


def test_arrays_are_never_converted():
    """A copy made on the way in would lose what the kernel writes."""
    with pytest.raises(TypeError):
        core.hinge_value(np.ones(2, dtype=np.float32), np.ones(2), 1)
    with pytest.raises(TypeError):
        core.dense_scores(np.ones((2, 1), dtype=np.int64), np.ones(1), 0.0, np.ones(2), 1)


def test_malformed_csr_is_refused():
    X = LAYOUTS["csr"](np.eye(3))
    X.indices[1] = 7
    with pytest.raises(ValueError, match="column index"):
        as_rows(X)
    X = LAYOUTS["csr"](np.eye(3))
    X.indptr[1] = 3
    with pytest.raises(ValueError, match="row pointers"):
        as_rows(X)
