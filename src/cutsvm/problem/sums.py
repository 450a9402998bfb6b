"""Values and planes of some rows, which are added up over parts in a fixed order: the same bits wherever they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cutsvm._utils.types import Ints, Vector
from cutsvm.problem.certificate import gamma
from cutsvm.problem.planes import Planes

__all__ = ["Sums", "add_sums", "shard_of"]


class Sums(NamedTuple):
    """K planes of each of the neighbouring shards from `first` on, and values of the risk.

    slopes: shard, plane, coordinate. heights: shard, plane, and then the offset, its absolute value as added up, and
    the three errors of `Planes`. values: of all rows, by point. grains: how many were added up.
    """

    first: int
    slopes: Vector
    heights: Vector
    values: Vector
    grains: int

    @classmethod
    def of(cls, shard: int, planes: Sequence[Planes], values: Sequence[float]) -> Sums:
        """Of some rows of one shard: each of the planes may be in several pieces."""
        slopes = np.stack([own.slopes.sum(axis=0) for own in planes])
        heights = [np.append([own.offsets.sum(), np.abs(own.offsets).sum()], own.errors.sum(axis=0)) for own in planes]
        return cls(shard, slopes[None], np.stack(heights)[None], np.array(values), 1)

    def planes(self, k: int) -> Planes:
        """Plane k of each shard; what adding up may have cost is among the errors."""
        lost = gamma(self.grains + 8)
        offsets, sizes, errors = self.heights[:, k, 0], self.heights[:, k, 1], self.heights[:, k, 2:].copy()
        errors[:, :2] += 2.0 * lost * (errors[:, 2:] + errors[:, :2])
        return Planes(self.slopes[:, k].copy(), offsets - 2.0 * lost * sizes, errors)


def add_sums(*sums: Sums) -> Sums:
    """Of neighbours, in order: the last shard of one may be the first of the next."""
    first, last = sums[0].first, sums[-1].first + len(sums[-1].slopes)
    slopes = np.zeros((last - first, *sums[0].slopes.shape[1:]))
    heights = np.zeros((last - first, *sums[0].heights.shape[1:]))
    values = np.zeros_like(sums[0].values)
    for own in sums:
        mine = slice(own.first - first, own.first - first + len(own.slopes))
        slopes[mine] += own.slopes
        heights[mine] += own.heights
        values += own.values
    return Sums(first, slopes, heights, values, sum(own.grains for own in sums))


def shard_of(row: int, bounds: Ints) -> int:
    """The shard of this row, where shards begin and end at these bounds."""
    return int(np.searchsorted(bounds, row, side="right")) - 1
