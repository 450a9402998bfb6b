"""LinearSVCCV: LinearSVC with C chosen by cross-validation, for little more than one fit per fold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv

from cutsvm._utils.types import Ints
from cutsvm.estimators._ingest import ingest
from cutsvm.estimators._path_cv import Chooser, accepted
from cutsvm.estimators.linear import LinearSVC
from cutsvm.estimators.path import grid


@dataclass(eq=False, repr=False)
class LinearSVCCV(Chooser, LinearSVC):
    """`LinearSVC` with C chosen by cross-validation.

    Every fold is one path over all C (`linear_path`), and so is the last fit, to all rows. Every fit has a certificate.

    Parameters
    ----------
    Cs : int or rising sequence of numbers above 0, default=10
        An int: this number of them, in equal ratios, where C (sum of weight x |x|^2) goes from 1 to 1e6.
    cv : int, splitter or iterable of (train, test), default=5
        As in scikit-learn: an int is that many stratified folds.
    scoring : str or callable, default=None
        What to maximise, as in scikit-learn; None is the accuracy. It is given `sample_weight` if there is one.
    refit : bool, default=True
        Whether to fit a path to all rows. If not there is no model, only C_ and the scores.
    tol, solver, multi_class, fit_intercept, intercept, class_weight, max_iter, n_jobs, warm_start, callbacks, verbose
        As in `LinearSVC`. `n_jobs` threads are for the folds first. "balanced" is computed for each fold.
    max_time : float, default=None
        Limit in seconds for all together. Fits that have not ended by then keep the best known solution, with its gap.
    memory_limit, checkpoint : None
        Folds have their rows in memory, and a checkpoint is of one fit.

    Attributes
    ----------
    C_ : float
        The C with the highest mean score; of equal ones the smallest.
    Cs_ : ndarray of shape (n_Cs,)
    scores_ : ndarray of shape (n_folds, n_Cs)
        NaN for folds that had not begun when Ctrl-C came.
    gaps_ : ndarray of shape (n_folds, n_Cs)
        The relative gap that each fit is proven to have.
    path_ : list of LinearSVC
        The fits to all rows, one for each C; the one with C_ is what this estimator predicts with.
    coef_, intercept_, classes_, objective_, lower_bound_, gap_, converged_, status_, n_iter_, history_
        As in `LinearSVC`, of the fit to all rows with C_.

    Examples
    --------
    >>> from cutsvm import LinearSVCCV
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearSVCCV(Cs=5).fit(X / X.max(axis=0), y)
    >>> model.scores_.shape, bool(model.score(X / X.max(axis=0), y) > 0.95)
    ((5, 5), True)
    """

    C: float = field(init=False)  # not a parameter: a property of Chooser

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> LinearSVCCV:
        """Chooses C and fits the model to rows X with labels y, or to a data set: `fit("train.svm")`.

        groups: for splitters that keep groups whole.
        """
        solver = self._check_params()
        data = ingest(self, X, y, sample_weight)
        scorer = check_scoring(self, scoring=self.scoring)
        splits = check_cv(self.cv, data.y, classifier=True).split(data.X, data.y, groups)

        def score(model: LinearSVC, held_out: Any, test: Ints) -> float:
            if self.scoring in (None, "accuracy") and not data.weighted:  # without scikit-learn's checks at every C
                return float(np.mean(model.predict(held_out) == data.y[test]))
            weights = data.weights[test] if data.weighted else None
            return float(scorer(model, held_out, data.y[test], **accepted(scorer, sample_weight=weights)))

        self._choose(LinearSVC, solver, data, splits, grid(self.Cs, data.rows, data.weights), score)
        return self
