"""Batched cutting planes: an iteration of optimised cutting planes in one reading of the data.

OCAS (V. Franc, S. Sonnenburg, 2008) reads the data for the scores at w_t, searches the line from w_b to w_t with the
scores of all rows at hand, and reads rows again for the planes. Where the rows are on other machines no vector of
scores is at hand, and each of these steps would take a round. Here one round evaluates the risk and its planes at all
points of the line that may be wanted. It minimises F(w) = |w|^2/2 + C R(w):

    0. w_b = 0, w_t = the minimum for a random sample of the rows
    repeat
        1. one round: R and its planes at w_b + k (w_t - w_b), k in `places`
        2. w_b = the best of these points, or w_b itself; the planes at it and at the next place join the bundle, and
           with a free b those at the best point where R has a slope in b of the other sign
        3. w_t = argmin |w|^2/2 + C R_B(w), whose minimum is a lower bound of F

A loss with second derivatives H has a second line in the same round, from w_b to w_b - (1/H) grad F(w_b), with H of
the sample (`cutsvm.solvers.newton`); half of the points are on each.

A free b is a coordinate like the others. Nothing is kept between two rounds but the bundle and w_b.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import cast

import numpy as np

from cutsvm._utils.types import Array, Vector
from cutsvm.problem.losses import SmoothLoss
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Point, Tangent
from cutsvm.problem.readings import add_arrays
from cutsvm.solvers.batched import BatchSettings, presolve_batched
from cutsvm.solvers.cutting_planes import PlaneSettings, check_shards, choose_shards, too_steep
from cutsvm.solvers.newton import Factorised, Newton, NewtonSettings, second_derivatives
from cutsvm.solvers.ocas import OCAS
from cutsvm.solvers.path import iterates_on_path
from cutsvm.solvers.protocol import FitContext, Iterate, PathOrder, Solver, SolverBase, new_context

__all__ = ["Batched", "LineBatchSettings"]


@dataclass(frozen=True)
class LineBatchSettings:
    """places: k on the line from w_b (0) to w_t (1), the first line's and, with a second one, each line's.

    longer: times the last step, which the second line is to reach; 1 at most.
    numbers: floating-point numbers of the planes of one shard that a round may return; with more features there are
        fewer places.
    sample_tol, sample_iterations: the gap to which the sample's problem is solved, and a limit; path_tol: on a path.
    least_path: values of C from which rounds for all of them at once pay.
    """

    places: tuple[float, ...] = (
        *(0.01, 0.02, 0.03, 0.045, 0.065, 0.09, 0.12, 0.16),
        *(0.2, 0.26, 0.34, 0.44, 0.56, 0.7, 0.85, 1.0),
    )
    few_places: tuple[float, ...] = (0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0)
    longer: float = 10.0
    numbers: int = 1 << 22
    sample_tol: float = 3e-3
    sample_iterations: int = 200
    path_tol: float = 5e-4
    least_path: int = 3
    planes: PlaneSettings = field(default_factory=PlaneSettings)
    newton: NewtonSettings = field(default_factory=NewtonSettings)
    batch: BatchSettings = field(default_factory=BatchSettings)


class PartedSample:
    """Rows for the second derivatives: a sample, and where that is not enough all rows, which takes a round."""

    def __init__(self, full: Oracle, sample: Oracle) -> None:
        self._full, self._sample, self.size = full, sample, 1  # below that of all rows: these are asked for once

    def grow(self) -> None:
        self.size = 2

    def second_derivatives(self, point: Point) -> Array:
        if self.size > 1:
            found: Array = self._full.sum_parts(second_derivatives_of, add_arrays, w=point.w)
            return found
        return second_derivatives_of(0, self._sample, w=point.w)


def second_derivatives_of(first: int, part: Oracle, *, w: Vector) -> Array:
    """Of the rows of a part."""
    return second_derivatives(part, cast("SmoothLoss", part.loss).curvatures(part.score(w).scores))


class NewtonLine:
    """The second line: from w_b to `end`, which is a Newton step away, or less if whole ones were too long."""

    def __init__(self, oracle: Oracle, C: float, sample: Oracle, settings: LineBatchSettings) -> None:
        self._oracle, self._C, self._settings = oracle, C, settings
        self._directions = Factorised(oracle, C, PartedSample(oracle, sample), settings.newton)
        self._w: Vector = np.empty(0)
        self._p: Vector = np.empty(0)
        self._length = 1.0
        self.end: Vector | None = None  # None: nothing is known at w_b yet

    def advance(self, tangent: Tangent, step: float, *, moved: bool, followed: bool) -> None:
        """After a round: w_b has moved to the tangent's point, on this line if it was followed, or it has not."""
        if not moved and self.end is None:
            return
        if not moved:
            self._length *= self._settings.few_places[0]
        elif followed:
            self._length = min(1.0, self._settings.longer * step * self._length)
        if moved:
            free = self._oracle.size - self._oracle.n_free
            gradient = self._C * tangent.planes.slopes.sum(axis=0)
            gradient[:free] += tangent.w[:free]
            self._w = tangent.w
            self._p = -self._directions.scaled(gradient, Point(tangent.w, np.empty(0)))
        self.end = self._w + self._length * self._p


