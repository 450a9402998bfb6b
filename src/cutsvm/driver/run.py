"""Runs a solver at one C or at several, under a stopping rule and callbacks. It knows nothing of algorithms.

One C is a path of length one; what a path keeps from one C for the next is in `cutsvm.solvers.path`.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from cutsvm._utils.errors import NoWorkersError
from cutsvm._utils.timing import clock
from cutsvm._utils.types import Vector
from cutsvm.driver.cluster_plan import ClusterFigures, plan_cluster
from cutsvm.driver.parallel_path import SplitSettings, fit_in_two_parts
from cutsvm.driver.records import Callback, Observer, Record, Result, Status, Stop, record_of
from cutsvm.matrix import CompressionSettings
from cutsvm.problem.certificate import Objective, refined, relative_gap
from cutsvm.problem.oracle import Oracle
from cutsvm.solvers.path import iterates_at
from cutsvm.solvers.protocol import FitContext, Iterate, Progress, Solver, new_context, resume_from

if TYPE_CHECKING:
    from cutsvm.driver.checkpoint import Checkpoint, Part, State
    from cutsvm.driver.warm_start import Slot

__all__ = ["Fit", "Judge", "fit_path", "run", "run_at"]

SPLIT = SplitSettings()


@dataclass(frozen=True, eq=False)
class Fit:
    """What a fit is run with, besides its data: stopping rule, callbacks, and what it goes on from.

    label: of the problem, among those of one estimator. start: a w to begin at. warm_start: what an earlier fit has
    left is used, and what this one knows is left for the next.
    """

    stop: Stop
    callbacks: Sequence[Callback] = ()
    label: str = ""
    start: Vector | None = None
    checkpoint: Checkpoint | None = None
    warm_start: Slot | None = None


def run(
    solver: Solver,
    oracle: Oracle,
    C: float,
    stop: Stop,
    callbacks: Sequence[Callback] = (),
    *,
    start: Vector | None = None,
    checkpoint: Checkpoint | None = None,
) -> Result:
    """The fit at one C."""
    return fit_path(solver, oracle, [C], Fit(stop, callbacks, "", start, checkpoint))[0][0]


def fit_path(
    solver: Solver, oracle: Oracle, Cs: Sequence[float], fit: Fit, split: SplitSettings | None = SPLIT
) -> tuple[list[Result], Oracle]:
    """One result for each C, in their order; and the oracle as a solver has left it, maybe with a faster matrix.

    The limit on time is for all C together. If the path is cut short, the C that are left have the best that is known
    for them, with its gap. split: where a path is fitted in two parts; None: nowhere.
    """
    if split and len(Cs) >= split.many_values and oracle.matrix.entries >= split.entries:
        if oracle.supports.dual and oracle.whole and fit.warm_start is None:
            oracle = oracle.with_fast_matrix(CompressionSettings(min_features=split.min_features))

            def fit_part(part: Oracle, Cs: Sequence[float], callback: Callback) -> list[Result]:
                return fit_path(solver, part, Cs, replace(fit, callbacks=[callback]), split=None)[0]

            return fit_in_two_parts(fit_part, oracle, Cs, fit.callbacks, split), oracle
    if fit.checkpoint is not None and len(Cs) > 1:
        raise ValueError("checkpoint: it is for a fit with one C")
    figures = _said_plan(solver, oracle, Cs, fit)
    context = new_context(solver, oracle, Cs, fit.stop.tol)
    part = None
    if fit.checkpoint is not None:
        context.start = fit.start
        part = fit.checkpoint.part(fit.label, context, Cs[0])
    elif fit.warm_start is not None:
        fit.warm_start.restore(context)
        context.first_trial = fit.start
    elif fit.start is not None:
        if len(Cs) > 1:
            context.first_trial = fit.start
        context.start = fit.start
    results: dict[float, Result] = {}
    stop = fit.stop
    ended: Status | None = None  # why the path is cut short
    for C in context.Cs:
        result = run_at(solver, context, C, stop, fit.callbacks, label=fit.label, part=part)
        if ended is not None and result.status is Status.MAX_TIME:
            result = replace(result, status=ended)
        elif ended is None and result.status.ends_all:
            stop, ended = replace(stop, max_time=0.0), result.status
        results[C] = result
        if len(Cs) > 1:
            context.know(result.w, result.loss)
    if fit.warm_start is not None and fit.checkpoint is None:
        fit.warm_start.keep(context)
    if figures is not None:
        figures = figures.ended(oracle)
        results = {C: replace(result, cluster=figures) for C, result in results.items()}
    return [results[C] for C in Cs], context.oracle


def _said_plan(solver: Solver, oracle: Oracle, Cs: Sequence[float], fit: Fit) -> ClusterFigures | None:
    """Of rows in parts: what the fit will take, in the log."""
    plan = None if oracle.supports.vectors else plan_cluster(solver, oracle, Cs, fit.stop.tol)
    if plan is None:
        return None
    figures = ClusterFigures.begun(plan, oracle)
    named = f"class {fit.label} against the rest: " if fit.label else ""
    logging.getLogger("cutsvm.cluster").info("%s%s", named, figures.describe(oracle))
    return figures


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
    best: Iterate | None = None  # F need not fall from one iterate to the next
    status: Status | None = None
    # Overflow is seen in the objective, and then it is an error.
    with clock(None if saved is None else saved.record) as time, np.errstate(over="ignore", invalid="ignore"):
        iterates = iterates_at(solver, context, C) if context.is_path else solver(context, C)
        if saved is not None:
            iterates = _resumed(iterates, saved, context.oracle, C)
        while True:
            try:
                for last in iterates:
                    if not np.isfinite(last.primal):
                        raise FloatingPointError("the objective is not finite: scale the features (or lower C)")
                    best = last if best is None else last.or_better(best)
                    note = last.note or context.note
                    if not history and context.reused:
                        note = "; ".join(filter(None, [context.reused, note]))
                    history.append(record_of(last, before + len(history), time, stop.tol, label, note))
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
            except NoWorkersError:
                if last is None:
                    raise
                status = Status.MAX_TIME
            finally:
                if isinstance(iterates, Generator):
                    iterates.close()  # now: it may have files to remove
            assert last is not None and best is not None and status is not None
            if not status.converged:
                last = best
            try:
                # After Ctrl-C nobody waits for digits that the gap does not need.
                precise = 1e-6 if status is Status.INTERRUPTED else None
                w, final = refined(context.oracle, last.w, C, last.risk if last.exact else None, precise=precise)
            except KeyboardInterrupt:  # the model is kept, with what the solver knew of it
                w, final, status = last.w, Objective(last.primal, last.risk, 0.0), Status.INTERRUPTED
            except NoWorkersError:
                w, final = last.w, Objective(last.primal, last.risk, 0.0)
            if not np.isfinite(final.primal):
                raise FloatingPointError("the objective is not finite: scale the features (or lower C)")
            lower = min(last.lower, final.primal)
            close = relative_gap(final.upper, lower) <= stop.tol
            if status is Status.PRECISION and close:
                status = Status.CONVERGED
            if status is Status.CONVERGED and not close and last.satisfied:
                status = Status.EPSILON  # rounding errors are larger than tol, which the solver's rule does not need
            if status is not Status.CONVERGED or close:
                break
            # The scores of combined points have drifted from those of w. From w itself, with the planes that are known,
            # the solver sees the objective as it is.
            status = judge.retry()
            if status is not None:
                break
            known = replace(last, w=w, penalty=context.oracle.penalty(w), risk=final.loss, lower=lower, exact=True)
            best, context.start = known, w
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
