"""What a run is told and what it tells: stopping rule, records of the history, status, result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from cutsvm._utils.timing import PHASES, Clock
from cutsvm._utils.types import Vector
from cutsvm.problem.certificate import relative_gap
from cutsvm.problem.oracle import Oracle
from cutsvm.solvers.protocol import Iterate

if TYPE_CHECKING:
    from cutsvm.driver.cluster_plan import ClusterFigures

__all__ = [
    "Callback",
    "Observer",
    "Record",
    "Result",
    "RoundObserver",
    "Status",
    "Stop",
    "record_of",
    "relative_gap",
]


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

    @property
    def ends_all(self) -> bool:
        """Whether the problems of a fit that are left are not begun either."""
        return self in (Status.INTERRUPTED, Status.CALLBACK, Status.MAX_TIME)


@dataclass(frozen=True)
class Record:
    """One line of a fit's history. `passes` counts readings of all the data."""

    iteration: int
    seconds: float
    primal: float
    lower: float
    gap: float
    planes: int = 0
    passes: int = 0
    visits: int = 0  # rows read in all: for scores, planes, sums of groups, coordinate steps
    tol: float = 0.0
    step: float = 0.0
    label: str = ""  # which one-vs-rest problem; "" if there is only one
    note: str = ""  # which solver was chosen, and why
    rows_read: int = 0  # rows that planes were made of; visits - rows_read is what the rows' scores took
    rows_written: int = 0  # rows that were put elsewhere, to be read or skipped in groups
    seconds_scores: float = 0.0
    seconds_planes: float = 0.0
    seconds_line_search: float = 0.0
    seconds_qp: float = 0.0
    seconds_descent: float = 0.0
    seconds_sift: float = 0.0
    seconds_centre: float = 0.0
    seconds_hessian: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def record_of(iterate: Iterate, iteration: int, time: Clock, tol: float, label: str, note: str) -> Record:
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
        note=note,
        rows_read=time.counts["rows_read"],
        rows_written=time.counts["rows_written"],
        **{f"seconds_{phase}": time.spent[phase] for phase in PHASES},
    )


Callback = Callable[[Record], object]


@runtime_checkable
class Observer(Protocol):
    """A callback that is given the point, too."""

    def observe(self, record: Record, oracle: Oracle, w: Vector) -> bool:
        """Whether to stop."""


@runtime_checkable
class RoundObserver(Protocol):
    """A callback that is told of the rounds of a fit on a cluster, too."""

    def observe_round(self, number: int, doing: str, done: int, parts: int) -> None:
        """Of this round, which does what `doing` says, so many parts are done."""


@dataclass(frozen=True)
class Stop:
    """When to stop: at a relative gap, after a number of iterations, or a number of seconds from now.

    patience: iterations in which the gap hardly shrinks: rounding errors do not allow more.
    retries: how often the solver may begin again from its answer when the objective, recomputed from the data, is not
        within tol.
    """

    tol: float = 1e-3
    max_iter: int = 10_000
    max_time: float | None = None
    patience: int = 50
    retries: int = 5
    deadline: float = field(init=False, repr=False, compare=False)  # by `perf_counter`

    def __post_init__(self) -> None:
        seconds = np.inf if self.max_time is None else self.max_time
        object.__setattr__(self, "deadline", perf_counter() + seconds)


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
    cluster: ClusterFigures | None = field(default=None, repr=False)  # of rows in parts: what the fit has taken
    intercept: float = 0.0  # of a kernel machine, whose w is its dual vector
    least: float = 0.0  # an objective up to this counts as 0

    @property
    def gap(self) -> float:
        return relative_gap(self.primal, self.lower, self.least)
