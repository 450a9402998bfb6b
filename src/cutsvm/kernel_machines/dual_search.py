"""Working sets on a dual, to a certified gap: the loop of the exact solver, and its state.


    max over s of  c's - s'K s / 2,     low <= s <= high,     sum_v s_v = total          (see dual_problem)

    repeat
      1. W = some hundred variables that violate the conditions of the optimum most, and a part of the last W
      2. kernel values of the rows of W with all rows: from the cache, or computed together by BLAS
      3. SMO steps within W, the second variable of each by its quadratic gain
      4. f = f + K (change of s)
         where steps are not enough, or more work: Newton steps on all variables between their bounds  (see active_set)
      5. once the cache is full: leave out rows at a bound whose slopes keep them there      (shrinking)
    until   F - dual <= share tol F, by kernel values in float32
    6. all rows are back; F and its lower bound from kernel values in float64
    until   F - lower bound <= tol F, else again with a smaller share, or with kernel values in float64 where those of
            the steps are off by more than that

Steps 1 to 4 are core/kernel_dual.hpp. R.-E. Fan, P.-H. Chen, C.-J. Lin, Working set selection using second order
information, JMLR 6, 2005 (step 3); T. Joachims, Making large-scale SVM learning practical, 1999 (step 5); Z. Wen and
others, ThunderSVM, JMLR 19, 2018 (step 2).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cutsvm._native import core
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.driver.records import Status
from cutsvm.kernel_machines.active_set import Schedule, newton_steps
from cutsvm.kernel_machines.context import Deadline, FitOptions, OutOfTimeError
from cutsvm.kernel_machines.dual_certificate import DualBounds
from cutsvm.kernel_machines.dual_evaluation import Evaluation
from cutsvm.kernel_machines.dual_problem import DualProblem
from cutsvm.kernel_machines.exact_settings import DualSolution, ExactSettings
from cutsvm.kernel_machines.gram import EPS
from cutsvm.kernel_machines.kernel_rows import KernelRows


def solve(
    problem: DualProblem,
    rows: KernelRows,
    options: FitOptions,
    settings: ExactSettings,
    begin: Begin | None = None,
) -> Iterator[DualSolution]:
    """Solutions with certified bounds, the initial s first; the caller ends it when one is within tol."""
    begin = Begin() if begin is None else begin
    search = _Search(problem, rows, options, settings, begin)
    try:
        if begin.interrupted:
            raise KeyboardInterrupt
        yield search.solution(None)
        shares, ended = list(settings.gap_shares), None
        while shares:
            idle, ended = ended is Status.PRECISION, None
            while ended is None:
                ended = search.steps(shares[0] * options.tol)
            # Where rows were left out all come back once before rounding errors end it.
            all_rows = search.has_all_rows or (idle and ended is Status.PRECISION)
            last = ended in (Status.MAX_ITER, Status.MAX_TIME)
            expected = search.gap
            found = search.solution(ended if last else None)
            if found.ended is not None:
                yield found
                return
            if all_rows:
                shares = [] if ended is Status.PRECISION else shares[1:]
                # A smaller gap of the steps is of no use where their values are off by more.
                off = found.bounds.width - expected
                if off > (1.0 - settings.gap_shares[-1]) * options.tol * abs(found.bounds.primal):
                    shares = [] if search.rows.dtype.itemsize < 8 else shares
                    search.forget_scores()
            if not shares and search.raise_precision():
                shares, ended = list(settings.gap_shares), None
            yield found if shares else replace(found, ended=Status.PRECISION)
    except KeyboardInterrupt:
        yield search.solution(Status.INTERRUPTED, interrupted=True)
        raise


@dataclass(frozen=True, eq=False)
class Begin:
    """Where a problem begins: s, if it is known; the number of the problem; whether the fit was interrupted by then.

    f: at all rows for this s, as precise as those of the certificate; None or NaN: not known.
    """

    s: Vector | None = None
    f: Vector | None = None
    number: int = 0
    interrupted: bool = False


class _Search:
    """The state of the iterations.

    s: of all variables. f: at all rows, as far as it is `known`; f_off: a bound of its error, opened_off that when the
    steps began. active: the variables and rows that are not left out. dual: the state of the steps on these, None until
    it is opened.
    """

    def __init__(
        self,
        problem: DualProblem,
        rows: KernelRows,
        options: FitOptions,
        settings: ExactSettings,
        begin: Begin,
    ) -> None:
        self.problem, self.rows, self.options, self.settings = problem, rows, options, settings
        n, self.number, checkpoint = len(rows), begin.number, options.checkpoint
        kept = None if checkpoint is None else checkpoint.start(begin.number, problem.low, problem.high)
        first = next(s for s in (kept, begin.s, problem.start) if s is not None)
        self.s, self.total = first.copy(), math.fsum(problem.start)
        self.f, self.f_off, self.opened_off = np.zeros(n), np.zeros(n), np.zeros(n)
        # Whether f at the first s is as precise as the certificate wants it.
        self.precise_start = begin.f is not None and kept is None and bool(np.isfinite(begin.f).all())
        if begin.f is not None and self.precise_start:
            self.f, self.f_off = begin.f.copy(), self.here.score_errors()
        self.known = np.full(n, self.precise_start or not self.s.any())
        self.active_rows, self.active = np.arange(n), np.arange(len(problem))
        self.dual: Any = None
        self.iterations, self.lower = 0, -np.inf
        self.least_gap, self.idle_rounds, self.s_there = np.inf, 0, self.s
        self.work, self.schedule = 0.0, Schedule(settings.active_set)
        self.certified: DualSolution | None = None  # of those after the initial s, that with the least gap

    @property
    def has_all_rows(self) -> bool:
        """Whether no row is left out."""
        return len(self.active_rows) == len(self.rows)

    @property
    def here(self) -> Evaluation:
        """What kernel values in float64 say of s."""
        return Evaluation(self.problem, self.rows, self.options, self.settings, self.total, self.s)

    # Steps 1 to 5

    def steps(self, target: float) -> Status | None:
        """A round of iterations; why they have ended, None if they go on."""
        if self.dual is None:
            self._open()
        options, use = self.options, self.settings
        before, most = self.dual.iterations, min(use.round, options.max_iter - self.iterations)
        work = self._work()
        seconds = max(0.0, options.deadline.left - self._reserve())
        self.known[:] = False  # until the steps have returned
        try:
            end = self.dual.run(target, most, seconds, *use.steps)
        finally:
            self.s[self.active] = self.dual.s
            self.iterations += self.dual.iterations - before
            self.work += self._work() - work
        self.known[self.active_rows] = True
        if options.checkpoint is not None:
            options.checkpoint.keep(self.number, self.s.copy())
        if end == "target":
            return Status.CONVERGED
        if end == "stalled":
            return Status.PRECISION
        if end == "time" or options.deadline.left <= self._reserve():
            return Status.MAX_TIME
        if self.iterations >= options.max_iter:
            return Status.MAX_ITER
        if self._is_idle():
            return Status.PRECISION
        slow = self.dual.iterations - before < most  # steps within working sets were not enough
        if (slow or self._newton_pays(target)) and self._newton_steps():
            return None
        full = self.dual.computed > use.shrink_after * self.dual.capacity
        if full and self.dual.capacity < len(self.active_rows):
            self._shrink()
        return None

    @property
    def gap(self) -> float:
        """F - dual by the values of the steps."""
        return 0.0 if self.dual is None else float(self.dual.optimality()[3])

    def _is_idle(self) -> bool:
        """Whether only errors of f are left: the gap has not become smaller for some rounds, with slopes that violate
        the conditions of the optimum by no more than f may be off. That alone does not say it: errors are mostly a
        small part of their bounds. Then s is again that with the least gap.
        """
        self._read_f()
        top, bottom, _, gap = self.dual.optimality()
        violation = top - bottom if self.problem.free_intercept else max(top, -bottom)
        if gap < self.settings.progress * self.least_gap:
            self.least_gap, self.idle_rounds, self.s_there = gap, 0, self.s.copy()
            return False
        within = not violation > float(self.f_off[self.active_rows].max())  # which is NaN where nothing is proven
        self.idle_rounds = self.idle_rounds + 1 if within else 0
        if self.idle_rounds <= self.settings.idle_rounds:
            return False
        self.s = self.s_there
        self.forget_scores()
        return True

    def _work(self) -> float:
        """Products of numbers that the steps have taken."""
        variables = len(self.active)
        size = min(self.settings.working_set, max(core.LARGE_SET, variables // 8), variables)
        return 2.0 * size * float(2 * self.dual.steps + len(self.active_rows) * self.dual.iterations)

    def _newton_pays(self, target: float) -> bool:
        """Whether Newton steps are less work than what is left to do without."""
        s, problem = self.s[self.active], self.problem.some(self.active)
        free = int(np.count_nonzero((s > problem.low) & (s < problem.high)))
        primal = float(self.problem.c @ self.s) - 0.5 * self.dual.norm + self.gap
        return self.schedule.pays(self.gap, target * abs(primal), self.work, free)

    def _newton_steps(self) -> bool:
        """Newton steps on the variables between their bounds, if there are few; whether they have gained anything."""
        problem, use = self.problem, self.settings.active_set
        free = np.flatnonzero((self.s > problem.low) & (self.s < problem.high))
        rows, room = problem.row_of[free], self.options.cache_bytes - self.dual.capacity * self._row_bytes
        most = use.most_definite if 32 * len(free) ** 2 <= room else use.most_variables
        if not 0 < len(free) <= most:
            return False
        K, ends = np.empty((len(free), len(free))), (problem.low[free], problem.high[free])
        points = self.rows.points.precisely()
        points.values(rows, points, rows, K)
        g, intercept = problem.c[free] - self.here.scores(rows, Deadline()), problem.free_intercept
        found = newton_steps(K, g, self.s[free], *ends, free_intercept=intercept, settings=use)
        self.schedule.tried(found is not None)
        if found is None:
            return False
        self.s[free], self.dual, self.known[:] = found, None, False
        return True

    def forget_scores(self) -> None:
        """f is computed again before the next steps."""
        self.dual, self.known[:] = None, False
        self.least_gap, self.idle_rounds = np.inf, 0

    def raise_precision(self) -> bool:
        """From float32 to float64, if it is not that: whether there is anything to gain by going on."""
        better = self.rows.more_precise()
        if better is None:
            return False
        self.rows = better
        self.forget_scores()
        return True

    def _open(self) -> None:
        """The dual on all rows, at s."""
        n, problem = len(self.rows), self.problem
        unknown = np.flatnonzero(~self.known)
        self.f[unknown], self.f_off[unknown] = self.here.scores(unknown, Deadline()), self.here.score_errors()[unknown]
        self.known[:], self.opened_off = True, self.f_off.copy()
        capacity = min(n, max(self.options.cache_bytes // self._row_bytes, self.settings.cache_rows))
        kind = core.KernelDual64 if self.rows.dtype.itemsize == 8 else core.KernelDual32
        norm = float(self.s @ self.f[problem.row_of])
        parts = (problem.c, problem.low, problem.high, self.s, self.f, norm, problem.row_of)
        memory = np.empty((max(2, capacity), n), dtype=self.rows.dtype)
        intercept = problem.free_intercept
        self.dual = kind(memory, *parts, intercept, self.rows.sizes, self.rows.source(), self.options.threads)
        self.active_rows, self.active = np.arange(n), np.arange(len(problem))

    @property
    def _row_bytes(self) -> int:
        """Of a kernel row in the cache."""
        return int(self.rows.dtype.itemsize) * len(self.rows)

    def _shrink(self) -> None:
        """Leaves out variables at a bound whose slopes keep them there, and rows without a variable."""
        problem, s = self.problem.some(self.active), self.s[self.active]
        top, bottom, _, _ = self.dual.optimality()
        number = np.full(len(self.rows), -1)
        number[self.active_rows] = np.arange(len(self.active_rows))
        g = problem.c - self.dual.f[number[problem.row_of]]
        above, below = (top, bottom) if problem.free_intercept else (max(top, 0.0), min(bottom, 0.0))
        stay = ~(((s >= problem.high) & (g > above)) | ((s <= problem.low) & (g < below)))
        rows = np.unique(number[problem.row_of[stay]])
        if not 0 < len(rows) <= self.settings.shrink_to * len(self.active_rows):
            return
        self.known[:] = False
        self.active, self.active_rows = self.active[stay], self.active_rows[rows]
        self.known[self.active_rows] = True
        self.dual.restrict(np.flatnonzero(stay), rows, self.rows.source(self.active_rows))

    def _reserve(self) -> float:
        """Seconds to keep for the certificate, where there is a limit: by the rows that were computed until now."""
        deadline = self.options.deadline
        if deadline.max_time is None or self.dual is None:
            return 0.0
        share = 2.0 * np.count_nonzero(self.s) / max(1, self.dual.computed)
        return float(min(share * deadline.spent, self.settings.reserve * deadline.max_time))

    # Step 6

    def solution(self, ended: Status | None, *, interrupted: bool = False) -> DualSolution:
        """s with its certificate; if there is no time for one, with what is known of it."""
        deadline = self.options.deadline.at_least(self.settings.seconds_after_limit)
        if interrupted:
            deadline = deadline.within(self.settings.seconds_after_interrupt)
        try:
            bounds = self._bounds(deadline, last=ended is not None)
        except OutOfTimeError:
            return self._without_certificate(ended if interrupted else Status.MAX_TIME)
        found = self._solution(bounds, ended)
        if self.iterations and (self.certified is None or found.bounds.width < self.certified.bounds.width):
            self.certified = found
        return found

    def _solution(self, bounds: DualBounds, ended: Status | None) -> DualSolution:
        self.lower = max(self.lower, bounds.lower)
        return DualSolution(self.s.copy(), replace(bounds, lower=self.lower), self.iterations, ended)

    def _without_certificate(self, ended: Status | None) -> DualSolution:
        """s with bounds from the scores of the steps and their errors; or an earlier s, if more is proven of that.

        Where these scores are not known, and nothing but the initial s has bounds, it is s without any.
        """
        found = None
        if self.dual is not None and self.has_all_rows and self.known.all():
            self._read_f()
            bounds = self.here.bounds_of_scores(self.f, self.f_off)
            found = self._solution(bounds, ended) if np.isfinite(bounds.primal) else None
        if self.certified is not None and (found is None or self.certified.bounds.width < found.bounds.width):
            return replace(self.certified, iteration=self.iterations, ended=ended)
        if found is not None:
            return found
        b = 0.0 if self.dual is None else self.dual.optimality()[2]
        return DualSolution(self.s.copy(), DualBounds(np.nan, np.nan, b, np.nan), self.iterations, ended, False)

    def _bounds(self, deadline: Deadline, *, last: bool) -> DualBounds:
        """The bounds at s, with a precise f at rows that may have a loss or are in w. No row is left out after it."""
        self._read_f()
        row_of = self.problem.row_of
        near, precise = ~self.known, np.full(len(self.rows), self.precise_start and self.iterations == 0)
        near |= True if self.dual is None else self._may_lose(self.dual.optimality()[2])
        if not near.all():
            near[row_of[self.s != 0.0]] = True
            near[self._ends()] = True
        f, fresh = self.f.copy(), np.flatnonzero(near & ~precise)
        while True:
            f[fresh] = self.here.scores(fresh, deadline)
            precise[fresh] = True
            bounds = self.here.bounds(np.flatnonzero(precise[row_of]), f, deadline, last=last)
            if precise.all():
                break
            fresh = np.flatnonzero(self._may_lose(bounds.intercept) & ~precise)
            if not len(fresh):
                break
        if not self.has_all_rows:
            self.f, self.dual = f, None
            self.f_off[precise], self.known[:] = self.here.score_errors()[precise], True
            self.active_rows = np.arange(len(self.rows))
            self.least_gap, self.idle_rounds = np.inf, 0
        return bounds

    def _ends(self) -> Ints:
        """The rows at the ends of the interval of intercepts that s allows: the middle is taken."""
        problem, g = self.problem, self.problem.c - self.f[self.problem.row_of]
        off = 1e-10 * (problem.high - problem.low)
        top = np.argmax(np.where(self.s < problem.high - off, g, -np.inf))
        bottom = np.argmin(np.where(self.s > problem.low + off, g, np.inf))
        return problem.row_of[[top, bottom]]

    def _read_f(self) -> None:
        """f and its error at the active rows, from the steps."""
        if self.dual is None or not self.known[self.active_rows].all():
            return
        sums = EPS * (self.settings.working_set * max(1, self.iterations) + 20)
        self.f[self.active_rows] = self.dual.f
        off = self.opened_off + self.rows.errors(self.dual.moved, sums)
        self.f_off[self.active_rows] = off[self.active_rows]

    def _may_lose(self, b: float) -> Array:
        """Rows where a variable may have a loss, given the error of f."""
        problem = self.problem
        g, off = problem.c - self.f[problem.row_of] - b, self.f_off[problem.row_of]
        # A score that is not a number says nothing: such a row may have a loss.
        lose = ((problem.high > 0.0) & ~(g + off < 0.0)) | ((problem.low < 0.0) & ~(g - off > 0.0))
        rows = np.zeros(len(self.rows), dtype=bool)
        rows[problem.row_of[lose]] = True
        return rows
