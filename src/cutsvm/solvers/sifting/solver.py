"""Sifting: most rows are far from the margin, and need not be read again.

Minimises F(w) = |w|^2/2 + C R(w) over many rows by solving problems with few of them:

    1. w = the solution for a random sample of the rows, not very exact
    2. one pass over all rows at w. U = the rows near the margin (several classes: those whose choice is not clear);
       the others are replaced by what they contribute as long as they stay on their side
       (`cutsvm.solvers.sifting.working_set`): R_U <= R
    3. w = argmin |w|^2/2 + C R_U(w), by the inner solver; its lower bound is one of F too
    4. one pass over all rows at w gives F(w); w_b = argmin of F on the half-line from the last w_b through w
    5. rows that were on the other side join U; planes that the inner solver has stay valid. Go on with 3

Where it does not pay (few rows, or few for each feature) the inner solver gets all rows at once.

Rows on disk may leave room for a limited number of rows in memory: the sample is then smaller. As long as U would not
fit, w is bettered: a random part of U, weighed up, with what the other rows contribute, makes a problem whose solution
is off by sqrt(d / m) times U's share of the rows only, and so U can be that much smaller around it. Each time takes one
pass. If U outgrows the room later, step 2 is done anew at the better w; if that happens time and again, the inner
solver gets all rows.

On a walk over several C (`cutsvm.driver.path`) step 1 is a walk on the sample, and from its minimisers cutting planes
of all rows go on for all C at once (`cutsvm.solvers.batched`): unless C is very large that is all. Step 2 is done once
for some neighbouring C: R_U and its planes hold for all of them. Later rows that are elsewhere at the next C join U
until it is too large.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal, cast

import numpy as np

from cutsvm._utils import validation
from cutsvm._utils.timing import timed
from cutsvm._utils.types import Ints, Vector
from cutsvm.driver.path import prepare, steps
from cutsvm.driver.run import Iterate, Progress, Solver
from cutsvm.matrix import WholeRows, in_order
from cutsvm.problem.losses import GroupedLoss
from cutsvm.problem.oracle import Oracle, new_bundle
from cutsvm.problem.planes import Bundle
from cutsvm.solvers._common import goal
from cutsvm.solvers.batched import abreast
from cutsvm.solvers.ocas import OCAS
from cutsvm.solvers.shards import choose_shards
from cutsvm.solvers.sifting.full_pass import Whole, full_pass
from cutsvm.solvers.sifting.working_set import WorkingSet, can_sift

# A sample of m rows gives w with an error of about sqrt(d / m), and the band must hold the rows that this error moves
# to the other side: SPREAD sqrt(d / m) of all n, WIDEST at most (covtype: 99 % of the rows that change sides after a
# sample of 4.5 % lie in the 16 % nearest to the margin). m + n sqrt(d / m) is least near m = (n sqrt(d))^(2/3).
SPREAD, WIDEST = 3.5, 0.2
# The sample has so many rows of each class at least, if there are as many: with 0.9 % positives they matter most.
OF_EACH = 1000
# The sample's problem is solved to this relative gap: more exactly it would be exact about the wrong problem. If that
# takes too many steps, what is there must do.
SAMPLE_TOL, SAMPLE_STEPS = 3e-3, 200
# On a walk it is worth more: planes are made there.
WALK_TOL = 5e-4
# Planes that a point makes there: FEW_SHARDS at most, of all rows up to SHARDS if there are as many coordinates. They
# cost the same pass, but not the same reduced problem: in 11 coordinates 48 took four times as long as 16 and were of
# no use, in 55 they saved half of the passes.
FEW_SHARDS, SHARDS = 16, 48
TOGETHER = 3  # C from which passes for all of them at once pay
# The same for a band that is thinned; if U then shrinks to no less than HELPS of what it was, it does not help. Where
# there is room, U has LEAST_SHARE of the rows: with fewer R_U may have its minimum far away, where it is much too low.
SAMPLE_LEAST, HELPS, LEAST_SHARE = 1e-5, 0.7, 0.02
WIDER = 1.7  # times as many rows in U if the last were too few to stay near
# The inner problem is solved to INNER of the gap asked for, or to LEFT of the one that is left, if that is more.
INNER, LEFT = 0.3, 0.03
STILL = 40  # steps of the inner solver that change neither bound: then U is drawn anew, as if it were too large
# Rows, and rows for each feature: with fewer there is nothing to gain.
FEW, MANY = 20_000, 20
# Shares of the room in memory for the sample, for the first U, which is to grow, and for the next ones if it outgrows
# the room; how often that may happen.
SAMPLE_ROOM, FIRST_ROOM, LAST_ROOM, CROWDED = 0.8, 0.5, 0.85, 3
# On a walk over several C, U is drawn anew once it would have so many times the rows that it had at first.
WALKED = 1.5
# U is drawn for so many C together; planes without weight at the last so many steps are left behind.
STRIDE, IDLE = 3, 2


class SiftingState:
    """All rows and R_U, with its planes: what one C leaves for the next."""

    working_set: WorkingSet
    planes: Bundle

    def __init__(self, whole: Whole, share: float, starts: dict[float, Vector], rng: np.random.Generator) -> None:
        self.whole, self.share, self.starts, self.rng = whole, share, starts, rng
        self.covered: list[float] = []  # the C that U was drawn for

    def build(self, w: Vector | None, planes: Bundle, C: float | None = None) -> None:
        """Draws U around w, or around the best point; for a walk that is at C, on the way to some C later, too."""
        Cs, towards = list(self.starts), None
        self.covered = [] if C is None else Cs[Cs.index(C) :][:STRIDE]
        if len(self.covered) > 1:
            towards = self.starts[self.covered[-1]].copy()
        self.working_set, self.planes = self.whole.sift(w, self.share, self.rng, towards=towards), planes
        self.many = self.working_set.many  # at first

    def clear(self) -> None:
        del self.working_set, self.planes


@dataclass(frozen=True, kw_only=True)
class Sifting:
    """Sifting around an inner solver; `sample` and `band` are shares of the rows, or found by rule."""

    inner: Solver = field(default_factory=OCAS)
    sample: float | Literal["auto"] = "auto"
    band: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        for name in ("sample", "band"):
            share = getattr(self, name)
            if share != "auto":
                validation.positive(name, share)
                if share > 1.0:
                    raise ValueError(f"{name}={share!r}: expected at most 1")

    def prepare(self, oracle: Oracle, Cs: Sequence[float]) -> list[float]:
        """For a walk over several C: few shards, of which each pass makes planes, and the way down."""
        if not pays(oracle):
            return prepare(self.inner, oracle, Cs)
        most = min(SHARDS, max(FEW_SHARDS, oracle.size))
        oracle.split(min(most, choose_shards(oracle, max(Cs))))
        return sorted(Cs, reverse=True)

    def scout(self, oracle: Oracle, aim: float) -> Iterator[None]:
        """For a walk, before its first C: step 1 for all of them, and what passes at many points make of that."""
        if not pays(oracle):
            return
        trail, found = oracle.trail, {}
        assert trail is not None
        sample = draw(oracle, self.sample_size(oracle), np.random.default_rng(0))
        for C, inner in self._on_sample(sample, trail.Cs):
            found[C] = inner.w.copy()
            yield
        del sample  # its rows take memory
        together = len(found) >= TOGETHER and cast("WholeRows", oracle.rows).held
        if together:
            yield from abreast(oracle, found, aim)
        trail.starts = {C: trail.best(C).w if together else found[C] for C in trail.Cs}

    def _on_sample(self, sample: Oracle, Cs: Sequence[float]) -> Iterator[tuple[float, Iterate]]:
        """The sample's solution for each C, step by step."""
        if len(Cs) == 1:
            return ((Cs[0], inner) for inner in self.roughly(sample, Cs[0], SAMPLE_TOL))
        order = prepare(self.inner, sample, Cs)
        if sample.shards > FEW_SHARDS:
            sample.split(FEW_SHARDS)
        return steps(self.inner, sample, order, WALK_TOL, SAMPLE_STEPS)

    def __call__(
        self, oracle: Oracle, C: float, bundle: Bundle | None = None, *, start: Vector | None = None, aim: float = 0.0
    ) -> Iterator[Iterate]:
        if not pays(oracle):
            yield from self.inner(oracle, C, bundle, start=start, aim=aim)
            return
        begin: Vector | None = None  # where the inner solver does, if not at the best point
        if oracle.trail is None or oracle.trail.state is None:
            state = yield from self._set_up(oracle, C, start, aim)
        else:
            state = oracle.trail.state
            begin = self._move(state, oracle, C)
        if oracle.trail is not None:
            oracle.trail.state = state
        whole, lower, crowded = state.whole, 0.0, 0
        yield _iterate(whole, lower, 0)
        while True:
            progress, still, begin = Progress(), 0, whole.w if begin is None else begin
            for inner in self.inner(state.working_set.oracle, C, state.planes, start=begin, aim=INNER * aim):
                lower = max(lower, inner.lower)
                yield _iterate(whole, lower, inner.planes, pending=True)
                left = max(INNER * aim * whole.primal, LEFT * (whole.primal - inner.lower))
                still = progress.stalled(inner.primal, inner.lower)
                if inner.primal - inner.lower <= left or still >= STILL:
                    break
            begin = None
            k, fits = whole.advance(state.working_set, inner.w.copy(), goal(lower, aim))
            yield _iterate(whole, lower, inner.planes, step=k)
            if fits and still < STILL:
                continue
            crowded += 1
            state.clear()  # its rows take memory
            if crowded > CROWDED:
                break
            most = self.room(oracle)[0]
            state.share = min(WIDER * state.share, max(state.share, LAST_ROOM / FIRST_ROOM * most))
            state.build(None, new_bundle(oracle, C))
        if oracle.trail is not None:
            oracle.trail.state = None
        for iterate in self.inner(oracle, C, bundle, start=whole.w, aim=aim):
            lower = max(lower, iterate.lower)
            yield replace(iterate, lower=lower)

    def _set_up(
        self, oracle: Oracle, C: float, start: Vector | None, aim: float
    ) -> Generator[Iterate, None, SiftingState]:
        """Steps 1 and 2."""
        rng = np.random.default_rng(0)
        size = self.sample_size(oracle)
        whole, starts = full_pass(oracle, C), None if oracle.trail is None else oracle.trail.starts
        if starts is None and start is None:
            yield Iterate(whole.w, whole.primal, 0.0, 0)
            for inner in self.roughly(draw(oracle, size, rng), C, SAMPLE_TOL):
                # Nothing is known yet of all rows.
                yield Iterate(whole.w, whole.primal, 0.0, inner.planes, pending=True)
            start = inner.w.copy()
        starts = {C: cast("Vector", start)} if starts is None else starts
        first, share = starts[C], self.share(oracle, size)
        most, kept = self.room(oracle)
        while share > most:
            thinned = whole.sift(first.copy(), share, rng, keep=most / share)
            for inner in self.roughly(thinned.oracle, C, max(SAMPLE_LEAST, INNER * aim), start=whole.w):
                yield _iterate(whole, 0.0, inner.planes, pending=True)
            del thinned
            closer = SPREAD * (oracle.size / kept) ** 0.5  # so many times
            first, share = inner.w, max(min(LEAST_SHARE, most), closer * share) if closer <= HELPS else most
        state = SiftingState(whole, share, starts, rng)
        state.build(first.copy(), new_bundle(oracle, C), C)
        return state

    def _move(self, state: SiftingState, oracle: Oracle, C: float) -> Vector | None:
        """The same at another C: U serves, or grows by the rows that are elsewhere there, or is drawn anew.

        Returns where to begin if that is not the best point: no pass is made where U was drawn with this C in mind.
        """
        assert oracle.trail is not None
        whole = state.whole
        whole.turn(C)
        state.planes.drop_idle(IDLE, always=True)
        if C in state.covered:
            return state.starts[C].copy()
        most = round(WALKED * state.many)
        fits = whole.advance(state.working_set, state.starts[C].copy(), whole.primal, most=most)[1]
        if not fits:
            state.clear()
            state.build(None, new_bundle(oracle, max(oracle.trail.Cs)), C)
        return None

    def sample_size(self, oracle: Oracle) -> int:
        n, d, room = oracle.rows.n, oracle.size, cast("WholeRows", oracle.rows).room
        size = int(self.sample * n) if self.sample != "auto" else round((n * d**0.5) ** (2 / 3))
        return max(1, size if room is None else min(size, int(SAMPLE_ROOM * room)))

    def share(self, oracle: Oracle, size: int) -> float:
        """The share of the rows that are to be in the band."""
        return min(WIDEST, SPREAD * (oracle.size / size) ** 0.5) if self.band == "auto" else self.band

    def room(self, oracle: Oracle) -> tuple[float, float]:
        """The share of the rows that U may have at first, and how many rows that is."""
        room = cast("WholeRows", oracle.rows).room
        kept = float(oracle.rows.n) if room is None else FIRST_ROOM * room
        return kept / oracle.rows.n, kept

    def roughly(self, oracle: Oracle, C: float, tol: float, start: Vector | None = None) -> Iterator[Iterate]:
        """The inner solver until the gap is `tol`, or for so many steps that what is there must do."""
        for inner in islice(self.inner(oracle, C, start=start, aim=tol), SAMPLE_STEPS):
            yield inner
            if inner.gap <= tol:
                return


