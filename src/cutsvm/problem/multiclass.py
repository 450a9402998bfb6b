"""The oracle of K classes in one problem: data and a loss of K scores per row.

The coordinates are K times d features, class by class, and then the K intercepts. Free ones are not optimised at every
point: they are coordinates of the reduced problem like the others, K - 1 of them, since a constant added to all of them
changes nothing; the first is 0.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from cutsvm._utils.threads import cached_property
from cutsvm._utils.timing import count, timed
from cutsvm._utils.types import Ints, Vector
from cutsvm.matrix import Rows
from cutsvm.problem.certificate import sum_error
from cutsvm.problem.losses import CrammerSinger, Multinomial
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.planes import ChoiceSums, Heights, Planes
from cutsvm.problem.point import Intercept, Point

__all__ = ["CrammerSingerOracle", "MulticlassOracle", "MultinomialOracle"]


class _ClassMeans(NamedTuple):
    """The weight of each class, the length of its mean row, and the weight of all rows."""

    weights: Vector
    lengths: Vector
    total: float

    @classmethod
    def of_sums(cls, sums: Vector, total: float) -> _ClassMeans:
        """sums: of s_i (x_i, 1) over the rows of each class."""
        sums = sums[sums[:, -1] > 0.0]
        with np.errstate(over="ignore"):
            means = sums[:, :-1] / sums[:, -1:]
            lengths = np.sqrt((means * means).sum(axis=1))
        return cls(sums[:, -1], lengths, total)

    def largest(self, C: float, lengths: Vector) -> float:
        """The largest S / S_y - 1 + 2 sqrt(C S) length_y over the classes y, with room for rounding."""
        with np.errstate(over="ignore"):  # an infinite bound is one
            far = self.total / self.weights - 1.0 + 2.0 * np.sqrt(C * self.total) * lengths
        return 1.01 * float(far.max())


class MulticlassOracle(Oracle):
    """R(W) = loss(X W' + b) for a loss of K scores per row."""

    loss: CrammerSinger | Multinomial
    steepness = 2.0

    @property
    def outputs(self) -> int:  # type: ignore[override]
        return self.loss.classes

    @cached_property
    def size(self) -> int:
        extra = {Intercept.NONE: 0, Intercept.REGULARIZED: self.outputs, Intercept.FREE: self.outputs - 1}
        return self.outputs * self.matrix.d + extra[self.intercept]

    @cached_property
    def blocks(self) -> list[Ints]:
        """The features of each class, and its intercept if that is a coordinate."""
        d, K = self.matrix.d, self.outputs
        first = K - (self.size - K * d)  # the class of the first intercept among the coordinates
        of_class = (np.arange(k * d, (k + 1) * d) for k in range(K))
        return [np.append(own, K * d + k - first) if k >= first else own for k, own in enumerate(of_class)]

    @cached_property
    def n_free(self) -> int:
        return self.outputs - 1 if self.intercept is Intercept.FREE else 0

    @cached_property
    def _class_means(self) -> _ClassMeans:
        """Of the classes that have weight. A lower bound of another risk has the minimiser of that one to bound."""
        if self.origin is not None:
            return self.origin._class_means  # type: ignore[attr-defined, no-any-return]
        sums = np.zeros((self.outputs, self.matrix.d + 1))
        self.count_rows(self.matrix.group_sums(self.loss.weights, self.loss.y, sums))
        return _ClassMeans.of_sums(sums, self.loss.total)

    def intercept_box(self, C: float) -> float:
        """No difference of two free intercepts is larger at a minimiser.

        F is at most C S there, S the weight of all rows, so |W|^2 <= 2 C S and the losses of a class y add up to S at
        most. But each loss is at least 1 + (w_k - w_y).x_i + b_k - b_y, for all k, and |w_k - w_y| <= sqrt(2) |W|. With
        S_y and m_y the weight and the mean row of the class:  b_k - b_y <= S / S_y - 1 + 2 sqrt(C S) |m_y|.
        """
        if self.intercept is not Intercept.FREE:
            return np.inf
        return self._class_means.largest(C, self._class_means.lengths)

    def intercept_bound(self, C: float) -> float:
        """The same for the intercepts as measured from the centre of the rows: no row is further from it than this."""
        if self.origin is not None:
            return self.origin.intercept_bound(C)
        return self._class_means.largest(C, np.full(len(self._class_means.lengths), self.magnitudes.radius))

    def _workspace(self, out: Point | None) -> Vector:
        return self.matrix.vector((self.matrix.n, self.outputs)) if out is None else out.scores

    def _with_near_intercept(self, w: Vector) -> Vector:
        return w

    def optimize_intercept(self, point: Point, *, out: Point | None = None) -> Point:
        return point

    def parts(self, w: Vector) -> tuple[Vector, Vector]:
        """The weights of the features and the intercepts: arrays of shape (K, d) and (K,)."""
        K, features = self.outputs, self.outputs * self.matrix.d
        b = np.zeros(K)
        b[K - (self.size - features) :] = w[features:]
        return np.ascontiguousarray(w[:features]).reshape(K, -1), b

    def model(self, w: Vector) -> tuple[Vector, Vector]:
        """Free intercepts have the mean 0: a constant added to all changes nothing."""
        W, b = super().model(w)
        return W, b - b.mean() if self.intercept is Intercept.FREE else b

    def coordinates(self, W: Vector, b: Vector) -> Vector:
        b = b if self.shift is None else b + W @ self.shift
        if self.intercept is Intercept.FREE:
            b = b - b[0]
        w: Vector = self._flat(W[None], b[None])[0]
        return w

    def _flat(self, W: Vector, b: Vector) -> Vector:
        """Coordinates of many w or slopes at once: (.., K, d) and (.., K) side by side."""
        kept = self.size - self.outputs * self.matrix.d
        return np.hstack([W.reshape(len(W), -1), b[:, self.outputs - kept :]])

    def _multiply(self, matrix: Rows, W: Vector, b: Vector, out: Vector) -> None:
        matrix.scores_many(W, b, out)

    def compensated_scores(self, W: Vector, b: Vector) -> tuple[Vector, Vector]:
        with timed("scores"):
            self.count_rows()
            scores, rest = self._workspace(None), self._workspace(None)
            column, more = self.matrix.vector(self.matrix.n), self.matrix.vector(self.matrix.n)
            for k in range(self.outputs):
                self.model_matrix.compensated_scores(W[k].copy(), float(b[k]), column, more)
                scores[:, k], rest[:, k] = column, more
            return scores, rest


class CrammerSingerOracle(MulticlassOracle):
    """A loss for which a row is told by the class that it chooses: only rows that choose another one are read."""

    loss: CrammerSinger

    def initial_planes(self) -> list[Planes]:
        """With free intercepts: for each class k the planes of all rows choosing k; these balance each other."""
        if self.intercept is not Intercept.FREE:
            return []
        K, d, shards = self.outputs, self.matrix.d, self.shards
        sums = np.zeros((shards * K, d + 1))
        group = self._choice_sums.workspace
        for p, (begin, end) in enumerate(pairwise(self.bounds)):
            np.add(self.loss.y[begin:end], np.int32(p * K), out=group[begin:end])
        self.count_rows(self.matrix.group_sums(self.loss.weights, group, sums))
        return self._planes_of_classes(sums.reshape(shards, K, d + 1))

    def _planes_of_classes(self, of_class: Vector) -> list[Planes]:
        """For each class k the planes of all rows choosing k; of_class: sums of s_i (x_i, 1) by shard and class."""
        K, planes = self.outputs, []
        for k in range(K):
            slopes = -of_class
            slopes[:, k] = of_class.sum(axis=1) - of_class[:, k]
            flat = self._flat(slopes[:, :, :-1], slopes[:, :, -1])
            offsets = slopes[:, k, -1]
            planes.append(self._with_errors(flat, Heights.of_weights(offsets), offsets, self.matrix.n))
        return planes

    @cached_property
    def _choice_sums(self) -> ChoiceSums:
        return ChoiceSums(self.matrix, self.bounds, self.outputs, self.loss.y, self.settings.stale)

    def planes(self, point: Point) -> Planes:
        with timed("planes"):
            sums = self._choice_sums
            choice, offsets, pulls = self.loss.choices(point.scores, self.bounds, sums.workspace)
            self._count_planes(sums.update(choice, self.loss.weights, offsets))
            heights = Heights.of_weights(offsets)
            return self._with_errors(self._flat(sums.sums, pulls), heights, sums.moved, sums.added)

    def _with_errors(self, slopes: Vector, heights: Heights, added: Vector, calls: int = 0) -> Planes:
        """Planes with bounds of their rounding errors; added: the weight of the rows ever added up, `calls` of them.

        A row that changes its choice changes the sums of up to three classes, with twice its weight in one of them.
        """
        lost, lost_once = sum_error(calls), sum_error(self.matrix.n)
        # Slopes in the intercepts are recomputed each time: a row counts in the sums of two classes.
        sizes = heights.sizes
        errors = np.column_stack([4.0 * lost * added, 2.0 * lost_once * sizes, sizes])
        errors[-1, :2] += 4.0 * self.mean_error
        return Planes(slopes, heights.offsets - 2.0 * lost_once * heights.magnitudes, errors)


class MultinomialOracle(MulticlassOracle):
    """The multinomial logistic loss: every row has a slope for each class."""

    loss: Multinomial

    def planes(self, point: Point) -> Planes:
        """One plane for all rows: shards would need one reading each."""
        with timed("planes"):
            g = self.matrix.vector((self.matrix.n, self.outputs))
            heights = self.loss.class_slopes(point.scores, g)
            count("rows_read", self.matrix.n)
            slope = self.weighted_sum(g)
            lost = 4.0 * sum_error(self.matrix.n)
            errors = np.column_stack([lost * heights.sizes, lost * heights.sizes, heights.sizes])
            lowered = heights.offsets - 2.0 * sum_error(self.matrix.n) * heights.magnitudes
            return Planes(slope[None], lowered, errors)

    def weighted_sum(self, coefficients: Vector) -> Vector:
        sums = np.zeros((self.outputs, self.matrix.d))
        self.count_rows()
        for mine, rows in self.matrix.blocks():
            sums += rows.weighted_sums(coefficients[mine])
        flat: Vector = self._flat(sums[None], coefficients.sum(axis=0)[None])[0]
        return flat

    def intercept_box(self, C: float) -> float:
        """As of the base class: losses are at least (w_k - w_y).x_i + b_k - b_y, and F is at most C S log K."""
        return super().intercept_box(C) + 2.0

    def intercept_bound(self, C: float) -> float:
        return super().intercept_bound(C) + 2.0

    def shard_bounds(self, shards: int) -> Ints:
        return super().shard_bounds(1)
