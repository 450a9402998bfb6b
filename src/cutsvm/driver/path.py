"""A walk over several C with one risk: what is found out at one of them is kept for the others.

Minimises F_C(w) = |w|^2/2 + C R(w) for several C. Neither R nor a plane under it depends on C, so

    1. a point whose R is known has a known F at every C: the best of them costs no pass
    2. planes give a lower bound at every C: one reduced problem, no pass
    3. if 1 and 2 are close enough, this C is done. Else the minimiser of 2 is tried: one pass, and its planes join the
       others. A solver may have gone a part of the way for all C together before (`cutsvm.solvers.batched`)
    4. if that is not enough, the solver goes on from the best point, with the planes that there are

A guess near the minimiser is worth many others: with the planes at the very minimisers of the 20 C of a path, 16 each,
covtype has bounds within 1e-4 at all of them; at the minimisers of a sample of 26,000 rows within 1e-3 up to C n = 100.

The way is a solver's own. OCAS goes up, with shards for the largest C: on 4,000 rows, C n from 0.01 to 1e5, a9a took
107 passes up and 143 down, w8a 598 and 639; all of a9a, 20 C up to C n = 1e6, 0.24 s of CPU time up and 0.54 s down.
Sifting goes down: R_U of the next smaller C is nearer. Coordinate descent goes up from a C that is easy, and then down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from cutsvm._utils.types import Vector
from cutsvm.driver.run import Callback, Iterate, Result, Solver, Status, Stop, relative_gap, resume_from, run
from cutsvm.problem.oracle import Oracle, Point, new_bundle
from cutsvm.problem.planes import Bundle

if TYPE_CHECKING:
    from cutsvm.driver.checkpoint import Checkpoint
    from cutsvm.solvers.dcd import Facts
    from cutsvm.solvers.sifting.solver import SiftingState

__all__ = ["Known", "Trail", "steps", "walk"]

# The reduced problem is solved to this share of the gap asked for.
SHARE = 0.1
CUT_SHORT = (Status.INTERRUPTED, Status.CALLBACK, Status.MAX_TIME)


class Memory(Protocol):
    """What is kept from one walk to the next."""

    def restore(self, oracle: Oracle, trail: Trail) -> None:
        """Puts what still holds into the trail."""

    def keep(self, oracle: Oracle, trail: Trail) -> None:
        """Takes over what the walk leaves."""


class Known(NamedTuple):
    """A point whose loss is known: F is penalty + C value."""

    w: Vector
    penalty: float
    value: float

    def objective(self, C: float) -> float:
        return self.penalty + C * self.value


class Trail:
    """What fits of one risk at several C share. `Cs`: in the order in which they are walked."""

    def __init__(self, oracle: Oracle, Cs: Sequence[float]) -> None:
        self.Cs = Cs
        self.bundle = new_bundle(oracle, max(Cs))  # planes of all rows
        self.points = [Known(np.zeros(oracle.size), 0.0, oracle.loss.total)]
        self.others: list[Bundle] = []  # planes with shards of their own: they bound, and are not added to
        self.lower: dict[float, float] = {}  # the best bound so far of each C
        self.scouted = False  # whether the solver has had its look at all C together
        self.starts: dict[float, Vector] | None = None  # where to begin at each C, if that is known then
        self.state: SiftingState | None = None  # what sifting has left, with planes of its own
        self.trial: Point | None = None
        self.dual_w: Vector | None = None  # the w of the risk's dual vector, in units of C
        self.facts: Facts | None = None  # what coordinate descent knows of the rows

    def best(self, C: float) -> Known:
        """The known point with the lowest F."""
        return min(self.points, key=lambda point: point.objective(C))

    def know(self, oracle: Oracle, w: Vector, value: float) -> Known:
        """Remembers a point and R there."""
        self.points.append(Known(w.copy(), oracle.penalty(w), value))
        return self.points[-1]

    def known(self, C: float) -> Iterate:
        """The best point and the best bound so far."""
        best, lower = self.best(C), self.lower.get(C, 0.0)
        primal, loss = best.objective(C), best.value
        return Iterate(best.w, primal, lower, len(self.bundle), exact=True, loss=loss, note="known from other C")

    def look(self, C: float, tol: float) -> tuple[Vector | None, float]:
        """A guess of the minimiser, if there is something to base it on; and a lower bound of F."""
        bundles = [self.bundle, *self.others, *([] if self.state is None else [self.state.planes])]
        found = [bundle.minimise(C, tol) for bundle in bundles]
        lower = self.lower[C] = max(self.lower.get(C, 0.0), *(reduced.lower for reduced in found))
        return found[0].w if self.state is None and len(self.bundle) else None, lower

    def gap(self, C: float, aim: float) -> float:
        """The relative gap between what is known."""
        primal = self.best(C).objective(C)
        return relative_gap(primal, self.look(C, SHARE * aim * primal)[1])

    def try_out(self, oracle: Oracle, w: Vector) -> Point:
        """One pass at w: the point is known from now on."""
        point = oracle.at(w.copy())
        self.know(oracle, point.w, oracle.value(point))
        return point

    def take(self, w: Vector) -> Point | None:
        """The point that was tried out last, if this is its w: its pass is not made again."""
        point, self.trial = self.trial, None
        return point if point is not None and np.array_equal(point.w, w) else None


@dataclass(frozen=True)
class Along:
    """A solver that looks at the trail first."""

    solver: Solver

    def __call__(
        self, oracle: Oracle, C: float, bundle: Bundle | None = None, *, start: Vector | None = None, aim: float = 0.0
    ) -> Iterator[Iterate]:
        trail = oracle.trail
        assert trail is not None
        guess = trail.look(C, SHARE * aim * trail.best(C).objective(C))[0]
        yield trail.known(C)
        if not trail.scouted:
            for _ in scout(self.solver, oracle, aim):
                yield replace(trail.known(C), pending=True, note="all C together")
            trail.scouted = True
            guess = trail.look(C, SHARE * aim * trail.best(C).objective(C))[0]
            yield trail.known(C)
        if guess is not None and trail.starts is None:
            trail.trial = trial = trail.try_out(oracle, guess)
            if trail.gap(C, aim) > aim:
                trail.bundle.add(oracle.planes(trial))
                trail.gap(C, aim)
            yield replace(trail.known(C), step=1.0, note="at the minimum of the planes of other C")
        known = trail.known(C)
        first = known.w if known.w.any() else None
        yield from resume_from(self.solver(oracle, C, trail.bundle, start=first, aim=aim), known)


def prepare(solver: Solver, oracle: Oracle, Cs: Sequence[float]) -> list[float]:
    """The order in which this solver walks best, for which it may cut the rows into shards: by default from the top."""
    own: Callable[[Oracle, Sequence[float]], list[float]] | None = getattr(solver, "prepare", None)
    return sorted(Cs, reverse=True) if own is None else own(oracle, Cs)


def scout(solver: Solver, oracle: Oracle, aim: float) -> Iterator[None]:
    """What the solver finds out for all C of the trail together, step by step: nothing by default."""
    own: Callable[[Oracle, float], Iterator[None]] | None = getattr(solver, "scout", None)
    return iter(()) if own is None else own(oracle, aim)


def walk(
    solver: Solver,
    oracle: Oracle,
    Cs: Sequence[float],
    stop: Stop,
    callbacks: Sequence[Callback] = (),
    *,
    label: str = "",
    start: Vector | None = None,
    checkpoint: Checkpoint | None = None,
    memory: Memory | None = None,
) -> list[Result]:
    """One result for each C, in their order. The limit on time is for all of them together.

    If the walk is cut short, the C that are left have the best that is known for them, with its gap. memory: what an
    earlier walk has left is taken up, and left for the next.
    """
    if len(Cs) == 1 and (memory is None or checkpoint is not None):
        return [run(solver, oracle, Cs[0], stop, callbacks, label=label, start=start, checkpoint=checkpoint)]
    if checkpoint is not None:
        raise ValueError("checkpoint: it is for a fit with one C")
    began, cut_short = perf_counter(), False
    order = prepare(solver, oracle, Cs)
    oracle.trail = Trail(oracle, order)
    if memory is not None:
        memory.restore(oracle, oracle.trail)
    if start is not None:
        oracle.trail.try_out(oracle, start)
    results: dict[float, Result] = {}
    for C in order:
        left = None if stop.max_time is None else max(0.0, stop.max_time - (perf_counter() - began))
        own = replace(stop, max_time=0.0 if cut_short else left)
        result = run(Along(solver), oracle, C, own, callbacks, label=label)
        cut_short |= result.status in CUT_SHORT
        oracle.trail.know(oracle, result.w, result.loss)
        results[C] = replace(result, w=result.w.copy())  # a point may be the best for several C
    if memory is not None:
        memory.keep(oracle, oracle.trail)
    oracle.trail = None
    return [results[C] for C in Cs]


def steps(
    solver: Solver, oracle: Oracle, Cs: Sequence[float], tol: float, most: int
) -> Iterator[tuple[float, Iterate]]:
    """The same in the order of Cs and without records: every step with its C, to a gap of `tol` or `most` steps."""
    oracle.trail = Trail(oracle, Cs)
    for C in Cs:
        for number, iterate in enumerate(Along(solver)(oracle, C, aim=tol)):
            yield C, iterate
            if iterate.gap <= tol or number >= most:
                break
        known = iterate.loss
        oracle.trail.know(oracle, iterate.w, oracle.value(oracle.score(iterate.w)) if known is None else known)
