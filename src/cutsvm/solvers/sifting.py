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
from typing import Literal

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

# A sample of m rows gives w with an error of about sqrt(d / m), and the band must hold the rows that this error moves to
# the other side: SPREAD sqrt(d / m) of all n, WIDEST at most. m + n sqrt(d / m) is least near m = (n sqrt(d))^(2/3).
SPREAD, WIDEST = 3.5, 0.2
# The sample's problem is solved to this relative gap.
SAMPLE_TOL = 3e-3
# The inner problem is solved to this share of the gap that is asked for, or of the gap that is left.
INNER, LEFT = 0.3, 0.03
# The sample has so many rows of each class at least, if there are as many.
OF_EACH = 1000
FEW, MANY = 20_000, 20  # rows, and rows for each feature: with fewer there is nothing to gain


@dataclass(frozen=True, kw_only=True)
class Sifting:
    """Sifting around an inner solver; `sample` and `band` are shares of the rows."""

    inner: Solver = field(default_factory=OCAS)
    sample: float | Literal["auto"] = "auto"
    band: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        for name in ("sample", "band"):
            if (share := getattr(self, name)) != "auto":
                validation.positive(name, share)

    def __call__(
        self, risk: Risk, C: float, bundle: Bundle | None = None, *, start: Vector | None = None, aim: float = 0.0
    ) -> Iterator[Iterate]:
        if not pays(risk):
            yield from self.inner(risk, C, bundle, start=start, aim=aim)
            return
        rng = np.random.default_rng(0)
        size = self.sample_size(risk)
        w = self.solve_sample(risk, C, size, rng) if start is None else start.copy()
        best, spare = risk.at(w), None
        primal, lower = objective(risk, best, C), 0.0
        yield Iterate(best.w, primal, lower, 0, swept=best.swept)
        sifted = SiftedRisk(risk, best, self.width(risk, best, size, rng))
        bundle = Bundle(risk.size, risk.n_free)
        while True:
            for inner in self.inner(sifted, C, bundle, start=best.w, aim=INNER * aim):
                lower = max(lower, inner.lower)
                yield Iterate(best.w, primal, lower, inner.planes, swept=best.swept)
                if inner.primal - inner.lower <= max(INNER * aim * primal, LEFT * (primal - inner.lower)):
                    break
            trial = risk.at(inner.w, spare=spare)
            sifted.grow(trial)
            best, spare, k = better(risk, best, trial, C, goal=lower / (1.0 - aim))
            primal = objective(risk, best, C)
            yield Iterate(best.w, primal, lower, inner.planes, step=k, swept=best.swept)

    def sample_size(self, risk: Risk) -> int:
        n, d = risk.rows.n, risk.rows.d
        return int(self.sample * n) if self.sample != "auto" else round((n * d**0.5) ** (2 / 3))

    def solve_sample(self, risk: Risk, C: float, size: int, rng: np.random.Generator) -> Vector:
        """w for a sample of the rows, which weigh as much as all."""
        sample = draw(risk, size, rng)
        for iterate in self.inner(sample, C, aim=SAMPLE_TOL):
            if iterate.gap <= SAMPLE_TOL:
                break
        return iterate.w

    def width(self, risk: Risk, point: Point, size: int, rng: np.random.Generator) -> float:
        """The width of a band that holds the share `band` of the rows, measured on some of them."""
        share = self.band
        if share == "auto":
            share = min(WIDEST, SPREAD * (risk.rows.d / size) ** 0.5)
        some = rng.integers(0, risk.rows.n, 10_000)
        f = point.scores[some]
        slack = np.abs(1.0 - np.copysign(f, f * risk.loss.signed[some]))
        return float(np.quantile(slack, share))


def pays(risk: Risk) -> bool:
    """Whether few rows can stand for all."""
    rows = risk.rows
    return isinstance(risk.loss, Hinge) and hasattr(rows, "take") and rows.n >= max(FEW, MANY * rows.d)


@timed("sift")
def draw(risk: Risk, size: int, rng: np.random.Generator) -> Risk:
    """The risk of a random sample, whose classes weigh what they weigh in all; a rare class must not get lost."""
    signed = risk.loss.signed
    n = len(signed)
    rows = np.unique(rng.integers(0, n, size))
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


def better(risk: Risk, best: Point, trial: Point, C: float, goal: float) -> tuple[Point, Point, float]:
    """The trial if it meets the goal, else the best point on the half-line towards it; and the point not needed."""
    if objective(risk, trial, C) <= goal:
        return trial, best, 1.0
    k = search(risk, best, trial, C, guess=1.0)
    return risk.between(best, trial, k, spare=best), trial, k
