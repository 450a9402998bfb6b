"""What solvers and their callers agree on: a solver, called on a context and a C, gives a generator of iterates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from cutsvm._utils.types import Vector
from cutsvm.problem.certificate import relative_gap
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.planes import Bundle, Planes
from cutsvm.problem.point import Point

__all__ = [
    "FitContext",
    "Iterate",
    "KnownPoint",
    "PathOrder",
    "Progress",
    "Solver",
    "SolverBase",
    "new_context",
    "resume_from",
]


@dataclass(frozen=True, eq=False)
class Iterate:
    """What a solver yields: its best point so far, F there in its two terms, and a lower bound of F anywhere."""

    w: Vector
    penalty: float  # |w|^2/2
    risk: float  # R(w)
    lower: float
    C: float
    planes: int
    step: float = 0.0  # the k that the last line search found: 0 stays, 1 is the minimiser of the planes
    satisfied: bool = False  # the solver's own stopping rule holds
    pending: bool = False  # work is going on that does not show in the bounds yet
    exact: bool = False  # risk was computed in a pass over the data at this very w
    note: str = ""  # where the point comes from, if not from the solver that runs

    @property
    def primal(self) -> float:
        return self.penalty + self.C * self.risk

    @property
    def gap(self) -> float:
        return relative_gap(self.primal, self.lower)

    def or_better(self, other: Iterate) -> Iterate:
        """This iterate, at the point of the other one if F is lower there."""
        if self.primal <= other.primal:
            return self
        return replace(self, w=other.w, penalty=other.penalty, risk=other.risk, exact=other.exact)


class KnownPoint(NamedTuple):
    """A point whose risk is known: F is penalty + C risk at every C."""

    w: Vector
    penalty: float
    risk: float

    def objective(self, C: float) -> float:
        return self.penalty + C * self.risk


class PathOrder(NamedTuple):
    """The values of C in the order in which a solver takes them, and the number of shards that suits them."""

    Cs: list[float]
    shards: int = 1


State = TypeVar("State")
Own = TypeVar("Own", bound="SolverBase")


@dataclass(eq=False)
class FitContext:
    """What one fit, or one path over several C, carries from iteration to iteration and from C to C.

    oracle: data and loss. A solver may replace it by an equivalent one (other shards, another layout of the matrix).
    Cs: the values of C in the order of the path.
    tol: the relative gap that the caller is after. It helps to plan, and ends nothing.
    start: where to begin; None is w = 0.
    bundle: planes under the risk of all rows. They hold for every C.
    dual: a dual vector alpha / (C s) to begin with, for solvers that have one; they leave theirs here. alpha is that of
        core/row_losses.hpp: not negative with two classes.
    points: points whose risk is known. lower: the best bound so far at each C.
    more_bundles: planes of an earlier fit with shards of their own: they bound, and nobody adds to them.
    working_bundle: planes of a working set, which a solver goes on with at the next C.
    starts: where to begin at each C, once `presolve` has found out.
    trial: the last point that was evaluated: its pass is not repeated.
    note: which solver runs, and why, where one was chosen.
    first_trial: a point of an earlier fit, which is evaluated before all else.
    reused: what of an earlier fit is used, in words for the first record.
    """

    oracle: Oracle
    Cs: Sequence[float]
    tol: float = 0.0
    start: Vector | None = None
    bundle: Bundle = None  # type: ignore[assignment]  # an empty one by default
    dual: Vector | None = None
    points: list[KnownPoint] = field(default_factory=list)
    lower: dict[float, float] = field(default_factory=dict)
    more_bundles: list[Bundle] = field(default_factory=list)
    working_bundle: Bundle | None = None
    starts: dict[float, Vector] | None = None
    trial: Point | None = None
    note: str = ""
    first_trial: Vector | None = None
    reused: str = ""
    presolved: bool = False
    _states: dict[type, Any] = field(default_factory=dict)  # what solvers keep from one C to the next, by its type

    def __post_init__(self) -> None:
        if self.bundle is None:
            self.bundle = self.oracle.new_bundle(max(self.Cs))
        self.points.append(KnownPoint(np.zeros(self.oracle.size), 0.0, self.oracle.loss.total))

    @property
    def is_path(self) -> bool:
        """Whether anything may be known from elsewhere: other values of C, or an earlier fit."""
        return len(self.Cs) > 1 or len(self.points) > 1 or bool(self.more_bundles) or self.first_trial is not None

    @property
    def bundles(self) -> list[Bundle]:
        """All planes that are known."""
        return [self.bundle, *self.more_bundles, *([] if self.working_bundle is None else [self.working_bundle])]

    def state(self, kind: type[State]) -> State | None:
        """What a solver has left here, an object of this type."""
        found: State | None = self._states.get(kind)
        return found

    def keep(self, state: object) -> None:
        """Leaves an object for the next C."""
        self._states[type(state)] = state

    def drop(self, kind: type) -> None:
        self._states.pop(kind, None)

    def replace_oracle(self, oracle: Oracle) -> None:
        """Goes on with other rows: what solvers have kept of the old ones is dropped."""
        self.oracle = oracle
        self._states.clear()
        self.trial = None

    def best(self, C: float) -> KnownPoint:
        """The known point with the lowest F."""
        return min(self.points, key=lambda point: point.objective(C))

    def know(self, w: Vector, risk: float) -> KnownPoint:
        """Adds a point and R there."""
        self.points.append(KnownPoint(w.copy(), self.oracle.penalty(w), risk))
        return self.points[-1]

    def evaluate(self, w: Vector) -> Callable[[], Planes]:
        """One pass at w: the point is known from now on. Returns what makes its planes."""
        if not self.oracle.supports.vectors:
            tangent = self.oracle.tangents([w])[0]
            self.know(tangent.w, tangent.value)
            return lambda: tangent.planes
        trial = self.trial = self.oracle.at(w)
        self.know(trial.w, self.oracle.value(trial))
        return lambda: self.oracle.planes(trial)

    @property
    def first(self) -> Vector:
        """Where to begin: `start`, or 0, which costs no pass."""
        return np.zeros(self.oracle.size) if self.start is None else self.start

    def evaluated_first(self) -> Point | None:
        """The point to begin at, if that is the one that was evaluated last."""
        trial, self.trial = self.trial, None
        known = trial is not None and self.start is not None and np.array_equal(trial.w, self.start)
        return trial if known else None

    def bound(self, C: float, tol: float) -> tuple[Vector | None, float]:
        """A lower bound of F, and the minimiser of the planes of all rows unless a working set has better ones."""
        found = [bundle.minimise(C, tol) for bundle in self.bundles]
        lower = self.lower[C] = max(self.lower.get(C, 0.0), *(reduced.lower for reduced in found))
        return found[0].w if len(self.bundle) and self.working_bundle is None else None, lower

    def known_gap(self, C: float, share: float) -> float:
        """The relative gap between the best known point and the bound; the reduced problem solved to share of tol."""
        primal = self.best(C).objective(C)
        return relative_gap(primal, self.bound(C, share * self.tol * primal)[1])

    def known(self, C: float) -> Iterate:
        """The best point and the best bound so far."""
        best, lower = self.best(C), self.lower.get(C, 0.0)
        return Iterate(*best, lower, C, len(self.bundle), exact=True, note="known from other C")

    def iterate(self, point: Point, C: float, lower: float, **more: Any) -> Iterate:
        """The iterate at a point."""
        penalty, risk = self.oracle.penalty(point.w), self.oracle.value(point)
        return Iterate(point.w, penalty, risk, lower, C, len(self.bundle), **more)


@runtime_checkable
class Solver(Protocol):
    """A small frozen object: the settings of an algorithm, and the algorithm."""

    @property
    def requires(self) -> frozenset[str]:
        """The fields of `Supports` without which it does not run."""

    def seeded(self, seed: int) -> Solver:
        """The same, with all its random numbers drawn from this seed; itself if it draws none."""

    def order_path(self, oracle: Oracle, Cs: Sequence[float]) -> PathOrder:
        """The order in which it takes several C, and the number of shards."""

    def presolve(self, context: FitContext) -> Iterator[None]:
        """What it finds out for all C of a path together, step by step, before the first of them."""

    def __call__(self, context: FitContext, C: float) -> Iterator[Iterate]:
        """Iterates until the caller has enough."""


class SolverBase:
    """Defaults: any loss, vectors over all rows, no random numbers, from the largest C down, one shard, nothing for all
    C together."""

    @property
    def requires(self) -> frozenset[str]:
        return frozenset({"vectors"})

    def seeded(self: Own, seed: int) -> Own:
        return self

    def order_path(self, oracle: Oracle, Cs: Sequence[float]) -> PathOrder:
        return PathOrder(sorted(Cs, reverse=True))

    def presolve(self, context: FitContext) -> Iterator[None]:
        return iter(())


def new_context(solver: Solver, oracle: Oracle, Cs: Sequence[float], tol: float = 0.0, **more: Any) -> FitContext:
    """A context for this solver: the values of C in its order, the rows in its shards."""
    order = solver.order_path(oracle, Cs)
    return FitContext(oracle.with_shards(order.shards), order.Cs, tol, **more)


class Progress:
    """Counts iterations in which the gap hardly shrinks: at that pace a run would end at its limit.

    share: of the gap, by which it has to shrink to count as progress.
    """

    def __init__(self, share: float = 1e-3) -> None:
        self._share, self._primal, self._lower, self._count = share, np.inf, -np.inf, 0

    def stalled(self, primal: float, lower: float, *, counts: bool = True) -> int:
        """Iterations since the bounds last came closer by `share` of the gap, this one included."""
        gained = (self._primal - primal) + (lower - self._lower)
        if gained > self._share * (primal - lower):
            self._primal, self._lower, self._count = primal, lower, 0
        elif counts:
            self._count += 1
        return self._count


def resume_from(iterates: Iterator[Iterate], known: Iterate) -> Iterator[Iterate]:
    """The iterates of a solver that began where something is known: no bound is ever worse than the known one.

    A point that meets the solver's own stopping rule is its answer, and stays.
    """
    first = next(iterates)  # where it began
    progress = Progress()  # of the solver's own bounds
    progress.stalled(first.primal, first.lower)
    for iterate in iterates:
        # It may have to find again what was known; as long as it makes progress it has not stalled.
        moved = progress.stalled(iterate.primal, iterate.lower) == 0
        best = iterate
        if iterate.primal > known.primal and not iterate.satisfied:
            best = replace(iterate, w=known.w, penalty=known.penalty, risk=known.risk, exact=known.exact)
        yield replace(best, lower=max(iterate.lower, known.lower), pending=iterate.pending or moved)
