"""KernelSVR: support vector regression with a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from os import PathLike
from typing import Any, Literal

import numpy as np
from sklearn import svm

from cutsvm._utils import validation
from cutsvm._utils.types import Vector
from cutsvm.driver.fingerprint import Scalar
from cutsvm.driver.records import Record
from cutsvm.estimators._base import CertifiedRegressor
from cutsvm.estimators._ingest import ingest
from cutsvm.estimators._kernel import KernelFunction, SingleKernelMachine
from cutsvm.estimators._libsvm import libsvm_twin
from cutsvm.estimators._predict import by_block
from cutsvm.estimators._targets import target_shift
from cutsvm.kernel_machines.context import FitOptions, Solution
from cutsvm.kernel_machines.dual_problem import Groups
from cutsvm.kernel_machines.gram import Points
from cutsvm.kernel_machines.single_problem import regression


@dataclass(eq=False, repr=False)
class KernelSVR(CertifiedRegressor, SingleKernelMachine):
    """Support vector regression with a kernel and a certified duality gap.

    It minimises, over w in the kernel's feature space and b,

        F = |w|^2 / 2 + C sum_i s_i max(0, |y_i - f(x_i)| - epsilon),     f(x) = w.phi(x) + b,  s = sample_weight

    as `sklearn.svm.SVR` does, until the relative gap between F and a lower bound of F is at most `tol`: working sets on
    the dual, with kernel rows from BLAS.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against |w|^2 / 2; it multiplies the *sum* over the rows.
    kernel : {"rbf", "poly", "linear", "sigmoid", "precomputed"} or callable, default="rbf"
    gamma, degree, coef0
        As in `KernelSVC`.
    epsilon : float, default=0.1
        Half the width of the tube, in units of y.
    fit_intercept : bool, default=True
        Whether there is an intercept b, which is not regularised; else it is 0.
    tol : float, default=1e-3
        Relative gap (objective - lower bound) / objective at which to stop; above it `converged_` is False.
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
        Rows with a coefficient in f, ascending.
    support_vectors_ : ndarray or CSR of shape (n_support, n_features); empty if the kernel is precomputed
    n_support_ : ndarray of shape (1,)
    dual_coef_ : ndarray of shape (1, n_support)
        f(x) = sum_k dual_coef_[0, k] K(x, x_k) + intercept_[0], over the support.
    coef_ : ndarray of shape (1, n_features), only if the kernel is linear
    intercept_ : ndarray of shape (1,)
    gamma_ : float
        The gamma that was used.
    objective_, lower_bound_, gap_ : float
        F, a lower bound of its minimum, and (objective_ - lower_bound_) / objective_; all from kernel values in
        float64. `gap_` is 0, too, where w = 0 and F is what rounding the targets may have added: targets on the tube.
    converged_, status_, n_iter_, history_ : as in `LinearSVC`
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> import numpy as np
    >>> from cutsvm import KernelSVR
    >>> X = np.linspace(0.0, 6.0, 200)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> model = KernelSVR(C=10.0, epsilon=0.01).fit(X, y)
    >>> bool(model.gap_ <= 1e-3), bool(model.score(X, y) > 0.999)
    (True, True)
    """

    C: float = 1.0
    _: KW_ONLY
    kernel: str | KernelFunction = "rbf"
    gamma: float | Literal["scale", "auto"] = "scale"
    degree: int = 3
    coef0: float = 0.0
    epsilon: float = 0.1
    fit_intercept: bool = True
    tol: float = 1e-3
    max_iter: int = 10_000
    max_time: float | None = None
    memory_limit: str | int | None = None
    checkpoint: str | PathLike[str] | None = None
    n_jobs: int | None = None
    callbacks: Sequence[Callable[[Record], object]] | None = None
    verbose: int = 0

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelSVR:
        """Fits the model to rows X with targets y, or to a data set: `fit("train.svm")`."""
        self._check_params()
        deadline = self._begin()
        data = ingest(self, X, y, sample_weight)
        shift = target_shift(data.y, data.weights) if self.fit_intercept else 0.0
        self._fit(data, data.y.astype(np.float64) - shift, partial(self._solutions, shift), deadline)
        self.intercept_ += shift
        self._warn_unless_converged(data)
        return self

    def _check_params(self) -> Any:
        validation.not_negative("epsilon", self.epsilon)
        return super()._check_params()

    def _objective_settings(self) -> dict[str, Scalar]:
        own = {"epsilon": float(self.epsilon), "fit_intercept": bool(self.fit_intercept)}
        return super()._objective_settings() | own

    def _solutions(self, shift: float, points: Points, groups: Groups, options: FitOptions) -> Iterator[Solution]:
        caps, free = float(self.C) * groups.weights, bool(self.fit_intercept)
        own = (points, groups.targets, caps, float(self.epsilon), options)
        return regression(*own, free_intercept=free, shift=shift)

    @by_block
    def predict(self, X: Any) -> Vector:
        """f(x) of each row. X: rows, or any source of rows; labels are not needed."""
        return self._sums(X)

    def to_sklearn(self) -> Any:
        """A fitted `sklearn.svm.SVR` that predicts the same, for tools that know scikit-learn's classes only.

        A new fit of it minimises the same objective; it always has an intercept.
        """
        params = {name: getattr(self, name) for name in ("C", "kernel", "degree", "coef0", "epsilon")}
        return libsvm_twin(self, svm.SVR(gamma=self.gamma, **params))
