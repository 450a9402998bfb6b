"""Folds of the rows of a collection, by their numbers among all rows: the same for any parts.

The problem of a fold is that of all rows, with weight 0 for those that it holds out, as on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cutsvm._utils.types import Array, Ints
from cutsvm.cluster.facts import add_labels, labels_of
from cutsvm.cluster.grains import Grain
from cutsvm.cluster.parts import Drawn, LabelFacts, Parts
from cutsvm.cluster.protocol import Column, Executor
from cutsvm.cluster.rows import Targets

__all__ = ["DataScale", "FoldFacts", "FoldParts", "RowFolds", "find_folds", "find_scale"]


@dataclass(frozen=True)
class RowFolds:
    """Which of `many` folds holds out each of n rows.

    shuffled: the one that a hash of the row's number says (splitmix64 of `seed` and the number), so that each fold
    has about its share of every class. Otherwise consecutive rows, as in scikit-learn's `KFold`.
    """

    many: int
    n: int
    shuffled: bool
    seed: int = 0

    def of(self, numbers: Ints) -> Ints:
        """The fold of each of these rows."""
        if not self.shuffled:
            sizes = np.full(self.many, self.n // self.many)
            sizes[: self.n % self.many] += 1
            return np.searchsorted(np.cumsum(sizes), numbers, side="right")
        return (_mixed(numbers.astype(np.uint64) + np.uint64(self.seed << 48)) % np.uint64(self.many)).astype(np.int64)

    def of_grain(self, grain: Grain) -> Ints:
        return self.of(grain.first + np.arange(grain.n))


def _mixed(numbers: Array) -> Array:
    """splitmix64 (G. Steele, D. Lea, C. Flood: Fast splittable pseudorandom number generators, 2014)."""
    z = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = z ^ (z >> np.uint64(31))
    return mixed


@dataclass(frozen=True)
class DataScale:
    """How large rows and targets are: the sums of s_i |x_i|^2 and, where y is a number, of s_i |y_i - mean of y|."""

    squares: float
    deviation: float

    @staticmethod
    def of_grain(grain: Grain, mean: float | None) -> DataScale:
        weights, squares = grain.weights, np.empty(grain.n)
        grain.rows.squares(squares)
        deviation = 0.0 if mean is None or grain.block.y is None else float(weights @ np.abs(grain.block.y - mean))
        return DataScale(float(weights @ squares), deviation)


def find_scale(parts: Parts) -> DataScale:
    """One round."""
    found: DataScale = parts.fold(_scale_of_grain, _add_scales, mean=_mean(parts))
    return found


def _scale_of_grain(grain: Grain, *, mean: float | None) -> DataScale:
    return DataScale.of_grain(grain, mean)


def _add_scales(*several: DataScale) -> DataScale:
    return DataScale(sum(one.squares for one in several), sum(one.deviation for one in several))


def _mean(parts: Parts) -> float | None:
    """The mean of y, where it is a number."""
    sums = parts.facts.labels.sums
    return float(sums[1] / sums[0]) if len(sums) else None


@dataclass(frozen=True, eq=False)
class FoldFacts:
    """Of the rows that each fold holds out: how many there are, and what is known of their y; of all rows the scale."""

    rows: Ints
    labels: Sequence[LabelFacts]
    scale: DataScale

    def trained(self, fold: int) -> LabelFacts:
        """What is known of the rows that a fold is trained on."""
        return add_labels([own for number, own in enumerate(self.labels) if number != fold])


def find_folds(parts: Parts, folds: RowFolds, targets: Targets) -> FoldFacts:
    """One round."""
    found: FoldFacts = parts.fold(_folds_of_grain, _add_folds, folds=folds, targets=targets, mean=_mean(parts))
    return found


def _folds_of_grain(grain: Grain, *, folds: RowFolds, targets: Targets, mean: float | None) -> FoldFacts:
    y, weights, own = grain.block.y, grain.weights, folds.of_grain(grain)
    assert y is not None
    held_out = [np.flatnonzero(own == fold) for fold in range(folds.many)]
    labels = [labels_of(y[rows], weights[rows], targets) for rows in held_out]
    return FoldFacts(np.array([len(rows) for rows in held_out]), labels, DataScale.of_grain(grain, mean))


def _add_folds(*several: FoldFacts) -> FoldFacts:
    labels = [add_labels(own) for own in zip(*(one.labels for one in several), strict=True)]
    rows = np.sum([one.rows for one in several], axis=0)
    return FoldFacts(rows, labels, _add_scales(*(one.scale for one in several)))


@dataclass(frozen=True, eq=False)
class FoldParts(Parts):
    """The rows with weight 0 for those that fold number `held_out` holds out."""

    folds: RowFolds = None  # type: ignore[assignment]
    held_out: int = 0

    @classmethod
    def of(cls, parts: Parts, executor: Executor, folds: RowFolds, held_out: int, labels: LabelFacts) -> FoldParts:
        """labels: of the rows that the fold is trained on."""
        facts = parts.facts
        sample, trains = facts.sample, np.flatnonzero(folds.of(facts.sample.numbers) != held_out)
        measured, block = facts.measured, facts.measured.block
        weights = np.ones(block.n) if block.weights is None else block.weights
        own = replace(
            facts,
            weight=float(labels.weights.sum() if len(labels.labels) else labels.sums[0]),
            weighted=True,
            labels=labels,
            sample=Drawn(sample.numbers[trains], sample.block.take(trains)),
            measured=Drawn(
                measured.numbers, replace(block, weights=weights * (folds.of(measured.numbers) != held_out))
            ),
        )
        known = (parts.chunks, parts.layout, own, parts.room, parts.given, parts.held)
        return cls(executor, *known, folds=folds, held_out=held_out)

    def _results(self, task: Callable[..., Any], add: Callable[..., Any], shared: dict[str, Any]) -> Column:
        return super()._results(_OnFold(self.folds, self.held_out, task), add, shared)


@dataclass(frozen=True)
class _OnFold:
    """A task on a grain in which rows that are held out have weight 0."""

    folds: RowFolds
    held_out: int
    task: Callable[..., Any]

    def __call__(self, grain: Grain, **shared: Any) -> Any:
        weights = grain.weights * (self.folds.of_grain(grain) != self.held_out)
        return self.task(replace(grain, block=replace(grain.block, weights=weights)), **shared)
