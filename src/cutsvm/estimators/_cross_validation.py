"""Chooser: C chosen by cross-validation, with one path over C per fold.

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
from dataclasses import KW_ONLY, dataclass
from functools import partial
from threading import Event
from time import perf_counter
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer_names

from cutsvm._utils import threads
from cutsvm._utils.rendezvous import Reads
from cutsvm._utils.types import Ints, Vector
from cutsvm._utils.warn import warn
from cutsvm.driver.records import Record, Status
from cutsvm.estimators import path
from cutsvm.estimators._base import Certified
from cutsvm.estimators._ingest import TrainingData
from cutsvm.estimators._predict import COLUMN_ATTRIBUTES
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


def held_out_scores(models: Sequence[Any], X: Any, tests: Sequence[Ints], n_threads: int) -> Vector:
    """The decision values of the rows tests[k] by models[k], and NaN for rows that are in no test set or more classes
    than a model knows; shape (n,) or (n, n_classes)."""
    outputs = max(len(np.atleast_2d(model.coef_)) for model in models)
    scores = np.full((X.shape[0], outputs), np.nan)
    for model, test in zip(models, tests, strict=True):
        own = model._scores_of_rows(as_rows(X[test], n_threads)).reshape(len(test), -1)
        if own.shape[1] == outputs:
            scores[test] = own
    return scores[:, 0] if outputs == 1 else scores


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

    _trains_from_disk = _trains_on_parts = False  # folds have their rows in memory
    _no_parts = "its folds have their rows in memory"

    @property
    def C(self) -> float:  # type: ignore[override]
        """The C that was chosen; 1 before."""
        return float(self.__dict__.get("C_", 1.0))

    def _check_params(self) -> Solver:
        path.check(self.Cs)
        if self.checkpoint is not None:
            raise ValueError(f"checkpoint={os.fspath(self.checkpoint)!r}: a checkpoint is of one fit, here are many")
        if self.memory_limit is not None and not self._trains_from_disk:
            raise ValueError(
                f"memory_limit={self.memory_limit!r}: {type(self).__name__} has the rows of its folds in memory, since "
                "on disk no row of a query may be left out; a path over C (`ranking_path`) takes memory_limit"
            )
        if isinstance(self.scoring, (list, tuple, set, dict)):
            raise ValueError(f"scoring={self.scoring!r}: expected one scorer, there is one C to choose")
        if isinstance(self.scoring, str) and not self._has_scorer(self.scoring):
            raise ValueError(
                f"scoring={self.scoring!r}: scikit-learn has no scorer of this name; "
                f"sklearn.metrics.get_scorer_names() lists those it has{self._own_scorers}"
            )
        solver: Solver = super()._check_params()
        return solver

    _own_scorers: ClassVar[str] = ""  # names besides scikit-learn's, for errors

    def _has_scorer(self, name: str) -> bool:
        return name in get_scorer_names()

    def _template(self, kind: type[Model], limits: Limits) -> Model:
        """An estimator of class `kind` with the parameters of this one, within the limits."""
        own = {name: getattr(self, name) for name in kind().get_params(deep=False) if name != "C"}
        callbacks = [*(self.callbacks or ()), limits.stopped]
        own |= {"n_jobs": limits.threads, "max_time": limits.seconds, "callbacks": callbacks}
        template = kind(**own)
        for name in (*COLUMN_ATTRIBUTES, *(("coef_", "intercept_") if self.warm_start else ())):
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

        folds = [(np.asarray(train), np.asarray(test)) for train, test in splits]
        fits: list[Callable[[Limits], FoldResult]] = [
            partial(fit_fold, number, train, test) for number, (train, test) in enumerate(folds, start=1)
        ]
        together = Fits(len(fits), int(self.refit), n_jobs=self.n_jobs, size=data.X.size, seconds=self.max_time)
        if self.refit:
            fits.append(lambda limits: fit_all(self._template(kind, limits)))
        results = together.run(fits)
        refitted = results.pop() if self.refit else None
        self._set_choice(Cs, results)
        done = [(result[0][self._best], test) for result, (_, test) in zip(results, folds, strict=True) if result]
        if done:
            models, tests = zip(*done, strict=True)
            self.held_out_scores_ = held_out_scores(models, data.X, tests, together.threads)
        if self.refit:
            refitted = refitted or fit_all(self._mean_of_folds(kind, together.limits(), results))
            self.path_: list[Any] = refitted[0]
        self._finish(data)

    def _set_reads(self, reads: Reads | None) -> None:
        """Sets the reads of a store, if the fit was from one."""
        self.__dict__.pop("reads_", None)
        if reads is not None:
            self.reads_ = reads

    def _set_choice(self, Cs: list[float], results: Sequence[FoldResult | None]) -> None:
        """Sets scores, gaps and the C with the best mean score."""
        missing = np.full(len(Cs), np.nan)
        self.Cs_: Vector = np.array(Cs)
        self.scores_ = np.array([missing if done is None else done[1] for done in results])
        self.gaps_ = np.array([missing if done is None else [m.gap_ for m in done[0]] for done in results])
        self._best = best_of(self.scores_)
        self.C_ = Cs[self._best]

    def _finish(self, data: TrainingData) -> None:
        """Takes over the model with the chosen C, and warns if fits have not converged."""
        late = int(np.sum(self.gaps_ > self.tol))
        if self.refit:
            chosen = self.path_[self._best]
            fitted = [name for name in vars(chosen) if name.endswith("_") and not name.startswith("_")]
            for name in (*fitted, "status_"):
                setattr(self, name, getattr(chosen, name))
            self._mark_fitted()
            for model in self.path_:
                model.set_params(**{name: getattr(self, name) for name in ("n_jobs", "max_time", "callbacks")})
            path.warn_of(self.path_, data)
        if late and not (self.refit and any(not model.converged_ for model in self.path_)):
            worst = f"the worst gap is {np.nanmax(self.gaps_):.2g}"
            text = f"{late} of {self.gaps_.size} fits of folds are not at tol; {worst}"
            warn(text, ConvergenceWarning)
