"""Some of the rows, in memory or on disk, for solvers that read rows in parts.

Part
    rows in memory; its planes are updated by the rows that changed sides.
StoredPart
    rows on disk, read once from end to end: scores and plane of a block are computed while it is in memory. Nothing is
    kept, so a part takes no memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

import numpy as np

from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.matrix.protocol import Rows, RowsOnDisk
from cutsvm.problem.certificate import UNIT, sum_error
from cutsvm.problem.losses import MarginLoss
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.planes import Planes
from cutsvm.problem.point import Point

Numbers = Sequence[int] | Array  # of rows among all

__all__ = ["Part", "Plane", "StoredPart", "Worst", "label_sums", "no_plane"]


class Plane(NamedTuple):
    """slope . w + offset, a plane under the loss of some rows, and that loss where it touches."""

    slope: Vector
    offset: float
    loss: float
    error: Vector  # what rounding may have cost it: see `Planes.errors`
    whole: bool = False  # those are all rows

    def plus(self, other: Plane) -> Plane:
        """The plane of the rows of both."""
        offset, loss = self.offset + other.offset, self.loss + other.loss
        error = self.error + other.error + 2.0 * UNIT * offset
        return Plane(self.slope + other.slope, offset * (1.0 - UNIT), loss, error)

    def planes(self) -> Planes:
        return Planes(self.slope[None], np.array([self.offset]), self.error[None])


def no_plane(full: Oracle) -> Plane:
    """That of no rows."""
    return Plane(np.zeros(full.size), 0.0, 0.0, np.zeros(2))


class Worst(NamedTuple):
    """The row that is furthest inside the margin: by how much, its number among all, the plane of its loss."""

    slack: float
    number: int
    planes: Planes


class Part:
    """Some of the rows: their numbers among all, and the range of their v_i."""

    def __init__(self, full: Oracle, matrix: Rows, loss: MarginLoss, numbers: Numbers) -> None:
        self.full, self.matrix, self.loss, self.numbers = full, matrix, loss, numbers
        self.low, self.high = -np.inf, np.inf
        self.totals: Vector | None = None  # sums of s_i (x_i, 1) of either label, if all are inside the margin
        self._oracle: Oracle | None = None
        self._point: Point | None = None

    @property
    def n(self) -> int:
        return self.loss.n

    def scored(self, w: Vector) -> Iterator[tuple[int, Oracle, Point]]:
        """The rows read once: where each piece begins, its risk, and w with its scores."""
        if self._oracle is None:
            self._oracle = self.full.restrict(self.matrix, self.loss)
        self._point = self._oracle.score(w, out=self._point)
        yield 0, self._oracle, self._point

    def plane(self, w: Vector) -> Plane:
        """The plane that touches the loss of these rows at w."""
        total = no_plane(self.full)
        for _, oracle, point in self.scored(w):
            planes = oracle.planes(point)
            here = Plane(planes.slopes[0], float(planes.offsets[0]), oracle.value(point), planes.errors[0])
            total = total.plus(here)
        return total

    def worst(self, w: Vector) -> Worst | None:
        """The row that is furthest inside the margin at w, if one is."""
        worst = None
        for begin, oracle, point in self.scored(w):
            loss = cast("MarginLoss", oracle.loss)
            y = np.sign(loss.signed)
            slacks = np.where(y == 0.0, 0.0, 1.0 - y * point.scores)
            i = int(slacks.argmax())
            if slacks[i] > (0.0 if worst is None else worst.slack):
                worst = Worst(float(slacks[i]), int(self.numbers[begin + i]), _of_row(oracle, loss, i))
        return worst

    def inside(self, w: Vector) -> Plane:
        """The plane with all rows inside the margin, and what it says at w."""
        assert self.totals is not None
        positive, negative = self.totals
        slope, offset = (negative - positive)[: self.full.size], float(positive[-1] + negative[-1])
        lost = sum_error(self.n)
        return Plane(slope, offset * (1.0 - lost), float(slope @ w) + offset, np.full(2, lost * offset))


class StoredPart(Part):
    """The same of rows of a store, from `begin` on."""

    matrix: RowsOnDisk

    def __init__(self, full: Oracle, matrix: RowsOnDisk, loss: MarginLoss, numbers: Numbers, begin: int = 0) -> None:
        super().__init__(full, matrix, loss, numbers)
        self._begin = begin

    def scored(self, w: Vector) -> Iterator[tuple[int, Oracle, Point]]:
        for mine, rows in self.matrix.run(self._begin, self._begin + self.n):
            at = slice(mine.start - self._begin, mine.stop - self._begin)
            oracle = self.full.restrict(rows, self.loss.part(at))
            yield at.start, oracle, oracle.score(w)


def label_sums(rows: Rows, signed: Vector) -> Vector:
    """The sums of s_i (x_i, 1) over the positive and over the negative rows."""
    sums = np.zeros((2, rows.d + 1))
    rows.group_sums(signed, (signed < 0.0).astype(np.int32), sums)
    return sums


def _of_row(oracle: Oracle, loss: MarginLoss, i: int) -> Planes:
    only: Ints = np.array([i])
    own = loss.take(only)
    return oracle.restrict(oracle.matrix.take(only), own).dual_planes(-own.signed)
