"""LinearModel: the fit of linear models whose loss is a sum over the rows, from checked data to fitted attributes.

    F = |w|^2 / 2 + C sum_i s_i loss(y_i, w.x_i + b)

A fit is one problem, or several by name (each class against the rest). An estimator says which losses these are, and
what its attributes look like.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from os import PathLike
from typing import Any, Literal, TypeVar, cast

import numpy as np

from cutsvm._utils import memory, threads, validation
from cutsvm._utils.types import Array, Vector
from cutsvm.driver import fingerprint
from cutsvm.driver.checkpoint import Checkpoint
from cutsvm.driver.fingerprint import Scalar
from cutsvm.driver.records import Record, Result, Stop
from cutsvm.driver.run import Fit, fit_path
from cutsvm.estimators._base import Certified
from cutsvm.estimators._ingest import TrainingData, ingest
from cutsvm.io.store.store import Store
from cutsvm.problem.loss_makers import LossMaker
from cutsvm.problem.losses import Loss
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.parted import PartedRows, parted_oracle
from cutsvm.problem.point import Intercept
from cutsvm.solvers.protocol import Solver

Problems = Mapping[str, Callable[[], Loss]]
Makers = Mapping[str, LossMaker]
Own = TypeVar("Own", bound="LinearModel")


@dataclass(eq=False, repr=False)
class LinearModel(Certified):
    """Parameters of the linear models, and their fit; `LinearSVC` documents them."""

    C: float = 1.0
    _: KW_ONLY
    tol: float = 1e-3
    solver: str | Solver = "auto"
    fit_intercept: bool = True
    intercept: Literal["free", "regularized"] = "free"
    max_iter: int = 10_000
    max_time: float | None = None
    n_jobs: int | None = None
    warm_start: bool = False
    memory_limit: str | int | None = None
    checkpoint: str | PathLike[str] | None = None
    callbacks: Sequence[Callable[[Record], object]] | None = None
    verbose: int = 0
    random_state: int | np.random.RandomState | None = None

    _trains_from_disk = _trains_on_parts = True

    def fit(self: Own, X: Any, y: Any = None, sample_weight: Any = None) -> Own:
        """Fits the model to rows X with labels or targets y, or to a data set: `fit("train.svm")`, `fit("a.store")`."""
        solver = self._check_params()
        with ingest(self, X, y, sample_weight) as data:
            self._fit_path([self], solver, data)
            self._warn_unless_converged(data)
        return self

    # What an estimator says of itself

    @abstractmethod
    def _problems(self, data: TrainingData) -> Problems:
        """The problems of a fit by name, and the loss of each. With one problem it may overwrite `data.weights`."""

    @abstractmethod
    def _makers(self, data: TrainingData) -> Makers:
        """The same for a collection: what makes the loss of any of its rows."""

    @abstractmethod
    def _settings(self, data: TrainingData) -> dict[str, Scalar]:
        """The parameters that say which loss it is."""

    @abstractmethod
    def _weights_of(self, W: Vector, b: Vector) -> dict[str, Array]:
        """coef_ and intercept_; W, b: a row and a number for each score of a row."""

    def _fitted_from(self, data: TrainingData) -> dict[str, Any]:
        """Attributes that the data alone determine."""
        return {}

    def _weigh(self, data: TrainingData) -> None:
        """Changes `data.weights` in place before the fit."""

    def _hash_of_y(self, data: TrainingData) -> str:
        return fingerprint.of_column(data.y)

    def _oracle_kind(self, data: TrainingData) -> type[Oracle]:
        return Oracle

    def _target_shift(self, data: TrainingData) -> float:
        """A number that the loss has taken from all targets: the intercept makes up for it."""
        return 0.0

    def _loss_scale(self, data: TrainingData) -> float:
        """The slope of the loss where f = 0 over what f has to change by: where C begins to matter is one over it."""
        return 1.0

    # The fit

    def _check_params(self) -> Solver:
        validation.one_of("intercept", self.intercept, ("free", "regularized"))
        return self._seeded(super()._check_params(), self.random_state)

    def _fit_path(self, models: Sequence[LinearModel], solver: Solver, data: TrainingData) -> None:
        """Fits models that differ from this one in C only: a path over all C. Overwrites `data.weights`."""
        self._weigh(data)
        checkpoint = self._checkpoint_of(solver, data)
        fitted = self._fitted_from(data)
        if (task := self.__dict__.get("_fit_task")) is not None:
            task.fitted = fitted
        Cs = [float(model.C) for model in models]
        stop = Stop(self.tol, self.max_iter, self.max_time)
        found: list[list[Result]] = []
        oracle: Oracle | None = None
        problems: Mapping[str, Callable[[], Loss] | LossMaker] = (
            dict(self._problems(data)) if data.parts is None else dict(self._makers(data))
        )
        with threads.one_blas_thread():
            for k, (name, make_loss) in enumerate(problems.items()):
                oracle = self._oracle(data, make_loss, oracle)
                if solver.requires:
                    self._check_requirements(solver, oracle.supports.names, *self._described(data))
                start = self._start(oracle, k, len(problems))
                fit = Fit(stop, self._callbacks(), name, start, checkpoint, self._slot(name))
                results, oracle = fit_path(solver, oracle, Cs, fit)
                found.append(results)
                if any(result.status.ends_all for result in results):  # the problems not begun keep w = 0, with its gap
                    stop = replace(stop, max_time=0.0)
        assert oracle is not None
        for model, results in zip(models, map(list, zip(*found, strict=True)), strict=True):
            W, b = zip(*(oracle.model(result.w) for result in results), strict=True)
            model.__dict__.update(fitted, **self._weights_of(np.vstack(W), np.hstack(b)))
            model._certify(results, checkpoint)

    def _described(self, data: TrainingData) -> tuple[str, str]:
        """The kind of problem, for errors, and a remedy besides another solver, if there is one."""
        chosen = ", ".join(f"{name}={value!r}" for name, value in self._settings(data).items())
        where = ", rows in parts" if data.parts is not None else ", rows on disk" * data.on_disk
        return f"problems with {chosen}{where}", ""

    def _memory_plan(self, store: Store, weights: Any = None) -> memory.Plan:
        rows, features = store.shape
        outputs = self._outputs(len(store.labels))
        limit, problems = self.memory_limit, self._n_problems
        size, kind = store.manifest.size, store.sparse
        return memory.plan(rows, size, limit, outputs, features=features, problems=problems, sparse=kind)

    def _checkpoint_of(self, solver: Solver, data: TrainingData, **more: Scalar) -> Checkpoint | None:
        """The checkpoint of a fit; more: parameters and facts, besides the settings, that it must match."""
        if self.checkpoint is None:
            return None
        hashes = {"y": self._hash_of_y(data), "weights": fingerprint.of_column(data.weights)}
        settings = {"intercept": self._intercept().value, **self._settings(data), **more}
        return self._open_checkpoint(solver, data.rows, hashes, store=data.store, **settings)

    def _oracle(
        self, data: TrainingData, make_loss: Callable[[], Loss] | LossMaker, last: Oracle | None = None
    ) -> Oracle:
        """Rows and loss. A feature far from 0, as times are, is centred; a free intercept makes up for it.

        last: that of another problem with the same rows, which may be in a form that is read faster.
        """
        rows, intercept = data.rows, self._intercept()
        if isinstance(make_loss, LossMaker):
            parted = cast("PartedRows", rows)
            return parted_oracle(self._oracle_kind(data), parted, make_loss, intercept, self._target_shift(data))
        loss = make_loss()
        if last is not None:
            return replace(last, loss=loss)
        centred, shift = rows.centred() if intercept is Intercept.FREE else (rows, None)
        n_threads = threads.count(self.n_jobs, rows.entries)
        kind, target_shift = self._oracle_kind(data), self._target_shift(data)
        return kind(centred, loss, intercept, n_threads, given=rows, shift=shift, target_shift=target_shift)

    def _start(self, oracle: Oracle, problem: int, problems: int) -> Vector | None:
        """With warm_start, the w of the last fit's model, if it has the right shape; problem: its number."""
        if not (self.warm_start and hasattr(self, "coef_")):
            return None
        W, b = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        if W.shape != (max(problems, oracle.outputs), oracle.matrix.d):
            return None
        own = slice(None) if oracle.outputs > 1 else problem
        return oracle.coordinates(W[own], b[own])

    def _weights_at(self, oracle: Any, w: Vector, record: Record) -> dict[str, Array] | None:
        if record.label:  # one class against the rest, and the others have weights of their own
            return None
        W, b = oracle.model(w)
        return self._weights_of(np.array(W, ndmin=2), np.array(b, ndmin=1))

    def _intercept(self) -> Intercept:
        return Intercept(self.intercept) if self.fit_intercept else Intercept.NONE
