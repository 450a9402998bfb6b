"""RankingSVMCV: RankingSVM with C chosen by cross-validation that keeps queries whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.model_selection import GroupKFold, KFold, check_cv

from cutsvm._utils.types import Ints
from cutsvm.estimators._ingest import ingest
from cutsvm.estimators._path_cv import Chooser, accepted
from cutsvm.estimators.path import grid
from cutsvm.estimators.ranking import RankingSVM


@dataclass(eq=False, repr=False)
class RankingSVMCV(Chooser, RankingSVM):
    """`RankingSVM` with C chosen by cross-validation; a query is never split.

    Parameters
    ----------
    Cs : int or rising sequence of numbers above 0, default=10
        An int: this number of them, in equal ratios, where C (mean of |x|^2) goes from 1 to 1e6.
    cv : int, splitter or iterable of (train, test), default=5
        An int: that many folds of whole queries or, if there is one query only, of its rows. A splitter gets the
        queries as `groups`.
    scoring : str or callable, default=None
        None is the share of pairs in order. A callable gets `qid` and `sample_weight` of the rows if it takes them.
    refit : bool, default=True
        Whether to fit a path to all rows. If not there is no model, only C_ and the scores.
    tol, solver, max_iter, max_time, n_jobs, warm_start, callbacks, verbose, memory_limit, checkpoint
        As in `LinearSVCCV`.

    Attributes
    ----------
    C_, Cs_, scores_, gaps_, path_
        As in `LinearSVCCV`.
    coef_, n_pairs_, n_queries_, n_skipped_queries_, objective_, lower_bound_, gap_, converged_, status_, ...
        As in `RankingSVM`, of the fit to all rows with C_.

    Examples
    --------
    >>> import numpy as np
    >>> from cutsvm import RankingSVMCV
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> y, qid = X @ [1.0, -2.0, 0.5], np.repeat(np.arange(6), 10)
    >>> model = RankingSVMCV(Cs=[1.0, 10.0], cv=3).fit(X, y, qid=qid)
    >>> model.scores_.shape, model.score(X, y, qid=qid) > 0.95
    ((3, 2), True)
    """

    C: float = field(init=False)  # not a parameter: a property of Chooser

    def fit(self, X: Any, y: Any = None, qid: Any = None, sample_weight: Any = None) -> RankingSVMCV:
        """Chooses C and fits the model to rows X with values y to be ordered by, within each query."""
        solver = self._check_params()
        data = ingest(self, X, y, sample_weight, qid=qid)
        scorer = check_scoring(self, scoring=self.scoring)
        splits = self._splits(data.X, data.y, data.query_codes)

        def score(model: RankingSVM, held_out: Any, test: Ints) -> float:
            weights = data.weights[test] if data.weighted else None
            given = {"qid": data.query_codes[test], "sample_weight": weights}
            if self.scoring is None:
                return model.score(held_out, data.y[test], **given)
            return float(scorer(model, held_out, data.y[test], **accepted(scorer, **given)))

        Cs = grid(self.Cs, data.rows, data.weights / data.weights.sum())
        self._choose(RankingSVM, solver, data, splits, Cs, score)
        return self

    def _splits(self, X: Any, y: Any, codes: Any) -> Iterable[tuple[Any, Any]]:
        """Rows to train on and to score, queries whole."""
        if not isinstance(self.cv, (int, np.integer)):
            splits: Iterable[tuple[Any, Any]] = check_cv(self.cv, y).split(X, y, codes)
            return splits
        many = len(np.unique(codes))
        if many == 1:
            return KFold(self.cv, shuffle=True, random_state=0).split(X, y)  # type: ignore[no-any-return]
        if many < self.cv:
            raise ValueError(f"cv={self.cv}: there are only {many} queries, and they stay whole")
        return GroupKFold(self.cv).split(X, y, codes)  # type: ignore[no-any-return]
