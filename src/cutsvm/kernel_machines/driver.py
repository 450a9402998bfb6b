"""Solves the problems of all pairs of classes: kernel values, the solver's iterations, history, and how it ended."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from cutsvm._utils import memory
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.driver.records import Callback, Record, Result, Status
from cutsvm.kernel_machines.context import (
    Deadline,
    FitOptions,
    KernelContext,
    KernelSolver,
    OutOfTimeError,
    PairSolver,
    Solution,
)
from cutsvm.kernel_machines.gram import Points, identity
from cutsvm.kernel_machines.one_vs_one import Problems, pairwise


def drive(solutions: Iterator[Solution], tol: float, callbacks: Sequence[Callback]) -> Result:
    """The first solution with a gap of at most tol, or the last one; after Ctrl-C too, if there is one by then.

    `w` of the result is alpha.
    """
    began, history = perf_counter(), list[dict[str, Any]]()
    last: Solution | None = None
    interrupted = False
    # An overflow leaves an objective that is not finite, which is an error.
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            for last in solutions:
                if not last.certified:
                    continue
                if not np.isfinite(last.primal):
                    raise FloatingPointError("the objective is not finite: scale the features (or lower C)")
                seconds = perf_counter() - began
                record = Record(last.iteration, seconds, last.primal, last.lower, last.gap, tol=tol)
                history.append(record.to_dict())
                if any([bool(callback(record)) for callback in callbacks]):
                    last = replace(last, ended=Status.CALLBACK)
                    break
                if last.gap <= tol:
                    break
        except KeyboardInterrupt:
            if last is None:  # nothing to keep yet
                raise
            interrupted = True
        finally:
            if isinstance(solutions, Generator):
                solutions.close()
    assert last is not None
    status = _status(last, tol, interrupted=interrupted)
    own = (last.alpha, last.primal, last.lower, status, max(1, last.iteration), history)
    return Result(*own, intercept=last.intercept, least=last.least)


def _status(last: Solution, tol: float, *, interrupted: bool) -> Status:
    """A solver that has converged by its own measure, and has not by the certificate, is at its precision."""
    if last.gap <= tol:
        return Status.CONVERGED
    if interrupted:
        return Status.INTERRUPTED
    return Status.PRECISION if last.ended is None or last.ended is Status.CONVERGED else last.ended


@dataclass(frozen=True, eq=False)
class Driver:
    """A solver with what all problems of one fit share.

    bytes: what kernel values may take; positive_semidefinite: whether a lower bound exists.
    """

    solver: KernelSolver
    C: float
    options: FitOptions
    bytes: int
    callbacks: Sequence[Callback] = ()
    positive_semidefinite: bool = True

    def solve(
        self, points: Points, labels: Ints, weights: Vector, order: Ints, sample_weight: Vector | None = None
    ) -> tuple[list[Result], Problems]:
        """The results, of all problems together or of each, and the problems; order: in which "sgd" visits rows.

        sample_weight: what of the weights counts rows.
        """
        n, hinge, options = len(labels), self.solver.loss == "hinge", self.options
        if not self.positive_semidefinite:
            options = replace(options, finish=False)
        visited = order if self.solver.visits_rows else np.arange(n)
        mean_loss = self.solver.mean_loss
        problems = pairwise(labels, weights, visited, mean_loss=mean_loss, sample_weight=sample_weight)
        if isinstance(self.solver, PairSolver):
            return self._solve_pairs(self.solver, points, problems, options), problems
        if not hinge and not self.fits(n):
            return self._solve_each(points, problems), problems
        gram, reserve, deadline = None, 0.0, options.deadline
        if not hinge or (points.kernel.name != "linear" and self.fits(n)):
            began = deadline.spent
            gram = _gram(points, deadline)
            # A certificate takes the whole matrix in float64, not only one half of it.
            reserve = 0.0 if deadline.max_time is None else min(2.0 * (deadline.spent - began), 0.5 * deadline.max_time)
        context = KernelContext(options, points, problems, order, gram, reserve)
        result = self._run(context) if hinge or gram is not None else self._zero(context)
        late = gram is None and self.fits(n) and points.kernel.name != "linear"
        if late and options.finish and result.status is Status.EPOCHS:
            result = replace(result, status=Status.MAX_TIME)  # there was no time for the ascent after the epochs
        return [result], problems

    def fits(self, n: int) -> bool:
        """Whether the kernel values of n rows fit into memory."""
        return 4 * n * n <= self.bytes

    def _solve_each(self, points: Points, problems: Problems) -> list[Result]:
        """One result per pair of classes, with the kernel values of one pair at a time."""
        largest = int(problems.sizes.max())
        if not self.fits(largest):
            raise ValueError(
                f"solver={self.solver.name!r} keeps the kernel values of two classes, {largest:,} rows, in "
                f'{memory.format_bytes(4.0 * largest**2)}: raise memory_limit, or use solver="sgd", which keeps a '
                "part of them"
            )
        results, ended = list[Result](), False
        for p, part in enumerate(problems.parts):
            own = points.take(problems.rows[part])
            rows = identity(len(own))
            low, high = np.array([[0], [1]], dtype=np.int32)
            first, scale = np.array([0, len(own)]), problems.scale[p : p + 1]
            alone = Problems(rows, problems.a[part], first, low, high, problems.mean_loss, scale)
            gram = None if ended else _gram(own, self.options.deadline)
            context = KernelContext(self.options, own, alone, rows, gram)
            results.append(self._zero(context) if gram is None else self._run(context))
            # A callback or Ctrl-C ends all problems; later ones have w = 0, with its gap.
            ended |= results[-1].status in (Status.INTERRUPTED, Status.CALLBACK)
        return results

    def _solve_pairs(self, solver: PairSolver, points: Points, problems: Problems, options: FitOptions) -> list[Result]:
        """One result per pair of classes, of a solver that shares kernel values between them by itself."""
        results, ended = list[Result](), None
        for solutions in solver.pairs(points, problems, self.C, options):
            # A callback or Ctrl-C ends all problems; later ones keep what they begin with, with its gap.
            own = solutions if ended is None else iter([replace(next(solutions), ended=ended)])
            results.append(drive(own, self.options.tol, self.callbacks))
            if ended is None and results[-1].status in (Status.INTERRUPTED, Status.CALLBACK):
                ended = results[-1].status
        return results

    def _run(self, context: KernelContext) -> Result:
        return drive(self.solver(context, self.C), self.options.tol, self.callbacks)

    def _zero(self, context: KernelContext) -> Result:
        """w = 0, where there was no time for more."""
        alpha = np.zeros(len(context.problems.rows))
        zero = context.solution(alpha, self.C, self.solver.loss, 0, Status.MAX_TIME)
        return drive(iter([zero]), self.options.tol, self.callbacks)


def _gram(points: Points, deadline: Deadline) -> Array | None:
    """All kernel values in float32; None if they would take more than half of the time."""
    gram = np.empty((len(points), len(points)), dtype=np.float32)
    try:
        points.matrix(gram, track=lambda steps: deadline.track("kernel matrix", steps, 0.5))
    except OutOfTimeError:
        return None
    return gram