def _iterate(whole: Whole, lower: float, planes: int, *, step: float = 0.0, pending: bool = False) -> Iterate:
    """The best point of all rows so far."""
    exact, loss = whole.exact, whole.value
    return Iterate(whole.w, whole.primal, lower, planes, step=step, pending=pending, exact=exact, loss=loss)


def pays(oracle: Oracle) -> bool:
    """Whether few rows can stand for all."""
    return can_sift(oracle) and oracle.rows.n >= max(FEW, MANY * oracle.size)


def _rows_of(loss: GroupedLoss, label: int) -> Ints:
    """The rows of one class, found some at a time: a class that few rows have must not take memory for all."""
    found = [np.flatnonzero(loss.part(part).side(label)) + part.start for part in validation.parts(loss.n)]
    return np.concatenate(found)


@timed("sift")
def draw(oracle: Oracle, size: int, rng: np.random.Generator) -> Oracle:
    """The risk of a random sample, whose classes weigh what they weigh in all; a rare class must not get lost."""
    rows, loss = cast("WholeRows", oracle.rows), cast("GroupedLoss", oracle.loss)
    chosen = in_order(rng.integers(0, rows.n, size))
    drawn = loss.take(chosen)
    more = [chosen]
    rest = OF_EACH if rows.room is None else 1 + int((1.0 - SAMPLE_ROOM) * rows.room / loss.labels)
    least = min(OF_EACH, rest)
    for label in range(loss.labels):
        if np.count_nonzero(drawn.side(label)) < least:
            of_class = _rows_of(loss, label)
            few = len(of_class) <= least
            more.append(of_class if few else of_class[rng.integers(0, len(of_class), least)])
    if len(more) > 1:
        chosen = in_order(np.concatenate(more))
        drawn = loss.take(chosen)
    factors = np.ones(len(chosen))
    for label, total in enumerate(loss.label_totals()):
        mine = drawn.side(label)
        if total > 0.0:
            factors[mine] = total / np.abs(drawn.row_weights[mine]).sum()
    return oracle.over(rows.take(chosen).fast(), loss.take(chosen, factors))
