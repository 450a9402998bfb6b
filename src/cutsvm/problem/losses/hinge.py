"""Losses that are sums of hinges, max(0, a_ib (t_ib - f_i)) for row i and hinge b; and the hinge loss of two classes.

`core/row_losses.hpp` has each of them, row by row, and `core/hinge.hpp` the loops over rows.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from cutsvm._native import core
from cutsvm._utils import validation
from cutsvm._utils.threads import cached_property
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.problem.certificate import widened
from cutsvm.problem.line_search.breakpoints import SETTINGS, LineSearchSettings, LossLine, lowest
from cutsvm.problem.line_search.intercept import COUNTING, InterceptSettings, counted_intercept
from cutsvm.problem.losses.of_rows import SumOfRowLosses
from cutsvm.problem.planes import Heights
from cutsvm.problem.point import LossSupports


class PiecewiseLinear(SumOfRowLosses):
    """A sum over rows and over their hinges b of max(0, a_ib (t_ib - f_i)); `rows` are these.

    flattest: the smallest |a_ib| above 0 of a row, as a multiple of its weight.
    """

    steepness: float
    flattest: float

    @property
    @abstractmethod
    def row_weights(self) -> Vector:
        """s_i, some of them with the sign of their label."""

    @property
    @abstractmethod
    def unit(self) -> float:
        """How far scores usually are from breakpoints."""

    @abstractmethod
    def breakpoints(self, rows: slice, scores: Vector) -> tuple[Vector, Vector]:
        """The shifts t_ib - f_i that take rows to their breakpoints, and a_ib."""

    @cached_property
    def lightest(self) -> float:
        """The smallest |a_ib| above 0; infinite if there is none."""
        lightest = np.inf
        for part in validation.parts(self.n):
            s = np.abs(self.row_weights[part])
            lightest = min(lightest, float(s[s > 0.0].min(initial=np.inf)))
        return self.flattest * lightest

    def value(self, scores: Vector) -> float:
        return self.rows.value(scores, self.threads)

    def best_shift(
        self, scores: Vector, settings: LineSearchSettings = SETTINGS, counting: InterceptSettings = COUNTING
    ) -> float:
        """argmin over k of the loss of scores + k, in the middle where that is a plateau.

        Slopes within `flat` of the slopes that count there are round-off. Where all rows are about as steep, that may
        as well be `flat` of all of them, and the search is that along any line.
        """
        flat = settings.flat * self.steepness
        if flat <= settings.light * self.lightest:
            return lowest(self.line(scores), flat, settings, self.unit)
        return counted_intercept(lambda rows: self.breakpoints(rows, scores), self.n, settings.flat, counting)

    def slopes(self, scores: Vector, bounds: Ints, out: Vector, *, balanced: bool) -> Heights:
        sums = np.empty((3, len(bounds) - 1))
        share = self._balancing_shares(scores) if balanced else (0.0, 0.0)
        self.rows.shared_slopes(scores, *share, bounds, out, sums, self.threads)
        return Heights(*sums)

    def _balancing_shares(self, scores: Vector) -> tuple[float, float]:
        """Shares of their slope, in [0, 1], that tied hinges with a > 0 and a < 0 get so that all sum to 0."""
        inside, positive, negative = self.rows.balance(scores, self.threads)
        if inside < 0 and positive > 0:
            return min(1.0, -inside / positive), 0.0
        if inside > 0 and negative < 0:
            return 0.0, min(1.0, -inside / negative)
        return 0.0, 0.0

    def line(self, scores: Vector, to: Vector | None = None) -> LossLine:
        arrays = (scores, np.empty(0) if to is None else to)
        return LossLine(self.n, self.rows.evaluate, self.rows.crossing, arrays, self.threads)

    def sift(self, scores: Vector, band: float, group: Array) -> Ints:
        return self.rows.sift(scores, band, group, self.threads)

    def violators(self, scores: Vector, group: Array) -> Ints:
        return self.rows.violators(scores, group, self.threads)


class Hinge(PiecewiseLinear):
    """sum_i s_i max(0, 1 - y_i f_i), with `signed` = y_i s_i, y_i in {-1, 1}, s_i >= 0."""

    supports = LossSupports(dual=True, margin=True, groups=True, batch=core.POINTS)

    def __init__(self, signed: Vector, threads: int = 1) -> None:
        self.signed, self.threads = signed, threads
        self.n = len(signed)
        # The sum of s_i, without another n numbers.
        self.weight = self.total = self.steepness = validation.absolute_sum(signed)

    def _row_loss(self) -> core.RowLoss:
        return core.RowLoss("hinge", self.signed)

    def precise(self, scores: Vector, rest: Vector, error: float = 0.0) -> float:
        total = 0.0
        for part in validation.parts(self.n):
            a = self.signed[part]
            y = np.copysign(1.0, a)
            slack = (1.0 - y * scores[part]) - y * rest[part] + error  # the first difference is exact near 0
            total += float(np.abs(a) @ np.maximum(0.0, slack))
        return widened(total, self.n, error)

    score_bound = unit = offset_unit = 1.0

    def change(self, value: float, shift: float) -> float:
        return self.weight * shift

    def dual_heights(self, g: Vector, bounds: Ints) -> Heights:
        return Heights.of_weights(np.add.reduceat(np.abs(g), bounds[:-1]))

    def breakpoints(self, rows: slice, scores: Vector) -> tuple[Vector, Vector]:
        signed = self.signed[rows]
        return np.sign(signed) - scores[rows], signed

    # For sifting: see `cutsvm.problem.losses.GroupedLoss`. Groups are the rows inside the margin, positive and
    # negative.

    labels = groups = 2
    steepest = flattest = 1.0

    @property
    def row_weights(self) -> Vector:
        return self.signed

    def distances(self, scores: Vector, rows: Ints) -> Vector:
        return np.abs(1.0 - np.sign(self.signed[rows]) * scores[rows])

    def label_mask(self, label: int) -> Array:
        return self.signed < 0.0 if label else self.signed > 0.0

    def label_totals(self) -> Vector:
        excess = float(self.signed.sum())
        return 0.5 * np.array([self.total + excess, self.total - excess])

    def of_signed(self, signed: Vector) -> Hinge:
        return Hinge(signed, self.threads)

    def part(self, rows: slice) -> Hinge:
        return Hinge(self.signed[rows], self.threads)

    def take(self, rows: Ints, factors: Vector | None = None) -> Hinge:
        return Hinge(self.signed[rows] if factors is None else self.signed[rows] * factors, self.threads)

    def target_sums(self, group: Array) -> Vector:
        return np.zeros(self.groups)

    def of_groups(self, groups: Ints, weights: Vector, targets: Vector) -> Hinge:
        return Hinge(np.where(groups == 0, weights, -weights), self.threads)

    def joined(self, parts: list[Hinge]) -> Hinge:
        return Hinge(np.concatenate([part.signed for part in parts]), self.threads)

    def marks(self, scores: Vector, rows: Ints) -> Vector:
        """1.0 for those of the rows that are inside the margin, 0.0 for the others."""
        a = self.signed[rows]
        return (scores[rows] * a < np.abs(a)).astype(np.float64)
