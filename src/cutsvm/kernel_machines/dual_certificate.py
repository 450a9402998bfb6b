"""F and a lower bound of F at any s of a `DualProblem`, with rounding errors allowed for.

Kernel values are off by at most rho k_i k_j, k_i^2 = K(x_i, x_i), and sums of m terms by (2 m + 20) eps of their
magnitude, as those of n variables; f is a sum of sums, whose terms count t, far fewer; with sigma = sum_v |s_v| k_v

    |error of f(x_i)|  <=  (rho + (2 t + 20) eps) k_i sigma
    |error of |w|^2|   <=  (rho + (2 t + 20) eps) sigma^2 + (2 n + 20) eps sum_v |s_v f_v|

F is raised by what that makes of it, the dual lowered. With a free intercept the dual holds where sum_v s_v is `total`;
what is missing to it, e, costs at most |e| times the largest |b| that an optimum can have: there is one with
|b| <= max |c| + |w| max k_i, and |w|^2 / 2 <= F (of one class: |w| is the least of all s).

Only rows near the margin have to be known precisely. A row with s_v = 0 and a loss of 0, by more than the error of the
f that the solver has, adds nothing to F and nothing to the dual.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutsvm._utils.types import Array, Vector
from cutsvm.kernel_machines.dual_problem import DualProblem
from cutsvm.kernel_machines.gram import EPS, is_sparse

TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class ValueErrors:
    """Errors of kernel values in float64, as in `KernelErrors`; lengths: sqrt(K(x, x)) of the rows of the variables.

    terms: t, see above.
    """

    rounding: float
    lengths: Vector
    given: bool
    terms: int


@dataclass(frozen=True)
class DualBounds:
    """lower <= min F <= primal = F(s, intercept), and the rounding error that primal has been raised by."""

    primal: float
    lower: float
    intercept: float
    error: float

    @property
    def width(self) -> float:
        """primal - lower"""
        return self.primal - self.lower


def best_intercept(g: Array, low: Array, high: Array, total: float) -> float:
    """The b with the least total b + sum_v max(high_v (g_v - b), low_v (g_v - b)); of an interval its middle."""
    if not len(g):
        return 0.0
    order = np.argsort(g, kind="stable")
    # Left of all g the slope is total - sum_v high_v; at each g_v it rises by high_v - low_v.
    slopes = total - high.sum() + np.cumsum((high - low)[order])
    scale = 1e-13 * (abs(total) + float(np.abs(high).sum() + np.abs(low).sum()))
    first = int(np.searchsorted(slopes, -scale))
    last = int(np.searchsorted(slopes, scale, side="right"))
    first, last = min(first, len(g) - 1), min(last, len(g) - 1)
    return float(0.5 * (g[order[first]] + g[order[last]]))


def dual_bounds(problem: DualProblem, s: Vector, f: Array, errors: ValueErrors, total: float) -> DualBounds:
    """F, its lower bound and the best intercept; f: of the variables' rows, in float64 or better; total: of all s."""
    eps = float(np.finfo(f.dtype).eps)
    values_off = 0.0 if errors.given else errors.rounding * eps / EPS
    lengths = errors.lengths.astype(f.dtype)
    sigma = float(np.abs(s.astype(f.dtype)) @ lengths)
    off = (values_off + (2 * errors.terms + 20) * eps) * lengths * sigma
    return bounds_of_scores(problem, s, f, off, errors, total)


def bounds_of_scores(
    problem: DualProblem, s: Vector, f: Array, off: Array, errors: ValueErrors, total: float
) -> DualBounds:
    """The same from an f that is off by at most `off`, of the variables."""
    eps, rho = float(np.finfo(f.dtype).eps), errors.rounding
    own, lengths = s.astype(f.dtype), errors.lengths.astype(f.dtype)
    low, high, c = (part.astype(f.dtype) for part in (problem.low, problem.high, problem.c))
    sums = (2 * len(s) + 20) * eps
    # What underflow may take.
    tiny = TINY * int(np.count_nonzero(s)) * (1.0 + float(np.abs(own).sum())) ** 2
    norm, linear = own @ f, c @ own
    norm_off = float(np.abs(own) @ off) * (1.0 + sums) + sums * float(np.abs(own) @ np.abs(f)) + tiny
    g = c - f
    b = best_intercept(g, low, high, total) if problem.free_intercept else 0.0
    losses = np.maximum(high * (g - b), low * (g - b))
    away = off + tiny + 4.0 * eps * (np.abs(c) + np.abs(f) + abs(b))
    value = 0.5 * norm + total * b + losses.sum()
    raised = np.maximum(high * (g - b + away), low * (g - b - away))  # a row clearly without a loss has none
    error = 0.5 * norm_off + (raised - losses).sum()
    error += sums * (abs(norm) + abs(total * b) + losses.sum())
    primal = float(value + error)
    curve = norm + norm_off
    if errors.given:  # values that are a kernel's up to rho only
        curve += rho * float(np.abs(own) @ lengths) ** 2
    lower = linear - 0.5 * curve - sums * float(np.abs(c) @ np.abs(own) + abs(norm))
    if math.isinf(rho):  # no kernel's values: |w|^2 may be below 0, and F too
        return DualBounds(primal, -np.inf, b, float(error))
    if problem.free_intercept:
        missing = abs(math.fsum([*s.tolist(), -total]))
        lower -= missing * _largest_intercept(problem, primal, float(curve), lengths)
    return DualBounds(primal, min(max(problem.least, float(lower)), float(value)), b, float(error))


def weight_bounds(
    problem: DualProblem, X: Any, coef: Vector, found: DualBounds, total: float, dtype: Any = np.float64
) -> DualBounds:
    """`found` with F of the function with the weights w = X' coef as they are rounded to float64, computed in dtype."""
    X = X[np.arange(len(coef))]  # in the memory order of the rows that a model's weights are computed from
    w = np.asarray(X.T @ coef, dtype=np.float64).astype(dtype)
    if dtype != np.float64:
        X = (X.toarray() if is_sparse(X) else X).astype(dtype)
    eps = float(np.finfo(w.dtype).eps)
    low, high, c = (part.astype(w.dtype) for part in (problem.low, problem.high, problem.c))
    f = np.asarray(X @ w)[problem.row_of]
    sizes = np.asarray(abs(X) @ np.abs(w))[problem.row_of]
    g = c - f
    b = best_intercept(g, low, high, total) if problem.free_intercept else 0.0
    tiny = TINY * int(np.count_nonzero(w))  # what underflow may take
    away = (2 * len(w) + 20) * eps * sizes + 4.0 * eps * (np.abs(c) + abs(b)) + tiny
    losses = np.maximum(high * (g - b), low * (g - b))
    raised = np.maximum(high * (g - b + away), low * (g - b - away))
    norm = w @ w
    value = 0.5 * norm + total * b + losses.sum()
    sums = (2 * (len(w) + len(c)) + 20) * eps
    error = (raised - losses).sum() + sums * (norm + abs(total * b) + raised.sum()) + tiny
    return DualBounds(float(value + error), found.lower, b, float(error))


def _largest_intercept(problem: DualProblem, primal: float, curve: float, lengths: Array) -> float:
    norm = max(0.0, curve if problem.least < 0.0 else 2.0 * primal)
    return float(np.abs(problem.c).max(initial=0.0)) + 1.01 * math.sqrt(norm) * float(lengths.max(initial=0.0))
