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

from cutsvm._utils.types import Array, Vector
from cutsvm.cluster.parts import LabelFacts
from cutsvm.problem.losses import Loss

__all__ = ["BinaryMaker", "JointMaker", "LossMaker", "TargetMaker"]


class LossMaker(ABC):
    """See above."""

    @abstractmethod
    def loss(self, y: Array, weights: Vector) -> Loss:
        """The loss of rows with these labels or targets, and sample weights, which it may keep."""

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

    def loss(self, y: Array, weights: Vector) -> Loss:
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

    def loss(self, y: Array, weights: Vector) -> Loss:
        numbers = self.numbers(y)
        weights *= self.factors[numbers]
        return self.make(numbers.astype(np.int32), weights, len(self.classes))


@dataclass(frozen=True, eq=False)
class TargetMaker(LossMaker):
    """A loss of residuals: make(targets less `shift`, weights, **parameters)."""

    make: Callable[..., Loss]
    shift: float
    parameters: dict[str, Any]

    def loss(self, y: Array, weights: Vector) -> Loss:
        return self.make(np.asarray(y, dtype=np.float64) - self.shift, weights, **self.parameters)

    def summary(self, labels: LabelFacts) -> Loss:
        """Two rows, with the smallest and the largest target, and the weight and mean of all.

        The loss at f = 0 is convex in the target, so that of each row is at most what its shares of these two have.
        """
        total, summed = float(labels.sums[0]), float(labels.sums[1])
        width = labels.high - labels.low
        upper = min(max((summed - labels.low * total) / width, 0.0), total) if width > 0.0 else 0.0
        return self.loss(np.array([labels.low, labels.high]), np.array([total - upper, upper]))
