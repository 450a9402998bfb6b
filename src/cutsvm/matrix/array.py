"""Rows in memory: dense (C or Fortran order) and CSR, float32 or float64, read in place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, reduce
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from cutsvm._native import core
from cutsvm._utils import memory
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm._utils.validation import csr_is_sorted
from cutsvm.problem.rounding import Magnitudes

# A dense array with fewer than this share of non-zeros is swept faster as CSR: an entry then costs 8 bytes and a
# gather in place of 4 bytes in order.
SPARSE_BELOW = 0.3
NARROW = 64  # features; with fewer there is little to gain
SAMPLE = 1000  # rows that are looked at to see this, or how long rows are
MEMORY = 0.25  # the copy may take this share of the machine's memory

FAR = 1e5  # times as far from 0 as its values from each other: such a feature is centred where the intercept is free
BLOCK = 1 << 16  # rows that are looked at together by those who do not look at all of them at once

# What a descent has seen: the gap of the rows visited, the steepest and the flattest slope, how many rows stay.
Seen = tuple[float, float, float, int]


class Descent(NamedTuple):
    """What an epoch of coordinate descent knows of the dual problem; see core/dcd.hpp."""

    a: Vector
    q: Vector
    C: float
    unit: float
    above: float
    below: float
    alpha: Vector

    def part(self, rows: slice) -> Descent:
        return self._replace(a=self.a[rows], q=self.q[rows], alpha=self.alpha[rows])


class Choices(NamedTuple):
    """Which class each row chooses, and which it chose before; see core/many.hpp."""

    y: Array
    weights: Vector
    old: Array
    fresh: Array
    classes: int

    def part(self, rows: slice) -> Choices:
        return Choices(self.y[rows], self.weights[rows], self.old[rows], self.fresh[rows], self.classes)


class _InMemory:
    """What rows in memory share."""

    n: int
    room: int | None = None  # rows that a solver may copy: as many as it likes
    held = True  # there is memory for a few numbers of each row

    def centred(self: Own) -> tuple[Own, Vector | None]:
        """Themselves: rows of these kinds are not centred."""
        return self, None

    @staticmethod
    def vector(shape: int | tuple[int, int], dtype: DTypeLike = np.float64) -> Array:
        return np.empty(shape, dtype=dtype)

    @cached_property
    def mean_square(self) -> float:
        """The mean of |x_i|^2, on some rows spread over all."""
        some = self.take(np.unique(np.linspace(0, self.n - 1, SAMPLE).astype(np.int64)))  # type: ignore[attr-defined]
        squares = np.empty(some.n)
        some.squares(squares)
        return float(squares.mean())

    def blocks(self: Own) -> Iterator[tuple[slice, Own]]:
        """All rows, some at a time: where they stand, and the rows."""
        for begin in range(0, self.n, BLOCK):
            end = min(self.n, begin + BLOCK)
            yield slice(begin, end), self.part(begin, end)  # type: ignore[attr-defined]


Own = TypeVar("Own", bound=_InMemory)


class DenseRows(_InMemory):
    """Rows of a dense matrix whose rows or columns lie side by side."""

    def __init__(self, X: Array, threads: int = 1) -> None:
        if min(X.strides[0], X.strides[1]) < 0 or X.itemsize not in map(abs, X.strides):
            X = np.ascontiguousarray(X)  # the one layout that cannot be read in place
        self.X, self.threads = X, threads
        self.n, self.d = X.shape
        self.entries = X.size

    def scores(self, w: Vector, b: float, out: Vector) -> None:
        core.dense_scores(self.X, w, b, out, self.threads)

    def compensated_scores(self, w: Vector, b: float, out: Vector, rest: Vector) -> None:
        core.dense_compensated_scores(self.X, w, b, out, rest, self.threads)

    @cached_property
    def magnitudes(self) -> Magnitudes:
        low, high = np.empty(self.d), np.empty(self.d)
        core.column_ranges(self.X, low, high, self.threads)
        return Magnitudes.of_columns(low, high)

    def centred(self) -> tuple[DenseRows, Vector | None]:
        """The rows less a row m, and m, if that leaves more digits: of features far from 0 beside how they vary.

        m_j is between the least and the largest value, which are so close that x_ij - m_j has no rounding error
        (Sterbenz's lemma). A copy; the rows themselves and None where no feature is that far from 0.
        """
        low, high = self.magnitudes.low, self.magnitudes.high
        assert low is not None and high is not None
        with np.errstate(over="ignore"):
            widths = high - low
            # A constant takes digits from others only if it is that far from 0 beside them: that of 1 does not.
            widths = np.where(widths > 0.0, widths, float(widths.max(initial=1.0)))
            far = (FAR * widths < np.minimum(np.abs(low), np.abs(high))) & (np.sign(low) == np.sign(high))
        if not far.any():
            return self, None
        middle = np.where(far, low + 0.5 * (high - low), 0.0).astype(self.X.dtype)
        return DenseRows(self.X - middle, self.threads), middle.astype(np.float64)

    def accumulate(self, old: Vector, fresh: Vector, bounds: Ints, sums: Vector, moved: Vector) -> int:
        return core.dense_accumulate(self.X, old, fresh, bounds, sums, moved, self.threads)

    def take(self, rows: Ints) -> DenseRows:
        copy = np.empty((len(rows), self.d), dtype=self.X.dtype)
        core.dense_take(self.X, rows, copy, self.threads)
        return DenseRows(copy, self.threads)

    def part(self, begin: int, end: int) -> DenseRows:
        """The rows from begin to end, read where they are."""
        return DenseRows(self.X[begin:end], self.threads)

    def scores_many(self, W: Vector, b: Vector, out: Vector) -> None:
        core.dense_scores_many(self.X, W, b, out, self.threads)

    def accumulate_choices(self, choices: Choices, bounds: Ints, sums: Vector, moved: Vector) -> int:
        y, s, old, fresh, classes = choices
        return core.dense_accumulate_choices(self.X, y, s, old, fresh, bounds, sums, moved, classes, self.threads)

    def group_sums(self, weights: Vector, group: Array, sums: Vector) -> int:
        return core.dense_group_sums(self.X, weights, group, sums, self.threads)

    # The same two for one block of many: their sums go on in `partial`.

    def add_pieces(self, old: Vector, fresh: Vector, edges: Ints, partial: Vector, travel: Vector) -> int:
        return core.dense_add_pieces(self.X, old, fresh, edges, partial, travel, self.threads)

    def add_groups(self, weights: Vector, group: Array, groups: int, edges: Ints, partial: Vector) -> int:
        return core.dense_add_groups(self.X, weights, group, groups, edges, partial, self.threads)

    def tangents(self, signed: Vector, W: Vector, b: Vector, edges: Ints, partial: Vector, heights: Vector) -> None:
        core.dense_hinge_tangents(self.X, signed, W, b, edges, partial, heights, self.threads)

    def by_row(self) -> DenseRows:
        """Rows that can be read one at a time: a copy if it is the columns that lie side by side."""
        return DenseRows(np.ascontiguousarray(self.X), self.threads)

    def fast(self, narrow: int = NARROW) -> DenseRows | SparseRows:
        """The rows as CSR, a copy, if they are mostly zeros, not too narrow, and it is small enough; else themselves.

        What is small enough depends on the machine, not on the memory that happens to be free: sums of CSR rows are
        rounded differently, and the same call has to give the same model.
        """
        X = self.X
        if self.d < narrow or not _mostly_zeros(X):
            return self
        counts = np.empty(self.n, dtype=np.int64)
        core.count_nonzeros(X, counts, self.threads)
        stored = int(counts.sum())
        index = np.int32 if stored < 2**31 else np.int64
        if stored * (X.itemsize + np.dtype(index).itemsize) > MEMORY * memory.total():
            return self
        pointers = np.zeros(self.n + 1, dtype=index)
        np.cumsum(counts, out=pointers[1:])
        values, columns = np.empty(stored, dtype=X.dtype), np.empty(stored, dtype=index)
        core.compress(X, pointers, values, columns, self.threads)
        return SparseRows.of((values, columns, pointers), self.d, self.threads)

    def hashes(self, out: Array) -> None:
        """out[i] = a hash (uint64) of row i: its values and their places."""
        core.dense_row_hashes(self.X, out, self.threads)

    def squares(self, out: Vector) -> None:
        core.dense_squares(self.X, out, self.threads)

    def squares_of(self, begin: int, end: int) -> Vector:
        """|x_i|^2 of the rows from begin to end."""
        out = np.empty(end - begin)
        self.part(begin, end).squares(out)
        return out

    def descend(self, dual: Descent, order: Array, w: Vector, run: int, seed: int, threads: int) -> Seen:
        return core.dense_descend(self.X, *dual, order, w, run, seed, threads)


class SparseRows(_InMemory):
    """Rows of a CSR matrix; columns and row pointers both int32 or both int64."""

    def __init__(self, X: Any, threads: int = 1) -> None:
        columns, pointers = X.indices, X.indptr
        wide = np.promote_types(columns.dtype, pointers.dtype)  # SciPy keeps the two alike; others may not
        columns, pointers = columns.astype(wide, copy=False), pointers.astype(wide, copy=False)
        self.n, self.d = X.shape
        self.entries = int(X.nnz)
        self.sorted = csr_is_sorted(X.data, columns, pointers, X.shape, threads)
        self.arrays: tuple[Array, Array, Array] = (X.data, columns, pointers)
        self.threads = threads

    def scores(self, w: Vector, b: float, out: Vector) -> None:
        core.sparse_scores(*self.arrays, w, b, out, self.threads)

    def compensated_scores(self, w: Vector, b: float, out: Vector, rest: Vector) -> None:
        core.sparse_compensated_scores(*self.arrays, w, b, out, rest, self.threads)

    @cached_property
    def magnitudes(self) -> Magnitudes:
        """By |x_i| alone: a maximum for each of many features would take longer than a sweep."""
        largest = max(
            float(self.squares_of(begin, min(begin + BLOCK, self.n)).max()) for begin in range(0, self.n, BLOCK)
        )
        longest = int(np.diff(self.arrays[2]).max(initial=1))
        if not self.sorted:  # of values that stand in one place of a row the sum counts, and not each
            largest *= longest
        return Magnitudes.of_norm(float(np.sqrt(largest)), longest)

    def accumulate(self, old: Vector, fresh: Vector, bounds: Ints, sums: Vector, moved: Vector) -> int:
        return core.sparse_accumulate(*self.arrays, self.d, old, fresh, bounds, sums, moved, self.threads)

    def take(self, rows: Ints) -> SparseRows:
        values, columns, pointers = self.arrays
        fresh = np.zeros(len(rows) + 1, dtype=pointers.dtype)
        np.cumsum(pointers[rows + 1] - pointers[rows], out=fresh[1:])
        to_values, to_columns = np.empty(fresh[-1], dtype=values.dtype), np.empty(fresh[-1], dtype=columns.dtype)
        core.sparse_take(*self.arrays, rows, fresh, to_values, to_columns, self.threads)
        return SparseRows.of((to_values, to_columns, fresh), self.d, self.threads, in_order=self.sorted)

    def part(self, begin: int, end: int) -> SparseRows:
        """The rows from begin to end, read where they are."""
        values, columns, pointers = self.arrays
        some = SparseRows.of((values, columns, pointers[begin : end + 1]), self.d, self.threads, in_order=self.sorted)
        some.entries = int(pointers[end] - pointers[begin])
        return some

    @classmethod
    def of(cls, arrays: tuple[Array, Array, Array], d: int, threads: int, *, in_order: bool = True) -> SparseRows:
        """Rows from values, columns and row pointers that are known to be valid."""
        rows = cls.__new__(cls)
        rows.arrays, rows.threads, rows.sorted = arrays, threads, in_order
        rows.n, rows.d, rows.entries = len(arrays[2]) - 1, d, len(arrays[0])
        return rows

    def scores_many(self, W: Vector, b: Vector, out: Vector) -> None:
        core.sparse_scores_many(*self.arrays, W, b, out, self.threads)

    def accumulate_choices(self, choices: Choices, bounds: Ints, sums: Vector, moved: Vector) -> int:
        y, s, old, fresh, classes = choices
        return core.sparse_accumulate_choices(
            *self.arrays, self.d, y, s, old, fresh, bounds, sums, moved, classes, self.threads
        )

    def group_sums(self, weights: Vector, group: Array, sums: Vector) -> int:
        return core.sparse_group_sums(*self.arrays, weights, group, sums, self.threads)

    def add_pieces(self, old: Vector, fresh: Vector, edges: Ints, partial: Vector, travel: Vector) -> int:
        return core.sparse_add_pieces(*self.arrays, self.d, old, fresh, edges, partial, travel, self.threads)

    def add_groups(self, weights: Vector, group: Array, groups: int, edges: Ints, partial: Vector) -> int:
        return core.sparse_add_groups(*self.arrays, weights, group, groups, edges, partial, self.threads)

    def tangents(self, signed: Vector, W: Vector, b: Vector, edges: Ints, partial: Vector, heights: Vector) -> None:
        core.sparse_hinge_tangents(*self.arrays, signed, W, b, edges, partial, heights, self.threads)

    def fast(self) -> SparseRows:
        return self

    def by_row(self) -> SparseRows:
        """Rows whose length can be known: a copy if a column may occur twice in a row."""
        if self.sorted:
            return self
        X = sparse.csr_matrix(self.arrays, shape=(self.n, self.d), copy=True)
        X.sum_duplicates()
        return SparseRows(X, self.threads)

    def hashes(self, out: Array) -> None:
        core.sparse_row_hashes(*self.arrays, out, self.threads)

    def squares(self, out: Vector) -> None:
        core.sparse_squares(*self.arrays, out, self.threads)

    def squares_of(self, begin: int, end: int) -> Vector:
        out = np.empty(end - begin)
        self.part(begin, end).squares(out)
        return out

    def descend(self, dual: Descent, order: Array, w: Vector, run: int, seed: int, threads: int) -> Seen:
        values, columns, pointers = self.arrays
        return core.sparse_descend(values, columns, pointers, *dual, order, w, run, seed, threads)


class StackedRows(_InMemory):
    """Rows of several kinds, one after the other."""

    def __init__(self, parts: Sequence[DenseRows | SparseRows]) -> None:
        self.parts = parts
        self.edges = np.cumsum([0, *(part.n for part in parts)])
        self.n, self.d = int(self.edges[-1]), parts[0].d
        self.entries = sum(part.entries for part in parts)

    def vector(self, shape: int | tuple[int, int], dtype: DTypeLike = np.float64) -> Array:  # type: ignore[override]
        return self.parts[0].vector(shape, dtype)  # in a file, if that is where the first part's would be

    def _each(self) -> list[tuple[DenseRows | SparseRows, slice]]:
        return [(part, slice(*self.edges[k : k + 2])) for k, part in enumerate(self.parts)]

    def scores(self, w: Vector, b: float, out: Vector) -> None:
        for part, mine in self._each():
            part.scores(w, b, out[mine])

    def compensated_scores(self, w: Vector, b: float, out: Vector, rest: Vector) -> None:
        for part, mine in self._each():
            part.compensated_scores(w, b, out[mine], rest[mine])

    @cached_property
    def magnitudes(self) -> Magnitudes:
        return reduce(Magnitudes.union, (part.magnitudes for part in self.parts if part.n))

    def accumulate(self, old: Vector, fresh: Vector, bounds: Ints, sums: Vector, moved: Vector) -> int:
        read = 0
        for part, mine in self._each():
            inside = np.clip(bounds - mine.start, 0, part.n)
            read += part.accumulate(old[mine], fresh[mine], inside, sums, moved)
        return read

    def scores_many(self, W: Vector, b: Vector, out: Vector) -> None:
        for part, mine in self._each():
            part.scores_many(W, b, out[mine])

    def accumulate_choices(self, choices: Choices, bounds: Ints, sums: Vector, moved: Vector) -> int:
        read = 0
        for part, mine in self._each():
            inside = np.clip(bounds - mine.start, 0, part.n)
            read += part.accumulate_choices(choices.part(mine), inside, sums, moved)
        return read

    def group_sums(self, weights: Vector, group: Array, sums: Vector) -> int:
        return sum(part.group_sums(weights[mine], group[mine], sums) for part, mine in self._each())

    def tangents(self, signed: Vector, W: Vector, b: Vector, edges: Ints, partial: Vector, heights: Vector) -> None:
        for part, mine in self._each():
            part.tangents(signed[mine], W, b, np.clip(edges - mine.start, 0, part.n), partial, heights)

    def take(self, rows: Ints) -> StackedRows:
        parts = [(part, rows[(rows >= mine.start) & (rows < mine.stop)] - mine.start) for part, mine in self._each()]
        return StackedRows([part.take(own) for part, own in parts if len(own)])

    def part(self, begin: int, end: int) -> StackedRows:
        """The rows from begin to end, read where they are."""
        ranges = [(part, *np.clip([begin - mine.start, end - mine.start], 0, part.n)) for part, mine in self._each()]
        return StackedRows([part.part(int(low), int(high)) for part, low, high in ranges if low < high])

    def fast(self) -> StackedRows:
        return StackedRows([part.fast() for part in self.parts])

    def by_row(self) -> StackedRows:
        return StackedRows([part.by_row() for part in self.parts])

    def squares(self, out: Vector) -> None:
        for part, mine in self._each():
            part.squares(out[mine])

    def descend(self, dual: Descent, order: Array, w: Vector, run: int, seed: int, threads: int) -> Seen:
        seen, stay = [], []
        for part, mine in self._each():
            own = order[(order >= mine.start) & (order < mine.stop)] - np.int32(mine.start)
            now = part.descend(dual.part(mine), own, w, run, seed, threads)
            own += np.int32(mine.start)
            seen.append(now)
            stay.append(own[: now[3]])
        active = np.concatenate(stay)
        order[: len(active)] = active
        gaps, steepest, flattest, _ = zip(*seen, strict=True)
        return sum(gaps), max(steepest), min(flattest), len(active)


def as_rows(X: Any, threads: int = 1) -> DenseRows | SparseRows:
    """The rows of a dense or CSR matrix of float32 or float64."""
    return SparseRows(X, threads) if sparse.issparse(X) else DenseRows(X, threads)


def stack(parts: list[DenseRows | SparseRows]) -> DenseRows | SparseRows:
    """The rows of all parts, which are of one kind, in one matrix. Empties the list as it goes, to need less memory."""
    kind, n, d, threads = type(parts[0]), sum(part.n for part in parts), parts[0].d, parts[0].threads
    entries, row, entry = sum(part.entries for part in parts), 0, 0
    first = parts[0]
    if isinstance(first, DenseRows):
        X = np.empty((n, d), dtype=first.X.dtype)
    else:
        index = np.int32 if entries < 2**31 else np.int64
        values, columns = np.empty(entries, dtype=first.arrays[0].dtype), np.empty(entries, dtype=index)
        pointers = np.zeros(n + 1, dtype=index)
    parts.reverse()
    del first
    while parts:
        part = parts.pop()
        if isinstance(part, DenseRows):
            X[row : row + part.n] = part.X
        else:
            own, where, ends = part.arrays
            values[entry : entry + part.entries], columns[entry : entry + part.entries] = own, where
            pointers[row + 1 : row + part.n + 1] = ends[1:] + entry
            entry += part.entries
        row += part.n
    return DenseRows(X, threads) if kind is DenseRows else SparseRows.of((values, columns, pointers), d, threads)


def in_order(numbers: Ints) -> Ints:
    """The row numbers sorted, each once: np.unique, several times faster."""
    numbers = np.sort(numbers)
    return numbers[np.diff(numbers, prepend=-1) > 0]


def _mostly_zeros(X: Array) -> bool:
    """Whether some of the rows, spread over all, have few values that are not 0."""
    some = X[:: max(1, len(X) // SAMPLE)]
    return bool(np.count_nonzero(some) < SPARSE_BELOW * some.size)
