"""Losses with a continuous slope: squared hinge, logistic, squared epsilon-insensitive, Huber.

Two classes, m = y f:       squared hinge  s max(0, 1 - m)^2,    logistic  s log(1 + exp(-m))
Targets t, r = f - t:       squared epsilon-insensitive  s max(0, |r| - epsilon)^2,
                            Huber  s r^2 / 2 where |r| <= epsilon, s epsilon (|r| - epsilon / 2) beyond

`core/row_losses.hpp` has each of them, row by row, and `core/smooth.hpp` the loops over rows.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from cutsvm._native import core
from cutsvm._utils import validation
from cutsvm._utils.threads import cached_property
from cutsvm._utils.types import Ints, Vector
from cutsvm.problem.certificate import widened
from cutsvm.problem.line_search.curvature import CurvatureLine, root
from cutsvm.problem.losses.of_rows import SumOfRowLosses
from cutsvm.problem.planes import Heights
from cutsvm.problem.point import LossSupports


class SmoothLine(CurvatureLine):
    """The loss along a line of scores, f + k (to - f), or f + k if `to` is empty."""

    def __init__(self, loss: RowwiseLoss, scores: Vector, to: Vector) -> None:
        super().__init__(loss.n)
        self._loss, self._scores, self._to = loss, scores, to

    def at(self, k: float) -> tuple[float, float, float]:
        return self._loss.rows.along(self._scores, self._to, k, self._loss.threads)


class RowCurvatures(NamedTuple):
    """See `cutsvm.problem.losses.Curvatures`: one number for each row."""

    diagonal: Vector

    def mixed(self, first: int, second: int) -> Vector:
        raise ValueError("a row has one score")

    def product(self, change: Vector) -> Vector:
        return np.multiply(self.diagonal, change, out=change)


class RowwiseLoss(SumOfRowLosses):
    """What these losses share: sums over rows of a function of one score; `rows` is that function."""

    supports = LossSupports(dual=True, smooth=True)
    weight: float
    offset_unit = 1.0

    @cached_property
    def total(self) -> float:
        total = 0.0
        for part in validation.parts(self.n):
            zeros = np.zeros(min(part.stop, self.n) - part.start)
            total += float(self._furthest(part, zeros, zeros, 0.0).sum())
        return total

    @property
    @abstractmethod
    def score_bound(self) -> float:
        """See `cutsvm.problem.losses.Loss`."""

    @abstractmethod
    def change(self, value: float, shift: float) -> float:
        """See `cutsvm.problem.losses.Loss`."""

    @abstractmethod
    def _furthest(self, part: slice, scores: Vector, rest: Vector, error: float) -> Vector:
        """The losses of some rows of scores + rest, or of scores that differ from these by `error`, if larger."""

    def value(self, scores: Vector) -> float:
        return self.rows.value(scores, self.threads)

    def precise(self, scores: Vector, rest: Vector, error: float = 0.0) -> float:
        total = sum(
            float(self._furthest(part, scores[part], rest[part], error).sum()) for part in validation.parts(self.n)
        )
        return widened(total, self.n, error)

    def slopes(self, scores: Vector, bounds: Ints, out: Vector, *, balanced: bool) -> Heights:
        """At the best intercept they sum to 0 as they are, up to rounding."""
        sums = np.empty((3, len(bounds) - 1))
        self.rows.slopes(scores, bounds, out, sums, self.threads)
        return Heights(*sums)

    def dual_heights(self, g: Vector, bounds: Ints) -> Heights:
        sums = np.empty((3, len(bounds) - 1))
        self.rows.dual_heights(g, bounds, sums, self.threads)
        return Heights(*sums)

    def curvatures(self, scores: Vector) -> RowCurvatures:
        diagonal = np.empty(self.n)
        self.rows.curvatures(scores, diagonal, self.threads)
        return RowCurvatures(diagonal)

    def line(self, scores: Vector, to: Vector | None = None) -> SmoothLine:
        return SmoothLine(self, scores, np.empty(0) if to is None else to)

    def best_shift(self, scores: Vector) -> float:
        return root(self.line(scores).at, self.weight)


class LabelLoss(RowwiseLoss):
    """A loss of two classes, with `signed` = y_i s_i, y_i in {-1, 1}, s_i >= 0."""

    name: str

    def __init__(self, signed: Vector, threads: int = 1) -> None:
        self.signed, self.threads, self.n = signed, threads, len(signed)
        self.weight = validation.absolute_sum(signed)

    def _row_loss(self) -> core.RowLoss:
        return core.RowLoss(self.name, self.signed)

    @property
    def row_weights(self) -> Vector:
        return self.signed

    def take(self, rows: Ints, factors: Vector | None = None) -> LabelLoss:
        return type(self)(self.signed[rows] if factors is None else self.signed[rows] * factors, self.threads)

    def _margins(self, part: slice, scores: Vector, rest: Vector, error: float) -> tuple[Vector, Vector]:
        """Weights, and 1 less the margins, at their largest; the first difference is exact near 0."""
        y = np.copysign(1.0, self.signed[part])
        return np.abs(self.signed[part]), (1.0 - y * scores) - y * rest + error


class SquaredHinge(LabelLoss):
    """sum_i s_i max(0, 1 - y_i f_i)^2"""

    name = "squared_hinge"
    score_bound = 1.0  # at the best b rows of both classes are inside the margin, or none is

    def change(self, value: float, shift: float) -> float:
        return squared_change(value, self.weight, shift)

    def _furthest(self, part: slice, scores: Vector, rest: Vector, error: float) -> Vector:
        s, slack = self._margins(part, scores, rest, error)
        return np.asarray(s * np.maximum(0.0, slack) ** 2)


class Logistic(LabelLoss):
    """sum_i s_i log(1 + exp(-y_i f_i))"""

    name = "logistic"

    @cached_property
    def score_bound(self) -> float:
        """With S+ and S- the classes' weights, and all scores at least f > 0, the slopes sum to 0 only if S+ exp(-f) >=
        S- / 2: so the smallest score is at most log(2 S+ / S-); and the largest at least -log(2 S- / S+)."""
        excess = float(self.signed.sum())
        lighter, heavier = 0.5 * (self.weight - abs(excess)), 0.5 * (self.weight + abs(excess))
        return 1.01 * float(np.log(2.0 * heavier / lighter)) if lighter > 1e-300 else np.inf

    def change(self, value: float, shift: float) -> float:
        return self.weight * shift

    def _furthest(self, part: slice, scores: Vector, rest: Vector, error: float) -> Vector:
        s, slack = self._margins(part, scores, rest, error)
        return s * np.logaddexp(0.0, slack - 1.0)


class TargetLoss(RowwiseLoss):
    """A loss of residuals f_i - t_i, with weights s_i >= 0."""

    name: str

    def __init__(self, targets: Vector, weights: Vector, epsilon: float, threads: int = 1) -> None:
        self.targets, self.weights, self.epsilon, self.threads = targets, weights, epsilon, threads
        self.n = len(targets)
        self.weight = validation.absolute_sum(weights)

    def _row_loss(self) -> core.RowLoss:
        return core.RowLoss(self.name, self.targets, self.weights, self.epsilon, 1.0, 1.0)

    @property
    def row_weights(self) -> Vector:
        return self.weights

    @cached_property
    def score_bound(self) -> float:
        """At the best b residuals are of both signs, or 0."""
        return max(float(self.targets.max(initial=0.0)), -float(self.targets.min(initial=0.0))) + self.epsilon

    def take(self, rows: Ints, factors: Vector | None = None) -> TargetLoss:
        weights = self.weights[rows]
        return type(self)(
            self.targets[rows], weights if factors is None else weights * factors, self.epsilon, self.threads
        )

    def _residuals(self, part: slice, scores: Vector, rest: Vector, error: float) -> tuple[Vector, Vector]:
        """Weights, and the absolute residuals, at their largest."""
        return self.weights[part], np.abs((scores - self.targets[part]) + rest) + error


class SquaredTube(TargetLoss):
    """sum_i s_i max(0, |f_i - t_i| - epsilon)^2"""

    name = "squared_tube"

    def change(self, value: float, shift: float) -> float:
        return squared_change(value, self.weight, shift)

    def _furthest(self, part: slice, scores: Vector, rest: Vector, error: float) -> Vector:
        s, r = self._residuals(part, scores, rest, error)
        return np.asarray(s * np.maximum(0.0, r - self.epsilon) ** 2)


class Huber(TargetLoss):
    """sum_i s_i H(f_i - t_i), H(r) = r^2 / 2 where |r| <= epsilon, epsilon (|r| - epsilon / 2) beyond."""

    name = "huber"

    def change(self, value: float, shift: float) -> float:
        return self.weight * self.epsilon * shift

    def _furthest(self, part: slice, scores: Vector, rest: Vector, error: float) -> Vector:
        s, r = self._residuals(part, scores, rest, error)
        inside = np.minimum(r, self.epsilon)
        return s * inside * (r - 0.5 * inside)


def squared_change(value: float, weight: float, shift: float) -> float:
    """Of sum_i s_i e_i^2, if each e_i changes by at most `shift`: sum s_i e_i <= sqrt(sum s_i  sum s_i e_i^2)."""
    return shift * (2.0 * float(np.sqrt(weight * max(value, 0.0))) + weight * shift)
