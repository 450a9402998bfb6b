"""Parts: a data set on an executor, cut into grains, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np

from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.cluster.grains import Layout, RowBlock, on_chunk, sum_of_grains
from cutsvm.cluster.protocol import Column, Executor, Traffic, fold
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
    """Chunks of rows on an executor. room: number of rows that the client may copy; None: any number.

    given: number of parts of the collection. held: whether workers keep the rows between rounds. before: the executor's
    traffic before the first round of these parts.
    """

    executor: Executor
    chunks: Column
    layout: Layout
    facts: Facts
    room: int | None = None
    given: int = 1
    held: bool = False
    before: Traffic = field(default_factory=Traffic)

    def each(self, task: Callable[..., Any], add: Callable[..., Any], /, **shared: Any) -> Iterator[Any]:
        """One round, one reading of all rows: task(grain, **shared), added up within each chunk; in order."""
        return self.executor.collect(self._results(task, add, shared), doing=_named(task, shared), reads=True)

    def fold(self, task: Callable[..., Any], add: Callable[..., Any], /, *, here: bool = True, **shared: Any) -> Any:
        """The same, added up over all chunks in a fixed tree."""
        column = self._results(task, add, shared)
        return fold(self.executor, column, add, here=here, doing=_named(task, shared), reads=True)

    def fold_chunks(
        self, task: Callable[..., Any], add: Callable[..., Any], own: Sequence[Any], /, *, here: bool, **shared: Any
    ) -> Any:
        """task(all grains of a chunk as one, own[k], **shared) of each chunk k, added up: one round."""
        given = list(zip(self.facts.fingerprints, own, strict=True))
        column = self.chunks.map(on_chunk, given, of_chunk=task, **shared)
        return fold(self.executor, column, add, here=here, doing=_named(task, shared), reads=True)

    def _results(self, task: Callable[..., Any], add: Callable[..., Any], shared: dict[str, Any]) -> Column:
        return self.chunks.map(sum_of_grains, self.facts.fingerprints, of_grain=task, add=add, **shared)


def _named(task: Callable[..., Any], shared: Mapping[str, Any]) -> str:
    """What a task does, by the name of its function: "sift rows"; of_part: the function that it calls."""
    own = shared.get("of_part", task)
    name = own.__name__ if isinstance(own, FunctionType) else type(own).__name__
    return name.removesuffix("_of").strip("_").replace("_", " ").lower()
