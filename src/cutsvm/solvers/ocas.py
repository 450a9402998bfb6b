"""Optimised cutting planes (OCAS).

V. Franc, S. Sonnenburg: Optimized cutting plane algorithm for support vector machines, ICML 2008, Algorithm 1.

Minimises F(w) = |w|^2/2 + C R(w). With R_t the planes so far, repeat:

    1. w_t  = argmin |w|^2/2 + C R_t(w), the reduced problem; its minimum is a lower bound
    2. w_b  = argmin of F on the half-line from the last w_b through w_t
    3. w_c  = (1 - cut_at) w_b + cut_at w_t
    4. add the planes that touch R at w_c, one per shard

until F(w_b) is close to the lower bound. One shard is the paper's algorithm; more shards make a tighter R_t and a
larger reduced problem. `line_search` other than "exact" makes step 2 that of N. Arnosti: Reducing training time for
linear SVMs, 2010. Beyond the papers: the reduced problem is solved only as well as the gap needs; planes that carry no
weight for a while are dropped; and if F(w_c) < F(w_b), which a free intercept makes possible (b is best at every point,
and does not run straight between two of them), step 2 is done once more, towards w_c.

A stall: step 2 goes nowhere time and again, and nearly all planes are made around one w_b. Arnosti's remedy is a step
of 0.02 in place of any step of 0; it lets F(w_b) rise. Ours waits for some steps of 0 in a row, takes a shorter step
if F would rise by more than the gap, and moves a centre from which steps 2 to 4 then go on. What is yielded is the
best point so far, so F never rises. Going back to it from the centre, or cutting elsewhere, did not end the stall.
Iterations to a gap of 1e-2 without it and with it, C on the sum:
poker, 10 classes, C = 1: 324 and 54; 3,000 of its rows, the same C n, one shard: 32,000 were not enough, and 382;
covtype, 7 classes, 50,000 rows, C n = 5.8e7, one shard: 750 and 505; two classes of each, C n = 1e6, one shard: no
change. After 3 steps of 0 in place of 10 sets of two classes take up to twice the iterations, those of many 0.5 to 0.9.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from cutsvm._utils import validation
from cutsvm._utils.types import Vector
from cutsvm.driver.run import Iterate
from cutsvm.problem.line_search import SEARCHES
from cutsvm.problem.oracle import Oracle, Point
from cutsvm.problem.planes import Bundle
from cutsvm.solvers._common import PATIENCE, QP_SHARE, begin, check_shards, cut, objective, search, uphill
from cutsvm.solvers.bucketing.near_rows import near_rows

# So many searches in a row that find no step are a stall: with one score per row, and with several.
STALL, STALL_OF_MANY = 10, 3
ASIDE = 0.1  # where to cut with cut_at = 0 after a step of 0: w_b has its planes already


@dataclass(frozen=True, kw_only=True)
class OCAS:
    """Optimised cutting planes; `cut_at` is the paper's lambda, `nudge` the step out of a stall (0: none is made).

    cut_at = 0 cuts at w_b itself, where the loss is known already. buckets, both_sides and whiten: as of `CPA`. They
    did not pay here on covtype: rows that may cross the margin on the way to w_t are read, and those of w_b again.
    """

    line_search: Literal["exact", "gca", "gca2", "tca"] = "exact"
    shards: int | Literal["auto"] = "auto"
    cut_at: float = 0.1
    nudge: float = 0.02
    buckets: int = 1
    both_sides: bool = True
    whiten: bool = True

    def __post_init__(self) -> None:
        validation.one_of("line_search", self.line_search, tuple(SEARCHES))
        check_shards(self.shards, self.buckets)
        if self.cut_at != 0.0:
            validation.positive("cut_at", self.cut_at)
        if self.cut_at > 1.0:
            raise ValueError(f"cut_at={self.cut_at!r}: expected at most 1")
        if self.nudge != 0.0:
            validation.positive("nudge", self.nudge)
        if self.nudge > 1.0:
            raise ValueError(f"nudge={self.nudge!r}: expected at most 1")

    def prepare(self, oracle: Oracle, Cs: Sequence[float]) -> list[float]:
        """For a walk over several C: shards for the hardest, and the way up."""
        cut(oracle, max(Cs), self.shards)
        return sorted(Cs)

    def __call__(
        self, oracle: Oracle, C: float, bundle: Bundle | None = None, *, start: Vector | None = None, aim: float = 0.0
    ) -> Iterator[Iterate]:
        with near_rows(oracle, buckets=self.buckets, both_sides=self.both_sides, whiten=self.whiten) as near:
            yield from self._iterate(near, C, bundle, start)

    def _iterate(self, oracle: Oracle, C: float, bundle: Bundle | None, start: Vector | None) -> Iterator[Iterate]:
        bundle, centre, primal = begin(oracle, C, bundle, shards=self.shards, start=start)
        find = SEARCHES[self.line_search]()
        lower, still = bundle.proven(C), 0
        spare: Point | None = None
        stall = STALL if oracle.outputs == 1 else STALL_OF_MANY
        kept: Point | None = None  # the best point, as long as the centre is worse
        yield Iterate(centre.w, primal, lower, len(bundle))
        while True:
            reduced = bundle.minimise(C, tol=QP_SHARE * (primal - lower))
            lower = max(lower, reduced.lower)
            trial = oracle.at(reduced.w, spare=spare)
            k = search(oracle, centre, trial, C, find)
            still = still + 1 if k == 0.0 else 0
            if still >= stall and self.nudge > 0.0:
                step = uphill(oracle, centre, trial, C, self.nudge, rise=primal - lower)
                unused, kept = (centre, kept) if kept else (None, centre)
                centre = oracle.between(centre, trial, step, spare=unused)
            else:
                centre = oracle.between(centre, trial, k, spare=centre)
            here = objective(oracle, centre, C)
            cut_at = self.cut_at or (ASIDE if k == 0.0 else 0.0)
            cut = oracle.between(centre, trial, cut_at, spare=trial) if cut_at else centre
            spare = trial
            bundle.add(oracle.planes(cut))
            bundle.drop_idle(PATIENCE)
            if oracle.n_free and objective(oracle, cut, C) < here:
                again = search(oracle, centre, cut, C, SEARCHES[self.line_search]())
                centre = oracle.between(centre, cut, again, spare=centre)
                here = objective(oracle, centre, C)
            if kept is None or here <= primal:
                kept, primal = None, here
            yield Iterate((kept or centre).w, primal, lower, len(bundle), step=k)
