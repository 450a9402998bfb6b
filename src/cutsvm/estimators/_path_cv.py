"""Cross-validation of a path over C: every fold walks all C, folds fan out over threads.

A fold's rows are taken out of the checked X. At its end all C are scored together: one pass over the rows held out, and
the scorer gets models that know their scores of these rows.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import wait
from copy import copy
from threading import Event
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer_names

from cutsvm._utils import threads
from cutsvm._utils.types import Ints, Vector
from cutsvm._utils.warn import warn
from cutsvm.driver.run import Record, Solver, Status
from cutsvm.estimators import path
from cutsvm.estimators._base import Certified
from cutsvm.estimators._ingest import TrainingData
from cutsvm.matrix import as_rows

if TYPE_CHECKING:
    from cutsvm._utils.memory import Plan
    from cutsvm.io.store.store import Store

__all__ = ["Chooser", "Fold", "Folds", "Limits", "Outcome", "accepted", "best_of", "score_all"]

Model = TypeVar("Model", bound=Certified)


class Fold(NamedTuple):
    """Its number from 1, the rows to train on and the rows to score."""

    number: int
    train: Ints
    test: Ints


class Limits(NamedTuple):
    """What one fold may use; it is to stop once `stopped`, a callback, says so."""

    threads: int
    seconds: float | None
    stopped: Callable[[Record], bool]


class Outcome(NamedTuple):
    """The models of one fold, one for each C, and their scores."""

    models: Sequence[Certified]
    scores: Vector


class Folds:
    """Runs folds side by side; `seconds` is for all of them and for `more` fits of the same size."""

    def __init__(
        self, folds: Sequence[Fold], *, n_jobs: int | None, size: int, seconds: float | None, more: int
    ) -> None:
        self.folds, self.seconds, self.more = folds, seconds, more
        self.threads = threads.count(n_jobs, size)
        self.side_by_side = min(self.threads, len(folds) + more)
        self.began, self._stop = perf_counter(), Event()
        self.outcomes: list[Outcome | None] = []
        self.also: Any = None

    @property
    def interrupted(self) -> bool:
        return self._stop.is_set()

    def last(self) -> Limits:
        """What a fit to all rows may use after the folds."""
        return Limits(max(1, self.threads // self.side_by_side), self.left(), self._stopped)

    def _stopped(self, record: Record) -> bool:
        return self._stop.is_set()

    def left(self) -> float | None:
        """Seconds that are left."""
        return None if self.seconds is None else max(0.0, self.seconds - (perf_counter() - self.began))

    def run(
        self, work: Callable[[Fold, Limits], Outcome], also: Callable[[Limits], Any] | None = None
    ) -> list[Outcome | None]:
        """The outcome of each fold; after Ctrl-C those that were not begun have none.

        also: one more thing to do; it does not wait for all folds to end. What it returns is in `also`.
        """

        def last() -> Any:
            return None if also is None or self._stop.is_set() else also(self.last())

        def one(place: int) -> Outcome | None:
            if self._stop.is_set():
                return None
            left = self.left()
            rounds = math.ceil((len(self.folds) - place) / self.side_by_side) + self.more
            limits = Limits(
                max(1, self.threads // self.side_by_side),
                None if left is None else max(left / rounds, 1e-9),
                self._stopped,
            )
            outcome = work(self.folds[place], limits)
            if any(model.status_ in (Status.INTERRUPTED, Status.CALLBACK) for model in outcome.models):
                self._stop.set()
            return outcome

        places = range(len(self.folds))
        with threads.one_blas_thread():
            if self.side_by_side == 1:
                outcomes = [one(place) for place in places]
                self.also = last()
                return outcomes
            with threads.ThreadPool(self.side_by_side) as pool:
                waiting = [pool.submit(one, place) for place in places]
                final = pool.submit(last)
                try:
                    wait([*waiting, final])
                except KeyboardInterrupt:  # it comes to the main thread: the others have to be told
                    self._stop.set()
                except BaseException:
                    self._stop.set()
                    raise
                outcomes = [future.result() for future in waiting]
                self.also = final.result()
                return outcomes


def score_all(models: Sequence[Model], X: Any, n_threads: int, score: Callable[[Model, Any], float]) -> Vector:
    """score(model, X) of each model, which has its scores of the rows X from one pass for all."""
    rows = as_rows(X, n_threads)
    W = np.ascontiguousarray(np.vstack([model.coef_ for model in models]), dtype=np.float64)
    b = np.ascontiguousarray(np.concatenate([model.intercept_ for model in models]), dtype=np.float64)
    scores = np.empty((rows.n, len(W)))
    rows.scores_many(W, b, scores)
    values, many = np.empty(len(models)), len(W) // len(models)
    for k, model in enumerate(models):
        own = np.ascontiguousarray(scores[:, k * many : (k + 1) * many])
        knowing = copy(model)
        knowing.remember(X, own[:, 0] if many == 1 else own)
        values[k] = score(knowing, X)
    return values


def accepted(scorer: Callable[..., Any], **given: Any) -> dict[str, Any]:
    """Those of the arguments that are there and that the scorer takes."""
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
    """The column with the highest mean over the folds that have scores; of equal ones the first, so the smallest C."""
    done = ~np.isnan(scores).all(axis=1)
    if not done.any():
        return 0
    means = np.nanmean(scores[done], axis=0)
    return int(np.nanargmax(means)) if not np.isnan(means).all() else 0


class Chooser(Certified):
    """An estimator that chooses its C by cross-validation; what the kinds of them share."""

    Cs: Any
    cv: Any
    scoring: Any
    refit: bool

    path_: list[Any]
    _trains_from_disk = False

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

    def _memory_plan(self, store: Store) -> Plan | None:
        return None  # folds have their rows in memory

    def _template(self, kind: type[Model], limits: Limits) -> Model:
        """An estimator of that kind with the parameters of this one, within the limits."""
        own = {name: value for name, value in self.get_params(deep=False).items() if name not in _OF_CHOOSERS}
        callbacks = [*(self.callbacks or ()), limits.stopped]
        own |= {"n_jobs": limits.threads, "max_time": limits.seconds, "callbacks": callbacks}
        template = kind(**own)
        for name in ("n_features_in_", "feature_names_in_", *(("coef_", "intercept_") if self.warm_start else ())):
            if hasattr(self, name):
                setattr(template, name, getattr(self, name))
        return template

    def _of_folds(self, kind: type[Model], folds: Folds) -> Model:
        """After Ctrl-C: a template whose fit begins, and ends, at the mean of the folds' models."""
        template = self._template(kind, folds.last())
        done = [outcome.models[self._best] for outcome in folds.outcomes if outcome is not None]
        if done:
            template.set_params(warm_start=True)
            alike = [model for model in done if model.coef_.shape == done[0].coef_.shape]
            template.coef_ = np.mean([model.coef_ for model in alike], axis=0)
            template.intercept_ = np.mean([model.intercept_ for model in alike], axis=0)
        return template

    def _choose(
        self,
        splits: Iterable[tuple[Any, Any]],
        Cs: list[float],
        size: int,
        of_fold: Callable[[Fold, Limits], Outcome],
        of_all: Callable[[Any], list[Any]],
        kind: type[Certified],
    ) -> None:
        """Runs the folds, walks over all rows, which does not depend on what they find, and chooses C.

        of_all: the fits to all rows from a template of this kind.
        """
        numbered = [Fold(k, np.asarray(train), np.asarray(test)) for k, (train, test) in enumerate(splits, start=1)]
        folds = Folds(numbered, n_jobs=self.n_jobs, size=size, seconds=self.max_time, more=int(self.refit))
        also = (lambda limits: of_all(self._template(kind, limits))) if self.refit else None
        folds.outcomes = outcomes = folds.run(of_fold, also)
        nothing = np.full(len(Cs), np.nan)
        self.Cs_: Vector = np.array(Cs)
        self.scores_ = np.array([nothing if done is None else done.scores for done in outcomes])
        self.gaps_ = np.array([nothing if done is None else [m.gap_ for m in done.models] for done in outcomes])
        self._best = best_of(self.scores_)
        self.C_ = Cs[self._best]
        if self.refit:
            self.path_ = folds.also or of_all(self._of_folds(kind, folds))

    def _finish(self, data: TrainingData) -> None:
        """Takes over the model with the C chosen, and says what is not as good as it was to be."""
        late = int(np.sum(self.gaps_ > self.tol))
        if self.refit:
            chosen = self.path_[self._best]
            fitted = [name for name in vars(chosen) if name.endswith("_") and not name.startswith("_")]
            for name in (*fitted, "status_"):
                setattr(self, name, getattr(chosen, name))
            for model in self.path_:
                model.set_params(**{name: self.get_params()[name] for name in ("n_jobs", "max_time", "callbacks")})
            path.warn_of(self.path_, data)
        if late and not (self.refit and any(not model.converged_ for model in self.path_)):
            worst = f"the worst gap is {np.nanmax(self.gaps_):.2g}"
            text = f"{late} of {self.gaps_.size} fits of folds are not at tol; {worst}"
            warn(text, ConvergenceWarning)


_OF_CHOOSERS = ("Cs", "cv", "scoring", "refit")
