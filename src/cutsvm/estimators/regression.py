"""LinearSVR and QuantileSVR: linear regression with a certificate."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from sklearn import svm
from sklearn.linear_model import HuberRegressor, QuantileRegressor

from cutsvm._utils import threads, validation
from cutsvm._utils.types import Array, Vector
from cutsvm.driver.fingerprint import Scalar
from cutsvm.estimators._base import CertifiedRegressor
from cutsvm.estimators._ingest import TrainingData
from cutsvm.estimators._linear import LinearModel, Makers, Problems
from cutsvm.estimators._predict import by_block
from cutsvm.estimators._targets import target_shift
from cutsvm.problem.loss_makers import TargetMaker
from cutsvm.problem.losses import Loss
from cutsvm.problem.losses.smooth import Huber, SquaredTube
from cutsvm.problem.losses.tube import Tube
from cutsvm.problem.point import Intercept
from cutsvm.solvers.protocol import Solver

LOSSES: dict[str, Callable[..., Loss]] = {
    "epsilon_insensitive": Tube,
    "squared_epsilon_insensitive": SquaredTube,
    "huber": Huber,
}


@dataclass(eq=False, repr=False)
class LinearRegressor(CertifiedRegressor, LinearModel):
    """Base of the regressors: one target per row, a loss of the residuals, and predictions X coef_ + intercept_."""

    @abstractmethod
    def _loss_kind(self) -> tuple[Callable[..., Loss], dict[str, float]]:
        """The loss, which is made of targets and weights, and its parameters."""

    def _problems(self, data: TrainingData) -> Problems:
        return {"": partial(self._loss, data)}

    def _makers(self, data: TrainingData) -> Makers:
        make, parameters = self._loss_kind()
        return {"": TargetMaker(make, self._target_shift(data), parameters)}

    def _loss(self, data: TrainingData) -> Loss:
        targets, shift = data.rows.vector(data.rows.n), self._target_shift(data)
        for part in validation.parts(len(targets)):
            np.subtract(data.y[part], shift, out=targets[part])
        make, parameters = self._loss_kind()
        return make(targets, data.weights, **parameters, threads=threads.count(self.n_jobs, data.rows.entries))

    def _target_shift(self, data: TrainingData) -> float:
        """What is subtracted from all targets: only a free intercept can make up for it."""
        return target_shift(data.y, data.weights) if self._intercept() is Intercept.FREE else 0.0

    def _weights_of(self, W: Vector, b: Vector) -> dict[str, Array]:
        return {"coef_": W[0], "intercept_": b}

    def _loss_scale(self, data: TrainingData) -> float:
        """For a slope of 1: one over the mean distance of the targets from their mean."""
        if data.parts is None:
            spread = _spread(data.y, data.weights)
        else:
            assert data.scale is not None
            spread = data.scale.deviation / data.parts.facts.weight
        return 1.0 / spread if spread > 0.0 else 1.0

    @by_block
    def predict(self, X: Any) -> Vector:
        """X coef_ + intercept_. X: rows, or any source of rows; labels are not needed."""
        return self._scores(X)


def _spread(y: Array, weights: Vector) -> float:
    """The weighted mean of |y - mean of y|."""
    total = float(weights.sum())
    mean = sum(float(weights[part] @ y[part]) for part in validation.parts(len(y))) / total
    return sum(float(weights[part] @ np.abs(y[part] - mean)) for part in validation.parts(len(y))) / total


@dataclass(eq=False, repr=False)
class LinearSVR(LinearRegressor):
    """Linear support vector regression with a certified duality gap.

    It minimises, over w and b,

        F = |w|^2 / 2 + C sum_i s_i loss(w.x_i + b - y_i),     s = sample_weight

        loss(r) = max(0, |r| - epsilon)                               "epsilon_insensitive"
                  max(0, |r| - epsilon)^2                             "squared_epsilon_insensitive"
                  r^2 / 2 where |r| <= epsilon,
                  epsilon |r| - epsilon^2 / 2 beyond                  "huber"

    until the relative gap between F and a lower bound of F is at most `tol`.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against |w|^2 / 2; it multiplies the *sum* over the rows.
    epsilon : float, default=0.0
        Half the width of the tube, in units of y, or where Huber's loss becomes linear. With epsilon=0 Huber's loss
        would be 0; it is |r| then, the limit of loss / epsilon.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive", "huber"}, default="epsilon_insensitive"
    tol, solver, fit_intercept, intercept, max_iter, max_time, n_jobs, warm_start, memory_limit, checkpoint, callbacks
        As in `LinearSVC`.
    verbose, random_state
        As in `LinearSVC`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : ndarray of shape (1,)
    objective_, lower_bound_, gap_, converged_, status_, n_iter_, history_, n_features_in_, feature_names_in_
        As in `LinearSVC`.

    Examples
    --------
    >>> from cutsvm import LinearSVR
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LinearSVR(C=100.0, epsilon=5.0).fit(X, y)
    >>> bool(model.gap_ <= 1e-3), bool(model.score(X, y) > 0.4)
    (True, True)
    """

    _: KW_ONLY
    epsilon: float = 0.0
    loss: Literal["epsilon_insensitive", "squared_epsilon_insensitive", "huber"] = "epsilon_insensitive"

    def _check_params(self) -> Solver:
        validation.one_of("loss", self.loss, tuple(LOSSES))
        validation.not_negative("epsilon", self.epsilon)
        return super()._check_params()

    def _loss_kind(self) -> tuple[Callable[..., Loss], dict[str, float]]:
        return Tube if self._is_absolute else LOSSES[self.loss], {"epsilon": float(self.epsilon)}

    @property
    def _is_absolute(self) -> bool:
        """Huber's loss with epsilon=0: the limit of loss / epsilon is |r|."""
        return self.loss == "huber" and self.epsilon == 0.0

    def _settings(self, data: TrainingData) -> dict[str, Scalar]:
        return {"loss": self.loss, "epsilon": float(self.epsilon)}

    def _loss_scale(self, data: TrainingData) -> float:
        if self.loss == "squared_epsilon_insensitive":
            return 1.0  # its slope grows with the residuals
        if self.loss == "epsilon_insensitive" or self._is_absolute:
            return super()._loss_scale(data)
        return min(1.0, float(self.epsilon) * super()._loss_scale(data))

    def to_sklearn(self) -> Any:
        """A fitted model of scikit-learn's that predicts the same, for tools that know scikit-learn's classes only.

        It is `sklearn.svm.LinearSVR`, a new fit of which minimises the same objective, with a regularised intercept;
        for Huber's loss `sklearn.linear_model.HuberRegressor`, which also fits the scale of the residuals.
        """
        if self.loss == "huber":
            twin = self._copy_fit(HuberRegressor(fit_intercept=self.fit_intercept))
            twin.intercept_, twin.scale_ = float(twin.intercept_[0]), 1.0
            return twin
        params = {name: getattr(self, name) for name in ("C", "epsilon", "loss", "fit_intercept")}
        return self._copy_fit(svm.LinearSVR(**params))


