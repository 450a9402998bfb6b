"""Kernel values by tiles and hashes of rows against their twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from cutsvm._native import core, matrix_of
from cutsvm.kernel_machines.kernel_rows import GEMM
from tests.support.kernel_blocks import block
from tests.support.layouts import LAYOUTS
from tests.support.reference import kernel_dual as twin

seeds = st.integers(0, 2**32 - 1)
dtypes = st.sampled_from([np.float32, np.float64])
kernels = st.sampled_from(["linear", "poly", "rbf", "sigmoid"])


def rows_of(block, which, n, dtype):
    out = np.full((len(which), n), np.nan, dtype)
    block.rows(np.asarray(which, dtype=np.int64), out)
    return out


@given(
    seed=seeds, dtype=dtypes, kernel=kernels, d=st.sampled_from([0, 1, 2, 127, 128, 129, 300]),
    n=st.sampled_from([1, 2, 255, 256, 257, 530]), offset=st.sampled_from([0.0, 1.0]), threads=st.integers(1, 3),
)  # fmt: skip
def test_kernel_values(seed, dtype, kernel, d, n, offset, threads):
    """Of some rows with all, of all pairs, and scores, for rows with norms about 1."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) / np.sqrt(max(1, d))).astype(dtype)
    Z = (rng.normal(size=(rng.integers(0, 40), d)) / np.sqrt(max(1, d))).astype(dtype)
    params = {"gamma": 0.7, "coef0": 0.3, "degree": 3, "offset": offset}
    own = block(X, kernel, threads=threads, **params)
    which = rng.integers(0, n, size=rng.integers(0, 9))
    some = np.append(rng.integers(0, n, size=5), n - 1)
    coef = rng.normal(size=n)
    scores = np.full(len(Z), np.nan)
    own.scores(coef, block(Z, kernel, threads=threads, **params), scores)
    matrix = np.full((n, n), np.nan, dtype)
    own.matrix(matrix)
    rtol = 60 * np.finfo(dtype).eps
    expected = twin.values(kernel, X[which], X, **params).astype(np.float64)
    assert_allclose(rows_of(own, which, n, dtype), expected, rtol=rtol, atol=rtol)
    assert_allclose(matrix[some], twin.values(kernel, X[some], X, **params).astype(np.float64), rtol=rtol, atol=rtol)
    assert_array_equal(matrix, matrix.T)
    tiles, own_scores = -(-n // core.TILE_COLUMNS), np.zeros(n)
    middle = int(rng.integers(0, tiles + 1))
    own.own_scores(coef, 0, middle, own_scores)
    own.own_scores(coef, middle, tiles, own_scores)
    for found, rows in ((scores, Z), (own_scores, X)):
        products = coef * twin.values(kernel, rows, X, **params)
        size = np.abs(products).sum(axis=1) + np.abs(coef).sum()
        assert np.all(np.abs(found - products.sum(axis=1)) <= rtol * size)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponential(dtype):
    """Of numbers from 0 to beyond the smallest normal one, to 4 units of the last place."""
    least = 87.0 if dtype == np.float32 else 708.0
    x = np.concatenate([np.linspace(0.0, least, 20_001), [0.0, 1e-30, 0.5 * np.log(2.0), 1e4, 1e30]]).astype(dtype)
    # |0|^2 + square - 2 * 0 is the square itself.
    points, squares = np.zeros((len(x), 1), dtype), x.copy()
    squares[0] = 0.0
    own = (core.KernelBlock64 if dtype == np.float64 else core.KernelBlock32)(
        GEMM[np.dtype(dtype)],
        "rbf",
        1.0,
        0.0,
        1,
        0.0,
        points,
        np.where(np.arange(len(x)) == 0, 0.0, x).astype(dtype),
        1,
    )
    found = rows_of(own, [0], len(x), dtype)[0]
    expected = np.exp(-np.minimum(x, dtype(least)).astype(np.longdouble))
    assert np.all(np.abs(found - expected) <= 4 * np.finfo(dtype).eps * expected)
    assert found[0] == 1.0


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_do_not_change_a_bit_of_the_values(dtype, kernel):
    X = np.random.default_rng(0).normal(size=(900, 150)).astype(dtype)
    found = []
    for threads in (1, 2, 3):
        own, matrix, scores = block(X, kernel, 0.01, threads=threads), np.empty((900, 900), dtype), np.empty(900)
        own.matrix(matrix)
        own.scores(np.linspace(-1.0, 1.0, 900), own, scores)
        among = np.zeros(900)
        own.own_scores(np.linspace(-1.0, 1.0, 900), 0, 4, among)
        found.append((matrix, scores, among, rows_of(own, [5, 899], 900, dtype)))
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            assert_array_equal(one, two)


@given(seed=seeds, n=st.integers(1, 30), d=st.integers(1, 6), threads=st.integers(1, 3))
def test_row_hashes(seed, n, d, threads):
    """Equal where rows are, and nowhere else, in any layout."""
    rng = np.random.default_rng(seed)
    X = rng.choice([0.0, -0.0, 1.0, -1.0, 0.5], size=(n, d))
    found = []
    for layout in (name for name in LAYOUTS if name not in ("strided", "reversed")):  # rows are contiguous
        out = np.empty(n, dtype=np.uint64)
        matrix_of(LAYOUTS[layout](X), threads).hashes(out)
        found.append(out)
    for other in found[1:]:
        assert_array_equal(other, found[0])
    equal = (X[:, None] == X).all(axis=2)
    assert_array_equal(found[0][:, None] == found[0], equal)


def test_invalid_arguments_of_blocks_raise():
    X = np.ones((4, 2))
    own, gemm, squares = block(X), GEMM[np.dtype(np.float64)], np.full(4, 2.0)
    for change in ({"kernel": "laplace"}, {"degree": 0}, {"threads": 0}):
        with pytest.raises(ValueError, match="expected"):
            block(X, **change)
    for capsule, numbers in ((object(), squares), (gemm, np.ones(3))):
        with pytest.raises(ValueError, match="expected"):
            core.KernelBlock64(capsule, "rbf", 1.0, 0.0, 1, 0.0, X, numbers, 1)
    for which, shape in (([4], (1, 4)), ([-1], (1, 4)), ([0], (1, 3)), ([0], (2, 4))):
        with pytest.raises(ValueError, match="expected"):
            own.rows(np.array(which), np.empty(shape))
    with pytest.raises(ValueError, match="n x n expected"):
        own.matrix(np.empty((4, 3)))
    with pytest.raises(ValueError, match="differ in features"):
        own.scores(np.ones(4), block(np.ones((4, 3))), np.empty(4))
    for coef, out in ((np.ones(3), np.empty(4)), (np.ones(4), np.empty(5))):
        with pytest.raises(ValueError, match="expected"):
            own.scores(coef, own, out)
        with pytest.raises(ValueError, match="expected"):
            own.own_scores(coef, 0, 1, out)
    for first, last in ((-1, 1), (1, 0), (0, 2)):
        with pytest.raises(ValueError, match="tiles expected"):
            own.own_scores(np.ones(4), first, last, np.zeros(4))
