"""Rows in memory: dense (C or Fortran order) and CSR, float32 or float64, read in place."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from cutsvm._native import core
from cutsvm.types import Array, Ints, Vector


class DenseRows:
    """Rows of a dense matrix whose rows or columns lie side by side."""

    def __init__(self, X: Array, threads: int = 1) -> None:
        if min(X.strides[0], X.strides[1]) < 0 or X.itemsize not in map(abs, X.strides):
            X = np.ascontiguousarray(X)  # the one layout that cannot be read in place
        self.X, self.threads = X, threads
        self.n, self.d = X.shape
        self.entries = X.size

    def scores(self, w: Vector, b: float, out: Vector) -> None:
        core.dense_scores(self.X, w, b, out, self.threads)

    def accumulate(self, old: Vector, fresh: Vector, bounds: Ints, sums: Vector, moved: Vector) -> int:
        return core.dense_accumulate(self.X, old, fresh, bounds, sums, moved, self.threads)


class SparseRows:
    """Rows of a CSR matrix; columns and row pointers both int32 or both int64."""

    def __init__(self, X: Any, threads: int = 1) -> None:
        columns, pointers = X.indices, X.indptr
        wide = np.promote_types(columns.dtype, pointers.dtype)  # SciPy keeps the two alike; others may not
        columns, pointers = columns.astype(wide, copy=False), pointers.astype(wide, copy=False)
        self.n, self.d = X.shape
        self.entries = int(X.nnz)
        if len(columns) and not (0 <= columns.min() and columns.max() < self.d):
            raise ValueError(f"X has a column index outside 0..{self.d - 1}")
        if pointers[0] != 0 or pointers[-1] > len(columns) or np.any(pointers[1:] < pointers[:-1]):
            raise ValueError("X has row pointers that do not rise from 0 to the number of stored values")
        self.arrays = (X.data, columns, pointers)
        self.threads = threads

    def scores(self, w: Vector, b: float, out: Vector) -> None:
        core.sparse_scores(*self.arrays, w, b, out, self.threads)

    def accumulate(self, old: Vector, fresh: Vector, bounds: Ints, sums: Vector, moved: Vector) -> int:
        return core.sparse_accumulate(*self.arrays, self.d, old, fresh, bounds, sums, moved, self.threads)


def as_rows(X: Any, threads: int = 1) -> DenseRows | SparseRows:
    """The rows of a dense or CSR matrix of float32 or float64."""
    return SparseRows(X, threads) if sparse.issparse(X) else DenseRows(X, threads)
