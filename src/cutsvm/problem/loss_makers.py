"""LossMaker: the loss of any rows of a problem, made from their y and weights where the rows are.

It is small, can be pickled, and makes the same loss in every process. Of all rows together a client knows only sums;
`summary` makes a loss of very few rows that agrees with that of all rows in what a solver asks for: weight, total,
labels, how it changes with the scores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.cluster.grains import Grain, RowBlock
from cutsvm.cluster.parts import LabelFacts, Parts
from cutsvm.problem.losses import Loss, PairLoss

__all__ = ["BinaryMaker", "JointMaker", "LossMaker", "PairFacts", "PairMaker", "TargetMaker", "find_pairs"]


class LossMaker(ABC):
    """See above."""

    def used(self, block: RowBlock) -> Ints | None:
        """The rows of a block that the loss is of, at least one; None: all."""
        return None

    @abstractmethod
    def loss(self, y: Array, weights: Vector, qid: Array | None = None) -> Loss:
        """The loss of rows with these labels or targets, and sample weights, which it may keep; qid: their queries."""

    def labels(self, label: int) -> Array:
        """The labels y of the rows that have this label of the loss; none where that may be any."""
        return np.empty(0)

    @abstractmethod
    def summary(self, labels: LabelFacts) -> Loss:
        """The loss of very few rows with the weight of all rows, their labels and extremes, and no smaller total."""


@dataclass(frozen=True, eq=False)
class _ClassMaker(LossMaker):
    """classes: labels with weight, rising. factors: of their weights."""

    classes: Array
    factors: Vector

    def numbers(self, y: Array) -> Array:
        """The number of each row's class. Rows of other labels have no weight, and may have any."""
        return np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)

    def summary(self, labels: LabelFacts) -> Loss:
        """One row for each class, with the weight of all its rows: a loss at equal scores is the same."""
        return self.loss(labels.labels, labels.weights.copy())


@dataclass(frozen=True, eq=False)
class BinaryMaker(_ClassMaker):
    """One class against the others: make(y_i s_i), y_i = 1 for rows of class number `positive`, else -1."""

    make: Callable[..., Loss]
    positive: int

    def labels(self, label: int) -> Array:
        is_positive = np.arange(len(self.classes)) == self.positive
        chosen: Array = self.classes[~is_positive if label else is_positive]
        return chosen

    def loss(self, y: Array, weights: Vector, qid: Array | None = None) -> Loss:
        numbers = self.numbers(y)
        weights *= self.factors[numbers]
        np.negative(weights, out=weights, where=numbers != self.positive)
        return self.make(weights)


@dataclass(frozen=True, eq=False)
class JointMaker(_ClassMaker):
    """All classes in one problem: make(numbers of the classes, weights, how many there are)."""

    make: Callable[..., Loss]

    def labels(self, label: int) -> Array:
        return self.classes[label : label + 1]

    def loss(self, y: Array, weights: Vector, qid: Array | None = None) -> Loss:
        numbers = self.numbers(y)
        weights *= self.factors[numbers]
        return self.make(numbers.astype(np.int32), weights, len(self.classes))


@dataclass(frozen=True, eq=False)
class TargetMaker(LossMaker):
    """A loss of residuals: make(targets less `shift`, weights, **parameters)."""

    make: Callable[..., Loss]
    shift: float
    parameters: dict[str, Any]

    def loss(self, y: Array, weights: Vector, qid: Array | None = None) -> Loss:
        return self.make(np.asarray(y, dtype=np.float64) - self.shift, weights, **self.parameters)

    def summary(self, labels: LabelFacts) -> Loss:
        """Two rows, with the smallest and the largest target, and the weight and mean of all.

        The loss at f = 0 is convex in the target, so that of each row is at most what its shares of these two have.
        """
        total, summed = float(labels.sums[0]), float(labels.sums[1])
        width = labels.high - labels.low
        upper = min(max((summed - labels.low * total) / width, 0.0), total) if width > 0.0 else 0.0
        return self.loss(np.array([labels.low, labels.high]), np.array([total - upper, upper]))


@dataclass(frozen=True)
class PairFacts:
    """Of some queries: the weight of their pairs, how many there are, those without a pair, the rows of the longest.

    scaled: products of two weights could leave the range of floating-point numbers.
    """

    weight: float
    queries: int
    skipped: int
    longest: int
    scaled: bool


@dataclass(frozen=True, eq=False)
class PairMaker(LossMaker):
    """The loss of the pairs of queries, whose rows are consecutive: make(y, weights, starts). facts: of all rows."""

    make: type[PairLoss]
    facts: PairFacts | None = None

    def used(self, block: RowBlock) -> Ints | None:
        """Rows with weight of queries that make a pair; the first row if there are none."""
        rows = _paired(block)[0]
        if not len(rows):
            return np.zeros(1, dtype=np.int64)
        return None if len(rows) == block.n else rows

    def loss(self, y: Array, weights: Vector, qid: Array | None = None) -> Loss:
        return self.make(y, weights, _query_starts(qid, len(y)))

    def summary(self, labels: LabelFacts) -> Loss:
        """Two rows, whose pair has the weight of all pairs."""
        assert self.facts is not None
        return self.make.standing_for(self.facts.weight, self.facts.longest)


def find_pairs(parts: Parts, maker: PairMaker) -> PairFacts:
    """Of all queries: one round."""
    found: PairFacts = parts.fold(_pairs_of, _add_pairs, maker=maker)
    return found


def _pairs_of(grain: Grain, *, maker: PairMaker) -> PairFacts:
    rows, queries, skipped = _paired(grain.block)
    if not len(rows):
        return PairFacts(0.0, queries, skipped, 0, scaled=False)
    y, qid = grain.block.y, grain.block.qid
    assert y is not None
    loss = maker.make(y[rows], grain.weights[rows], _query_starts(None if qid is None else qid[rows], len(rows)))
    return PairFacts(loss.total, queries, skipped, loss.longest, scaled=loss.unit != 1.0)


def _add_pairs(*several: PairFacts) -> PairFacts:
    return PairFacts(
        sum(one.weight for one in several),
        sum(one.queries for one in several),
        sum(one.skipped for one in several),
        max(one.longest for one in several),
        any(one.scaled for one in several),
    )


def _paired(block: RowBlock) -> tuple[Ints, int, int]:
    """The rows with weight of queries that make a pair; how many queries have weight, and how many of them no pair."""
    assert block.y is not None
    rows = np.arange(block.n) if block.weights is None else np.flatnonzero(block.weights > 0.0)
    if not len(rows):
        return rows, 0, 0
    y, starts = block.y[rows], _query_starts(None if block.qid is None else block.qid[rows], len(rows))
    paired = np.minimum.reduceat(y, starts[:-1]) < np.maximum.reduceat(y, starts[:-1])
    return rows[np.repeat(paired, np.diff(starts))], len(paired), int(np.count_nonzero(~paired))


def _query_starts(qid: Array | None, n: int) -> Ints:
    """Where the queries of n rows, at least one, start, and n; without ids all rows are one query."""
    inner = np.empty(0, dtype=np.int64) if qid is None else np.flatnonzero(qid[1:] != qid[:-1]) + 1
    return np.concatenate([[0], inner, [n]]).astype(np.int64)
