"""Oracles of rows that are in many parts, on this machine or on others: they know sums over the rows, and never a row.

Each task makes the oracle of one grain of rows where these are, and asks it: for tangents, for near rows, for a
precise value. What comes back is added up in a fixed order (`cutsvm.cluster.grains`): the same bits wherever the tasks
run. Shards are runs of grains.

A free b is a coordinate like the others here; it is not optimised at each point, which would take a round each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np
from numpy.random import Generator

from cutsvm._native import core
from cutsvm._utils.threads import cached_property
from cutsvm._utils.timing import timed
from cutsvm._utils.types import Ints, Vector
from cutsvm._utils.validation import spread_of_sizes
from cutsvm.cluster.fetch import rows_with_labels
from cutsvm.cluster.grains import Grain, RowBlock
from cutsvm.cluster.parts import Drawn, Parts
from cutsvm.matrix import CompressionSettings, PlaneMemory, RowsInMemory, as_rows
from cutsvm.matrix.magnitudes import Magnitudes
from cutsvm.matrix.protocol import COMPRESSION, Storage
from cutsvm.problem.certificate import gamma
from cutsvm.problem.loss_makers import LossMaker
from cutsvm.problem.losses import GroupedLoss, PairLoss
from cutsvm.problem.multiclass import CrammerSingerOracle, MultinomialOracle, _ClassMeans
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.pairs import PairOracle
from cutsvm.problem.planes import Planes
from cutsvm.problem.point import Intercept, Supports, Tangent
from cutsvm.problem.readings import add_arrays
from cutsvm.problem.sums import Sums, add_sums, shard_of

__all__ = ["PartedOracle", "PartedRows", "parted_oracle"]

Own = TypeVar("Own", bound="PartedOracle")


@dataclass(frozen=True, eq=False)
class PartedRows:
    """What a client knows of the rows. room: number of them that it may copy; None: any number."""

    parts: Parts
    room: int | None = None
    plane_memory: PlaneMemory | None = None

    held = False
    storage = Storage(disk=True)

    @property
    def n(self) -> int:
        return self.parts.facts.n

    @property
    def d(self) -> int:
        return self.parts.facts.d

    @property
    def entries(self) -> int:
        return self.parts.facts.entries

    @property
    def magnitudes(self) -> Magnitudes:
        return self.parts.facts.magnitudes

    @property
    def mean_square(self) -> float:
        return self.parts.facts.squares

    @property
    def spread(self) -> float:
        """max_j a_j / min_j a_j with a_j = max_i |x_ij|, over the features with a_j > 0; 1 if that is not known."""
        low, high = self.magnitudes.low, self.magnitudes.high
        return 1.0 if low is None or high is None else spread_of_sizes(np.maximum(-low, high))

    def fast(self, settings: CompressionSettings = COMPRESSION) -> PartedRows:
        return self


@dataclass(frozen=True, eq=False)
class PartSpec:
    """What a worker needs to know of a problem: it makes the oracle of some rows."""

    kind: type[Oracle]
    maker: LossMaker
    intercept: Intercept
    target_shift: float

    def oracle(self, grain: Grain) -> Oracle:
        block, weights, used = grain.block, grain.weights, self.maker.used(grain.block)
        if used is not None:
            block, weights = block.take(used), weights[used]
        assert block.y is not None
        loss = self.maker.loss(block.y, weights, block.qid)
        rows = grain.rows if used is None else as_rows(block.X)
        return self.kind(rows, loss, self.intercept, target_shift=self.target_shift, whole=False)


def on_grain(grain: Grain, *, spec: PartSpec, of_part: Callable[..., Any], **shared: Any) -> Any:
    """of_part(number of the first row, oracle of the grain): this runs where the rows are."""
    return of_part(grain.first, spec.oracle(grain), **shared)


def on_shard(
    grain: Grain, own: Any, *, spec: PartSpec, of_part: Callable[..., Any], bounds: Ints, **shared: Any
) -> Any:
    """of_part(number of the shard, oracle of some of its rows, what is for them alone)."""
    return of_part(shard_of(grain.first, bounds), spec.oracle(grain), own, **shared)


def tangents_of(first: int, part: Oracle, *, ws: Vector, bounds: Ints) -> Sums:
    """Of the rows of one grain, which are in one shard."""
    found = part.tangents(list(ws))
    planes = [tangent.planes for tangent in found]
    return Sums.of(shard_of(first, bounds), planes, [tangent.value for tangent in found])


def precise_risk_of(first: int, part: Oracle, *, W: Vector, b: Vector, error: float) -> Vector:
    return np.array(part.precise_risk(W, b, error))


def class_sums_of(first: int, part: Any, *, bounds: Ints) -> tuple[int, Vector]:
    """The shard of the grain, and for each class the sum of s_i (x_i, 1)."""
    sums = np.zeros((1, part.outputs, part.matrix.d + 1))
    part.matrix.group_sums(part.loss.weights, part.loss.y, sums[0])
    return shard_of(first, bounds), sums


def add_class_sums(*sums: tuple[int, Vector]) -> tuple[int, Vector]:
    first, last = sums[0][0], sums[-1][0] + len(sums[-1][1])
    total = np.zeros((last - first, *sums[0][1].shape[1:]))
    for begin, own in sums:
        total[begin - first : begin - first + len(own)] += own
    return first, total


def _with_more(drawn: Drawn, more: list[Drawn]) -> RowBlock:
    """The rows of all, each once, in the order of their numbers."""
    if not more:
        return drawn.block
    numbers = np.concatenate([drawn.numbers, *(own.numbers for own in more)])
    _, which = np.unique(numbers, return_index=True)
    return RowBlock.joined([drawn.block, *(own.block for own in more)]).take(which)


@dataclass(frozen=True, eq=False)
class PartedOracle(Oracle):
    """R(w) of rows in parts; `loss` is the maker's summary."""

    matrix: PartedRows  # type: ignore[assignment]
    maker: LossMaker = field(default=None, kw_only=True)  # type: ignore[assignment]
    kind: type[Oracle] = field(default=Oracle, kw_only=True)

    @cached_property
    def supports(self) -> Supports:
        own = self.loss.supports
        return Supports(
            dual=False,
            margin=own.margin,
            working_set=own.groups,
            streaming=True,
            scores=False,
            vectors=False,
            pairs=own.pairs,
            smooth=own.smooth,
            sparse=self.matrix.parts.facts.sparse,
            batch=core.POINTS,
            row_dual=own.dual,
        )

    @cached_property
    def spec(self) -> PartSpec:
        joint = self.outputs > 1 or self.intercept is not Intercept.FREE
        own = self.intercept if joint else Intercept.REGULARIZED  # b as it is given, and a slope in b
        return PartSpec(self.kind, self.maker, own, self.target_shift)

    def each_part(self, task: Callable[..., Any], add: Callable[..., Any], /, **shared: Any) -> Iterator[Any]:
        self.count_rows()
        return self.matrix.parts.each(on_grain, add, spec=self.spec, of_part=task, **shared)

    def sum_parts(
        self, task: Callable[..., Any], add: Callable[..., Any], /, *, here: bool = True, **shared: Any
    ) -> Any:
        """One round; here: the client adds up, otherwise the workers do."""
        self.count_rows()
        return self.matrix.parts.fold(on_grain, add, here=here, spec=self.spec, of_part=task, **shared)

    @cached_property
    def feature_moments(self) -> Vector | None:
        """Of the rows that the first reading has drawn."""
        rows = as_rows(self.matrix.parts.facts.sample.block.X)
        moments = rows.squared_sums(np.full(rows.n, 1.0 / max(1, rows.n)))[: rows.d]
        least = float(moments.mean()) / max(1, rows.n)  # for features that none of them has
        return np.maximum(moments, least) if least > 0.0 else None

    def measured(self, many: int, rng: Generator) -> tuple[RowsInMemory, GroupedLoss]:
        """Rows that the first reading has drawn for this: no round."""
        return self._known(self.matrix.parts.facts.measured.block)

    def drawn_rows(self, size: int, least: int, rng: Generator) -> tuple[RowsInMemory, GroupedLoss]:
        """Rows that the first reading has drawn; one more round for classes of which there are too few."""
        parts = self.matrix.parts
        more = rows_with_labels(parts, self.rare_labels(least), least, self.settings.seed)
        return self._known(_with_more(parts.facts.sample, more))

    def _known(self, block: RowBlock) -> tuple[RowsInMemory, GroupedLoss]:
        """Rows that are here, and their loss."""
        weights = np.ones(block.n) if block.weights is None else block.weights.copy()
        assert block.y is not None
        return as_rows(block.X), cast("GroupedLoss", self.maker.loss(block.y, weights))

    def rare_labels(self, least: int) -> list[Any]:
        """The labels that have fewer rows in the sample than `least`, and than in all: a round draws more of them."""
        if not self.loss.supports.groups:
            return []
        facts, mine = self.matrix.parts.facts, self._known(self.matrix.parts.facts.sample.block)[1]
        few = [label for label in range(mine.labels) if mine.label_mask(label).sum() < least]
        known = facts.sample.block.y
        labels = [y for label in few for y in self.maker.labels(label)]
        return [y for y in labels if np.count_nonzero(known == y) < facts.labels.count(y)]

    def shard_bounds(self, shards: int) -> Ints:
        """Shards are runs of chunks, as equal in number as possible."""
        layout = self.matrix.parts.layout
        edges = layout.edges[layout.chunks]
        chunks = len(edges) - 1
        return edges[np.linspace(0, chunks, min(max(1, shards), chunks) + 1).astype(np.int64)]

    def sum_shards(
        self, task: Callable[..., Any], add: Callable[..., Any], own: Sequence[Vector], /, **shared: Any
    ) -> Any:
        """One round; each chunk of a shard gets its share of the shard's vector."""
        self.count_rows()
        layout = self.matrix.parts.layout
        edges = layout.edges[layout.chunks]
        shard = np.searchsorted(self.bounds, edges[:-1], side="right") - 1
        shares = np.diff(edges) / np.diff(self.bounds)[shard]
        mine = [own[p] if share == 1.0 else share * own[p] for p, share in zip(shard, shares, strict=True)]
        here = 16 * self.size * len(mine) <= self.settings.sums_here  # two planes of each
        options = {"spec": self.spec, "of_part": task, "bounds": self.bounds, **shared}
        return self.matrix.parts.fold_chunks(on_shard, add, mine, here=here, **options)

    @property
    def _kind_in_memory(self) -> type[Oracle]:
        return self.kind

    def with_fast_matrix(self: Own, settings: CompressionSettings = COMPRESSION) -> Own:
        return self

    def risk(self, w: Vector) -> float:
        return self.tangents([w])[0].value

    def precise_risk(self, W: Vector, b: Vector, error: float) -> tuple[float, float]:
        loss, highest = self.sum_parts(precise_risk_of, add_arrays, W=W, b=b, error=error).tolist()
        return loss, highest * (1.0 + gamma(self._n_grains + 8))

    @property
    def _n_grains(self) -> int:
        return len(self.matrix.parts.layout.edges) - 1

    def tangents(self, ws: Sequence[Vector]) -> list[Tangent]:
        """R with each w's own b, and its planes, at any number of points in one round."""
        ws = [self._with_near_intercept(w) for w in ws]
        result = 8 * len(ws) * self.size
        here = result * len(self.matrix.parts.chunks) <= self.settings.sums_here
        with timed("planes"):
            found = self.sum_parts(tangents_of, add_sums, here=here, ws=np.stack(ws), bounds=self.bounds)
        return [Tangent(w, float(found.values[k]), self._level(found.planes(k))) for k, w in enumerate(ws)]

    def _level(self, planes: Planes) -> Planes:
        """With a free b, planes without the slope in b that is a rounding error, as where classes are of one weight.

        Left as it is, planes that all rise in b by next to nothing would prove nothing.
        """
        if self.n_free != 1:
            return planes
        return planes.balanced(self.settings.round_off * float(planes.errors[:, 1].mean()))


