"""KernelOneClassSVM: the region that holds most of the rows, by a kernel, with a certificate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from os import PathLike
from typing import Any, Literal

import numpy as np
from sklearn import svm
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from cutsvm._utils import validation
from cutsvm._utils.types import Ints, Vector
from cutsvm.driver.fingerprint import Scalar
from cutsvm.driver.records import Record
from cutsvm.estimators._ingest import ingest
from cutsvm.estimators._kernel import KernelFunction, SingleKernelMachine
from cutsvm.estimators._libsvm import libsvm_twin
from cutsvm.estimators._predict import by_block
from cutsvm.kernel_machines.context import FitOptions, Solution
from cutsvm.kernel_machines.dual_problem import Groups
from cutsvm.kernel_machines.gram import Points
from cutsvm.kernel_machines.single_problem import one_class_gap, one_class_machine


@dataclass(eq=False, repr=False)
class KernelOneClassSVM(OutlierMixin, SingleKernelMachine):  # type: ignore[misc]
    """One-class support vector machine with a kernel and a certified duality gap.

    It minimises, over w in the kernel's feature space and rho,

        F = |w|^2 / 2 - rho + 1 / (nu S) sum_i s_i max(0, rho - w.phi(x_i)),     s = sample_weight,  S = sum_i s_i

    as `LinearOneClassSVM` does in the space of the rows, until the relative gap between F and a lower bound of F is at
    most `tol`. `sklearn.svm.OneClassSVM` minimises (nu S)^2 F, at nu S times this w and rho: `dual_coef_`,
    `intercept_`, `offset_` and the scores are in that scale, as those of `OneClassSVM` are.

    If the origin is within the hull of the rows that nu leaves, which only kernels with negative values allow, the
    answer is w = 0, rho = 0, to which all rows are inliers; there is no support then, `objective_` is 0, and
    `lower_bound_` proves that F is nowhere below 0 but for rounding errors.

    Parameters
    ----------
    nu : float, default=0.5
        At most this share of the weight of the rows lies below rho, and at least this share at or below it; above 0, at
        most 1.
    kernel : {"rbf", "poly", "linear", "sigmoid", "precomputed"} or callable, default="rbf"
    gamma, degree, coef0
        As in `KernelSVC`.
    tol : float, default=1e-3
        Relative gap (objective - lower bound) / |objective| at which to stop; above it `converged_` is False.
    max_iter : int, default=10_000
        Limit on the working sets.
    max_time, memory_limit, n_jobs, callbacks, verbose
        As in `KernelSVC`.
    checkpoint : path, default=None
        A file for the dual vector, written while the fit runs; after a kill the same call goes on from it. It is
        removed when the fit has converged.

    Attributes
    ----------
    support_ : ndarray of shape (n_support,)
        Rows with a coefficient in the scores, ascending.
    support_vectors_ : ndarray or CSR of shape (n_support, n_features); empty if the kernel is precomputed
    n_support_ : ndarray of shape (1,)
    dual_coef_ : ndarray of shape (1, n_support)
        From 0 to the weights of the rows; their sum is nu S.
    coef_ : ndarray of shape (1, n_features), only if the kernel is linear
        nu S w.
    intercept_ : ndarray of shape (1,)
        -nu S rho.
    offset_ : ndarray of shape (1,)
        nu S rho: `decision_function` is `score_samples` - `offset_`.
    gamma_ : float
        The gamma that was used.
    objective_, lower_bound_, gap_ : float
        F, a lower bound of its minimum, and (objective_ - lower_bound_) / |objective_|; all from kernel values in
        float64.
    converged_, status_, n_iter_, history_ : as in `LinearSVC`
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> import numpy as np
    >>> from cutsvm import KernelOneClassSVM
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = KernelOneClassSVM(nu=0.1).fit(X)
    >>> bool(model.gap_ <= 1e-3), model.predict([[0.0, 0.0], [5.0, 5.0]]).tolist()
    (True, [1, -1])
    """

    _: KW_ONLY
    nu: float = 0.5
    kernel: str | KernelFunction = "rbf"
    gamma: float | Literal["scale", "auto"] = "scale"
    degree: int = 3
    coef0: float = 0.0
    tol: float = 1e-3
    max_iter: int = 10_000
    max_time: float | None = None
    memory_limit: str | int | None = None
    checkpoint: str | PathLike[str] | None = None
    n_jobs: int | None = None
    callbacks: Sequence[Callable[[Record], object]] | None = None
    verbose: int = 0

    _targets = "none"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelOneClassSVM:
        """Fits the model to rows X, or to a data set: `fit("train.svm")`; y is ignored."""
        self._check_params()
        deadline = self._begin()
        data = ingest(self, X, y, sample_weight)
        scale = float(self.nu) * float(data.weights.sum())
        result = self._fit(data, np.zeros(data.rows.n), self._solutions, deadline, scale)
        self.gap_ = one_class_gap(result.primal, result.lower, 0.0 if result.w.any() else np.inf)
        self._warn_unless_converged(data)
        return self

    def _check_objective(self) -> None:
        validation.positive("nu", self.nu)
        if self.nu > 1.0:
            raise ValueError(f"nu={self.nu!r}: expected a number above 0, at most 1")

    def _objective_settings(self) -> dict[str, Scalar]:
        return {"nu": float(self.nu)}

    def _solutions(self, points: Points, groups: Groups, options: FitOptions) -> Iterator[Solution]:
        return one_class_machine(points, groups.weights, float(self.nu), options)

    @property
    def offset_(self) -> Vector:
        """nu S rho, as an array of one number."""
        check_is_fitted(self, "dual_coef_")
        return 0.0 - self.intercept_

    @by_block
    def decision_function(self, X: Any) -> Vector:
        """sum_k dual_coef_[0, k] K(x, x_k) - offset_: positive for inliers, negative for outliers."""
        return self._sums(X)

    @by_block
    def score_samples(self, X: Any) -> Vector:
        """sum_k dual_coef_[0, k] K(x, x_k): the larger, the more like the training rows."""
        return self.decision_function(X) + self.offset_

    @by_block
    def predict(self, X: Any) -> Ints:
        """1 for inliers, -1 for outliers. X: rows, or any source of rows."""
        return np.where(self.decision_function(X) >= 0.0, 1, -1)

    def to_sklearn(self) -> Any:
        """A fitted `sklearn.svm.OneClassSVM` that predicts the same, for tools that know scikit-learn's classes only.

        A new fit of it minimises the same objective.
        """
        params = {name: getattr(self, name) for name in ("nu", "kernel", "degree", "coef0")}
        twin = libsvm_twin(self, svm.OneClassSVM(gamma=self.gamma, **params))
        if not len(self.support_):  # inliers are above 0 there, not at 0
            twin.intercept_ = twin._intercept_ = np.array([np.finfo(np.float64).tiny])
        twin.offset_ = -twin.intercept_
        return twin
