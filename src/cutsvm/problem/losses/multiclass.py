"""The multi-class hinge loss of Crammer and Singer: sum_i s_i max_k ([k != y_i] + f_ik - f_iy)."""

from __future__ import annotations

import numpy as np

from cutsvm._native import core
from cutsvm._utils import validation
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.problem.certificate import exact_difference, widened
from cutsvm.problem.line_search.breakpoints import LossLine
from cutsvm.problem.point import LossSupports


class CrammerSinger:
    """sum_i s_i max_k ([k != y_i] + f_ik - f_iy) for labels y_i in 0..classes-1 and weights s_i >= 0.

    A row's slope at its scores is told by one number, the class that it chooses: the one with the largest term.
    """

    supports = LossSupports(groups=True)

    def __init__(self, y: Array, weights: Vector, classes: int, threads: int = 1) -> None:
        self.y: Array = np.ascontiguousarray(y, dtype=np.int32)
        self.weights, self.classes, self.threads = weights, classes, threads
        self.n = len(weights)
        if self.n and not 0 <= self.y.min() <= self.y.max() < classes:
            raise ValueError(f"labels from 0 to {classes - 1} expected")
        self.weight = self.total = float(weights.sum())
        self.labels, self.groups = classes, classes**2

    def value(self, scores: Vector) -> float:
        return core.multi_value(scores, self.y, self.weights, self.threads)

    def precise(self, scores: Vector, rest: Vector, error: float = 0.0) -> float:
        total = 0.0
        for part in validation.parts(self.n):
            f, more, own = scores[part], rest[part], self.y[part][:, None]
            ahead, lost = exact_difference(f, np.take_along_axis(f, own, axis=1))
            lost += more - np.take_along_axis(more, own, axis=1)
            heights = (1.0 + ahead) + lost + 2.0 * error  # the first sum is exact near 0
            np.put_along_axis(heights, own, 0.0, axis=1)
            total += float(self.weights[part] @ heights.max(axis=1))
        return widened(total, self.n, error)

    score_bound = offset_unit = 1.0

    def change(self, value: float, shift: float) -> float:
        return self.weight * shift

    def choices(self, scores: Vector, bounds: Ints, out: Array | None = None) -> tuple[Array, Vector, Vector]:
        """The class that each row chooses (in `out`); for each shard its offset, and what its rows weigh in each class.

        loss_p(f) >= offset_p + sum over its rows of s_i (f_i,choice - f_iy) for all scores f.
        """
        choice = np.empty(self.n, dtype=np.int32) if out is None else out
        offsets, pulls = np.empty(len(bounds) - 1), np.empty((len(bounds) - 1, self.classes))
        core.multi_choose(scores, self.y, self.weights, bounds, choice, offsets, pulls, self.threads)
        return choice, offsets, pulls

    def line(self, scores: Vector, to: Vector | None = None) -> LossLine:
        """Each row is the upper envelope of K straight lines."""
        if to is None:
            raise ValueError("a line towards other scores expected")
        arrays = (scores, to, self.y, self.weights)
        return LossLine(self.n, core.multi_evaluate, core.multi_crossing, arrays, self.threads)

    # For sifting: see `cutsvm.problem.losses.GroupedLoss`. A group is one label and one class chosen.

    steepest = 1.0

    @property
    def row_weights(self) -> Vector:
        return self.weights

    def distances(self, scores: Vector, rows: Ints) -> Vector:
        f, y = scores[rows], self.y[rows]
        heights = f - f[np.arange(len(rows)), y][:, None] + 1.0
        heights[np.arange(len(rows)), y] = 0.0
        top = np.partition(heights, -2, axis=1)[:, -2:]
        return np.asarray(top[:, 1] - top[:, 0])

    def sift(self, scores: Vector, band: float, group: Array) -> Ints:
        return core.multi_sift(scores, self.y, self.weights, band, group, self.threads)

    def violators(self, scores: Vector, group: Array) -> Ints:
        return core.multi_violators(scores, self.y, self.weights, group, self.threads)

    def label_mask(self, label: int) -> Array:
        return np.asarray((self.y == label) & (self.weights > 0.0))

    def marks(self, scores: Vector, rows: Ints) -> Ints:
        return rows

    def label_totals(self) -> Vector:
        totals: Vector = np.zeros(self.classes)
        for part in validation.parts(self.n):
            totals += np.bincount(self.y[part], weights=self.weights[part], minlength=self.classes)
        return totals

    def part(self, rows: slice) -> CrammerSinger:
        return CrammerSinger(self.y[rows], self.weights[rows], self.classes, self.threads)

    def take(self, rows: Ints, factors: Vector | None = None) -> CrammerSinger:
        weights = self.weights[rows]
        return CrammerSinger(
            self.y[rows], weights if factors is None else weights * factors, self.classes, self.threads
        )

    def target_sums(self, group: Array) -> Vector:
        return np.zeros(self.groups)

    def of_groups(self, groups: Ints, weights: Vector, targets: Vector) -> CrammerSinger:
        return CrammerSinger(groups // self.classes, weights, self.classes, self.threads)

    def joined(self, parts: list[CrammerSinger]) -> CrammerSinger:
        y = np.concatenate([part.y for part in parts])
        weights = np.concatenate([part.weights for part in parts])
        return CrammerSinger(y, weights, self.classes, self.threads)
