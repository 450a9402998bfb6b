"""Rows in a store on disk, swept block by block: the next block is read while the kernels work on this one.

Sums continue from block to block in the pieces and the order of rows in memory, so every result is the same
to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from numpy.typing import DTypeLike

from cutsvm._native import core
from cutsvm._utils.threads import ThreadPool
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.io.store.store import Store
from cutsvm.io.temporary_arrays import TemporaryArrays
from cutsvm.matrix.arrays import DenseRows, SparseRows, index_type
from cutsvm.matrix.magnitudes import Magnitudes
from cutsvm.matrix.protocol import COMPRESSION, Choices, CompressionSettings, PlaneMemory, Storage, cut_blocks
from cutsvm.matrix.stacked import RowsInParts, prefix_of
from cutsvm.matrix.temporary_stores import StoreFolder


@dataclass(frozen=True)
class StoreSettings:
    """How the blocks of a store are read."""

    max_rows: int = 1 << 18  # that are returned at a time: a block of narrow rows has millions
    gather_share: float = 1 / 16  # of the rows of a block: up to this share is read alone, more with the whole block
    copied_bytes: int = 1 << 22  # of a block with deleted rows, whose other rows are copied, at a time


class StoreRows(RowsInParts):
    """The rows of a store. At most three blocks are mapped at a time.

    room: number of rows that may be held in memory at once, by solvers that keep some; None: as many as they like.
    temporary: arrays with one entry per row, on disk, if there is no memory for them.
    plane_bytes: memory that planes and their reduced problem may take; None: any. Wide ones are in files.
    """

    storage = Storage(disk=True)
    settings = StoreSettings()

    def __init__(
        self,
        store: Store,
        threads: int = 1,
        *,
        room: int | None = None,
        temporary: TemporaryArrays | None = None,
        plane_bytes: int | None = None,
    ) -> None:
        self.store, self.threads, self.room, self.temporary = store, threads, room, temporary
        files = temporary or TemporaryArrays(store.path)
        self.plane_memory = None if plane_bytes is None else PlaneMemory(plane_bytes, files.zeros)
        self.n, self.d = store.shape
        self.entries = store.manifest.entries
        self.edges = store.edges
        self.spread = store.manifest.spread
        self._magnitudes: Magnitudes | None = None  # known once all blocks were read

    @property
    def held(self) -> bool:
        """Whether there is memory for a few numbers of each row."""
        return self.temporary is None

    def temporary_stores(self) -> StoreFolder:
        """For copies of rows, in a folder beside the store."""
        return StoreFolder(self.store, self.threads, self.vector)

    def vector(self, shape: int | tuple[int, int], dtype: DTypeLike = np.float64) -> Array:
        return np.empty(shape, dtype=dtype) if self.temporary is None else self.temporary.zeros(shape, dtype)

    def fast(self, settings: CompressionSettings = COMPRESSION) -> StoreRows:
        return self

    def blocks(self, which: Sequence[int] | None = None) -> Iterator[tuple[slice, DenseRows | SparseRows]]:
        """The rows of all blocks, or of these, settings.max_rows at a time: their places, and the rows."""
        if which is not None or self._magnitudes is not None:
            blocks = self._whole_blocks(range(len(self.edges) - 1) if which is None else which)
            yield from cut_blocks(blocks, self.settings.max_rows)
            return
        found: Magnitudes | None = None
        for mine, rows in cut_blocks(self._whole_blocks(range(len(self.edges) - 1)), self.settings.max_rows):
            found = rows.magnitudes if found is None else found.union(rows.magnitudes)
            yield mine, rows
        self._magnitudes = found

    by_part = blocks

    @property
    def magnitudes(self) -> Magnitudes:
        """Found in the first full pass over the blocks, which this property makes if there was none yet."""
        if self._magnitudes is None:
            for _ in self.blocks():
                pass
        assert self._magnitudes is not None
        return self._magnitudes

    def _whole_blocks(self, order: Sequence[int]) -> Iterator[tuple[slice, DenseRows | SparseRows]]:
        """These blocks; each is read while its predecessor is used."""
        if len(order) < 2:
            for k in order:
                yield from self._live(k, self.store.map_block(k))
                self.store.check_intact()
            return
        with ThreadPool(1) as reader:
            ahead = reader.submit(self.store.map_block, order[0])
            for position, k in enumerate(order):
                arrays = ahead.result()
                if position + 1 < len(order):
                    ahead = reader.submit(self.store.map_block, order[position + 1])
                yield from self._live(k, arrays)
                self.store.check_intact()  # of what was just read, and of the columns of labels and the like

    def _live(self, k: int, arrays: tuple[Array, ...]) -> Iterator[tuple[slice, DenseRows | SparseRows]]:
        """The rows of a block that are not deleted: all at once, or in pieces of which some are copied."""
        rows = self._as_rows(arrays)
        if self.store.is_whole(k):
            yield self._place(k), rows
            return
        for first, places in self.store.live_rows(k, self._piece(k, rows)):
            begin, end = int(places[0]), int(places[-1]) + 1
            found = rows.part(begin, end) if end - begin == len(places) else rows.take(places)
            yield slice(first, first + len(places)), found

    def _piece(self, k: int, rows: DenseRows | SparseRows) -> int:
        """The number of rows of a block that are copied at a time."""
        size = self.store.manifest.block_size(self.store.manifest.blocks[k])
        return max(1, min(self.settings.max_rows, self.settings.copied_bytes * rows.n // size))

    def _places(self, k: int, own: Ints) -> Ints:
        """The places in the file of a block of some of its rows that are not deleted, rising."""
        if self.store.is_whole(k):
            return own
        found, first = [own[:0]], int(self.edges[k])
        for number, places in self.store.live_rows(k):
            low, high = np.searchsorted(own, [number - first, number - first + len(places)])
            found.append(places[own[low:high] - (number - first)])
        return np.concatenate(found)

    def run(self, begin: int, end: int) -> Iterator[tuple[slice, DenseRows | SparseRows]]:
        """The rows from begin to end, settings.max_rows at a time: their places, and the rows."""
        first, last = np.searchsorted(self.edges, [begin, end - 1], side="right") - 1
        blocks: Iterable[tuple[slice, DenseRows | SparseRows]]
        if first == last:  # a few rows of a large block: the others are not read
            mine = self._place(int(first))
            many = self.settings.gather_share * (mine.stop - mine.start) < end - begin
            blocks = self._live(int(first), self.store.map_block(int(first), whole=many))
        else:
            blocks = self._whole_blocks(range(int(first), int(last) + 1))
        for mine, rows in blocks:
            stop = min(end, mine.stop)
            for low in range(max(begin, mine.start), stop, self.settings.max_rows):
                high = min(stop, low + self.settings.max_rows)
                yield slice(low, high), rows.part(low - mine.start, high - mine.start)
                self.store.check_intact()

    def prefix(
        self, signed: Vector, w: Vector, b: float, limit: float, slope: Vector, heights: Vector
    ) -> tuple[int, int]:
        """Of the first block no more is read than it takes; of the others all, while the one before is used."""
        if limit == np.inf:
            return super().prefix(signed, w, b, limit, slope, heights)
        first = cut_blocks(self._live(0, self.store.map_block(0, whole=False)), self.settings.max_rows)
        others = cut_blocks(self._whole_blocks(range(1, len(self.edges) - 1)), self.settings.max_rows)
        found = prefix_of(chain(first, others), signed, w, b, limit, slope, heights)
        self.store.check_intact()
        return found

    def _place(self, k: int) -> slice:
        return slice(int(self.edges[k]), int(self.edges[k + 1]))

    def _as_rows(self, arrays: tuple[Array, ...]) -> DenseRows | SparseRows:
        if len(arrays) == 1:
            return DenseRows(arrays[0], self.threads)
        values, columns, pointers = arrays
        return SparseRows((values, columns, pointers), self.d, self.threads)

    def accumulate(self, old: Vector, fresh: Vector, bounds: Ints, sums: Vector, moved: Vector) -> int:
        edges = core.cut_shards(bounds)
        pieces = len(edges) - 1
        partial, travel, read = np.zeros((pieces, sums.shape[1])), np.zeros(pieces), 0
        for mine, rows in self.blocks(self._where(old, fresh)):
            inside = np.clip(edges - mine.start, 0, rows.n)
            read += rows.add_pieces(old[mine], fresh[mine], inside, partial, travel)
        each = pieces // len(sums)
        for piece in range(pieces):
            sums[piece // each] += partial[piece]
            moved[piece // each] += travel[piece]
        return read

    def accumulate_choices(self, choices: Choices, bounds: Ints, sums: Vector, moved: Vector) -> int:
        read = 0
        for mine, rows in self.blocks(self._where(choices.old, choices.fresh)):
            inside = np.clip(bounds - mine.start, 0, rows.n)
            read += rows.accumulate_choices(choices.part(mine), inside, sums, moved)
        return read

    def _where(self, old: Array, fresh: Array) -> list[int]:
        """The blocks that have a row whose coefficient changed: the others are not read."""
        places = map(self._place, range(len(self.edges) - 1))
        return [k for k, mine in enumerate(places) if not np.array_equal(old[mine], fresh[mine])]

    def group_sums(self, weights: Vector, group: Array, sums: Vector) -> int:
        groups, read = len(sums), 0
        edges = core.group_edges(self.n, groups, self.d)
        partial = np.zeros(((len(edges) - 1) * groups, self.d + 1))
        wanted = [k for k in range(len(self.edges) - 1) if (group[self._place(k)] >= 0).any()]
        for mine, rows in self.blocks(wanted):
            inside = np.clip(edges - mine.start, 0, rows.n)
            read += rows.add_groups(weights[mine], group[mine], groups, inside, partial)
        for first in range(0, len(partial), groups):
            sums += partial[first : first + groups]
        return read

    def by_row(self) -> StoreRows:
        return self  # no column occurs twice in a row of a store

    def squares(self, out: Vector) -> None:
        out[:] = self.store.squares
        self.store.check_intact()

    @property
    def row_squares(self) -> Vector:
        found: Vector = self.store.squares
        return found

    def squares_of(self, begin: int, end: int) -> Vector:
        """|x_i|^2 of the rows from begin to end, mapped."""
        part: Vector = self.store.squares[begin:end]
        return part

    def take(self, rows: Ints) -> DenseRows | SparseRows:
        """A copy of these rows, rising, in memory."""
        if len(rows) and (rows[0] < 0 or rows[-1] >= self.n or (np.diff(rows) < 0).any()):
            raise ValueError(f"rows: rising numbers from 0 to {self.n - 1} expected")
        cuts = np.searchsorted(rows, self.edges)
        parts = [
            (k, slice(int(low), int(high)), rows[low:high] - self.edges[k])
            for k, (low, high) in enumerate(pairwise(cuts))
            if high > low
        ]
        taken = self._take_sparse(len(rows), parts) if self.store.sparse else self._take_dense(len(rows), parts)
        self.store.check_intact()
        return taken

    def _take_dense(self, many: int, parts: list[tuple[int, slice, Ints]]) -> DenseRows:
        copy = np.empty((many, self.d), dtype=self.store.manifest.dtype)
        for k, to, own in parts:
            (X,) = self.store.map_block(k, whole=self._most(k, own))
            DenseRows(X, self.threads).take_into(self._places(k, own), copy[to])
        return DenseRows(copy, self.threads)

    def _take_sparse(self, many: int, parts: list[tuple[int, slice, Ints]]) -> SparseRows:
        lengths = np.zeros(many + 1, dtype=np.int64)
        for k, to, own in parts:
            pointers, places = self.store.map_block(k, whole=False)[2], self._places(k, own)
            lengths[to.start + 1 : to.stop + 1] = pointers[places + 1] - pointers[places]
        ends = np.cumsum(lengths)
        index = index_type(int(ends[-1]))
        values, columns = np.empty(ends[-1], dtype=self.store.manifest.dtype), np.empty(ends[-1], dtype=np.int32)
        for k, to, own in parts:
            rows = self._as_rows(self.store.map_block(k, whole=self._most(k, own)))
            first, last = ends[to.start], ends[to.stop]
            inside = (ends[to.start : to.stop + 1] - first).astype(np.int32)
            rows.take_into(self._places(k, own), inside, values[first:last], columns[first:last])
        return SparseRows((values, columns.astype(index, copy=False), ends.astype(index)), self.d, self.threads)

    def _most(self, k: int, own: Ints) -> bool:
        return len(own) > self.settings.gather_share * int(self.edges[k + 1] - self.edges[k])
