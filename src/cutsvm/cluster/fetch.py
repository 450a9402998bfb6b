"""Rounds that bring some rows to the client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutsvm._utils.types import Ints, Vector
from cutsvm.cluster.facts import drawn
from cutsvm.cluster.grains import Grain, RowBlock
from cutsvm.cluster.parts import Drawn, Parts

__all__ = ["fetch", "rows_with_label", "rows_with_labels"]


def fetch(parts: Parts, numbers: Ints) -> RowBlock:
    """The rows with these numbers, which rise. Only chunks that have some of them are read."""
    if not len(numbers):
        return parts.facts.sample.block.part(0, 0)
    edges = parts.layout.edges[parts.layout.chunks]
    owners = np.searchsorted(edges, numbers, side="right") - 1
    chunks = np.unique(owners).tolist()
    wanted = [numbers[owners == chunk] for chunk in chunks]
    fingerprints = [parts.facts.fingerprints[chunk] for chunk in chunks]
    own = list(zip(fingerprints, wanted, strict=True))
    results = parts.executor.collect(parts.chunks.take(chunks).map(_rows, own), doing="fetch rows")
    return RowBlock.joined([block for found in results for block in found])


def _rows(chunk: Any, own: tuple[Sequence[bytes], Ints]) -> list[RowBlock]:
    expected, numbers = own
    found = []
    for grain in chunk.grains(expected):
        mine = numbers[(numbers >= grain.first) & (numbers < grain.first + grain.n)]
        if len(mine):
            found.append(grain.block.take(mine - grain.first))
    return found


def rows_with_label(parts: Parts, label: Any, many: int, seed: int) -> Drawn:
    """Up to `many` rows with this label and with weight, drawn at random; one round that reads all rows."""
    return rows_with_labels(parts, [label], many, seed)[0]


def rows_with_labels(parts: Parts, labels: Sequence[Any], many: int, seed: int) -> list[Drawn]:
    """Up to `many` rows with each of these labels, all in one round; none if there are no labels."""
    if not len(labels):
        return []
    found = parts.fold(draw_rows, _LowestOfEach(many), labels=tuple(labels), many=many, seed=seed)
    return [own.in_order() for own in found]


@dataclass(frozen=True, eq=False)
class _Ranked:
    """Rows with random ranks: the lowest of all are a draw without replacement."""

    ranks: Vector
    rows: Drawn

    def in_order(self) -> Drawn:
        order = np.argsort(self.rows.numbers, kind="stable")
        return Drawn(self.rows.numbers[order], self.rows.block.take(order))

    def lowest(self, many: int) -> _Ranked:
        if len(self.ranks) <= many:
            return self
        keep = np.sort(np.argsort(self.ranks, kind="stable")[:many])
        return _Ranked(self.ranks[keep], Drawn(self.rows.numbers[keep], self.rows.block.take(keep)))


def draw_rows(grain: Grain, *, labels: Sequence[Any], many: int, seed: int) -> tuple[_Ranked, ...]:
    """The rows of a grain with each label, as far as they may be among the lowest."""
    return tuple(_ranked(grain, label=label, many=many, seed=seed) for label in labels)


def _ranked(grain: Grain, *, label: Any, many: int, seed: int) -> _Ranked:
    y, weights = grain.block.y, grain.block.weights
    assert y is not None
    mine = y == label
    rows = np.flatnonzero(mine if weights is None else mine & (weights > 0.0))
    ranks = np.random.default_rng([seed, grain.number]).random(len(rows))
    return _Ranked(ranks, drawn(grain, rows)).lowest(many)


@dataclass(frozen=True)
class _Lowest:
    many: int

    def __call__(self, *several: _Ranked) -> _Ranked:
        some = [one for one in several if len(one.ranks)] or [several[0]]
        numbers = np.concatenate([one.rows.numbers for one in some])
        rows = Drawn(numbers, RowBlock.joined([one.rows.block for one in some]))
        return _Ranked(np.concatenate([one.ranks for one in some]), rows).lowest(self.many)


@dataclass(frozen=True)
class _LowestOfEach:
    many: int

    def __call__(self, *several: tuple[_Ranked, ...]) -> tuple[_Ranked, ...]:
        add = _Lowest(self.many)
        return tuple(add(*own) for own in zip(*several, strict=True))
