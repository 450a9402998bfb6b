"""Which parameters and weights cutsvm trains with. All others are scikit-learn's to train with, or to refuse.

The checks are those of scikit-learn's `_parameter_constraints`, which are private. A value that fails one here goes to
scikit-learn's own `fit`, whose message is then its own; so a check may be too strict, and must not be too lax.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from cutsvm._utils.types import Vector


def legal_in_both(estimator: Any) -> dict[str, bool]:
    """The parameters that LinearSVC and LinearSVR share, and whether each is legal."""
    return {
        "tol": is_positive(estimator.tol),
        "C": is_positive(estimator.C),
        "fit_intercept": is_boolean(estimator.fit_intercept),
        "intercept_scaling": is_positive(estimator.intercept_scaling),
        "dual": is_boolean(estimator.dual) or is_one_of(estimator.dual, "auto"),
        "verbose": is_boolean(estimator.verbose) or is_whole(estimator.verbose, 0),
        "random_state": is_random_state(estimator.random_state),
        "max_iter": is_whole(estimator.max_iter, 1),
    }


def first_failed(estimator: Any, legal: Mapping[str, bool]) -> str | None:
    """What is not trained by cutsvm, of the parameters by name and whether each is; None: nothing."""
    for name, is_legal in legal.items():
        if not is_legal:
            return f"{name}={getattr(estimator, name)!r} is not trained by cutsvm"
    return None


def is_one_of(value: Any, *choices: str) -> bool:
    """Whether the value is one of these words."""
    return isinstance(value, str) and value in choices


def is_boolean(value: Any) -> bool:
    """Whether the value is a bool, Python's or NumPy's."""
    return isinstance(value, bool | np.bool_)


def is_positive(value: Any) -> bool:
    """Whether the value is a finite real number above 0."""
    return isinstance(value, Real) and 0.0 < float(value) < np.inf


def is_whole(value: Any, least: int) -> bool:
    """Whether the value is an integer, `least` or more."""
    return isinstance(value, Integral) and int(value) >= least


def is_random_state(value: Any) -> bool:
    """Whether the value may be `random_state`."""
    if value is None or isinstance(value, np.random.RandomState):
        return True
    return is_whole(value, 0) and int(value) <= np.iinfo(np.uint32).max


def row_weights(sample_weight: Any, rows: int) -> Vector | None:
    """The weights as float64; None unless they are finite, 0 or more, and as many as the rows."""
    if isinstance(sample_weight, Real):
        sample_weight = np.full(rows, sample_weight)
    try:
        weights: Vector = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    if weights.shape != (rows,) or not np.all((weights >= 0.0) & (weights < np.inf)):
        return None
    return weights
