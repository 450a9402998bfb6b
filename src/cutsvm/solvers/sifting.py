"""Sifting: most rows are far from the margin, and need not be read again.

Minimises F(w) = |w|^2/2 + C R(w) over many rows by solving problems with few of them:

    1. w = the solution for a random sample of the rows, not very exact
    2. one pass over all rows at w. U = the rows near the margin (several classes: those whose choice is not clear);
       the others are replaced by what they contribute as long as they stay on their side (`cutsvm.sifted`): R_U <= R
    3. w = argmin |w|^2/2 + C R_U(w), by the inner solver; its lower bound is one of F too
    4. one pass over all rows at w gives F(w); w_b = argmin of F on the half-line from the last w_b through w
    5. rows that were on the other side join U; planes that the inner solver has stay valid. Go on with 3

Where it does not pay (few rows, or few for each feature) the inner solver gets all rows at once. Rows on disk may leave
room for a limited number of rows in memory: the sample and U are then smaller. If U outgrows the room, step 2 is done
anew at the better w; if that happens time and again, the inner solver gets all rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal, cast

import numpy as np

from cutsvm import validation
from cutsvm.losses import Siftable
from cutsvm.planes import Bundle
from cutsvm.risk import Point, Risk, new_bundle
from cutsvm.rows import WholeRows, in_order
from cutsvm.run import Iterate, Solver
from cutsvm.sifted import Sifted, can_sift
from cutsvm.solvers.common import better, goal, objective
from cutsvm.solvers.ocas import OCAS
from cutsvm.timing import timed
from cutsvm.types import Vector

# A sample of m rows gives w with an error of about sqrt(d / m), and the band must hold the rows that this error moves
# to the other side: SPREAD sqrt(d / m) of all n, WIDEST at most (covtype: 99 % of the rows that change sides after a
# sample of 4.5 % lie in the 16 % nearest to the margin). m + n sqrt(d / m) is least near m = (n sqrt(d))^(2/3).
SPREAD, WIDEST = 3.5, 0.2
LOOK = 10_000  # rows that the band is measured on
# The sample has so many rows of each class at least, if there are as many: with 0.9 % positives they matter most.
OF_EACH = 1000
# The sample's problem is solved to this relative gap: more exactly it would be exact about the wrong problem. If that
# takes too many steps, what is there must do.
SAMPLE_TOL, SAMPLE_STEPS = 3e-3, 200
# The inner problem is solved to INNER of the gap asked for, or to LEFT of the one that is left, if that is more.
INNER, LEFT = 0.3, 0.03
# Rows, and rows for each feature: with fewer there is nothing to gain.
FEW, MANY = 20_000, 20
# Shares of the room in memory for the sample and for the first U, which is to grow; how often it may outgrow the room.
SAMPLE_ROOM, FIRST_ROOM, CROWDED = 0.8, 0.5, 3


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

    def __call__(
        self, risk: Risk, C: float, bundle: Bundle | None = None, *, start: Vector | None = None, aim: float = 0.0
    ) -> Iterator[Iterate]:
        if not pays(risk):
            yield from self.inner(risk, C, bundle, start=start, aim=aim)
            return
        rng = np.random.default_rng(0)
        size = self.sample_size(risk)
        best = None if start is None else risk.at(start.copy())
        if best is None:
            nowhere, primal = np.zeros(risk.size), C * risk.loss.total  # F(0), which needs no scores
            yield Iterate(nowhere, primal, 0.0, 0)
            sample = draw(risk, size, rng)
            for inner in islice(self.inner(sample, C, aim=SAMPLE_TOL), SAMPLE_STEPS):
                yield Iterate(nowhere, primal, 0.0, inner.planes, pending=True)  # nothing is known yet of all rows
                if inner.gap <= SAMPLE_TOL:
                    break
            del sample  # its rows take memory
            best = risk.at(inner.w)
            if objective(risk, best, C) > primal:  # the sample was worth nothing
                best = better(risk, risk.at(nowhere), best, C, goal=0.0)[0]
        primal, lower, spare, crowded = objective(risk, best, C), 0.0, None, 0
        yield Iterate(best.w, primal, lower, 0, swept=best.swept)
        sifted = Sifted(risk, best, self.width(risk, best, size, rng))
        planes = new_bundle(risk, C)
        while True:
            for inner in self.inner(sifted.risk, C, planes, start=best.w, aim=INNER * aim):
                lower = max(lower, inner.lower)
                yield Iterate(best.w, primal, lower, inner.planes, swept=best.swept)
                if inner.primal - inner.lower <= max(INNER * aim * primal, LEFT * (primal - inner.lower)):
                    break
            trial = risk.score(inner.w.copy(), spare=spare)
            fits = sifted.grow(trial)  # by the inner solution's own b: its bound knows no other
            best, spare, k = better(risk, best, risk.settle(trial), C, goal=goal(lower, aim))
            primal = objective(risk, best, C)
            yield Iterate(best.w, primal, lower, inner.planes, step=k, swept=best.swept)
            if fits:
                continue
            crowded += 1
            del sifted, planes  # their rows take memory
            if crowded > CROWDED:
                break
            sifted, planes = Sifted(risk, best, self.width(risk, best, size, rng)), new_bundle(risk, C)
        for iterate in self.inner(risk, C, bundle, start=best.w, aim=aim):
            lower = max(lower, iterate.lower)
            yield replace(iterate, lower=lower)

    def sample_size(self, risk: Risk) -> int:
        n, d, room = risk.rows.n, risk.size, cast("WholeRows", risk.rows).room
        size = int(self.sample * n) if self.sample != "auto" else round((n * d**0.5) ** (2 / 3))
        return max(1, size if room is None else min(size, int(SAMPLE_ROOM * room)))

    def width(self, risk: Risk, point: Point, size: int, rng: np.random.Generator) -> float:
        """The width of a band that holds the share `band` of the rows, measured on some of them."""
        share = min(WIDEST, SPREAD * (risk.size / size) ** 0.5) if self.band == "auto" else self.band
        room = cast("WholeRows", risk.rows).room
        if room is not None:
            share = min(share, FIRST_ROOM * room / risk.rows.n)
        loss = cast("Siftable", risk.loss)
        return float(np.quantile(loss.distances(point.scores, rng.integers(0, risk.rows.n, LOOK)), share))


def pays(risk: Risk) -> bool:
    """Whether few rows can stand for all."""
    return can_sift(risk) and risk.rows.n >= max(FEW, MANY * risk.size)


@timed("sift")
def draw(risk: Risk, size: int, rng: np.random.Generator) -> Risk:
    """The risk of a random sample, whose classes weigh what they weigh in all; a rare class must not get lost."""
    rows, loss = cast("WholeRows", risk.rows), cast("Siftable", risk.loss)
    chosen = in_order(rng.integers(0, rows.n, size))
    drawn = loss.take(chosen)
    more = [chosen]
    rest = OF_EACH if rows.room is None else int((1.0 - SAMPLE_ROOM) * rows.room / loss.labels)
    least = min(OF_EACH, rest)
    for label in range(loss.labels):
        if np.count_nonzero(drawn.side(label)) < least:
            of_class = np.flatnonzero(loss.side(label))
            few = len(of_class) <= least
            more.append(of_class if few else of_class[rng.integers(0, len(of_class), least)])
    if len(more) > 1:
        chosen = in_order(np.concatenate(more))
        drawn = loss.take(chosen)
    factors = np.ones(len(chosen))
    for label, total in enumerate(loss.label_totals()):
        mine = drawn.side(label)
        if total > 0.0:
            factors[mine] = total / np.abs(drawn.masses[mine]).sum()
    return risk.over(rows.take(chosen).fast(), loss.take(chosen, factors))
