"""Stacked rows, and conversions between layouts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from cutsvm._native import core
from cutsvm._utils import memory
from cutsvm.matrix import DenseRows, Descent, SparseRows, StackedRows, as_rows
from cutsvm.matrix.arrays import COMPRESSION
from tests.support.layouts import LAYOUTS
from tests.support.reference import dcd, row_losses
from tests.support.strategies import rng_of, seeds, some_labels, some_rows

KINDS = ["float64", "csr32", "fortran", "csr_long", "fortran32"]


def stack(rng, parts, d, threads=1):
    """Rows of several layouts, and the same rows in one matrix."""
    blocks = [some_rows(rng, int(rng.integers(1, 9)), d) for _ in range(parts)]
    kinds = rng.permutation(KINDS)[:parts]
    return StackedRows([as_rows(LAYOUTS[k](X), threads) for k, X in zip(kinds, blocks, strict=True)]), np.vstack(blocks)


def scores_of(rows, w, b):
    out = np.empty(rows.n)
    rows.scores(w, b, out)
    return out


@given(seed=seeds, parts=st.integers(1, 5), d=st.integers(1, 6), shards=st.integers(1, 7), extra=st.booleans())
def test_stacked_rows_agree_with_one_matrix(seed, parts, d, shards, extra):
    rng = rng_of(seed)
    stacked, X = stack(rng, parts, d, threads=2)
    one, n = DenseRows(X), len(X)
    assert (stacked.n, stacked.d) == (n, d)
    assert stacked.entries == sum(part.entries for part in stacked.parts)
    w = rng.integers(-9, 9, size=d) / 2.0
    assert_array_equal(scores_of(stacked, w, 0.5), X @ w + 0.5)
    squares = np.empty(n)
    stacked.by_row().squares(squares)
    assert_array_equal(squares, (X**2).sum(axis=1))
    which = np.flatnonzero(rng.random(n) < 0.5)
    if len(which):
        taken = stacked.take(which)
        assert taken.n == len(which)
        assert_array_equal(scores_of(taken, w, 0.0), X[which] @ w)
    fresh, bounds = some_labels(rng, n), np.linspace(0, n, shards + 1).astype(np.int64)
    results = []
    for rows in (stacked, one):
        old, sums, moved = np.ones(n), np.ones((shards, d + extra)), np.zeros(shards)
        results.append((rows.accumulate(old, fresh, bounds, sums, moved), sums, moved, old))
    for mine, theirs in zip(*results, strict=True):
        assert_array_equal(mine, theirs)
    W, b = rng.integers(-4, 5, size=(3, d)) / 4.0, np.array([0.0, 0.5, -1.0])
    found = [(np.zeros((3 * shards, d + 1)), np.zeros((3 * shards, 2))) for _ in range(2)]
    for rows, (sums, heights) in zip((stacked, one), found, strict=True):
        rows.tangents(fresh, W, b, bounds, sums, heights)
    assert_array_equal(found[0][0], found[1][0])
    assert_array_equal(found[0][1], found[1][1])


@given(seed=seeds, parts=st.integers(1, 5), d=st.integers(1, 6), run=st.integers(1, 4))
def test_dcd_on_stacked_rows_visits_part_by_part(seed, parts, d, run):
    rng = rng_of(seed)
    stacked, X = stack(rng, parts, d)
    n, C, unit, above, below = len(X), 0.7, 1.0, 0.3141, -0.2718
    a, q = some_labels(rng, n), (X**2).sum(axis=1) + unit
    alpha = C * np.abs(a) * rng.random(n)
    signed = np.where(a < 0, -alpha, alpha)
    w = np.append(signed @ X, unit * signed.sum())
    order = rng.permutation(n)[: rng.integers(0, n + 1)].astype(np.int32)
    expected_alpha, expected_w, stay, seen = alpha.copy(), w.copy(), [], []
    for low, high in zip(stacked.edges, stacked.edges[1:], strict=False):
        mine = [i for i in order if low <= i < high]
        own = row_losses.Hinge(a), q, C, unit, above, below, expected_alpha
        *part, kept = dcd.epoch(X, *own, mine, expected_w, run, seed)
        stay += kept
        seen.append(part)
    dual = Descent(core.RowLoss("hinge", a), q, C, unit, above, below, alpha)
    gap, steepest, flattest, active = stacked.descend(dual, order, w, run, seed, 1)
    assert_allclose(alpha, expected_alpha, rtol=1e-9, atol=1e-11)
    assert_allclose(w, expected_w, rtol=1e-9, atol=1e-11)
    gaps, high, low = zip(*seen, strict=True)
    assert_allclose((gap, steepest, flattest), (sum(gaps), max(high), min(low)), rtol=1e-9, atol=1e-11)
    assert_array_equal(order[:active], stay)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(seed=seeds, n=st.integers(1, 50), threads=st.integers(1, 2))
def test_compressed_rows_have_the_same_scores(layout, seed, n, threads):
    rng = rng_of(seed)
    X = some_rows(rng, n, COMPRESSION.min_features) * (rng.random((n, COMPRESSION.min_features)) < 0.3)
    rows = as_rows(LAYOUTS[layout](X), threads)
    fast = rows.fast()
    assert isinstance(fast, SparseRows)
    assert (fast.n, fast.d, fast.sorted) == (n, COMPRESSION.min_features, True)
    assert fast.entries == np.count_nonzero(X)
    if isinstance(rows, DenseRows):
        assert fast.arrays[0].dtype == rows.X.dtype
    w = rng.integers(-9, 9, size=COMPRESSION.min_features) / 2.0
    assert_array_equal(scores_of(fast, w, 0.5), scores_of(rows, w, 0.5))


def test_dense_rows_stay_dense_where_csr_does_not_pay(monkeypatch):
    mostly_zeros = np.eye(COMPRESSION.min_features)
    assert isinstance(DenseRows(mostly_zeros).fast(), SparseRows)
    for X in (np.ones((9, COMPRESSION.min_features)), np.ascontiguousarray(mostly_zeros[:, 1:])):  # full; narrow
        rows = DenseRows(X)
        assert rows.fast() is rows
    rows = DenseRows(mostly_zeros)
    needed = COMPRESSION.min_features * (8 + 4) / COMPRESSION.max_memory
    for total, kind in ((needed, SparseRows), (needed - 1, DenseRows), (0.0, DenseRows)):
        monkeypatch.setattr(memory, "total", lambda total=total: total)
        assert type(rows.fast()) is kind


def test_density_is_estimated_from_a_sample():
    """Only sampled rows are read to estimate density; here they are empty, and the others are dense."""
    step = 3
    X = np.ones((step * COMPRESSION.sample_rows, COMPRESSION.min_features))
    X[::step] = 0.0
    fast = DenseRows(X).fast()
    assert isinstance(fast, SparseRows)
    assert_array_equal(scores_of(fast, np.ones(COMPRESSION.min_features), 0.0), X.sum(axis=1))


@pytest.mark.parametrize("kind", [AttributeError, OSError, ValueError])
def test_unknown_machine_memory(monkeypatch, kind):
    assert memory.total() > 0

    def refuse(_):
        raise kind

    monkeypatch.setattr("os.sysconf", refuse)
    monkeypatch.setattr(memory, "_number", lambda file: 0)
    assert memory.total.__wrapped__() == 0


def test_duplicate_columns_are_summed_before_squaring():
    X = LAYOUTS["csr"](np.eye(3))
    X.indices[1] = 0
    X.indptr[1], X.indptr[2] = 2, 2
    rows = as_rows(X)
    assert not rows.sorted
    by_row = rows.by_row()
    squares = np.empty(3)
    by_row.squares(squares)
    assert_array_equal(squares, [4.0, 0.0, 1.0])
    assert by_row.by_row() is by_row
    assert X.nnz == 3  # the caller's matrix is left alone


@pytest.mark.parametrize("layout", LAYOUTS)
@given(seed=seeds, n=st.integers(1, 60) | st.just(9000), d=st.integers(1, 9), threads=st.integers(1, 3))
def test_sums_of_outer_products(layout, seed, n, d, threads):
    """sum_i h_i (x_i, 1) (x_i, 1)', its diagonal, and sums with several weights, against NumPy; of parts, too."""
    rng = rng_of(seed)
    X, h = some_rows(rng, n, d), rng.integers(0, 4, size=n) / 2.0
    W = rng.integers(-3, 4, size=(n, 3)) / 4.0
    whole = as_rows(LAYOUTS[layout](X), threads)
    extended = np.column_stack([X, np.ones(n)])
    for rows, mine in ((whole, slice(0, n)), (whole.part(n // 3, n), slice(n // 3, n))):
        expected = (extended[mine].T * h[mine]) @ extended[mine]
        found = rows.gram(np.ascontiguousarray(h[mine]))
        assert_allclose(found, expected, rtol=1e-12, atol=1e-12)  # square roots of weights are rounded
        assert_array_equal(found, found.T)
        assert_array_equal(rows.squared_sums(h[mine]), np.diag(expected))
        assert_array_equal(rows.weighted_sums(W[mine]), W[mine].T @ X[mine])


@given(seed=seeds, parts=st.integers(1, 5), d=st.integers(1, 6))
def test_sums_of_outer_products_of_stacked_rows(seed, parts, d):
    rng = rng_of(seed)
    stacked, X = stack(rng, parts, d)
    h, W = rng.integers(0, 4, size=len(X)) / 2.0, rng.integers(-3, 4, size=(len(X), 2)) / 4.0
    extended = np.column_stack([X, np.ones(len(X))])
    expected = (extended.T * h) @ extended
    assert_allclose(stacked.gram(h), expected, rtol=1e-12, atol=1e-12)
    assert_array_equal(stacked.squared_sums(h), np.diag(expected))
    assert_array_equal(stacked.weighted_sums(W), W.T @ X)


def test_columns_that_occur_twice_are_added_up():
    twice = sparse.csr_matrix((np.array([3.0, 3.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 1))
    rows, h = as_rows(twice), np.array([2.0])
    assert_array_equal(rows.gram(h), [[72.0, 12.0], [12.0, 2.0]])
    assert_array_equal(rows.squared_sums(h), [72.0, 2.0])
    with pytest.raises(ValueError, match="one entry per row"):
        rows.gram_into(np.ones(2), np.empty((2, 2)))
    with pytest.raises(ValueError, match="sparse matrix expected"):
        as_rows(np.ones((2, 1))).gram_into(np.ones(2), np.empty((2, 2)))
