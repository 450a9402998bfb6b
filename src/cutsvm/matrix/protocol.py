"""The data matrix X as an oracle reads it: scores of all rows, and sums of rows, however X is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from cutsvm._native import core
from cutsvm._utils.memory import planes_in_files
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.matrix.magnitudes import Magnitudes

# Returned by an epoch of dual coordinate descent: the duality gap of the rows visited, the largest and the smallest
# projected gradient, and the number of rows that stay active.
Seen = tuple[float, float, float, int]


class Descent(NamedTuple):
    """The dual problem of an epoch of coordinate descent; see core/dcd.hpp."""

    loss: core.RowLoss
    q: Vector
    C: float
    unit: float
    above: float
    below: float
    alpha: Vector

    def part(self, rows: slice) -> Descent:
        loss = self.loss.part(rows.start, rows.stop)
        return self._replace(loss=loss, q=self.q[rows], alpha=self.alpha[rows])


class Choices(NamedTuple):
    """The class that each row chooses, and the one that it chose before; see core/many.hpp."""

    y: Array
    weights: Vector
    old: Array
    fresh: Array
    classes: int

    def part(self, rows: slice) -> Choices:
        return Choices(self.y[rows], self.weights[rows], self.old[rows], self.fresh[rows], self.classes)


@dataclass(frozen=True)
class CompressionSettings:
    """When a dense matrix is copied to CSR: an entry then costs 8 bytes and a gather in place of 4 bytes in order."""

    max_density: float = 0.3  # share of values that are not 0
    min_features: int = 64  # with fewer there is little to gain
    sample_rows: int = 1000  # evenly spaced rows that the density is estimated from
    max_memory: float = 0.25  # share of the machine's memory that the copy may take


COMPRESSION = CompressionSettings()


@dataclass(frozen=True)
class Storage:
    """How rows are stored.

    memory: they can be read one at a time, in any order. disk: they are read block by block. sparse: as CSR.
    copies: `take` copies some of them.
    """

    memory: bool = False
    disk: bool = False
    sparse: bool = False
    copies: bool = True


class PlaneMemory(NamedTuple):
    """Bytes that planes and their reduced problem may take; `allocate` makes arrays that do not count, in files."""

    size: int
    allocate: Callable[[tuple[int, int]], Vector]

    def allocator(self, size: int) -> Callable[[tuple[int, int]], Vector]:
        """What allocates arrays of planes of this size: in files if they are wide."""
        return self.allocate if planes_in_files(size) else np.zeros


class Rows(Protocol):
    """n rows x_i of d features; `entries` values are read by one pass.

    room: number of rows that a solver may copy; None: any number. held: there is memory for a few numbers of each row.
    plane_memory: for planes and their reduced problem; None: any.
    """

    @property
    def storage(self) -> Storage: ...
    @property
    def n(self) -> int: ...
    @property
    def d(self) -> int: ...
    @property
    def entries(self) -> int: ...
    @property
    def room(self) -> int | None: ...
    @property
    def held(self) -> bool: ...
    @property
    def plane_memory(self) -> PlaneMemory | None: ...

    def vector(self, shape: int | tuple[int, int], dtype: DTypeLike = np.float64) -> Array:
        """Memory for numbers of each row, not initialised."""

    def scores(self, w: Vector, b: float, out: Vector) -> None:
        """out[i] = x_i . w + b"""

    def compensated_scores(self, w: Vector, b: float, out: Vector, rest: Vector) -> None:
        """out[i] + rest[i] = x_i . w + b in twice the digits; out[i] is that rounded once."""

    def centred(self) -> tuple[Rows, Vector | None]:
        """Rows less a row m, and m, where that leaves more digits; else the rows themselves and None."""

    @property
    def magnitudes(self) -> Magnitudes:
        """Bounds on the values of the rows."""

    def accumulate(self, old: Vector, fresh: Vector, bounds: Ints, sums: Vector, moved: Vector) -> int:
        """sums[p] += sum over shard p of (fresh_i - old_i) (x_i, 1); moved[p] += sum of |fresh_i - old_i|.

        Then old = fresh. Returns the number of rows read: those whose coefficient changed.
        """

    def scores_many(self, W: Vector, b: Vector, out: Vector) -> None:
        """out[i, k] = x_i . W[k] + b[k]"""

    def accumulate_choices(self, choices: Choices, bounds: Ints, sums: Vector, moved: Vector) -> int:
        """sums[p], class by class, += the change over the rows of shard p from the choice `old` to `fresh`.

        A row that chose k contributes s_i x_i to class k and -s_i x_i to its own. Then old = fresh. Returns the number
        of rows read.
        """

    def group_sums(self, weights: Vector, group: Array, sums: Vector) -> int:
        """sums[g] += sum of |weights_i| (x_i, 1) over the rows of group g; rows of a group below 0 are left out.

        Returns the number of rows read.
        """

    def tangents(self, signed: Vector, W: Vector, b: Vector, edges: Ints, partial: Vector, heights: Vector) -> None:
        """The hinge loss of each piece of rows and its tangent plane, at several points; see core/tangents.hpp."""

    def prefix(
        self, signed: Vector, w: Vector, b: float, limit: float, slope: Vector, heights: Vector
    ) -> tuple[int, int]:
        """The hinge loss of the first rows, until it exceeds a limit; see core/prefix.hpp.

        slope += sum of -signed_i (x_i, 1), heights += (loss, sum of |signed_i|), over those of them inside the margin.
        Returns how many rows that is of, and how many were read for it.
        """

    def take(self, rows: Ints) -> RowsInMemory:
        """A copy of these rows, given in rising order."""

    def blocks(self) -> Iterator[tuple[slice, RowsInMemory]]:
        """All rows, some at a time: their places, and the rows."""

    def by_row(self) -> Rows:
        """The same rows in a form that can be read one row at a time, whose |x_i|^2 is the sum of squared values."""

    def squares(self, out: Vector) -> None:
        """out[i] = |x_i|^2"""

    def fast(self, settings: CompressionSettings = COMPRESSION) -> Rows:
        """The same rows in the form that is read fastest; themselves if that is how they are stored."""


Block = TypeVar("Block", bound="RowsInMemory")


class RowsInMemory(Rows, Protocol):
    """Rows that can be read one at a time, in any order."""

    @property
    def mean_square(self) -> float:
        """The mean of |x_i|^2, estimated."""

    def take(self, rows: Ints, out: Any = None) -> RowsInMemory:
        """A copy of these rows. out: as many rows of this kind that are not used any more; their memory may be."""

    def part(self: Block, begin: int, end: int) -> Block:
        """The rows from begin to end, read where they are."""

    def by_row(self) -> RowsInMemory: ...

    def fast(self, settings: CompressionSettings = COMPRESSION) -> RowsInMemory: ...

    def weighted_sums(self, weights: Array) -> Array:
        """sum_i weights[i, k] x_i for each column k of the weights: one row for each."""

    def square_sums(self, weights: Vector) -> Vector:
        """sum_j weights_j x_ij^2 for each row."""

    def gram(self, weights: Vector) -> Array:
        """sum_i weights_i (x_i, 1) (x_i, 1)', weights >= 0: a symmetric matrix of d + 1 rows."""

    def squared_sums(self, weights: Vector) -> Vector:
        """Its diagonal."""

    def with_threads(self: Block, threads: int) -> Block:
        """The same rows, read by another number of threads."""

    def descend(self, dual: Descent, order: Array, w: Vector, run: int, seed: int, threads: int) -> Seen:
        """One epoch of dual coordinate descent over the rows `order`; see core/dcd.hpp."""


