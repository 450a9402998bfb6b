"""NL-SGD: kernel machines by stochastic gradient steps, in cycles over shuffled rows.

G. Melki and V. Kecman, "Speeding Up Online Training of L1 Support Vector Machines", IEEE SoutheastCon 2016.

Algorithm B for one pair of classes, with the paper's changes (shuffle once, then cycles; the mean of the last part):

    lambda = 1 / (C m),   beta = 0
    for t = 1 .. T = epochs m, i = the next row:
        alpha_t = beta / (lambda t)
        if y_i sum_j alpha_tj K(x_j, x_i) < 1:   beta_i += y_i s_i
    answer: the mean of the last `average` T of alpha_2 .. alpha_{T+1}; with average = 0 the last one

The paper's box has 1 / (lambda m) where its text, (2), and the book that it follows have 1 / (lambda t). The latter is
what converges; `SGD(step="1/m")` is the former.

The steps are in core/kernel_sgd.hpp. Here are their schedule and the kernel values that they read: the whole matrix if
there is room, else those of a block of rows with the support so far. With the linear kernel there are none:
w = sum_j alpha_j x_j is kept instead (Algorithm A).

The algorithm knows no bound, so it ends after its epochs wherever it is then. Where the number of epochs is "auto", and
there is a matrix or no need of one, coordinate ascent on the dual goes on from there until the gap is tol
(`cutsvm.kernel_machines.ascent`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from cutsvm._native import core, matrix_of
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.driver.run import Status
from cutsvm.kernel_machines.ascent import ascend
from cutsvm.kernel_machines.gram import blocks, identity
from cutsvm.kernel_machines.one_vs_one import Machines, Problems
from cutsvm.kernel_machines.task import Answer, Settings, Task
from cutsvm.kernel_machines.watch import EVERY, log

__all__ = ["SGD"]

BLOCK = 1024  # rows whose kernel values are computed together
STEPS = 1 << 20  # without a kernel, between looks at the clock


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient steps on the hinge loss: `step` says how long they are."""

    step: Literal["1/t", "1/m"] = "1/t"
    loss: ClassVar[str] = "hinge"

    def __post_init__(self) -> None:
        if self.step not in ("1/t", "1/m"):
            raise ValueError(f"step={self.step!r}: expected '1/t' or '1/m'")

    def __call__(self, task: Task, C: float) -> Iterator[Answer]:
        settings = task.settings
        steps = _Steps(self.step, task.problems, np.array([C]), settings.epochs, settings.average)
        early, alpha, epochs = False, None, 0
        try:
            for _ in _linear_walk(steps, task, C) if task.kernel_free else _walk(steps, task):
                late = settings.watch.left <= max(task.reserve, steps.reserve)
                early = late and bool((steps.done < steps.end).any())
                if early:
                    break
            alpha, epochs = steps.alpha(early=early), steps.epochs_done
            if settings.finish and self.step == "1/t" and not early and (task.kernel_free or task.gram is not None):
                for found in ascend(task, alpha, C, epochs):
                    alpha, epochs = found.alpha, found.epochs
                    if found.done:
                        yield task.answer(alpha, C, self.loss, epochs, found.ended)
                return
            yield task.answer(alpha, C, self.loss, epochs, Status.MAX_TIME if early else Status.EPOCHS)
        except KeyboardInterrupt:
            if alpha is None:
                alpha, epochs = steps.alpha(early=True), steps.epochs_done
            yield task.answer(alpha, C, self.loss, epochs, Status.INTERRUPTED, hurry=True)
            raise

    def together(self, gram: Array, problems: Problems, Cs: Vector, settings: Settings) -> Machines:
        steps = _Steps(self.step, problems, Cs, settings.epochs, settings.average)
        steps.run(gram, identity(len(gram)), identity(len(gram)), steps.end, settings.threads)
        return Machines(problems.first, steps.columns, steps.coef(), steps.used)


