"""Some of the rows, in memory or mapped, for solvers that read rows in parts; and the planes under their loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.matrix.protocol import Rows
from cutsvm.problem.certificate import UNIT, sum_error
from cutsvm.problem.losses import MarginLoss
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.planes import Planes

Numbers = Sequence[int] | Array  # of rows among all

__all__ = ["Part", "Plane", "Worst", "inside_plane", "label_sums", "no_plane", "worst_of"]


class Plane(NamedTuple):
    """slope . w + offset, a plane under the loss of some rows, and that loss where it touches."""

    slope: Vector
    offset: float
    loss: float
    error: Vector  # what rounding may have cost it, and its size: see `Planes.errors`
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
    return Plane(np.zeros(full.size), 0.0, 0.0, np.zeros(3))


class Worst(NamedTuple):
    """A row inside the margin: by how much, its number among all, the plane of its loss."""

    slack: float
    number: int
    planes: Planes


class Part:
    """Some of the rows: their numbers among all, and the range of their v_i."""

    def __init__(self, matrix: Rows, loss: MarginLoss, numbers: Numbers) -> None:
        self.matrix, self.loss, self.numbers = matrix, loss, numbers
        self.low, self.high = -np.inf, np.inf
        self.totals: Vector | None = None  # sums of s_i (x_i, 1) of either label, if all are inside the margin

    @property
    def n(self) -> int:
        return self.loss.n


def inside_plane(full: Oracle, part: Part, w: Vector) -> Plane:
    """The plane of a part with all rows inside the margin, and what it says at w."""
    assert part.totals is not None
    positive, negative = part.totals
    slope, offset = (negative - positive)[: full.size], float(positive[-1] + negative[-1])
    lost = sum_error(part.n)
    return Plane(slope, offset * (1.0 - lost), float(slope @ w) + offset, offset * np.array([lost, lost, 1.0]))


def worst_of(full: Oracle, part: Part, w: Vector) -> Worst | None:
    """The row of a part that is furthest inside the margin at w, if one is."""
    found, least = None, 0.0
    for mine, rows in part.matrix.blocks():
        y = np.sign(part.loss.signed[mine])
        slacks = np.where(y == 0.0, 0.0, 1.0 - y * full.scores_of(rows, w))
        i = int(slacks.argmax())
        if slacks[i] > least:
            least, found = float(slacks[i]), mine.start + i
    return None if found is None else row_inside(full, part, found, least)


def row_inside(full: Oracle, part: Part, row: int, slack: float) -> Worst:
    """A row of a part, and the plane of its loss."""
    only: Ints = np.array([row])
    own = part.loss.take(only)
    planes = full.restrict(part.matrix.take(only), own).dual_planes(-own.signed)
    return Worst(slack, int(part.numbers[row]), planes)


def label_sums(rows: Rows, signed: Vector) -> Vector:
    """The sums of s_i (x_i, 1) over the positive and over the negative rows."""
    sums = np.zeros((2, rows.d + 1))
    rows.group_sums(signed, (signed < 0.0).astype(np.int32), sums)
    return sums
