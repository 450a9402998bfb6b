"""Writing a store: batches of rows become the files of its data folder and a manifest, in one pass."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from cutsvm._native import core, matrix_of
from cutsvm._utils.errors import DataError
from cutsvm._utils.types import Array
from cutsvm._utils.validation import spread_of_sizes
from cutsvm.io.files import sync
from cutsvm.io.models.model_format import package_version
from cutsvm.io.settings import read_settings
from cutsvm.io.store.batches import INT32_MAX, Batch, Codes, Source, checked, is_sparse, too_wide, value_type
from cutsvm.io.store.manifest import ALIGN, Block, Change, Manifest, Part, Segment, block_file, csr_sections, part_file
from cutsvm.io.store.versions import now

BLOCK_BYTES = 32 << 20
STRIP = 4096  # rows that the kernels process at a time: blocks are multiples of it
_WIDE = 4  # a strip of more than this number of blocks is split


@dataclass(eq=False)
class StoreWriter:
    """Fills an empty folder. The first batch determines the types of rows, labels, weights and queries.

    strip: blocks are multiples of this number of rows. durable: sync all files when the store is finished.
    """

    folder: Path
    source: Source
    _: KW_ONLY
    dtype: DTypeLike | None = None  # None: that of the first batch
    n_features: int | None = None
    block_bytes: int = BLOCK_BYTES
    strip: int = STRIP
    durable: bool = True

    def __post_init__(self) -> None:
        self.rows = self.written = self._width = 0
        self._dtype: np.dtype[Any] | None = None
        self._sparse, self._base = False, 1
        self._largest = np.zeros(0)  # of each feature, by absolute value
        self._pending = _Pending()
        self._blocks: list[Block] = []
        self._columns: dict[str, _Column] = {}
        self._codes: dict[str, Codes] = {}

    def add(self, batch: Batch) -> None:
        """Add some rows, and write blocks that are full."""
        rows = batch.X.shape[0]
        if rows == 0:
            return
        if self._dtype is None:
            self._begin(batch)
        if is_sparse(batch.X) != self._sparse:
            kinds = ("dense", "sparse") if self._sparse else ("sparse", "dense")
            raise DataError(f"{self.source.name}: from row {self.rows} on the rows are {kinds[0]}, before {kinds[1]}")
        assert self._dtype is not None
        fine = checked(batch, self._dtype, self.source, self.rows)
        self._rebase(batch.base)
        X = self._placed(fine.X)
        squares = np.empty(rows)
        matrix_of(X).squares(squares)
        self._measure(X)
        # Rows without labels are for models without classes.
        y = np.zeros(rows, dtype=np.int64) if fine.y is None else self._numbers("label_names", fine.y, "labels")
        self._put("y", y)
        self._put("weights", fine.weights)
        self._put("qid", None if fine.qid is None else self._queries(fine.qid))
        self._put("squares", squares)
        self._append(X)
        self.rows += rows

    def finish(self) -> Manifest:
        """Write the last block and sync; the caller writes the manifest that is returned."""
        if self.rows == 0 or self._dtype is None:
            raise DataError(f"{self.source.name}: no samples")
        self._flush()
        texts = {name: codes.texts for name, codes in self._codes.items()}
        if self.source.feature_names:
            texts["feature_names"] = self.source.feature_names
        parts = {name: column.close() for name, column in self._columns.items()}
        parts.update({name: self._write_texts(name, list(words)) for name, words in texts.items()})
        if self.durable:
            for file in (*self.folder.iterdir(), self.folder):
                sync(file)
        features = self._width if self.n_features is None else self.n_features
        return Manifest(
            name=self.folder.name,
            layout="csr" if self._sparse else "dense",
            dtype=self._dtype.newbyteorder("<").str,
            rows=self.rows,
            features=features,
            entries=sum(block.entries for block in self._blocks),
            zero_based=self.source.zero_based,
            spread=spread_of_sizes(self._largest),
            source=self.source.name,
            made_by=package_version(),
            segments=[Segment(self.folder.name, self._blocks)],
            parts=parts,
            history=[Change("convert", self.rows, self.source.name, now())],
            preprocessing=None if self.source.preprocessing is None else self.source.preprocessing.to_dict(),
        )

    def close(self) -> None:
        """Close the files."""
        for column in self._columns.values():
            column.file.close()

    def _begin(self, batch: Batch) -> None:
        self._dtype = value_type(self.dtype, batch.X.dtype)
        self._sparse, self._base = is_sparse(batch.X), batch.base
        if not self._sparse:
            self._width = batch.X.shape[1]
            if self.n_features not in (None, self._width):
                raise DataError(f"{self.source.name}: {self._width} features, expected n_features={self.n_features}")

    def _rebase(self, base: int) -> None:
        """Shift all columns so far by one: index 0 has occurred for the first time."""
        if base == self._base:
            return
        self._base = base
        self._widen(len(self._largest) + 1, first=1)
        self._width += 1
        self._check_width(self._width)
        self._pending.move_columns()
        assert self._dtype is not None
        if self._blocks:
            self._columns["hashes"].restart()
        for number, block in enumerate(self._blocks):
            file = self._block_path(number)
            content = np.fromfile(file, dtype=np.uint8)
            sections = csr_sections(block.rows, block.entries, self._dtype.str)
            pointers, columns, values = (
                content[at : at + count * np.dtype(kind).itemsize].view(kind) for at, kind, count in sections
            )
            columns += 1
            content.tofile(file)
            self._blocks[number] = replace(block, crc32=zlib.crc32(content.data))
            self._put_hashes(core.Matrix(values, columns, pointers, self._width), block.rows)

    def _placed(self, X: Any) -> Any:
        """The rows with their columns counted from 0, after a check of their number."""
        if not self._sparse:
            if X.shape[1] != self._width:
                raise DataError(
                    f"{self.source.name}: from row {self.rows} on, rows of {X.shape[1]} features, before {self._width}"
                )
            return np.ascontiguousarray(X)
        indices = X.indices if self._base == 0 else X.indices - self._base
        top = int(indices.max()) + 1 if len(indices) else 0
        self._check_width(top)
        if X.shape[1] - self._base > INT32_MAX:
            self._check_width(X.shape[1] - self._base)
        self._width = max(self._width, X.shape[1] - self._base)
        placed = sparse.csr_matrix(
            (X.data, indices.astype(np.int32, copy=False), X.indptr.astype(np.int32, copy=False)),
            shape=(X.shape[0], max(top, 1)),
        )
        placed.has_canonical_format = True
        return placed

    def _check_width(self, width: int) -> None:
        if self.n_features is not None and width > self.n_features:
            raise DataError(
                f"{self.source.name}: index {width - 1 + self._base} is beyond n_features={self.n_features}"
            )
        if width > INT32_MAX:
            raise too_wide(self.source.name, width - 1 + self._base)

    def _measure(self, X: Any) -> None:
        """Update the largest absolute value of each feature."""
        if len(self._largest) < self._width:
            self._widen(self._width)
        if self._sparse:
            np.maximum.at(self._largest, X.indices, np.abs(X.data).astype(np.float64))
        elif X.size:
            np.maximum(self._largest, np.maximum(X.max(axis=0), -X.min(axis=0)), out=self._largest)

    def _widen(self, width: int, first: int = 0) -> None:
        """Enlarge `_largest` to `width` features; those so far start at `first`."""
        wider = np.zeros(width)
        wider[first : first + len(self._largest)] = self._largest
        self._largest = wider

    def _numbers(self, texts: str, values: Array, what: str) -> Array:
        """Labels or queries as numbers; texts as codes."""
        if values.dtype.kind in "UO" or values.dtype.kind == "S":
            if texts not in self._codes and self.rows:
                raise DataError(
                    f"{self.source.name}: from row {self.rows} on {what} are text, before they were numbers"
                )
            return self._codes.setdefault(texts, Codes()).encode(values)
        if texts in self._codes:
            raise DataError(f"{self.source.name}: from row {self.rows} on {what} are numbers, before they were text")
        if values.dtype.kind not in "iufb":
            raise DataError(f"{self.source.name}: {what} of type {values.dtype}, expected numbers or text")
        return values.astype(np.float64 if values.dtype.kind == "f" else np.int64, copy=False)

    def _queries(self, qid: Array) -> Array:
        """Queries as numbers. Once one of them is text, all are: numbers are written in decimal."""
        if qid.dtype.kind in "UOS" and "qid_names" not in self._codes and "qid" in self._columns:
            codes = self._codes["qid_names"] = Codes()
            self._columns["qid"].change(lambda numbers: codes.encode(numbers.astype(str)))
        elif qid.dtype.kind in "iu" and "qid_names" in self._codes:
            qid = qid.astype(str)
        return self._numbers("qid_names", qid, "queries")

    def _put(self, name: str, values: Array | None) -> None:
        if values is None and name not in self._columns:
            return
        if values is None or (name not in self._columns and self.rows):
            raise DataError(f"{self.source.name}: row {self.rows}: some rows have {name}, others have none")
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = _Column(self.folder / f"{name}.bin", values.dtype)
        column.write(self.source.name, self.rows, values)
        self.written += values.nbytes

    def _put_hashes(self, X: core.Matrix, rows: int) -> None:
        """The hashes of rows, which tell them in later versions of the store; known once their columns are."""
        hashes = np.empty(rows, dtype=np.uint64)
        X.hashes(hashes)
        if "hashes" not in self._columns:
            self._columns["hashes"] = _Column(self.folder / "hashes.bin", hashes.dtype)
        self._columns["hashes"].write(self.source.name, 0, hashes)
        self.written += hashes.nbytes

    def _append(self, X: Any) -> None:
        """Append the rows to the block in strips, and write it before it gets too large."""
        rows, start = X.shape[0], 0
        strip = self.strip
        if not self._sparse and self._width:
            row = self._width * X.itemsize
            strip = strip if row * strip <= _WIDE * self.block_bytes else max(1, self.block_bytes // row)
        while start < rows:
            pending = self._pending
            many = min(rows - start, strip - pending.rows % strip)
            pending.append(X[start : start + many])
            start += many
            if pending.rows % strip == 0 and pending.size + pending.size * strip // pending.rows > self.block_bytes:
                self._flush()

    def _flush(self) -> None:
        pending, self._pending = self._pending, _Pending()
        if not pending.rows:
            return
        crc, length = 0, 0
        for X, rows in pending.matrices(self._width, sparse=self._sparse):
            self._put_hashes(X, rows)
        with open(self._block_path(len(self._blocks)), "xb") as file:
            for piece in pending.pieces(sparse=self._sparse):
                crc = zlib.crc32(piece, crc)
                length += file.write(piece)
        self._blocks.append(Block(pending.rows, pending.entries, crc, pending.rows, pending.entries))
        self.written += length

    def _block_path(self, number: int) -> Path:
        return self.folder.parent / block_file(self.folder.name, number)

    def _write_texts(self, name: str, texts: list[str]) -> Part:
        part = write_texts(self.folder, name, texts)
        self.written += part.size
        return part


def write_texts(folder: Path, name: str, texts: list[str]) -> Part:
    """Write a list of texts to its file in a data folder."""
    content = json.dumps(texts).encode("ascii")
    file = part_file(folder.name, name)
    (folder.parent / file).write_bytes(content)
    return Part("json", len(content), zlib.crc32(content), file)


class _Pending:
    """Rows of the block that is not full yet, copied: a source may reuse its memory."""

    def __init__(self) -> None:
        self.rows = self.entries = self.size = 0
        self._values: list[Array] = []
        self._columns: list[Array] = []
        self._lengths: list[Array] = []

    def append(self, X: Any) -> None:
        if is_sparse(X):
            self._columns.append(X.indices.astype(np.int32))
            self._lengths.append(np.diff(X.indptr))
            self._values.append(X.data.copy())
            self.size += 4 * len(X.data)
        else:
            self._values.append(np.array(X, order="C"))
        self.rows += X.shape[0]
        self.entries += self._values[-1].size
        self.size += self._values[-1].nbytes

    def move_columns(self) -> None:
        for columns in self._columns:
            columns += 1

    def matrices(self, width: int, *, sparse: bool) -> Iterable[tuple[core.Matrix, int]]:
        """The rows, in the pieces in which they came, and their numbers."""
        if not sparse:
            yield from ((core.Matrix(values), len(values)) for values in self._values)
            return
        for values, columns, lengths in zip(self._values, self._columns, self._lengths, strict=True):
            pointers = np.zeros(len(lengths) + 1, dtype=np.int32)
            np.cumsum(lengths, out=pointers[1:])
            yield core.Matrix(values, columns, pointers, width), len(lengths)

    def pieces(self, *, sparse: bool) -> Iterable[memoryview | bytes]:
        """The bytes of the block's file."""
        if sparse:
            pointers = np.zeros(self.rows + 1, dtype="<i4")
            np.cumsum(np.concatenate(self._lengths), out=pointers[1:])
            yield pointers.data.cast("B")
            yield bytes(-pointers.nbytes % ALIGN)
            yield from _bytes(self._columns)
            yield bytes(-4 * self.entries % ALIGN)
        yield from _bytes(self._values)


