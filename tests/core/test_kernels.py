"""Every compiled kernel against its NumPy twin, on random input of every layout and any number of threads."""

import gc
import weakref
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from cutsvm._native import core
from cutsvm.matrix import DenseRows, as_rows
from cutsvm.problem.losses import Hinge
from tests.support.layouts import LAYOUTS
from tests.support.reference import hinge, sweep
from tests.support.strategies import rng_of, seeds, sizes, some_labels, some_rows, some_scores

NOWHERE = np.empty(0)


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


@pytest.mark.parametrize("layout", LAYOUTS)
@given(seed=seeds, n=sizes, d=st.integers(1, 9), threads=st.integers(1, 3))
def test_squares_and_take(layout, seed, n, d, threads):
    rng = rng_of(seed)
    X, out = some_rows(rng, n, d), np.empty(n)
    rows = as_rows(LAYOUTS[layout](X), threads)
    rows.squares(out)
    assert_array_equal(out, sweep.squares(X))
    which = rng.integers(0, n, size=rng.integers(0, 2 * n))  # in any order, also twice, also none
    taken = rows.take(which)
    assert (taken.n, taken.d, type(taken)) == (len(which), d, type(rows))
    if isinstance(rows, DenseRows):
        assert taken.X.dtype == rows.X.dtype
        assert_array_equal(taken.X, X[which])
        return
    values, columns, pointers = taken.arrays
    assert [part.dtype for part in taken.arrays] == [part.dtype for part in rows.arrays]
    assert_array_equal(sparse.csr_matrix((values, columns, pointers), shape=(len(which), d)).toarray(), X[which])


