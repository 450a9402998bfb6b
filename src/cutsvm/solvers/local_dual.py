"""Local dual descent: coordinate descent on the rows of each shard by themselves, put together by cutting planes.

V. Smith, S. Forte, C. Ma, M. Takac, M. I. Jordan, M. Jaggi: CoCoA: a general framework for communication-efficient
distributed optimization, JMLR 18, 2018. For wide sparse rows, as of text, in parts: a round of coordinate descent where
the rows are does more than the planes of a whole line. It minimises F(w) = |w|^2/2 + C sum_p R_p(w), p the shards.

A dual vector alpha of the rows of shard p is a plane under R_p (`cutsvm.solvers.dcd`), whatever it is. Of a point w_t
that is a sum of contributions u_p of the shards, w_t = sum_p u_p, shard p improves its own and takes the others as they
are. With v = sum_i alpha_i y_i x_i over its rows,

    max over alpha of  sum_i C offset_i(-y_i alpha_i / C) - w_t.(v - u_p) - sigma |v - u_p|^2 / 2

which is the dual of C R_p(w) + |w - (w_t - sigma u_p)|^2 / (2 sigma): alpha times sigma, with C times sigma, is an
ordinary dual vector for coordinate descent that begins at w_t - sigma u_p in place of 0. CoCoA adds up or averages the
v of the shards, and needs a sigma as large as their number to be safe. Here the bundle does that, and any is safe:

    0. w_b = 0, w_t = the minimum for a random sample of the rows; u_p = w_t times the share of the rows that p has
    repeat
        1. one round: R at w_b + k (w_t - w_b), k in `places`; the planes at the k that was the best one in the last
           round; and for each shard the plane of its alpha after some epochs on the problem above, from alpha = 0
        2. w_b = the best of these points, or w_b itself; all the planes join the bundle
        3. w_t = argmin |w|^2/2 + C R_B(w), whose minimum is a lower bound of F;  u_p = -C sum_k x_k slope_k over the
           planes k of shard p, x their weights

Two planes of each shard come back in a round; the points go out to all, and to each shard its u_p. Workers keep nothing
between two rounds. A free b is a coordinate like the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cutsvm._utils.timing import timed
from cutsvm._utils.types import Vector
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.planes import Bundle, Planes
from cutsvm.problem.sums import Sums, add_sums
from cutsvm.solvers.cutting_planes import PlaneSettings, ShardCosts, check_shards, too_steep
from cutsvm.solvers.dcd import DCD, Dual
from cutsvm.solvers.line_batches import draw_sample, minimum_of
from cutsvm.solvers.protocol import FitContext, Iterate, PathOrder, SolverBase

__all__ = ["LocalDual", "LocalDualSettings"]


@dataclass(frozen=True)
class LocalDualSettings:
    """places: k on the line from w_b (0) to w_t (1), or beyond.

    sigma: see above. epochs: on each shard in a round, at most.
    nearer: times the last k at which planes were made, if none of the points was better than w_b.
    enough: the share of the gap that shards together may leave to each other: epochs end there.
    shards, plane_bytes, rounds: that many, if there are as many chunks of rows, and if the planes of so many rounds
        take no more bytes.
    sample_tol, sample_iterations: the gap to which the sample's problem is solved, and a limit.
    """

    places: tuple[float, ...] = (0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0, 1.2)
    sigma: float = 0.5
    epochs: int = 10
    nearer: float = 0.5
    enough: float = 0.02
    shards: int = 32
    plane_bytes: int = 1 << 32
    rounds: int = 12
    sample_tol: float = 3e-3
    sample_iterations: int = 20
    planes: PlaneSettings = field(default_factory=PlaneSettings)


@dataclass(frozen=True, kw_only=True)
class LocalDual(SolverBase):
    """Local dual descent; seed: of the sample, and of the order of the rows."""

    shards: int | str = "auto"
    seed: int = 0
    settings: LocalDualSettings = field(default=LocalDualSettings(), repr=False)
    requires = frozenset({"row_dual"})

    def __post_init__(self) -> None:
        check_shards(self.shards)

    def seeded(self, seed: int) -> LocalDual:
        return replace(self, seed=seed)

    def order_path(self, oracle: Oracle, Cs: Sequence[float]) -> PathOrder:
        settings = self.settings
        within = max(1, settings.plane_bytes // (16 * settings.rounds * oracle.size))
        many = min(settings.shards, within) if self.shards == "auto" else int(self.shards)
        return PathOrder(sorted(Cs, reverse=True), int(min(many, ShardCosts().within(oracle))))

    def __call__(self, context: FitContext, C: float) -> Iterator[Iterate]:
        oracle, bundle, settings = context.oracle, context.bundle, self.settings
        best = Iterate(np.zeros(oracle.size), 0.0, oracle.loss.total, bundle.proven(C), C, len(bundle))
        yield best if context.start is not None else replace(best, pending=True)
        w_t = context.start  # 0
        if w_t is None:
            sample, inner = draw_sample(oracle, self.seed), DCD(seed=self.seed)
            w_t = yield from minimum_of(sample, C, inner, best, settings.sample_tol, settings.sample_iterations)
        rows = np.diff(oracle.bounds)
        u = np.outer(rows / rows.sum(), w_t)
        seed, near = self.seed, 1.0
        while True:
            seed += 1
            places = (near, *settings.places)
            points = [best.w + k * (w_t - best.w) for k in places]
            enough = settings.enough * (best.primal - best.lower) / oracle.shards
            values, planes = self._round(oracle, C, points, w_t, u, enough, seed)  # 1
            lowest = int(np.argmin([oracle.penalty(w) + C * value for w, value in zip(points, values, strict=True)]))
            w, value, step = points[lowest], values[lowest], 0.0  # 2
            if oracle.penalty(w) + C * value < best.primal:
                best = replace(best, w=w, penalty=oracle.penalty(w), risk=value, exact=True)
                step = places[lowest]
            near = step if step > 0.0 else settings.nearer * near
            for own in planes:
                if not too_steep(oracle, own, C):
                    bundle.add(own)
            reduced = bundle.minimise(C, settings.planes.qp_share * (best.primal - best.lower))  # 3
            w_t, u = reduced.w, contributions(bundle, C, oracle.shards)
            bundle.drop_idle(settings.planes.patience)
            best = replace(best, lower=max(best.lower, reduced.lower), planes=len(bundle), step=step)
            yield best

    def _round(
        self,
        oracle: Oracle,
        C: float,
        points: Sequence[Vector],
        w: Vector,
        u: Vector,
        enough: float,
        seed: int,
    ) -> tuple[list[float], list[Planes]]:
        """R at the points; the planes at the first of them, and those of the shards' dual vectors."""
        local = LocalProblem(C, self.settings.sigma, self.settings.epochs, enough, seed)
        with timed("planes"):
            found = oracle.sum_shards(local_planes_of, add_sums, list(u), points=np.stack(points), w=w, problem=local)
        return found.values.tolist(), [found.planes(0), found.planes(1)]


