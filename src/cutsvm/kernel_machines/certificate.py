"""F and a lower bound of F at any alpha, with rounding errors allowed for.

For each pair of classes, with m rows of weight s_i,

    F(w) = |w|^2 / (2 C m) + 1/m sum_i s_i loss(1 - y_i f(x_i)),     f(x) = w.phi(x) = sum_i coef_i K(x_i, x)

where loss(z) is max(0, z), or max(0, z)^2 / 2 for the solvers of the L2 machine. It is 1 / (C m) times the form that
other tools have, |w|^2 / 2 + C sum_i |a_i| loss(..) with |a_i| = s_i, whose dual bounds it from below: for
alpha_i = y_i coef_i >= 0

    hinge   sum_i alpha_i - |w|^2 / 2                                           if alpha_i <= C |a_i|
    L2      sum_i alpha_i - |w|^2 / 2 - sum_i alpha_i^2 / (2 C |a_i|)

and so does each feasible multiple of alpha, of which the best is taken. Where C weighs the mean of the losses
(`Problems.mean_loss`), F has |w|^2 / (2 C), it is 1 / C times that form, and |a_i| = s_i / m.

Both are computed from kernel values in float64 or better. F is raised, and the bound lowered, by their rounding errors.
With errors of kernel values of at most rho k_i k_j, k_i^2 = K(x_i, x_i), and sums of m terms,

    |error of |w|^2|   <=  (rho + (2 m + 20) eps) (sum_i alpha_i k_i)^2
    |error of f(x_i)|  <=  (rho + (2 m + 20) eps) k_i sum_j alpha_j k_j
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cutsvm._utils.types import Array, Vector
from cutsvm.kernel_machines.gram import EPS, blocks, is_sparse
from cutsvm.kernel_machines.one_vs_one import Problems


@dataclass(frozen=True)
class CertificateSettings:
    """Time for a certificate, and when it is computed in extended precision."""

    seconds_after_interrupt: float = 1.0
    seconds_after_limit: float = 0.5
    # Products of numbers: below, extended precision is always used; above the limit, never.
    extended_below: int = 1_000_000
    extended_limit: int = 100_000_000
    block_rows: int = 512  # rows whose linear scores are computed together


@dataclass(frozen=True, eq=False)
class KernelErrors:
    """Errors of kernel values in float64: at most rounding sqrt(K(x, x) K(z, z)), the square root from the diagonal.

    Values that are `given` are exact, and `rounding` is how far they are from those of a kernel: infinite if no kernel
    is near, in which case F has no lower bound.
    """

    rounding: float = 0.0
    diagonal: Vector | None = None
    given: bool = False


def all_bounds(
    problems: Problems, alpha: Vector, scores: Array, C: float, loss: str, errors: KernelErrors
) -> tuple[Vector, Vector, Vector]:
    """(F, a lower bound of F, the rounding error of F) for each problem; scores: f of each problem's own rows.

    Sums, and kernel values that were not given, are in the precision of the scores.
    """
    rounding, diagonal, given = errors.rounding, errors.diagonal, errors.given
    eps = float(np.finfo(scores.dtype).eps)
    values_off = 0.0 if given else rounding * eps / EPS
    kernel_off = rounding if given else values_off
    answer = np.empty((3, len(problems)))
    for p, (part, scale) in enumerate(zip(problems.parts, problems.scale, strict=True)):
        m = part.stop - part.start
        own, cap = alpha[part].astype(scores.dtype), C * np.abs(problems.a[part]).astype(scores.dtype)
        margins = np.copysign(1.0, problems.a[part]) * scores[part]
        norm, miss = own @ margins, np.maximum(0.0, 1.0 - margins)
        lengths = np.abs(margins) if diagonal is None else np.sqrt(np.maximum(0.0, diagonal[problems.rows[part]]))
        sums = (2 * m + 20) * eps  # relative error of a sum over the rows of sums over the support
        total = own @ lengths.astype(scores.dtype)
        magnitude = total * total if diagonal is not None else own @ np.abs(margins)
        tiny = float(np.finfo(np.float64).tiny) * (1.0 + own.sum()) ** 2  # what underflow may take
        off = (values_off + sums) * magnitude + tiny
        curve = norm + (kernel_off + sums) * magnitude + tiny
        if given and np.isfinite(rounding):
            _refuse_negative(float(norm), float((kernel_off + sums) * magnitude + tiny))
        away = (values_off + sums) * (lengths * total if diagonal is not None else lengths) + tiny
        value, lost = _objective(norm, miss, cap, away, loss)
        error = 0.5 * off + lost + sums * abs(value)
        bound = _dual_bound(own, cap, curve, loss, sum_error=sums, square_error=sums)
        lower = -np.inf if np.isinf(rounding) else min(max(0.0, bound), value)
        answer[:, p] = np.array([value + error, lower, error]) / (C * scale)
    return answer[0], answer[1], answer[2]


def linear_bounds(
    problems: Problems, alpha: Vector, X: Any, C: float, loss: str, settings: CertificateSettings
) -> tuple[Vector, Vector]:
    """(F, a lower bound of F) for each problem with a linear kernel.

    F is that of w = sum_i alpha_i y_i x_i as stored in float64. The error of w_j is at most m eps sum_i alpha_i |x_ij|.
    """
    primal, lower = np.empty(len(problems)), np.empty(len(problems))
    for p, (part, scale) in enumerate(zip(problems.parts, problems.scale, strict=True)):
        m = part.stop - part.start
        rows = X[problems.rows[part]]
        w, cap = problems.weights(X, p, alpha), C * np.abs(problems.a[part])
        terms = int(np.diff(rows.indptr).max(initial=0)) if is_sparse(rows) else int(rows.shape[1])
        scores, eps = _linear_scores(rows, w, settings)
        lengths = np.sqrt(
            np.asarray(abs(rows).power(2).sum(axis=1)).ravel() if is_sparse(rows) else (rows**2).sum(axis=1)
        )
        wide = w.astype(scores.dtype)
        norm, size = wide @ wide, np.sqrt(wide @ wide)
        miss = np.maximum(0.0, 1.0 - np.copysign(1.0, problems.a[part]) * scores)
        away = (terms + 4) * eps * size * lengths
        value, lost = _objective(norm, miss, cap, away, loss)
        error = lost + (m + len(w) + 20) * eps * value
        own, tiny = alpha[part].astype(scores.dtype), float(np.finfo(np.float64).tiny)
        length = size + (m + 20) * EPS * (own @ lengths) + tiny * (1.0 + own.sum())
        bound = _dual_bound(own, cap, length * length, loss, sum_error=(m + 4) * eps, square_error=m * EPS)
        primal[p], lower[p] = (value + error) / (C * scale), min(max(0.0, bound), value) / (C * scale)
    return primal, lower


def _linear_scores(rows: Any, w: Vector, settings: CertificateSettings) -> tuple[Array, float]:
    """X w, in extended precision where that is possible, and the rounding unit of that precision."""
    if (3 * rows.nnz if is_sparse(rows) else rows.size) > settings.extended_limit:
        return np.asarray(rows @ w), EPS
    wide = w.astype(np.longdouble)
    scores = np.zeros(rows.shape[0], dtype=np.longdouble)
    if is_sparse(rows):
        products = rows.data.astype(np.longdouble) * wide[rows.indices]
        np.add.at(scores, np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr)), products)
    else:
        for some in blocks(rows.shape[0], settings.block_rows):
            scores[some] = rows[some].astype(np.longdouble) @ wide
    return scores, float(np.finfo(np.longdouble).eps)


def _refuse_negative(norm: float, error: float) -> None:
    """Raises ValueError if |w|^2 is below 0 by more than its rounding error: the matrix is not a kernel's."""
    if norm < -error:
        raise ValueError(
            "the kernel matrix is not positive semi-definite: with the coefficients that were found its quadratic form "
            f"is {norm:.3g}, below 0"
        )


