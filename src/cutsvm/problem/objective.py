"""The objective of the model that is returned, computed from the data, with a bound of its rounding error."""

from __future__ import annotations

import numpy as np

from cutsvm._utils.types import Vector
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Objective
from cutsvm.problem.rounding import gamma

__all__ = ["objective", "refined"]


def objective(
    oracle: Oracle, w: Vector, C: float, loss: float | None = None, *, precise: float | None = None
) -> Objective:
    """F at the model of w, from the data; loss: R there, if it is known from a pass at this very w.

    Where the scores are small differences of large numbers they are recomputed in twice the precision, unless the
    rounding error is at most `precise` of F; None: as `OracleSettings` says.
    """
    if loss is None:
        loss = oracle.value(oracle.score(w))
    primal = oracle.penalty(w) + C * loss
    W, b = oracle.model(w)
    rows = oracle.model_matrix.magnitudes
    size = max(rows.product(block) for block in np.atleast_2d(W)) + float(np.abs(b).max())
    weight = C * oracle.steepness * oracle.loss.total
    error = weight * (gamma(2 * rows.terms + oracle.terms + 16) * size + oracle.tie)
    if error <= (oracle.settings.precise if precise is None else precise) * primal:
        return Objective(primal, loss, error)
    scores = oracle.compensated_scores(W, b)
    loss, penalty = oracle.loss.precise(*scores), oracle.penalty(w)
    highest = oracle.loss.precise(*scores, gamma(2 * rows.terms + 16) ** 2 * size)
    error = C * max(0.0, highest - loss) + gamma(len(w)) * penalty
    return Objective(penalty + C * loss, loss, error, weight * gamma(rows.terms + 4) * size)


def refined(
    oracle: Oracle, w: Vector, C: float, loss: float | None = None, *, precise: float | None = None
) -> tuple[Vector, Objective]:
    """w, or w times 1 + 2^-k, whichever has the lowest F that rounding errors allow to prove.

    A row on the margin up to rounding has a loss of some last digits. If C is so large that F consists of these, a
    w that is longer by as much has none.
    """
    best, found = w, objective(oracle, w, C, loss, precise=precise)
    if found.error + found.last_digits > oracle.settings.imprecise * found.primal:
        for longer in (w * (1.0 + 2.0**-digits) for digits in oracle.settings.last_digits):
            other = objective(oracle, longer, C)
            if other.upper < found.upper:
                best, found = longer, other
    return best, found