def contributions(bundle: Bundle, C: float, shards: int) -> Vector:
    """u_p of the bundle's last solution: w is their sum, but for free coordinates."""
    u = np.zeros((shards, bundle.slopes.shape[1]))
    for k in np.flatnonzero(bundle.weights > 0.0).tolist():
        u[bundle.shard[k]] -= C * bundle.weights[k] * bundle.slopes[k]
    return u


@dataclass(frozen=True)
class LocalProblem:
    """What a shard does in a round: up to a number of epochs, or until the gap of its problem is small enough."""

    C: float
    sigma: float
    epochs: int
    enough: float
    seed: int

    def slopes(self, part: Oracle, w: Vector, u: Vector) -> Vector:
        """-alpha_i y_i / C of the rows of a part, after the epochs."""
        scaled = self.sigma * self.C
        dual = Dual(FitContext(part, [scaled]), scaled, DCD(seed=self.seed))
        dual.begin_at(w - self.sigma * u)
        dual.repeat(self.epochs, self.sigma * self.enough)
        return dual.within_limits()


def local_planes_of(shard: int, part: Oracle, u: Vector, *, points: Vector, w: Vector, problem: LocalProblem) -> Sums:
    """R of a part's rows at the points, their planes at the first, and those of their dual vector near w.

    This runs where the rows are.
    """
    first = part.tangents([points[0]])[0]
    values = [first.value, *(part.risk(point) for point in points[1:])]
    return Sums.of(shard, [first.planes, part.dual_planes(problem.slopes(part, w, u))], values)
