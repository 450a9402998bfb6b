"""Chunks of a collection: which rows of which parts each one has, and where they are kept."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from cutsvm._utils.types import Ints
from cutsvm.cluster.collections.base import Collection, Opener
from cutsvm.cluster.grains import Chunk, Grain, Layout, RowBlock, same_rows
from cutsvm.cluster.local import Local
from cutsvm.cluster.protocol import Column
from cutsvm.cluster.rows import PartPiece, RowForm

__all__ = ["HeldChunk", "chunks_of"]

PieceOf = tuple[str, int, int, int]  # the name of the part, its rows from begin to end, and how many it has


@dataclass(frozen=True, eq=False)
class ChunkPlan:
    """The grains of a chunk, the parts that it has rows of, and which rows."""

    first: int
    edges: Ints
    parts: tuple[int, ...]
    pieces: tuple[PieceOf, ...]


@dataclass(frozen=True, eq=False)
class HeldChunk:
    """Grains in memory, whose fingerprints are known: a worker that makes them again has to find the same."""

    name: str
    held: tuple[Grain, ...]

    @classmethod
    def of(cls, chunk: Chunk) -> HeldChunk:
        grains = tuple(chunk.grains())
        for grain in grains:
            _ = grain.fingerprint  # it travels with the grain
        return cls(chunk.name, grains)

    def grains(self, expected: Sequence[bytes] = ()) -> Iterator[Grain]:
        """The grains in order. expected: their fingerprints, if they were read before."""
        for k, grain in enumerate(self.held):
            yield same_rows(grain, expected[k], self.name) if expected else grain


@dataclass(frozen=True, eq=False)
class BlockPiece:
    """Rows of a part, in memory."""

    name: str
    block: RowBlock

    def read(self) -> Iterator[RowBlock]:
        yield self.block


def plan_chunks(layout: Layout, sizes: Sequence[int], names: Sequence[str]) -> list[ChunkPlan]:
    """The rows of the parts that each chunk has; parts without rows belong to none."""
    ends = np.cumsum(np.asarray(sizes, dtype=np.int64))
    plans, k = [], 0
    for first, last in zip(layout.chunks[:-1].tolist(), layout.chunks[1:].tolist(), strict=True):
        edges = layout.edges[first : last + 1]
        row, stop, parts, pieces = int(edges[0]), int(edges[-1]), [], []
        while row < stop:
            while ends[k] <= row:
                k += 1
            start, end = int(ends[k]) - sizes[k], min(stop, int(ends[k]))
            parts.append(k)
            pieces.append((names[k], row - start, end - start, sizes[k]))
            row = end
        plans.append(ChunkPlan(first, edges, tuple(parts), tuple(pieces)))
    return plans


def chunks_of(collection: Collection, layout: Layout, sizes: Sequence[int], form: RowForm, *, hold: bool) -> Column:
    """A column with one element for each chunk. hold: rows are read once and kept by the workers."""
    plans = plan_chunks(layout, sizes, collection.names)
    column, executor = collection.column, collection.executor
    shared: dict[str, Any] = {"opener": collection.opener, "form": form}
    if collection.cut is not None:
        cuts_of_parts: list[list[tuple[int, int, PieceOf]]] = [[] for _ in sizes]
        for number, plan in enumerate(plans):
            for place, (part, piece) in enumerate(zip(plan.parts, plan.pieces, strict=True)):
                cuts_of_parts[part].append((number, place, piece))
        lists = collection.cut(column, partial(piece_of_part, **shared), cuts_of_parts, len(plans))
        chunks = lists.map(chunk_of_list, plans)
        return executor.hold(chunks.map(HeldChunk.of)) if hold else chunks
    if not hold or isinstance(executor, Local):
        chunks = column.regroup([plan.parts for plan in plans]).map(chunk_of_parts, plans, **shared)
        if not hold:
            return replace(chunks, groups=_groups(plans, collection.starts, executor.resources.threads))
        return executor.hold(chunks.map(HeldChunk.of))
    # A part is cut where it is, so that only rows travel that belong to a chunk with rows of another part.
    cuts = [(part, piece) for plan in plans for part, piece in zip(plan.parts, plan.pieces, strict=True)]
    pieces = column.regroup([(part,) for part, _ in cuts]).map(piece_of_part, [piece for _, piece in cuts], **shared)
    counts = np.cumsum([0, *(len(plan.parts) for plan in plans)]).tolist()
    groups = [tuple(range(begin, end)) for begin, end in itertools.pairwise(counts)]
    return executor.hold(executor.hold(pieces).regroup(groups).map(chunk_of_pieces, plans).map(HeldChunk.of))


def _groups(plans: Sequence[ChunkPlan], starts: Ints | None, threads: int, each: int = 4) -> list[range] | None:
    """Chunks that are read from the same start on, for one task; about `each` groups a thread, or more."""
    if starts is None:
        return None
    owners = np.searchsorted(starts, [int(plan.edges[0]) for plan in plans], side="right").tolist()
    most, groups, first = max(1, len(plans) // (each * max(1, threads))), [], 0
    for k in range(1, len(plans) + 1):
        if k == len(plans) or owners[k] != owners[first] or k - first == most:
            groups.append(range(first, k))
            first = k
    return groups


def chunk_of_parts(*given: Any, opener: Opener, form: RowForm) -> Chunk:
    """given: the values of the parts, and the plan of the chunk."""
    *values, plan = given
    pieces = zip(values, plan.pieces, strict=True)
    return Chunk(plan.first, plan.edges, tuple(PartPiece.of(value, own, opener, form) for value, own in pieces))


def piece_of_part(value: Any, plan: PieceOf, *, opener: Opener, form: RowForm) -> BlockPiece:
    """Rows of a part as one block, which does not keep the rest of the part in memory."""
    piece = PartPiece.of(value, plan, opener, form)
    block = RowBlock.joined(list(piece.read()))
    whole = plan[2] - plan[1] == plan[3]
    return BlockPiece(piece.name, block if whole else block.copy())


def chunk_of_list(pieces: list[BlockPiece], plan: ChunkPlan) -> Chunk:
    return Chunk(plan.first, plan.edges, tuple(pieces))


def chunk_of_pieces(*given: Any) -> Chunk:
    """given: the pieces, and the plan of the chunk."""
    *pieces, plan = given
    return Chunk(plan.first, plan.edges, tuple(pieces))
