"""Sifting: most rows are far from the margin, and need not be read again.

Minimises F(w) = |w|^2/2 + C R(w) over many rows by solving problems with few of them:

    1. w = the solution for a random sample of the rows, to a low accuracy
    2. one pass over all rows at w. U = the rows near the margin (several classes: those whose highest score is not
       clear); the others are replaced by the means of groups (`cutsvm.solvers.sifting.working_set`): R_U <= R
    3. w = argmin |w|^2/2 + C R_U(w), by the inner solver; its lower bound is one of F too
    4. one pass over all rows at w gives F(w); w_b = argmin of F on the half-line from the last w_b through w
    5. violators join U; planes that the inner solver has stay valid. Go on with 3

Where it does not pay (few rows, or few for each feature) the inner solver gets all rows at once.

Rows on disk may leave room for a limited number of rows in memory: the sample is then smaller. As long as U would not
fit, w is improved: a random part of U, with larger weights, and the means of the groups make a problem whose solution
is off by only sqrt(d / m) times U's share of the rows, and so U can be that much smaller around it. Each time takes one
pass. If U outgrows the room later, step 2 is repeated at the better w; if that happens several times, the inner solver
gets all rows; batched cutting planes, where nothing is kept of each row.

On a path over several C (`cutsvm.solvers.path`) step 1 is a path on the sample, and from its minimisers cutting planes
of all rows go on for all C at once (`cutsvm.solvers.batched`): unless C is very large that is all. Step 2 is done once
for some neighbouring C: R_U and its planes hold for all of them. Later violators at the next C join U until it is too
large.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal, cast

import numpy as np

from cutsvm._utils import validation
from cutsvm._utils.types import Vector
from cutsvm.problem.losses import GroupedLoss
from cutsvm.problem.oracle import Oracle
from cutsvm.solvers.batched import BatchSettings, presolve_batched
from cutsvm.solvers.cutting_planes import choose_shards, target_objective
from cutsvm.solvers.line_batches import Batched
from cutsvm.solvers.ocas import OCAS
from cutsvm.solvers.path import iterates_on_path
from cutsvm.solvers.protocol import FitContext, Iterate, PathOrder, Progress, Solver, SolverBase, new_context
from cutsvm.solvers.sifting.full_pass import FullPass, full_pass
from cutsvm.solvers.sifting.working_set import WorkingSet

__all__ = ["Sifting", "SiftingSettings"]


@dataclass(frozen=True)
class SiftingSettings:
    """Shares are of all rows, rooms of the rows that memory holds.

    A sample of m rows gives w with an error of about sqrt(d / m), and the band must hold the rows that this error moves
    to the other side: spread sqrt(d / m) of all n, `widest` at most. m + n sqrt(d / m) is least near
    m = (n sqrt(d))^(2/3).
    """

    spread: float = 3.5
    widest: float = 0.2
    of_each: int = 1000  # rows of each class in the sample at least, if there are as many
    sample_tol: float = 3e-3  # the gap for the sample: a smaller one would be exact about the wrong problem
    sample_iterations: int = 200  # at most; then the current iterate is accepted
    path_tol: float = 5e-4  # the gap for the sample on a path, where planes are made at its solutions
    # Planes that a point makes on a path: few_shards at most, of all rows up to `shards` if there are as many
    # coordinates. They cost the same pass, but not the same reduced problem.
    few_shards: int = 16
    shards: int = 48
    least_path: int = 3  # values of C from which passes for all of them at once pay
    # A band that is thinned is solved to least_tol; if U then shrinks to no less than `helps` of what it was, it does
    # not help. With less than least_share of the rows R_U may have its minimum far away, where it is much too low.
    least_tol: float = 1e-5
    helps: float = 0.7
    least_share: float = 0.02
    wider: float = 1.7  # times as many rows in U if the last were too few to stay near
    # The inner problem is solved to `inner` of the gap asked for, or to `left` of the one that is left, if that is
    # more; to `left_in_parts` where each pass is a round of a cluster.
    inner: float = 0.3
    left: float = 0.03
    left_in_parts: float = 0.01
    patience: int = 40  # iterations of the inner solver without progress: then U is built again
    least_rows: int = 20_000  # with fewer rows, or fewer for each feature, there is nothing to gain
    least_rows_per_feature: int = 20
    sample_room: float = 0.8  # of the room: for the sample, for the first U, which is to grow, and for the next ones
    first_room: float = 0.5
    last_room: float = 0.85
    rebuilds: int = 3  # at most
    path_growth: float = 1.5  # on a path, U is built again once it would have this multiple of its first rows
    stride: int = 3  # number of C that U is built for together
    batch: BatchSettings = field(default_factory=BatchSettings)
    path_patience: int = 2  # planes without weight in this number of reduced problems are dropped at the next C

    def next_share(self, share: float, size: int, most: float, kept: float) -> float:
        """The share of the rows in the band around the solution of a thinned one; kept: rows, `most` of all rows."""
        closer = self.spread * (size / kept) ** 0.5  # a factor
        return max(min(self.least_share, most), closer * share) if closer <= self.helps else most


class SiftingState:
    """All rows, and the working set with its planes: what one C leaves for the next."""

    working_set: WorkingSet
    inner: FitContext

    def __init__(self, full: FullPass, share: float, starts: dict[float, Vector], seed: int) -> None:
        self.full, self.share, self.starts = full, share, starts
        self.rng = np.random.default_rng(seed)
        self.covered: list[float] = []  # the C that U was built for

    def build(self, w: Vector | None, sifting: Sifting, context: FitContext, C: float, *, ahead: bool = True) -> None:
        """Builds U around w, or around the best point; ahead: also on the way to the next C of a path."""
        Cs, towards = list(self.starts), None
        self.covered = Cs[Cs.index(C) :][: sifting.settings.stride] if ahead else []
        if len(self.covered) > 1:
            towards = self.starts[self.covered[-1]]
        self.working_set = self.full.build(w, self.share, self.rng, towards=towards)
        self.n_first = self.working_set.n_rows
        bundle, tol = self.working_set.oracle.new_bundle(max(context.Cs)), sifting.settings.inner * context.tol
        self.inner = self.working_set.open(sifting.inner, C, bundle, tol)

    def clear(self) -> None:
        """Frees the rows."""
        del self.working_set, self.inner

    def iterate(self, C: float, lower: float, planes: int, *, step: float = 0.0, pending: bool = False) -> Iterate:
        """The best point of all rows so far."""
        full = self.full
        penalty = full.oracle.penalty(full.w)
        return Iterate(full.w, penalty, full.risk, lower, C, planes, step=step, pending=pending, exact=full.exact)


@dataclass(frozen=True, kw_only=True)
class Sifting(SolverBase):
    """Sifting around an inner solver; `sample` and `band` are shares of the rows, or found by rule.

    seed: of the rows that are drawn at random.
    """

    inner: Solver = field(default_factory=OCAS)
    sample: float | Literal["auto"] = "auto"
    band: float | Literal["auto"] = "auto"
    seed: int = 0
    settings: SiftingSettings = field(default=SiftingSettings(), repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.inner, Solver) or isinstance(self.inner, type):
            raise TypeError(f"inner: a solver object expected, got {self.inner!r}")
        for name in ("sample", "band"):
            share = getattr(self, name)
            if share != "auto":
                validation.positive(name, share)
                if share > 1.0:
                    raise ValueError(f"{name}={share!r}: expected at most 1")

    @property
    def requires(self) -> frozenset[str]:
        return self.inner.requires - {"vectors"}  # the inner solver's rows are copies

    def seeded(self, seed: int) -> Sifting:
        return replace(self, inner=self.inner.seeded(seed), seed=seed)

    def pays(self, oracle: Oracle) -> bool:
        """Whether few rows can represent all."""
        least = max(self.settings.least_rows, self.settings.least_rows_per_feature * oracle.size)
        return oracle.supports.working_set and oracle.matrix.n >= least

    def order_path(self, oracle: Oracle, Cs: Sequence[float]) -> PathOrder:
        """From the largest C down, with few shards, of which each pass makes planes."""
        inner = self.inner.order_path(oracle, Cs)
        if len(Cs) == 1 or not self.pays(oracle):
            return inner
        most = min(self.settings.shards, max(self.settings.few_shards, oracle.size))
        return PathOrder(sorted(Cs, reverse=True), min(most, choose_shards(oracle, max(Cs))))

    def presolve(self, context: FitContext) -> Iterator[None]:
        """Step 1 for all C, and passes at many points that go on from there."""
        if not self.pays(context.oracle):
            return
        if len(context.Cs) == 1 and context.best(context.Cs[0]).w.any():  # nearer than the solution of a sample
            context.starts = {C: context.best(C).w for C in context.Cs}
            return
        oracle, found = context.oracle, {}
        sample = self._draw(oracle, np.random.default_rng(self.seed))
        for C, inner in self._on_sample(sample, context.Cs):
            found[C] = inner.w.copy()
            yield
        del sample  # its rows take memory
        shares = oracle.supports.scores or not oracle.supports.vectors
        together = len(found) >= self.settings.least_path and shares
        if together:
            yield from presolve_batched(context, found, self.settings.batch)
        context.starts = {C: context.best(C).w if together else found[C] for C in context.Cs}

    def _on_sample(self, sample: Oracle, Cs: Sequence[float]) -> Iterator[tuple[float, Iterate]]:
        """The sample's solution for each C, step by step."""
        if len(Cs) == 1:
            return ((Cs[0], inner) for inner in self._roughly(sample, Cs[0], self.settings.sample_tol))
        order = self.inner.order_path(sample, Cs)
        sample = sample.with_shards(min(order.shards, self.settings.few_shards))
        return iterates_on_path(self.inner, sample, order.Cs, self.settings.path_tol, self.settings.sample_iterations)

    def __call__(self, context: FitContext, C: float) -> Iterator[Iterate]:
        if not self.pays(context.oracle):
            yield from self._of_all_rows(context.oracle)(context, C)
            return
        settings, n_rebuilt, lower = self.settings, 0, 0.0
        state, begin = yield from self._prepared(context, C)  # 1, 2
        yield state.iterate(C, lower, 0)
        while n_rebuilt <= settings.rebuilds:
            inner, stalled = yield from self._solve_inner(state, C, begin, lower)  # 3
            lower, begin = max(lower, inner.lower), None
            target = target_objective(lower, context.tol)
            before = state.working_set.n_rows
            k, fits = state.full.advance(state.working_set, inner.w, target)  # 4, 5
            yield state.iterate(C, lower, inner.planes, step=k)
            # Where a reading is a round, rows that have joined are tried before another set is built.
            grown = state.working_set.n_rows > before and not context.oracle.supports.vectors
            if not fits or (stalled and not grown):
                n_rebuilt += 1
                self._rebuild(state, context, C, last=n_rebuilt > settings.rebuilds)
        context.drop(SiftingState)
        context.working_bundle, context.start = None, state.full.w
        for iterate in self._of_all_rows(context.oracle)(context, C):
            lower = max(lower, iterate.lower)
            yield replace(iterate, lower=lower)

    def _of_all_rows(self, oracle: Oracle) -> Solver:
        """The inner solver, or batched cutting planes where there are no vectors over all rows."""
        return self.inner if oracle.supports.vectors else Batched(seed=self.seed)

    def _solve_inner(
        self, state: SiftingState, C: float, begin: Vector | None, lower: float
    ) -> Generator[Iterate, None, tuple[Iterate, bool]]:
        """The inner solver on the working set, to a share of the gap; and whether it has stalled."""
        settings, progress, full, context = self.settings, Progress(), state.full, state.inner
        context.start = full.w if begin is None else begin
        share = settings.left if full.oracle.supports.vectors else settings.left_in_parts
        for inner in self.inner(context, C):
            lower = max(lower, inner.lower)
            yield state.iterate(C, lower, inner.planes, pending=True)
            left = max(context.tol * full.primal, share * (full.primal - inner.lower))
            stalled = progress.stalled(inner.primal, inner.lower) >= settings.patience
            if inner.primal - inner.lower <= left or stalled:
                break
        return inner, stalled

    def _rebuild(self, state: SiftingState, context: FitContext, C: float, *, last: bool) -> None:
        """Another working set around the best point, with more rows if there is room."""
        settings = self.settings
        state.clear()
        if not last:
            most = self._room(context.oracle)[0]
            grown = settings.last_room / settings.first_room * most
            state.share = min(1.0, settings.wider * state.share, max(state.share, grown))
            state.build(None, self, context, C, ahead=False)
            context.working_bundle = state.inner.bundle

    def _prepared(self, context: FitContext, C: float) -> Generator[Iterate, None, tuple[SiftingState, Vector | None]]:
        """The state at this C, and where the inner solver begins if not at the best point."""
        state, begin = context.state(SiftingState), None
        if state is None:
            state = yield from self._set_up(context, C)
        else:
            begin = self._move(state, context, C)
        if context.is_path:
            context.keep(state)
        context.working_bundle = state.inner.bundle
        return state, begin

    def _set_up(self, context: FitContext, C: float) -> Generator[Iterate, None, SiftingState]:
        """Steps 1 and 2."""
        oracle, settings = context.oracle, self.settings
        full, starts = full_pass(oracle, C), context.starts
        full.known, context.trial = context.trial, None
        state = SiftingState(full, self.share(oracle), starts or {}, self.seed)
        if starts is None:
            start = context.start
            if start is None:
                yield Iterate(full.w, 0.0, full.risk, 0.0, C, 0)
                sample = self._draw(oracle, state.rng)
                for inner in self._roughly(sample, C, settings.sample_tol):
                    # Nothing is known yet of all rows.
                    yield Iterate(full.w, 0.0, full.risk, 0.0, C, inner.planes, pending=True)
                start = inner.w
                del sample
            state.starts = {C: start}
        first = state.starts[C]
        most, kept = self._room(oracle)
        while state.share > most:
            thinned = full.build(first, state.share, state.rng, keep=most / state.share)
            tol = max(settings.least_tol, settings.inner * context.tol)
            for inner in self._roughly(thinned.oracle, C, tol, start=full.w):
                yield state.iterate(C, 0.0, inner.planes, pending=True)
            del thinned
            first, state.share = inner.w, settings.next_share(state.share, oracle.size, most, kept)
        state.build(first, self, context, C)
        return state

    def _move(self, state: SiftingState, context: FitContext, C: float) -> Vector | None:
        """The same at another C: U serves, or grows by the violators there, or is built again.

        Returns where to begin if that is not the best point: no pass is made where U was built for this C too.
        """
        settings = self.settings
        state.full.set_C(C)
        state.inner.bundle.drop_idle(settings.path_patience, always=True)
        if C in state.covered:
            return state.starts[C]
        most = round(settings.path_growth * state.n_first)
        fits = state.full.advance(state.working_set, state.starts[C], state.full.primal, most=most)[1]
        if not fits:
            state.clear()
            state.build(None, self, context, C)
        return None

    def sample_size(self, oracle: Oracle) -> int:
        n, d, room = oracle.matrix.n, oracle.size, oracle.matrix.room
        size = int(self.sample * n) if self.sample != "auto" else round((n * d**0.5) ** (2 / 3))
        return max(1, size if room is None else min(size, int(self.settings.sample_room * room)))

    def _draw(self, oracle: Oracle, rng: np.random.Generator) -> Oracle:
        """The risk of a sample, with some rows of each class if there is room for them."""
        return oracle.draw(self.sample_size(oracle), self.least_of_each(oracle), rng)

    def least_of_each(self, oracle: Oracle) -> int:
        """Rows of each class in the sample at least, if there are as many."""
        least, room = self.settings.of_each, oracle.matrix.room
        if room is None:
            return least
        labels = cast("GroupedLoss", oracle.loss).labels
        return min(least, 1 + int((1.0 - self.settings.sample_room) * room / labels))

    def shares(self, oracle: Oracle) -> Iterator[float]:
        """The shares of the rows that are copied in one pass after the other, until the working set is built."""
        share, (most, kept) = self.share(oracle), self._room(oracle)
        while share > most:
            yield most
            share = self.settings.next_share(share, oracle.size, most, kept)
        yield share

    def share(self, oracle: Oracle) -> float:
        """The share of the rows that are to be in the band."""
        if self.band != "auto":
            return self.band
        spread = self.settings.spread * float(np.sqrt(oracle.size / self.sample_size(oracle)))
        return min(self.settings.widest, spread)

    def room(self, oracle: Oracle) -> float:
        """The share of the rows that U may have at first."""
        return self._room(oracle)[0]

    def _room(self, oracle: Oracle) -> tuple[float, float]:
        """The share of the rows that U may have at first, and how many rows that is."""
        room = oracle.matrix.room
        kept = float(oracle.matrix.n) if room is None else self.settings.first_room * room
        return kept / oracle.matrix.n, kept

    def _roughly(self, oracle: Oracle, C: float, tol: float, start: Vector | None = None) -> Iterator[Iterate]:
        """The inner solver until the gap is `tol`, or for a limited number of iterations."""
        context = new_context(self.inner, oracle, [C], tol, start=start)
        for inner in islice(self.inner(context, C), self.settings.sample_iterations):
            yield inner
            if inner.gap <= tol:
                return
