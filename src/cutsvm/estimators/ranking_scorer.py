"""Scorers for searches over rankers: NDCG, mean average precision, the share of pairs in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.utils.metadata_routing import MetadataRequest

from cutsvm.problem.ranking_measures import Metric, ranking_score

__all__ = ["ranking_scorer"]


@dataclass(frozen=True)
class RankingScorer:
    """scorer(estimator, X, y, qid, sample_weight); metadata routing hands it `qid` without being asked."""

    metric: str
    weighted: bool = False

    def __call__(self, estimator: Any, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> float:
        scores = estimator.predict(X)
        return ranking_score(scores, y, qid, metric=self.metric, sample_weight=sample_weight).value

    def get_metadata_routing(self) -> MetadataRequest:
        """What meta-estimators of scikit-learn's hand over."""
        request = MetadataRequest(owner=repr(self))
        request.score.add_request(param="qid", alias=True)
        request.score.add_request(param="sample_weight", alias=self.weighted)
        return request


def ranking_scorer(metric: str = "ndcg@10", *, weighted: bool = False) -> RankingScorer:
    """A scorer for scikit-learn's searches, of any estimator whose `predict` gives scores.

    Parameters
    ----------
    metric : "ndcg@k", "ndcg", "map" or "pairs", as of `ranking_score`.
    weighted : whether it is given `sample_weight` of the search.

    Examples
    --------
    >>> import numpy as np, sklearn
    >>> from sklearn.model_selection import GridSearchCV, GroupKFold
    >>> from cutsvm import RankingSVM, ranking_scorer
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> y, qid = np.digitize(X @ [1.0, -2.0, 0.5], [0.0, 1.0]), np.repeat(np.arange(6), 10)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     search = GridSearchCV(RankingSVM(), {"C": [0.1, 10.0]}, scoring=ranking_scorer("ndcg@5"), cv=GroupKFold(3))
    ...     best = search.fit(X, y, qid=qid, groups=qid).best_score_
    >>> bool(best > 0.9)
    True
    """
    return RankingScorer(Metric.parse(metric).name, weighted)


def as_scorer(scoring: Any) -> Any:
    """The scorer of a metric's name; any other value as it is."""
    return ranking_scorer(scoring) if Metric.is_name(scoring) else scoring
