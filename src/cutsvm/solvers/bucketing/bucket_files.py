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
from typing import Any

import numpy as np

from cutsvm._utils.timing import timed
from cutsvm._utils.types import Ints, Vector
from cutsvm.matrix.protocol import RowBatch, RowsInMemory, RowsOnDisk, TemporaryStores, cut_blocks
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

    @timed("sift")
    def _filled(self, w: Vector) -> list[Part]:
        self.oracle.count_rows()
        edges = self._edges(w)
        inside = int(np.searchsorted(edges, 0.0)) + 1 if self.both_sides else 0  # the number of buckets below 0
        filled = _Filled(edges, inside, np.zeros((2 * inside, self.matrix.d + 1)))
        batches = self._batches(w, filled)
        parts: list[Part] = []
        for k, stored in enumerate(self.folder.write(len(edges) + 1, self.settings.pending_bytes, batches)):
            if stored is not None:
                rows, signed, numbers = stored
                part = StoredPart(self.oracle, rows, self.loss.of_signed(signed), numbers)
                part.low, part.high = filled.low[k], filled.high[k]
                part.totals = filled.totals[2 * k : 2 * k + 2] if k < inside else None
                parts.append(part)
        return parts

    def _batches(self, w: Vector, filled: _Filled) -> Iterator[RowBatch]:
        """All rows with the number of their bucket, some of one bucket at a time."""
        for numbers, rows in cut_blocks(self.matrix.blocks(), self._piece_rows):
            signed = self.loss.signed[numbers]
            v = distances(signed, self.oracle.scores_of(rows, w), self.moves.lengths[numbers])
            which = np.searchsorted(filled.edges, v, side="right")
            for k in np.unique(which):
                own = np.flatnonzero(which == k)
                filled.low[k] = min(filled.low[k], float(v[own].min()))
                filled.high[k] = max(filled.high[k], float(v[own].max()))
                yield k, rows.take(own), signed[own], own + numbers.start
            if filled.inside:
                group = np.where(which < filled.inside, 2 * which + (signed < 0.0), -1).astype(np.int32)
                rows.group_sums(signed, group, filled.totals)

    def _edges(self, w: Vector) -> Vector:
        """Where buckets begin, but the first: by the quantiles of the sample, and at 0."""
        numbers, rows = self._sample
        scores = self.oracle.scores_of(rows, w)
        v = np.sort(distances(self.loss.signed[numbers], scores, self.moves.lengths[numbers]))
        inside = int(np.searchsorted(v, 0.0))
        begins = [begin for begin, _ in ranges(inside, rows.n, self.count) if begin not in (0, inside)]
        return np.unique(np.append(v[begins], 0.0))

    @property
    def _piece_rows(self) -> int:
        """Rows of a few MB."""
        return int(1 + self.settings.piece_bytes // self.folder.row_bytes)


class _Filled:
    """Of each bucket the range of v_i; of the first `inside` of them the sums of s_i (x_i, 1) of either label."""

    def __init__(self, edges: Vector, inside: int, totals: Vector) -> None:
        self.edges, self.inside, self.totals = edges, inside, totals
        self.low, self.high = [np.inf] * (len(edges) + 1), [-np.inf] * (len(edges) + 1)
