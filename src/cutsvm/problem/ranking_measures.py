"""Measures of an order within queries: the share of pairs in order, NDCG at k, mean average precision.

They are scikit-learn's `ndcg_score` (linear gains y, ties averaged) and `average_precision_score` (rows with y > 0 are
relevant, rows with equal scores enter together) of each query, and the mean over the queries. scikit-learn checks its
arguments in every call, which takes a millisecond a query; here two sorts serve all queries, and the tests compare
with scikit-learn's functions.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutsvm._utils import queries, validation
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.problem.pair_accuracy import pair_accuracy

__all__ = ["Metric", "RankingScore", "ranking_score"]


@dataclass(frozen=True)
class Metric:
    """A measure by name: "pairs", "ndcg", "ndcg@k" or "map"; k: the places that count, None: all."""

    kind: str
    k: int | None = None

    @classmethod
    def parse(cls, name: Any) -> Metric:
        """The metric of this name; ValueError for any other value."""
        found = re.fullmatch(r"(pairs|map|ndcg)|ndcg@([1-9]\d{0,8})", name) if isinstance(name, str) else None
        if found is None:
            raise ValueError(f"metric={name!r}: expected 'pairs', 'ndcg', 'ndcg@k' (as 'ndcg@10') or 'map'")
        return cls(found[1]) if found[1] else cls("ndcg", int(found[2]))

    @staticmethod
    def is_name(name: Any) -> bool:
        """Whether `parse` takes it."""
        try:
            Metric.parse(name)
        except ValueError:
            return False
        return True

    @property
    def name(self) -> str:
        return self.kind if self.k is None else f"{self.kind}@{self.k}"

    @property
    def title(self) -> str:
        """For people."""
        return "Pairs in order" if self.kind == "pairs" else self.name.upper()


@dataclass(frozen=True)
class RankingScore:
    """The value of a measure, the number of queries, and how many of these were left out.

    NDCG and MAP leave out queries whose rows all have one y, and those without a row with y > 0: every order of them is
    as good. They make no pair either, or none with a relevant row.
    """

    value: float
    n_queries: int
    n_left_out: int

    def __float__(self) -> float:
        return self.value


def ranking_score(
    scores: Any, y: Any, qid: Any = None, *, metric: str = "ndcg@10", sample_weight: Any = None
) -> RankingScore:
    """How well scores order the rows of each query: a measure of any model's predictions.

    Parameters
    ----------
    scores : one number for each row, higher for rows that should come first.
    y : the values to be ordered by. For "ndcg" they are the gains, none below 0; for 2^y - 1 give `2.0**y - 1`. For
        "map" a row is relevant if y > 0.
    qid : one id per row; None is one query.
    metric : "ndcg@k", of the first k places, "ndcg", of all, "map" (mean average precision) or "pairs" (the share of
        the pairs in order, over all queries together).
    sample_weight : rows of weight 0 are left out. A query weighs the mean of its rows' weights in the mean over the
        queries; for "pairs" a pair weighs s_i s_j.

    Rows with equal scores: "ndcg" is the mean over their orders, "map" takes them together, "pairs" counts half, as
    scikit-learn's `ndcg_score`, `average_precision_score` and `roc_auc_score`.

    Returns
    -------
    RankingScore : `value`, `n_queries`, `n_left_out`.

    Examples
    --------
    >>> from cutsvm import ranking_score
    >>> ranking_score([3.0, 2.0, 1.0, 5.0, 4.0], [2, 1, 0, 0, 1], qid=[7, 7, 7, 8, 8], metric="map")
    RankingScore(value=0.75, n_queries=2, n_left_out=0)
    """
    chosen = Metric.parse(metric)
    found = np.ascontiguousarray(scores, dtype=np.float64)
    y = np.asarray(y)
    if found.ndim != 1 or y.shape != found.shape:
        raise ValueError(f"y has the shape {y.shape}: expected one value for each of the {len(found)} scores")
    if not len(y):
        raise ValueError("there are no rows to measure")
    validation.check_numeric(y)
    if np.isnan(found).any():
        raise ValueError(f"scores[{int(np.argmax(np.isnan(found)))}] is NaN: expected one number for each row")
    codes, weights = queries.encode(qid, len(y)), validation.sample_weights(sample_weight, len(y))
    kept = weights > 0.0
    if not kept.all():
        found, y, codes, weights = found[kept], y[kept], codes[kept], weights[kept]
    groups = _Queries.of(found, y.astype(np.float64), codes)
    if chosen.kind == "pairs":
        share = pair_accuracy(found, y, codes, weights)
        return RankingScore(share, len(groups.sizes), int(np.count_nonzero(groups.has_one_level)))
    if chosen.kind == "ndcg" and y.min() < 0:
        raise ValueError(f"y has the value {y.min():g}: gains of NDCG are not below 0; shift them, or use metric='map'")
    left_out = groups.has_one_level | (groups.highest <= 0.0)
    if left_out.all():
        raise ValueError(
            f"there is no query to measure: in all {len(left_out)} of them the rows have one y, or none has y > 0"
        )
    values = groups.ndcg(chosen.k) if chosen.kind == "ndcg" else groups.average_precision()
    of_query = np.add.reduceat(weights[groups.order], groups.starts) / groups.sizes
    mean = float(np.average(values[~left_out], weights=of_query[~left_out]))
    return RankingScore(mean, len(left_out), int(np.count_nonzero(left_out)))


@dataclass(frozen=True, eq=False)
class _Queries:
    """Rows sorted by query, and within it by falling score."""

    order: Ints
    codes: Ints
    y: Vector
    starts: Ints  # of each query
    sizes: Ints
    runs: Ints  # starts of the rows of one query with one score

    @classmethod
    def of(cls, scores: Vector, y: Vector, codes: Ints) -> _Queries:
        order = np.lexsort((-scores, codes))
        codes, scores = codes[order], scores[order]
        is_first = np.append(True, codes[1:] != codes[:-1])
        starts = np.flatnonzero(is_first)
        runs = np.flatnonzero(is_first | np.append(True, scores[1:] != scores[:-1]))
        return cls(order, codes, y[order], starts, np.diff(np.append(starts, len(codes))), runs)

    @property
    def highest(self) -> Vector:
        found: Vector = np.maximum.reduceat(self.y, self.starts)
        return found

    @property
    def has_one_level(self) -> Array:
        same: Array = np.minimum.reduceat(self.y, self.starts) == self.highest
        return same

    @property
    def places(self) -> Ints:
        """The place of each row in its query, from 0."""
        ranks: Ints = np.arange(len(self.y)) - np.repeat(self.starts, self.sizes)
        return ranks

    def _of_queries(self, of_runs: Vector) -> Vector:
        """Sums over the runs of each query."""
        sums: Vector = np.add.reduceat(of_runs, np.searchsorted(self.runs, self.starts))
        return sums

    def ndcg(self, k: int | None) -> Vector:
        """sum_i y_i / log2(place_i + 2) over the first k places, divided by its largest value; 0 where that is 0."""
        places = self.places
        discounts = np.where(places < (math.inf if k is None else k), 1.0 / np.log2(places + 2.0), 0.0)
        lengths = np.diff(np.append(self.runs, len(self.y)))
        gains = np.add.reduceat(self.y, self.runs) / lengths  # the mean over the orders of equal scores
        found = self._of_queries(gains * np.add.reduceat(discounts, self.runs))
        best = np.add.reduceat(self.y[np.lexsort((-self.y, self.codes))] * discounts, self.starts)
        return np.divide(found, best, out=np.zeros(len(best)), where=best > 0.0)

    def average_precision(self) -> Vector:
        """The mean over the relevant rows of the share of relevant rows among those with a score as high."""
        relevant = (self.y > 0.0).astype(np.float64)
        ends = np.append(self.runs[1:], len(self.y)) - 1
        total = np.add.reduceat(relevant, self.starts)
        before = np.repeat(np.cumsum(total) - total, self.sizes)  # of earlier queries
        precision = (np.cumsum(relevant) - before)[ends] / (self.places[ends] + 1.0)
        found = self._of_queries(precision * np.add.reduceat(relevant, self.runs))
        return np.divide(found, total, out=np.zeros(len(total)), where=total > 0.0)
