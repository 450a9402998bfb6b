"""NL-SGD: kernel machines by stochastic gradient steps, in cycles over shuffled rows or with rows drawn at random.

G. Melki and V. Kecman, "Speeding Up Online Training of L1 Support Vector Machines", IEEE SoutheastCon 2016.

Algorithm B for one pair of classes, with the paper's changes (shuffle once, then cycles; the mean of the last part):

    lambda = 1 / (C m),   beta = 0
    for t = 1 .. T = epochs m, i = the next row:
        alpha_t = beta / (lambda t)
        if y_i sum_j alpha_tj K(x_j, x_i) < 1:   beta_i += y_i s_i
    answer: the mean of the last `average` T of alpha_2 .. alpha_{T+1}; with average = 0 the last one

The paper can be read in several ways, each of which is a setting of `SGD`:

    step      its box has 1 / (lambda m), "1/m"; its (2) and the book that it follows 1 / (lambda t), "1/t", which is
              what converges
    order     its box draws i at random, "random"; its section III goes through shuffled rows in turn, "cyclic"
    iterates  its box gives the mean of alpha_1 .. alpha_T, "before" each step; a last alpha "after" T updates is
              alpha_{T+1}
    C_times   it calls C "or 1 / lambda": C times the "mean" of the losses; C times their "sum" is lambda = 1 / (C m)

`SGD(step="1/m", order="random", iterates="before")` with average=1 is Algorithm B as it is printed, but for its line 7,
where beta_j stands for beta_i.

The steps are in core/kernel_sgd.hpp. Here are their schedule and the kernel values that they read: the whole matrix if
there is room, else those of a block of rows with the support so far. With the linear kernel there are none:
w = sum_j alpha_j x_j is kept instead (Algorithm A); with an intercept the x_j have a feature more, which is 1.

The algorithm has no bound and ends after its epochs. Where their number is "auto", and the kernel matrix is in memory
or the kernel is linear, coordinate ascent on the dual continues until the gap is tol (`cutsvm.kernel_machines.ascent`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from cutsvm._native import core, matrix_of
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.driver.records import Status
from cutsvm.kernel_machines import visits
from cutsvm.kernel_machines.ascent import AscentSettings, ascend
from cutsvm.kernel_machines.context import FitOptions, KernelContext, Solution, log, panel_rows
from cutsvm.kernel_machines.gram import blocks, identity
from cutsvm.kernel_machines.intercept import Intercept, RegularizedIntercept
from cutsvm.kernel_machines.one_vs_one import Machines, Problems

# (epoch, rows, the steps of each problem that are done after these rows)
Blocks = Iterator[tuple[int, Ints, Ints]]


@dataclass(frozen=True)
class SGDSettings:
    """Lengths of the parts of an epoch between checks of the time, and the settings of the ascent."""

    block_rows: int = 1024  # rows whose kernel values are computed together
    linear_steps: int = 1 << 20  # steps without a kernel
    max_cached_steps: int = 100_000  # schedules of up to this number of steps are kept for problems of the same size
    # Twice as many epochs are worth it if the share of steps with a loss has fallen by min_gain, and is not few_losses.
    min_gain: float = 0.1
    few_losses: float = 0.01
    ascent: AscentSettings = field(default=AscentSettings())


_LEGAL = {
    "step": ("1/t", "1/m"),
    "order": ("cyclic", "random"),
    "iterates": ("after", "before"),
    "C_times": ("sum", "mean"),
}


@dataclass(frozen=True)
class SGD(RegularizedIntercept):
    """Stochastic gradient steps on the hinge loss, NL-SGD of Melki and Kecman (2016).

    Parameters
    ----------
    step : {"1/t", "1/m"}, default="1/t"
        alpha_t = beta / (lambda t), the paper's (2), or beta / (lambda m), its algorithm boxes.
    order : {"cyclic", "random"}, default="cyclic"
        The shuffled rows in turn, its section III, or each drawn at random with replacement, its boxes.
    iterates : {"after", "before"}, default="after"
        Which alphas are averaged: those after each step, or those before it, alpha_1 .. alpha_T as in its boxes.
    C_times : {"sum", "mean"}, default="sum"
        Minimise |w|^2 / 2 + C times the sum of the losses, lambda = 1 / (C m), or times their mean, lambda = 1 / C.
    intercept : {None, "regularized"}, default=None
        None, as in the paper, or K + 1 in place of K: f(x) = w.phi(x) + b with b^2 / 2 beside |w|^2 / 2.
    """

    step: Literal["1/t", "1/m"] = "1/t"
    order: Literal["cyclic", "random"] = "cyclic"
    iterates: Literal["after", "before"] = "after"
    C_times: Literal["sum", "mean"] = "sum"
    intercept: Intercept = None
    settings: SGDSettings = field(default=SGDSettings(), repr=False, kw_only=True)
    name: ClassVar[str] = "sgd"
    loss: ClassVar[str] = "hinge"
    visits_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, legal in _LEGAL.items():
            if getattr(self, name) not in legal:
                raise ValueError(f"{name}={getattr(self, name)!r}: expected {legal[0]!r} or {legal[1]!r}")

    @property
    def mean_loss(self) -> bool:
        return self.C_times == "mean"

    def __call__(self, context: KernelContext, C: float) -> Iterator[Solution]:
        """The solution after the epochs or, if the ascent follows, each that has converged in float32."""
        options = context.options
        steps, blocks_of_steps = self._plan(context, C)
        early, alpha, epochs = False, None, 0
        try:
            for _ in (
                self._linear_epochs(steps, context, C)
                if context.kernel_free
                else self._epochs(steps, context, blocks_of_steps)
            ):
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
        """The machines after the epochs; with `options.adaptive` each after 1, 2, 4, .. of them, when more gain little.

        What is averaged after twice the epochs is the second half of them, which nothing before depends on. The
        estimate is the share of a problem's steps at which a row had a loss, which is known anyway.
        """
        places = identity(len(gram))
        if self.order == "random":
            visited = visits.random(problems, options.epochs, len(gram), options.seed)[0]
            steps = _Steps(self, problems, visited, Cs, options)
            steps.run(gram, places, places, steps.end, options.threads)
            return steps.machines()
        doubles = options.adaptive and options.average <= 0.5
        epochs = 1 if doubles else options.epochs
        steps = _Steps(self, problems, visits.cyclic(problems, epochs), Cs, replace(options, epochs=epochs))
        before, going = np.full(len(problems), np.inf), np.full(len(problems), doubles)
        while True:
            first, losses = steps.done, steps.losses(len(Cs))
            steps.run(gram, places, places, steps.end, options.threads)
            share = (steps.losses(len(Cs)) - losses) / np.maximum(1, steps.done - first)
            going &= (share > self.settings.few_losses) & (share < (1.0 - self.settings.min_gain) * before)
            if 2 * epochs > options.epochs or not going.any():
                return steps.machines()
            before, epochs = share, 2 * epochs
            steps.extend(self, epochs, options.average, going)

    def _plan(self, context: KernelContext, C: float) -> tuple[_Steps, Blocks]:
        """The steps of a fit, and the blocks that they are taken in."""
        problems, options = context.problems, context.options
        if self.order == "random":
            visited, sequence, positions = visits.random(problems, options.epochs, len(context.points), options.seed)
        else:
            visited, sequence = visits.cyclic(problems, options.epochs), context.order
            positions = visits.cyclic_positions(problems, sequence)
        steps = _Steps(self, problems, visited, np.array([C]), options)
        many = self.settings.block_rows
        if context.gram is None and not context.kernel_free:
            many = panel_rows(many, len(context.points), 4, options.panel_bytes)
        return steps, visited.blocks(sequence, positions, many)

    def _epochs(self, steps: _Steps, context: KernelContext, blocks_of_steps: Blocks) -> Iterator[None]:
        """All steps with the whole matrix, block by block of rows."""
        if context.gram is None:
            yield from self._streamed_epochs(steps, context, blocks_of_steps)
            return
        places = identity(len(context.points))
        for _, _, until in blocks_of_steps:
            steps.run(context.gram, places, places, until, context.options.threads)
            yield

    def _streamed_epochs(self, steps: _Steps, context: KernelContext, blocks_of_steps: Blocks) -> Iterator[None]:
        """All steps with the kernel values of one block of rows at a time, with the support so far."""
        n, deadline = len(context.points), context.options.deadline
        support = np.empty(0, dtype=np.int64)
        row_place, column_place = np.full(n, -1, dtype=np.int32), np.full(n, -1, dtype=np.int32)
        buffer, shown = np.empty(0, dtype=np.float32), deadline.spent
        for epoch, rows, until in blocks_of_steps:
            fresh = rows[column_place[rows] < 0]
            columns = np.concatenate([support, fresh])
            if buffer.size < len(rows) * len(columns):
                buffer = np.empty(0, dtype=np.float32)  # the old one is freed before there is a new one
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
                done = f"{int(steps.done.sum()):,} of {int(steps.end.sum()):,} steps, support {len(support):,}"
                log(f"epoch {max(epoch + 1, steps.epochs_done)} of {context.options.epochs}: {done}")
            steps.run(panel, row_place, column_place, until, context.options.threads)
            row_place[rows] = -1  # the next block may be shorter
            support = _extended_support(steps, column_place, support, fresh)
            yield

    def _linear_epochs(self, steps: _Steps, context: KernelContext, C: float) -> Iterator[None]:
        """All steps of Algorithm A, problem by problem."""
        problems, matrix, epochs = steps.problems, matrix_of(context.linear_rows), steps.epochs
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

    def __init__(
        self, solver: SGD, problems: Problems, visited: visits.Visits, Cs: Vector, options: FitOptions
    ) -> None:
        self.visits, self.problems, self.epochs = visited, visited.problems, visited.epochs
        self.sizes, self.n_rows = problems.sizes, len(problems.rows)
        self.Cs = np.zeros(1 if len(Cs) == 1 else core.VERSIONS)
        self.Cs[: len(Cs)] = Cs
        with np.errstate(divide="ignore"):
            self.margin = np.where(self.Cs > 0.0, 1.0 / self.Cs, -np.inf)
        self.step = solver.step
        self.scale, self.tail = _schedule(solver, self.sizes, options.epochs, options.average)
        total = len(self.problems.rows)
        self.slot, self.columns = np.full(total, -1, dtype=np.int32), np.zeros(total, dtype=np.int32)
        self.beta, self.mean = np.zeros((total, len(self.Cs))), np.zeros((total, len(self.Cs)))
        self.used, self.done = np.zeros(len(problems), dtype=np.int64), np.zeros(len(problems), dtype=np.int64)
        self.end = options.epochs * self.sizes
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

    def losses(self, versions: int) -> Vector:
        """At how many steps of each problem a row had a loss, by weight, on average over the versions."""
        changes = np.abs(self.beta[:, :versions]).mean(axis=1)
        sums, weights = (np.add.reduceat(part, self.problems.first[:-1]) for part in (changes, np.abs(self.problems.a)))
        return sums * self.sizes / np.maximum(weights, np.finfo(np.float64).tiny)

    def extend(self, solver: SGD, epochs: int, average: float, going: Array) -> None:
        """Some problems go on to at least twice the epochs; the mean is over their last share, at most one half."""
        self.epochs, self.visits = epochs, replace(self.visits, epochs=epochs)
        self.scale, self.tail = _schedule(solver, self.sizes, epochs, average)
        self.end = np.where(going, epochs * self.sizes, self.done)
        # All steps so far come before the alphas that are averaged, and count alike in each of them.
        ends = epochs * self.problems.first[:-1] + self.done - 1
        mean = self.beta * np.repeat(self.tail[ends], self.problems.sizes)[:, None]
        self.mean = np.where(np.repeat(going, self.problems.sizes)[:, None], mean, self.mean)

    def machines(self) -> Machines:
        """What the steps have made, without an intercept."""
        none = np.zeros((len(self.problems), len(self.Cs)))
        return Machines(self.problems.first, self.columns, self.coef(), self.used, none)

    @property
    def epochs_done(self) -> int:
        """The largest number of epochs, begun ones included, of a problem."""
        return int(np.max(-(-self.done // self.sizes)))

    def coef(self, *, early: bool = False) -> Vector:
        """The mean of the last alphas, in the order of the support; early: the last alpha."""
        if not early:
            return self.Cs * self.mean
        ends = zip(self.sizes.tolist(), self.done.tolist(), strict=True)
        last = np.array([_scale(self.step, m, np.array(t + 1.0)) for m, t in ends])
        answer: Vector = self.Cs * self.beta * np.repeat(last, self.problems.sizes)[:, None]
        return answer

    def alpha(self, *, early: bool = False) -> Vector:
        """y_i coef_i of the first version, in the order of the rows of the problems that are solved."""
        places = np.repeat(self.problems.first[:-1], self.problems.sizes) + self.slot
        coef = self.coef(early=early)[np.where(self.slot < 0, 0, places), 0]
        return self.visits.by_row(np.where(self.slot < 0, 0.0, np.abs(coef)), self.n_rows)


def _schedule(solver: SGD, sizes: Ints, epochs: int, average: float) -> tuple[Vector, Vector]:
    """(scale_t, tail_t) of all steps of all problems; see `_factors`."""
    # Folds and pairs of classes often have the same size. Long schedules are not kept beyond the fit.
    short = int(sizes.max()) * epochs <= solver.settings.max_cached_steps
    factors = _factors if short else _factors.__wrapped__
    found = [factors(solver.step, solver.iterates, m, epochs, average) for m in sizes.tolist()]
    return np.concatenate([scale for scale, _ in found]), np.concatenate([tail for _, tail in found])


@lru_cache(maxsize=256)
def _factors(step: str, iterates: str, m: int, epochs: int, average: float) -> tuple[Vector, Vector]:
    """(scale_t, tail_t) of the steps t = 1 .. T of a problem with m rows.

    alpha_t = C scale_t beta. C tail_t is the coefficient of step t's change of beta in the mean of the last alphas.
    """
    T = epochs * m
    scale = _scale(step, m, np.arange(1.0, T + 2))
    last = max(1, round(average * T))
    end = T + 1 if iterates == "after" else T  # the last alpha that is counted
    counted = np.zeros(T + 1)
    counted[end - last : end] = scale[end - last : end] / last
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
