"""What the cutting-plane solvers share: how they begin, and how hard they try in between."""

from __future__ import annotations

import numpy as np

from cutsvm._utils import validation
from cutsvm._utils.timing import timed
from cutsvm._utils.types import Vector
from cutsvm.problem.line_search import Curve, Exact, Search
from cutsvm.problem.losses import Line
from cutsvm.problem.oracle import Oracle, Point, new_bundle
from cutsvm.problem.planes import Bundle
from cutsvm.solvers.shards import choose_shards

# The reduced problem is solved to this share of the gap that is left: a better answer would not be used.
QP_SHARE = 0.1
# A plane that carried no weight in so many reduced problems is dropped.
PATIENCE = 6


def check_shards(shards: int | str, buckets: int = 1) -> None:
    """Shards are "auto" or a whole number, at least 1; and 1 with buckets."""
    if shards != "auto":
        validation.whole("shards", shards, least=1)
    validation.whole("buckets", buckets, least=1)
    if buckets > 1 and shards not in (1, "auto"):
        raise ValueError(f"shards={shards!r}, buckets={buckets!r}: with buckets there is one shard")


def begin(
    oracle: Oracle, C: float, bundle: Bundle | None, *, shards: int | str, start: Vector | None
) -> tuple[Bundle, Point, float]:
    """The bundle, the first point (`start`, or 0, which costs no pass) and F there.

    Planes that are there already keep the shards that they belong to.
    """
    if oracle.trail is None and (bundle is None or not len(bundle)):
        cut(oracle, C, shards)
    bundle = new_bundle(oracle, C) if bundle is None else bundle
    if not len(bundle):
        for planes in oracle.initial_planes():
            bundle.add(planes)
    first = first_point(oracle, start)
    bundle.add(oracle.planes(first))
    return bundle, first, objective(oracle, first, C)


def cut(oracle: Oracle, C: float, shards: int | str) -> None:
    """Cuts the rows into so many shards, or as many as suit this C."""
    oracle.split(choose_shards(oracle, C) if shards == "auto" else int(shards))


def first_point(oracle: Oracle, start: Vector | None) -> Point:
    """The point to start from, or 0; a walk over several C may have read the rows there already."""
    if start is None:
        return oracle.at(np.zeros(oracle.size))
    known = None if oracle.trail is None else oracle.trail.take(start)
    return known or oracle.at(start.copy())


def objective(oracle: Oracle, point: Point, C: float) -> float:
    """F = |w|^2/2 + C R(w) at the point."""
    return oracle.penalty(point.w) + C * oracle.value(point)


@timed("line_search")
def search(oracle: Oracle, start: Point, trial: Point, C: float, find: Search) -> float:
    """argmin over k >= 0 of F(start + k (trial - start)), as well as `find` finds it."""
    k = find(*_towards(oracle, start, trial, C))
    while not oracle.covers(start, trial, k):
        k = find(*_towards(oracle, start, trial, C))
    return k


@timed("line_search")
def uphill(oracle: Oracle, start: Point, trial: Point, C: float, k: float, rise: float) -> float:
    """The largest of k, k/4, ..., k/4^6 that raises F by no more than `rise`, or the last of them; one sweep."""
    f = Curve(*_towards(oracle, start, trial, C))
    steps = [k * 0.25**m for m in range(7)]
    highest = f(0.0, *steps) + rise / C
    return next((step for step in steps if f(step) <= highest), steps[-1])


def _towards(oracle: Oracle, start: Point, trial: Point, C: float) -> tuple[Line, float, float, float]:
    """F / C on the line from start to trial, as a loss, tilt, curvature and base: see
    `cutsvm.problem.line_search.Search`."""
    d = oracle.size - oracle.n_free
    step = trial.w[:d] - start.w[:d]
    tilt, curvature = float(start.w[:d] @ step) / C, float(step @ step) / C
    return oracle.along(start, trial), tilt, curvature, oracle.penalty(start.w) / C


def better(oracle: Oracle, best: Point, trial: Point, C: float, goal: float) -> tuple[Point, Point, float]:
    """The trial if it meets the goal, else the best point on the half-line towards it; and the point not needed."""
    if objective(oracle, trial, C) <= goal:
        return trial, best, 1.0
    k = search(oracle, best, trial, C, Exact())
    return oracle.between(best, trial, k, spare=best), trial, k


def goal(lower: float, aim: float) -> float:
    """The largest F whose relative gap to the bound is `aim`."""
    return lower / (1.0 - aim) if aim < 1.0 else np.inf
