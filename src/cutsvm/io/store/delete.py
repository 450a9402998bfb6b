"""delete and compact: rows out of a store.

`delete` writes one bit for each row of the blocks, and the columns of labels and the like without the deleted rows,
into a new data folder; the blocks stay as they are. `compact` writes all that is left into one segment.
"""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cutsvm._utils.errors import DataError
from cutsvm._utils.types import Array
from cutsvm.io.files import sync
from cutsvm.io.settings import read_settings
from cutsvm.io.store.batches import Batch, Source
from cutsvm.io.store.manifest import COLUMNS, DELETED, Block, Change, Part, Segment, block_file, part_file
from cutsvm.io.store.segments import Progress, new_segment
from cutsvm.io.store.store import Store
from cutsvm.io.store.versions import is_full, locked, new_folder, now, remove_leftovers, switch
from cutsvm.io.store.writer import BLOCK_BYTES

Mask: TypeAlias = NDArray[np.bool_]
_SHOWN = 5  # numbers of rows in the history


def delete(target: Path, which: Any, version: int | None = None) -> int:
    """Deletes rows, and returns how many; `StoredDataset.delete` says which.

    version: of the store whose row numbers these are; None: they are numbers of the current one.
    """
    with locked(target):
        store = Store(target)
        if version not in (None, store.manifest.version) and not isinstance(which, str):
            raise DataError(
                f"{target}: the store has changed since it was opened (version {version}, now "
                f"{store.manifest.version}), and with it the row numbers; open it again"
            )
        remove_leftovers(target)
        gone, what = _selected(store, which)
        many = int(np.count_nonzero(gone))
        if not many:
            return 0
        if many == store.shape[0]:
            raise DataError(f"{target}: no rows would be left")
        folder = new_folder(target)
        try:
            folder.mkdir()
            _write(store, gone, folder, f"{many:,} row{'s' * (many > 1)}: {what}")
        except BaseException as error:
            if folder.name not in {Path(file).parts[0] for file in Store(target).manifest.files()}:
                shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError) and is_full(error):
                raise DataError(f"{target}: {error.strerror}; the store is as it was") from error
            raise
    return many


def compact(target: Path, *, block_bytes: int = BLOCK_BYTES, progress: Progress | None = None) -> int:
    """Writes the rows that are not deleted into one segment; returns the bytes of the blocks that this has freed."""
    with locked(target):
        remove_leftovers(target)
        store = Store(target)
        old = store.manifest
        if DELETED not in old.parts and len(old.segments) == 1 and store.hashes is not None:
            return 0
        form = {"dtype": old.dtype, "n_features": old.features, "block_bytes": block_bytes}
        with new_segment(target, _LiveRows(store), form, progress) as (_, fresh):
            deleted = old.all_rows - old.rows
            what = f"{deleted:,} deleted rows removed, {len(old.segments):,} segments joined"
            history = [*old.history, Change("compact", old.rows, what, now())]
            same: dict[str, Any] = {"name": old.name, "source": old.source, "preprocessing": old.preprocessing}
            switch(target, replace(fresh, **same, history=history))
        remove_leftovers(target)
    return old.size_on_disk - fresh.size_on_disk


def _selected(store: Store, which: Any) -> tuple[Mask, str]:
    """Which rows are meant: one truth value for each, and words for the history."""
    n = store.shape[0]
    if isinstance(which, str):
        from cutsvm.io.store.conditions import rows_where

        return rows_where(store, which), which
    if isinstance(which, slice):
        which = np.arange(n)[which]
    rows = np.asarray(which)
    if rows.dtype == np.bool_:
        if rows.shape != (n,):
            raise ValueError(f"rows: a mask of {n:,} rows expected, found the shape {rows.shape}")
        return rows, _listed(np.flatnonzero(rows))
    rows = np.atleast_1d(rows)
    if rows.size == 0:
        return np.zeros(n, dtype=np.bool_), ""
    if rows.dtype.kind not in "iu" or rows.ndim != 1:
        raise ValueError("rows: expected a condition as text, numbers of rows, a slice or a mask")
    low, high = int(rows.min()), int(rows.max())
    if low < 0 or high >= n:
        raise ValueError(f"rows: there is no row {low if low < 0 else high}; they are numbered from 0 to {n - 1:,}")
    gone = np.zeros(n, dtype=np.bool_)
    gone[rows] = True
    return gone, _listed(np.flatnonzero(gone))


