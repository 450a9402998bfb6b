"""What a model file holds of a linear model: its weights, intercepts and thresholds.

arrays    coef (rows, features): one row, or with more than two classes of `--task classify` one per class. Regressors
              have it as `coef_` of shape (features,)
          intercept (rows,)
          thresholds (classes - 1,), of `--task ordinal`
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cutsvm._utils.types import Array, Vector
from cutsvm.io.models.liblinear import LinearWeights
from cutsvm.io.models.model_format import Expect, ModelFileError
from cutsvm.io.models.tasks import Task


def checked_weights(estimator: Any, task: Task) -> LinearWeights:
    """The weights of a fitted estimator as float64; `ModelFileError` if there are none or they are not finite."""
    if not hasattr(estimator, "coef_"):
        raise ModelFileError("the estimator is not fitted: there is no model to write")
    stored: Any = estimator.coef_
    coef = np.atleast_2d(stored.toarray() if hasattr(stored, "toarray") else stored)  # after sparsify()
    intercept = np.broadcast_to(np.asarray(estimator.intercept_, dtype=np.float64), (len(coef),))
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ModelFileError("the model has weights that are not finite")
    has_intercept = bool(getattr(estimator, "fit_intercept", False) or intercept.any())
    classes = np.asarray(getattr(estimator, "classes_", []))
    joint = len(coef) > 1 and estimator._outputs(len(classes)) > 1
    kind = task.liblinear_types.get((getattr(estimator, "loss", ""), joint), "")
    return LinearWeights(classes, coef.astype(np.float64), intercept if has_intercept else None, kind)


def pack(estimator: Any, task: Task) -> tuple[dict[str, Any], dict[str, Array]]:
    """Fields to add to the header, and the arrays."""
    weights = checked_weights(estimator, task)
    dtype = np.float32 if estimator.coef_.dtype == np.float32 else np.float64
    arrays: dict[str, Array] = {"coef": weights.coef.astype(dtype)}
    arrays["intercept"] = np.zeros(len(weights.coef)) if weights.intercept is None else np.array(weights.intercept)
    if hasattr(estimator, "thresholds_"):
        arrays["thresholds"] = np.asarray(estimator.thresholds_, dtype=np.float64)
    return {}, arrays


def restore(expect: Expect, estimator: Any, task: Task, header: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Set the weights of an estimator that has its parameters and classes, after checking them."""
    coef, intercept = arrays.get("coef"), arrays.get("intercept")
    n_classes = len(estimator.classes_) if task.has_classes else 0
    rows = n_classes if task.weights_per_class and n_classes > 2 else 1
    width = header.get("n_features")
    if coef is None or intercept is None or coef.dtype.kind != "f" or intercept.dtype != np.float64:
        raise ModelFileError(f"{expect.name}: expected arrays of weights")
    expect.that(type(width) is int and coef.shape == (rows, width), "weights for every class and feature")
    expect.that(intercept.shape == (rows,), "an intercept for every row of weights")
    expect.that(bool(np.isfinite(coef).all() and np.isfinite(intercept).all()), "finite weights")
    set_weights(estimator, task, coef, intercept)
    if task.has_thresholds:
        classes = estimator.classes_
        estimator.thresholds_ = _thresholds(expect, arrays.get("thresholds"), n_classes)
        estimator.levels = None if np.all(classes[:-1] < classes[1:]) else classes.tolist()


def set_weights(estimator: Any, task: Task, coef: Array, intercept: Vector | None) -> None:
    estimator.coef_ = coef[0] if task.has_targets else coef
    estimator.intercept_ = np.zeros(len(coef)) if intercept is None else intercept
    estimator.n_features_in_ = coef.shape[1]
    estimator._mark_fitted()


def _thresholds(expect: Expect, stored: Array | None, n_classes: int) -> Vector:
    if stored is None or stored.dtype != np.float64 or stored.shape != (n_classes - 1,):
        raise ModelFileError(f"{expect.name}: expected a threshold between every two classes")
    expect.that(bool(np.isfinite(stored).all() and np.all(np.diff(stored) >= 0.0)), "thresholds in ascending order")
    return stored
