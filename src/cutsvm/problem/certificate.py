"""Both sides of the certificate, computed in float64, with what rounding may have cost them.

The lower bound is one in exact arithmetic, and the objective of the model that is returned comes with a bound of its
error.

Notation: u = 2^-53 is the unit roundoff. A sum of m products, in any order, is off by at most gamma(m) sum |a_i b_i|,
gamma(m) = m u / (1 - m u) (N. Higham: Accuracy and stability of numerical algorithms, 2nd ed., section 3.1).

A plane under the risk is a sum over rows, slope = sum_i c_i (x_i, 1), of which we have a rounded one. What it lost is
again of that form: the exact plane has slope + sum_i theta_i (x_i, 1) and offset + theta_0 with sum_i |theta_i| <= e
and |theta_0| <= h e, where e is known from the length of the sum and from sum_i |c_i| (`Planes.errors`), and h says how
large offsets are beside coefficients: 1 for the hinge loss, the largest |t_i| + epsilon with targets. So the dual
function of the reduced problem at weights x >= 0, sum of x over each shard <= 1,

    C o.x - C^2 |v|^2 / 2,    v = sum_k x_k slope_k,    beta = the part of v that belongs to free coordinates, 0

loses at most, with E = sum_k x_k e_k and what adding up v itself may lose,

    C h E                             in the first term
    C^2 E' p(v) + (C E' r)^2 / 2      in the second:  p(v) >= max_i |x_i|.|v|,  r >= max_i |x_i|
    C b_max (|beta| + E)              for beta, which is 0 only up to rounding:  |b*| <= b_max at some minimiser

b_max is measured from the centre m of the rows, b + w.m, so that a constant added to a feature costs nothing there.
That moves beta m from the last term to v, and so E' = 2 E + |beta|.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cutsvm._utils.types import Ints, Vector
from cutsvm.matrix.magnitudes import SLIGHTLY, Magnitudes

if TYPE_CHECKING:
    from cutsvm.problem.oracle import Oracle

__all__ = ["UNIT", "Magnitudes", "Objective", "RowScale", "dual_bound", "gamma", "objective", "refined", "relative_gap"]

UNIT = 2.0**-53
TINY = 2.0**-1060  # what products that underflow may lose, with room for as many of them as there can be


def relative_gap(primal: float, lower: float, least: float = 0.0) -> float:
    """(primal - lower) / primal, and 0 if primal is at most `least`, which counts as 0; NaN if they are not known."""
    return 0.0 if primal <= least else (primal - lower) / primal


def gamma(terms: float) -> float:
    """The relative error of a sum of `terms` products, at most."""
    small = terms * UNIT
    return small / (1.0 - small) if small < 0.5 else np.inf


def sum_error(terms: float) -> float:
    """The same for a sum over `terms` rows that is made of pieces, parts and shards."""
    return gamma(terms + 64)


def exact_difference(a: Vector, b: Vector | float) -> tuple[Vector, Vector]:
    """a - b and what rounding takes from it: their sum is the difference itself (D. Knuth)."""
    difference = a - b
    share = difference - a
    return difference, (a - (difference - share)) - (b + share)


def widened(total: float, terms: int, error: float) -> float:
    """A sum of numbers above 0; with an error, no less than the sum itself, whatever rounding takes."""
    return total * (1.0 + gamma(terms + 8)) if error else total


@dataclass(frozen=True, eq=False)
class RowScale:
    """What a bound needs to know of the rows of a problem: their magnitudes, outputs, and the free coordinates."""

    magnitudes: Magnitudes
    outputs: int  # the slope has this number of blocks of d features
    n_free: int
    regularized: bool  # an intercept for each output follows the features, and is regularised
    intercept_bound: float  # some minimiser has no free coordinate beyond this, measured from the centre of the rows
    offset_unit: float = 1.0  # h: the offset of a plane changes by at most this where a coefficient changes by 1

    def product(self, slope: Vector) -> float:
        """At least sum_j |x_ij v_j| for every row and the block v of every output."""
        extra = self.outputs if self.regularized else 0
        features = slope[: len(slope) - extra].reshape(self.outputs, -1)
        largest = max(self.magnitudes.product(block) for block in features)
        return largest + (float(np.abs(slope[len(slope) - extra :]).max()) if extra else 0.0)

    @property
    def norm(self) -> float:
        return float(np.hypot(self.magnitudes.norm, 1.0)) if self.regularized else self.magnitudes.norm


def dual_bound(
    slopes: Vector, offsets: Vector, errors: Vector, shard: Ints, weights: Vector, C: float, scale: RowScale
) -> float:
    """A number that is no larger than min over w of |w|^2/2 + C R(w), whatever was lost to rounding.

    errors: one row (of the features and of the offset, of the free coordinates, sum_i |c_i|) per plane.
    """
    m, d = len(offsets), slopes.shape[1] - scale.n_free
    x = np.maximum(weights, 0.0)
    top = float(np.bincount(shard, weights=x).max(initial=0.0))
    x = x / (max(1.0, top) * (1.0 + gamma(m + 8)))
    pull = x @ slopes
    v, beta = pull[:d], float(np.abs(pull[d:]).sum())
    gain, height = float(x @ offsets), float(x @ np.abs(offsets))
    lost, lost_free, size = (x @ errors).tolist()
    summed = 2.0 * gamma(m + 4) * (size + lost)  # in adding up v; twice, for rows with two coefficients
    error, error_free = lost + summed, lost_free + summed
    moved = 2.0 * max(error, error_free) + beta if scale.n_free else error
    square, product = float(v @ v), scale.product(v)
    far = C * moved * scale.norm  # a product overflows to infinity where a power would raise
    # C by C, not C^2: that could underflow.
    cost = 0.5 * (C * (C * (square * (1.0 + gamma(d + 8)) + 2.0 * moved * product)) + far * far)
    cost += C * (C * TINY * (1.0 + float(np.abs(v).sum())))
    if scale.n_free:
        cost += C * scale.intercept_bound * (beta * (1.0 + gamma(8)) + error_free)
    lower = C * (gain - gamma(m + 8) * height) - SLIGHTLY * (C * scale.offset_unit * error + cost)
    return lower if lower > 0.0 else 0.0  # also if it is not a number


class Objective(NamedTuple):
    """F at the model that is returned, R there, and a bound on the rounding error of F.

    last_digits: how much F may change if the scores change by a few units in the last place.
    """

    primal: float
    loss: float
    error: float
    last_digits: float = 0.0

    @property
    def upper(self) -> float:
        return self.primal + self.error


def objective(
    oracle: Oracle, w: Vector, C: float, loss: float | None = None, *, precise: float | None = None
) -> Objective:
    """F at the model of w, from the data; loss: R there, if it is known from a pass at this very w.

    Where the scores are small differences of large numbers they are recomputed in twice the precision, unless the
    rounding error is at most `precise` of F; None: as `OracleSettings` says.
    """
    if loss is None:
        loss = oracle.risk(w)
    primal = oracle.penalty(w) + C * loss
    W, b = oracle.model(w)
    rows = oracle.model_matrix.magnitudes
    # Scores of W = 0 are b, without rounding, unless b makes up for targets that were shifted.
    largest = float(np.abs(b).max())
    size = max(rows.product(block) for block in np.atleast_2d(W)) + largest if np.any(W) else 0.0
    rounded = UNIT * largest if oracle.target_shift else 0.0
    shift = oracle.steepness * (gamma(2 * rows.terms + oracle.terms + 16) * size + rounded + oracle.tie)
    error = C * (oracle.loss.change(loss, shift) + oracle.value_error(size))
    if error <= (oracle.settings.precise if precise is None else precise) * primal:
        return Objective(primal, loss, error)
    rounded = gamma(2 * rows.terms + 16) ** 2 * size if np.any(W) else 0.0  # at w = 0 all scores are b
    (loss, highest), penalty = oracle.precise_risk(W, b, rounded), oracle.penalty(w)
    error = C * max(0.0, highest - loss) + gamma(len(w)) * penalty
    last_digits = C * oracle.loss.change(loss, oracle.steepness * gamma(rows.terms + 4) * size)
    return Objective(penalty + C * loss, loss, error, last_digits)


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
