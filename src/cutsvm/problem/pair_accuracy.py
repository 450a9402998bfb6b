"""The share of pairs in order, which `RankingSVM` and the ROC area are measured by."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutsvm._utils import queries, validation
from cutsvm.problem.losses import Pairwise

__all__ = ["pair_accuracy"]


def pair_accuracy(scores: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> float:
    """The share of the pairs of one query with y_i > y_j whose scores are in that order; equal scores count half."""
    scores = np.ascontiguousarray(scores, dtype=np.float64)
    y = np.asarray(y)
    if y.shape != scores.shape:
        raise ValueError(f"y has the shape {y.shape}: expected one value for each of the {len(scores)} scores")
    validation.check_numeric(y)
    weights = validation.sample_weights(sample_weight, len(y))
    order, starts = queries.query_by_query(queries.encode(qid, len(y)))
    if order is not None:
        scores, y, weights = scores[order], y[order], weights[order]
    loss = Pairwise(y, weights, starts)
    if not loss.total > 0.0:
        raise ValueError("there is no pair to score: y is the same for all rows of a query, in all queries")
    return float(1.0 - loss.misordered(scores).sum() / loss.total)