@dataclass(frozen=True, kw_only=True)
class Batched(SolverBase):
    """Batched cutting planes; seed: of the sample."""

    shards: int | str = "auto"
    seed: int = 0
    settings: LineBatchSettings = field(default=LineBatchSettings(), repr=False)

    def __post_init__(self) -> None:
        check_shards(self.shards)

    @property
    def requires(self) -> frozenset[str]:
        return frozenset()

    def seeded(self, seed: int) -> Batched:
        return replace(self, seed=seed)

    def order_path(self, oracle: Oracle, Cs: Sequence[float]) -> PathOrder:
        return PathOrder(sorted(Cs, reverse=True), choose_shards(oracle, max(Cs), self.shards))

    def presolve(self, context: FitContext) -> Iterator[None]:
        """For several C: the sample's path, and rounds that serve all C, from there."""
        if len(context.Cs) < self.settings.least_path or context.oracle.supports.pairs:
            return
        sample, inner = draw_sample(context.oracle, self.seed), self._inner(context.oracle)
        order = inner.order_path(sample, context.Cs)
        found: dict[float, Vector] = {}
        many = self.settings.sample_iterations
        for C, iterate in iterates_on_path(inner, sample, order.Cs, self.settings.path_tol, many):
            found[C] = iterate.w.copy()
            yield
        yield from presolve_batched(context, found, self.settings.batch)

    def __call__(self, context: FitContext, C: float) -> Iterator[Iterate]:
        oracle, bundle, settings = context.oracle, context.bundle, self.settings
        for planes in oracle.initial_planes() if not len(bundle) else ():
            bundle.add(planes)
        best = Iterate(np.zeros(oracle.size), 0.0, oracle.loss.total, bundle.proven(C), C, len(bundle))
        w_t, newton = yield from self._start(context, C, best)  # 0
        while True:
            lines = [w_t] if newton is None or newton.end is None else [w_t, newton.end]
            places = self._places(oracle, len(lines))
            points = [best.w + k * (end - best.w) for end in lines for k in places]
            found = oracle.tangents(points)  # 1
            heights = [oracle.penalty(own.w) + C * own.value for own in found]
            lowest = int(np.argmin(heights))
            improved = heights[lowest] < best.primal
            chosen = [lowest]  # 2
            step = places[lowest % len(places)] if improved else 0.0
            if improved:
                own = found[lowest]
                best = replace(best, w=own.w, penalty=oracle.penalty(own.w), risk=own.value, exact=True)
                if (lowest + 1) % len(places):
                    chosen.append(lowest + 1)
            if newton is not None:
                newton.advance(found[lowest], step, moved=improved, followed=lowest >= len(places))
            for number in self._balanced(oracle, chosen, found, heights):
                if not too_steep(oracle, found[number].planes, C):
                    bundle.add(found[number].planes)
            reduced = bundle.minimise(C, settings.planes.qp_share * (best.primal - best.lower))  # 3
            bundle.drop_idle(settings.planes.patience_with(oracle.shards, oracle.size, oracle.outputs))
            best = replace(best, lower=max(best.lower, reduced.lower), planes=len(bundle), step=step)
            yield best
            w_t = reduced.w

    @staticmethod
    def _balanced(oracle: Oracle, chosen: list[int], found: Sequence[Tangent], heights: Sequence[float]) -> list[int]:
        """With a free b, also the lowest point at which R has a slope in b of the other sign, if these have one sign.

        Where all planes of a bundle rise in b, or all fall, their minimum is no bound.
        """
        if oracle.n_free != 1:
            return chosen
        rises = [float(own.planes.slopes[:, -1].sum()) > 0.0 for own in found]
        if len({rises[number] for number in chosen}) > 1:
            return chosen
        others = [number for number in range(len(found)) if rises[number] != rises[chosen[0]]]
        return [*chosen, min(others, key=heights.__getitem__)] if others else chosen

    def most_points(self, oracle: Oracle) -> int:
        """Points of a round at most."""
        return max(lines * len(self._places(oracle, lines)) for lines in (1, 1 + oracle.supports.smooth))

    def _places(self, oracle: Oracle, lines: int) -> tuple[float, ...]:
        """As many as planes of this size allow: at least two."""
        all_places = self.settings.places if lines == 1 else self.settings.few_places
        many = max(2, min(len(all_places), self.settings.numbers // (lines * oracle.size)))
        return all_places[::-1][:: -(-len(all_places) // many)][::-1]

    def _start(
        self, context: FitContext, C: float, zero: Iterate
    ) -> Generator[Iterate, None, tuple[Vector, NewtonLine | None]]:
        """Where the first line ends, and the second derivatives of the sample."""
        oracle, settings = context.oracle, self.settings
        yield zero if context.start is not None else replace(zero, pending=True)
        if oracle.supports.pairs:
            return context.first if context.start is not None else self._steepest(oracle, C), None
        sample, start = draw_sample(oracle, self.seed), context.start
        if start is None:
            start = yield from minimum_of(
                sample, C, self._inner(oracle), zero, settings.sample_tol, settings.sample_iterations
            )
        if not oracle.supports.smooth or not Newton().has_matrix(oracle):
            return start, None
        return start, NewtonLine(oracle, C, sample, settings)

    def _steepest(self, oracle: Oracle, C: float) -> Vector:
        """The minimiser of the planes at 0."""
        bundle = oracle.new_bundle(C)
        tangent = oracle.tangents([np.zeros(oracle.size)])[0]
        bundle.add(tangent.planes)
        return bundle.minimise(C, 0.0).w

    @staticmethod
    def _inner(oracle: Oracle) -> Solver:
        return Newton() if oracle.supports.smooth else OCAS()


def draw_sample(oracle: Oracle, seed: int) -> Oracle:
    """Rows to begin with."""
    n, d = oracle.matrix.n, oracle.size
    return oracle.draw(round((n * d**0.5) ** (2 / 3)), 0, np.random.default_rng(seed))


def minimum_of(
    sample: Oracle, C: float, inner: Solver, zero: Iterate, tol: float, iterations: int
) -> Generator[Iterate, None, Vector]:
    """The minimum for a sample, up to a relative gap `tol`; yields that work is going on."""
    w = zero.w
    for iterate in islice(inner(new_context(inner, sample, [C], tol), C), iterations):
        yield replace(zero, pending=True)
        w = iterate.w
        if iterate.gap <= tol:
            break
    return w
