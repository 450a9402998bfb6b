"""What the cutting-plane solvers share: how they begin, and their line search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutsvm._utils import validation
from cutsvm._utils.timing import timed
from cutsvm.problem.line_search import Curve, Exact, Search
from cutsvm.problem.losses import Line
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Point
from cutsvm.solvers.protocol import FitContext

__all__ = ["PlaneSettings", "begin", "best_step", "check_shards", "descend", "objective", "search", "target_objective"]


@dataclass(frozen=True)
class PlaneSettings:
    """How a bundle is used.

    qp_share: the reduced problem is solved to this share of the gap that is left: a better answer would not be used.
    patience: number of reduced problems without weight after which a plane is dropped.
    """

    qp_share: float = 0.1
    patience: int = 6


def check_shards(shards: int | str, buckets: int = 1) -> None:
    """Shards are "auto" or a whole number, at least 1; and 1 with buckets."""
    if shards != "auto":
        validation.whole("shards", shards, least=1)
    validation.whole("buckets", buckets, least=1)
    if buckets > 1 and shards not in (1, "auto"):
        raise ValueError(f"shards={shards!r}, buckets={buckets!r}: with buckets there is one shard")


def begin(context: FitContext) -> Point:
    """The first point; its planes, and those that the oracle begins with, are in the bundle."""
    if not len(context.bundle):
        for planes in context.oracle.initial_planes():
            context.bundle.add(planes)
    first = context.first_point()
    context.bundle.add(context.oracle.planes(first))
    return first


def objective(oracle: Oracle, point: Point, C: float) -> float:
    """F = |w|^2/2 + C R(w) at the point."""
    return oracle.penalty(point.w) + C * oracle.value(point)


def target_objective(lower: float, tol: float) -> float:
    """The largest F whose relative gap to the bound is `tol`."""
    return lower / (1.0 - tol) if tol < 1.0 else np.inf


@timed("line_search")
def search(oracle: Oracle, start: Point, trial: Point, C: float, find: Search) -> float:
    """argmin over k >= 0 of F(start + k (trial - start)), as well as `find` finds it."""
    k = find(*_towards(oracle, start, trial, C))
    while not oracle.covers(start, trial, k):
        k = find(*_towards(oracle, start, trial, C))
    return k


@timed("line_search")
def best_step(oracle: Oracle, start: Point, trial: Point, C: float, k: float, rise: float) -> float:
    """The largest of k, k/4, ..., k/4^6 that raises F by no more than `rise`, or the last of them; one sweep."""
    f = Curve(*_towards(oracle, start, trial, C))
    steps = [k * 0.25**m for m in range(7)]
    highest = f(0.0, *steps) + rise / C
    return next((step for step in steps if f(step) <= highest), steps[-1])


def _towards(oracle: Oracle, start: Point, trial: Point, C: float) -> tuple[Line, float, float, float]:
    """F / C on the line from start to trial, as loss, tilt, curvature and base: `cutsvm.problem.line_search.Search`."""
    d = oracle.size - oracle.n_free
    step = trial.w[:d] - start.w[:d]
    tilt, curvature = float(start.w[:d] @ step) / C, float(step @ step) / C
    return oracle.along(start, trial), tilt, curvature, oracle.penalty(start.w) / C


def descend(oracle: Oracle, best: Point, trial: Point, C: float, target: float) -> tuple[Point, Point, float]:
    """The trial if its F is at most the target, else the best point on the half-line through it; the point not needed
    any more; and the step."""
    if objective(oracle, trial, C) <= target:
        return trial, best, 1.0
    k = search(oracle, best, trial, C, Exact())
    return oracle.between(best, trial, k, out=best), trial, k
