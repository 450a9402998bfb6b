"""Optimised cutting planes (OCAS).

V. Franc, S. Sonnenburg: Optimized cutting plane algorithm for support vector machines, ICML 2008, Algorithm 1.

Minimises F(w) = |w|^2/2 + C R(w). With R_t the planes so far, repeat:

    1. w_t  = argmin |w|^2/2 + C R_t(w), the reduced problem; its minimum is a lower bound
    2. w_b  = argmin of F on the half-line from the last w_b through w_t
    3. w_c  = (1 - cut_at) w_b + cut_at w_t
    4. add the planes that touch R at w_c, one per shard

until F(w_b) is close to the lower bound. One shard is the paper's algorithm; more shards make a tighter R_t and a
larger reduced problem. Beyond the paper: the reduced problem is solved only as well as the gap needs; planes that
carry no weight for a while are dropped; and if F(w_c) < F(w_b), which a free intercept makes possible (b is best at
every point, and does not run straight between two of them), step 2 is done once more, towards w_c.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from cutsvm import validation
from cutsvm.planes import Bundle
from cutsvm.risk import Risk
from cutsvm.run import Iterate
from cutsvm.solvers.common import PATIENCE, QP_SHARE, begin, check_shards, objective, search
from cutsvm.types import Vector


@dataclass(frozen=True, kw_only=True)
class OCAS:
    """Optimised cutting planes; `cut_at` is the paper's lambda."""

    line_search: str = "exact"
    shards: int | Literal["auto"] = "auto"
    cut_at: float = 0.1

    def __post_init__(self) -> None:
        if self.line_search in ("gca", "gca2", "tca"):
            raise NotImplementedError(f'line_search="{self.line_search}" is not available yet: use "exact"')
        validation.one_of("line_search", self.line_search, ("exact",))
        check_shards(self.shards)
        validation.positive("cut_at", self.cut_at)
        if self.cut_at > 1.0:
            raise ValueError(f"cut_at={self.cut_at!r}: expected at most 1")

    def __call__(
        self, risk: Risk, C: float, bundle: Bundle | None = None, *, start: Vector | None = None, aim: float = 0.0
    ) -> Iterator[Iterate]:
        bundle, best, primal = begin(risk, C, bundle, shards=self.shards, start=start)
        lower, k, cut = 0.0, 1.0, None
        yield Iterate(best.w, primal, lower, len(bundle))
        while True:
            reduced = bundle.minimise(C, tol=QP_SHARE * (primal - lower))
            lower = max(lower, reduced.lower)
            trial = risk.at(reduced.w, spare=cut)
            k = search(risk, best, trial, C, guess=k)
            best = risk.between(best, trial, k, spare=best)
            cut = risk.between(best, trial, self.cut_at, spare=trial)
            bundle.add(risk.planes(cut))
            bundle.drop_idle(PATIENCE)
            primal = objective(risk, best, C)
            if risk.n_free and objective(risk, cut, C) < primal:
                best = risk.between(best, cut, search(risk, best, cut, C, guess=1.0), spare=best)
                primal = objective(risk, best, C)
            yield Iterate(best.w, primal, lower, len(bundle), step=k)