class RowsOnDisk(Rows, Protocol):
    """Rows that are read block by block, and can be copied to other places on disk."""

    @property
    def row_squares(self) -> Vector:
        """|x_i|^2 of all rows, mapped."""

    def run(self, begin: int, end: int) -> Iterator[tuple[slice, RowsInMemory]]:
        """The rows from begin to end, some at a time: their places, and the rows."""

    def temporary_stores(self) -> TemporaryStores: ...


# Which file rows go to, the rows, a value for each, and its number among all rows; and what a file then has, mapped.
RowBatch = tuple[int, RowsInMemory, Vector, Ints]
StoredBatch = tuple[RowsInMemory, Vector, Ints]


class TemporaryStores(Protocol):
    """Copies of rows on disk; `row_bytes` is the mean size of a row."""

    @property
    def row_bytes(self) -> float: ...

    def write(self, many: int, pending: int, batches: Iterable[RowBatch]) -> list[StoredBatch | None]:
        """Writes `many` files, which replace the previous ones; together they buffer `pending` bytes of rows."""

    def check_intact(self) -> None:
        """Raise DataError if a mapped page could not be read."""

    def close(self) -> None:
        """Removes the files."""


def cut_blocks(blocks: Iterable[tuple[slice, Block]], most: int) -> Iterator[tuple[slice, Block]]:
    """The same rows, at most this number at a time."""
    for mine, rows in blocks:
        if rows.n <= most:
            yield mine, rows
            continue
        for begin in range(0, rows.n, most):
            end = min(rows.n, begin + most)
            yield slice(mine.start + begin, mine.start + end), rows.part(begin, end)
