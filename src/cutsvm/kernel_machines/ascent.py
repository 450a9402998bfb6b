"""Coordinate ascent on the dual of the hinge loss: from any alpha to a certified gap of tol.

    max over 0 <= alpha_i <= C s_i of  sum_i alpha_i - alpha'Q alpha / 2,     Q_ij = y_i y_j K_ij

    repeat  i = the row that violates its condition most (without a kernel: the next one)
            alpha_i = clip(alpha_i + (1 - (Q alpha)_i) / Q_ii, 0, C s_i)
    until   primal - dual <= tol primal

With a kernel, the steps and their gap use the matrix in float32. That gap ends the steps; the certificate is computed
in float64. If it is above tol, the steps continue to a smaller gap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cutsvm._native import matrix_of
from cutsvm._utils.types import Vector
from cutsvm.driver.records import Status
from cutsvm.kernel_machines.certificate import KernelErrors, all_bounds
from cutsvm.kernel_machines.context import KernelContext, log


@dataclass(frozen=True)
class AscentSettings:
    """Lengths of the rounds between checks of the time, and the gaps to reach in float32."""

    # Of tol: the gap by values in float32 that ends the steps; the next one if the certificate is above tol.
    gap_shares: tuple[float, ...] = (0.8, 0.2, 0.05)
    values_per_round: float = 4e8  # kernel values
    cycles_per_round: int = 10  # over the rows, where there is no kernel
    min_steps_per_round: int = 1000


def ascend(
    context: KernelContext, alpha: Vector, C: float, epochs: int, settings: AscentSettings
) -> Iterator[tuple[Vector, int, Status | None]]:
    """Coordinate ascent from alpha, the result of `epochs` cycles over the rows: (alpha, epochs, why it ended).

    With a status a certificate is wanted; the caller ends the ascent if that is within tol.
    """
    alpha = np.minimum(alpha, C * np.abs(context.problems.a))
    steps = (_without_kernel if context.kernel_free else _with_kernel)(context, alpha, C, settings)
    deadline, shown = context.options.deadline, context.options.deadline.spent
    cycles = 0.0
    for alpha, gap, more, enough in steps:
        cycles += more
        total = epochs + int(np.ceil(cycles))
        ended = Status.CONVERGED if enough else None
        if not enough and deadline.left <= context.reserve:
            ended = Status.MAX_TIME
        elif not enough and total >= context.options.max_iter:
            ended = Status.MAX_ITER
        yield alpha, total, ended
        if ended in (Status.MAX_TIME, Status.MAX_ITER):
            return
        if deadline.verbose and deadline.spent - shown >= deadline.log_every:
            shown = deadline.spent
            log(f"coordinate ascent: {total:,} epochs, gap {gap:.1e}, {shown:.0f} s")


# alpha, its gap in float32, cycles over the rows since the last one, whether that gap calls for a certificate
Progress = tuple[Vector, float, float, bool]


def _with_kernel(context: KernelContext, alpha: Vector, C: float, settings: AscentSettings) -> Iterator[Progress]:
    problems, places = context.problems.by_row()
    own = np.ascontiguousarray(alpha[places, None])
    for share in settings.gap_shares:
        left = np.arange(len(problems))
        while len(left):
            some, where = problems.some(left)
            part, most = own[where], int(settings.values_per_round / some.first[-1])
            tol, most = share * context.options.tol, max(settings.min_steps_per_round, most)
            primal, dual, steps = context.dual_steps(some, C, "hinge", tol, most, part)
            own[where] = part
            gaps = np.where(np.isfinite(primal), primal - dual, np.inf)
            worst = float(np.max(gaps / np.maximum(primal, 1e-300)))
            unfinished = gaps > tol * primal
            # A problem without a step is at its precision.
            unfinished &= (steps > 0) | ~np.isfinite(primal)
            left = left[unfinished]
            alpha = np.empty_like(alpha)
            alpha[places] = own[:, 0]
            yield alpha, worst, float(np.max(steps / some.sizes)), not len(left)


def _without_kernel(context: KernelContext, alpha: Vector, C: float, settings: AscentSettings) -> Iterator[Progress]:
    problems, X = context.problems, context.linear_rows
    sizes = problems.sizes
    weights = [problems.weights(X, p, alpha) for p in range(len(problems))]
    done = np.zeros(len(problems), dtype=np.int64)
    left = list(range(len(problems)))
    errors = KernelErrors(context.points.rounding, context.points.diagonal())
    alpha, matrix = alpha.copy(), matrix_of(X)
    while left:
        unfinished, worst = [], 0.0
        for p in left:
            part = problems.of(p)
            own = alpha[part].copy()
            begin, end = int(done[p]), int(done[p] + settings.cycles_per_round * sizes[p])
            rows, a = problems.rows[part], problems.a[part]
            matrix.linear_ascent(rows, a, C, begin, end, weights[p], own)
            done[p] += settings.cycles_per_round * sizes[p]
            alpha[part] = own
            alone, _ = problems.some(np.array([p]))
            scores = np.asarray(X[alone.rows] @ weights[p])
            found = all_bounds(alone, own, scores, C, "hinge", errors)
            primal, lower = float(found[0][0]), float(found[1][0])
            worst = max(worst, (primal - lower) / primal if primal > 0.0 else 0.0)
            if primal - lower > settings.gap_shares[0] * context.options.tol * primal:
                unfinished.append(p)
        left = unfinished
        yield alpha.copy(), worst, float(settings.cycles_per_round), not left
