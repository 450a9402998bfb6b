"""The hinge loss for two classes: sum_i s_i max(0, 1 - y_i f_i)."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg.blas import dasum

from cutsvm._native import core
from cutsvm._utils import validation
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.problem.certificate import widened
from cutsvm.problem.line_search.breakpoints import LossLine, best_intercept
from cutsvm.problem.planes import Heights
from cutsvm.problem.point import LossSupports


class Hinge:
    """sum_i s_i max(0, 1 - y_i f_i), with `signed` = y_i s_i, y_i in {-1, 1}, s_i >= 0."""

    supports = LossSupports(dual=True, margin=True, groups=True, batch=core.POINTS)

    def __init__(self, signed: Vector, threads: int = 1) -> None:
        self.signed, self.threads = signed, threads
        self.n = len(signed)
        self.weight = self.total = float(dasum(signed)) if self.n else 0.0  # sum of s_i, without another n numbers

    @cached_property
    def lightest(self) -> float:
        """The smallest s_i above 0; infinite if there is none."""
        lightest = np.inf
        for part in validation.parts(self.n):
            s = np.abs(self.signed[part])
            lightest = min(lightest, float(s[s > 0.0].min(initial=np.inf)))
        return lightest

    @cached_property
    def rows(self) -> core.RowLoss:
        return core.RowLoss("hinge", self.signed)

    def value(self, scores: Vector) -> float:
        return core.hinge_value(scores, self.signed, self.threads)

    def precise(self, scores: Vector, rest: Vector, error: float = 0.0) -> float:
        total = 0.0
        for part in validation.parts(self.n):
            a = self.signed[part]
            y = np.copysign(1.0, a)
            slack = (1.0 - y * scores[part]) - y * rest[part] + error  # the first difference is exact near 0
            total += float(np.abs(a) @ np.maximum(0.0, slack))
        return widened(total, self.n, error)

    reach = 1.0

    def change(self, value: float, shift: float) -> float:
        return self.weight * shift

    def best_shift(self, scores: Vector) -> float:
        return best_intercept(self, scores)

    def slopes(self, scores: Vector, bounds: Ints, out: Vector, *, balanced: bool) -> Heights:
        offsets = np.empty(len(bounds) - 1)
        share = self._balancing_shares(scores) if balanced else (0.0, 0.0)
        core.hinge_slopes(scores, self.signed, *share, bounds, out, offsets, self.threads)
        return Heights.of_weights(offsets)

    def dual_heights(self, g: Vector, bounds: Ints) -> Heights:
        return Heights.of_weights(np.add.reduceat(np.abs(g), bounds[:-1]))

    def _balancing_shares(self, scores: Vector) -> tuple[float, float]:
        """Shares of their weight, in [0, 1], that tied positive and negative rows get so that all sum to 0."""
        inside, positive, negative = core.hinge_balance(scores, self.signed, self.threads)
        if inside < 0 and positive > 0:
            return min(1.0, -inside / positive), 0.0
        if inside > 0 and negative < 0:
            return 0.0, min(1.0, -inside / negative)
        return 0.0, 0.0

    def line(self, scores: Vector, to: Vector | None = None) -> LossLine:
        arrays = (scores, np.empty(0) if to is None else to, self.signed)
        return LossLine(self.n, core.hinge_evaluate, core.hinge_crossing, arrays, self.threads)

    # For sifting: see `cutsvm.problem.losses.GroupedLoss`. Groups are the rows inside the margin, positive and
    # negative.

    labels = groups = 2

    @property
    def row_weights(self) -> Vector:
        return self.signed

    def distances(self, scores: Vector, rows: Ints) -> Vector:
        return np.abs(1.0 - np.sign(self.signed[rows]) * scores[rows])

    def sift(self, scores: Vector, band: float, group: Array) -> Ints:
        return core.hinge_sift(scores, self.signed, band, group, self.threads)

    def violators(self, scores: Vector, group: Array) -> Ints:
        return core.hinge_violators(scores, self.signed, group, self.threads)

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

    def of_groups(self, groups: Ints, weights: Vector) -> Hinge:
        return Hinge(np.where(groups == 0, weights, -weights), self.threads)

    def joined(self, parts: list[Hinge]) -> Hinge:
        return Hinge(np.concatenate([part.signed for part in parts]), self.threads)

    def marks(self, scores: Vector, rows: Ints) -> Vector:
        """1.0 for those of the rows that are inside the margin, 0.0 for the others."""
        a = self.signed[rows]
        return (scores[rows] * a < np.abs(a)).astype(np.float64)