def _listed(rows: NDArray[np.int64]) -> str:
    """Some numbers of rows, ranges as first:last + 1."""
    if not len(rows):
        return ""
    starts = np.flatnonzero(np.diff(rows, prepend=rows[0] - 2) != 1)
    ends = np.append(starts[1:], len(rows)) - 1
    some = [
        f"{first}" if first == last else f"{first}:{last + 1}"
        for first, last in zip(rows[starts[:_SHOWN]].tolist(), rows[ends[:_SHOWN]].tolist(), strict=True)
    ]
    return ", ".join(some) + (", ..." if len(starts) > _SHOWN else "")


def _write(store: Store, gone: Mask, folder: Path, what: str) -> None:
    """Writes bits and columns to the folder, and switches to the manifest that names them."""
    target, old = store.path, store.manifest
    bits = np.zeros(-(-old.all_rows // 8), dtype=np.uint8)
    if DELETED in old.parts:
        before = np.fromfile(target / old.part_name(DELETED), dtype=np.uint8)
        bits[: len(before)] = before
    live = {}
    for k, block in enumerate(old.blocks):
        mine = gone[store.edges[k] : store.edges[k + 1]]
        if mine.any():
            live[block.file] = _without(store, k, mine, bits)
    segments = [
        Segment(
            segment.data,
            [live.get(block_file(segment.data, n), block) for n, block in enumerate(segment.blocks)],
        )
        for segment in old.segments
    ]
    parts = dict(old.parts)
    for name in COLUMNS:
        if name in old.parts:
            parts[name] = _kept(store, name, gone, folder)
    file = part_file(folder.name, DELETED)
    bits.tofile(target / file)
    parts[DELETED] = Part("bits", len(bits), zlib.crc32(bits.data), file)
    for path in (*folder.iterdir(), folder):
        sync(path)
    rows = old.rows - int(np.count_nonzero(gone))
    entries = sum(block.live_entries for segment in segments for block in segment.blocks)
    switch(target, old.changed(Change("delete", rows, what, now()), segments=segments, parts=parts, entries=entries))


def _without(store: Store, number: int, gone: Mask, bits: NDArray[np.uint8]) -> Block:
    """The block without these of its rows, whose bits are set."""
    block, first = store.manifest.blocks[number], int(store.edges[number])
    pointers = store.map_block(number, whole=False)[2] if store.sparse else None
    entries = 0
    for begin, places in store.live_rows(number):
        mine = places[gone[begin - first : begin - first + len(places)]]
        if pointers is None:
            entries += len(mine) * store.shape[1]
        else:
            entries += int((pointers[mine + 1].astype(np.int64) - pointers[mine]).sum())
        np.bitwise_or.at(bits, (block.first + mine) // 8, np.uint8(1) << ((block.first + mine) % 8).astype(np.uint8))
    live = block.live - int(np.count_nonzero(gone))
    return Block(block.rows, block.entries, block.crc32, live, block.live_entries - entries)


def _kept(store: Store, name: str, gone: Mask, folder: Path) -> Part:
    """The column without the rows that are gone, in the folder."""
    values, step = store.column(name), read_settings().column_bytes // 8
    file, crc, size = part_file(folder.name, name), 0, 0
    with open(store.path / file, "xb") as stream:
        for begin in range(0, len(values), step):
            left = np.ascontiguousarray(values[begin : begin + step][~gone[begin : begin + step]])
            crc = zlib.crc32(left.data.cast("B"), crc)
            size += stream.write(left.data.cast("B"))
    store.check_intact()
    return Part(store.manifest.parts[name].dtype, size, crc, file)


class _LiveRows(Source):
    """The rows of a store that are not deleted."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.name, self.feature_names = os.fspath(store.path), store.feature_names
        self.zero_based = store.manifest.zero_based

    def __iter__(self) -> Iterator[Batch]:
        store = self._store
        kept = ("y", "weights", "qid")
        columns: dict[str, Array] = {name: store.column(name) for name in kept if name in store.manifest.parts}
        names = {name: store.texts(texts) for name, texts in (("y", "label_names"), ("qid", "qid_names"))}
        for k, (first, last) in enumerate(pairwise(store.edges.tolist())):
            arrays = store.read(k)
            X: Any = arrays[0]
            if store.sparse:
                X = sparse.csr_matrix(arrays, shape=(last - first, store.shape[1]))
            found = {name: values[first:last] for name, values in columns.items()}
            for name, texts in names.items():
                if texts is not None:
                    found[name] = np.asarray(texts)[found[name]]
            self.share = (k + 1) / len(store.manifest.blocks)
            yield Batch(X, found["y"], found.get("weights"), found.get("qid"))
            store.check_intact()
