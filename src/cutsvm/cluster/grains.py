"""Rows as tasks see them: grains, which are cut by the number of a row among all rows, not by where it is stored.

    part    what the user's collection is made of: a block of a Dask array, a file, a partition of Spark's
    grain   some 2^16 consecutive rows. Kernels run on a grain, and every sum is made grain by grain, in order
    chunk   some consecutive grains: what one task reads

Edges of grains and chunks depend on the number of rows and their size alone, and sums over chunks are made in a fixed
tree. So results are the same to the last bit for any parts, workers and threads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from cutsvm._utils.errors import ClusterError, DataError
from cutsvm._utils.threads import cached_property
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.matrix import DenseRows, SparseRows, as_rows

__all__ = [
    "Chunk",
    "Counts",
    "Grain",
    "Layout",
    "LayoutSettings",
    "Piece",
    "RowBlock",
    "on_chunk",
    "same_rows",
    "sum_of_grains",
]


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Some consecutive rows: X is a float array or CSR matrix, checked; the others have an entry per row, or are None.

    weights are sample weights, y labels or targets as they were given, qid the queries.
    """

    X: Any
    y: Array | None = None
    weights: Vector | None = None
    qid: Array | None = None

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    def part(self, begin: int, end: int) -> RowBlock:
        return self._each(lambda values: values[begin:end])

    def take(self, rows: Ints) -> RowBlock:
        return self._each(lambda values: values[rows])

    def copy(self) -> RowBlock:
        """The same rows in memory of their own."""
        return self._each(lambda values: values.copy())

    def _each(self, change: Callable[[Any], Any]) -> RowBlock:
        columns = (None if own is None else change(own) for own in (self.y, self.weights, self.qid))
        return RowBlock(change(self.X), *columns)

    @staticmethod
    def joined(blocks: Sequence[RowBlock]) -> RowBlock:
        """All rows, one block after the other; all blocks have the same columns."""
        if len(blocks) == 1:
            return blocks[0]
        matrices = [block.X for block in blocks]
        X = sparse.vstack(matrices, format="csr") if sparse.issparse(matrices[0]) else np.concatenate(matrices)
        columns = list(zip(*((block.y, block.weights, block.qid) for block in blocks), strict=True))
        for own, what in zip(columns, ("labels", "weights", "queries"), strict=True):
            if own[0] is not None and len({values.dtype.kind in "biuf" for values in own}) > 1:
                raise DataError(f"{what} are text in some parts and numbers in others")
        return RowBlock(X, *(None if own[0] is None else np.concatenate(own) for own in columns))


@dataclass(frozen=True, eq=False)
class Grain:
    """Rows with the number of the first one among all rows, and that of the grain."""

    number: int
    first: int
    block: RowBlock

    @cached_property
    def rows(self) -> DenseRows | SparseRows:
        return as_rows(self.block.X)

    @property
    def n(self) -> int:
        return self.block.n

    @property
    def weights(self) -> Vector:
        """Sample weights, 1 by default; a copy, which a loss may keep."""
        given = self.block.weights
        return np.ones(self.n) if given is None else np.array(given, dtype=np.float64)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "rows"}  # made again where they are read

    @cached_property
    def fingerprint(self) -> bytes:
        """A hash of all values: the same dense or sparse, float32 or float64."""
        found, hashes = hashlib.blake2b(digest_size=16), np.empty(self.n, dtype=np.uint64)
        self.rows.hashes(hashes)
        found.update(hashes.tobytes())
        for values in (self.block.y, self.block.weights, self.block.qid):
            if values is not None:
                found.update(_bytes_of(values))
        return found.digest()


def _bytes_of(values: Array) -> bytes:
    if values.dtype.kind in "biuf":
        return np.ascontiguousarray(values, dtype=np.float64).tobytes()
    return "\0".join(map(str, values.tolist())).encode()


class Piece(Protocol):
    """Rows of one part that belong to a chunk."""

    @property
    def name(self) -> str:
        """The part, for messages."""

    def read(self) -> Iterator[RowBlock]:
        """The rows in their order, some at a time."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive grains: pieces of parts, one after the other, that are read when the grains are asked for.

    first: the number of the first grain. edges: numbers of the first rows of the grains, and of the row after the last.
    """

    first: int
    edges: Ints
    pieces: tuple[Piece, ...]

    @property
    def name(self) -> str:
        return ", ".join(piece.name for piece in self.pieces)

    def grains(self, expected: Sequence[bytes] = ()) -> Iterator[Grain]:
        """The grains in order. expected: their fingerprints, if they were read before."""
        sizes, pending, have, number = np.diff(self.edges).tolist(), [], 0, 0
        for piece in self.pieces:
            for block in piece.read():
                begin = 0
                while begin < block.n:
                    end = min(block.n, begin + sizes[number] - have)
                    pending.append(block if end - begin == block.n else block.part(begin, end))
                    have, begin = have + end - begin, end
                    if have == sizes[number]:
                        yield self._checked(number, RowBlock.joined(pending), expected, piece.name)
                        pending, have, number = [], 0, number + 1
        if number < len(self.edges) - 1:
            raise ClusterError(f"{self.name}: fewer rows than before: the data must not change during a fit")

    def _checked(self, number: int, block: RowBlock, expected: Sequence[bytes], name: str) -> Grain:
        grain = Grain(self.first + number, int(self.edges[number]), block)
        return same_rows(grain, expected[number], name) if expected else grain


