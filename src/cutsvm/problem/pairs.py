"""The oracle of a loss over pairs of rows of one query."""

from __future__ import annotations

import numpy as np

from cutsvm._utils.types import Ints, Vector
from cutsvm.matrix import Rows
from cutsvm.problem.losses import PairLoss
from cutsvm.problem.losses.pairwise import PairSettings
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.planes import Heights

__all__ = ["PairOracle"]


class PairOracle(Oracle):
    """R(w) = loss(X w) for a loss over the pairs of queries. An intercept would not change a difference of scores."""

    loss: PairLoss
    steepness = 2.0
    terms = PairSettings.terms  # slopes times scores, added up in blocks of 4,096
    tie = PairSettings.tie

    @property
    def model_matrix(self) -> Rows:
        return self.matrix  # less any row: only differences of scores count

    def compensated_scores(self, W: Vector, b: Vector) -> tuple[Vector, Vector]:
        """Scores less their mean, which leaves more digits."""
        mean = float(self.score(W).scores.mean())
        return super().compensated_scores(W, np.asarray(-mean))

    def _slope_errors(self, heights: Heights) -> Vector:
        return self.loss.slope_errors(heights)

    def value_error(self, size: float) -> float:
        return self.loss.value_error(size)

    def shard_bounds(self, shards: int) -> Ints:
        """Shards are runs of whole queries, as equal in size as queries allow."""
        ends = np.linspace(0, self.matrix.n, max(1, shards) + 1)[1:-1]
        starts = self.loss.starts
        after = np.searchsorted(starts, ends)
        nearer = np.where(ends - starts[after - 1] < starts[after] - ends, starts[after - 1], starts[after])
        return np.unique(np.concatenate([[0], nearer, [self.matrix.n]])).astype(np.int64)
