"""Parts: a data set on an executor, cut into grains, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.cluster.grains import Layout, RowBlock, over_grains
from cutsvm.cluster.protocol import Column, Executor, fold
from cutsvm.matrix.magnitudes import Magnitudes

__all__ = ["Drawn", "Facts", "LabelFacts", "Parts"]


@dataclass(frozen=True, eq=False)
class LabelFacts:
    """What is known of y: of classes the distinct labels, how many rows have each, and their weight.

    of numbers: the smallest and the largest, the sums of s_i, s_i y_i and s_i |y_i| and s_i y_i^2; of rows with weight.
    labels, counts, weights are empty where y is a number; `sums` is empty where it is a class.
    """

    labels: Array
    counts: Ints
    weights: Vector
    low: float = np.inf
    high: float = -np.inf
    sums: Vector = None  # type: ignore[assignment]

    def count(self, label: Any) -> int:
        """How many rows have this label."""
        return int(self.counts[self.labels == label].sum())


@dataclass(frozen=True, eq=False)
class Drawn:
    """Rows that were drawn at random, rising, with their numbers."""

    numbers: Ints
    block: RowBlock


@dataclass(frozen=True, eq=False)
class Facts:
    """Of all rows: what one reading has found. weight: the sum of the sample weights.

    sample, measured: two sets of rows, drawn independently of each other and of the parts.
    fingerprints: of the grains of each chunk.
    """

    n: int
    d: int
    entries: int
    sparse: bool
    weight: float
    weighted: bool
    labels: LabelFacts
    magnitudes: Magnitudes
    squares: float  # the mean of |x_i|^2
    sample: Drawn
    measured: Drawn
    fingerprints: Sequence[Sequence[bytes]]
    feature_names: Sequence[str] | None = None


@dataclass(frozen=True, eq=False)
class Parts:
    """Chunks of rows on an executor. room: number of rows that the client may copy; None: any number."""

    executor: Executor
    chunks: Column
    layout: Layout
    facts: Facts
    room: int | None = None

    def each(self, task: Callable[..., Any], add: Callable[..., Any], /, **shared: Any) -> Iterator[Any]:
        """One round, one reading of all rows: task(grain, **shared), added up within each chunk; in order."""
        return self.executor.collect(self._results(task, add, shared))

    def fold(self, task: Callable[..., Any], add: Callable[..., Any], /, *, here: bool = True, **shared: Any) -> Any:
        """The same, added up over all chunks in a fixed tree."""
        return fold(self.executor, self._results(task, add, shared), add, here=here)

    def _results(self, task: Callable[..., Any], add: Callable[..., Any], shared: dict[str, Any]) -> Column:
        return self.chunks.map(over_grains, self.facts.fingerprints, of_grain=task, add=add, **shared)