@dataclass(frozen=True, eq=False)
class _PartedClasses(PartedOracle):
    """Several classes in one problem."""

    @cached_property
    def _class_sums(self) -> Vector:
        """By shard and class: the sum of s_i (x_i, 1)."""
        return np.asarray(self.sum_parts(class_sums_of, add_class_sums, bounds=self.bounds)[1])

    @cached_property
    def _class_means(self) -> _ClassMeans:
        return _ClassMeans.of_sums(self._class_sums.sum(axis=0), self.loss.total)


@dataclass(frozen=True, eq=False)
class PartedCrammerSinger(_PartedClasses, CrammerSingerOracle):
    """With the hinge loss of Crammer and Singer."""

    def initial_planes(self) -> list[Planes]:
        return [] if self.intercept is not Intercept.FREE else self._planes_of_classes(self._class_sums)


@dataclass(frozen=True, eq=False)
class PartedMultinomial(_PartedClasses, MultinomialOracle):
    """With the multinomial logistic loss."""


@dataclass(frozen=True, eq=False)
class PartedPairs(PartedOracle, PairOracle):
    """Of the pairs of queries, each of which is in one grain."""

    loss: PairLoss

    def value_error(self, size: float) -> float:
        """That of each query, and of adding up grains: a pair's difference of scores is at most 2 size."""
        most = self.loss.change(0.0, 1.0 + 2.0 * size)
        return self.loss.value_error(size) + gamma(self._n_grains + 8) * most


KINDS: dict[type[Oracle], type[PartedOracle]] = {
    Oracle: PartedOracle,
    PairOracle: PartedPairs,
    CrammerSingerOracle: PartedCrammerSinger,
    MultinomialOracle: PartedMultinomial,
}


def parted_oracle(
    kind: type[Oracle], rows: PartedRows, maker: LossMaker, intercept: Intercept, target_shift: float = 0.0
) -> PartedOracle:
    """The oracle of this kind over rows in parts."""
    summary = maker.summary(rows.parts.facts.labels)
    return KINDS[kind](rows, summary, intercept, target_shift=target_shift, maker=maker, kind=kind)
