"""The square of the pairwise hinge loss: sum over the pairs of s_i s_j max(0, 1 - (f_i - f_j))^2."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from cutsvm._native import core
from cutsvm._utils.threads import cached_property
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.problem.certificate import UNIT, widened
from cutsvm.problem.line_search.breakpoints import LineValues
from cutsvm.problem.line_search.curvature import by_curvature
from cutsvm.problem.losses.pairwise import PairLoss, Recent
from cutsvm.problem.losses.smooth import squared_change
from cutsvm.problem.planes import Heights
from cutsvm.problem.point import LossSupports


class Squares(NamedTuple):
    """Slopes by row; by query the weight of the pairs that count, their loss, the offset of the plane with these
    slopes, the sum of the absolute slopes, and what rounding errors are a share of (core/pair_squares.hpp)."""

    slopes: Vector
    weights: Vector
    losses: Vector
    offsets: Vector
    sizes: Vector
    magnitudes: Vector


class SquaredPairLine:
    """The loss along a line of scores, f + k (to - f). Each k takes two sorts, one of them for the curvature."""

    exact = True

    def __init__(self, loss: SquaredPairwise, scores: Vector, to: Vector) -> None:
        self.n, self._loss, self._scores, self._to, self._direction = loss.n, loss, scores, to, to - scores

    def at(self, k: float) -> tuple[float, float, float]:
        """Value, slope and curvature at k."""
        scores = np.empty(self.n)
        core.blend(self._scores, self._to, k, scores, self._loss.threads)  # as the solver's next point will be
        here = self._loss.squares(scores)
        bend = self._direction @ self._loss.curvatures(scores).product(self._direction)
        return float(here.losses.sum()), float(here.slopes @ self._direction), float(bend)

    def evaluate(self, ks: Vector) -> LineValues:
        values, slopes, _ = zip(*map(self.at, ks.tolist()), strict=True)
        return LineValues(np.array(values), np.array(slopes))

    def minimise(self, tilt: float, curvature: float, guess: float) -> float:
        return by_curvature(self.at, tilt, curvature, guess)


class PairCurvatures:
    """See `cutsvm.problem.losses.Curvatures`: of a query the Laplacian of the graph whose edges are the pairs that
    count, with the weights 2 s_i s_j."""

    def __init__(self, loss: SquaredPairwise, scores: Vector) -> None:
        self._loss, self._scores = loss, scores

    @cached_property
    def diagonal(self) -> Vector:
        return self._loss.products(self._scores, np.zeros(self._loss.n))[1]

    def mixed(self, first: int, second: int) -> Vector:
        raise ValueError("a row has one score")

    def product(self, change: Vector) -> Vector:
        return self._loss.products(self._scores, change)[0]


class SquaredPairwise(PairLoss):
    """sum over the pairs of a query with y_i > y_j of s_i s_j max(0, 1 - (f_i - f_j))^2."""

    supports = LossSupports(pairs=True, smooth=True)

    def __init__(self, y: Array, weights: Vector, starts: Ints, threads: int = 1) -> None:
        super().__init__(y, weights, starts, threads)
        self._recent: Recent[Squares] = Recent()

    def _square(self, scores: Vector, margin: float) -> Squares:
        """Of the pairs with f_i - f_j < margin, in O(n log n)."""
        slopes, sums = np.empty(self.n), np.empty((len(self.levels), 5))
        rows = (self.ranks, self.weights, self.starts, self.levels)
        core.pair_squares(*rows, scores, margin, slopes, sums, self._memory, self.threads)
        return Squares(slopes, *sums.T)

    def squares(self, scores: Vector) -> Squares:
        """At a margin of 1."""
        return self._recent(scores, lambda scores: self._square(scores, 1.0))

    def value(self, scores: Vector) -> float:
        return float(self.squares(scores).losses.sum())

    def precise(self, scores: Vector, rest: Vector, error: float = 0.0) -> float:
        if self.n <= self.settings.every_pair:
            total = 0.0
            for first, last in pairwise(self.starts.tolist()):
                s = self.weights[first:last]
                total += float(s @ self._shortfalls(scores, rest, error, first, last) ** 2 @ s)
            return widened(total, 2 * self.n, error)
        if not error:
            found = self._square(scores, 1.0)
            return float(found.losses.sum() + found.slopes @ rest)
        # By a wider margin: no difference of two scores is off by more than twice the error of one.
        largest = max(float(scores.max()), -float(scores.min()))
        found = self._square(scores, 1.0 + 2.0 * error + 8.0 * UNIT * (1.0 + largest))
        return float(found.losses.sum()) + 2.0 * self._sum_error * float(found.magnitudes.sum())

    def change(self, value: float, shift: float) -> float:
        return squared_change(value, self.weight, shift)

    def slopes(self, scores: Vector, bounds: Ints, out: Vector, *, balanced: bool) -> Heights:
        here = self.squares(scores)
        np.copyto(out, here.slopes)
        return Heights(*self._by_shard(np.column_stack([here.offsets, here.sizes, here.magnitudes]), bounds).T)

    def slope_errors(self, heights: Heights) -> Vector:
        """See core/pair_squares.hpp; the margin is 1, so that a square is no less than what is squared."""
        return 2.0 * self._sum_error * heights.magnitudes

    def value_error(self, size: float) -> float:
        """Differences of sums of scores are what losses are made of (core/pair_squares.hpp)."""
        return 4.0 * self._sum_error * self.weight * (1.0 + 2.0 * size) ** 2

    def products(self, scores: Vector, v: Vector) -> tuple[Vector, Vector]:
        """The second derivatives at these scores times v, and their diagonal, in O(n log n)."""
        product, diagonal = np.empty(self.n), np.empty(self.n)
        rows = (self.ranks, self.weights, self.starts, self.levels)
        core.pair_products(*rows, scores, 1.0, v, product, diagonal, self._memory, self.threads)
        return product, diagonal

    def curvatures(self, scores: Vector) -> PairCurvatures:
        return PairCurvatures(self, scores)

    def line(self, scores: Vector, to: Vector | None = None) -> SquaredPairLine:
        return SquaredPairLine(self, scores, scores + 1.0 if to is None else to)
