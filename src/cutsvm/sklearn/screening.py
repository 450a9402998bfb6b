"""Rows that are no support vectors of a linear SVC, by a certificate: they can be left out of its fit.

A certified fit (w, b) with the relative gap g proves F(w) - F* <= g F, and F is 1-strongly convex in w, so that the
optimum w* has |w* - w| <= r = sqrt(2 g F). Hence each score w*.x_i is within r |x_i| of w.x_i; from that follow bounds
of the optimal intercepts, and from both of the margins. A row whose margin is above 1 at the optimum has alpha_i = 0 in
every solution of the dual problem, and the solution without it is the same. Ogawa, Suzuki and Takeuchi (2013) have such
a rule, safe screening, for a path over C.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.extmath import row_norms

from cutsvm._utils.types import Array, Vector
from cutsvm.driver.records import Status
from cutsvm.sklearn.training import QuietLinearSVC


def possible_support(X: Any, signs: Vector, weights: Vector, C: float) -> Array:
    """Whether each row, of the class 1 or -1, may be a support vector of the problem with a free intercept."""
    # The gap is one where fits are still short, and r |x_i| is mostly far below 1.
    model = QuietLinearSVC(C=C, tol=1e-7, max_iter=1000).fit(X, signs, weights)
    if model.status_ is Status.INTERRUPTED:
        raise KeyboardInterrupt
    radius = np.sqrt(2.0 * max(model.objective_ - model.lower_bound_, 0.0))
    w = model.coef_[0]
    scores: Vector = X @ w
    # The second terms are far above the rounding errors of the scores.
    moves = (radius + 1e-10 * float(np.linalg.norm(w))) * row_norms(X) + 1e-10
    lowest, highest = _intercepts(scores, moves, signs, weights)
    margins = np.where(signs > 0.0, scores - moves + lowest, -(scores + moves + highest))
    possible: Array = (margins <= 1.0) & (weights > 0.0)
    return possible


def _intercepts(scores: Vector, moves: Vector, signs: Vector, weights: Vector) -> tuple[float, float]:
    """Bounds of every b that minimises the loss of scores + b, where each score may be wrong by its move.

    The slope of the loss in b rises from -(sum of the positive weights) by the weight of a row at the b where that row
    is at its margin, b = sign - score. With all scores as low as they may be, these places are as far up as they may
    be: b is not above the first of them where the slope is above 0; and likewise not below.
    """
    slack = 1e-12 * float(weights.sum())
    start = -float(weights[signs > 0.0].sum())

    def first(places: Vector, least: float) -> float:
        order = np.argsort(places)
        slopes = start + np.cumsum(weights[order])
        return float(places[order][np.flatnonzero(slopes > least)[0]])

    return first(signs - scores - moves, -slack), first(signs - scores + moves, slack)
