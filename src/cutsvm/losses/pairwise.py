"""The pairwise hinge loss: sum over the pairs of a query with y_i > y_j of s_i s_j max(0, 1 - (f_i - f_j))."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cutsvm._native import core
from cutsvm.types import Array, Ints, Vector

_ABOVE_ZERO = 5e-324  # the smallest margin: a difference below it is 0 or less


class Counted(NamedTuple):
    """By query: the weight of the pairs that are closer than a margin or in the wrong order, and their loss."""

    weights: Vector
    losses: Vector


@dataclass(frozen=True)
class PairLook:
    """See `cutsvm.losses.Look`."""

    values: Vector
    slopes: Vector


class PairLine:
    """The loss along a line of scores. It has a kink for each pair, so they are not counted: a look sorts at each k."""

    def __init__(self, loss: Pairwise, scores: Vector, to: Vector) -> None:
        self.n = loss.n
        self._loss, self._scores, self._direction = loss, scores, to - scores

    def look(self, ks: Vector) -> PairLook:
        slopes, values = np.empty(len(ks)), np.empty(len(ks))
        g, scores = np.empty(self.n), np.empty(self.n)
        for m, k in enumerate(ks):
            np.multiply(self._direction, k, out=scores)
            np.add(self._scores, scores, out=scores)
            values[m] = self._loss.evaluate(scores, g).losses.sum()
            slopes[m] = g @ self._direction
        return PairLook(values, slopes)


class Pairwise:
    """The loss of rows that stand query by query: query q has the rows starts[q]..starts[q + 1].

    Only the order of the values y within a query counts; rows of one query with the same y make no pair.
    """

    def __init__(self, y: Array, weights: Vector, starts: Ints, threads: int = 1) -> None:
        self.n, self.weights, self.threads = len(y), weights, threads
        self.starts: Ints = np.ascontiguousarray(starts, dtype=np.int64)
        self.ranks, self.levels = _levels(y, self.starts)
        # At zero scores every pair counts, with a loss of 1.
        self.pairs = self.evaluate(np.zeros(self.n), np.empty(self.n)).weights
        self.total = float(self.pairs.sum())

    def evaluate(self, scores: Vector, out: Vector, margin: float = 1.0) -> Counted:
        """out = the slopes g, in O(n log n). A query's loss is margin x weight + g . scores."""
        counted = Counted(np.empty(len(self.levels)), np.empty(len(self.levels)))
        core.pair_slopes(
            self.ranks, self.weights, self.starts, self.levels, scores, margin, out, *counted, self.threads
        )
        return counted

    def value(self, scores: Vector) -> float:
        return float(self.evaluate(scores, np.empty(self.n)).losses.sum())

    def slopes(self, scores: Vector, bounds: Ints, out: Vector, *, balanced: bool) -> Vector:
        """See `Hinge.slopes`. Bounds lie between queries; slopes sum to 0 in each, so they are always balanced."""
        weights = np.append(0.0, np.cumsum(self.evaluate(scores, out).weights))
        return np.diff(weights[np.searchsorted(self.starts, bounds)])

    def line(self, scores: Vector, to: Vector | None = None) -> PairLine:
        return PairLine(self, scores, scores + 1.0 if to is None else to)

    def misordered(self, scores: Vector) -> Vector:
        """By query: the weight of the pairs in the wrong order, those with equal scores at one half."""
        g = np.empty(self.n)
        wrong, ties = self.evaluate(scores, g, 0.0).weights, self.evaluate(scores, g, _ABOVE_ZERO).weights
        return 0.5 * (wrong + ties)


def _levels(y: Array, starts: Ints) -> tuple[Array, Ints]:
    """y as 0, 1, ... within each query, and how many of them each query has."""
    query = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.lexsort((y, query))
    sorted_y, sorted_query = y[order], query[order]
    first = np.ones(len(y), dtype=bool)  # of a query
    first[1:] = sorted_query[1:] != sorted_query[:-1]
    rises = first.copy()
    rises[1:] |= sorted_y[1:] != sorted_y[:-1]
    counted = np.cumsum(rises)
    ranks = np.empty(len(y), dtype=np.int32)
    ranks[order] = counted - np.maximum.accumulate(np.where(first, counted, 0))
    levels: Ints = np.zeros(len(starts) - 1, dtype=np.int64)
    np.maximum.at(levels, query, ranks + 1)
    return ranks, levels
