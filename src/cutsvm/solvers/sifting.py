"""Sifting: most rows are far from the margin, and need not be read again.

Minimises F(w) = |w|^2/2 + C R(w) over many rows by solving problems with few of them:

    1. w = the solution for a random sample of the rows, not very exact
    2. one pass over all rows at w. U = the rows near the margin; the others are replaced by what they contribute as
       long as they stay on their side (`cutsvm.sifted`). That gives R_U <= R
    3. w = argmin |w|^2/2 + C R_U(w), by the inner solver; its lower bound is one of F too
    4. one pass over all rows at w gives F(w); w_b = argmin of F on the half-line from the last w_b through w
    5. rows that were on the other side join U; planes that the inner solver has stay valid. Go on with 3

Where it does not pay (few rows, or as many features as rows) the inner solver gets all rows at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from cutsvm import validation
from cutsvm.losses import Hinge
from cutsvm.planes import Bundle
from cutsvm.risk import Point, Risk
from cutsvm.run import Iterate, Solver
from cutsvm.sifted import SiftedRisk
from cutsvm.solvers.common import objective, search
from cutsvm.solvers.ocas import OCAS
from cutsvm.timing import timed
from cutsvm.types import Vector

# The sample's problem is solved to this relative gap.
SAMPLE_TOL = 3e-3
# The inner problem is solved to this share of the gap that is asked for, or of the gap that is left.
INNER, LEFT = 0.3, 0.03
# The sample has so many rows of each class at least, if there are as many.
OF_EACH = 1000
FEW = 20_000  # rows: with fewer there is nothing to gain


@dataclass(frozen=True, kw_only=True)
class Sifting:
    """Sifting around an inner solver; `sample` and `band` are shares of the rows."""

    inner: Solver = field(default_factory=OCAS)
    sample: float = 0.05
    band: float = 0.15

    def __post_init__(self) -> None:
        for name in ("sample", "band"):
            validation.positive(name, getattr(self, name))

    def __call__(
        self, risk: Risk, C: float, bundle: Bundle | None = None, *, start: Vector | None = None, aim: float = 0.0
    ) -> Iterator[Iterate]:
        if not pays(risk):
            yield from self.inner(risk, C, bundle, start=start, aim=aim)
            return
        rng = np.random.default_rng(0)
        w = self.solve_sample(risk, C, rng) if start is None else start.copy()
        best = risk.at(w)
        primal, lower = objective(risk, best, C), 0.0
        yield Iterate(best.w, primal, lower, 0, swept=best.swept)
        sifted = SiftedRisk(risk, best, self.width(risk, best, rng))
        bundle = Bundle(risk.size, risk.n_free)
        while True:
            for inner in self.inner(sifted, C, bundle, start=best.w, aim=INNER * aim):
                lower = max(lower, inner.lower)
                yield Iterate(best.w, primal, lower, inner.planes, swept=best.swept)
                if inner.primal - inner.lower <= max(INNER * aim * primal, LEFT * (primal - inner.lower)):
                    break
            trial = risk.at(inner.w)
            best, k = better(risk, best, trial, C, goal=lower / (1.0 - aim))
            primal = objective(risk, best, C)
            sifted.grow(trial)
            yield Iterate(best.w, primal, lower, inner.planes, step=k, swept=best.swept)

    def solve_sample(self, risk: Risk, C: float, rng: np.random.Generator) -> Vector:
        """w for a sample of the rows, each with the weight of all that it stands for."""
        sample = draw(risk, self.sample, rng)
        for iterate in self.inner(sample, C, aim=SAMPLE_TOL):
            if iterate.gap <= SAMPLE_TOL:
                break
        return iterate.w

    def width(self, risk: Risk, point: Point, rng: np.random.Generator) -> float:
        """The band that holds the share `band` of the rows, measured on some of them."""
        some = rng.integers(0, risk.rows.n, 10_000)
        f = point.scores[some]
        slack = np.abs(1.0 - np.copysign(f, f * risk.loss.signed[some]))
        return float(np.quantile(slack, self.band))


def pays(risk: Risk) -> bool:
    """Whether few rows can stand for all."""
    return isinstance(risk.loss, Hinge) and hasattr(risk.rows, "take") and risk.rows.n >= FEW


@timed("sift")
def draw(risk: Risk, share: float, rng: np.random.Generator) -> Risk:
    """The risk of a random sample, whose classes weigh what they weigh in all; a rare class must not get lost."""
    signed = risk.loss.signed
    n = len(signed)
    rows = np.unique(rng.integers(0, n, int(share * n)))
    for side in (1.0, -1.0):
        if np.count_nonzero(side * signed[rows] > 0.0) < OF_EACH:
            of_class = np.flatnonzero(side * signed > 0.0)
            more = of_class if len(of_class) <= OF_EACH else of_class[rng.integers(0, len(of_class), OF_EACH)]
            rows = np.unique(np.concatenate([rows, more]))
    mine = signed[rows]
    excess = float(signed.sum())
    for side in (1.0, -1.0):
        of_class = side * mine > 0.0
        mine[of_class] *= 0.5 * (risk.loss.total + side * excess) / np.abs(mine[of_class]).sum()
    sample = Risk(
        risk.rows.take(rows).fast(), Hinge(mine, risk.threads), intercept=risk.intercept, threads=risk.threads
    )
    sample.whole = False
    return sample


def better(risk: Risk, best: Point, trial: Point, C: float, goal: float) -> tuple[Point, float]:
    """The trial if it meets the goal, else the best point on the half-line towards it."""
    if objective(risk, trial, C) <= goal:
        return trial, 1.0
    k = search(risk, best, trial, C, guess=1.0)
    return risk.between(best, trial, k), k
