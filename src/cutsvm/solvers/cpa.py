"""The cutting-plane algorithm of SVM-perf.

T. Joachims: Training linear SVMs in linear time, KDD 2006, Algorithm 1.

Minimises F(w) = |w|^2/2 + C R(w). The paper's set W of constraints is our bundle of planes, its xi is R_t(w). Repeat:

    1. (w, xi) = argmin |w|^2/2 + C xi subject to the constraints in W, the reduced problem
    2. c       = the constraint that w violates most: the plane that touches R at w
    3. W       = W + c

until R(w) <= xi + epsilon: no constraint is violated by more than epsilon, where the paper's R is a mean over the
rows (Algorithm 1) or over the pairs (Algorithm 2: the same steps, with the loss of `RankingSVM`, `ROCAreaSVC` and
`OrdinalSVC`).

`exact=True` is the paper's algorithm: W is empty at first, so that the first w is 0; step 1 is solved until rounding
leaves nothing to gain; all constraints stay in W; and the answer is the w of the last step 1 (line 10), not the best
so far. Otherwise, beyond the paper: step 1 is solved only as well as the gap needs, planes that carry no weight for a
while are dropped, there may be several shards, and the best w so far is what is yielded, since F(w) need not fall.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Literal

from cutsvm._utils import validation
from cutsvm._utils.fields import fields_repr
from cutsvm.problem.oracle import Oracle
from cutsvm.solvers.bucketing.buckets import BucketSettings
from cutsvm.solvers.bucketing.near_rows import near_rows
from cutsvm.solvers.cutting_planes import PlaneSettings, begin, check_shards, choose_shards
from cutsvm.solvers.protocol import FitContext, Iterate, PathOrder, SolverBase


@dataclass(frozen=True, kw_only=True, repr=False)
class CPA(SolverBase):
    """Cutting planes; `epsilon` is the paper's, in units of the mean loss per row, or per pair.

    exact: the paper's Algorithms 1 and 2 to the letter, with one shard; each iteration is one of the paper's, and what
    it yields is the point of that iteration.
    epsilon=None: with `exact` 0.001, as in the paper; otherwise the certified gap alone ends a fit.
    buckets: above 1, only rows that may have crossed the margin are read (`cutsvm.solvers.bucketing.near_rows`), and
    there is one shard; both_sides and whiten say which rows need not be.
    """

    epsilon: float | None = None
    exact: bool = False
    shards: int | Literal["auto"] = "auto"
    buckets: int = 1
    both_sides: bool = True
    whiten: bool = True
    planes: PlaneSettings = field(default=PlaneSettings(), repr=False)
    bucketing: BucketSettings = field(default=BucketSettings(), repr=False)

    __repr__ = fields_repr

    def __post_init__(self) -> None:
        validation.flags(self)
        check_shards(self.shards, self.buckets, exact=self.exact)
        if self.epsilon is not None:
            validation.positive("epsilon", self.epsilon)

    @property
    def requires(self) -> frozenset[str]:
        return super().requires | ({"margin"} if self.buckets > 1 else set())

    def order_path(self, oracle: Oracle, Cs: Sequence[float]) -> PathOrder:
        """From the smallest C up, with shards for the largest."""
        return PathOrder(sorted(Cs), choose_shards(oracle, max(Cs), self.shards, self.buckets, exact=self.exact))

    def __call__(self, context: FitContext, C: float) -> Iterator[Iterate]:
        with near_rows(context, self) if self.buckets > 1 else nullcontext():
            oracle, bundle, settings = context.oracle, context.bundle, self.planes
            epsilon = settings.paper_epsilon if self.exact and self.epsilon is None else self.epsilon
            best = context.iterate(begin(context, without_planes=self.exact), C, bundle.proven(C))
            yield best
            while True:
                tol = 0.0 if self.exact else settings.qp_share * (best.primal - best.lower)
                reduced = bundle.minimise(C, tol)  # 1
                w = oracle.at(reduced.w)
                excess = oracle.value(w) - reduced.risk
                bundle.add(oracle.planes(w))  # 2, 3
                satisfied = epsilon is not None and excess <= epsilon * oracle.loss.total
                rises = settings.rises(reduced.lower, best.lower)  # F(w) need not fall meanwhile
                lower = max(best.lower, reduced.lower)
                now = context.iterate(w, C, lower, step=1.0, satisfied=satisfied, pending=rises)
                if self.exact:
                    best = now
                else:
                    bundle.drop_idle(settings.patience)
                    best = now.or_better(best)
                yield best
