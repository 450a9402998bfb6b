"""LinearSVCCV, LinearSVRCV and RankingSVMCV: C chosen by cross-validation, with one path over C per fold."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, check_cv

from cutsvm._utils import memory, threads
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.cluster.open import is_collection
from cutsvm.estimators import path
from cutsvm.estimators._choice_on_disk import ScoringSettings, choose_on_disk
from cutsvm.estimators._choice_on_parts import check_choice, choose_on_parts, figures_of_choice
from cutsvm.estimators._cross_validation import Chooser, accepted
from cutsvm.estimators._ingest import TrainingData, ingest
from cutsvm.estimators._linear import LinearModel
from cutsvm.estimators.linear import LinearSVC
from cutsvm.estimators.ranking import RankingSVM
from cutsvm.estimators.ranking_scorer import as_scorer
from cutsvm.estimators.regression import LinearSVR
from cutsvm.io.store.batches import is_sparse
from cutsvm.io.store.store import Store
from cutsvm.problem.ranking_measures import Metric
from cutsvm.solvers.protocol import Solver

__all__ = ["Chooser", "LinearSVCCV", "LinearSVRCV", "RankingSVMCV"]

Own = TypeVar("Own", bound="LinearChooser")


@dataclass(eq=False, repr=False)
class LinearChooser(Chooser, LinearModel):
    """Chooses C of a linear model of the class `_kind`."""

    C: float = field(init=False)  # not a parameter: a property of Chooser

    _kind: ClassVar[type[LinearModel]]
    _trains_from_disk = _trains_on_parts = True
    _scoring_settings: ClassVar[ScoringSettings] = ScoringSettings()

    def fit(self: Own, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Own:
        """Chooses C and fits the model to rows X with labels or targets y, or to a data set: `fit("train.svm")`.

        groups: for splitters that keep groups whole. X may be a collection (`cutsvm.cluster`): all folds and all C then
        share its readings; cv is an int there, and scoring None.
        """
        solver, splitter = self._check_params(), self._splitter()
        scorer = check_scoring(self, scoring=self.scoring)
        if is_collection(X):
            return self._fit_collection(solver, groups, X, y, sample_weight)
        self._split_by = splitter, groups
        try:
            data = ingest(self, X, y, sample_weight)
        finally:
            del self._split_by
        with data:
            Cs = path.grid(self.Cs, data.rows, data.weights, self._loss_scale(data))
            if data.on_disk:
                choose_on_disk(self, solver, data, splitter, groups, Cs, partial(self._score_of, scorer))
                self._finish(data)
                return self
            self._set_reads(None)
            self._check_copies(data, splitter.get_n_splits(data.X, data.y, groups))

            def score(model: LinearModel, held_out: Any, test: Ints) -> float:
                weights = data.weights[test] if data.weighted else None
                return self._score_of(scorer, model, held_out, data.y[test], weights)

            self._choose(self._kind, solver, data, splitter.split(data.X, data.y, groups), Cs, score)
        return self

    def _fit_collection(self: Own, solver: Solver, groups: Any, *given: Any) -> Own:
        check_choice(self, groups)
        self._n_problems = (5 if self.cv is None else int(self.cv)) + int(self.refit)
        try:
            data = ingest(self, *given)
        finally:
            del self._n_problems
        with data:
            assert data.parts is not None
            choose_on_parts(self, solver, data)
            self._finish(data)
            if self.refit:
                self.cluster_ = figures_of_choice(self.cluster_, data.parts)
        return self

    def _splitter(self) -> Any:
        """As `check_cv` has it, which would look at all labels for an int."""
        if self.cv is not None and not isinstance(self.cv, numbers.Integral):
            return check_cv(self.cv)
        many = 5 if self.cv is None else self.cv
        return StratifiedKFold(many) if is_classifier(self) else KFold(many)

    def _check_copies(self, data: TrainingData, folds: int) -> None:
        """Refuses arrays whose copies for the folds do not fit the limit."""
        if self.memory_limit is None:
            return
        limit = memory.allowance(self.memory_limit, memory.MemorySettings().step)
        at_once = min(threads.count(self.n_jobs, data.X.size), folds)
        need = at_once * (12 * data.X.nnz if is_sparse(data.X) else data.X.nbytes)
        if need > limit.size:
            raise limit.error(
                need, "folds have copies of arrays; `cutsvm.convert` makes a store, whose rows stay on disk"
            )

    def _memory_plan(self, store: Store, weights: Any = None) -> memory.Plan:
        splitter, groups = self.__dict__.get("_split_by") or (self._splitter(), None)
        self._n_problems = int(splitter.get_n_splits(groups=groups)) + int(self.refit)
        try:
            plan = super()._memory_plan(store, weights)
        finally:
            del self._n_problems
        self._at_once = plan.at_once
        return plan

    def _score_of(
        self, scorer: Callable[..., Any], model: LinearModel, X: Any, y: Array, weights: Vector | None
    ) -> float:
        return float(scorer(model, X, y, **accepted(scorer, sample_weight=weights)))


@dataclass(eq=False, repr=False)
class LinearSVCCV(LinearChooser, LinearSVC):
    """`LinearSVC` with C chosen by cross-validation.

    Every fold is one path over all C (`linear_path`), and so is the last fit, to all rows. Every fit has a certificate.

    Parameters
    ----------
    Cs : int or rising sequence of numbers above 0, default=10
        An int: this number of them, in equal ratios, where C (sum of weight x |x|^2) goes from 1 to 1e6.
    cv : int, splitter or iterable of (train, test), default=5
        As in scikit-learn: an int is that many stratified folds. A collection takes an int: a hash of a row's number
        among all rows says which fold holds it out, so that the folds are the same for any parts.
    scoring : str or callable, default=None
        What to maximise, as in scikit-learn; None is the accuracy, and all that a collection takes. It is given
        `sample_weight` if there is one.
    refit : bool, default=True
        Whether to fit a path to all rows. If not there is no model, only C_ and the scores.
    loss, tol, solver, multi_class, fit_intercept, intercept, class_weight, max_iter, n_jobs, warm_start, callbacks
        As in `LinearSVC`. `n_jobs` threads are for the folds first. "balanced" is computed for each fold.
    verbose, random_state
        As in `LinearSVC`.
    max_time : float, default=None
        Limit in seconds for all together. Fits that have not ended by then keep the best known solution, with its gap.
    memory_limit : str or int, default=None
        As in `LinearSVC`, for all fits together: rows stay in the store, and all folds and all C share its reads.
    checkpoint : None
        A checkpoint is of one fit.

    Attributes
    ----------
    C_ : float
        The C with the highest mean score; of equal ones the smallest.
    Cs_ : ndarray of shape (n_Cs,)
    scores_ : ndarray of shape (n_folds, n_Cs)
        NaN for folds that had not begun when Ctrl-C came.
    gaps_ : ndarray of shape (n_folds, n_Cs)
        The relative gap that each fit is proven to have.
    held_out_scores_ : ndarray of shape (n,) or (n, n_classes)
        The decision values of each row at C_, by the fold that held it out; NaN where none did. Not of a collection.
    reads_ : Reads
        Of a fit from disk or to a collection: `passes` over the data that were made, and `requested_passes` that the
        fits asked for.
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

    C: float = field(init=False)

    _kind = LinearSVC

    def _score_of(
        self, scorer: Callable[..., Any], model: LinearModel, X: Any, y: Array, weights: Vector | None
    ) -> float:
        if self.scoring in (None, "accuracy") and weights is None:  # without scikit-learn's checks at every C
            return float(np.mean(model.predict(X) == y))
        return super()._score_of(scorer, model, X, y, weights)


