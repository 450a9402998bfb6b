"""CSR matrices in memory, float32 or float64, read in place."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from cutsvm._utils.types import Array, Ints
from cutsvm._utils.validation import csr_is_sorted
from cutsvm.matrix.array_rows import ArrayRows
from cutsvm.matrix.magnitudes import Magnitudes

CSR = tuple[Array, Array, Array]  # values, columns, row pointers


def index_type(entries: int) -> np.dtype[Any]:
    """The smaller integer that can count the stored values."""
    return np.dtype(np.int32 if entries < 2**31 else np.int64)


class SparseRows(ArrayRows):
    """Rows of a CSR matrix that is valid; columns and row pointers both int32 or both int64.

    sorted: columns rise within every row, so that none occurs twice.
    """

    def __init__(self, arrays: CSR, d: int, threads: int = 1, *, sorted: bool = True) -> None:
        super().__init__(*arrays, d, threads)
        self.arrays, self.sorted = arrays, sorted

    @classmethod
    def checked(cls, X: Any, threads: int = 1) -> SparseRows:
        """The rows of a SciPy matrix; ValueError if it is not valid CSR."""
        columns, pointers = X.indices, X.indptr
        wide = np.promote_types(columns.dtype, pointers.dtype)  # SciPy keeps the two alike; others may not
        columns, pointers = columns.astype(wide, copy=False), pointers.astype(wide, copy=False)
        in_order = csr_is_sorted(X.data, columns, pointers, X.shape, threads)
        return cls((X.data, columns, pointers), int(X.shape[1]), threads, sorted=in_order)

    @property
    def X(self) -> Any:
        """The matrix as SciPy's, which shares the arrays."""
        X: Any = sparse.csr_matrix(self.arrays, shape=(self.n, self.d))
        X.has_canonical_format = self.sorted
        return X

    @cached_property
    def magnitudes(self) -> Magnitudes:
        """By |x_i| alone: a maximum for each of many features would take longer than a pass."""
        largest = max(float(self.squares_of(rows.start, rows.stop).max()) for rows, _ in self.blocks())
        longest = int(np.diff(self.arrays[2]).max(initial=1))
        if not self.sorted:  # values of the same column are added up
            largest *= longest
        return Magnitudes.of_norm(float(np.sqrt(largest)), longest)

    def take(self, rows: Ints) -> SparseRows:
        values, columns, pointers = self.arrays
        ends = np.zeros(len(rows) + 1, dtype=pointers.dtype)
        np.cumsum(pointers[rows + 1] - pointers[rows], out=ends[1:])
        copy = np.empty(ends[-1], dtype=values.dtype), np.empty(ends[-1], dtype=columns.dtype)
        self.take_into(rows, ends, *copy)
        return SparseRows((*copy, ends), self.d, self.threads, sorted=self.sorted)

    def part(self, begin: int, end: int) -> SparseRows:
        values, columns, pointers = self.arrays
        return SparseRows((values, columns, pointers[begin : end + 1]), self.d, self.threads, sorted=self.sorted)

    def with_threads(self, threads: int) -> SparseRows:
        twin = SparseRows(self.arrays, self.d, threads)
        vars(twin).update(vars(self))
        return twin

    @classmethod
    def concatenated(cls, parts: list[SparseRows]) -> SparseRows:
        """The rows of all parts in one matrix. Empties the list as it goes, to need less memory."""
        n, entries, first = sum(part.n for part in parts), sum(part.entries for part in parts), parts[0]
        index, d, threads = index_type(entries), first.d, first.threads
        values, columns = np.empty(entries, dtype=first.arrays[0].dtype), np.empty(entries, dtype=index)
        pointers, row, entry = np.zeros(n + 1, dtype=index), 0, 0
        parts.reverse()
        del first
        while parts:
            part = parts.pop()
            own, where, ends = part.arrays
            mine = slice(entry, entry + part.entries)
            values[mine], columns[mine] = own, where
            pointers[row + 1 : row + part.n + 1] = ends[1:] + entry
            row, entry = row + part.n, mine.stop
        return cls((values, columns, pointers), d, threads)

    def fast(self) -> SparseRows:
        return self

    def by_row(self) -> SparseRows:
        """Rows whose |x_i|^2 is the sum of their squared values: a copy if a column may occur twice in a row."""
        if self.sorted:
            return self
        X = self.X.copy()
        X.sum_duplicates()
        return SparseRows.checked(X, self.threads)
