"""What the cutting-plane solvers share: the number of shards, how they begin, and their line search."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2, log10
from typing import cast

import numpy as np

from cutsvm._utils import validation
from cutsvm._utils.memory import planes_within
from cutsvm._utils.timing import timed
from cutsvm.problem.line_search import Curve, Exact, Search
from cutsvm.problem.losses import Line, MarginLoss
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.planes import OVERFLOW, Planes
from cutsvm.problem.point import Point
from cutsvm.solvers.protocol import FitContext

__all__ = [
    "PlaneSettings",
    "ShardCosts",
    "begin",
    "best_step",
    "check_shards",
    "choose_shards",
    "descend",
    "objective",
    "search",
    "target_objective",
    "too_steep",
]


@dataclass(frozen=True)
class PlaneSettings:
    """How a bundle is used.

    qp_share: the reduced problem is solved to this share of the gap that is left: a better answer would not be used.
    patience: number of reduced problems without weight after which a plane is dropped.
    patience_one_shard: the same for `OCAS` with several classes and one shard, half of it with two, and so on down to
        `patience`. Few shards have few planes, and where steps are short, the same planes are needed again. With two
        classes that saves hardly an iteration, and the reduced problems take longer.
    idle_values: numbers in idle planes, about, up to which there is such patience.
    paper_epsilon: the epsilon of Joachims' experiments, in units of the mean loss.
    rise: a lower bound that rises by more than this share of itself is no matter of rounding: a run has not stalled.
    """

    qp_share: float = 0.1
    patience: int = 6
    patience_one_shard: int = 50
    idle_values: int = 1 << 20
    paper_epsilon: float = 1e-3
    rise: float = 1e-10

    def patience_with(self, shards: int, size: int, classes: int) -> int:
        """The patience with this number of shards and classes in one problem, for w of this size."""
        longer = min(self.patience_one_shard // max(shards, 1), self.idle_values // size) if classes > 1 else 0
        return max(self.patience, longer)

    def rises(self, lower: float, before: float) -> bool:
        """Whether a bound is above the last one by more than rounding errors."""
        return lower > before * (1.0 + self.rise)


def check_shards(shards: int | str, buckets: int = 1, *, exact: bool = False) -> None:
    """Shards are "auto" or a whole number, at least 1; and 1 with buckets, and for a paper's exact algorithm."""
    if shards != "auto":
        validation.whole("shards", shards, least=1)
    validation.whole("buckets", buckets, least=1)
    if buckets > 1 and shards not in (1, "auto"):
        raise ValueError(f"shards={shards!r}, buckets={buckets!r}: with buckets there is one shard")
    if exact and shards not in (1, "auto"):
        raise ValueError(f"shards={shards!r}, exact=True: the paper's algorithm has one shard")


