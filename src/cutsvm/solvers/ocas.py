"""Optimised cutting planes (OCAS).

V. Franc, S. Sonnenburg: Optimized cutting plane algorithm for support vector machines, ICML 2008, Algorithm 1.

Minimises F(w) = |w|^2/2 + C R(w). With R_t the planes so far, repeat:

    1. w_t  = argmin |w|^2/2 + C R_t(w), the reduced problem; its minimum is a lower bound
    2. w_b  = argmin of F on the half-line from the last w_b through w_t
    3. w_c  = (1 - cut_at) w_b + cut_at w_t
    4. add the planes that touch R at w_c, one per shard

until F(w_b) is close to the lower bound, by at most `epsilon` (the paper's condition 9) or by the certified gap.
`exact=True` is the paper's algorithm: no plane at first, so that the first w_t is 0; one shard; step 1 is solved until
rounding leaves nothing to gain; every plane is kept; no step out of a stall. More shards make a tighter R_t and a
larger reduced problem. `line_search` other than "exact" makes step 2 that of N. Arnosti: Reducing training time for
linear SVMs, 2010. Beyond the papers: the reduced problem is solved only as well as the gap needs; planes that carry no
weight for a while are dropped; and if F(w_c) < F(w_b), which a free intercept makes possible (b is best at every point,
and is not linear between two of them), step 2 is repeated towards w_c.

A stall: step 2 returns 0 time and again, and nearly all planes are made around one w_b. Arnosti has two remedies: a
step of 0.02 in each of the first five iterations, and one in place of any step of 0; both let F(w_b) rise. So do his
searches with `safe=False`. Ours, `guard="stall"`, waits for some steps of 0 in a row, takes a shorter step if F would
rise by more than the gap, and steps 2 to 4 then go on from there. What is yielded is the best point so far, so F never
rises. `docs/papers/arnosti.md` has the measurements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from cutsvm._utils import validation
from cutsvm._utils.fields import fields_repr
from cutsvm.problem.line_search import SEARCHES, ArnostiSettings, Search, new_search
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Point
from cutsvm.solvers.bucketing.buckets import BucketSettings
from cutsvm.solvers.bucketing.near_rows import near_rows
from cutsvm.solvers.cutting_planes import PlaneSettings, begin, best_step, check_shards, choose_shards, search
from cutsvm.solvers.protocol import FitContext, Iterate, PathOrder, SolverBase

Guard: TypeAlias = Literal["stall", "first_steps", "every_zero", "none"]


@dataclass(frozen=True)
class StallSettings:
    """searches, searches_multiclass: number of searches in a row without a step that are a stall.

    first: number of iterations with a step of `nudge` for the guard "first_steps".
    zero: steps up to this are steps of 0: w_b on a breakpoint makes 1e-15 of them.
    aside: where to cut with cut_at = 0 after a step of at most `tiny`: w_b has its planes already. With a free
        intercept such steps may shrink for ever, each by the same factor.
    """

    searches: int = 10
    searches_multiclass: int = 3
    first: int = 5
    aside: float = 0.1
    tiny: float = 1e-6
    zero: float = 1e-12


@dataclass(frozen=True, kw_only=True, repr=False)
class OCAS(SolverBase):
    """Optimised cutting planes; `cut_at` is the paper's lambda, `nudge` the step of the guards (0: none is made).

    exact: the paper's Algorithm 1 to the letter, without the guard "stall"; each iteration is one of the paper's.

    epsilon: the absolute precision at which it stops, F(w_b) - F_t(w_t) <= epsilon; None: the certified gap alone ends
    a fit. cut_at = 0 cuts at w_b itself, where the loss is known already. buckets, both_sides and whiten: as of `CPA`.

    guard: against stalls. "stall": a step of `nudge`, or a shorter one, after some steps of 0 in a row. "first_steps":
    one in each of the first five iterations, "every_zero": one in place of each step of 0, both as Arnosti has them.
    "none": none of these.

    safe, first_step, arnosti: of the searches "gca", "gca2" and "tca": whether F at their answer may not be higher than
    at 0 (False: as in Arnosti's boxes), where the first of them begins, and their constants.
    """

    line_search: Literal["exact", "gca", "gca2", "tca"] = "exact"
    safe: bool = True
    first_step: float = 1.0
    shards: int | Literal["auto"] = "auto"
    cut_at: float = 0.1
    guard: Guard = "stall"
    nudge: float = 0.02
    exact: bool = False
    epsilon: float | None = None
    buckets: int = 1
    both_sides: bool = True
    whiten: bool = True
    planes: PlaneSettings = field(default=PlaneSettings(), repr=False)
    bucketing: BucketSettings = field(default=BucketSettings(), repr=False)
    stall: StallSettings = field(default=StallSettings(), repr=False)
    arnosti: ArnostiSettings = field(default=ArnostiSettings(), repr=False)

    __repr__ = fields_repr

    def __post_init__(self) -> None:
        validation.flags(self)
        validation.one_of("line_search", self.line_search, tuple(SEARCHES))
        validation.one_of("guard", self.guard, get_args(Guard))
        check_shards(self.shards, self.buckets, exact=self.exact)
        if self.epsilon is not None:
            validation.positive("epsilon", self.epsilon)
        for name in ("cut_at", "nudge", "first_step"):
            value = getattr(self, name)
            if value != 0.0:
                validation.positive(name, value)
            if value > 1.0 and name != "first_step":
                raise ValueError(f"{name}={value!r}: expected at most 1")

    @property
    def requires(self) -> frozenset[str]:
        return super().requires | ({"margin"} if self.buckets > 1 else set())

    def order_path(self, oracle: Oracle, Cs: Sequence[float]) -> PathOrder:
        """From the smallest C up, with shards for the largest."""
        return PathOrder(sorted(Cs), choose_shards(oracle, max(Cs), self.shards, self.buckets, exact=self.exact))

    def __call__(self, context: FitContext, C: float) -> Iterator[Iterate]:
        with near_rows(context, self) if self.buckets > 1 else nullcontext():
            oracle, bundle = context.oracle, context.bundle
            w_b, unused = begin(context, without_planes=self.exact), None
            lines = _LineSearches(self, oracle, C)
            best = context.iterate(w_b, C, bundle.proven(C))
            yield best
            while True:
                tol = 0.0 if self.exact else self.planes.qp_share * (best.primal - best.lower)
                reduced = bundle.minimise(C, tol)  # 1
                rises = self.exact and self.planes.rises(reduced.lower, best.lower)
                lower = max(best.lower, reduced.lower)
                w_t = oracle.at(reduced.w, out=unused)
                w_b, k = lines.step(w_b, w_t, rise=best.primal - lower)  # 2
                now = context.iterate(w_b, C, lower, step=k)
                cut_at = self.cut_at or (self.stall.aside if k <= lines.tiny else 0.0)
                w_c = oracle.between(w_b, w_t, cut_at, out=w_t) if cut_at else w_b  # 3
                bundle.add(oracle.planes(w_c))  # 4
                if not self.exact:
                    bundle.drop_idle(self.planes.patience_with(oracle.shards, oracle.size, oracle.outputs))
                if oracle.n_free and context.iterate(w_c, C, lower).primal < now.primal:
                    w_b = lines.towards(w_b, w_c)
                    now = context.iterate(w_b, C, lower, step=k)
                best, unused = now.or_better(best), w_t
                satisfied = self.epsilon is not None and best.primal - lower <= self.epsilon
                yield replace(best, satisfied=satisfied, pending=rises)


class _LineSearches:
    """Step 2: line searches that begin where the last one ended, and the steps of a guard."""

    def __init__(self, settings: OCAS, oracle: Oracle, C: float) -> None:
        self.oracle, self.C, self.settings = oracle, C, settings
        self.search = self._new_search(safe=settings.safe, first_step=settings.first_step)
        ours = settings.exact and settings.guard == "stall"  # it is in none of the papers
        self.guard = "none" if ours or settings.nudge == 0.0 else settings.guard
        self.limit = settings.stall.searches if oracle.outputs == 1 else settings.stall.searches_multiclass
        self.tiny = settings.stall.zero if settings.cut_at else settings.stall.tiny  # steps up to this are none
        self.n_steps = 0
        self.n_stalled = 0  # searches in a row that found none

    def _new_search(self, *, safe: bool = True, first_step: float = 1.0) -> Search:
        name = self.settings.line_search
        more: dict[str, Any] = {"safe": safe, "first_step": first_step}
        return SEARCHES[name]() if name == "exact" else new_search(name, self.settings.arnosti, **more)

    def step(self, w_b: Point, w_t: Point, rise: float) -> tuple[Point, float]:
        """The next w_b, whose memory is that of the last, and what the search found; F may rise by `rise`."""
        if np.array_equal(w_b.w, w_t.w):  # as in the first iteration of `exact`: there is no line to search
            return w_b, 0.0
        nudge, self.n_steps = self.settings.nudge, self.n_steps + 1
        if self.guard == "first_steps" and self.n_steps <= self.settings.stall.first:
            return self.oracle.between(w_b, w_t, nudge, out=w_b), nudge
        k = step = search(self.oracle, w_b, w_t, self.C, self.search)
        self.n_stalled = self.n_stalled + 1 if k <= self.tiny else 0
        if self.guard == "every_zero" and self.n_stalled:
            step = nudge
        elif self.guard == "stall" and self.n_stalled >= self.limit:
            step = best_step(self.oracle, w_b, w_t, self.C, nudge, rise)
        return self.oracle.between(w_b, w_t, step, out=w_b), k

    def towards(self, w_b: Point, w_c: Point) -> Point:
        """The best point on the half-line from w_b through w_c."""
        k = search(self.oracle, w_b, w_c, self.C, self._new_search())
        return self.oracle.between(w_b, w_c, k, out=w_b)