@dataclass(eq=False, repr=False)
class QuantileSVR(LinearRegressor):
    """Linear quantile regression with a certified duality gap.

    It minimises, over w and b, with the quantile q,

        F = |w|^2 / 2 + C sum_i s_i (q max(0, y_i - f_i) + (1 - q) max(0, f_i - y_i)),     f_i = w.x_i + b

    (the pinball loss), s = sample_weight, until the relative gap between F and a lower bound of F is at most `tol`.
    With a free intercept a share q of the rows' weight is below the predictions, up to the rows that are met exactly.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against |w|^2 / 2; it multiplies the *sum* over the rows.
    quantile : float, default=0.5
        The quantile q of y given x to predict, between 0 and 1. 0.5 is the median.
    tol, solver, fit_intercept, intercept, max_iter, max_time, n_jobs, warm_start, memory_limit, checkpoint, callbacks
        As in `LinearSVC`.
    verbose, random_state
        As in `LinearSVC`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : ndarray of shape (1,)
    objective_, lower_bound_, gap_, converged_, status_, n_iter_, history_, n_features_in_, feature_names_in_
        As in `LinearSVC`.

    Examples
    --------
    >>> import numpy as np
    >>> from cutsvm import QuantileSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + rng.normal(size=1000)
    >>> model = QuantileSVR(quantile=0.9).fit(X, y)
    >>> bool(0.88 < np.mean(y < model.predict(X)) < 0.92)
    True
    """

    _: KW_ONLY
    quantile: float = 0.5

    def _check_params(self) -> Solver:
        validation.inner_share("quantile", self.quantile)
        return super()._check_params()

    def _loss_kind(self) -> tuple[Callable[..., Loss], dict[str, float]]:
        q = float(self.quantile)
        return Tube, {"epsilon": 0.0, "below": q, "above": 1.0 - q}

    def _settings(self, data: TrainingData) -> dict[str, Scalar]:
        return {"quantile": float(self.quantile)}

    def to_sklearn(self) -> Any:
        """A fitted `sklearn.linear_model.QuantileRegressor` that predicts the same.

        A new fit of it has the same loss, and |w|_1 in place of |w|^2 / 2.
        """
        twin = self._copy_fit(QuantileRegressor(quantile=self.quantile, fit_intercept=self.fit_intercept))
        twin.intercept_ = float(twin.intercept_[0])
        return twin
