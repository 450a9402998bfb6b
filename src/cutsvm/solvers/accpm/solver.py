"""The analytic-centre cutting-plane method (ACCPM).

P. Bialon: A linear Support Vector Machine solver for a large number of training examples, Control and Cybernetics 38
(2009), Algorithm 1, after Yu. Nesterov's method of 1995.

Minimises F(w) = |w|^2/2 + C R(w), written as (I1), (I2) or (E) (`cutsvm.solvers.accpm.oracles`), over x = (w, b) or
(w, b, z). A solution is known to be within some distance of 0. Repeat:

    1. from time to time: dispatch the rows into buckets (`cutsvm.solvers.bucketing.buckets`)
    2. gamma = oracle(x): the solution has gamma.(y - x) <= 0
    3. x = argmin Phi over the cuts so far, Phi = prox term - sum of ln of the distances (`analytic_center`)

until the geometric mean of the distances of x from its cuts is epsilon R: the paper stops when the mean of -ln of the
distances is 12, which is epsilon = exp(-12) = 6e-6 in units of its R. `epsilon=None` leaves the end to the certified
gap.

The bounds, which the paper has not: what a cut oracle sums up is a plane under R wherever it stopped reading, so it
goes into the bundle, and the bundle's minimum is a lower bound of F. The larger the bundle, the less often it is asked.
The upper bound is F at the best x where all of R was known: with (I1) at every x, with (I2) where all rows were read,
with (E) where no row was inside the margin.

What the paper leaves open. The distance R: by strong duality |w*|^2 <= C S with S the weight of all rows; some solution
has a row on the margin and so |b*| <= 1 + |w*| max |x_i|; and z* <= S. By default each kind of coordinate is measured
in its own of these, so that all are 1 at most, and R is the root of their number; with `one_radius`, as in the paper,
x is as it is and R^2 the sum of the squares. With `start` given coordinates are counted from there. Intercepts: b is a
coordinate of x as in the paper, regularised with w or free. If it is free, planes have a slope in b, and the bundle
balances them.

(E) has the same solution only if the rows can be separated and C is large enough. If not, the best separating w is
provably worse than some other w, and that is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from cutsvm._utils import validation
from cutsvm._utils.fields import fields_repr
from cutsvm._utils.types import Vector
from cutsvm.problem.planes import Bundle
from cutsvm.qp.sorted_planes import ReducedSolution
from cutsvm.solvers.accpm.analytic_center import Centre, CentreSettings
from cutsvm.solvers.accpm.oracles import ORACLES, Answer, CutOracle, Separating
from cutsvm.solvers.bucketing.bucket_files import buckets_of
from cutsvm.solvers.bucketing.buckets import BucketSettings
from cutsvm.solvers.cutting_planes import PlaneSettings, descend
from cutsvm.solvers.protocol import FitContext, Iterate, SolverBase


@dataclass(frozen=True)
class ACCPMSettings:
    """When bounds are computed.

    fresh: new planes for each plane in the bundle. own_share: (E) looks for a better point that does not separate the
    rows once less than this share of the gap can be its own.
    """

    fresh: float = 0.04
    own_share: float = 0.5
    centre: CentreSettings = field(default_factory=CentreSettings)
    buckets: BucketSettings = field(default_factory=BucketSettings)
    planes: PlaneSettings = field(default_factory=PlaneSettings)


@dataclass(frozen=True, kw_only=True, repr=False)
class ACCPM(SolverBase):
    """Analytic centres; `epsilon` is the mean distance from the cuts to stop at, in units of R.

    `both_sides` and `whiten` are not the paper's: fewer rows are then read (`cutsvm.solvers.bucketing.buckets`). The
    buckets of rows on disk are on disk too. `one_radius` is: x has one R, and not one for each kind of coordinate.
    """

    formulation: Literal["I1", "I2", "E"] = "I1"
    buckets: int = 16
    early_return: bool = True
    both_sides: bool = False
    whiten: bool = False
    one_radius: bool = False
    epsilon: float | None = None
    settings: ACCPMSettings = field(default=ACCPMSettings(), repr=False)
    requires = frozenset({"margin", "vectors"})

    __repr__ = fields_repr

    def __post_init__(self) -> None:
        validation.flags(self)
        validation.one_of("formulation", self.formulation, tuple(ORACLES))
        validation.whole("buckets", self.buckets, least=1)
        if self.epsilon is not None:
            validation.positive("epsilon", self.epsilon)

    def __call__(self, context: FitContext, C: float) -> Iterator[Iterate]:
        oracle, bundle = context.oracle, context.bundle
        if self.formulation == "E" and not len(bundle):
            bundle = oracle.new_bundle(C)  # (E) makes shards of its own, with which nobody else may go on
        early = self.early_return and self.formulation != "I1"
        options: dict[str, Any] = {"both_sides": self.both_sides, "whiten": self.whiten}
        with closing(buckets_of(oracle, count=self.buckets, settings=self.settings.buckets, **options)) as buckets:
            cut_oracle = ORACLES[self.formulation](buckets, C, early=early)
            yield from self._iterate(_State(cut_oracle, bundle, context, self))

    def _iterate(self, state: _State) -> Iterator[Iterate]:
        yield state.iterate()
        size, memory = len(state.scale), state.oracle.plane_memory
        allocate = np.zeros if memory is None else memory.allocator(size)
        centre = Centre(size, state.radius, self.settings.centre, allocate)
        while True:
            x = state.origin + state.scale * centre.x
            state.buckets.dispatch_if_due(x[: state.oracle.size])  # 1
            answer = state.cut_oracle(x)  # 2
            state.learn(x, answer)
            alive = centre.cut(state.scale * answer.gradient)  # 3
            if not alive:
                break
            satisfied = self.epsilon is not None and centre.mean_log_distance <= np.log(self.epsilon)
            yield state.iterate(satisfied=satisfied, pending=True)
        state.certify(tol=0.0)
        while True:  # nothing more can be had in float64
            yield state.iterate()


class _State:
    """What a run knows: the best point and F there, the planes and the bound; and the units of x."""

    def __init__(self, cut_oracle: CutOracle, bundle: Bundle, context: FitContext, solver: ACCPM) -> None:
        self.cut_oracle, self.buckets, self.settings = cut_oracle, cut_oracle.buckets, solver.settings
        self.context, self.bundle = context, bundle
        self.oracle, self.C = context.oracle, cut_oracle.C
        self.separating = isinstance(self.cut_oracle, Separating)
        if self.separating and len(self.bundle):
            raise ValueError('ACCPM(formulation="E") begins without planes')
        start = np.zeros(self.oracle.size) if context.start is None else context.start
        at_zero = not start.any()  # every row is inside the margin there
        self.best, self.risk = start, self.oracle.loss.total if at_zero else self.buckets.sums(start).loss
        self.primal = self.oracle.penalty(start) + self.C * self.risk
        self.lower, self.fresh = self.bundle.proven(self.C), 0
        if len(self.bundle):
            self.certify(tol=self.settings.planes.qp_share * self.primal)
        self._measure(start, one_radius=solver.one_radius)

    def _measure(self, start: Vector, *, one_radius: bool) -> None:
        """The origin and the unit of each coordinate, and the radius in these units that holds a solution."""
        oracle, d, total = self.oracle, self.oracle.size - self.oracle.n_free, self.oracle.loss.total
        longest = float(np.sqrt(self.C * total))  # |w*|
        far = min(float(np.linalg.norm(start[:d])) + longest, float(np.sqrt(2.0 * max(0.0, self.primal - self.lower))))
        units = [np.full(d, max(far, 1e-12 * longest))]
        if oracle.n_free:
            signed, plain = self.buckets.loss.signed, self.buckets.plain
            parts = validation.parts(len(signed))
            of_parts = (np.max(plain.lengths_of(part), where=signed[part] != 0.0, initial=0.0) for part in parts)
            wide = 1.0 + longest * float(max(of_parts))
            units.append(np.full(oracle.n_free, abs(float(start[-1])) + wide))
        if self.cut_oracle.extra:
            units.append(np.full(1, total))
        self.origin = np.append(start, np.zeros(self.cut_oracle.extra))
        self.scale, self.radius = np.concatenate(units), float(np.sqrt(len(units)))
        if one_radius:
            self.radius = float(np.linalg.norm([unit[0] for unit in units]))
            self.scale = np.ones(len(self.scale))

    def learn(self, x: Vector, answer: Answer) -> None:
        """The bounds after an answer of the cut_oracle."""
        if answer.risk is not None:
            w = x[: self.oracle.size]
            self._compare(w, answer.risk)
        if answer.planes is not None:
            self.bundle.add(answer.planes)
            self.fresh += 1
        if self.fresh > self.settings.fresh * len(self.bundle) or (self.separating and answer.risk is not None):
            reduced = self.certify(tol=self.settings.planes.qp_share * (self.primal - self.lower))
            if self.separating:
                self._doubt(reduced)
            else:
                self.bundle.drop_idle(self.settings.planes.patience)

    def _compare(self, w: Vector, risk: float) -> None:
        primal = self.oracle.penalty(w) + self.C * risk
        if primal < self.primal:
            self.best, self.risk, self.primal = w.copy(), risk, primal

    def certify(self, tol: float) -> ReducedSolution:
        """The bound of all planes so far."""
        reduced = self.bundle.minimise(self.C, tol=tol)
        self.lower, self.fresh = max(self.lower, reduced.lower), 0
        return reduced

    def _doubt(self, reduced: ReducedSolution) -> None:
        """(E): is a w that separates the rows the best one?"""
        assert isinstance(self.cut_oracle, Separating)
        gap = self.primal - self.lower
        if gap <= self.context.tol * self.primal or not len(self.bundle):
            return
        least = self.cut_oracle.bound(self.bundle, tol=self.settings.planes.qp_share * gap)
        if self.primal - least < self.settings.own_share * gap:
            # Towards the solution for the rows cut with F falls, until rows that were not cut with say no.
            here, there = self.oracle.at(self.best), self.oracle.at(reduced.w)
            point, _, _ = descend(self.oracle, here, there, self.C, target=0.0)
            self._compare(point.w, self.oracle.value(point))
        if least > self.primal * (1.0 + 1e-9):
            raise ValueError(
                f'formulation="E": no plane that separates the classes is a solution. |w|^2/2 is at least {least:.6g} '
                f"for any that does, and an objective of {self.primal:.6g} is known. The classes overlap, or "
                f'C={self.C:g} is too small for so thin a margin: use formulation="I1" or "I2"'
            )

    def iterate(self, *, satisfied: bool = False, pending: bool = False) -> Iterate:
        penalty, risk, planes = self.oracle.penalty(self.best), self.risk, len(self.bundle)
        return Iterate(self.best, penalty, risk, self.lower, self.C, planes, 1.0, satisfied, pending)
