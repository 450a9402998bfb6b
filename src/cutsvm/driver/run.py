"""Runs a solver under a stopping rule and callbacks, and returns a result. It knows nothing of algorithms."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from cutsvm._utils.gap import relative_gap
from cutsvm._utils.timing import clock
from cutsvm._utils.types import Vector
from cutsvm.driver.records import Callback, Observer, Record, Result, Status, Stop, record_of
from cutsvm.problem.objective import refined
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Objective
from cutsvm.solvers.path import iterates_at
from cutsvm.solvers.progress import Progress, resume_from
from cutsvm.solvers.protocol import FitContext, Iterate, Solver

if TYPE_CHECKING:
    from cutsvm.driver.checkpoint import Part, State

__all__ = ["Judge", "run_at"]


def run_at(
    solver: Solver,
    context: FitContext,
    C: float,
    stop: Stop,
    callbacks: Sequence[Callback] = (),
    *,
    label: str = "",
    part: Part | None = None,
) -> Result:
    """Iterates at one C until `stop` says so; Ctrl-C ends it too, and keeps the best point.

    part: of a checkpoint. The run goes on from where that ended, in w, bounds, iterations and seconds; the limits on
    the last two are for this run alone.
    """
    saved = None if part is None else part.state
    history: list[Record] = []
    before = 0 if saved is None else int(saved.record["iteration"])
    judge = Judge(replace_limits(stop, before))
    last: Iterate | None = None
    status: Status | None = None
    # Overflow is seen in the objective, and then it is an error.
    with clock(None if saved is None else saved.record) as time, np.errstate(over="ignore", invalid="ignore"):
        iterates = iterates_at(solver, context, C)
        if saved is not None:
            iterates = _resumed(iterates, saved, context.oracle, C)
        while True:
            try:
                for last in iterates:
                    if not np.isfinite(last.primal):
                        raise FloatingPointError("the objective is not finite: scale the features (or lower C)")
                    history.append(record_of(last, before + len(history), time, stop.tol, label))
                    if part is not None and len(history) > 1:  # the first is where it began
                        part.keep(last, history[-1])
                    status = judge(last, history[-1])
                    asked = [_call(callback, history[-1], context.oracle, last.w) for callback in callbacks]
                    if status is None and any(asked):
                        status = Status.CALLBACK
                    if status is not None:
                        break
            except KeyboardInterrupt:
                if last is None:  # nothing to keep yet
                    raise
                status = Status.INTERRUPTED
            finally:
                if isinstance(iterates, Generator):
                    iterates.close()  # now: it may have files to remove
            assert last is not None and status is not None
            try:
                # After Ctrl-C nobody waits for digits that the gap does not need.
                precise = 1e-6 if status is Status.INTERRUPTED else None
                w, final = refined(context.oracle, last.w, C, last.risk if last.exact else None, precise=precise)
            except KeyboardInterrupt:  # the model is kept, with what the solver knew of it
                w, final, status = last.w, Objective(last.primal, last.risk, 0.0), Status.INTERRUPTED
            lower = min(last.lower, final.primal)
            close = relative_gap(final.upper, lower) <= stop.tol
            if status is Status.PRECISION and close:
                status = Status.CONVERGED
            if status is not Status.CONVERGED or close:
                break
            # The scores of combined points have drifted from those of w. From w itself, with the planes that are known,
            # the solver sees the objective as it is.
            status = judge.retry()
            if status is not None:
                break
            known = replace(last, w=w, penalty=context.oracle.penalty(w), risk=final.loss, lower=lower, exact=True)
            context.start = w
            iterates = resume_from(solver(context, C), known)
    records = [record.to_dict() for record in history]
    return Result(w, final.primal, lower, status, max(1, history[-1].iteration), records, final.loss)


def replace_limits(stop: Stop, iterations: int) -> Stop:
    """The rule for a run whose iterations do not count from 0."""
    if not iterations:
        return stop
    later = replace(stop, max_iter=stop.max_iter + iterations)
    object.__setattr__(later, "deadline", stop.deadline)
    return later


def _call(callback: Callback, record: Record, oracle: Oracle, w: Vector) -> bool:
    """Whether a callback asks to stop."""
    if isinstance(callback, Observer):
        return callback.observe(record, oracle, w)
    return bool(callback(record))


def _resumed(iterates: Iterator[Iterate], saved: State, oracle: Oracle, C: float) -> Iterator[Iterate]:
    """What was saved, then what a solver that began there finds."""
    record = saved.record
    penalty = oracle.penalty(saved.w)
    known = Iterate(
        saved.w,
        penalty,
        saved.risk,
        record["lower"],
        C,
        int(record["planes"]),
        satisfied=saved.satisfied,
        note=record["note"],
    )
    yield known
    yield from resume_from(iterates, known)


class Judge:
    """Applies a stopping rule to iterates as they come."""

    def __init__(self, stop: Stop) -> None:
        self.stop = stop
        self.progress = Progress()
        self.retries = 0

    def retry(self) -> Status | None:
        """What follows when the objective, recomputed, is not within tol: another try, up to a limit."""
        self.retries += 1
        return Status.PRECISION if self.retries > self.stop.retries else None

    def __call__(self, iterate: Iterate, record: Record) -> Status | None:
        stop = self.stop
        stalled = self.progress.stalled(iterate.primal, iterate.lower, counts=not iterate.pending)
        if record.gap <= stop.tol:
            return Status.CONVERGED
        if iterate.satisfied:
            return Status.EPSILON
        if record.iteration >= stop.max_iter:
            return Status.MAX_ITER
        if perf_counter() >= stop.deadline:
            return Status.MAX_TIME
        return Status.PRECISION if stalled >= stop.patience else None
