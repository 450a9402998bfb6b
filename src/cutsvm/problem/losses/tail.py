"""The tail loss: max(0, 1 - m(f)), where m(f) is the mean of the lowest scores.

m(f) is the mean over the nu-share of the rows, by weight, with the lowest scores: the lower-tail mean, or conditional
value at risk, of the scores. It is concave, and for S = sum_i s_i

    m(f) = min over alpha of sum_i alpha_i f_i,    0 <= alpha_i <= s_i / (nu S),  sum_i alpha_i = 1
         = max over rho of rho - sum_i s_i max(0, rho - f_i) / (nu S)

(R. T. Rockafellar, S. Uryasev: Optimization of conditional value-at-risk, J. of Risk 2, 2000). The best rho is the
nu-quantile of the scores, which a selection finds in O(n). Any alpha that is allowed makes a plane under the loss, with
slopes -alpha and offset 1, and any rho an upper bound of it: rounding errors of the quantile do no harm to either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cutsvm._native import core
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.problem.certificate import UNIT, gamma
from cutsvm.problem.line_search.breakpoints import LineValues
from cutsvm.problem.line_search.tangents import by_tangents
from cutsvm.problem.planes import Heights
from cutsvm.problem.point import LossSupports


@dataclass(frozen=True)
class TailSettings:
    """How the tail is cut off.

    tie: scores that differ by no more than this share of the scores in the tail (`Tail.size`) are equal, and share what
        is left of the tail by weight: round-off must not choose among slopes.
    full: a tail that lacks no more than this share of its weight is full.
    terms: additions that a term of a sum goes through, at most: NumPy adds pairs of blocks of 128 numbers.
    small: number of scores that are sorted rather than searched.
    """

    tie: float = 1e-12
    full: float = 1e-12
    terms: int = 256
    small: int = 64


SETTINGS = TailSettings()


class Tail(NamedTuple):
    """The nu-quantile of some scores, and the mean of the lowest ones."""

    quantile: float
    mean: float

    @property
    def size(self) -> float:
        """How large the scores in the tail are. Others may be far larger, and would say nothing about it."""
        return abs(self.quantile) + (self.quantile - self.mean)


class TailLine:
    """The loss along a line of scores. Every two rows may change places on it: breakpoints are not counted."""

    exact = False

    def __init__(self, loss: TailMean, scores: Vector, to: Vector) -> None:
        self.n = loss.n
        self._loss, self._scores, self._to, self._direction = loss, scores, to, to - scores

    def evaluate(self, ks: Vector) -> LineValues:
        slopes, values, scores = np.empty(len(ks)), np.empty(len(ks)), np.empty(self.n)
        for k, step in enumerate(ks):
            core.blend(self._scores, self._to, step, scores, self._loss.threads)  # as the solver's next point will be
            mean = self._loss.tail(scores).mean
            values[k] = max(0.0, 1.0 - mean)
            slopes[k] = -self._loss.mean_slope(scores, self._direction) if mean < 1.0 else 0.0
        return LineValues(values, slopes)

    def minimise(self, tilt: float, curvature: float, guess: float) -> float:
        return by_tangents(self, tilt, curvature, guess)


class TailMean:
    """max(0, 1 - m(f)) of rows with weights s_i >= 0, not all 0; nu in (0, 1]."""

    supports = LossSupports()
    total = weight = score_bound = 1.0  # of the alpha_i
    offset_unit = 0.0  # every plane has the same offset

    def __init__(self, weights: Vector, nu: float, threads: int = 1, settings: TailSettings = SETTINGS) -> None:
        self.n, self.nu, self.threads, self.settings = len(weights), nu, threads, settings
        largest = float(weights.max())
        # Weights that are all the same need not be looked at: counts are enough, and are exact.
        self._weights: Vector | None = None if float(weights.min()) == largest else weights / largest
        self._size = nu * (float(self.n) if self._weights is None else float(self._weights.sum()))
        self._last: list[tuple[Vector, Tail]] = []

    def tail(self, scores: Vector) -> Tail:
        """Quantile and mean. Solvers ask for value, slopes and a line at the same scores: the last two are kept."""
        for k, (known, found) in enumerate(self._last):
            if known[0] == scores[0] and np.array_equal(known, scores):  # the first tells most of them apart
                self._last.insert(0, self._last.pop(k))
                return found
        rho = quantile(scores, self._weights, self._size * (1.0 - self.settings.full), self.settings.small)
        tail = Tail(rho, self.mean_at(scores, rho))
        self._last = [(scores.copy(), tail), *self._last[:1]]
        return tail

    def mean_at(self, scores: Vector, rho: float, rest: Vector | None = None) -> float:
        """rho - sum_i s_i max(0, rho - f_i) / (nu S): m(f) at the quantile, and no more than m(f) at any other rho."""
        below = scores < rho
        short = rho - scores[below]
        if rest is not None:
            short = np.maximum(0.0, short - rest[below])
        lacking = short.sum() if self._weights is None else (self._weights[below] * short).sum()
        return rho - float(lacking) / self._size

    def threshold(self, scores: Vector) -> float:
        """The quantile, less what makes two scores equal: rows at the quantile are not below it, whatever rounds."""
        found = self.tail(scores)
        return found.quantile - self.settings.tie * found.size

    def _parts(self, scores: Vector) -> tuple[Array, Array, float]:
        """Which rows are in the tail, which ones at its end, and the weight that the latter have in it."""
        found = self.tail(scores)
        tie = self.settings.tie * found.size
        below, near = scores < found.quantile - tie, np.abs(scores - found.quantile) <= tie
        left = max(0.0, self._size - self._weight_of(below))
        return below, near, min(left, self._weight_of(near))

    def _weight_of(self, rows: Array) -> float:
        return float(np.count_nonzero(rows) if self._weights is None else self._weights[rows].sum())

    def shares(self, scores: Vector, out: Vector) -> None:
        """out = alpha, with m(f) = alpha . f up to ties."""
        below, near, left = self._parts(scores)
        whole = self._weight_of(near)
        np.multiply(below, 1.0 / self._size, out=out)
        out[near] = left / whole / self._size if whole > 0.0 else 0.0
        if self._weights is not None:
            out *= self._weights

    def mean_slope(self, scores: Vector, direction: Vector) -> float:
        """The derivative of m(f + k t) in k on the right of k = 0: rows that tie leave the tail by their t."""
        below, near, left = self._parts(scores)
        own = None if self._weights is None else self._weights[near]
        inside = direction[below]
        gained = float(inside.sum() if self._weights is None else (self._weights[below] * inside).sum())
        if left > 0.0:
            t = direction[near]
            last = quantile(t, own, left * (1.0 - self.settings.full), self.settings.small)
            short = np.maximum(0.0, last - t)
            gained += left * last - float(short.sum() if own is None else (own * short).sum())
        return gained / self._size

    def value(self, scores: Vector) -> float:
        return max(0.0, 1.0 - self.tail(scores).mean)

    def precise(self, scores: Vector, rest: Vector, error: float = 0.0) -> float:
        """See `cutsvm.problem.losses.Loss`."""
        found = self.tail(scores)
        mean = self.mean_at(scores, found.quantile, rest)
        if error:
            error += gamma(self.settings.terms) * abs(found.quantile - mean)
            error += 4.0 * UNIT * (1.0 + abs(found.quantile) + abs(mean))
        return max(0.0, 1.0 - mean + error)

    def change(self, value: float, shift: float) -> float:
        return shift

    def best_shift(self, scores: Vector) -> float:
        """The smallest k for which the loss of scores + k is 0."""
        return 1.0 - self.tail(scores).mean

    def slopes(self, scores: Vector, bounds: Ints, out: Vector, *, balanced: bool) -> Heights:
        """See `RowLoss.slopes`: out = -alpha, and the offset is 1. There is one shard: m is no sum over rows."""
        self.shares(scores, out)
        np.negative(out, out=out)
        return Heights(np.ones(1), np.ones(1), np.zeros(1))

    @property
    def slope_error(self) -> float:
        """At least sum_i |error of alpha_i|: the distance to some alpha that is allowed.

        With weights, S and the weight of the tail are sums, and so is each alpha_i off by a share of itself; counts are
        exact.
        """
        return 8.0 * (UNIT if self._weights is None else gamma(self.settings.terms))

    def line(self, scores: Vector, to: Vector | None = None) -> TailLine:
        return TailLine(self, scores, scores + 1.0 if to is None else to)


def quantile(scores: Vector, weights: Vector | None, size: float, small: int = SETTINGS.small) -> float:
    """The smallest score for which the weight of the rows with no larger one is at least `size`; None: weights of 1.

    In O(n): each step splits the rows at their median, and keeps one side.
    """
    if weights is None:
        place = min(max(int(np.ceil(size)) - 1, 0), len(scores) - 1)
        return float(np.partition(scores, place)[place])
    if not weights.all():
        scores, weights = scores[weights > 0.0], weights[weights > 0.0]
    while len(scores) > small:
        half = len(scores) // 2
        median = np.partition(scores, half)[half]
        below = scores < median
        lower = float(weights[below].sum())
        if lower >= size:
            scores, weights = scores[below], weights[below]
            continue
        at = scores == median
        lower += float(weights[at].sum())
        if lower >= size:
            return float(median)
        above = ~(below | at)
        if not above.any():
            return float(median)
        scores, weights, size = scores[above], weights[above], size - lower
    order = np.argsort(scores, kind="stable")
    place = int(np.searchsorted(np.cumsum(weights[order]), size))
    return float(scores[order[min(place, len(order) - 1)]])
