"""`run` drains a solver under a stop rule and callbacks into a result. It knows nothing of algorithms."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cutsvm._utils.timing import PHASES, Clock, clock
from cutsvm._utils.types import Vector
from cutsvm.problem.oracle import Objective, Oracle, new_bundle
from cutsvm.problem.planes import Bundle

if TYPE_CHECKING:
    from cutsvm.driver.checkpoint import Checkpoint, State


class Status(Enum):
    """How a fit ended; the value is a sentence for people."""

    CONVERGED = "the certified gap is within tol"
    EPSILON = "the solver's own stop test, its epsilon, is met"
    EPOCHS = "the epochs asked for are done"
    MAX_ITER = "the limit on iterations was reached"
    MAX_TIME = "the time limit was reached"
    INTERRUPTED = "interrupted; the best model so far is kept"
    CALLBACK = "a callback asked to stop"
    PRECISION = "rounding errors do not allow a smaller gap"

    @property
    def converged(self) -> bool:
        return self in (Status.CONVERGED, Status.EPSILON)


@dataclass(frozen=True, eq=False)
class Iterate:
    """What a solver yields: its best point so far, F there, and a lower bound of F anywhere."""

    w: Vector
    primal: float
    lower: float
    planes: int
    step: float = 0.0  # the mu that the last search found: 0 stays, 1 is the minimum of the planes
    satisfied: bool = False  # the solver's own stopping rule holds
    pending: bool = False  # work is going on that does not show in the bounds yet
    exact: bool = False  # primal was computed from a pass over the data at this very w
    loss: float | None = None  # R at w, if it was
    note: str = ""  # what is running, and why, where a solver chose

    @property
    def gap(self) -> float:
        return relative_gap(self.primal, self.lower)


@dataclass(frozen=True)
class Record:
    """One line of a fit's history. `passes` counts sweeps over all the data for scores."""

    iteration: int
    seconds: float
    primal: float
    lower: float
    gap: float
    planes: int
    passes: int
    visits: int  # rows visited in all: sweeps, rows that planes were made of, coordinate steps
    tol: float
    step: float
    label: str  # which one-vs-rest problem; "" if there is only one
    note: str  # what was chosen, and why
    rows_read: int  # rows that planes were made of; visits - rows_read is what the rows' scores took
    rows_written: int  # rows that were put elsewhere, to be read or skipped in groups
    seconds_scores: float
    seconds_planes: float
    seconds_line_search: float
    seconds_qp: float
    seconds_descent: float
    seconds_sift: float
    seconds_centre: float

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


Callback = Callable[[Record], object]


class Solver(Protocol):
    """A small frozen object that, called on a risk, gives a generator of iterates.

    start: where to begin. aim: the relative gap that the caller is after; it helps to plan, and ends nothing.
    """

    def __call__(
        self, oracle: Oracle, C: float, bundle: Bundle | None = None, *, start: Vector | None = None, aim: float = 0.0
    ) -> Iterator[Iterate]: ...


@dataclass(frozen=True)
class Stop:
    """When to stop: at a relative gap, after so many iterations, after so many seconds."""

    tol: float = 1e-3
    max_iter: int = 10_000
    max_time: float | None = None
    # So many iterations in which the gap hardly becomes smaller: nothing more is to be had in float64.
    patience: int = 50
    # So often the solver begins again from its answer when the objective, recomputed from the data, is not within tol.
    retries: int = 5


@dataclass(frozen=True, eq=False)
class Result:
    """The best point of a run, with its certificate: lower <= min F <= primal = F(w)."""

    w: Vector
    primal: float
    lower: float
    status: Status
    n_iter: int
    history: list[dict[str, Any]] = field(repr=False)
    loss: float = np.nan  # R(w)

    @property
    def gap(self) -> float:
        return relative_gap(self.primal, self.lower)


def relative_gap(primal: float, lower: float) -> float:
    """(primal - lower) / primal, and 0 where both are 0; NaN if they are not known."""
    return 0.0 if primal <= 0.0 else (primal - lower) / primal


def run(
    solver: Solver,
    oracle: Oracle,
    C: float,
    stop: Stop,
    callbacks: Sequence[Callback] = (),
    *,
    label: str = "",
    start: Vector | None = None,
    checkpoint: Checkpoint | None = None,
) -> Result:
    """Iterates until `stop` says so; Ctrl-C ends it too, and keeps the best point.

    With a checkpoint it goes on from where that ended, in `w`, bounds, iterations and seconds; the limits on the last
    two are for this run alone.
    """
    part = None if checkpoint is None else checkpoint.part(label, oracle, C)
    saved = None if part is None else part.state
    history: list[Record] = []
    before = 0 if saved is None else int(saved.record["iteration"])
    watch = _Watch(stop if saved is None else _after(stop, saved))
    bundle = part.bundle if part is not None else new_bundle(oracle, C) if isinstance(oracle, Oracle) else None
    last: Iterate | None = None
    status: Status | None = None
    # Overflow is seen in the objective, and then it is an error.
    with clock(None if saved is None else saved.record) as time, np.errstate(over="ignore", invalid="ignore"):
        iterates = solver(oracle, C, bundle, start=_start(start, saved), aim=stop.tol)
        if saved is not None:
            iterates = _resumed(iterates, saved)
        while True:
            try:
                for last in iterates:
                    if not np.isfinite(last.primal):
                        raise FloatingPointError("the objective is not finite: scale the features (or lower C)")
                    history.append(record_of(last, before + len(history), time, stop.tol, label))
                    if part is not None and len(history) > 1:  # the first is where it began
                        part.keep(last, history[-1])
                    status = watch.judge(last, history[-1])
                    asked = [_tell(callback, history[-1], oracle, last.w) for callback in callbacks]
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
                w, final = _recomputed(oracle, C, last)
            except KeyboardInterrupt:  # the model is kept, with what the solver knew of it
                w, final, status = last.w, Objective(last.primal, np.nan, 0.0), Status.INTERRUPTED
            lower = min(last.lower, final.primal)
            near = relative_gap(final.upper, lower) <= stop.tol
            if status is Status.PRECISION and near:
                status = Status.CONVERGED
            if status is not Status.CONVERGED or near:
                break
            # The scores of blended points have drifted from those of w. From w itself, with the planes that are known,
            # the solver sees the objective as it is.
            status = watch.doubt()
            if status is not None:
                break
            known = replace(last, w=w, primal=final.primal, lower=lower, exact=True, loss=final.loss)
            iterates = resume_from(solver(oracle, C, bundle, start=w.copy(), aim=stop.tol), known)
    records = [record.to_dict() for record in history]
    return Result(w, final.primal, lower, status, max(1, history[-1].iteration), records, final.loss)


