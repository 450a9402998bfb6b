"""Base class of the estimators: checks of parameters, the certificate, scores of rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence, Set
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from cutsvm import solvers
from cutsvm._utils import memory, threads, validation
from cutsvm._utils.types import Array, Vector
from cutsvm._utils.warn import is_in_loop, warn
from cutsvm.display.callbacks import Log, ensure_log_handler
from cutsvm.display.notebook import NotebookView, certificate_html
from cutsvm.display.summary import describe_gap
from cutsvm.driver import fingerprint
from cutsvm.driver.checkpoint import Checkpoint
from cutsvm.driver.checkpoint_file import check_path
from cutsvm.driver.cluster_plan import ClusterFigures
from cutsvm.driver.fingerprint import Fingerprint, Scalar
from cutsvm.driver.records import Callback, Record, Result, Status
from cutsvm.driver.warm_start import KeptProblem, Slot
from cutsvm.estimators import _predict
from cutsvm.estimators._ingest import TrainingData, check_matrix
from cutsvm.estimators._predict import CheckedMatrix, by_block, columns_of, has_own_labels
from cutsvm.estimators._sklearn_callbacks import CallbackSupport, FitTask
from cutsvm.io.store.store import Store
from cutsvm.matrix import WholeRows, as_rows
from cutsvm.problem.certificate import relative_gap
from cutsvm.solvers.auto import REGISTRY
from cutsvm.solvers.protocol import Solver

if TYPE_CHECKING:
    from cutsvm.kernel_machines.checkpoint import DualCheckpoint


class Certified(NotebookView, CallbackSupport, BaseEstimator):  # type: ignore[misc]
    """An estimator whose fit has a lower bound of its objective."""

    C: float
    tol: float
    solver: str | Solver
    max_iter: int
    max_time: float | None
    n_jobs: int | None
    warm_start: bool
    memory_limit: str | int | None
    checkpoint: str | PathLike[str] | None
    callbacks: Sequence[Callable[[Record], object]] | None
    verbose: int

    coef_: Array
    intercept_: Array
    classes_: Array
    n_features_in_: int
    feature_names_in_: Array
    preprocessing_: dict[str, Any]  # after a fit from a table: how its columns became X
    cluster_: dict[str, Any]  # after a fit to rows in parts: what it has taken

    _resolve = staticmethod(solvers.resolve)
    # For `ingest`: what y holds (levels are ordered within queries), how few rows a fit accepts, whether it may read
    # the rows of a store from disk, and whether it may be to a collection, of which it sees sums; if not, why.
    _targets: ClassVar[Literal["classes", "levels", "numbers", "none"]] = "classes"
    _min_rows: ClassVar[int] = 1
    _trains_from_disk: ClassVar[bool] = False
    _trains_on_parts: ClassVar[bool] = False
    _no_parts: ClassVar[str] = "it needs all rows in memory"
    _n_problems = 1  # problems that a fit from disk, or to a collection, solves at a time

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def _trains_in_epochs(self) -> bool:
        """Whether iterations are epochs of stochastic gradient steps."""
        return False

    @property
    def status_(self) -> Status:
        """How the fit ended; stored by its name, since skops loads text and no enums."""
        name: str | None = self.__dict__.get("_status")
        if name is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'status_': it is not fitted")
        return Status[name]

    @status_.setter
    def status_(self, status: Status) -> None:
        self._status = status.name

    def _certificate_html(self) -> str:
        if "_status" not in self.__dict__:
            return ""
        return certificate_html(self.objective_, self.lower_bound_, self.gap_, self.status_.value)

    def _check_params(self) -> Solver:
        """Checks every parameter, and returns the solver object."""
        self._check_objective()
        validation.flags(self)
        validation.positive("tol", self.tol)
        validation.whole("max_iter", self.max_iter, least=1)
        if self.max_time is not None:
            validation.positive("max_time", self.max_time)
        if self.memory_limit is not None:
            memory.parse_limit(self.memory_limit)
        if self.checkpoint is not None:
            check_path(self.checkpoint)
        return self._resolve(self.solver)

    def _check_objective(self) -> None:
        """Checks the parameters that every objective of this kind has."""
        validation.positive("C", self.C)

    def _objective_settings(self) -> dict[str, Scalar]:
        """These parameters, as a checkpoint must match them."""
        return {"C": float(self.C)}

    @staticmethod
    def _check_requirements(solver: Solver, supported: Set[str], problem: str, remedy: str = "") -> None:
        """Refuses a solver that requires something that the oracle of a problem, called so, does not support."""
        if not solver.requires <= supported:
            legal = [name for name, kind in REGISTRY.items() if kind().requires <= supported]
            raise ValueError(f"{solver!r} does not solve {problem}: use {', '.join(map(repr, legal))}{remedy}")

    @staticmethod
    def _seeded(solver: Solver, random_state: int | np.random.RandomState | None) -> Solver:
        """The solver with a seed of the random state; its own seed for None."""
        if random_state is None:
            return solver
        return solver.seeded(int(check_random_state(random_state).randint(np.iinfo(np.int32).max)))

    def _memory_plan(self, store: Store, weights: Any = None) -> memory.Plan:
        """How to train from a store; weights: those given in place of its own."""
        raise NotImplementedError

    def _outputs(self, n_labels: int) -> int:
        """Scores of a row in one problem, if y has this number of distinct values."""
        return 1

    def _mark_fitted(self) -> None:
        """Keeps the parameters that predictions depend on, of a model whose weights were set and not fitted."""

    def _as_fitted(self) -> Any:
        """This estimator, or a copy with the parameters of its fit where predictions depend on them."""
        return self

    def _callbacks(self) -> list[Callback]:
        task: FitTask | None = self.__dict__.get("_fit_task")
        tasks = [] if task is None else [task.begin()]
        return [*(self.callbacks or ()), *([Log()] if self.verbose else ()), *tasks]

    def _weights_at(self, oracle: Any, w: Vector, record: Record) -> dict[str, Array] | None:
        """The attributes of the model at w; None if they depend on more than w."""
        return None

    def _open_checkpoint(
        self, solver: Solver, rows: WholeRows, data: dict[str, str], *, store: str | None = None, **settings: Scalar
    ) -> Checkpoint | None:
        """The checkpoint of a fit; data, settings: hashes of the data and the parameters that it must match.

        store: the name of a store of which it may be an earlier version.
        """
        if self.checkpoint is None:
            return None
        if self.verbose:
            ensure_log_handler()
        facts: dict[str, Scalar] = {"estimator": type(self).__name__, **self._objective_settings()}
        facts |= {"solver": fingerprint.solver_name(solver), **settings, "rows": rows.n, "features": rows.d}
        return Checkpoint(self.checkpoint, Fingerprint(facts, {"X": fingerprint.of_rows(rows), **data}, store))

    def _certify(self, results: Sequence[Result], checkpoint: Checkpoint | DualCheckpoint | None) -> None:
        """Sets the certificate: sums over the problems of a fit. Removes the checkpoint of a fit that has converged."""
        self.objective_ = sum(result.primal for result in results)
        self.lower_bound_ = sum(result.lower for result in results)
        self.gap_ = relative_gap(self.objective_, self.lower_bound_, sum(result.least for result in results))
        bad = [result.status for result in results if not result.status.converged]
        # A fit is within tol if all of its problems are; one that its solver's own rule ended need not be.
        own_rule = [result.status for result in results if result.status is Status.EPSILON]
        self.status_ = (bad or own_rule or [results[0].status])[0]
        self.converged_ = not bad
        self.n_iter_ = max(result.n_iter for result in results)
        self.history_ = [record for result in results for record in result.history]
        self.__dict__.pop("cluster_", None)
        if figures := [result.cluster for result in results if result.cluster is not None]:
            self.cluster_ = ClusterFigures.summary(figures)
        if checkpoint is not None:
            checkpoint.close(converged=self.converged_)

    def _warn_unless_converged(self, data: TrainingData) -> None:
        if self.status_ is Status.INTERRUPTED and is_in_loop():
            raise KeyboardInterrupt
        if not self.converged_:
            warn(self._advice(data), ConvergenceWarning)

    def _advice(self, data: TrainingData) -> str:
        """The text of the warning: the gap, why the fit stopped, and what to do."""
        advice = {
            Status.MAX_ITER: "raise max_iter",
            Status.MAX_TIME: "raise max_time",
            Status.PRECISION: "raise tol",
        }.get(self.status_)
        spread = validation.scale_spread(data.X)
        if spread > 1e4:
            scale = f"scale the features (the largest is {spread:.0e} times the smallest)"
            advice = f"{advice}, or {scale}" if advice else scale
        later = "" if self.checkpoint is None else f" The same call resumes from {os.fspath(self.checkpoint)}."
        share = describe_gap(self.gap_)
        proven = f"The model is {share}" if share else "So far nothing is proven of the objective"
        return (
            f"Stopped at a gap of {self.gap_:.2g} (tol={self.tol:g}): {self.status_.value}. {proven}"
            + (f"; to get closer, {advice}." if advice else ".")
            + later
        )

    def _slot(self, label: str = "") -> Slot | None:
        """With warm_start: the state of one problem that is kept for the next fit."""
        if not self.warm_start:
            self.__dict__.pop("_warm", None)
            return None
        places: dict[str, KeptProblem] = self.__dict__.setdefault("_warm", {})
        return Slot(places, label)

    def cache_scores(self, X: Any, scores: Vector) -> None:
        """Keeps the scores of X, for calls with this very object."""
        self._cached_scores = X, scores

    def _copy_fit(self, twin: Any) -> Any:
        """An estimator of scikit-learn's with the fitted attributes of this one."""
        check_is_fitted(self, "coef_")
        self._copy_columns(twin)
        twin.coef_ = np.array(self.coef_, dtype=np.float64)
        twin.intercept_ = np.array(self.intercept_, dtype=np.float64)
        return twin

    def _copy_columns(self, twin: Any) -> None:
        """Sets what estimators of scikit-learn's know about columns, classes and iterations."""
        preprocessing = columns_of(self).preprocessing
        if preprocessing is not None and any(column.changes_values for column in preprocessing.columns):
            warn(
                "The model was trained from a table, whose preprocessing (preprocessing_) is no part of scikit-learn's "
                "model: give it rows of numbers made in the same way, or predict with this one.",
                UserWarning,
            )
        twin.n_features_in_ = int(self.n_features_in_)
        twin.n_iter_ = int(getattr(self, "n_iter_", None) or 1)  # a model from a file may not have it
        for name in ("classes_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(twin, name, getattr(self, name).copy())

    def _scores(self, X: Any) -> Vector:
        """X coef_' + intercept_: shape (n,) for one row of weights, else (n, number of rows)."""
        check_is_fitted(self)
        if (cached := self.__dict__.get("_cached_scores")) is not None and cached[0] is X:
            scores: Vector = cached[1]
            return scores
        if isinstance(X, CheckedMatrix):
            return X.scores(self._scores_of_matrix)
        return self._scores_of_matrix(check_matrix(self, X, reset=False))

    def _scores_of_matrix(self, X: Any) -> Vector:
        return self._scores_of_rows(as_rows(X, threads.count(self.n_jobs, X.size)))

    def _scores_of_rows(self, rows: WholeRows) -> Vector:
        """The same for checked rows."""
        W = np.ascontiguousarray(np.atleast_2d(self.coef_), dtype=np.float64)
        b = np.ascontiguousarray(self.intercept_, dtype=np.float64)
        if len(W) == 1:
            scores = np.empty(rows.n)
            rows.scores(W[0], float(b[0]), scores)
        else:
            scores = np.empty((rows.n, len(W)))
            rows.scores_many(W, b, scores)
        return scores


class CertifiedClassifier(ClassifierMixin, Certified):  # type: ignore[misc]
    """A classifier with one score per row for two classes, positive for the second, or one per class."""

    @by_block
    def decision_function(self, X: Any) -> Vector:
        """X coef_' + intercept_: shape (n,) for two classes (positive means classes_[1]), else (n, n_classes)."""
        return self._scores(X)

    @by_block
    def predict(self, X: Any) -> Array:
        """The class with the largest score. X: rows, or any source of rows; labels are not needed."""
        scores = self.decision_function(X)
        chosen = (scores > 0.0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: Array = self.classes_[chosen]
        return labels

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of rows whose predicted label is theirs. A source has its own labels and weights: y is left out."""
        if has_own_labels(self, X, y):
            return _predict.accuracy(self, X, y, sample_weight)
        return float(super().score(X, y, sample_weight))


class CertifiedRegressor(RegressorMixin, Certified):  # type: ignore[misc]
    """A regressor, with one target per row."""

    _targets = "numbers"

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R^2 of the predictions. A source has its own labels and weights: y is left out."""
        if has_own_labels(self, X, y):
            return _predict.r2(self, X, y, sample_weight)
        return float(super().score(X, y, sample_weight))
