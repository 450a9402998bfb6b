"""Matrices in memory, dense (C or Fortran order) or CSR, of float32 or float64, read in place."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse
from scipy.linalg.blas import dsyrk

from cutsvm._native import core
from cutsvm._utils import memory
from cutsvm._utils.threads import cached_property
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm._utils.validation import csr_is_sorted
from cutsvm.matrix.magnitudes import Magnitudes
from cutsvm.matrix.protocol import COMPRESSION, CompressionSettings, PlaneMemory, Storage

Own = TypeVar("Own", bound="ArrayRows")
CSR = tuple[Array, Array, Array]  # values, columns, row pointers


def as_rows(X: Any, threads: int = 1) -> DenseRows | SparseRows:
    """The rows of a dense or CSR matrix of float32 or float64."""
    return SparseRows.checked(X, threads) if sparse.issparse(X) else DenseRows(X, threads)


class ArrayRows(core.Matrix):
    """The bound matrix, whose methods are the kernels, and what both kinds share."""

    storage = Storage(memory=True)
    room: int | None = None  # rows that a solver may copy; None: any number
    held = True  # there is memory for a few numbers of each row
    plane_memory: PlaneMemory | None = None  # None: any

    @property
    @abstractmethod
    def magnitudes(self) -> Magnitudes: ...

    @abstractmethod
    def take(self: Own, rows: Ints, out: Own | None = None) -> Own:
        """A copy of these rows. out: as many rows of this kind that are not used any more; their memory may be."""

    @abstractmethod
    def part(self: Own, begin: int, end: int) -> Own:
        """The rows from begin to end, read where they are."""

    @abstractmethod
    def with_threads(self: Own, threads: int) -> Own:
        """The same rows, read by another number of threads."""

    def centred(self: Own) -> tuple[Own, Vector | None]:
        """Themselves: rows of these kinds are not centred."""
        return self, None

    @staticmethod
    def vector(shape: int | tuple[int, int], dtype: DTypeLike = np.float64) -> Array:
        return np.empty(shape, dtype=dtype)

    @cached_property
    def mean_square(self) -> float:
        """The mean of |x_i|^2, estimated from up to 1000 evenly spaced rows."""
        some = self.take(np.unique(np.linspace(0, self.n - 1, 1000).astype(np.int64)))
        return float(some.squares_of(0, some.n).mean())

    def squares_of(self, begin: int, end: int) -> Vector:
        """|x_i|^2 of the rows from begin to end."""
        out = np.empty(end - begin)
        self.part(begin, end).squares(out)
        return out

    def blocks(self: Own, size: int = 1 << 16) -> Iterator[tuple[slice, Own]]:
        """All rows, `size` at a time: their place, and the rows."""
        for begin in range(0, self.n, size):
            end = min(self.n, begin + size)
            yield slice(begin, end), self.part(begin, end)


def index_type(entries: int) -> np.dtype[Any]:
    """The smaller integer that can count the stored values."""
    return np.dtype(np.int32 if entries < 2**31 else np.int64)


class SparseRows(ArrayRows):
    """Rows of a CSR matrix that is valid; columns and row pointers both int32 or both int64.

    sorted: columns rise within every row, so that none occurs twice.
    """

    storage = Storage(memory=True, sparse=True)

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

    def __reduce__(self) -> tuple[Callable[..., SparseRows], tuple[CSR, int, int]]:
        """For pickles: these rows alone, if they are a part of others."""
        return partial(SparseRows, sorted=self.sorted), (self._own_arrays, self.d, self.threads)

    @property
    def _own_arrays(self) -> CSR:
        """Without the values of rows that these are a part of; what can be is shared."""
        values, columns, pointers = self.arrays
        first, last = int(pointers[0]), int(pointers[-1])  # a part begins further on
        return values[first:last], columns[first:last], pointers - first if first else pointers

    @property
    def X(self) -> Any:
        """The matrix as SciPy's, which shares the values and columns."""
        X: Any = sparse.csr_matrix(self._own_arrays, shape=(self.n, self.d))
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

    def take(self, rows: Ints, out: SparseRows | None = None) -> SparseRows:
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

    def fast(self, settings: CompressionSettings = COMPRESSION) -> SparseRows:
        return self

    def weighted_sums(self, weights: Array) -> Array:
        return np.ascontiguousarray((self.X.astype(np.float64).T @ weights).T)

    def gram(self, weights: Vector) -> Array:
        out = np.empty((self.d + 1, self.d + 1))
        self.by_row().gram_into(weights, out)
        return out

    def square_sums(self, weights: Vector) -> Vector:
        X = self.X
        return np.asarray(X.multiply(X) @ weights, dtype=np.float64)

    def squared_sums(self, weights: Vector) -> Vector:
        squares = self.X.astype(np.float64)
        squares.sum_duplicates()
        squares.data **= 2
        return np.append(squares.T @ weights, weights.sum())

    def by_row(self) -> SparseRows:
        """Rows whose |x_i|^2 is the sum of their squared values: a copy if a column may occur twice in a row."""
        if self.sorted:
            return self
        X = self.X.copy()
        X.sum_duplicates()
        return SparseRows.checked(X, self.threads)


class DenseRows(ArrayRows):
    """Rows of a dense matrix whose rows or columns are contiguous."""

    def __init__(self, X: Array, threads: int = 1) -> None:
        if min(X.strides[0], X.strides[1]) < 0 or X.itemsize not in map(abs, X.strides):
            X = np.ascontiguousarray(X)  # the one layout that cannot be read in place
        super().__init__(X, threads)
        self.X = X

    def __reduce__(self) -> tuple[type[DenseRows], tuple[Array, int]]:
        return DenseRows, (self.X, self.threads)

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

    def take(self, rows: Ints, out: DenseRows | None = None) -> DenseRows:
        copy = np.empty((len(rows), self.d), dtype=self.X.dtype) if out is None else out.X
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

    def weighted_sums(self, weights: Array, most: int = 1 << 17) -> Array:
        out, step = np.zeros((weights.shape[1], self.d)), max(1, most // self.d)
        for begin in range(0, self.n, step):
            out += weights[begin : begin + step].T @ self.X[begin : begin + step].astype(np.float64)
        return out

    def gram(self, weights: Vector, most: int = 1 << 17) -> Array:
        """Some rows at a time, up to `most` values: BLAS is fastest on what fits a cache."""
        size, step = self.d + 1, max(1, most // (self.d + 1))
        out = np.zeros((size, size), order="F")
        for begin in range(0, self.n, step):
            h = weights[begin : begin + step]
            some = np.flatnonzero(h)
            roots = np.sqrt(h[some])
            scaled = np.empty((len(some), size))
            np.multiply(self.X[begin : begin + step][some], roots[:, None], out=scaled[:, :-1])
            scaled[:, -1] = roots
            out = dsyrk(1.0, scaled.T, beta=1.0, c=out, overwrite_c=1)
        return out + np.triu(out, 1).T

    def square_sums(self, weights: Vector, most: int = 1 << 17) -> Vector:
        out, step = np.empty(self.n), max(1, most // self.d)
        for begin in range(0, self.n, step):
            part = self.X[begin : begin + step].astype(np.float64)
            out[begin : begin + step] = (part * part) @ weights
        return out

    def squared_sums(self, weights: Vector, most: int = 1 << 17) -> Vector:
        out, step = np.zeros(self.d), max(1, most // self.d)
        for begin in range(0, self.n, step):
            part = self.X[begin : begin + step].astype(np.float64)
            out += weights[begin : begin + step] @ (part * part)
        return np.append(out, weights.sum())

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
