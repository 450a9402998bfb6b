"""A store that is there: a folder of rows in blocks that are mapped into memory when they are needed."""

from __future__ import annotations

import json
import mmap
import os
import zlib
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from cutsvm._native import core
from cutsvm.errors import DataError
from cutsvm.io.manifest import read_manifest
from cutsvm.validation import distinct

__all__ = ["Store"]

Array = NDArray[Any]


class Store:
    """Rows on disk. A block is checked (length, checksum, columns in range) when it is first read."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.manifest = read_manifest(path)
        sizes = [block.rows for block in self.manifest.blocks]
        self.edges: NDArray[np.int64] = np.cumsum([0, *sizes], dtype=np.int64)
        self._checked: set[int] = set()

    @property
    def shape(self) -> tuple[int, int]:
        return self.manifest.rows, self.manifest.features

    @property
    def sparse(self) -> bool:
        return self.manifest.layout == "csr"

    def read(self, number: int, *, whole: bool = True) -> tuple[Array, ...]:
        """The arrays of a block, in place: (X,) or (values, columns, pointers).

        whole: it is all in memory by then; without, pages come as they are looked at.
        """
        manifest = self.manifest
        block = manifest.blocks[number]
        sections = block.sections(manifest.layout, manifest.dtype, manifest.features)
        file = self.path / manifest.block_name(number)
        fresh = number not in self._checked
        data = _map(file, block.size(manifest.layout, manifest.dtype, manifest.features), soon=whole or fresh)
        if fresh:
            _check(file, data, block.crc32)
        if whole and not fresh:
            data[:: mmap.PAGESIZE].max(initial=0)  # touches every page, without the interpreter's lock
        arrays = [data[at : at + count * np.dtype(kind).itemsize].view(kind) for at, kind, count in sections]
        if not self.sparse:
            found: tuple[Array, ...] = (arrays[0].reshape(block.rows, manifest.features),)
        else:
            pointers, columns, values = arrays
            found = values, columns, pointers
            if fresh:
                valid, in_order = core.valid_csr(columns, pointers, manifest.features, 1)
                if not (valid and in_order and int(pointers[-1]) == block.entries):
                    raise DataError(f"{file}: damaged: its rows are not valid CSR; run convert again")
        self._checked.add(number)
        return found

    def column(self, name: str) -> Array | None:
        """One number per row, mapped: y, weights, qid or squares; None if the store has none."""
        data = self._part(name)
        return None if data is None else data.view(self.manifest.parts[name].dtype)

    def texts(self, name: str) -> list[str] | None:
        """A list of texts: feature_names, label_names or qid_names."""
        content = self._part(name)
        if content is None:
            return None
        words = json.loads(content.tobytes())
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise DataError(f"{self.path / self.manifest.part_name(name)}: expected a list of texts")
        return words

    def _part(self, name: str) -> NDArray[np.uint8] | None:
        """The bytes of a part, mapped, as its checksum says; None if the store has none."""
        part = self.manifest.parts.get(name)
        if part is None:
            return None
        file = self.path / self.manifest.part_name(name)
        data = _map(file, part.size)
        _check(file, data, part.crc32)
        return data

    @cached_property
    def y(self) -> Array:
        """The labels, as numbers or texts."""
        return self._named("y", "label_names")

    @cached_property
    def labels(self) -> Array:
        """The different labels, rising."""
        names, numbers = self.texts("label_names"), self.column("y")
        assert numbers is not None
        return distinct(numbers) if names is None else np.unique(names)

    @cached_property
    def weights(self) -> Array | None:
        return self.column("weights")

    @cached_property
    def qid(self) -> Array | None:
        """The queries, as numbers or texts; None if there are none."""
        return None if "qid" not in self.manifest.parts else self._named("qid", "qid_names")

    @cached_property
    def squares(self) -> Array:
        """|x_i|^2 of every row."""
        found = self.column("squares")
        assert found is not None  # no manifest is without
        return found

    @cached_property
    def feature_names(self) -> list[str] | None:
        names = self.texts("feature_names")
        if names is not None and len(names) != self.manifest.features:
            raise DataError(f"{self.path}: {len(names)} names of {self.manifest.features} features")
        return names

    def _named(self, column: str, texts: str) -> Array:
        names = self.texts(texts)
        if names is not None:
            return np.asarray(names)[self.codes(column, names)]
        numbers = self.column(column)
        assert numbers is not None
        return numbers

    def codes(self, column: str, names: list[str]) -> Array:
        """The number of each row's text."""
        codes = self.column(column)
        assert codes is not None
        if len(codes) and not 0 <= codes.min() <= codes.max() < len(names):
            raise DataError(f"{self.path}: {column} has a code without a text; run convert again")
        return codes

    def load(self) -> Any:
        """All rows in memory: an array, or a csr_matrix."""
        n, d = self.shape
        blocks = range(len(self.manifest.blocks))
        if not self.sparse:
            X = np.empty((n, d), dtype=self.manifest.dtype)
            for k in blocks:
                X[self.edges[k] : self.edges[k + 1]] = self.read(k)[0]
            return X
        entries = self.manifest.entries
        index = np.int32 if entries < 2**31 else np.int64
        values, columns = np.empty(entries, dtype=self.manifest.dtype), np.empty(entries, dtype=index)
        pointers, start = np.zeros(n + 1, dtype=index), 0
        for k in blocks:
            own, where, ends = self.read(k)
            values[start : start + len(own)], columns[start : start + len(own)] = own, where
            pointers[self.edges[k] + 1 : self.edges[k + 1] + 1] = ends[1:].astype(index) + start
            start += len(own)
        parts: Any = (values, columns, pointers)
        matrix: Any = csr_matrix(parts, shape=(n, d))
        matrix.has_sorted_indices = matrix.has_canonical_format = True
        return matrix


def _check(file: Path, data: NDArray[np.uint8], crc32: int) -> None:
    if zlib.crc32(data.data) != crc32:
        raise DataError(f"{file}: damaged: the checksum does not match; run convert again")


def _map(file: Path, size: int, *, soon: bool = True) -> NDArray[np.uint8]:
    """The bytes of a file, mapped; it must have the size that the manifest says. soon: all will be read at once."""
    try:
        with open(file, "rb") as stream:
            found = os.fstat(stream.fileno()).st_size
            if found != size:
                what = "truncated" if found < size else "too long"
                raise DataError(f"{file}: {what}: {found} bytes, expected {size}; run convert again")
            if size == 0:
                return np.empty(0, dtype=np.uint8)
            if soon and hasattr(os, "posix_fadvise"):
                os.posix_fadvise(stream.fileno(), 0, size, os.POSIX_FADV_WILLNEED)
            # Closed by the last array that looks into it.
            return np.frombuffer(mmap.mmap(stream.fileno(), size, access=mmap.ACCESS_READ), dtype=np.uint8)
    except FileNotFoundError:
        raise DataError(f"{file}: missing; run convert again") from None
