"""What solvers read of the rows besides scores and planes: all of them, some at a time, and samples.

What happens to some rows is a task: a pure function of them and of small arguments, wherever the rows are. So a pass
over a store and a pass over a cluster are the same lines, and each kind of oracle says here how its rows are read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from typing import Any, TypeVar, cast

import numpy as np
from numpy.random import Generator

from cutsvm._utils import validation
from cutsvm._utils.timing import timed
from cutsvm._utils.types import Ints, Vector
from cutsvm.cluster.local import Local
from cutsvm.cluster.protocol import Column
from cutsvm.matrix import Rows, RowsInMemory, in_order
from cutsvm.matrix.protocol import cut_blocks
from cutsvm.problem.certificate import exact_difference
from cutsvm.problem.losses import GroupedLoss, Loss
from cutsvm.problem.point import Intercept, Point
from cutsvm.problem.settings import OracleSettings

__all__ = ["Readings"]

Own = TypeVar("Own", bound="Readings")


class Readings(ABC):
    """Rows with their loss, which is a `GroupedLoss` here."""

    matrix: Rows
    loss: Loss
    settings: OracleSettings
    outputs: int
    target_shift: float
    intercept: Intercept
    bounds: Ints

    @abstractmethod
    def restrict(self: Own, matrix: Rows, loss: Loss, *, n_last: int = 0, mean_error: float | None = None) -> Own:
        """The same kind of risk over other rows, which represent all."""

    @abstractmethod
    def count_rows(self, rows: int | None = None) -> None:
        """Counts rows that are read; a reading of all rows of the problem is a pass."""

    @abstractmethod
    def _workspace(self, out: Point | None) -> Vector:
        """Memory for scores."""

    @property
    @abstractmethod
    def model_matrix(self) -> Rows:
        """The rows that the model is applied to."""

    def compensated_scores(self, W: Vector, b: Vector) -> tuple[Vector, Vector]:
        """The scores in twice the precision, as sums of two numbers."""
        with timed("scores"):
            self.count_rows()
            scores, rest = self._workspace(None), self._workspace(None)
            self.model_matrix.compensated_scores(W, float(b), scores, rest)
            if self.target_shift:
                for part in validation.parts(len(scores)):
                    scores[part], lost = exact_difference(scores[part], self.target_shift)
                    rest[part] += lost
            return scores, rest

    def precise_risk(self, W: Vector, b: Vector, error: float) -> tuple[float, float]:
        """R of a model from scores in twice the precision, and no less than R of any scores that differ by `error`."""
        scores = self.compensated_scores(W, b)
        return self.loss.precise(*scores), self.loss.precise(*scores, error)

    @property
    def _grouped(self) -> GroupedLoss:
        return cast("GroupedLoss", self.loss)

    def each_part(self, task: Callable[..., Any], add: Callable[..., Any], /, **shared: Any) -> Iterator[Any]:
        """One reading of all rows, some at a time and in order: yields task(first, part, **shared).

        first: the number of the first of these rows among all. part: an oracle of the same kind over these rows alone.
        add: add(a, b) joins the results of neighbours, where that is done before they are yielded.
        """
        self.count_rows()
        blocks = cut_blocks(self.matrix.blocks(), self._rows_at_a_time())
        return Local(1).collect(Column(blocks, 0).map(_of_block, oracle=self, task=task, shared=shared))

    def sum_parts(self, task: Callable[..., Any], add: Callable[..., Any], /, **shared: Any) -> Any:
        """The same, added up."""
        return reduce(add, self.each_part(task, add, **shared))

    def sum_shards(
        self, task: Callable[..., Any], add: Callable[..., Any], own: Sequence[Vector], /, **shared: Any
    ) -> Any:
        """One reading: task(p, oracle of the rows of shard p, own[p], **shared), added up.

        A free b is a coordinate of the shards' oracles. Where a shard is read in several pieces, each gets its share
        of own[p].
        """
        self.count_rows()
        found = []
        for p, (begin, end) in enumerate(pairwise(self.bounds.tolist())):
            part = self.restrict(*self.take_rows(np.arange(begin, end)))
            intercept = Intercept.REGULARIZED if part.intercept is Intercept.FREE else part.intercept
            found.append(task(p, replace(part, intercept=intercept), own[p], **shared))  # type: ignore[type-var]
        return add(*found)

    def _rows_at_a_time(self) -> int:
        """There is memory for their scores; and if a task copies all of them, they take little of the room."""
        settings, matrix = self.settings, self.matrix
        most = settings.scores // self.outputs
        if matrix.room is not None:
            rows = settings.copied_bytes * matrix.n // (8 * max(1, matrix.entries))
            most = min(most, max(rows, int(settings.copied_room * matrix.room)))
        return max(1, most)

    @property
    def feature_moments(self) -> Vector | None:
        """The mean of x_j^2 for each feature, above 0, where a reading is so expensive that bands depend on it."""
        return None

    def take_rows(self, numbers: Ints) -> tuple[RowsInMemory, GroupedLoss]:
        """Copies of the rows with these numbers, which rise, and their loss."""
        return self.matrix.take(numbers), self._grouped.take(numbers)

    def measured(self, many: int, rng: Generator) -> tuple[RowsInMemory, GroupedLoss]:
        """Up to this number of rows, drawn at random, to estimate from how many rows of all have a property."""
        return self.take_rows(in_order(rng.integers(0, self.matrix.n, many)))

    @timed("sift")
    def draw(self: Own, size: int, least: int, rng: Generator) -> Own:
        """The risk of a random sample; each class has its weight in all rows, and `least` rows if it has as many."""
        matrix, drawn = self.drawn_rows(size, least, rng)
        if not self.loss.supports.groups:
            factors = np.full(drawn.n, self.loss.weight / drawn.weight if drawn.weight > 0.0 else 1.0)
            return self.restrict(matrix.fast(), drawn.take(np.arange(drawn.n), factors))
        factors = np.ones(drawn.n)
        for label, total in enumerate(self.label_totals()):
            mine = drawn.label_mask(label)
            if total > 0.0 and mine.any():
                factors[mine] = total / np.abs(drawn.row_weights[mine]).sum()
        return self.restrict(matrix.fast(), drawn.take(np.arange(drawn.n), factors))

    def drawn_rows(self, size: int, least: int, rng: Generator) -> tuple[RowsInMemory, GroupedLoss]:
        """The rows of `draw`, with their loss."""
        chosen = in_order(rng.integers(0, self.matrix.n, size))
        if self.loss.supports.groups:
            few = np.flatnonzero(self.label_counts(chosen) < least)
            if len(few):
                more = [self.draw_label(int(label), least, rng) for label in few]
                chosen = in_order(np.concatenate([chosen, *more]))
        return self.take_rows(chosen)

    def label_totals(self) -> Vector:
        """The weight of each label's rows."""
        return self._grouped.label_totals()

    def label_counts(self, numbers: Ints) -> Ints:
        """How many of these rows have each label, and weight."""
        some = self._grouped.take(numbers)
        return np.array([np.count_nonzero(some.label_mask(label)) for label in range(some.labels)], dtype=np.int64)

    def draw_label(self, label: int, least: int, rng: Generator) -> Ints:
        """The numbers of rows of one class, all of them or `least` at random; in two sweeps, so that no more numbers
        are kept."""
        loss = self._grouped
        total = sum(int(np.count_nonzero(loss.part(part).label_mask(label))) for part in validation.parts(loss.n))
        places = np.arange(total) if total <= least else np.sort(rng.integers(0, total, least))
        found, before = [np.empty(0, dtype=np.int64)], 0
        for part in validation.parts(loss.n):
            mine = np.flatnonzero(loss.part(part).label_mask(label))
            low, high = np.searchsorted(places, [before, before + len(mine)])
            found.append(mine[places[low:high] - before] + part.start)
            before += len(mine)
        return np.concatenate(found)


def _of_block(
    block: tuple[slice, RowsInMemory], *, oracle: Readings, task: Callable[..., Any], shared: Mapping[str, Any]
) -> Any:
    """The task on the rows of a block."""
    mine, rows = block
    return task(int(mine.start), oracle.restrict(rows, oracle._grouped.part(mine)), **shared)


def add_arrays(*arrays: Vector) -> Vector:
    """The sum of arrays of one shape."""
    return np.asarray(sum(arrays[1:], start=arrays[0]))
