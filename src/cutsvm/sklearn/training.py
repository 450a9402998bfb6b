"""One fit of a certified estimator in place of liblinear's: tolerance, constant column, warning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from cutsvm._utils.types import Array, Vector
from cutsvm._utils.warn import warn
from cutsvm.driver.records import Status
from cutsvm.estimators.linear import LinearSVC
from cutsvm.estimators.regression import LinearSVR
from cutsvm.problem.certificate import relative_gap


class _Quiet:
    """An estimator without its warning: the drop-in has scikit-learn's. A filter would hold for all threads."""

    def _warn_unless_converged(self, data: Any) -> None:
        pass


class QuietLinearSVC(_Quiet, LinearSVC):
    """`cutsvm.LinearSVC` without its warning."""


class QuietLinearSVR(_Quiet, LinearSVR):
    """`cutsvm.LinearSVR` without its warning."""


def gap_of_tol(tol: float) -> float:
    """The gap to stop at, for scikit-learn's tol: tol^2, at most 1e-3.

    liblinear stops by gradients: in the primal where |grad F(w)| <= tol |grad F(0)| times the share of the smaller
    class. F is 1-strongly convex, so a gradient g leaves F(w) - F* <= |g|^2 / 2, which is of the order of tol^2. And
    |w - w*|^2 / 2 <= F(w) - F*, so a gap of tol^2 leaves |w - w*| <= tol sqrt(2 F): tol is about the error of the
    weights, as users expect who compare them. A tol below the rounding errors ends there, without a warning.
    """
    return float(np.clip(float(tol) ** 2, np.finfo(np.float64).eps, 1e-3))


def seed_of(random_state: Any) -> int | None:
    """A seed, or None for None. One number is drawn as by scikit-learn, so that the caller's next ones are the same."""
    seed = int(check_random_state(random_state).randint(np.iinfo("i").max))
    return None if random_state is None else seed


def certified_options(dropin: Any) -> dict[str, Any]:
    """The parameters of the certified estimators that follow from scikit-learn's."""
    return {
        "C": float(dropin.C),
        "loss": str(dropin.loss),
        "tol": gap_of_tol(dropin.tol),
        "fit_intercept": bool(dropin.fit_intercept) and float(dropin.intercept_scaling) == 1.0,
        "intercept": "regularized",
        "max_iter": int(dropin.max_iter),
        "random_state": seed_of(dropin.random_state),
        "verbose": int(dropin.verbose),
    }


def train(dropin: Any, model: Any, X: Any, problems: Sequence[tuple[Array, Vector | None]]) -> None:
    """Fits the certified model to each y with its weights, and gives coefficients and certificate to the drop-in.

    liblinear's intercept is the weight of a constant feature, times its value: with intercept_scaling = 1 that is the
    regularised intercept b^2 / 2, with another value the feature is a column of X.
    """
    scaling = float(dropin.intercept_scaling)
    with_column = bool(dropin.fit_intercept) and scaling != 1.0
    X = _with_constant(X, scaling) if with_column else X
    coef, intercept, bounds, n_iter, ends = [], [], [], [], []
    for y, weights in problems:
        model.fit(X, y, weights)
        if model.status_ is Status.INTERRUPTED:
            raise KeyboardInterrupt
        coef.append(np.atleast_2d(model.coef_))
        intercept.append(np.atleast_1d(model.intercept_))
        bounds.append((model.objective_, model.lower_bound_))
        n_iter.append(int(model.n_iter_))
        ends.append(model.converged_ or model.status_ is Status.PRECISION)
    W, b = np.vstack(coef), np.hstack(intercept)
    if with_column:
        W, b = W[:, :-1].copy(), scaling * W[:, -1]
    dropin.coef_, dropin.intercept_ = W, b if dropin.fit_intercept else 0.0
    dropin.n_iter_ = max(n_iter)
    dropin.objective_, dropin.lower_bound_ = map(sum, zip(*bounds, strict=True))
    dropin.gap_ = relative_gap(dropin.objective_, dropin.lower_bound_)
    if not all(ends):
        # The first sentence is scikit-learn's: filters of warnings go by it.
        warn(
            "Liblinear failed to converge, increase the number of iterations. (It was cutsvm in place of Liblinear: "
            f"max_iter={dropin.max_iter} left a relative gap of {dropin.gap_:.1e}, and tol={dropin.tol} asks for "
            f"{model.tol:.1e}.)",
            ConvergenceWarning,
        )


def _with_constant(X: Any, value: float) -> Any:
    """X with one more column, all of this value."""
    column: Any = np.full((X.shape[0], 1), value, dtype=X.dtype)
    if not sparse.issparse(X):
        return np.hstack([X, column])
    parts: Any = [X, sparse.csr_array(column)]
    return sparse.hstack(parts, format="csr")
