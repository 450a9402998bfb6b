"""Several matrices as one, row after row."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import TypeVar

import numpy as np
from numpy.typing import DTypeLike

from cutsvm._utils.threads import cached_property
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.matrix.magnitudes import Magnitudes
from cutsvm.matrix.protocol import (
    COMPRESSION,
    Choices,
    CompressionSettings,
    Descent,
    PlaneMemory,
    RowsInMemory,
    Seen,
    Storage,
)

Own = TypeVar("Own", bound="RowsInParts")


def prefix_of(
    parts: Iterable[tuple[slice, RowsInMemory]],
    signed: Vector,
    w: Vector,
    b: float,
    limit: float,
    slope: Vector,
    heights: Vector,
) -> tuple[int, int]:
    """`Rows.prefix` of rows that come in parts."""
    stop = read = 0
    for mine, part in parts:
        here, more = part.prefix(signed[mine], w, b, limit, slope, heights)
        stop, read = mine.start + here, read + more
        if heights[0] > limit:
            break
    return stop, read


class RowsInParts(ABC):
    """Rows that are read part by part: kernels that write to each row of a result, or continue sums."""

    @abstractmethod
    def by_part(self) -> Iterable[tuple[slice, RowsInMemory]]:
        """All rows in their order: the places of a part, and the part."""

    def centred(self: Own) -> tuple[Own, None]:
        """Themselves: a copy might not fit."""
        return self, None

    def scores(self, w: Vector, b: float, out: Vector) -> None:
        for mine, part in self.by_part():
            part.scores(w, b, out[mine])

    def compensated_scores(self, w: Vector, b: float, out: Vector, rest: Vector) -> None:
        for mine, part in self.by_part():
            part.compensated_scores(w, b, out[mine], rest[mine])

    def scores_many(self, W: Vector, b: Vector, out: Vector) -> None:
        for mine, part in self.by_part():
            part.scores_many(W, b, out[mine])

    def tangents(self, signed: Vector, W: Vector, b: Vector, edges: Ints, partial: Vector, heights: Vector) -> None:
        for mine, part in self.by_part():
            part.tangents(signed[mine], W, b, np.clip(edges - mine.start, 0, part.n), partial, heights)

    def prefix(
        self, signed: Vector, w: Vector, b: float, limit: float, slope: Vector, heights: Vector
    ) -> tuple[int, int]:
        return prefix_of(self.by_part(), signed, w, b, limit, slope, heights)


class StackedRows(RowsInParts):
    """Rows of several kinds, one after the other."""

    storage = Storage(memory=True, copies=False)
    room: int | None = None  # rows that a solver may copy; None: any number
    held = True  # there is memory for a few numbers of each row
    plane_memory: PlaneMemory | None = None  # None: any

    def __init__(self, parts: Sequence[RowsInMemory]) -> None:
        self.parts = parts
        self.edges = np.cumsum([0, *(part.n for part in parts)])
        self.n, self.d = int(self.edges[-1]), parts[0].d
        self.entries = sum(part.entries for part in parts)

    def vector(self, shape: int | tuple[int, int], dtype: DTypeLike = np.float64) -> Array:
        return self.parts[0].vector(shape, dtype)  # in a file, if that is where the first part's would be

    def by_part(self) -> list[tuple[slice, RowsInMemory]]:
        return [(slice(*self.edges[k : k + 2]), part) for k, part in enumerate(self.parts)]

    def blocks(self) -> Iterator[tuple[slice, RowsInMemory]]:
        """All rows, some at a time: where they are, and the rows."""
        for mine, part in self.by_part():
            for own, rows in part.blocks():
                yield slice(int(mine.start) + own.start, int(mine.start) + own.stop), rows

    @cached_property
    def magnitudes(self) -> Magnitudes:
        return reduce(Magnitudes.union, (part.magnitudes for part in self.parts if part.n))

    def accumulate(self, old: Vector, fresh: Vector, bounds: Ints, sums: Vector, moved: Vector) -> int:
        read = 0
        for mine, part in self.by_part():
            inside = np.clip(bounds - mine.start, 0, part.n)
            read += part.accumulate(old[mine], fresh[mine], inside, sums, moved)
        return read

    def accumulate_choices(self, choices: Choices, bounds: Ints, sums: Vector, moved: Vector) -> int:
        read = 0
        for mine, part in self.by_part():
            inside = np.clip(bounds - mine.start, 0, part.n)
            read += part.accumulate_choices(choices.part(mine), inside, sums, moved)
        return read

    def group_sums(self, weights: Vector, group: Array, sums: Vector) -> int:
        return sum(part.group_sums(weights[mine], group[mine], sums) for mine, part in self.by_part())

    def take(self, rows: Ints, out: StackedRows | None = None) -> StackedRows:
        parts = [(part, rows[(rows >= mine.start) & (rows < mine.stop)] - mine.start) for mine, part in self.by_part()]
        return StackedRows([part.take(own) for part, own in parts if len(own)])

    def part(self, begin: int, end: int) -> StackedRows:
        """The rows from begin to end, read where they are."""
        ranges = [(part, *np.clip([begin - mine.start, end - mine.start], 0, part.n)) for mine, part in self.by_part()]
        return StackedRows([part.part(int(low), int(high)) for part, low, high in ranges if low < high])

    @cached_property
    def mean_square(self) -> float:
        """The mean of |x_i|^2, estimated from up to 1000 evenly spaced rows."""
        some = self.take(np.unique(np.linspace(0, self.n - 1, 1000).astype(np.int64)))
        squares = np.empty(some.n)
        some.squares(squares)
        return float(squares.mean())

    def fast(self, settings: CompressionSettings = COMPRESSION) -> StackedRows:
        parts = [part.fast(settings) for part in self.parts]
        return self if all(map(operator.is_, parts, self.parts)) else StackedRows(parts)

    def weighted_sums(self, weights: Array) -> Array:
        return np.asarray(sum(part.weighted_sums(weights[mine]) for mine, part in self.by_part()))

    def square_sums(self, weights: Vector) -> Vector:
        return np.concatenate([part.square_sums(weights) for part in self.parts])

    def gram(self, weights: Vector) -> Array:
        return np.asarray(sum(part.gram(weights[mine]) for mine, part in self.by_part()))

    def squared_sums(self, weights: Vector) -> Vector:
        return np.asarray(sum(part.squared_sums(weights[mine]) for mine, part in self.by_part()))

    def with_threads(self, threads: int) -> StackedRows:
        return StackedRows([part.with_threads(threads) for part in self.parts])

    def by_row(self) -> StackedRows:
        return StackedRows([part.by_row() for part in self.parts])

    def squares(self, out: Vector) -> None:
        for mine, part in self.by_part():
            part.squares(out[mine])

    def descend(self, dual: Descent, order: Array, w: Vector, run: int, seed: int, threads: int) -> Seen:
        seen, stay = [], []
        for mine, part in self.by_part():
            own = order[(order >= mine.start) & (order < mine.stop)] - np.int32(mine.start)
            now = part.descend(dual.part(mine), own, w, run, seed, threads)
            own += np.int32(mine.start)
            seen.append(now)
            stay.append(own[: now[3]])
        active = np.concatenate(stay)
        order[: len(active)] = active
        gaps, steepest, flattest, _ = zip(*seen, strict=True)
        return sum(gaps), max(steepest), min(flattest), len(active)
