"""Sums over rows that planes are made of, updated by the rows whose coefficient has changed.

An update adds and subtracts rows, so its rounding error grows with all the weight ever moved: a sum is recomputed once
that is `stale` times the weight that the plane has itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.matrix import Choices, Rows

__all__ = ["ChoiceSums", "RowSums"]


@dataclass(eq=False)
class RowSums:
    """sums[p] = sum over the rows i of shard p of g_i (x_i, 1), for coefficients g that change from call to call."""

    matrix: Rows
    bounds: Ints
    size: int
    stale: float
    calls: int = 0  # updates since all sums were last recomputed
    sums: Vector = field(init=False)
    moved: Vector = field(init=False)  # by shard, the sum of |coefficients| ever added

    def __post_init__(self) -> None:
        shards = len(self.bounds) - 1
        self.sums, self.moved = np.zeros((shards, self.size)), np.zeros(shards)

    @cached_property
    def _coefficients(self) -> Vector:
        """g of the last call, 0 at first."""
        last: Vector = self.matrix.vector(self.matrix.n)
        last.fill(0.0)
        return last

    @cached_property
    def workspace(self) -> Vector:
        """Memory for the next g."""
        return self.matrix.vector(self.matrix.n)

    def update(self, g: Vector, offsets: Vector) -> int:
        """The sums for g; returns how many rows were read. offsets: the weight that each plane has itself."""
        stale = np.flatnonzero(self.moved > self.stale * offsets)
        self.calls = 1 if len(stale) == len(offsets) else self.calls + 1
        for p in stale:
            self.sums[p], self.moved[p] = 0.0, 0.0
            self._coefficients[self.bounds[p] : self.bounds[p + 1]] = 0.0
        return self.matrix.accumulate(self._coefficients, g, self.bounds, self.sums, self.moved)


@dataclass(eq=False)
class ChoiceSums:
    """The same for several classes: a row that chooses class k adds s_i x_i to class k and subtracts it from its own.

    sums[p] has the features of all classes side by side.
    """

    matrix: Rows
    bounds: Ints
    classes: int
    y: Array
    stale: float
    added: int = 0  # rows added or subtracted since all sums were last recomputed
    sums: Vector = field(init=False)
    moved: Vector = field(init=False)

    def __post_init__(self) -> None:
        shards = len(self.bounds) - 1
        self.sums, self.moved = np.zeros((shards, self.classes * self.matrix.d)), np.zeros(shards)

    @cached_property
    def _choices(self) -> Array:
        """The classes chosen in the last call; at first each row's own, which makes all sums 0."""
        last = self.matrix.vector(self.matrix.n, np.int32)
        np.copyto(last, self.y)
        return last

    @cached_property
    def workspace(self) -> Array:
        """Memory for the next choices."""
        return self.matrix.vector(self.matrix.n, np.int32)

    def update(self, choices: Array, weights: Vector, offsets: Vector) -> int:
        """The sums for these choices; returns how many rows were read."""
        stale = np.flatnonzero(self.moved > self.stale * offsets)
        if len(stale) == len(offsets):
            self.added = 0
        for p in stale:
            mine = slice(self.bounds[p], self.bounds[p + 1])
            self.sums[p], self.moved[p], self._choices[mine] = 0.0, 0.0, self.y[mine]
        change = Choices(self.y, weights, self._choices, choices, self.classes)
        read = self.matrix.accumulate_choices(change, self.bounds, self.sums, self.moved)
        self.added += 2 * read
        return read
