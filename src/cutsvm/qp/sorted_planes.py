"""The planes of a reduced problem in the order of their shards, and the solution of such a problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutsvm._utils.types import Array, Ints, Vector


@dataclass(frozen=True, eq=False)
class ReducedSolution:
    """A solution of the reduced problem."""

    w: Vector  # the minimiser, free intercepts last
    lower: float  # a lower bound of the objective
    value: float  # |w|^2/2 + C risk
    risk: float  # sum over the shards of the maximum of their planes at w, or 0
    weights: Vector  # x, in the order of the planes
    steps: int


class SortedPlanes:
    """Planes (a_k, c_k, o_k) sorted by shard; shards without planes are left out."""

    def __init__(self, slopes: Vector, offsets: Vector, shard: Ints, n_free: int, intercept_bound: float) -> None:
        self.order = np.argsort(shard, kind="stable")
        _, self.starts, self.shard, self.sizes = np.unique(
            shard[self.order], return_index=True, return_inverse=True, return_counts=True
        )
        self.n_free, self.intercept_bound = n_free, intercept_bound
        self.features = slopes.shape[1] - n_free
        self.slopes = slopes
        self.o = offsets[self.order]
        c = slopes[self.order, self.features :]
        self.active_intercepts = np.flatnonzero(np.any(c, axis=0))  # the others stay 0
        self.c = c[:, self.active_intercepts]
        self.boxed = n_free > 1 and len(self.active_intercepts) > 0

    def per_shard(self, values: Array) -> Vector:
        """Sum over each shard's planes."""
        sums: Vector = np.add.reduceat(values, self.starts, axis=0)
        return sums

    def in_given_order(self, values: Vector) -> Vector:
        """Values per plane, in the order in which the planes were given."""
        given = np.empty_like(values)
        given[self.order] = values
        return given

    def shard_risks(self, plane_values: Vector) -> Vector:
        """max(0, maximum over the shard's planes), per shard."""
        risks: Vector = np.maximum(0.0, np.maximum.reduceat(plane_values, self.starts))
        return risks
