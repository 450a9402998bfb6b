"""The first reading of all rows: what it finds, grain by grain, and the rows that it draws."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from cutsvm._utils.errors import DataError
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.cluster.grains import Grain, Layout, RowBlock, sum_of_grains
from cutsvm.cluster.parts import Drawn, Facts, LabelFacts
from cutsvm.cluster.protocol import Column, Executor, fold
from cutsvm.cluster.rows import RowForm, SparseRowsError, Targets
from cutsvm.matrix.magnitudes import Magnitudes

__all__ = ["DrawSettings", "add_labels", "drawn", "find_facts", "joined", "labels_of"]


def usual_sample(n: int, d: int) -> int:
    """(n sqrt(d))^(2/3) rows."""
    return int(np.ceil((n * np.sqrt(d)) ** (2.0 / 3.0)))


@dataclass(frozen=True)
class DrawSettings:
    """How many rows the first reading draws: `sample_size(n, d)` of up to `most_bytes`, and `measured` others."""

    sample_size: Callable[[int, int], int] = usual_sample
    most_bytes: int = 1 << 30
    measured: int = 10_000
    seed: int = 0
    most_labels: int = 100_000  # that are not taken for targets of regression

    def shares(self, n: int, d: int, row_bytes: float) -> tuple[float, float]:
        """The probabilities of a row to be in the two sets."""
        sample = min(self.sample_size(n, d), int(self.most_bytes / max(row_bytes, 1.0)))
        return min(1.0, sample / n), min(1.0, self.measured / n)


@dataclass(frozen=True, eq=False)
class GrainFacts:
    """What is found of some grains."""

    n: int
    entries: int
    weight: float
    squares: float
    labels: LabelFacts
    magnitudes: Magnitudes
    fingerprints: tuple[bytes, ...]
    drawn: tuple[tuple[Drawn, ...], ...] = field(default=())


def facts_of_grain(
    grain: Grain, *, targets: Targets, shares: Sequence[float], seed: int, most_labels: int
) -> GrainFacts:
    """The facts of one grain. Rows are drawn with a generator of its own, so that the draw does not depend on parts."""
    weights, squares = grain.weights, np.empty(grain.n)
    grain.rows.squares(squares)
    return GrainFacts(
        grain.n,
        int(grain.rows.entries),
        float(weights.sum()),
        float(squares.sum()),
        labels_of(grain.block.y, weights, targets, most_labels),
        grain.rows.magnitudes,
        (grain.fingerprint,),
        tuple((_draw(grain, share, [seed, grain.number, which]),) for which, share in enumerate(shares)),
    )


def _draw(grain: Grain, share: float, seed: list[int]) -> Drawn:
    if share >= 1.0:
        return Drawn(grain.first + np.arange(grain.n), grain.block)
    rows = np.flatnonzero(np.random.default_rng(seed).random(grain.n) < share)
    return drawn(grain, rows)


def drawn(grain: Grain, rows: Ints) -> Drawn:
    """Rows of a grain, by their numbers in it."""
    return Drawn(grain.first + rows, grain.block.take(rows))


def _no_labels() -> LabelFacts:
    none = np.empty(0)
    return LabelFacts(none, np.empty(0, dtype=np.int64), none, sums=none)


def labels_of(
    y: Array | None, weights: Vector, targets: Targets, most_labels: int = DrawSettings.most_labels
) -> LabelFacts:
    """What is known of the y of some rows."""
    if y is None or targets == "none":
        return _no_labels()
    used = weights > 0.0
    if not used.all():
        y, weights = y[used], weights[used]
    if targets != "classes":
        sums = np.array([own.sum() for own in (weights, weights * y, weights * np.abs(y), weights * y * y)])
        low, high = float(y.min(initial=np.inf)), float(y.max(initial=-np.inf))
        none = np.empty(0)
        return LabelFacts(none, np.empty(0, dtype=np.int64), none, low, high, sums)
    labels, codes = np.unique(y, return_inverse=True)
    _check_count(labels, most_labels)
    counts = np.bincount(codes, minlength=len(labels)).astype(np.int64)
    return LabelFacts(labels, counts, np.bincount(codes, weights, len(labels)).astype(np.float64), sums=np.empty(0))


def _check_count(labels: Array, most_labels: int) -> None:
    if len(labels) > most_labels:
        raise DataError(
            f"Unknown label type: y has more than {most_labels:,} distinct values, and classes were expected; "
            "LinearSVR fits numbers"
        )


def add_facts(*several: GrainFacts, most_labels: int) -> GrainFacts:
    """The facts of all, in this order."""
    first = several[0]
    return GrainFacts(
        sum(one.n for one in several),
        sum(one.entries for one in several),
        reduce(lambda total, one: total + one.weight, several[1:], first.weight),
        reduce(lambda total, one: total + one.squares, several[1:], first.squares),
        add_labels([one.labels for one in several], most_labels),
        reduce(lambda total, one: total.union(one.magnitudes), several[1:], first.magnitudes),
        tuple(own for one in several for own in one.fingerprints),
        tuple(
            tuple(own for one in several for own in one.drawn[which] if len(own.numbers))
            for which in range(len(first.drawn))
        ),
    )


def add_labels(several: Sequence[LabelFacts], most_labels: int = DrawSettings.most_labels) -> LabelFacts:
    """The same of several sets of rows together."""
    some = [one for one in several if len(one.labels)]
    if not some:
        sums = reduce(lambda total, one: total + one.sums, several[1:], several[0].sums)
        none = np.empty(0)
        low, high = min(one.low for one in several), max(one.high for one in several)
        return LabelFacts(none, np.empty(0, dtype=np.int64), none, low, high, sums)
    if len({one.labels.dtype.kind in "biuf" for one in some}) > 1:
        raise DataError("labels are text in some parts and numbers in others")
    labels = np.unique(np.concatenate([one.labels for one in some]))
    _check_count(labels, most_labels)
    counts, weights = np.zeros(len(labels), dtype=np.int64), np.zeros(len(labels))
    for one in some:
        places = np.searchsorted(labels, one.labels)
        counts[places] += one.counts
        weights[places] += one.weights
    return LabelFacts(labels, counts, weights, sums=np.empty(0))


def joined(several: Sequence[Drawn], none: RowBlock) -> Drawn:
    """All rows that were drawn. none: a block without rows, if there are none."""
    if not several:
        return Drawn(np.empty(0, dtype=np.int64), none)
    return Drawn(np.concatenate([one.numbers for one in several]), RowBlock.joined([one.block for one in several]))


def facts_of_chunk(chunk: Any, *, shares: Sequence[float], targets: Targets, seed: int, most_labels: int) -> Any:
    """The facts of the grains of a chunk; None if it has sparse rows, which was not known."""
    options = {"shares": shares, "targets": targets, "seed": seed, "most_labels": most_labels}
    try:
        return sum_of_grains(chunk, (), of_grain=_ChunkTask(options), add=_Add(most_labels))
    except SparseRowsError:
        return None


@dataclass(frozen=True)
class _ChunkTask:
    options: dict[str, Any]

    def __call__(self, grain: Grain) -> GrainFacts:
        return facts_of_grain(grain, **self.options)


@dataclass(frozen=True)
class _Add:
    """add_facts, or None where one of them is None."""

    most_labels: int

    def __call__(self, *several: GrainFacts | None) -> GrainFacts | None:
        known = [one for one in several if one is not None]
        return add_facts(*known, most_labels=self.most_labels) if len(known) == len(several) else None


def find_facts(
    executor: Executor, chunks: Column, layout: Layout, form: RowForm, row_bytes: float, settings: DrawSettings
) -> Facts | None:
    """One round that reads all rows; None if rows are sparse that were not known to be."""
    shares = settings.shares(int(layout.edges[-1]), form.d, row_bytes)
    options = {"shares": shares, "targets": form.targets, "seed": settings.seed, "most_labels": settings.most_labels}
    add = _Add(settings.most_labels)
    found = fold(executor, chunks.map(facts_of_chunk, **options), add, doing="facts", reads=True)
    if found is None:
        return None
    if form.weighted and not found.weight > 0.0:
        raise ValueError("sample_weight is zero for every row: there are no rows to fit")
    none = form.no_rows(found.labels.labels)
    sample, measured = (joined(own, none) for own in found.drawn)
    grains = layout.chunks.tolist()
    return Facts(
        found.n,
        form.d,
        found.entries,
        form.sparse,
        found.weight,
        form.weighted,
        found.labels,
        found.magnitudes,
        found.squares / found.n,
        sample,
        measured,
        [found.fingerprints[first:last] for first, last in itertools.pairwise(grains)],
        form.feature_names,
    )
