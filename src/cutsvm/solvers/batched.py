"""Cutting planes for many C at once: one pass over the rows serves them all.

Minimises F_C(w) = |w|^2/2 + C R(w) for many C from one point for each of them, the minimisers of a sample:

    1. one pass: R at all points, and the planes that touch it there; those that say something new join the bundle
    2. for each C:  w_b = the best point known,  w_t = argmin |w|^2/2 + C R_B(w), whose minimum is a lower bound
    3. a C whose gap is closed is done; one that would take too many more passes at its pace is left to others
    4. the next point of each C that goes on is w_b + mix (w_t - w_b). Go on with 1

A plane that is made for one C is a plane for its neighbours. `docs/solvers.md` has measurements.

A free b is a coordinate like the others here: it is not optimised at each point.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from cutsvm._utils.types import Vector
from cutsvm.problem.certificate import relative_gap
from cutsvm.solvers.cutting_planes import too_steep
from cutsvm.solvers.protocol import FitContext

__all__ = ["BatchSettings", "presolve_batched"]


@dataclass(frozen=True)
class BatchSettings:
    """mix: the step towards the bundle's minimiser; all of it (1) takes nearly twice as many passes.

    new: planes are new if at their point the bundle is lower by this share of the gap asked for.
    far: a C is left to others if the planes at its first point leave a larger gap than this,
    most_passes, patience: or if it would take more passes than this at the pace of its last `patience` ones.
    hopeless: times the gap asked for, where each point takes a pass of its own: if it is larger, that is all.
    """

    mix: float = 0.4
    new: float = 0.05
    far: float = 0.9
    most_passes: float = 12.0
    patience: int = 2
    hopeless: float = 5.0
    qp_share: float = 0.1
    least_tol: float = 1e-12  # in place of a gap of 0


def presolve_batched(context: FitContext, starts: Mapping[float, Vector], settings: BatchSettings) -> Iterator[None]:
    """Adds points and planes of all rows to the context, one pass at a time, from a start for each C."""
    for planes in context.oracle.initial_planes():
        context.bundle.add(planes)
    batch = context.oracle.supports.batch
    if batch == 1:
        yield from _one_by_one(context, starts, settings)
        return
    points = {C: starts[C] for C in sorted(starts)}
    gaps: dict[float, list[float]] = {C: [] for C in points}
    while points:
        for group in np.array_split(list(points), -(-len(points) // batch)):
            _visit(context, {C: points[C] for C in group.tolist()}, settings)  # 1
            yield
        steps = {C: _step(context, C, gaps[C], settings) for C in points}  # 2, 3, 4
        points = {C: point for C, point in steps.items() if point is not None}


def _visit(context: FitContext, points: Mapping[float, Vector], settings: BatchSettings) -> None:
    """One pass at the points of some C."""
    for C, tangent in zip(points, context.oracle.tangents(list(points.values())), strict=True):
        known = context.know(tangent.w, tangent.value)
        missing = C * (tangent.value - context.bundle.height(tangent.w))
        new = missing > settings.new * context.tol * known.objective(C)
        if new and not too_steep(context.oracle, tangent.planes, max(context.Cs)):
            context.bundle.add(tangent.planes)


def _step(context: FitContext, C: float, gaps: list[float], settings: BatchSettings) -> Vector | None:
    """The next point, or None if this C is done, or too slow; `gaps` are those of the last passes."""
    best = context.best(C)
    primal = best.objective(C)
    w_t, lower = context.bound(C, settings.qp_share * context.tol * primal)
    gaps.append(relative_gap(primal, lower))
    if w_t is None or gaps[-1] <= context.tol or gaps[0] > settings.far:
        return None
    if len(gaps) > settings.patience:
        pace = np.log(gaps[-1 - settings.patience] / gaps[-1]) / settings.patience
        if np.log(gaps[-1] / max(context.tol, settings.least_tol)) > settings.most_passes * pace:
            return None
    point: Vector = best.w + settings.mix * (w_t - best.w)
    return point


def _one_by_one(context: FitContext, starts: Mapping[float, Vector], settings: BatchSettings) -> Iterator[None]:
    """The starts alone, from the smallest C as far as they help."""
    for C in sorted(starts):
        if context.known_gap(C, settings.qp_share) <= context.tol:
            continue
        _visit(context, {C: starts[C]}, settings)
        yield
        if context.known_gap(C, settings.qp_share) > settings.hopeless * context.tol:
            return
