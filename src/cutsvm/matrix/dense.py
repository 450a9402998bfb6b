"""Dense matrices in memory (C or Fortran order), float32 or float64, read in place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cutsvm._utils import memory
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.matrix.array_rows import ArrayRows
from cutsvm.matrix.magnitudes import Magnitudes
from cutsvm.matrix.sparse import SparseRows, index_type


@dataclass(frozen=True)
class CompressionSettings:
    """When a dense matrix is copied to CSR: an entry then costs 8 bytes and a gather in place of 4 bytes in order."""

    max_density: float = 0.3  # share of values that are not 0
    min_features: int = 64  # with fewer there is little to gain
    sample_rows: int = 1000  # evenly spaced rows that the density is estimated from
    max_memory: float = 0.25  # share of the machine's memory that the copy may take


COMPRESSION = CompressionSettings()


class DenseRows(ArrayRows):
    """Rows of a dense matrix whose rows or columns are contiguous."""

    def __init__(self, X: Array, threads: int = 1) -> None:
        if min(X.strides[0], X.strides[1]) < 0 or X.itemsize not in map(abs, X.strides):
            X = np.ascontiguousarray(X)  # the one layout that cannot be read in place
        super().__init__(X, threads)
        self.X = X

    @cached_property
    def magnitudes(self) -> Magnitudes:
        low, high = np.empty(self.d), np.empty(self.d)
        self.column_ranges(low, high)
        return Magnitudes.of_columns(low, high)

    def centred(self, far: float = 1e5) -> tuple[DenseRows, Vector | None]:
        """The rows less a row m, and m, if some feature is `far` times as far from 0 as its values from each other.

        m_j is between the least and the largest value, which are so close that x_ij - m_j has no rounding error
        (Sterbenz's lemma). A copy; the rows themselves and None where no feature is that far from 0.
        """
        low, high = self.magnitudes.low, self.magnitudes.high
        assert low is not None and high is not None
        with np.errstate(over="ignore"):
            widths = high - low
            # A constant takes digits from others only if it is that far from 0 beside them: that of 1 does not.
            widths = np.where(widths > 0.0, widths, float(widths.max(initial=1.0)))
            centre = (far * widths < np.minimum(np.abs(low), np.abs(high))) & (np.sign(low) == np.sign(high))
        if not centre.any():
            return self, None
        middle = np.where(centre, low + 0.5 * (high - low), 0.0).astype(self.X.dtype)
        return DenseRows(self.X - middle, self.threads), middle.astype(np.float64)

    def take(self, rows: Ints) -> DenseRows:
        copy = np.empty((len(rows), self.d), dtype=self.X.dtype)
        self.take_into(rows, copy)
        return DenseRows(copy, self.threads)

    def part(self, begin: int, end: int) -> DenseRows:
        return DenseRows(self.X[begin:end], self.threads)

    def with_threads(self, threads: int) -> DenseRows:
        twin = DenseRows(self.X, threads)
        vars(twin).update(vars(self))
        return twin

    @classmethod
    def concatenated(cls, parts: list[DenseRows]) -> DenseRows:
        """The rows of all parts in one matrix. Empties the list as it goes, to need less memory."""
        X = np.empty((sum(part.n for part in parts), parts[0].d), dtype=parts[0].X.dtype)
        threads, row = parts[0].threads, 0
        parts.reverse()
        while parts:
            part = parts.pop()
            X[row : row + part.n] = part.X
            row += part.n
        return cls(X, threads)

    def by_row(self) -> DenseRows:
        """Rows that can be read one at a time: a copy if it is the columns that are contiguous."""
        return DenseRows(np.ascontiguousarray(self.X), self.threads)

    def fast(self, settings: CompressionSettings = COMPRESSION) -> DenseRows | SparseRows:
        """The rows as CSR, a copy, if that is faster to read and small enough; else themselves.

        What is small enough depends on the machine, not on the memory that happens to be free: sums of CSR rows are
        rounded differently, and the same call has to give the same model.
        """
        X = self.X
        if self.d < settings.min_features:
            return self
        some = X[:: max(1, self.n // settings.sample_rows)]
        if np.count_nonzero(some) >= settings.max_density * some.size:
            return self
        counts = np.empty(self.n, dtype=np.int64)
        self.count_nonzeros(counts)
        stored = int(counts.sum())
        index = index_type(stored)
        if stored * (X.itemsize + index.itemsize) > settings.max_memory * memory.total():
            return self
        pointers = np.zeros(self.n + 1, dtype=index)
        np.cumsum(counts, out=pointers[1:])
        values, columns = np.empty(stored, dtype=X.dtype), np.empty(stored, dtype=index)
        self.compress(pointers, values, columns)
        return SparseRows((values, columns, pointers), self.d, self.threads)