def _bytes(arrays: list[Array]) -> Iterable[memoryview | bytes]:
    for array in arrays:
        if array.size:
            yield array.astype(array.dtype.newbyteorder("<"), copy=False).reshape(-1).data.cast("B")


class _Column:
    """A file of one number per row, with its checksum so far."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self.file: BinaryIO = open(path, "x+b")
        self.dtype = dtype.newbyteorder("<")
        self.name, self._size, self._crc = path.stem, 0, 0

    def write(self, source: str, row: int, values: Array) -> None:
        if values.dtype != self.dtype:
            raise DataError(f"{source}: from row {row} on {self.name} is {values.dtype}, before it was {self.dtype}")
        self._size += self._append(values)

    def _append(self, values: Array) -> int:
        data = np.ascontiguousarray(values, dtype=self.dtype).data.cast("B")
        self._crc = zlib.crc32(data, self._crc)
        return self.file.write(data)

    def restart(self) -> None:
        """Forget the numbers so far."""
        self.file.seek(0)
        self.file.truncate()
        self._size = self._crc = 0

    def change(self, function: Callable[[Array], Array]) -> None:
        """Replace the numbers so far by `function` of them, in pieces."""
        self._crc, size = 0, read_settings().column_bytes
        for start in range(0, self._size, size):
            self.file.seek(start)
            values = function(np.frombuffer(self.file.read(size), dtype=self.dtype))
            self.file.seek(start)
            self._append(values)

    def close(self) -> Part:
        self.file.close()
        folder = os.path.basename(os.path.dirname(self.file.name))
        return Part(self.dtype.str, self._size, self._crc, part_file(folder, self.name))
