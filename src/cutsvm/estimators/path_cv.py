"""LinearSVCCV and RankingSVMCV: C chosen by cross-validation, with one path over C per fold.

Folds are fitted in parallel threads, to copies of their rows of the checked X. One pass over the rows held out gives
the scores of all C; the scorer gets models that have these scores cached.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import wait
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from threading import Event
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import GroupKFold, KFold, check_cv

from cutsvm._utils import threads
from cutsvm._utils.types import Ints, Vector
from cutsvm._utils.warn import warn
from cutsvm.driver.records import Record, Status
from cutsvm.estimators import path
from cutsvm.estimators._base import Certified
from cutsvm.estimators._ingest import TrainingData, ingest
from cutsvm.estimators.linear import LinearSVC
from cutsvm.estimators.ranking import RankingSVM
from cutsvm.matrix import as_rows
from cutsvm.solvers.protocol import Solver

Model = TypeVar("Model", bound=Certified)


class Limits(NamedTuple):
    """What one fold may use; `stopped` is a callback that ends its fits after Ctrl-C."""

    threads: int
    seconds: float | None
    stopped: Callable[[Record], bool]


FoldResult = tuple[list[Any], Vector]  # the models of one fold, one for each C, and their scores


class Fits:
    """Runs fits in parallel: one of each fold, then `n_refits` to all rows; `seconds` is for all together."""

    def __init__(self, n_folds: int, n_refits: int, *, n_jobs: int | None, size: int, seconds: float | None) -> None:
        self.n_folds, self.n_refits, self.seconds = n_folds, n_refits, seconds
        self.threads = threads.count(n_jobs, size)
        self.n_parallel = min(self.threads, n_folds + n_refits)
        self.began, self._stop = perf_counter(), Event()

    def limits(self, rounds: int = 1) -> Limits:
        """What a fit may use if this number of rounds is left, its own included."""
        seconds = self.seconds
        if seconds is not None:
            seconds = max((seconds - (perf_counter() - self.began)) / rounds, 1e-9)
        return Limits(max(1, self.threads // self.n_parallel), seconds, lambda record: self._stop.is_set())

    def run(self, fits: Sequence[Callable[[Limits], FoldResult]]) -> list[FoldResult | None]:
        """The results; None of fits that had not begun when Ctrl-C came."""
        with threads.one_blas_thread():
            if self.n_parallel == 1:
                return [self._run(fit, place) for place, fit in enumerate(fits)]
            with threads.ThreadPool(self.n_parallel) as pool:
                waiting = [pool.submit(self._run, fit, place) for place, fit in enumerate(fits)]
                try:
                    wait(waiting)
                except KeyboardInterrupt:  # raised in the main thread only: the event stops the others
                    self._stop.set()
                except BaseException:
                    self._stop.set()
                    raise
                return [future.result() for future in waiting]

    def _run(self, fit: Callable[[Limits], FoldResult], place: int) -> FoldResult | None:
        if self._stop.is_set():
            return None
        models, scores = fit(self.limits(math.ceil((self.n_folds - place) / self.n_parallel) + self.n_refits))
        ended = any(model.status_ in (Status.INTERRUPTED, Status.CALLBACK) for model in models)
        if ended and place < self.n_folds:
            self._stop.set()
        return models, scores


def score_all(models: Sequence[Model], X: Any, n_threads: int, score: Callable[[Model, Any], float]) -> Vector:
    """score(model, X) of each model; one pass over X gives the decision values of all models."""
    rows = as_rows(X, n_threads)
    W = np.ascontiguousarray(np.vstack([model.coef_ for model in models]), dtype=np.float64)
    b = np.ascontiguousarray(np.concatenate([model.intercept_ for model in models]), dtype=np.float64)
    scores = np.empty((rows.n, len(W)))
    rows.scores_many(W, b, scores)
    values, many = np.empty(len(models)), len(W) // len(models)
    for k, model in enumerate(models):
        own = np.ascontiguousarray(scores[:, k * many : (k + 1) * many])
        cached = copy(model)
        cached.cache_scores(X, own[:, 0] if many == 1 else own)
        values[k] = score(cached, X)
    return values


def accepted(scorer: Callable[..., Any], **given: Any) -> dict[str, Any]:
    """The arguments that are not None and that the scorer takes."""
    known = {name: value for name, value in given.items() if value is not None}
    try:
        parameters = inspect.signature(scorer).parameters.values()
    except (TypeError, ValueError):
        return known
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return known
    names = {parameter.name for parameter in parameters}
    return {name: value for name, value in known.items() if name in names}


def best_of(scores: Vector) -> int:
    """The column with the highest mean over the folds that have scores; among equal ones the first, the smallest C."""
    done = ~np.isnan(scores).all(axis=1)
    if not done.any():
        return 0
    means = np.nanmean(scores[done], axis=0)
    return int(np.nanargmax(means)) if not np.isnan(means).all() else 0


@dataclass(eq=False, repr=False)
class Chooser(Certified):
    """Base of the estimators that choose C by cross-validation."""

    Cs: int | Sequence[float] | Vector = 10
    _: KW_ONLY
    cv: Any = 5
    scoring: str | Callable[..., float] | None = None
    refit: bool = True

    _trains_from_disk = False  # folds have their rows in memory

    @property
    def C(self) -> float:  # type: ignore[override]
        """The C that was chosen; 1 before."""
        return float(self.__dict__.get("C_", 1.0))

    def _check_params(self) -> Solver:
        path.check(self.Cs)
        if self.checkpoint is not None:
            raise ValueError(f"checkpoint={os.fspath(self.checkpoint)!r}: a checkpoint is of one fit, here are many")
        if self.memory_limit is not None:
            raise ValueError(
                f"memory_limit={self.memory_limit!r}: folds have their rows in memory; `linear_path` has not"
            )
        if isinstance(self.scoring, (list, tuple, set, dict)):
            raise ValueError(f"scoring={self.scoring!r}: expected one scorer, there is one C to choose")
        if isinstance(self.scoring, str) and self.scoring not in get_scorer_names():
            raise ValueError(
                f"scoring={self.scoring!r}: scikit-learn has no scorer of this name; "
                "sklearn.metrics.get_scorer_names() lists those it has"
            )
        solver: Solver = super()._check_params()
        return solver

    def _template(self, kind: type[Model], limits: Limits) -> Model:
        """An estimator of class `kind` with the parameters of this one, within the limits."""
        own = {name: getattr(self, name) for name in kind().get_params(deep=False) if name != "C"}
        callbacks = [*(self.callbacks or ()), limits.stopped]
        own |= {"n_jobs": limits.threads, "max_time": limits.seconds, "callbacks": callbacks}
        template = kind(**own)
        for name in ("n_features_in_", "feature_names_in_", *(("coef_", "intercept_") if self.warm_start else ())):
            if hasattr(self, name):
                setattr(template, name, getattr(self, name))
        return template

    def _mean_of_folds(self, kind: type[Model], limits: Limits, results: list[FoldResult | None]) -> Model:
        """After Ctrl-C: a template whose fit starts, and ends, at the mean of the folds' models."""
        template = self._template(kind, limits)
        done = [result[0][self._best] for result in results if result is not None]
        if done:
            template.set_params(warm_start=True)
            alike = [model for model in done if model.coef_.shape == done[0].coef_.shape]
            template.coef_ = np.mean([model.coef_ for model in alike], axis=0)
            template.intercept_ = np.mean([model.intercept_ for model in alike], axis=0)
        return template

    def _choose(
        self,
        kind: type[Any],
        solver: Solver,
        data: TrainingData,
        splits: Iterable[tuple[Any, Any]],
        Cs: list[float],
        score: Callable[[Any, Any, Ints], float],
    ) -> None:
        """Fits models of class `kind` at all Cs to the folds and to all rows, which is independent, and chooses C.

        score(model, held_out, test): the score of the rows `test`, which are the rows of `held_out`.
        """
        on_one_thread = data.on_threads(1)
        missing = np.full(len(Cs), np.nan)

        def fit_fold(number: int, train: Ints, test: Ints, limits: Limits) -> FoldResult:
            template = self._template(kind, limits)
            models = path.copies(template, Cs)
            try:
                template._fit_path(models, solver, on_one_thread.take(train))
                scores = score_all(models, data.X[test], limits.threads, lambda model, X: score(model, X, test))
            except ValueError as error:
                raise ValueError(f"fold {number}: {error}") from None
            return models, scores

        def fit_all(template: Any) -> FoldResult:
            models = path.copies(template, Cs)
            template._fit_path(models, solver, data.on_threads(threads.count(template.n_jobs, data.X.size)))
            return models, missing

        fits: list[Callable[[Limits], FoldResult]] = [
            partial(fit_fold, number, np.asarray(train), np.asarray(test))
            for number, (train, test) in enumerate(splits, start=1)
        ]
        together = Fits(len(fits), int(self.refit), n_jobs=self.n_jobs, size=data.X.size, seconds=self.max_time)
        if self.refit:
            fits.append(lambda limits: fit_all(self._template(kind, limits)))
        results = together.run(fits)
        refitted = results.pop() if self.refit else None
        self.Cs_: Vector = np.array(Cs)
        self.scores_ = np.array([missing if done is None else done[1] for done in results])
        self.gaps_ = np.array([missing if done is None else [m.gap_ for m in done[0]] for done in results])
        self._best = best_of(self.scores_)
        self.C_ = Cs[self._best]
        if self.refit:
            refitted = refitted or fit_all(self._mean_of_folds(kind, together.limits(), results))
            self.path_: list[Any] = refitted[0]
        self._finish(data)

    def _finish(self, data: TrainingData) -> None:
        """Takes over the model with the chosen C, and warns if fits have not converged."""
        late = int(np.sum(self.gaps_ > self.tol))
        if self.refit:
            chosen = self.path_[self._best]
            fitted = [name for name in vars(chosen) if name.endswith("_") and not name.startswith("_")]
            for name in (*fitted, "status_"):
                setattr(self, name, getattr(chosen, name))
            for model in self.path_:
                model.set_params(**{name: getattr(self, name) for name in ("n_jobs", "max_time", "callbacks")})
            path.warn_of(self.path_, data)
        if late and not (self.refit and any(not model.converged_ for model in self.path_)):
            worst = f"the worst gap is {np.nanmax(self.gaps_):.2g}"
            text = f"{late} of {self.gaps_.size} fits of folds are not at tol; {worst}"
            warn(text, ConvergenceWarning)


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

        self._choose(LinearSVC, solver, data, splits, path.grid(self.Cs, data.rows, data.weights), score)
        return self


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

        Cs = path.grid(self.Cs, data.rows, data.weights / data.weights.sum())
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
