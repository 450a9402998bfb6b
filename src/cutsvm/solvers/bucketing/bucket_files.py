"""Buckets of rows on disk, for `cutsvm.solvers.bucketing.buckets`: each is a file, for as long as the solver runs.

A dispatch reads the rows once, block by block, and writes each into its bucket: at most a few MB of rows are in memory.
Sums over rows inside the margin are made on the way. The files are mapped and read where they are. Before the first
dispatch the rows are read from their store.

No number of each row is held in memory: lengths are computed from the store's column of squares, labels and numbers are
mapped with their rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from cutsvm._utils.threads import cached_property
from cutsvm._utils.timing import timed
from cutsvm._utils.types import Ints, Vector
from cutsvm.matrix.protocol import RowBatch, Rows, RowsInMemory, RowsOnDisk, TemporaryStores, cut_blocks
from cutsvm.problem.oracle import Oracle
from cutsvm.solvers.bucketing.buckets import Buckets, by_bucket, distances
from cutsvm.solvers.bucketing.parts import Part, Plane


def buckets_of(oracle: Oracle, **settings: Any) -> Buckets:
    """The buckets for the rows of an oracle: in memory, or files."""
    return (BucketFiles if oracle.supports.streaming else Buckets)(oracle, **settings)


class BucketFiles(Buckets):
    """Buckets that are files in a temporary folder."""

    matrix: RowsOnDisk

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
                part = Part(rows, self.loss.of_signed(signed), numbers)
                part.low, part.high = filled.low[k], filled.high[k]
                part.totals = filled.totals[2 * k : 2 * k + 2] if k < inside else None
                parts.append(part)
        return parts

    def _batches(self, w: Vector, filled: _Filled) -> Iterator[RowBatch]:
        """All rows with the number of their bucket, some of one bucket at a time."""
        for places, rows in cut_blocks(self.matrix.blocks(), self._piece_rows):
            signed = self.loss.signed[places]
            v = distances(signed, self.oracle.scores_of(rows, w), self.moves.lengths_of(places))
            which, order = by_bucket(v, filled.edges)
            v, mine, taken = v[order], signed[order], rows.take(order)
            bounds = np.searchsorted(which, np.arange(len(filled.edges) + 2)).tolist()
            for k, (begin, end) in enumerate(pairwise(bounds)):
                if begin < end:
                    filled.low[k] = min(filled.low[k], float(v[begin:end].min()))
                    filled.high[k] = max(filled.high[k], float(v[begin:end].max()))
                    yield k, taken.part(begin, end), mine[begin:end], order[begin:end] + places.start
            if filled.inside:
                group = np.where(which < filled.inside, 2 * which.astype(np.int32) + (mine < 0.0), -1).astype(np.int32)
                taken.group_sums(mine, group, filled.totals)

    def _joined(self, near: list[Part]) -> Iterator[tuple[Rows, Vector]]:
        for part in near:
            yield part.matrix, part.loss.signed

    def _prefix(self, w: Vector, near: list[Part], limit: float, before: Plane) -> tuple[Plane, int]:
        found = super()._prefix(w, near, limit, before)
        if self.place is not None:
            self.folder.check_intact()
        return found

    @property
    def _piece_rows(self) -> int:
        """Rows of a few MB."""
        return min(self.settings.piece_rows, int(1 + self.settings.piece_bytes // self.folder.row_bytes))


class _Filled:
    """Of each bucket the range of v_i; of the first `inside` of them the sums of s_i (x_i, 1) of either label."""

    def __init__(self, edges: Vector, inside: int, totals: Vector) -> None:
        self.edges, self.inside, self.totals = edges, inside, totals
        self.low, self.high = [np.inf] * (len(edges) + 1), [-np.inf] * (len(edges) + 1)