def same_rows(grain: Grain, expected: bytes, name: str) -> Grain:
    """The grain; ClusterError unless it has this fingerprint. name: of the part, for the message."""
    if grain.fingerprint != expected:
        rows = f"rows {grain.first:,} to {grain.first + grain.n - 1:,}"
        raise ClusterError(
            f"{name}: {rows} are not the same as when they were first read: a file that was rewritten, or a "
            "collection that draws at random without a seed; store the data, or persist the collection"
        )
    return grain


def sum_of_grains(
    chunk: Chunk, expected: Sequence[bytes], *, of_grain: Callable[..., Any], add: Callable[..., Any], **shared: Any
) -> Any:
    """of_grain(grain) + of_grain(next grain) + ... from left to right, by `add`: what a task does to a chunk."""
    total, some = None, False
    for grain in chunk.grains(expected):
        found = of_grain(grain, **shared)
        total = add(total, found) if some else found
        some = True
    return total


def on_chunk(chunk: Chunk, given: tuple[Sequence[bytes], Any], *, of_chunk: Callable[..., Any], **shared: Any) -> Any:
    """of_chunk(all grains as one, what is given for this chunk): what a task does that needs all rows at once.

    given: the expected fingerprints of the grains, and something that is for this chunk alone.
    """
    expected, own = given
    grains = list(chunk.grains(expected))
    whole = Grain(grains[0].number, grains[0].first, RowBlock.joined([grain.block for grain in grains]))
    return of_chunk(whole, own, **shared)


@dataclass(frozen=True)
class LayoutSettings:
    """How rows are cut. Grains have 2^k rows: of about `bytes`, or fewer if there would not be `least` of them.

    wide, wide_chunks, chunk_bytes: sparse rows of this number of features are in no more than so many chunks, as long
    as these are not larger: what a chunk returns is as long as there are features.
    """

    bytes: int = 1 << 25
    least: int = 64
    fewest_rows: int = 1 << 12
    most_chunks: int = 1 << 14
    wide: int = 1 << 13
    wide_chunks: int = 32
    chunk_bytes: int = 1 << 29

    def is_wide(self, d: int, *, sparse: bool) -> bool:
        return sparse and d >= self.wide


class Counts(NamedTuple):
    """Of a layout: rows of a grain and grains of a chunk, which only the last ones may have fewer of; how many of both.

    They are known for any number of rows, where edges would not fit in memory.
    """

    rows: int
    grains: int
    each: int
    chunks: int

    @classmethod
    def of(cls, n: int, row_bytes: float, settings: LayoutSettings, *, wide: bool = False) -> Counts:
        most = max(settings.fewest_rows, min(settings.bytes / max(row_bytes, 1.0), n / settings.least))
        rows = 1 << (int(most).bit_length() - 1)
        grains = -(-n // rows)
        each = max(1, -(-grains // settings.most_chunks))
        if wide:
            within = int(settings.chunk_bytes / max(1.0, rows * row_bytes))
            each = max(each, min(-(-grains // settings.wide_chunks), within))
        return cls(rows, grains, each, -(-grains // each))


@dataclass(frozen=True, eq=False)
class Layout:
    """Edges of the grains in rows, and of the chunks in grains."""

    edges: Ints
    chunks: Ints

    @classmethod
    def of(cls, n: int, row_bytes: float, settings: LayoutSettings | None = None, *, wide: bool = False) -> Layout:
        """The layout of n rows of this mean size in memory; it depends on nothing else. wide: see `LayoutSettings`."""
        counts = Counts.of(n, row_bytes, settings or LayoutSettings(), wide=wide)
        edges = np.append(np.arange(0, n, counts.rows, dtype=np.int64), n)
        return cls(edges, np.append(np.arange(0, counts.grains, counts.each, dtype=np.int64), counts.grains))

    @staticmethod
    def cut(grains: int, settings: LayoutSettings) -> Ints:
        """Edges of chunks of equal numbers of grains."""
        each = -(-grains // settings.most_chunks)
        return np.append(np.arange(0, grains, each, dtype=np.int64), grains)
