"""The pairwise hinge loss: sum over the pairs of a query with y_i > y_j of s_i s_j max(0, 1 - (f_i - f_j))."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutsvm._native import core
from cutsvm.types import Array, Ints, Vector


@dataclass(frozen=True)
class PairLook:
    """See `cutsvm.losses.Look`; kinks are too many to count."""

    values: Vector
    slopes: Vector


class PairLine:
    """The loss along a line of scores. A look is a sort and two sweeps for each point."""

    def __init__(self, loss: Pairwise, scores: Vector, to: Vector) -> None:
        self.n = loss.n
        self._loss, self._scores, self._direction = loss, scores, to - scores

    def look(self, ks: Vector) -> PairLook:
        slopes, values = np.empty(len(ks)), np.empty(len(ks))
        g = np.empty(self.n)
        for m, k in enumerate(ks):
            f = self._scores + k * self._direction
            values[m] = self._loss.slopes_at(f, g).sum() + float(g @ f)
            slopes[m] = float(g @ self._direction)
        return PairLook(values, slopes)


class Pairwise:
    """The loss of rows that stand query by query: query q has the rows starts[q]..starts[q + 1].

    Only the order of the values y within a query counts; rows of one query with the same y make no pair.
    """

    def __init__(self, y: Array, weights: Vector, starts: Ints, threads: int = 1) -> None:
        self.n, self.weights, self.threads = len(y), weights, threads
        self.starts: Ints = np.ascontiguousarray(starts, dtype=np.int64)
        self.levels_of_rows, self.levels = _levels(y, self.starts)
        # At zero scores every pair counts, with a loss of 1: their weight is that of all pairs.
        self.total = float(self.slopes_at(np.zeros(self.n), np.empty(self.n)).sum())

    def slopes_at(self, scores: Vector, out: Vector) -> Vector:
        """out = the slopes; returns the weight of each query's pairs that count. loss_q = weight_q + out . scores."""
        weights = np.empty(len(self.levels))
        core.pair_slopes(
            self.levels_of_rows, self.weights, self.starts, self.levels, scores, out, weights, self.threads
        )
        return weights

    def value(self, scores: Vector) -> float:
        g = np.empty(self.n)
        return float(self.slopes_at(scores, g).sum() + g @ scores)

    def slopes(self, scores: Vector, bounds: Ints, out: Vector, *, balanced: bool) -> Vector:
        """See `Hinge.slopes`; bounds lie between queries."""
        weights = self.slopes_at(scores, out)
        first = np.searchsorted(self.starts, bounds[:-1])
        return np.add.reduceat(np.append(weights, 0.0), first) * (np.diff(bounds) > 0)

    def line(self, scores: Vector, to: Vector | None = None) -> PairLine:
        if to is None:
            raise ValueError("a line towards other scores expected")
        return PairLine(self, scores, to)


def _levels(y: Array, starts: Ints) -> tuple[Array, Ints]:
    """y as 0, 1, ... within each query, and how many of them each query has."""
    query = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.lexsort((y, query))
    rises = np.empty(len(y), dtype=bool)
    fresh = np.empty(len(y), dtype=bool)
    if len(y):
        ys, qs = y[order], query[order]
        fresh[0] = rises[0] = True
        fresh[1:] = qs[1:] != qs[:-1]
        rises[1:] = fresh[1:] | (ys[1:] != ys[:-1])
    counted = np.cumsum(rises)
    base = np.maximum.accumulate(np.where(fresh, counted, 0))
    ranks = np.empty(len(y), dtype=np.int32)
    ranks[order] = counted - base
    levels = np.zeros(len(starts) - 1, dtype=np.int64)
    np.maximum.at(levels, query, ranks + 1)
    return ranks, levels
