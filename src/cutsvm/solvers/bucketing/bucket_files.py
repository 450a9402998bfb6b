"""Buckets of rows on disk, for `cutsvm.solvers.bucketing.buckets`: each is a store of its own, for as long as the
solver runs.

A dispatch reads the rows once, block by block, and writes each into its bucket: at most a few MB of rows are in memory.
So where the buckets begin has to be known before: a sample of the rows, taken once, says it. Only the sizes of the
buckets are less exact than in memory; the range of a bucket's v_i is that of its own rows. Sums over rows inside the
margin are made on the way.

Before the first dispatch parts are runs of the store's own rows. The rows' lengths are the one number per row that is
held in memory; labels and numbers are columns of the buckets.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from cutsvm._utils.timing import timed
from cutsvm._utils.types import Ints, Vector
from cutsvm.matrix.protocol import RowsInMemory, RowsOnDisk, RowWriter, TemporaryStores
from cutsvm.problem.losses import MarginLoss
from cutsvm.problem.oracle import Oracle
from cutsvm.solvers.bucketing.buckets import Buckets, distances, ranges
from cutsvm.solvers.bucketing.parts import Part, StoredPart


def buckets_of(oracle: Oracle, **settings: Any) -> Buckets:
    """The buckets for the rows of an oracle: in memory, or files."""
    return (BucketFiles if oracle.supports.streaming else Buckets)(oracle, **settings)


class BucketFiles(Buckets):
    """Buckets that are stores in a temporary folder."""

    matrix: RowsOnDisk

    def _run(self, begin: int, end: int) -> Part:
        return StoredPart(self.oracle, self.matrix, self.loss.part(slice(begin, end)), range(begin, end), begin)

    @cached_property
    def folder(self) -> TemporaryStores:
        return self.matrix.temporary_stores()

    def close(self) -> None:
        self.parts = []
        self.folder.close()

    @cached_property
    def _sample(self) -> tuple[Ints, RowsInMemory]:
        many = min(self.matrix.n, self.settings.sample_rows, self._piece_rows)
        numbers = np.linspace(0, self.matrix.n - 1, many).astype(np.int64)
        return numbers, self.matrix.take(numbers)

    def _filled(self, w: Vector) -> list[Part]:
        self.oracle.count_rows()
        return self._written(w)

    @timed("sift")
    def _written(self, w: Vector) -> list[Part]:
        W, b = self.oracle.parts(w)
        edges = self._edges(W, float(b))
        inside = int(np.searchsorted(edges, 0.0)) + 1 if self.both_sides else 0  # number of buckets below 0
        totals = np.zeros((2 * inside, self.matrix.d + 1))
        with self.folder.create(len(edges) + 1, self.settings.pending_bytes) as stores:
            buckets = [_Bucket(store) for store in stores]
            for numbers, rows in self._pieces():
                scores = np.empty(rows.n)
                rows.scores(W, float(b), scores)
                signed = self.loss.signed[numbers]
                v = distances(signed, scores, self.moves.lengths[numbers])
                which = np.searchsorted(edges, v, side="right")
                for k in np.unique(which):
                    own = np.flatnonzero(which == k)
                    buckets[k].put(rows.take(own), signed[own], own + numbers.start, v[own])
                if inside:
                    group = np.where(which < inside, 2 * which + (signed < 0.0), -1).astype(np.int32)
                    rows.group_sums(signed, group, totals)
            for k in range(inside):
                buckets[k].totals = totals[2 * k : 2 * k + 2]
            return [bucket.part(self.oracle, self.loss) for bucket in buckets if bucket.store.rows]

    def _edges(self, W: Vector, b: float) -> Vector:
        """Where buckets begin, but the first: by the quantiles of the sample, and at 0."""
        numbers, rows = self._sample
        scores = np.empty(rows.n)
        rows.scores(W, b, scores)
        v = np.sort(distances(self.loss.signed[numbers], scores, self.moves.lengths[numbers]))
        inside = int(np.searchsorted(v, 0.0))
        begins = [begin for begin, _ in ranges(inside, rows.n, self.count) if begin not in (0, inside)]
        return np.unique(np.append(v[begins], 0.0))

    @property
    def _piece_rows(self) -> int:
        return int(1 + self.settings.piece_bytes // self.folder.row_bytes)

    def _pieces(self) -> Iterator[tuple[slice, RowsInMemory]]:
        """All rows, a few MB at a time."""
        many = self._piece_rows
        for mine, rows in self.matrix.blocks():
            for low, high in pairwise([*range(0, rows.n, many), rows.n]):
                yield slice(mine.start + low, mine.start + high), rows.part(low, high)


class _Bucket:
    """A bucket that is being filled."""

    def __init__(self, store: RowWriter) -> None:
        self.store = store
        self.low, self.high = np.inf, -np.inf
        self.totals: Vector | None = None

    def put(self, rows: RowsInMemory, signed: Vector, numbers: Ints, v: Vector) -> None:
        self.store.add(rows, signed, numbers)
        self.low, self.high = min(self.low, float(v.min())), max(self.high, float(v.max()))

    def part(self, full: Oracle, loss: MarginLoss) -> Part:
        """The bucket, full and closed, as a part of the rows."""
        rows, signed, numbers = self.store.finish()
        part = StoredPart(full, rows, loss.of_signed(signed), numbers)
        part.low, part.high, part.totals = self.low, self.high, self.totals
        return part
