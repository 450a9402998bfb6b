"""The cutting-plane algorithm of SVM-perf.

T. Joachims: Training linear SVMs in linear time, KDD 2006, Algorithm 1.

Minimises F(w) = |w|^2/2 + C R(w). The paper's set W of constraints is our bundle of planes, its xi is R_t(w). Repeat:

    1. (w, xi) = argmin |w|^2/2 + C xi subject to the constraints in W, the reduced problem
    2. c       = the constraint that w violates most: the plane that touches R at w
    3. W       = W + c

until R(w) <= xi + epsilon: no constraint is violated by more than epsilon, where the paper's R is a mean over the
rows. `epsilon=None` leaves the end to the certified gap. The best w so far is what is yielded: F(w) need not fall.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from cutsvm._utils import validation
from cutsvm._utils.types import Vector
from cutsvm.driver.run import Iterate
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.planes import Bundle
from cutsvm.solvers._common import PATIENCE, QP_SHARE, begin, check_shards, cut, objective
from cutsvm.solvers.bucketing.near_rows import near_rows


@dataclass(frozen=True, kw_only=True)
class CPA:
    """Cutting planes; `epsilon` is the paper's, in units of the mean loss per row.

    buckets: above 1, only rows that may have crossed the margin are read (`cutsvm.solvers.bucketing.near_rows`), and
    there is one shard; both_sides and whiten say which rows that spares.
    """

    epsilon: float | None = None
    shards: int | Literal["auto"] = "auto"
    buckets: int = 1
    both_sides: bool = True
    whiten: bool = True

    def __post_init__(self) -> None:
        check_shards(self.shards, self.buckets)
        if self.epsilon is not None:
            validation.positive("epsilon", self.epsilon)

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
        bundle, best, primal = begin(oracle, C, bundle, shards=self.shards, start=start)
        lower = bundle.proven(C)
        yield Iterate(best.w, primal, lower, len(bundle))
        while True:
            reduced = bundle.minimise(C, tol=QP_SHARE * (primal - lower))
            lower = max(lower, reduced.lower)
            trial = oracle.at(reduced.w)
            excess = (oracle.value(trial) - reduced.risk) / oracle.loss.total
            bundle.add(oracle.planes(trial))
            bundle.drop_idle(PATIENCE)
            if (now := objective(oracle, trial, C)) < primal:
                best, primal = trial, now
            satisfied = self.epsilon is not None and excess <= self.epsilon
            yield Iterate(best.w, primal, lower, len(bundle), step=1.0, satisfied=satisfied)
