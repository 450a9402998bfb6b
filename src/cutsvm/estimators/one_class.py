"""LinearOneClassSVM: a half-space that holds most of the rows, far from the origin, with a certificate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.linear_model import SGDOneClassSVM
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from cutsvm._utils import memory, threads, validation
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.driver import fingerprint
from cutsvm.driver.checkpoint import Checkpoint
from cutsvm.driver.fingerprint import Scalar
from cutsvm.driver.one_class import fit_one_class, model_at
from cutsvm.driver.records import Record, Stop
from cutsvm.driver.run import Fit
from cutsvm.estimators._base import Certified
from cutsvm.estimators._ingest import TrainingData, check_matrix, ingest
from cutsvm.estimators._predict import by_block
from cutsvm.io.store.store import Store
from cutsvm.matrix import as_rows
from cutsvm.problem.losses import TailMean
from cutsvm.problem.tails import TailOracle
from cutsvm.solvers import CPA, OCAS, Sifting
from cutsvm.solvers.protocol import Solver


@dataclass(eq=False, repr=False)
class LinearOneClassSVM(OutlierMixin, Certified):  # type: ignore[misc]
    """Linear one-class support vector machine with a certified duality gap.

    It minimises, over w and rho,

        F = |w|^2 / 2 - rho + 1 / (nu S) sum_i s_i max(0, rho - w.x_i),     s = sample_weight,  S = sum_i s_i

    as `sklearn.svm.OneClassSVM(kernel="linear")` and LIBLINEAR's `-s 21` do, until the relative gap between F and a
    lower bound of F is at most `tol`. A row is an inlier where w.x >= rho. At the best rho, F = |w|^2 / 2 - m(w), where
    m(w) is the mean of the lowest nu-share of the scores w.x_i, by weight. So min F = -M^2 / 2, where M is the largest
    m(u) of any u of length 1, or 0.

    If no half-space without the origin holds enough of the rows, M = 0, and the answer is w = 0, rho = 0, to which all
    rows are inliers; `objective_` is then 0, and `lower_bound_` proves that F is nowhere below 0 but for rounding
    errors: M is less than 1e-7 times the largest coordinate of the means of tails that the fit has seen.

    Parameters
    ----------
    nu : float, default=0.5
        At most this share of the weight of the rows lies below rho, and at least this share at or below it; above 0, at
        most 1. With nu=1 w is the mean row.
    tol : float, default=1e-3
        Relative gap (objective - lower bound) / |objective| at which to stop.
    solver : {"auto", "ocas", "cpa"} or a solver object, default="auto"
        "auto" is "ocas", optimised cutting planes; "cpa" is plain cutting planes. Planes have one shard.
    max_iter, max_time, n_jobs, checkpoint, callbacks, verbose
        As in `LinearSVC`.
    warm_start : bool, default=False
        Start from the solution of the last fit.
    memory_limit : str or int, default=None
        Private memory that a fit from a file or a store may add, as in `LinearSVC`; the arrays over rows (about 230
        bytes per row) have to fit it.
    random_state : int, RandomState instance or None, default=None
        Not used: the fit has nothing random. It is there for code that sets it on every estimator.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
    intercept_ : ndarray of shape (1,)
        -rho.
    offset_ : ndarray of shape (1,)
        rho: `decision_function` is `score_samples` - `offset_`.
    objective_, lower_bound_ : float
        F at the solution, recomputed from the data, which is 0 or less; and a lower bound of the minimum of F.
    gap_ : float
        (objective_ - lower_bound_) / |objective_|; 0 if w = 0 is proven to be the answer.
    converged_, status_, n_iter_, history_
        As in `LinearSVC`; primal and lower of the records are those of F.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> import numpy as np
    >>> from cutsvm import LinearOneClassSVM
    >>> X = np.random.default_rng(0).normal(size=(500, 3)) + [3.0, 2.0, 1.0]
    >>> model = LinearOneClassSVM(nu=0.1).fit(X)
    >>> bool(model.gap_ <= 1e-3)
    True
    >>> float(np.mean(model.predict(X) == -1)) <= 0.1
    True
    """

    _: KW_ONLY
    nu: float = 0.5
    tol: float = 1e-3
    solver: str | Solver = "auto"
    max_iter: int = 10_000
    max_time: float | None = None
    n_jobs: int | None = None
    warm_start: bool = False
    memory_limit: str | int | None = None
    checkpoint: str | PathLike[str] | None = None
    callbacks: Sequence[Callable[[Record], object]] | None = None
    verbose: int = 0
    random_state: Any = None

    _targets = "none"
    _trains_from_disk = True

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LinearOneClassSVM:
        """Fits the model to rows X, or to a data set: `fit("train.svm")`, `fit("train.store")`; y is ignored."""
        solver = self._check_params()
        with ingest(self, X, y, sample_weight) as data:
            self._fit(solver, data)
            self._warn_unless_converged(data)
        return self

    def _fit(self, solver: Solver, data: TrainingData) -> None:
        rows = data.rows
        n_threads = threads.count(self.n_jobs, rows.entries)
        oracle = TailOracle(rows, TailMean(data.weights, float(self.nu), n_threads), threads=n_threads)
        checkpoint = self._checkpoint_of(solver, data)
        resumes = self.warm_start and hasattr(self, "coef_") and self.coef_.shape == (1, rows.d)
        start = np.asarray(self.coef_[0], dtype=np.float64) if resumes else None
        stop = Stop(self.tol, self.max_iter, self.max_time)
        with threads.one_blas_thread():
            found = fit_one_class(solver, oracle, Fit(stop, self._callbacks(), "", start, checkpoint))
        self.coef_, self.intercept_ = found.w[None], np.array([0.0 - found.rho])
        self.objective_, self.lower_bound_, self.gap_ = found.objective, found.lower, found.gap
        self.status_, self.converged_ = found.status, found.status.converged
        self.n_iter_, self.history_ = found.n_iter, found.history
        if checkpoint is not None:
            checkpoint.close(converged=self.converged_)

    def _check_objective(self) -> None:
        validation.positive("nu", self.nu)
        if self.nu > 1.0:
            raise ValueError(f"nu={self.nu!r}: expected a number above 0, at most 1")

    def _check_params(self) -> Solver:
        solver = super()._check_params()
        check_random_state(self.random_state)
        # No row has a loss of its own: there is nothing to sift.
        if isinstance(solver, Sifting) or solver.requires & {"dual", "margin", "smooth", "working_set", "pairs"}:
            raise ValueError(f"{solver!r} does not solve one-class problems: use 'auto', 'ocas' or 'cpa'")
        if isinstance(solver, OCAS | CPA) and solver.shards not in (1, "auto"):
            raise ValueError(f"shards={solver.shards!r}: the objective is no sum over rows, and has one shard")
        return solver

    def _objective_settings(self) -> dict[str, Scalar]:
        return {"nu": float(self.nu)}

    def _memory_plan(self, store: Store, weights: Any = None) -> memory.Plan:
        rows, features = store.shape
        return memory.plan_pairs(rows, store.manifest.size, self.memory_limit, features=features)

    def _checkpoint_of(self, solver: Solver, data: TrainingData) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        return self._open_checkpoint(solver, data.rows, {"weights": fingerprint.of_column(data.weights)})

    def _weights_at(self, oracle: Any, w: Vector, record: Record) -> dict[str, Array] | None:
        found = model_at(oracle, w)
        return {"coef_": np.array(found.w, ndmin=2), "intercept_": np.array([0.0 - found.rho])}

    @property
    def offset_(self) -> Vector:
        """rho, as an array of one number."""
        check_is_fitted(self, "coef_")
        return 0.0 - self.intercept_

    @by_block
    def score_samples(self, X: Any) -> Vector:
        """X coef_': the larger, the farther from the origin."""
        check_is_fitted(self)
        X = check_matrix(self, X, reset=False)
        rows = as_rows(X, threads.count(self.n_jobs, X.size))
        scores = np.empty(rows.n)
        rows.scores(np.ascontiguousarray(self.coef_[0], dtype=np.float64), 0.0, scores)
        return scores

    @by_block
    def decision_function(self, X: Any) -> Vector:
        """X coef_' - rho: positive for inliers, negative for outliers."""
        scores = self.score_samples(X)
        scores += self.intercept_  # after the sum: a training row at rho has exactly what the fit saw
        return scores

    @by_block
    def predict(self, X: Any) -> Ints:
        """1 for inliers, -1 for outliers. X: rows, or any source of rows."""
        return np.where(self.decision_function(X) >= 0.0, 1, -1)

    def to_sklearn(self) -> Any:
        """A fitted `sklearn.linear_model.SGDOneClassSVM` that predicts the same, for tools that know scikit-learn only.

        A new fit of it minimises the same objective by stochastic gradient steps.
        """
        twin = self._copy_fit(SGDOneClassSVM(nu=self.nu, random_state=self.random_state))
        twin.coef_, twin.offset_ = twin.coef_[0], self.offset_  # of the shapes that its own fit gives them
        return twin
