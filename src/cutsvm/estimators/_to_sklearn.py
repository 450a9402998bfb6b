"""Conversion of fitted models to scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

__all__ = ["as_linear_svc"]

# Parameters with the same meaning there. tol and max_iter belong to another algorithm; the C of pairs weighs a mean.
_SHARED = ("C", "class_weight", "fit_intercept", "multi_class")


def as_linear_svc(estimator: Any, *, same_problem: bool) -> Any:
    """A fitted `sklearn.svm.LinearSVC` with these weights, for tools that know scikit-learn's classes only.

    same_problem: whether to copy the estimator's parameters, so that a new fit minimises the same objective (with a
    regularised intercept).
    """
    check_is_fitted(estimator, "coef_")
    own = estimator.get_params(deep=False) | {"C": estimator.C}  # cross-validated estimators have it in C_
    twin = LinearSVC(loss="hinge", dual=True, **({name: own[name] for name in _SHARED} if same_problem else {}))
    twin.coef_ = np.array(estimator.coef_, dtype=np.float64)
    twin.intercept_ = np.array(estimator.intercept_, dtype=np.float64)
    twin.classes_ = estimator.classes_.copy()
    twin.n_features_in_ = twin.coef_.shape[1]
    twin.n_iter_ = int(getattr(estimator, "n_iter_", None) or 1)  # a model from a file may not have it
    if hasattr(estimator, "feature_names_in_"):
        twin.feature_names_in_ = estimator.feature_names_in_.copy()
    return twin
