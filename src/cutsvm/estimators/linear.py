"""LinearSVC: linear support vector classification with a certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from os import PathLike
from typing import Any, Literal

import numpy as np

from cutsvm._utils import memory, threads, validation
from cutsvm._utils.types import Array, Vector
from cutsvm.driver import fingerprint
from cutsvm.driver.checkpoint import Checkpoint
from cutsvm.driver.fingerprint import Scalar
from cutsvm.driver.records import Record, Result, Stop
from cutsvm.driver.run import Fit, fit_path
from cutsvm.estimators._base import CertifiedClassifier
from cutsvm.estimators._ingest import TrainingData, ingest
from cutsvm.io.store.store import Store
from cutsvm.problem.losses import CrammerSinger, Hinge
from cutsvm.problem.multiclass import CrammerSingerOracle
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Intercept
from cutsvm.solvers.protocol import Solver


@dataclass(eq=False, repr=False)
class LinearSVC(CertifiedClassifier):
    """Linear support vector machine with a certified duality gap.

    For two classes it minimises, over w and b,

        F = |w|^2 / 2 + C sum_i s_i max(0, 1 - y_i (w.x_i + b)),     s = sample_weight x class_weight

    and for K > 2 classes, over w_k and b_k,

        F = sum_k |w_k|^2 / 2 + C sum_i s_i max_k ([k != y_i] + (w_k - w_{y_i}).x_i + b_k - b_{y_i})

    (Crammer and Singer), or one problem of the first kind per class against the rest. It stops when the relative gap
    between F and a lower bound of F is at most `tol`.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the margin; it multiplies the *sum* over the rows.
    tol : float, default=1e-3
        Relative gap (objective - lower bound) / objective at which to stop. It bounds the relative error of the
        objective.
    solver : {"auto", "ocas", "sifting", "dcd", "cpa", "accpm"} or a solver object, default="auto"
        "ocas" is optimised cutting planes, "sifting" the same on a working set of rows, "dcd" dual coordinate descent,
        "cpa" plain cutting planes, "accpm" those at analytic centres; "auto" chooses one of the first three and says
        why. `cutsvm.solvers` has them all with their settings.
    multi_class : {"crammer_singer", "ovr"}, default="crammer_singer"
        More than two classes: all in one problem, or each against the rest.
    fit_intercept : bool, default=True
        Whether to fit b; if not, b = 0.
    intercept : {"free", "regularized"}, default="free"
        "free": b is not regularised, as in `sklearn.svm.SVC`. "regularized": b^2 / 2 is added to F, as in LIBLINEAR.
    class_weight : dict or "balanced", default=None
        Factors for the classes' weights; classes that are not named have 1. "balanced": total weight /
        (number of classes x weight of the class).
    max_iter : int, default=10_000
        Limit on iterations; each reads the data once or twice.
    max_time : float, default=None
        Limit in seconds. The best model so far is kept, with its gap; the same holds after Ctrl-C.
    n_jobs : int, default=None
        Threads: None is 1, -1 all cores. The result is the same to the last bit for any number, but for
        `DCD(asynchronous=True)`, and "accpm", whose linear algebra may differ in the last digits from call to call.
    warm_start : bool, default=False
        Start from the last fit: its solution and, where they are still valid, its planes. They are if only C or weights
        have changed, or if rows were added at the end; this is checked.
    memory_limit : str or int, default=None
        Private memory of the process that a fit from a file or a store may use: "300MB", "2GB", or bytes. The rows stay
        on disk (for a file in a temporary store) and are read block by block; the result is the same. Without a limit a
        store is loaded if it takes less than 60 % of the machine's memory. Arrays are read in place.
    checkpoint : str or path, default=None
        A file to which the state of the fit is written every few seconds. After a kill, or when `max_time`, `max_iter`
        or Ctrl-C has ended a fit, the same call with the same data resumes from it, in bounds, iterations and seconds;
        the limits are for each call. It is removed when a fit converges. `tol`, the limits, `n_jobs` and `memory_limit`
        may change in between; a file of other data or parameters is refused.
    callbacks : list of callables, default=None
        Each is called with a `cutsvm.Record` after every iteration; one that returns True ends the fit.
    verbose : int, default=0
        1: one line per iteration through the logger "cutsvm", to stderr if it has no handler.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    objective_ : float
        F at the solution, recomputed from the data; summed over the one-vs-rest problems.
    lower_bound_ : float
        A lower bound of the minimum of F.
    gap_ : float
        (objective_ - lower_bound_) / objective_.
    converged_ : bool
    status_ : cutsvm.Status
        How the fit ended; `status_.value` says it in words.
    n_iter_ : int
        Iterations; the most of any one-vs-rest problem.
    history_ : list of dict
        One record per iteration: iteration, seconds, primal, lower, gap, planes, passes (sweeps over all rows),
        visits (rows visited in all), rows_read (rows read for planes; the others were read for their scores),
        rows_written (rows put into buckets), note (what "auto" chose, and why), and the seconds spent so far in scores,
        planes, line search, reduced problem (qp), descent, sift and centre. `cutsvm.plotting` draws it.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from cutsvm import LinearSVC
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearSVC(C=0.01).fit(X, y)
    >>> bool(model.gap_ <= 1e-3)
    True
    """

    C: float = 1.0
    _: KW_ONLY
    tol: float = 1e-3
    solver: str | Solver = "auto"
    multi_class: Literal["crammer_singer", "ovr"] = "crammer_singer"
    fit_intercept: bool = True
    intercept: Literal["free", "regularized"] = "free"
    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None
    max_iter: int = 10_000
    max_time: float | None = None
    n_jobs: int | None = None
    warm_start: bool = False
    memory_limit: str | int | None = None
    checkpoint: str | PathLike[str] | None = None
    callbacks: Sequence[Callable[[Record], object]] | None = None
    verbose: int = 0

    _trains_from_disk = True

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LinearSVC:
        """Fits the model to rows X with labels y, or to a data set: `fit("train.svm")`, `fit("train.store")`."""
        solver = self._check_params()
        with ingest(self, X, y, sample_weight) as data:
            self._fit_path([self], solver, data)
            self._warn_unless_converged(data)
        return self

    def _fit_path(self, models: Sequence[LinearSVC], solver: Solver, data: TrainingData) -> None:
        """Fits models that differ from this one in C only: a path over all C. Overwrites `data.weights`."""
        if data.on_disk:
            reason = "needs its rows in memory: use ocas, cpa, sifting, accpm or auto for rows on disk"
            self._check_requirements(solver, {"dual"}, reason)
        if self._is_joint(data):
            reason = 'solves problems of two classes: use multi_class="ovr", or another solver'
            self._check_requirements(solver, {"dual", "margin"}, reason)
        validation.apply_class_weights(data.weights, self.class_weight, data.classes, data.y, data.class_names)
        checkpoint = self._checkpoint_of(solver, data)
        if (task := self.__dict__.get("_fit_task")) is not None:
            task.fitted = {"classes_": data.class_names}
        Cs = [float(model.C) for model in models]
        stop = Stop(self.tol, self.max_iter, self.max_time)
        found: list[list[Result]] = []
        oracle: Oracle | None = None
        positives = self._positives(data)
        with threads.one_blas_thread():
            for k, (name, positive) in enumerate(positives.items()):
                loss = self._loss(data, positive, len(positives))
                # The last oracle's matrix may be in a form that is read faster: a solver has found it.
                oracle = self._oracle(data, loss) if oracle is None else replace(oracle, loss=loss)
                start = self._start(oracle, None if positive is None else k, len(positives))
                fit = Fit(stop, self._callbacks(), name, start, checkpoint, self._slot(name))
                results, oracle = fit_path(solver, oracle, Cs, fit)
                found.append(results)
                if any(result.status.ends_all for result in results):  # the problems not begun keep w = 0, with its gap
                    stop = replace(stop, max_time=0.0)
        assert oracle is not None
        for model, results in zip(models, map(list, zip(*found, strict=True)), strict=True):
            W, b = zip(*(oracle.model(result.w) for result in results), strict=True)
            model.classes_, model.coef_, model.intercept_ = data.class_names, np.vstack(W), np.hstack(b)
            model._certify(results, checkpoint)

    def _check_params(self) -> Solver:
        validation.one_of("intercept", self.intercept, ("free", "regularized"))
        validation.one_of("multi_class", self.multi_class, ("crammer_singer", "ovr"))
        return super()._check_params()

    def _memory_plan(self, store: Store, weights: Any = None) -> memory.Plan:
        classes = len(store.labels)
        outputs = classes if classes > 2 and self.multi_class == "crammer_singer" else 1
        rows, features = store.shape
        return memory.plan(rows, store.manifest.size, self.memory_limit, outputs, features=features)

    def _checkpoint_of(self, solver: Solver, data: TrainingData) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        hashes = {"y": fingerprint.of_labels(data.y, data.classes), "weights": fingerprint.of_column(data.weights)}
        settings: dict[str, Scalar] = {"intercept": self._intercept().value}
        if len(data.classes) > 2:
            settings["multi_class"] = self.multi_class
        classes = " ".join(map(str, data.classes.tolist()))
        return self._open_checkpoint(solver, data.rows, hashes, **settings, classes=classes)

    def _is_joint(self, data: TrainingData) -> bool:
        """Whether more than two classes are one problem."""
        return len(data.classes) > 2 and self.multi_class == "crammer_singer"

    def _positives(self, data: TrainingData) -> dict[str, Any]:
        """The problems of a fit by name, and the positive class of each: of two classes the second, of more each."""
        if self._is_joint(data):
            return {"": None}
        if len(data.classes) == 2:
            return {"": data.classes[1]}
        return dict(zip(map(str, data.class_names), data.classes, strict=True))

    def _loss(self, data: TrainingData, positive: Any, problems: int) -> Hinge | CrammerSinger:
        """The loss of one class against the rest, or of all classes in one problem."""
        rows, y, weights = data.rows, data.y, data.weights
        n_threads = threads.count(self.n_jobs, rows.entries)
        if positive is None:
            # Rows of a class without weight have no weight either, and may have any label.
            labels = rows.vector(len(y), np.int32)
            for part in validation.parts(len(y)):
                labels[part] = np.minimum(np.searchsorted(data.classes, y[part]), len(data.classes) - 1)
            return CrammerSinger(labels, weights, len(data.classes), n_threads)
        # With one problem the weights themselves take the sign: n numbers less to hold.
        signed = weights if problems == 1 else rows.vector(rows.n)
        np.copyto(signed, weights)
        validation.negate(signed, y, positive)
        return Hinge(signed, n_threads)

    def _oracle(self, data: TrainingData, loss: Hinge | CrammerSinger) -> Oracle:
        """Rows and loss. A feature far from 0, as times are, is centred; a free intercept makes up for it."""
        rows, intercept = data.rows, self._intercept()
        centred, shift = rows.centred() if intercept is Intercept.FREE else (rows, None)
        kind = CrammerSingerOracle if isinstance(loss, CrammerSinger) else Oracle
        return kind(centred, loss, intercept, loss.threads, given=rows, shift=shift)

    def _start(self, oracle: Oracle, problem: int | None, problems: int) -> Vector | None:
        """With warm_start, the w of the last fit's model, if it has the right shape; problem: its number, if any."""
        outputs = problems if problem is not None else oracle.outputs
        if not (self.warm_start and hasattr(self, "coef_") and self.coef_.shape == (outputs, oracle.matrix.d)):
            return None
        mine = slice(None) if problem is None else problem
        return oracle.coordinates(self.coef_[mine], self.intercept_[mine])

    def _weights_at(self, oracle: Any, w: Vector, record: Record) -> dict[str, Array] | None:
        if record.label:  # one class against the rest, and the others have weights of their own
            return None
        W, b = oracle.model(w)
        return {"coef_": np.array(W, ndmin=2), "intercept_": np.array(b, ndmin=1)}

    def _intercept(self) -> Intercept:
        return Intercept(self.intercept) if self.fit_intercept else Intercept.NONE

    def to_sklearn(self) -> Any:
        """A fitted `sklearn.svm.LinearSVC` that predicts the same, for tools that know scikit-learn's classes only.

        A new fit of it minimises the same objective, with a regularised intercept.
        """
        # tol and max_iter belong to another algorithm.
        return self._as_linear_svc(("C", "class_weight", "fit_intercept", "multi_class"))