@dataclass(frozen=True)
class ShardCosts:
    """Costs in seconds, and limits."""

    entry: float = 0.5e-9  # per stored value of X and iteration: scores, and the rows that planes are made of
    row: float = 20e-9  # per row and iteration: line search, slopes
    call: float = 1e-3  # per iteration, whatever its size: Python between the kernels, threads that wake up
    step: float = 3e-6  # per step of the interior-point method, whatever its size
    plane: float = 8e-8  # per plane in such a step
    flop: float = 3.5e-11  # per multiplication in its factorisations
    steps: int = 8  # of them per reduced problem
    few_rows: int = 4000  # up to which one shard is enough: a weight is then the same as repetition to the last digits
    rows_per_shard: int = 250  # at least
    most: int = 128
    memory: float = 1 / 4  # of the memory of X, which planes may take
    least_planes: int = 6  # of a shard, that a limit on memory has to leave room for

    def within(self, oracle: Oracle) -> float:
        """The number of shards that there is memory for."""
        memory = oracle.plane_memory
        return np.inf if memory is None else max(1, planes_within(memory.size, oracle.size) // self.least_planes)

    def reduced(self, planes: float, size: int) -> float:
        """Seconds of one reduced problem."""
        flops = planes * min(float(size) ** 2, planes**2 / 6.0)
        return self.steps * (self.step + self.plane * planes + self.flop * flops)


def choose_shards(
    oracle: Oracle, C: float, shards: int | str = "auto", buckets: int = 1, *, exact: bool = False
) -> int:
    """The number asked for, or the power of two with the lowest estimate of passes x (sweeps + reduced problem).

    More shards make a tighter model of the risk and so fewer passes: roughly as P^-0.1 where C is small, P^-0.28 at
    C n = 1e4 and P^-0.44 at C n = 1e6. They also make a larger reduced problem. The costs were measured on one machine,
    and `benchmarks/shards.py` shows how near to the best number this comes; they do not depend on n_jobs, so that the
    answer does not.
    """
    costs, matrix, size = ShardCosts(), oracle.matrix, oracle.size
    most = costs.within(oracle)
    if exact or buckets > 1:
        return 1
    if shards != "auto":
        if int(shards) > most:
            raise ValueError(
                f"shards={shards}: memory_limit leaves room for planes of {size:,} numbers of {most} shards"
            )
        return int(shards)
    sweeps = costs.call + oracle.outputs * (costs.entry * matrix.entries + costs.row * matrix.n)
    decades = log10(max(C * oracle.loss.weight, 1e-300)) - 4.0  # of C n above 1e4
    power = min(0.5, max(0.1, 0.28 + 0.08 * decades))
    hard = min(1.0, max(0.0, (1.0 + decades) / 3.0))
    best, lowest = 1, sweeps + costs.reduced(_planes(1, size, hard), size)
    number = 2
    while matrix.n >= costs.few_rows and number <= min(costs.most, most, matrix.n // costs.rows_per_shard):
        planes = _planes(number, size, hard)
        if planes * size > costs.memory * matrix.entries:
            break
        cost = number**-power * (sweeps + costs.reduced(planes, size))
        if cost < lowest:
            best, lowest = number, cost
        number *= 2
    return best


def _planes(shards: int, size: int, hard: float) -> float:
    """Planes that stay in the bundle: some per shard, and for a hard problem enough to determine w."""
    return 12.0 * shards + 0.2 * hard * size * (1.0 + log2(shards))


def begin(context: FitContext, *, without_planes: bool = False) -> Point:
    """The first point. The planes that the oracle begins with are in the bundle, and those of the point, too, unless
    it is `without_planes`."""
    if not len(context.bundle):
        for planes in context.oracle.initial_planes():
            context.bundle.add(planes)
    first = context.evaluated_first() or context.oracle.at(context.first)
    if not without_planes:
        context.bundle.add(context.oracle.planes(first))
    return first


def objective(oracle: Oracle, point: Point, C: float) -> float:
    """F = |w|^2/2 + C R(w) at the point."""
    return oracle.penalty(point.w) + C * oracle.value(point)


def target_objective(lower: float, tol: float) -> float:
    """The largest F whose relative gap to the bound is `tol`."""
    return lower / (1.0 - tol) if tol < 1.0 else np.inf


def too_steep(oracle: Oracle, planes: Planes, C: float) -> bool:
    """Whether planes overflow at C only since their b is not the best one: a bundle is to do without them.

    At the best free b the coefficients of rows sum to 0, so that those of a class are at most the weight of the other.
    Where this is far less than its own, planes at another b are far steeper than any at the minimum.
    """
    if oracle.n_free != 1 or not oracle.supports.margin or not planes.overflow(C):
        return False
    signed = cast("MarginLoss", oracle.loss).signed
    lighter = min(float(signed[signed > 0.0].sum()), -float(signed[signed < 0.0].sum()))
    return 2.0 * C * lighter * max(1.0, oracle.magnitudes.norm) < OVERFLOW


def search(oracle: Oracle, start: Point, trial: Point, C: float, find: Search) -> float:
    """argmin over k >= 0 of F(start + k (trial - start)), as well as `find` finds it."""
    with timed("line_search"):
        k = find(*_towards(oracle, start, trial, C))
        while not oracle.covers(start, trial, k):
            k = find(*_towards(oracle, start, trial, C))
        return k


def best_step(oracle: Oracle, start: Point, trial: Point, C: float, k: float, rise: float) -> float:
    """The largest of k, k/4, ..., k/4^6 that raises F by no more than `rise`, or the last of them; one sweep."""
    with timed("line_search"):
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
