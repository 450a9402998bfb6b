"""Cutting planes for many C at once: a pass over the rows serves them all.

Minimises F_C(w) = |w|^2/2 + C R(w) for many C from one point for each of them, the minimisers of a sample:

    1. one pass: R at all points, and the planes that touch it there; those that tell something new join the bundle
    2. for each C:  w_b = the best point known,  w_t = argmin |w|^2/2 + C R_B(w), whose minimum is a lower bound
    3. a C whose gap is closed is done; one that would take too many more passes at its pace is left to others
    4. the next point of each C that goes on is w_b + MIX (w_t - w_b). Go on with 1

A plane that is made for one C is a plane for its neighbours. Of 20 C, 1e-4 <= C n <= 1e4, covtype has the 17 smaller
ones at a gap of 1e-3 in 5 passes and the 3 larger ones in 6; a fit by OCAS at the largest takes 10. A pass for 8 points
takes one to two times as long as one for a single point and its planes, for 16 half as long again (core/tangents.hpp).

A free b is a coordinate like the others here: nobody looks for the best b of a point.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from cutsvm._utils.types import Vector
from cutsvm.driver.path import SHARE, Trail
from cutsvm.driver.run import relative_gap
from cutsvm.problem.oracle import Oracle

__all__ = ["abreast"]

# The way towards the bundle's minimiser. All of it, as Joachims (2006) has it, took covtype 7 and 11 passes, not 5 and
# 6; from 0.2 to 0.6 there is little difference.
MIX = 0.4
# Planes are new if at their point the bundle is lower by this share of the gap asked for.
NEW = 0.05
# A C is left to others if the planes at its first point leave a larger gap than FAR, or if it would take more than MOST
# passes at the pace of its last PATIENCE ones.
FAR, MOST, PATIENCE = 0.9, 12.0, 2
TINY = 1e-12  # in place of a gap of 0
HOPELESS = 5.0  # times the gap asked for, where each point takes a pass of its own: if it is larger, that is all


def abreast(oracle: Oracle, starts: Mapping[float, Vector], aim: float) -> Iterator[None]:
    """Points and planes of all rows for the trail of the risk, one pass at a time; from a start for each C."""
    trail = oracle.trail
    assert trail is not None
    for planes in oracle.initial_planes():
        trail.bundle.add(planes)
    if oracle.abreast == 1:
        yield from _one_by_one(oracle, trail, starts, aim)
        return
    points = {C: starts[C] for C in sorted(starts)}
    gaps: dict[float, list[float]] = {C: [] for C in points}
    while points:
        for group in np.array_split(list(points), -(-len(points) // oracle.abreast)):
            _visit(oracle, trail, {C: points[C] for C in group.tolist()}, aim)
            yield
        steps = {C: _step(trail, C, aim, gaps[C]) for C in points}
        points = {C: point for C, point in steps.items() if point is not None}


def _visit(oracle: Oracle, trail: Trail, points: Mapping[float, Vector], aim: float) -> None:
    """One pass at the points of some C."""
    for C, tangent in zip(points, oracle.tangents(list(points.values())), strict=True):
        known = trail.know(oracle, tangent.w, tangent.value)
        if C * (tangent.value - trail.bundle.height(tangent.w)) > NEW * aim * known.objective(C):
            trail.bundle.add(tangent.planes)


def _step(trail: Trail, C: float, aim: float, gaps: list[float]) -> Vector | None:
    """The next point, or None if this C is done, or too slow; `gaps` are those of the last passes."""
    best = trail.best(C)
    primal = best.objective(C)
    target, lower = trail.look(C, SHARE * aim * primal)
    gaps.append(relative_gap(primal, lower))
    if target is None or gaps[-1] <= aim or gaps[0] > FAR:
        return None
    if len(gaps) > PATIENCE:
        pace = np.log(gaps[-1 - PATIENCE] / gaps[-1]) / PATIENCE
        if np.log(gaps[-1] / max(aim, TINY)) > MOST * pace:
            return None
    point: Vector = best.w + MIX * (target - best.w)
    return point


def _one_by_one(oracle: Oracle, trail: Trail, starts: Mapping[float, Vector], aim: float) -> Iterator[None]:
    """The starts alone, from the smallest C as far as they help."""
    for C in sorted(starts):
        if trail.gap(C, aim) <= aim:
            continue
        _visit(oracle, trail, {C: starts[C]}, aim)
        yield
        if trail.gap(C, aim) > HOPELESS * aim:
            return