class _Steps:
    """The steps of all problems so far, and what has come of them; see core/kernel_sgd.hpp."""

    def __init__(self, step: str, problems: Problems, Cs: Vector, epochs: int, average: float) -> None:
        self.problems, self.epochs, self.Cs = problems, epochs, np.zeros(1 if len(Cs) == 1 else core.VERSIONS)
        self.Cs[: len(Cs)] = Cs
        with np.errstate(divide="ignore"):
            self.margin = np.where(self.Cs > 0.0, 1.0 / self.Cs, -np.inf)
        self.step = step
        self.scale, self.tail = _schedule(step, problems.sizes, epochs, average)
        total = len(problems.rows)
        self.slot, self.columns = np.full(total, -1, dtype=np.int32), np.zeros(total, dtype=np.int32)
        self.beta, self.mean = np.zeros((total, len(self.Cs))), np.zeros((total, len(self.Cs)))
        self.used, self.done = np.zeros(len(problems), dtype=np.int64), np.zeros(len(problems), dtype=np.int64)
        self.end = epochs * problems.sizes
        self.reserve = 0.0  # seconds that a certificate will take, where kernel values are computed in passing

    def run(self, gram: Array, row_place: Array, column_place: Array, until: Ints, threads: int) -> None:
        """Goes on to step `until` of each problem; places: where rows are in gram."""
        core.kernel_sgd(
            gram,
            row_place,
            column_place,
            self.problems.rows,
            self.problems.a,
            self.problems.first,
            self.scale,
            self.tail,
            self.epochs,
            self.margin,
            self.done,
            until,
            self.slot,
            self.columns,
            self.beta,
            self.mean,
            self.used,
            threads,
        )
        self.done = until

    @property
    def epochs_done(self) -> int:
        """Cycles that were begun, of the problem that has got furthest."""
        return int(np.max(-(-self.done // self.problems.sizes)))

    def coef(self, *, early: bool = False) -> Vector:
        """The answer in the order of the support; early: the last alpha, where the steps were broken off."""
        if not early:
            return self.Cs * self.mean
        ends = zip(self.problems.sizes.tolist(), self.done.tolist(), strict=True)
        last = np.array([_scale(self.step, m, np.array(t + 1.0)) for m, t in ends])
        answer: Vector = self.Cs * self.beta * np.repeat(last, self.problems.sizes)[:, None]
        return answer

    def alpha(self, *, early: bool = False) -> Vector:
        """y_i coef_i of the first version, in the order of the problems' rows."""
        places = np.repeat(self.problems.first[:-1], self.problems.sizes) + self.slot
        coef = self.coef(early=early)[np.where(self.slot < 0, 0, places), 0]
        return np.where(self.slot < 0, 0.0, np.abs(coef))


def _schedule(step: str, sizes: Ints, epochs: int, average: float) -> tuple[Vector, Vector]:
    """(scale_t, tail_t) of all steps of all problems; see `_plan`."""
    # Folds and pairs of classes often have the same size. Long plans are not kept beyond the fit.
    plan = _plan if int(sizes.max()) * epochs <= 100_000 else _plan.__wrapped__
    plans = [plan(step, m, epochs, average) for m in sizes.tolist()]
    return np.concatenate([scale for scale, _ in plans]), np.concatenate([tail for _, tail in plans])


@lru_cache(maxsize=256)
def _plan(step: str, m: int, epochs: int, average: float) -> tuple[Vector, Vector]:
    """(scale_t, tail_t) of the steps t = 1 .. T of a problem with m rows.

    alpha_t = C scale_t beta. tail_t is what one step's change of beta has in the mean of the last alphas, over C.
    """
    T = epochs * m
    scale = _scale(step, m, np.arange(1.0, T + 2))
    last = max(1, round(average * T))
    counted = scale / last
    counted[: T + 1 - last] = 0.0
    later = np.cumsum(counted[::-1])[::-1]  # of alpha_t and all that come after it
    return scale[:T], later[1:]


def _scale(step: str, m: int, t: Vector) -> Vector:
    return m / t if step == "1/t" else np.ones_like(t)


def _walk(steps: _Steps, task: Task) -> Iterator[None]:
    """All steps, block by block of rows: with the whole matrix, or with values for the support so far."""
    problems, n = task.problems, len(task.points)
    position = np.empty(n, dtype=np.int64)  # of rows in the order that all problems share
    position[task.order] = np.arange(n)
    of_rows = position[problems.rows]
    held = np.empty(0, dtype=np.int64)  # the support so far
    row_place, column_place = np.full(n, -1, dtype=np.int32), np.full(n, -1, dtype=np.int32)
    if task.gram is not None:
        row_place = column_place = identity(n)
    buffer = np.empty(0, dtype=np.float32)
    watch, shown = task.settings.watch, task.settings.watch.spent
    for epoch in range(task.settings.epochs):
        for block in blocks(n, BLOCK):
            until = np.array(
                [np.searchsorted(of_rows[problems.of(p)], block.stop) for p in range(len(problems))], dtype=np.int64
            )
            until += epoch * problems.sizes
            if task.gram is not None:
                steps.run(task.gram, row_place, column_place, until, task.settings.threads)
                yield
                continue
            rows = task.order[block]
            fresh = rows[column_place[rows] < 0]
            columns = np.concatenate([held, fresh])
            if buffer.size < len(rows) * len(columns):
                buffer = np.empty(len(rows) * max(len(columns), min(n, 2 * len(columns))), dtype=np.float32)
            panel = buffer[: len(rows) * len(columns)].reshape(len(rows), len(columns))
            began = watch.spent
            task.points.values(rows, task.points, columns, panel)
            if watch.max_time is not None:  # twice as long in float64; half of the time is for the model in any case
                seconds = 2.0 * (watch.spent - began) * n * len(held) / panel.size
                steps.reserve = seconds if seconds <= 0.5 * watch.max_time else 0.0
            row_place[rows] = identity(len(rows))
            column_place[fresh] = len(held) + identity(len(fresh))
            if watch.verbose and watch.spent - shown > EVERY:
                shown = watch.spent
                log(f"epoch {epoch + 1} of {task.settings.epochs}: row {block.start:,} of {n:,}, support {len(held):,}")
            steps.run(panel, row_place, column_place, until, task.settings.threads)
            row_place[rows] = -1  # the next block may be shorter
            held = _keep(steps, column_place, held, fresh)
            yield


def _keep(steps: _Steps, column_place: Array, held: Ints, fresh: Ints) -> Ints:
    """The support after a block: rows that are not in it lose their column, the others close ranks."""
    problems = steps.problems
    inside = np.zeros(len(column_place), dtype=bool)
    inside[problems.rows[steps.slot >= 0]] = True
    kept = fresh[inside[fresh]]
    moved = np.full(len(held) + len(fresh), -1, dtype=np.int32)
    moved[: len(held)] = identity(len(held))
    moved[column_place[kept]] = len(held) + identity(len(kept))
    for p, used in enumerate(steps.used):
        part = slice(problems.first[p], problems.first[p] + used)
        steps.columns[part] = moved[steps.columns[part]]
    column_place[fresh] = -1
    column_place[kept] = len(held) + identity(len(kept))
    return np.concatenate([held, kept])


def _linear_walk(steps: _Steps, task: Task, C: float) -> Iterator[None]:
    """All steps of Algorithm A, problem by problem."""
    problems, matrix = task.problems, matrix_of(task.points.X)
    steps.slot[:] = np.concatenate([identity(m) for m in problems.sizes])
    for p, m in enumerate(problems.sizes):
        part = problems.of(p)
        plan = slice(task.settings.epochs * part.start, task.settings.epochs * part.stop)
        theta = np.zeros(matrix.d)
        beta, mean = np.zeros(m), np.zeros(m)
        for some in blocks(task.settings.epochs * int(m), STEPS):
            rest = (problems.rows[part], problems.a[part], steps.scale[plan], steps.tail[plan], 1.0 / C)
            matrix.linear_sgd(*rest, some.start, some.stop, theta, beta, mean)
            steps.done[p] = some.stop
            steps.beta[part, 0], steps.mean[part, 0] = beta, mean
            yield
