"""The hinge loss for two classes: sum_i s_i max(0, 1 - y_i f_i)."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg.blas import dasum

from cutsvm._native import core
from cutsvm._utils import validation
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.problem.certificate import widened
from cutsvm.problem.losses.piecewise import PiecewiseLinear
from cutsvm.problem.planes import Heights
from cutsvm.problem.point import LossSupports


class Hinge(PiecewiseLinear):
    """sum_i s_i max(0, 1 - y_i f_i), with `signed` = y_i s_i, y_i in {-1, 1}, s_i >= 0."""

    supports = LossSupports(dual=True, margin=True, groups=True, batch=core.POINTS)

    def __init__(self, signed: Vector, threads: int = 1) -> None:
        self.signed, self.threads = signed, threads
        self.n = len(signed)
        self.rows = core.RowLoss("hinge", signed)
        # The sum of s_i, without another n numbers.
        self.weight = self.total = self.steepness = float(dasum(signed)) if self.n else 0.0

    @cached_property
    def lightest(self) -> float:
        """The smallest s_i above 0; infinite if there is none."""
        lightest = np.inf
        for part in validation.parts(self.n):
            s = np.abs(self.signed[part])
            lightest = min(lightest, float(s[s > 0.0].min(initial=np.inf)))
        return lightest

    def precise(self, scores: Vector, rest: Vector, error: float = 0.0) -> float:
        total = 0.0
        for part in validation.parts(self.n):
            a = self.signed[part]
            y = np.copysign(1.0, a)
            slack = (1.0 - y * scores[part]) - y * rest[part] + error  # the first difference is exact near 0
            total += float(np.abs(a) @ np.maximum(0.0, slack))
        return widened(total, self.n, error)

    reach = unit = offset_unit = 1.0

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
    steepest = 1.0

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