@dataclass(eq=False, repr=False)
class LinearSVRCV(LinearChooser, LinearSVR):
    """`LinearSVR` with C chosen by cross-validation.

    Every fold is one path over all C (`linear_path`), and so is the last fit, to all rows. Every fit has a certificate.

    Parameters
    ----------
    Cs : int or rising sequence of numbers above 0, default=10
        An int: this number of them, in equal ratios, where C (sum of weight x |x|^2) goes from 1 to 1e6; with a loss
        that is linear in the residuals, divided by the mean distance of y from its mean.
    cv : int, splitter or iterable of (train, test), default=5
        As in scikit-learn: an int is that many folds of consecutive rows, and all that a collection takes.
    scoring : str or callable, default=None
        What to maximise, as in scikit-learn; None is R^2, and all that a collection takes. It is given `sample_weight`
        if there is one.
    refit : bool, default=True
        Whether to fit a path to all rows. If not there is no model, only C_ and the scores.
    epsilon, loss
        As in `LinearSVR`.
    tol, solver, fit_intercept, intercept, max_iter, max_time, n_jobs, warm_start, callbacks, verbose, random_state
        As in `LinearSVCCV`.
    memory_limit : str or int, default=None
        As in `LinearSVC`, for all fits together: rows stay in the store, and all folds and all C share its reads.
    checkpoint : None
        A checkpoint is of one fit.

    Attributes
    ----------
    C_, Cs_, scores_, gaps_, path_, reads_
        As in `LinearSVCCV`.
    held_out_scores_ : ndarray of shape (n,)
        The prediction for each row at C_, by the fold that held it out; NaN where none did. Not of a collection.
    coef_, intercept_, objective_, lower_bound_, gap_, converged_, status_, n_iter_, history_
        As in `LinearSVR`, of the fit to all rows with C_.

    Examples
    --------
    >>> from cutsvm import LinearSVRCV
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LinearSVRCV(Cs=5, cv=3, loss="squared_epsilon_insensitive").fit(X, y)
    >>> model.scores_.shape, bool(model.score(X, y) > 0.4)
    ((3, 5), True)
    """

    C: float = field(init=False)

    _kind = LinearSVR


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
        None is the share of pairs in order; "ndcg@k" with a number k, "ndcg" and "map" are those of
        `ranking_score`. A callable gets `qid` and `sample_weight` of the rows if it takes them.
    refit : bool, default=True
        Whether to fit a path to all rows. If not there is no model, only C_ and the scores.
    loss
        As in `RankingSVM`.
    tol, solver, max_iter, max_time, n_jobs, warm_start, callbacks, verbose, random_state
        As in `LinearSVCCV`.
    memory_limit, checkpoint : None
        Folds have their rows in memory, since on disk no row of a query may be left out; a checkpoint is of one fit.

    Attributes
    ----------
    C_, Cs_, scores_, gaps_, held_out_scores_, path_
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
        self._check_routing(qid)
        data = ingest(self, X, y, sample_weight, qid=qid)
        scorer = check_scoring(self, scoring=as_scorer(self.scoring))
        splits = self._splits(data.X, data.y, data.query_codes)

        def score(model: RankingSVM, held_out: Any, test: Ints) -> float:
            weights = data.weights[test] if data.weighted else None
            given: dict[str, Any] = {"qid": data.query_codes[test], "sample_weight": weights}
            if self.scoring is None:
                return model.score(held_out, data.y[test], **given)
            return float(scorer(model, held_out, data.y[test], **accepted(scorer, **given)))

        Cs = path.grid(self.Cs, data.rows, data.weights, self._loss_scale(data))
        self._choose(RankingSVM, solver, data, splits, Cs, score)
        return self

    _own_scorers = ", and 'ndcg@10', 'ndcg' and 'map' are ours"

    def _has_scorer(self, name: str) -> bool:
        return Metric.is_name(name) or super()._has_scorer(name)

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
