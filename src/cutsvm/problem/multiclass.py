"""The risk of K classes together: data and a loss of K scores per row.

The coordinates are K times d features, class by class, and then the K intercepts. Free ones are not searched for at
every point: they are coordinates of the reduced problem as any other, K - 1 of them, since a constant added to all
changes nothing; the first is 0.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from cutsvm._utils.timing import count, timed
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.matrix import Choices, Rows
from cutsvm.problem.losses import CrammerSinger, Loss
from cutsvm.problem.oracle import FEW_MORE, STALE, Intercept, Oracle, Point
from cutsvm.problem.planes import Planes
from cutsvm.problem.rounding import gamma


class _Anchors(NamedTuple):
    """The weight of each class, the length of its mean row, and the weight of all rows."""

    weights: Vector
    lengths: Vector
    total: float

    def largest(self, C: float, lengths: Vector) -> float:
        """The largest S / S_y - 1 + 2 sqrt(C S) length_y, with room for rounding."""
        far = self.total / self.weights - 1.0 + 2.0 * np.sqrt(C * self.total) * lengths
        return 1.01 * float(far.max())


class MulticlassOracle(Oracle):
    """R(W) = loss(X W' + b) for a loss of K scores per row."""

    loss: CrammerSinger
    steepness = 2.0

    @property
    def outputs(self) -> int:  # type: ignore[override]
        return self.loss.classes

    def _coordinates(self) -> tuple[int, int]:
        features = self.outputs * self.rows.d
        extra = {Intercept.NONE: 0, Intercept.REGULARIZED: self.outputs, Intercept.FREE: self.outputs - 1}
        return features + extra[self.intercept], extra[self.intercept] if self.intercept is Intercept.FREE else 0

    def over(self, rows: Rows, loss: Loss, *, apart: int = 0, mean_error: float | None = None) -> MulticlassOracle:
        part = super().over(rows, loss, apart=apart, mean_error=mean_error)
        if apart and self.n_free:  # a bound for these rows is used as one for all, whose minimiser it has to reach
            part.anchors = self.anchors
        return part

    @cached_property
    def anchors(self) -> _Anchors:
        """What `reach` needs to know of the classes; those without weight are left out."""
        sums = np.zeros((self.outputs, self.rows.d + 1))
        count("visits", self.rows.group_sums(self.loss.weights, self.loss.y, sums))
        sums = sums[sums[:, -1] > 0.0]
        means = sums[:, :-1] / sums[:, -1:]
        return _Anchors(sums[:, -1], np.sqrt((means * means).sum(axis=1)), self.loss.total)

    def reach(self, C: float) -> float:
        """No difference of two free intercepts is larger at a minimiser.

        F is at most C S there, S the weight of all rows, so |W|^2 <= 2 C S and the losses of a class y add up to S at
        most. But each loss is at least 1 + (w_k - w_y).x_i + b_k - b_y, for all k, and |w_k - w_y| <= sqrt(2) |W|. With
        S_y and m_y the weight and the mean row of the class:  b_k - b_y <= S / S_y - 1 + 2 sqrt(C S) |m_y|.
        """
        if self.intercept is not Intercept.FREE:
            return np.inf
        return self.anchors.largest(C, self.anchors.lengths)

    def intercept_bound(self, C: float) -> float:
        """The same for the intercepts as measured from the centre of the rows: no row is further from it than this."""
        if self.origin is not None:
            return self.origin.intercept_bound(C)
        return self.anchors.largest(C, np.full(len(self.anchors.lengths), self.magnitudes.radius))

    def initial_planes(self) -> list[Planes]:
        """With free intercepts: for each class k the planes of all rows choosing k; these balance each other."""
        if self.intercept is not Intercept.FREE:
            return []
        K, d, shards = self.outputs, self.rows.d, self.shards
        sums = np.zeros((shards * K, d + 1))
        group = self._choices()[1]
        for p, (begin, end) in enumerate(pairwise(self.bounds)):
            np.add(self.loss.y[begin:end], np.int32(p * K), out=group[begin:end])
        count("visits", self.rows.group_sums(self.loss.weights, group, sums))
        of_class = sums.reshape(shards, K, d + 1)
        planes = []
        for k in range(K):
            slopes = -of_class
            slopes[:, k] = of_class.sum(axis=1) - of_class[:, k]
            flat = self._flat(slopes[:, :, :-1], slopes[:, :, -1])
            planes.append(self._as_planes(flat, slopes[:, k, -1], slopes[:, k, -1], terms=self.rows.n))
        return planes

    def _as_planes(self, slopes: Vector, offsets: Vector, added: Vector, *, terms: int | None = None) -> Planes:
        """Planes with what rounding may have cost them; `added`: the weight of the rows ever added up, `terms` of them.

        A row that changes its choice changes the sums of up to three classes, with twice its weight in one of them.
        """
        lost = gamma((self._added if terms is None else terms) + FEW_MORE)
        # Intercepts are not made from those of the last call: a row has a place in the sums of two classes.
        errors = np.column_stack([4.0 * lost * added, 2.0 * gamma(self.rows.n + FEW_MORE) * offsets])
        errors[-1] += 4.0 * self.mean_error
        return Planes(slopes, offsets * (1.0 - 2.0 * gamma(self.rows.n + FEW_MORE)), errors)

    def cut(self, bounds: Ints) -> None:
        shards, self.bounds = len(bounds) - 1, bounds
        self._sums = np.zeros((shards, self.outputs * self.rows.d))
        self._chosen: tuple[Array, Array] | None = None
        self._moved, self._added = np.zeros(shards), 0

    def _choices(self) -> tuple[Array, Array]:
        """The class that each row chose when the last planes were made, at first its own, so that sums are 0; and room
        for as many numbers."""
        if self._chosen is None:
            n = self.rows.n
            self._chosen = self.rows.vector(n, np.int32), self.rows.vector(n, np.int32)
            np.copyto(self._chosen[0], self.loss.y)
        return self._chosen

    def _blank(self, spare: Point | None) -> Vector:
        return self.rows.vector((self.rows.n, self.outputs)) if spare is None else spare.scores

    def parts(self, w: Vector) -> tuple[Vector, Vector]:
        """The weights of the features and the intercepts: arrays of shape (K, d) and (K,)."""
        K, features = self.outputs, self.outputs * self.rows.d
        b = np.zeros(K)
        b[K - (self.size - features) :] = w[features:]
        return np.ascontiguousarray(w[:features]).reshape(K, -1), b

    def model(self, w: Vector) -> tuple[Vector, Vector]:
        """Free intercepts have the mean 0: a constant added to all changes nothing."""
        W, b = super().model(w)
        return W, b - b.mean() if self.intercept is Intercept.FREE else b

    def coordinates(self, W: Vector, b: Vector) -> Vector:
        return self.flat(W, b if self.shift is None else b + W @ self.shift)

    @timed("scores")
    def _compensated_scores(self, W: Vector, b: Vector) -> tuple[Vector, Vector]:
        self.count_visits()
        scores, rest = self._blank(None), self._blank(None)
        column, more = self.rows.vector(self.rows.n), self.rows.vector(self.rows.n)
        for k in range(self.outputs):
            self._judged.compensated_scores(W[k].copy(), float(b[k]), column, more)
            scores[:, k], rest[:, k] = column, more
        return scores, rest

    def flat(self, W: Vector, b: Vector) -> Vector:
        """w with these parts."""
        if self.intercept is Intercept.FREE:
            b = b - b[0]
        w: Vector = self._flat(W[None], b[None])[0]
        return w

    def _flat(self, W: Vector, b: Vector) -> Vector:
        """Coordinates of many w or slopes at once: (.., K, d) and (.., K) side by side."""
        kept = self.size - self.outputs * self.rows.d
        return np.hstack([W.reshape(len(W), -1), b[:, self.outputs - kept :]])

    def _sweep(self, rows: Rows, W: Vector, b: Vector, out: Vector) -> None:
        rows.scores_many(W, b, out)

    def optimize_intercept(self, point: Point) -> Point:
        return point

    @timed("planes")
    def planes(self, point: Point) -> Planes:
        old, room = self._choices()
        choice, offsets, pulls = self.loss.choices(point.scores, self.bounds, room)
        stale = np.flatnonzero(self._moved > STALE * offsets)
        if len(stale) == len(offsets):
            self._added = 0
        for p in stale:
            mine = slice(self.bounds[p], self.bounds[p + 1])
            self._sums[p], self._moved[p], old[mine] = 0.0, 0.0, self.loss.y[mine]
        choices = Choices(self.loss.y, self.loss.weights, old, choice, self.outputs)
        read = self.rows.accumulate_choices(choices, self.bounds, self._sums, self._moved)
        count("rows_read", read)
        count("visits", read)
        self._added += 2 * read
        return self._as_planes(self._flat(self._sums, pulls), offsets, self._moved)
