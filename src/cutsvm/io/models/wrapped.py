"""The estimator of cutsvm inside pipelines and searches of scikit-learn's, and the steps before it."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from cutsvm._utils.types import Vector
from cutsvm.io.models.model_format import ModelFileError


@dataclass(frozen=True, eq=False)
class Unwrapped:
    """estimator: of cutsvm, if it is one. steps: fitted transformers before it. search: the outermost one, if any."""

    estimator: Any
    steps: tuple[Any, ...] = ()
    search: Any = None

    def transform(self, X: Any) -> Any:
        """X as the estimator gets it."""
        for step in self.steps:
            X = step.transform(X)
        return X

    def feature_names(self) -> list[str] | None:
        """The names of the estimator's features; None if a step does not say."""
        names: Any = None
        for step in self.steps:
            try:
                names = step.get_feature_names_out(names)
            except (AttributeError, ValueError):
                return None
        return None if names is None else list(names)


def unwrap(estimator: Any) -> Unwrapped:
    """The estimator that a pipeline ends in, or that a search has found."""
    steps: list[Any] = []
    search: Any = None
    while True:
        if isinstance(estimator, Pipeline):
            steps += [step for _, step in estimator.steps[:-1] if step not in (None, "passthrough")]
            estimator = estimator.steps[-1][1]
        elif hasattr(estimator, "best_estimator_"):  # searches of any package
            search = estimator if search is None else search
            estimator = estimator.best_estimator_
        elif isinstance(estimator, GridSearchCV | RandomizedSearchCV) or hasattr(estimator, "best_params_"):
            name = type(estimator).__name__
            if hasattr(estimator, "best_params_"):
                raise ValueError(f"there is no model: {name}(refit=False) chose parameters and fitted none with them")
            raise NotFittedError(f"{name} is not fitted: there is no model")
        else:
            return Unwrapped(estimator, tuple(steps), search)


def fold_scalers(model: Unwrapped) -> Any:
    """A copy of a linear estimator whose weights are for the rows as they are before the steps.

    The steps are scalers, x' = a x + c in every feature: w.x' + b = (a w).x + (b + w.c). Objective and bounds stay
    those of the scaled rows.
    """
    estimator = model.estimator
    if not model.steps:
        return estimator
    names = ", ".join(type(step).__name__ for step in model.steps)
    instead = "keep the whole pipeline with skops.io.dump, or joblib.dump"
    if not hasattr(estimator, "coef_"):
        raise ModelFileError(f"a model file has no room for the steps before {type(estimator).__name__}: {instead}")
    a, c = np.ones(model.steps[0].n_features_in_), np.zeros(model.steps[0].n_features_in_)
    for step in model.steps:
        scaling = _scaling(step)
        if scaling is None:
            raise ModelFileError(
                f"a model file has no room for the steps {names}: weights can take in StandardScaler, MaxAbsScaler and "
                f"MinMaxScaler without clip, not {type(step).__name__}; {instead}"
            )
        a, c = a * scaling[0], c * scaling[0] + scaling[1]
    folded = copy(estimator)
    W = np.asarray(estimator.coef_, dtype=np.float64)
    folded.coef_, folded.intercept_ = W * a, np.asarray(estimator.intercept_, dtype=np.float64) + W @ c
    vars(folded).pop("feature_names_in_", None)
    if hasattr(model.steps[0], "feature_names_in_"):
        folded.feature_names_in_ = model.steps[0].feature_names_in_
    return folded


def _scaling(step: Any) -> tuple[Vector, Vector] | None:
    """Factors and shifts of a scaler; None if it does something else."""
    ones, zeros = np.ones(step.n_features_in_), np.zeros(step.n_features_in_)
    if type(step) is StandardScaler:
        factors = 1.0 / step.scale_ if step.scale_ is not None else ones
        return factors, -step.mean_ * factors if step.with_mean else zeros
    if type(step) is MaxAbsScaler and not step.get_params().get("clip", False):
        return 1.0 / step.scale_, zeros
    if type(step) is MinMaxScaler and not step.clip:
        return step.scale_, step.min_
    return None