@pytest.mark.parametrize("layout", LAYOUTS)
@given(seed=seeds, n=sizes, d=st.integers(1, 9), groups=st.integers(1, 5), threads=st.integers(1, 3))
def test_group_sums(layout, seed, n, d, groups, threads):
    rng = rng_of(seed)
    X, a, group = some_rows(rng, n, d), some_labels(rng, n), rng.integers(-2, groups, size=n).astype(np.int32)
    sums = rng.integers(-4, 5, size=(groups, d + 1)) / 1.0
    expected, read = sweep.group_sums(X, a, group, sums)
    assert as_rows(LAYOUTS[layout](X), threads).group_sums(a, group, sums) == read
    assert_array_equal(sums, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(
    seed=seeds,
    n=sizes,
    d=st.integers(1, 9),
    points=st.integers(1, core.POINTS),
    pieces=st.integers(1, 20),
    threads=st.integers(1, 3),
)
def test_tangents(layout, seed, n, d, points, pieces, threads):
    rng = rng_of(seed)
    X, a = some_rows(rng, n, d), some_labels(rng, n)
    W, b = rng.integers(-4, 5, size=(points, d)) / 4.0, rng.integers(-4, 5, size=points) / 4.0
    edges = np.linspace(0, n, pieces + 1).astype(np.int64)
    sums, heights = (rng.integers(-4, 5, size=(pieces * points, k)) / 1.0 for k in (d + 1, 2))
    expected = [
        before + found for before, found in zip((sums, heights), hinge.tangents(X, a, W, b, edges), strict=True)
    ]
    as_rows(LAYOUTS[layout](X), threads).tangents(a, W, b, edges, sums, heights)
    assert_array_equal(sums, expected[0])
    assert_array_equal(heights, expected[1])


@pytest.mark.parametrize("layout", ["float64", "float32", "csr", "csr32", "csr_long"])
@given(
    seed=seeds,
    n=sizes,
    d=st.integers(1, 9),
    shards=st.integers(1, 20),
    threads=st.integers(1, 3),
    cuts=st.integers(0, 4),
)
def test_sums_continue_across_blocks(layout, seed, n, d, shards, threads, cuts):
    """Sums block by block equal those of all rows at once, to the last bit."""
    rng = rng_of(seed)
    X, noise = some_rows(rng, n, d) * 0.1, rng.normal(size=n)
    if "32" in layout:
        X = X.astype(np.float32).astype(np.float64)  # what the kernels see
    rows = as_rows(LAYOUTS[layout](X), threads)
    bounds = np.linspace(0, n, shards + 1).astype(np.int64)
    old, moved, sums = np.zeros(n), np.zeros(shards), np.zeros((shards, d + 1))
    read = rows.accumulate(old, noise, bounds, sums, moved)
    group, totals = rng.integers(-1, 3, size=n).astype(np.int32), np.zeros((3, d + 1))
    counted = rows.group_sums(noise, group, totals)
    edges, group_edges = core.cut_shards(bounds), core.group_edges(n, 3, d)
    pieces = len(edges) - 1
    partial, travel, old = np.zeros((pieces, d + 1)), np.zeros(pieces), np.zeros(n)
    in_groups = np.zeros((3 * (len(group_edges) - 1), d + 1))
    W, b, at_points, heights = (
        rng.normal(size=(3, d)),
        rng.normal(size=3),
        np.zeros((3 * pieces, d + 1)),
        np.zeros((3 * pieces, 2)),
    )
    ends = np.sort(rng.integers(0, n + 1, size=cuts))
    for first, last in pairwise([0, *ends.tolist(), n]):
        mine = slice(first, last)
        block = rows.take(np.arange(first, last))
        read -= block.add_pieces(old[mine], noise[mine], np.clip(edges - first, 0, block.n), partial, travel)
        inside = np.clip(group_edges - first, 0, block.n)
        counted -= block.add_groups(noise[mine], group[mine], 3, inside, in_groups)
        block.tangents(noise[mine], W, b, np.clip(edges - first, 0, block.n), at_points, heights)
    assert read == counted == 0
    assert_array_equal(old, noise)
    each, again, total = pieces // shards, np.zeros_like(sums), np.zeros_like(totals)
    for piece in range(pieces):
        again[piece // each] += partial[piece]
    for first in range(0, len(in_groups), 3):
        total += in_groups[first : first + 3]
    assert_array_equal(again, sums)
    assert_array_equal(total, totals)
    whole = np.zeros_like(at_points), np.zeros_like(heights)
    rows.tangents(noise, W, b, edges, *whole)
    assert_array_equal(at_points, whole[0])
    assert_array_equal(heights, whole[1])
    expected = sweep.accumulate(X, np.zeros(n), noise, bounds, np.zeros_like(sums))[0]
    assert_allclose(sums, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("layout", [name for name in LAYOUTS if "csr" not in name])
@given(seed=seeds, n=sizes, d=st.integers(1, 9), threads=st.integers(1, 3))
def test_count_nonzeros_and_compress(layout, index, seed, n, d, threads):
    X = some_rows(rng_of(seed), n, d)
    X[::3] *= -1.0  # -0.0 is 0 too
    X[n // 2] = np.nan  # and NaN is not
    X[0, 0] = 1e-45  # the smallest float32
    values, columns, pointers = sweep.compress(X)
    rows = as_rows(LAYOUTS[layout](X), threads)
    stored = rows.X
    counts = np.full(n, -1)
    rows.count_nonzeros(counts)
    assert_array_equal(counts, np.diff(pointers))
    to_values, to_columns = np.empty(len(values), dtype=stored.dtype), np.empty(len(values), dtype=index)
    rows.compress(pointers.astype(index), to_values, to_columns)
    assert_array_equal(to_values, values.astype(stored.dtype))
    assert_array_equal(to_columns, columns)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(seed=seeds, n=sizes, threads=st.integers(1, 3))
def test_all_finite(dtype, seed, n, threads):
    rng, limits = rng_of(seed), np.finfo(dtype)
    odd = np.array([0.0, -0.0, limits.max, limits.min, limits.tiny, limits.smallest_subnormal, 1.0], dtype=dtype)
    values = rng.choice(odd, size=n)
    assert core.all_finite(values, threads)
    for place in {0, n - 1, int(rng.integers(n))}:
        for bad in (np.nan, -np.nan, np.inf, -np.inf):
            wrong = values.copy()
            wrong[place] = bad
            assert not core.all_finite(wrong, threads)
    assert core.all_finite(values[:0], threads)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@given(seed=seeds, n=sizes, d=st.integers(1, 9), threads=st.integers(1, 3), spoil=st.integers(0, 6))
def test_valid_csr(index, seed, n, d, threads, spoil):
    rng = rng_of(seed)
    X = sparse.csr_matrix(some_rows(rng, n, d))
    columns, pointers = X.indices.astype(index), X.indptr.astype(index)
    entry, row = int(rng.integers(max(1, len(columns)))), int(rng.integers(n))
    if spoil < 4 and len(columns):  # out of range, or a column from elsewhere: unsorted or twice, if not by chance fine
        columns[entry] = [-1, d, columns[0], rng.integers(d)][spoil]
    elif spoil == 4:
        pointers[0] = -1
    elif spoil == 5:
        pointers[-1] += 1
    elif spoil == 6:
        pointers[row] = pointers[row + 1] + 1  # falls
    found = core.valid_csr(columns, pointers, d, threads)
    assert found == sweep.valid_csr(columns, pointers, d)
    assert found[0] == (spoil in (2, 3) or (spoil < 4 and not len(columns)))


def test_valid_csr_by_hand():
    pointers = np.array([0, 2, 2, 4])
    cases = {
        (0, 1, 1, 2): (True, True),
        (1, 0, 1, 2): (True, False),  # unsorted
        (0, 1, 2, 2): (True, False),  # twice
        (0, 1, 1, 3): (False, True),
        (-1, 1, 1, 2): (False, False),
    }
    for columns, expected in cases.items():
        assert core.valid_csr(np.array(columns), pointers, 3, 1) == expected
    columns = np.array([0, 1, 1, 2])
    for wrong in ([1, 2, 2, 4], [0, 2, 1, 4], [0, 2, 2, 5], [0, 5, 2, 4], [-1, 2, 2, 4]):
        assert not core.valid_csr(columns, np.array(wrong), 3, 1)[0]
    assert core.valid_csr(columns[:0], np.array([0]), 3, 1) == (True, True)


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
    rows = core.RowLoss("hinge", a)
    assert_allclose(rows.value(f, threads), hinge.value(f, a), rtol=1e-13)
    assert_array_equal(rows.balance(f, threads), hinge.balance(f, a))
    bounds = np.linspace(0, n, shards + 1).astype(np.int64)
    g, sums = np.empty(n), np.empty((3, shards))
    rows.shared_slopes(f, 0.25, 0.5, bounds, g, sums, threads)
    expected, expected_offsets = hinge.slopes(f, a, 0.25, 0.5, bounds)
    assert_array_equal(g, expected)
    assert_allclose(sums, [expected_offsets] * 3, rtol=1e-13)


@given(seed=seeds, n=sizes, band=st.sampled_from([0.0, 0.25, 1.0, 9.0]), threads=st.integers(1, 3))
def test_hinge_sift_and_strays(seed, n, band, threads):
    rng = rng_of(seed)
    f, later, a = some_scores(rng, n), some_scores(rng, n), some_labels(rng, n)
    place, kept = hinge.sift(f, a, band)
    found = np.full(n, 77, dtype=np.int32)
    rows = core.RowLoss("hinge", a)
    assert_array_equal(rows.sift(f, band, found, threads), kept)
    expected = np.select([place == "kept", place == "outside"], [core.KEPT, core.OUTSIDE], (a < 0).astype(int))
    assert_array_equal(found, expected)
    assert_array_equal(rows.violators(later, found, threads), hinge.violators(later, a, place))
    assert len(rows.violators(f, found, threads)) == 0  # no row changes its group before scores move


@given(seed=seeds, n=sizes, threads=st.integers(1, 3), shift=st.booleans())
def test_hinge_look(seed, n, threads, shift):
    rng = rng_of(seed)
    f, to, a = some_scores(rng, n), None if shift else some_scores(rng, n), some_labels(rng, n)
    ks = np.sort(rng.normal(size=core.LINE_POINTS))
    values = Hinge(a, threads).line(f, to).evaluate(ks)
    at, jumps = hinge.breakpoints(f, to, a)
    assert_allclose(values.values, [hinge.along(f, to, a, k) for k in ks], rtol=1e-11, atol=1e-11)
    direction = np.ones(n) if to is None else to - f
    leftmost = (-a * direction)[(-a * direction) < 0].sum()
    assert_allclose(values.slopes, [leftmost + jumps[at <= k].sum() for k in ks], rtol=1e-11, atol=1e-11)
    assert np.all(np.diff(values.breakpoints) >= 0)


@given(seed=seeds, n=sizes, threads=st.integers(1, 3), curved=st.booleans())
def test_hinge_crossing(seed, n, threads, curved):
    rng = rng_of(seed)
    f, to, a = some_scores(rng, n), some_scores(rng, n), some_labels(rng, n)
    low, high = -0.5, 2.0
    at, jumps = hinge.breakpoints(f, to, a)
    inside = jumps[(low < at) & (at <= high)].sum()
    slope, curvature, level = 0.0, float(curved), 0.6 * inside + 0.1 * curved
    args = (slope, curvature, level, low, high)
    found = core.RowLoss("hinge", a).crossing(f, to, low, high, *args[:3], threads)
    assert_allclose(found, hinge.crossing(at, jumps, *args), rtol=1e-12, atol=1e-12)


def test_wrong_shapes_raise():
    """Wrong shapes raise; nothing is read beyond the end."""
    one, two = np.ones(1), np.ones(2)
    bounds = np.array([0, 2], dtype=np.int64)
    X, arrays = np.ones((2, 3)), (two, np.array([0, 2]), np.array([0, 1, 2]))
    dense, csr = core.Matrix(X), core.Matrix(*arrays, 3)
    group, first = np.zeros(2, dtype=np.int32), np.array([0])
    rows = core.RowLoss("hinge", two)

    def ones(rows, *columns):
        return [np.ones((rows, many)) for many in columns]

    calls = [
        lambda: dense.scores(two, 0.0, two),
        lambda: dense.scores(np.ones(3), 0.0, one),
        lambda: dense.accumulate(one, two, bounds, np.ones((1, 3)), one),
        lambda: dense.accumulate(two, two, bounds, np.ones((1, 5)), one),
        lambda: dense.accumulate(two, two, np.array([0, 3]), np.ones((1, 3)), one),
        lambda: dense.accumulate(two, two, np.array([0, 2, 1]), np.ones((2, 3)), two),
        lambda: core.cut_shards(first),
        lambda: dense.add_pieces(one, two, bounds, np.ones((1, 3)), one),
        lambda: dense.add_pieces(two, two, bounds, np.ones((1, 5)), one),
        lambda: dense.add_pieces(two, two, bounds, np.ones((1, 3)), two),
        lambda: dense.add_pieces(two, two, np.array([0, 3]), np.ones((1, 3)), one),
        lambda: csr.add_pieces(two, two, np.array([0, 2, 1]), np.ones((2, 3)), two),
        lambda: dense.add_groups(one, group, 1, bounds, np.ones((1, 4))),
        lambda: dense.add_groups(two, group, 1, bounds, np.ones((1, 3))),
        lambda: dense.add_groups(two, group, 2, bounds, np.ones((3, 4))),
        lambda: dense.add_groups(two, group, 0, bounds, np.ones((1, 4))),
        lambda: dense.add_groups(two, group + 1, 1, bounds, np.ones((1, 4))),
        lambda: csr.add_groups(two, group, 1, bounds[:1], np.ones((1, 4))),
        lambda: dense.tangents(one, X[:1], one, bounds, np.ones((1, 4)), np.ones((1, 2))),
        lambda: dense.tangents(two, X[:0], one[:0], bounds, np.ones((1, 4)), np.ones((1, 2))),
        lambda: dense.tangents(two, np.ones((17, 3)), np.ones(17), bounds, *ones(17, 4, 2)),
        lambda: dense.tangents(two, X, one, bounds, *ones(1, 4, 2)),
        lambda: dense.tangents(two, X[:, :2], two, bounds, *ones(2, 4, 2)),
        lambda: dense.tangents(two, np.ones((3, 2)).T, two, bounds, *ones(2, 4, 2)),
        lambda: dense.tangents(two, X, two, bounds, *ones(2, 3, 2)),
        lambda: dense.tangents(two, X, two, bounds, *ones(3, 4, 2)),
        lambda: dense.tangents(two, X, two, bounds, *ones(2, 4, 1)),
        lambda: dense.tangents(two, X, two, bounds, np.ones((2, 4)), np.ones((4, 2))),
        lambda: csr.tangents(two, X, two, np.array([0, 3]), *ones(2, 4, 2)),
        lambda: csr.tangents(two, X, two, bounds[:1], *ones(2, 4, 2)),
        lambda: rows.value(one, 1),
        lambda: rows.balance(one, 1),
        lambda: rows.shared_slopes(two, 0.0, 0.0, bounds, one, np.ones((3, 1)), 1),
        lambda: rows.shared_slopes(two, 0.0, 0.0, bounds, two, np.ones((3, 2)), 1),
        lambda: rows.shared_slopes(two, 0.0, 0.0, bounds, two, np.ones((2, 1)), 1),
        lambda: rows.evaluate(two, one, np.ones(8), np.ones((3, 8)), 1),
        lambda: rows.evaluate(two, two, np.ones(7), np.ones((3, 8)), 1),
        lambda: rows.crossing(one, two, 0.0, 1.0, 0.0, 0.0, 0.0, 1),
        lambda: core.RowLoss("logistic", two).balance(two, 1),
        lambda: core.RowLoss("tube", one, two, 0.1, 1.0, 1.0),
        lambda: core.RowLoss("tube", two, two, -0.1, 1.0, 1.0),
        lambda: core.blend(one, two, 0.5, two, 1),
        lambda: rows.sift(two, 0.5, group[:1], 1),
        lambda: rows.sift(one, 0.5, group, 1),
        lambda: rows.violators(two, group[:1], 1),
        lambda: dense.squares(one),
        lambda: csr.squares(one),
        lambda: core.Matrix(one, *arrays[1:], 3),
        lambda: dense.take_into(first, np.ones((2, 3))),
        lambda: dense.take_into(first, np.ones((1, 2))),
        lambda: dense.take_into(first + 2, np.ones((1, 3))),
        lambda: dense.take_into(first - 1, np.ones((1, 3))),
        lambda: csr.take_into(first + 2, np.array([0, 1]), one, first),
        lambda: csr.take_into(first - 1, np.array([0, 1]), one, first),
        lambda: csr.take_into(first, np.array([0]), one, first),
        lambda: csr.take_into(first, np.array([1, 2]), one, first),
        lambda: csr.take_into(first, np.array([0, 1]), two, first),
        lambda: dense.group_sums(one, group, np.ones((2, 4))),
        lambda: dense.group_sums(two, group[:1], np.ones((2, 4))),
        lambda: dense.group_sums(two, group, np.ones((2, 3))),
        lambda: dense.group_sums(two, group + 2, np.ones((2, 4))),
        lambda: csr.group_sums(one, group, np.ones((2, 4))),
        lambda: dense.count_nonzeros(first),
        lambda: dense.compress(np.array([0, 6]), np.ones(6), np.zeros(6, dtype=np.int64)),
        lambda: dense.compress(np.array([0, 3, 6]), np.ones(5), np.zeros(6, dtype=np.int64)),
        lambda: dense.compress(np.array([0, 3, 6]), np.ones(6), np.zeros(5, dtype=np.int64)),
        lambda: core.valid_csr(first, first[:0], 3, 1),
        lambda: core.Matrix(X, 0),
        lambda: core.Matrix(np.ones((6, 6))[::2, ::2]),
        lambda: core.Matrix(*arrays[:2], first[:0], 3),
        lambda: core.Matrix(*arrays[:2], np.array([0, 1, 3]), 3),
        lambda: core.Matrix(*arrays[:2], np.array([-1, 1, 2]), 3),
        lambda: core.Matrix(*arrays[:2], np.array([2, 2, 1]), 3),
        lambda: csr.compress(np.array([0, 1, 2]), two, np.zeros(2, dtype=np.int64)),
        lambda: csr.column_ranges(np.ones(3), np.ones(3)),
        lambda: csr.take_into(first, np.ones((1, 3))),
        lambda: dense.take_into(first, np.ones((1, 3), dtype=np.float32)),
        lambda: dense.take_into(first, np.array([0, 1]), one, first),
        lambda: dense.pair_distances(first, csr, first, one),
        lambda: dense.pair_distances(first, core.Matrix(X[:, :2]), first, one),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"expected|differ|wrong length"):
            call()


def test_arrays_are_never_converted():
    """A converted copy would lose what the kernel writes."""
    with pytest.raises(TypeError):
        core.RowLoss("hinge", np.ones(2)).value(np.ones(2, dtype=np.float32), 1)
    with pytest.raises(TypeError):
        core.Matrix(np.ones((2, 1), dtype=np.int64))
    with pytest.raises(TypeError):
        core.Matrix(np.ones((2, 1))).scores(np.ones(1), 0.0, np.ones(2, dtype=np.float32))


def test_malformed_csr_raises():
    X = LAYOUTS["csr"](np.eye(3))
    X.indices[1] = 7
    with pytest.raises(ValueError, match="column index"):
        as_rows(X)
    X = LAYOUTS["csr"](np.eye(3))
    X.indptr[1] = 3
    with pytest.raises(ValueError, match="row pointers"):
        as_rows(X)


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if "csr" not in name])
@given(seed=seeds, n=sizes, d=st.integers(1, 9), threads=st.integers(1, 3))
def test_column_ranges(layout, seed, n, d, threads):
    X = LAYOUTS[layout](rng_of(seed).normal(size=(n, d)) - 1.0)
    low, high = np.empty(d), np.empty(d)
    as_rows(X, threads).column_ranges(low, high)
    assert_array_equal([low, high], sweep.column_ranges(X))


@pytest.mark.parametrize("layout", LAYOUTS)
@given(seed=seeds, n=sizes, d=st.integers(1, 9), threads=st.integers(1, 3))
def test_row_hashes(layout, seed, n, d, threads):
    """The same hash for all layouts; it depends on every value and its place."""
    rng = rng_of(seed)
    X = some_rows(rng, n, d)
    rows, out = as_rows(LAYOUTS[layout](X), threads), np.empty(n, dtype=np.uint64)
    rows.hashes(out)
    assert_array_equal(out, sweep.row_hashes(X))
    i, j = rng.integers(n), rng.integers(d)
    X[i, j] = -X[i, j] if X[i, j] else 1.0
    as_rows(LAYOUTS[layout](X), threads).hashes(changed := np.empty(n, dtype=np.uint64))
    assert list(np.flatnonzero(changed != out)) == [i]


@pytest.mark.parametrize("layout", LAYOUTS)
@given(seed=seeds, n=st.integers(1, 20), d=st.integers(1, 9), decades=st.integers(0, 12), threads=st.integers(1, 3))
def test_compensated_scores(layout, seed, n, d, decades, threads):
    """The relative error is of the order of the squared unit round-off."""
    rng = rng_of(seed)
    X = LAYOUTS[layout](rng.normal(size=(n, d)) * 10.0 ** rng.integers(-decades, decades + 1, size=d))
    values = X.toarray() if sparse.issparse(X) else np.asarray(X)
    w, out, rest = rng.normal(size=d), np.empty(n), np.empty(n)
    w[-1] *= 1e8
    b = -float(values[0] @ w)  # of the first row nothing is left
    as_rows(X, threads).compensated_scores(w, b, out, rest)
    sizes = np.abs(values.astype(float)) @ np.abs(w) + abs(b)
    for exact, score, more, size in zip(sweep.exact_scores(values, w, b), out, rest, sizes, strict=True):
        assert abs(exact - Fraction(score) - Fraction(more)) <= (4.0 * d * 2.0**-53) ** 2 * size
        assert abs(more) <= 2.0**-53 * abs(score)


@pytest.mark.parametrize("index", [(np.int32, np.int32), (np.int32, np.int64), (np.int64, np.int64)])
def test_distances_of_pairs_of_rows(index):
    rng = rng_of(0)
    X, Z = some_rows(rng, 7, 5), some_rows(rng, 9, 5)
    left, right = rng.integers(0, 7, 20), rng.integers(0, 9, 20)
    expected = ((X[left] - Z[right]) ** 2).sum(axis=1)
    matrices = []
    for dense, kind in zip((X, Z), index, strict=True):
        csr = sparse.csr_matrix(dense)
        matrices.append(core.Matrix(csr.data, csr.indices.astype(kind), csr.indptr.astype(kind), 5))
    for first, second in (matrices, (core.Matrix(X), core.Matrix(Z))):
        out = np.empty(20)
        first.pair_distances(left, second, right, out)
        assert_allclose(out, expected, rtol=1e-14)


def test_a_matrix_keeps_its_arrays():
    """The matrix reads them in place for as long as it lives."""
    X = np.ones((1000, 3))
    matrix, place = core.Matrix(X), weakref.ref(X)
    del X
    gc.collect()
    assert place() is not None
    out = np.empty(1000)
    matrix.scores(np.ones(3), 0.0, out)
    assert_array_equal(out, np.full(1000, 3.0))
    del matrix
    gc.collect()
    assert place() is None
