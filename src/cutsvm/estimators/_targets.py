"""Targets of regression."""

from __future__ import annotations

import numpy as np

from cutsvm._utils import validation
from cutsvm._utils.types import Array, Vector


def target_shift(targets: Array, weights: Vector) -> float:
    """The centre of targets that are far from 0, else 0: residuals would lose their digits.

    The differences are exact, as no target is above twice another (P. Sterbenz, Floating-Point Computation, 1974).
    """
    low, high = np.inf, -np.inf
    for part in validation.parts(len(targets)):
        y = targets[part].astype(np.float64)[weights[part] > 0.0]
        low, high = min(low, float(y.min(initial=np.inf))), max(high, float(y.max(initial=-np.inf)))
    near, far = sorted((abs(low), abs(high)))
    return low + 0.5 * (high - low) if low * high > 0.0 and far <= 2.0 * near else 0.0
