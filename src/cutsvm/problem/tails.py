"""The oracle of the tail loss."""

from __future__ import annotations

import numpy as np

from cutsvm._utils.types import Ints, Vector
from cutsvm.problem.losses import TailMean
from cutsvm.problem.losses.tail import TailSettings
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.planes import Heights

__all__ = ["TailOracle"]


class TailOracle(Oracle):
    """R(w) = max(0, 1 - m(X w)), m(f) the mean of the lowest scores. It is no sum over rows: there is one shard."""

    loss: TailMean
    terms = TailSettings.terms

    def shard_bounds(self, shards: int) -> Ints:
        return np.array([0, self.matrix.n], dtype=np.int64)

    def _slope_errors(self, heights: Heights) -> Vector:
        return np.full(len(heights.sizes), self.loss.slope_error)
