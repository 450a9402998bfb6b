"""Coordinate ascent on the dual of the hinge loss: from any alpha to a certified gap of tol.

    max over 0 <= alpha_i <= C s_i of  sum_i alpha_i - alpha'Q alpha / 2,     Q_ij = y_i y_j K_ij

    repeat  i = the row that violates its condition most (without a kernel: the next one)
            alpha_i = clip(alpha_i + (1 - (Q alpha)_i) / Q_ii, 0, C s_i)
    until   primal - dual <= tol primal

With a kernel the steps read the matrix of values in float32, and so does their own gap: it says when to stop, and the
certificate, from values in float64, says what has come of it. If that is not enough the steps go on to a smaller gap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cutsvm._native import core, matrix_of
from cutsvm._utils.types import Vector
from cutsvm.driver.run import Status
from cutsvm.kernel_machines.task import Task, all_bounds
from cutsvm.kernel_machines.watch import EVERY, log

__all__ = ["Found", "ascend"]

SHARES = (0.8, 0.2, 0.05)  # of tol, for the gap by values in float32: the next where the last was not enough
WORK = 4e8  # kernel values that are read between looks at the clock
CYCLES = 10  # over the rows, between looks at the gap, where there is no kernel


@dataclass(frozen=True, eq=False)
class Found:
    """How far the ascent has got; done: a certificate is wanted."""

    alpha: Vector
    epochs: int
    ended: Status
    done: bool


def ascend(task: Task, alpha: Vector, C: float, epochs: int) -> Iterator[Found]:
    """From alpha, which `epochs` cycles over the rows have led to, on.

    The caller takes the first answer that is certified to be good enough, or the last.
    """
    alpha = np.minimum(alpha, C * np.abs(task.problems.a))
    steps = _without_kernel(task, alpha, C) if task.kernel_free else _with_kernel(task, alpha, C)
    watch, shown = task.settings.watch, task.settings.watch.spent
    cycles = 0.0
    for alpha, gap, more, enough in steps:
        cycles += more
        total = epochs + int(np.ceil(cycles))
        ended = Status.CONVERGED if enough else None
        if not enough and watch.left <= task.reserve:
            ended = Status.MAX_TIME
        elif not enough and total >= task.settings.max_iter:
            ended = Status.MAX_ITER
        yield Found(alpha, total, ended or Status.CONVERGED, ended is not None)
        if ended in (Status.MAX_TIME, Status.MAX_ITER):
            return
        if watch.verbose and watch.spent - shown >= EVERY:
            shown = watch.spent
            log(f"coordinate ascent: {total:,} epochs, gap {gap:.1e}, {shown:.0f} s")


# alpha, its gap as far as it is known, cycles over the rows since the last one, whether a certificate is to be tried
Progress = tuple[Vector, float, float, bool]


def _with_kernel(task: Task, alpha: Vector, C: float) -> Iterator[Progress]:
    assert task.gram is not None
    problems, places = task.problems.by_row()
    own = np.ascontiguousarray(alpha[places, None])
    for share in SHARES:
        left = np.arange(len(problems))
        while len(left):
            some, where = problems.some(left)
            part, seen = own[where], np.empty((len(left), 1, 3))
            core.kernel_l2(
                task.gram,
                some.rows,
                some.a,
                some.first,
                np.array([C]),
                "hinge",
                share * task.settings.tol,
                max(1000, int(WORK / some.first[-1])),
                max(0.0, task.settings.watch.left - task.reserve),
                part,
                seen,
                task.settings.threads,
            )
            own[where] = part
            primal, dual, steps = seen[:, 0].T
            gaps = np.where(np.isfinite(primal), primal - dual, np.inf)
            worst = float(np.max(gaps / np.maximum(primal, 1e-300)))
            unfinished = gaps > share * task.settings.tol * primal
            # What rounding does not let get any better is as good as done.
            unfinished &= (steps > 0) | ~np.isfinite(primal)
            left = left[unfinished]
            alpha = np.empty_like(alpha)
            alpha[places] = own[:, 0]
            yield alpha, worst, float(np.max(steps / some.sizes)), not len(left)


def _without_kernel(task: Task, alpha: Vector, C: float) -> Iterator[Progress]:
    problems, X = task.problems, task.points.X
    sizes = problems.sizes
    weights = [problems.weights(X, p, alpha) for p in range(len(problems))]
    done = np.zeros(len(problems), dtype=np.int64)
    left = list(range(len(problems)))
    rounding, diagonal = task.points.rounding, task.points.diagonal()
    alpha, matrix = alpha.copy(), matrix_of(X)
    while left:
        unfinished, worst = [], 0.0
        for p in left:
            part = problems.of(p)
            own = alpha[part].copy()
            begin, end = int(done[p]), int(done[p] + CYCLES * sizes[p])
            rows, a = problems.rows[part], problems.a[part]
            matrix.linear_ascent(rows, a, C, begin, end, weights[p], own)
            done[p] += CYCLES * sizes[p]
            alpha[part] = own
            alone = problems.alone(p)
            scores = np.asarray(X[alone.rows] @ weights[p])
            found = all_bounds(alone, own, scores, C, "hinge", rounding, diagonal, given=False)
            primal, lower = float(found[0][0]), float(found[1][0])
            worst = max(worst, (primal - lower) / primal if primal > 0.0 else 0.0)
            if primal - lower > SHARES[0] * task.settings.tol * primal:
                unfinished.append(p)
        left = unfinished
        yield alpha.copy(), worst, float(CYCLES), not left
