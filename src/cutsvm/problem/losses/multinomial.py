"""The multinomial logistic loss: sum_i s_i (log sum_k exp(f_ik) - f_iy)."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, softmax

from cutsvm._native import core
from cutsvm._utils import validation
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.problem.certificate import exact_difference, widened
from cutsvm.problem.line_search.curvature import CurvatureLine
from cutsvm.problem.planes import Heights
from cutsvm.problem.point import LossSupports


class MultinomialLine(CurvatureLine):
    """The loss along a line of scores, f + k (to - f)."""

    def __init__(self, loss: Multinomial, scores: Vector, to: Vector) -> None:
        super().__init__(loss.n)
        self._loss, self._scores, self._to = loss, scores, to

    def at(self, k: float) -> tuple[float, float, float]:
        loss = self._loss
        return core.multinomial_along(self._scores, self._to, loss.y, loss.weights, k, loss.threads)


class ClassCurvatures:
    """See `cutsvm.problem.losses.Curvatures`: s_i (diag(p_i) - p_i p_i'), p_i the probabilities of a row."""

    def __init__(self, probabilities: Vector, weights: Vector) -> None:
        self._scaled, self._probabilities = probabilities * weights[:, None], probabilities

    @property
    def diagonal(self) -> Vector:
        diagonal: Vector = self._scaled * (1.0 - self._probabilities)
        return diagonal

    def mixed(self, first: int, second: int) -> Vector:
        mixed: Vector = self._scaled[:, first] * self._probabilities[:, second]
        return mixed

    def product(self, change: Vector) -> Vector:
        mean = np.einsum("ik,ik->i", self._probabilities, change)
        product: Vector = self._scaled * (change - mean[:, None])
        return product


class Multinomial:
    """sum_i s_i (log sum_k exp(f_ik) - f_iy) for labels y_i in 0..classes-1 and weights s_i >= 0."""

    supports = LossSupports(smooth=True)
    score_bound = offset_unit = 1.0

    def __init__(self, y: Array, weights: Vector, classes: int, threads: int = 1) -> None:
        self.y: Array = np.ascontiguousarray(y, dtype=np.int32)
        self.weights, self.classes, self.threads = weights, classes, threads
        self.n = len(weights)
        if self.n and not 0 <= self.y.min() <= self.y.max() < classes:
            raise ValueError(f"labels from 0 to {classes - 1} expected")
        self.weight = float(weights.sum())
        self.total = self.weight * float(np.log(classes))

    def value(self, scores: Vector) -> float:
        return core.multinomial_value(scores, self.y, self.weights, self.threads)

    def change(self, value: float, shift: float) -> float:
        return self.weight * shift

    def precise(self, scores: Vector, rest: Vector, error: float = 0.0) -> float:
        total = 0.0
        for part in validation.parts(self.n):
            f, more, own = scores[part], rest[part], self.y[part][:, None]
            ahead, lost = exact_difference(f, np.take_along_axis(f, own, axis=1))
            lost += more - np.take_along_axis(more, own, axis=1)
            heights = ahead + (lost + 2.0 * error)
            np.put_along_axis(heights, own, 0.0, axis=1)
            total += float(self.weights[part] @ logsumexp(heights, axis=1))
        return widened(total, self.n, error)

    def class_slopes(self, scores: Vector, out: Vector) -> Heights:
        """out[i, k] = s_i (p_ik - [k = y_i]), p the probabilities; and the offset of their plane."""
        sums = core.multinomial_slopes(scores, self.y, self.weights, out, self.threads)
        return Heights(*np.array(sums)[:, None])

    def curvatures(self, scores: Vector) -> ClassCurvatures:
        return ClassCurvatures(softmax(scores, axis=1), self.weights)

    def line(self, scores: Vector, to: Vector | None = None) -> MultinomialLine:
        if to is None:
            raise ValueError("a line towards other scores expected")
        return MultinomialLine(self, scores, to)

    def take(self, rows: Ints, factors: Vector | None = None) -> Multinomial:
        weights = self.weights[rows]
        return Multinomial(self.y[rows], weights if factors is None else weights * factors, self.classes, self.threads)