def _recomputed(oracle: Oracle, C: float, last: Iterate) -> tuple[Vector, Objective]:
    """The answer, and F at the model that is returned, from the data."""
    if last.exact and last.loss is None:
        return last.w, Objective(last.primal, np.nan, 0.0)
    return oracle.refined(last.w, C, last.loss if last.exact else None)


def _tell(callback: Callback, record: Record, oracle: Oracle, w: Vector) -> bool:
    """Whether a callback asks to stop. One that has a method `see` is given the point, too."""
    see = getattr(callback, "see", None)
    return bool(callback(record) if see is None else see(record, oracle, w))


def _start(start: Vector | None, saved: State | None) -> Vector | None:
    """Where to begin. At 0 a solver may know better how to."""
    return start if saved is None or not saved.w.any() else saved.w


def _after(stop: Stop, saved: State) -> Stop:
    """The rule for a run whose iterations and seconds do not count from 0."""
    seconds = None if stop.max_time is None else stop.max_time + saved.record["seconds"]
    return replace(stop, max_iter=stop.max_iter + int(saved.record["iteration"]), max_time=seconds)


def _resumed(iterates: Iterator[Iterate], saved: State) -> Iterator[Iterate]:
    """What was saved, then what a solver that began there finds."""
    record = saved.record
    known = Iterate(
        saved.w,
        record["primal"],
        record["lower"],
        int(record["planes"]),
        satisfied=saved.satisfied,
        note=record["note"],
    )
    yield known
    yield from resume_from(iterates, known)


def resume_from(iterates: Iterator[Iterate], known: Iterate) -> Iterator[Iterate]:
    """What a solver finds that began where something is known; no bound is ever worse than the known one."""
    first = next(iterates)  # where it began: nothing new
    progress = Progress()  # of the solver's own bounds
    progress.stalled(first.primal, first.lower)
    for iterate in iterates:
        # It may have to find again what was known; as long as it gets on it is not at its end.
        moved = progress.stalled(iterate.primal, iterate.lower) == 0
        lower = iterate.lower
        best = iterate
        if iterate.primal > known.primal:
            best = replace(iterate, w=known.w, primal=known.primal, exact=known.exact, loss=known.loss)
        yield replace(best, lower=max(lower, known.lower), pending=iterate.pending or moved)


class Progress:
    """How long a solver has made none: bounds that creep are of no use, at that pace a run ends at its limit."""

    SHARE = 1e-3  # of the gap, by which it becomes smaller

    def __init__(self) -> None:
        self._primal, self._lower, self._count = np.inf, -np.inf, 0

    def stalled(self, primal: float, lower: float, *, counts: bool = True) -> int:
        """Iterations since the bounds were last nearer to each other by SHARE of the gap, this one included."""
        gained = (self._primal - primal) + (lower - self._lower)
        if gained > self.SHARE * (primal - lower):
            self._primal, self._lower, self._count = primal, lower, 0
        elif counts:
            self._count += 1
        return self._count


class _Watch:
    """Applies a stop rule to iterates as they come."""

    def __init__(self, stop: Stop) -> None:
        self.stop = stop
        self.progress = Progress()
        self.doubts = 0

    def doubt(self) -> Status | None:
        """What follows when the objective, recomputed, is not within tol: another try, but not for ever."""
        self.doubts += 1
        return Status.PRECISION if self.doubts > self.stop.retries else None

    def judge(self, iterate: Iterate, record: Record) -> Status | None:
        stop = self.stop
        stalled = self.progress.stalled(iterate.primal, iterate.lower, counts=not iterate.pending)
        if record.gap <= stop.tol:
            return Status.CONVERGED
        if iterate.satisfied:
            return Status.EPSILON
        if record.iteration >= stop.max_iter:
            return Status.MAX_ITER
        if stop.max_time is not None and record.seconds >= stop.max_time:
            return Status.MAX_TIME
        return Status.PRECISION if stalled >= stop.patience else None


def record_of(iterate: Iterate, iteration: int, time: Clock, tol: float, label: str) -> Record:
    return Record(
        iteration=iteration,
        seconds=time.seconds,
        primal=iterate.primal,
        lower=iterate.lower,
        gap=iterate.gap,
        planes=iterate.planes,
        passes=time.counts["passes"],
        visits=time.counts["visits"],
        tol=tol,
        step=iterate.step,
        label=label,
        note=iterate.note,
        rows_read=time.counts["rows_read"],
        rows_written=time.counts["rows_written"],
        **{f"seconds_{phase}": time.spent[phase] for phase in PHASES},
    )