def _objective(norm: Any, miss: Array, cap: Array, away: Array, loss: str) -> tuple[Any, Any]:
    """|w|^2 / 2 + C sum_i |a_i| loss_i, and its error if those of f are at most `away`.

    miss: max(0, 1 - y_i f(x_i)), cap: C |a_i|.
    """
    if loss == "hinge":
        return 0.5 * norm + cap @ miss, cap @ away
    return 0.5 * norm + 0.5 * cap @ miss**2, cap @ (away * (miss + 0.5 * away))


def _dual_bound(own: Array, cap: Array, curve: Any, loss: str, *, sum_error: float, square_error: float) -> Any:
    """The dual objective at the best feasible multiple of alpha, less its rounding error; curve: |w|^2 plus its error.

    At the multiple z it is z sum_i alpha_i - z^2 curve / 2; for the L2 machine curve grows by sum_i alpha_i^2 / cap_i.
    """
    linear, most = own.sum() * (1.0 - sum_error), np.inf
    if loss == "hinge":
        some = own > 0.0
        most = (1.0 - 4.0 * EPS) * np.min(cap[some] / own[some], initial=np.inf)  # the largest multiple within cap
    else:
        curve = curve + (1.0 + square_error) * np.sum(own[cap > 0.0] ** 2 / cap[cap > 0.0])
    multiple = min(most, linear / curve) if curve > 0.0 else most if curve == 0.0 and linear > 0.0 else 0.0
    rounding = 8.0 * EPS * (multiple * linear + 0.5 * multiple * multiple * abs(curve))
    return multiple * linear - 0.5 * multiple * multiple * curve - rounding
