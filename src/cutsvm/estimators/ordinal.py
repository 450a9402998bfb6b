"""ROCAreaSVC and OrdinalSVC: pairwise machines with thresholds between their classes, with a certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np
from sklearn import svm

from cutsvm._utils import validation
from cutsvm._utils.types import Array, Vector
from cutsvm.estimators._base import CertifiedClassifier
from cutsvm.estimators._ingest import ingest
from cutsvm.estimators._predict import all_scores, by_block, has_own_labels
from cutsvm.estimators._thresholds import COSTS, best_thresholds, in_stated_order, level_of, stated_order
from cutsvm.estimators.ranking import PairwiseSVM
from cutsvm.problem.pair_accuracy import pair_accuracy
from cutsvm.solvers.protocol import Solver


class ROCAreaSVC(CertifiedClassifier, PairwiseSVM):
    """Two classes, trained for the area under the ROC curve.

    It minimises, over w,

        F = |w|^2 / 2 + C / m  sum of s_i s_j loss(w.(x_i - x_j))  over i of the second class, j of the first

    with loss(d) = max(0, 1 - d), or its square (`loss`), m being the number of these pairs (with sample_weight: the sum
    of s_i s_j). The mean bounds from above the share of
    pairs in the wrong order, which is 1 - area. The intercept does not change the order; it is set afterwards to
    minimise the training error.

    Parameters
    ----------
    C, loss, tol, solver, max_iter, max_time, n_jobs, warm_start, memory_limit, checkpoint
        As in `RankingSVM`.
    callbacks, verbose, random_state
        As in `RankingSVM`; rows on disk may be in any order.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
    intercept_ : ndarray of shape (1,)
    classes_ : ndarray of shape (2,)
    n_pairs_ : float
        The number of pairs m, or the sum of their weights.
    objective_, lower_bound_, gap_, converged_, status_, n_iter_, history_
        As in `LinearSVC`.

    Examples
    --------
    >>> from cutsvm import ROCAreaSVC
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> model = ROCAreaSVC(C=10.0).fit(X, y)
    >>> roc_auc_score(y, model.decision_function(X)) > 0.99
    True
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ROCAreaSVC:
        """Fits the model to rows X with labels y of two classes, or to a data set: `fit("train.svm")`."""
        solver = self._check_params()
        with ingest(self, X, y, sample_weight) as data:
            if len(data.classes) > 2:
                raise ValueError(
                    "Only binary classification is supported: ROCAreaSVC takes two classes, "
                    f"y has {len(data.classes)}; OrdinalSVC takes more, in order"
                )
            levels = (data.y == data.classes[1]).astype(np.int64)
            self._fit_pairs([self], solver, data.rows, levels, np.array([0, len(levels)]), data.weights)
            self.classes_ = data.class_names
            self.intercept_ = -best_thresholds(self._scores_of_rows(data.rows), levels, data.weights, 2, "zero_one")
            self._warn_unless_converged(data)
        return self

    def to_sklearn(self) -> Any:
        """A fitted `sklearn.svm.LinearSVC` that predicts the same; its parameters are its defaults."""
        return self._copy_fit(svm.LinearSVC(loss="hinge", dual=True))


@dataclass(eq=False, repr=False)
class OrdinalSVC(PairwiseSVM):
    """Ordinal regression: classes that have an order, as marks and grades do.

    It minimises, over w,

        F = |w|^2 / 2 + C / m  sum of s_i s_j loss(w.(x_i - x_j))  over the pairs with y_i > y_j

    with loss(d) = max(0, 1 - d), or its square (`loss`), m being the number of these pairs (with sample_weight: the sum
    of s_i s_j). The thresholds between the levels then
    minimise the training error.

    It predicts classes from one score per row, so for scikit-learn it is not a classifier: `score` is the share of
    pairs in order, and cross-validation does not stratify by default (`cv=StratifiedKFold(5)` does).

    Parameters
    ----------
    C, loss, tol, solver, max_iter, max_time, n_jobs, warm_start, memory_limit, checkpoint
        As in `RankingSVM`.
    callbacks, verbose, random_state
        As in `RankingSVM`; rows on disk may be in any order.
    threshold_loss : {"absolute", "zero_one"}, default="absolute"
        The error that the thresholds minimise: the difference of levels, or the number of wrong predictions.
    levels : sequence of labels, default=None
        The labels from the lowest to the highest. None: in ascending order; an ordered pandas categorical has its own.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
    thresholds_ : ndarray of shape (n_classes - 1,)
        Rising. A row's level is how many of them its score exceeds.
    classes_ : ndarray of shape (n_classes,)
        The labels in their order.
    n_pairs_ : float
        The number of pairs m, or the sum of their weights.
    objective_, lower_bound_, gap_, converged_, status_, n_iter_, history_
        As in `LinearSVC`.

    Examples
    --------
    >>> import numpy as np
    >>> from cutsvm import OrdinalSVC
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = np.digitize(X @ [1.0, -2.0, 0.5], [-2.0, 0.0, 2.0])
    >>> model = OrdinalSVC(C=100.0).fit(X, y)
    >>> float(np.abs(model.predict(X) - y).mean()) < 0.1
    True
    """

    _: KW_ONLY
    threshold_loss: Literal["absolute", "zero_one"] = "absolute"
    levels: Sequence[Any] | None = None

    def _check_params(self) -> Solver:
        validation.one_of("threshold_loss", self.threshold_loss, tuple(COSTS))
        return super()._check_params()

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OrdinalSVC:
        """Fits the model to rows X with levels y, or to a data set: `fit("train.svm")`."""
        solver = self._check_params()
        stated = stated_order(y) if self.levels is None else np.asarray(self.levels)
        with ingest(self, X, y, sample_weight) as data:
            classes, weights = data.classes, data.weights
            order = in_stated_order(data.class_names, stated)
            levels = np.argsort(order)[np.minimum(np.searchsorted(classes, data.y), len(classes) - 1)]
            self._fit_pairs([self], solver, data.rows, levels, np.array([0, len(levels)]), weights)
            self.classes_ = data.class_names[order]
            scores = self._scores_of_rows(data.rows)
            self.thresholds_ = best_thresholds(scores, levels, weights, len(classes), self.threshold_loss)
            self._warn_unless_converged(data)
        return self

    @by_block
    def decision_function(self, X: Any) -> Vector:
        """X coef_': one score per row, rising with the level."""
        return self._scores(X)

    @by_block
    def predict(self, X: Any) -> Array:
        """The level: classes_[number of thresholds that the score exceeds]."""
        scores = self.decision_function(X)
        labels: Array = self.classes_[level_of(scores, self.thresholds_)]
        return labels

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of the pairs with y_i > y_j that are in order; equal scores count half.

        A source has its own labels and weights: y is left out.
        """
        if has_own_labels(self, X, y):
            scores, labels, _, sample_weight = all_scores(self, X, self.decision_function, y, None, sample_weight)
        else:
            scores, labels = self.decision_function(X), np.asarray(y)
        order = np.argsort(self.classes_, kind="stable")
        at = np.searchsorted(self.classes_, labels, sorter=order).clip(max=len(order) - 1)
        unknown = self.classes_[order[at]] != labels
        if np.any(unknown):
            raise ValueError(f"y has the label {labels[unknown].tolist()[0]!r}, which is no class of the model")
        return pair_accuracy(scores, order[at], None, sample_weight)
