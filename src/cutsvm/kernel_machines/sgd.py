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

The algorithm has no bound and ends after its epochs. Where their number is "auto", and the kernel matrix is in memory
or the kernel is linear, coordinate ascent on the dual continues until the gap is tol (`cutsvm.kernel_machines.ascent`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from cutsvm._native import core, matrix_of
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.driver.records import Status
from cutsvm.kernel_machines.ascent import AscentSettings, ascend
from cutsvm.kernel_machines.context import FitOptions, KernelContext, Solution, log
from cutsvm.kernel_machines.gram import blocks, identity
from cutsvm.kernel_machines.one_vs_one import Machines, Problems


@dataclass(frozen=True)
class SGDSettings:
    """Lengths of the parts of an epoch between checks of the time, and the settings of the ascent."""

    block_rows: int = 1024  # rows whose kernel values are computed together
    linear_steps: int = 1 << 20  # steps without a kernel
    max_cached_steps: int = 100_000  # schedules of up to this number of steps are kept for problems of the same size
    ascent: AscentSettings = field(default=AscentSettings())


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient steps on the hinge loss: `step` says how long they are."""

    step: Literal["1/t", "1/m"] = "1/t"
    settings: SGDSettings = field(default=SGDSettings(), repr=False, kw_only=True)
    name: ClassVar[str] = "sgd"
    loss: ClassVar[str] = "hinge"

    def __post_init__(self) -> None:
        if self.step not in ("1/t", "1/m"):
            raise ValueError(f"step={self.step!r}: expected '1/t' or '1/m'")

    def __call__(self, context: KernelContext, C: float) -> Iterator[Solution]:
        """The solution after the epochs or, if the ascent follows, each that has converged in float32."""
        options = context.options
        steps = _Steps(self, context.problems, np.array([C]), options)
        early, alpha, epochs = False, None, 0
        try:
            for _ in self._linear_epochs(steps, context, C) if context.kernel_free else self._epochs(steps, context):
                late = options.deadline.left <= max(context.reserve, steps.reserve)
                early = late and bool((steps.done < steps.end).any())
                if early:
                    break
            alpha, epochs = steps.alpha(early=early), steps.epochs_done
            certifiable = context.kernel_free or context.gram is not None
            if options.finish and self.step == "1/t" and not early and certifiable:
                iterates = ascend(context, alpha, C, epochs, self.settings.ascent)
                for alpha, epochs, ended in iterates:
                    if ended is not None:
                        yield context.solution(alpha, C, self.loss, epochs, ended)
                return
            last = Status.MAX_TIME if early else options.after_epochs
            yield context.solution(alpha, C, self.loss, epochs, last)
        except KeyboardInterrupt:
            if alpha is None:
                alpha, epochs = steps.alpha(early=True), steps.epochs_done
            yield context.solution(alpha, C, self.loss, epochs, Status.INTERRUPTED, interrupted=True)
            raise

    def batched(self, gram: Array, problems: Problems, Cs: Vector, options: FitOptions) -> Machines:
        steps = _Steps(self, problems, Cs, options)
        steps.run(gram, identity(len(gram)), identity(len(gram)), steps.end, options.threads)
        return Machines(problems.first, steps.columns, steps.coef(), steps.used)

    def _epochs(self, steps: _Steps, context: KernelContext) -> Iterator[None]:
        """All steps with the whole matrix, block by block of rows."""
        if context.gram is None:
            yield from self._streamed_epochs(steps, context)
            return
        places = identity(len(context.points))
        for _, _, until in self._blocks(context):
            steps.run(context.gram, places, places, until, context.options.threads)
            yield

    def _blocks(self, context: KernelContext) -> Iterator[tuple[int, slice, Ints]]:
        """(epoch, block of the order, the steps of each problem that are done after it)"""
        problems, n = context.problems, len(context.points)
        position = np.empty(n, dtype=np.int64)  # of rows in the order that all problems share
        position[context.order] = np.arange(n)
        positions = [position[problems.rows[part]] for part in problems.parts]
        for epoch in range(context.options.epochs):
            for block in blocks(n, self.settings.block_rows):
                until = np.array([np.searchsorted(own, block.stop) for own in positions], dtype=np.int64)
                yield epoch, block, until + epoch * problems.sizes

    def _streamed_epochs(self, steps: _Steps, context: KernelContext) -> Iterator[None]:
        """All steps with the kernel values of one block of rows at a time, with the support so far."""
        n, deadline = len(context.points), context.options.deadline
        support = np.empty(0, dtype=np.int64)
        row_place, column_place = np.full(n, -1, dtype=np.int32), np.full(n, -1, dtype=np.int32)
        buffer, shown = np.empty(0, dtype=np.float32), deadline.spent
        for epoch, block, until in self._blocks(context):
            rows = context.order[block]
            fresh = rows[column_place[rows] < 0]
            columns = np.concatenate([support, fresh])
            if buffer.size < len(rows) * len(columns):
                buffer = np.empty(len(rows) * max(len(columns), min(n, 2 * len(columns))), dtype=np.float32)
            panel = buffer[: len(rows) * len(columns)].reshape(len(rows), len(columns))
            began = deadline.spent
            context.points.values(rows, context.points, columns, panel)
            if deadline.max_time is not None:  # twice as long in float64; at least half of the time is for the steps
                seconds = 2.0 * (deadline.spent - began) * n * len(support) / panel.size
                steps.reserve = seconds if seconds <= 0.5 * deadline.max_time else 0.0
            row_place[rows] = identity(len(rows))
            column_place[fresh] = len(support) + identity(len(fresh))
            if deadline.verbose and deadline.spent - shown > deadline.log_every:
                shown = deadline.spent
                where = f"row {block.start:,} of {n:,}, support {len(support):,}"
                log(f"epoch {epoch + 1} of {context.options.epochs}: {where}")
            steps.run(panel, row_place, column_place, until, context.options.threads)
            row_place[rows] = -1  # the next block may be shorter
            support = _extended_support(steps, column_place, support, fresh)
            yield

    def _linear_epochs(self, steps: _Steps, context: KernelContext, C: float) -> Iterator[None]:
        """All steps of Algorithm A, problem by problem."""
        problems, matrix, epochs = context.problems, matrix_of(context.points.X), context.options.epochs
        steps.slot[:] = np.concatenate([identity(m) for m in problems.sizes])
        for p, (m, part) in enumerate(zip(problems.sizes, problems.parts, strict=True)):
            plan = slice(epochs * part.start, epochs * part.stop)
            theta = np.zeros(matrix.d)
            beta, mean = np.zeros(m), np.zeros(m)
            for some in blocks(epochs * int(m), self.settings.linear_steps):
                rest = (problems.rows[part], problems.a[part], steps.scale[plan], steps.tail[plan], 1.0 / C)
                matrix.linear_sgd(*rest, some.start, some.stop, theta, beta, mean)
                steps.done[p] = some.stop
                steps.beta[part, 0], steps.mean[part, 0] = beta, mean
                yield


class _Steps:
    """The state of the steps of all problems; see core/kernel_sgd.hpp."""

    def __init__(self, solver: SGD, problems: Problems, Cs: Vector, options: FitOptions) -> None:
        step, epochs, average = solver.step, options.epochs, options.average
        self.problems, self.epochs, self.Cs = problems, epochs, np.zeros(1 if len(Cs) == 1 else core.VERSIONS)
        self.Cs[: len(Cs)] = Cs
        with np.errstate(divide="ignore"):
            self.margin = np.where(self.Cs > 0.0, 1.0 / self.Cs, -np.inf)
        self.step = step
        self.scale, self.tail = _schedule(step, problems.sizes, epochs, average, solver.settings.max_cached_steps)
        total = len(problems.rows)
        self.slot, self.columns = np.full(total, -1, dtype=np.int32), np.zeros(total, dtype=np.int32)
        self.beta, self.mean = np.zeros((total, len(self.Cs))), np.zeros((total, len(self.Cs)))
        self.used, self.done = np.zeros(len(problems), dtype=np.int64), np.zeros(len(problems), dtype=np.int64)
        self.end = epochs * problems.sizes
        self.reserve = 0.0  # seconds that a certificate will take, where the kernel matrix does not fit

    def run(self, gram: Array, row_place: Array, column_place: Array, until: Ints, threads: int) -> None:
        """Continues to step `until` of each problem; places: where rows are in gram."""
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
        """The largest number of epochs, begun ones included, of a problem."""
        return int(np.max(-(-self.done // self.problems.sizes)))

    def coef(self, *, early: bool = False) -> Vector:
        """The mean of the last alphas, in the order of the support; early: the last alpha."""
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


def _schedule(step: str, sizes: Ints, epochs: int, average: float, max_cached: int) -> tuple[Vector, Vector]:
    """(scale_t, tail_t) of all steps of all problems; see `_plan`."""
    # Folds and pairs of classes often have the same size. Long plans are not kept beyond the fit.
    plan = _plan if int(sizes.max()) * epochs <= max_cached else _plan.__wrapped__
    plans = [plan(step, m, epochs, average) for m in sizes.tolist()]
    return np.concatenate([scale for scale, _ in plans]), np.concatenate([tail for _, tail in plans])


@lru_cache(maxsize=256)
def _plan(step: str, m: int, epochs: int, average: float) -> tuple[Vector, Vector]:
    """(scale_t, tail_t) of the steps t = 1 .. T of a problem with m rows.

    alpha_t = C scale_t beta. C tail_t is the coefficient of step t's change of beta in the mean of the last alphas.
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


def _extended_support(steps: _Steps, column_place: Array, support: Ints, fresh: Ints) -> Ints:
    """The support after a block; rows without a coefficient lose their column."""
    problems = steps.problems
    inside = np.zeros(len(column_place), dtype=bool)
    inside[problems.rows[steps.slot >= 0]] = True
    kept = fresh[inside[fresh]]
    moved = np.full(len(support) + len(fresh), -1, dtype=np.int32)
    moved[: len(support)] = identity(len(support))
    moved[column_place[kept]] = len(support) + identity(len(kept))
    for p, used in enumerate(steps.used):
        part = slice(problems.first[p], problems.first[p] + used)
        steps.columns[part] = moved[steps.columns[part]]
    column_place[fresh] = -1
    column_place[kept] = len(support) + identity(len(kept))
    return np.concatenate([support, kept])
