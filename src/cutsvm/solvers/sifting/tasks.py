"""What a full pass does to some rows: pure functions, whose results are added up in the order of the rows.

They run on each block of a store, or on each part of a collection, wherever it is (`Oracle.each_part`). Numbers drawn
at random depend on the number of the first row, not on what was read before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np

from cutsvm._native import core
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.matrix import RowsInMemory, in_order
from cutsvm.problem.losses import GroupedLoss
from cutsvm.problem.oracle import Oracle
from cutsvm.solvers.sifting.working_set import GroupSums, SomeRows, SomeSums, take_rows

__all__ = ["FoundRows", "SiftResult", "Violators", "add_sift_results", "add_violators", "find_violators", "sift_rows"]


@dataclass(frozen=True, eq=False)
class FoundRows:
    """`many` rows, and copies of them unless there are more than `most` (None: any number), for which there is no room.

    numbers: of the rows among all, if they are needed.
    """

    many: int
    most: int | None
    copies: tuple[SomeRows, ...] = ()
    numbers: tuple[Ints, ...] = ()

    @property
    def fit(self) -> bool:
        return self.most is None or self.many <= self.most

    def add(self, other: FoundRows) -> FoundRows:
        """The rows of both."""
        both = FoundRows(self.many + other.many, self.most)
        if not both.fit:
            return both
        return FoundRows(both.many, both.most, self.copies + other.copies, self.numbers + other.numbers)


@dataclass(frozen=True, eq=False)
class SiftResult:
    """on_line: the loss at `places` between the best point and w. sums: of the groups. near: the rows of the band."""

    on_line: Vector
    sums: SomeSums
    near: FoundRows


@dataclass(frozen=True, eq=False)
class Violators:
    """on_line: the loss at `places` between the best point and w. rows: those on another piece than assumed."""

    on_line: Vector
    rows: FoundRows


def sift_rows(
    first: int,
    part: Oracle,
    *,
    w: Vector,
    best: Vector,
    band: float,
    moments: Vector | None = None,
    places: Vector,
    keep: float,
    seed: int,
    most: int | None,
) -> SiftResult:
    """Groups at w, and the rows within `band` of a change of their slope.

    keep: only this share of them is copied, drawn at random, with 1 / keep times their weight.
    """
    loss, here, on_line = _on_line(part, w, best, places)
    group, near = group_rows(part, here, band, moments)
    times = 1.0
    if keep < 1.0:
        drawn = np.random.default_rng([seed, first]).random(len(near)) < keep
        near, times = near[drawn], 1.0 / keep
    sums = GroupSums(loss, part.matrix.d)
    sums.add(part.matrix, loss, group)
    return SiftResult(on_line, sums.occurring, _found(part, near, lambda: loss.marks(here, near), most, times=times))


def add_sift_results(result: SiftResult, following: SiftResult) -> SiftResult:
    """Of the rows of both."""
    on_line = result.on_line + following.on_line
    return SiftResult(on_line, result.sums.add(following.sums), result.near.add(following.near))


def find_violators(
    first: int,
    part: Oracle,
    *,
    w: Vector,
    best: Vector,
    reference: Vector,
    band: float,
    moments: Vector | None = None,
    joined: Ints,
    places: Vector,
    most: int | None,
) -> Violators:
    """The rows that at w are on another piece than at the reference point, where groups were made.

    joined: numbers of rows, rising, that have joined the working set since then.
    """
    loss, here, on_line = _on_line(part, w, best, places)
    group, _ = group_rows(part, part.scores_of(part.matrix, reference), band, moments)
    low, high = np.searchsorted(joined, [first, first + part.matrix.n])
    group[joined[low:high] - first] = core.KEPT
    rows = loss.violators(here, group)
    return Violators(on_line, _found(part, rows, lambda: group[rows], most, numbers=(rows + first,)))


def add_violators(violators: Violators, following: Violators) -> Violators:
    """Of the rows of both."""
    return Violators(violators.on_line + following.on_line, violators.rows.add(following.rows))


def group_rows(part: Oracle, scores: Vector, band: float, moments: Vector | None) -> tuple[Array, Ints]:
    """The group of each row, and the rows within `band` of a change of their slope, which are KEPT.

    moments: the mean of x_j^2 for each feature, or None. The band of a row is wider by its uncertainty, where that is
    above 1.
    """
    loss, group = cast("GroupedLoss", part.loss), np.empty(part.matrix.n, dtype=np.int32)
    near = loss.sift(scores, band, group)
    if moments is None or band <= 0.0:
        return group, near
    wide = uncertainties(cast("RowsInMemory", part.matrix), moments)
    rows = np.flatnonzero((wide > 1.0) & (group != core.KEPT))
    rows = rows[loss.distances(scores, rows) <= band * wide[rows]]
    group[rows] = core.KEPT
    return group, in_order(np.concatenate([near, rows]))


def uncertainties(rows: RowsInMemory, moments: Vector) -> Vector:
    """r_i = sqrt(sum_j x_ij^2 / moments_j / d), about 1 on average: how uncertain the score of a row is.

    What a sample does not determine well is the weight of a feature that few rows have.
    """
    return np.asarray(np.sqrt(rows.square_sums(1.0 / moments) / rows.d))


def _on_line(part: Oracle, w: Vector, best: Vector, places: Vector) -> tuple[GroupedLoss, Vector, Vector]:
    """The loss of the rows, their scores at w, and the loss at `places` on the line from the best point to w."""
    loss, here = cast("GroupedLoss", part.loss), part.scores_of(part.matrix, w)
    start = part.scores_of(part.matrix, best) if best.any() else np.zeros_like(here)
    return loss, here, loss.line(start, here).evaluate(places).values


def _found(
    part: Oracle,
    rows: Ints,
    marks: Callable[[], Array],
    most: int | None,
    *,
    times: float = 1.0,
    numbers: tuple[Ints, ...] = (),
) -> FoundRows:
    """Copies of these rows of a part, if there are some and there is room."""
    found = FoundRows(len(rows), most)
    if not len(rows) or not found.fit:
        return found
    copied = take_rows(part.matrix, cast("GroupedLoss", part.loss), rows, marks(), times)
    return FoundRows(len(rows), most, (copied,), numbers)
