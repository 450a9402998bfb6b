"""Opens what the user names (files, arrays, an iterator, a store): as a data set, or as a source of batches of rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cutsvm._native import core
from cutsvm._utils import threads
from cutsvm._utils.errors import DataError
from cutsvm.io.columns import ColumnSpec
from cutsvm.io.dataset import Dataset, StoredDataset
from cutsvm.io.formats.arrays import ArraySource, BlockSource
from cutsvm.io.formats.npy import NpySource, NpzSource
from cutsvm.io.formats.svmlight import ZeroBased, query_ids, read_svmlight
from cutsvm.io.formats.tables import TableSource
from cutsvm.io.formats.text import text_blocks
from cutsvm.io.preprocessing import Preprocessing
from cutsvm.io.settings import read_settings
from cutsvm.io.store.batches import INT32_MAX, Batch, Source, checked, is_sparse, too_wide, value_type
from cutsvm.io.store.store import Store

# Formats by the suffix of the file; files with other suffixes are read as svmlight text.
_SUFFIXES = {f".{kind}": kind for kind in ("npy", "npz", "csv", "parquet", "arrow")}
_SUFFIXES |= {".tsv": "csv", ".feather": "arrow"}
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
FORMATS = ("svmlight", "npy", "npz", "csv", "parquet", "arrow", "store")


def open_dataset(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    label: str | int | None = None,
    zero_based: ZeroBased = "auto",
    n_features: int | None = None,
) -> Dataset:
    """Read a data file, or open a store.

    Parameters
    ----------
    path
        A file: svmlight, plain or compressed (gzip, bzip2, xz, zstd), .npy, .npz, or with pyarrow CSV, TSV, Parquet,
        Arrow, Feather; or a store written by `cutsvm.convert`.
    format
        "svmlight", "npy", "npz", "csv", "parquet", "arrow" or "store"; None: by the name of the file.
    label
        Of a table the column of labels: its name or its number (-1 is the last); by default the one called label, y,
        target or class. Columns called sample_weight and qid are weights and queries. Of an .npy file the number of the
        column, or another .npy file; of an .npz file the name of the array, by default y.
    zero_based
        Whether indices in svmlight files count from 0. "auto": they do if index 0 occurs.
    n_features
        Number of columns, if it is more than an svmlight file shows.
    """
    source = file_source(os.fspath(path), format, ColumnSpec(label), zero_based)
    if isinstance(source, SvmlightSource):
        return read_svmlight(path, zero_based=zero_based, n_features=n_features)
    data = StoredDataset(source.store) if isinstance(source, StoreSource) else _gather(source)
    if n_features not in (None, data.shape[1]):
        raise DataError(f"{os.fspath(path)}: {data.shape[1]} features, expected n_features={n_features}")
    return data


def open_data_set(X: Any, y: Any) -> Dataset:
    """The data set X, or the one in the file X."""
    if y is not None:
        raise ValueError("a data set has its own labels: leave y out")
    return X if isinstance(X, Dataset) else open_dataset(X)


def _gather(source: Source) -> Dataset:
    """All rows of a source, in memory."""
    parts, first = [], 0
    for batch in source:
        part = checked(batch, value_type(None, batch.X.dtype), source, first)
        first += part.X.shape[0]
        parts.append(part)
    if not first:
        raise DataError(f"{source.name}: no samples")
    matrices = [part.X for part in parts]
    X = matrices[0]
    if len(parts) > 1:
        X = sparse.vstack(matrices, format="csr") if is_sparse(X) else np.vstack(matrices)
    y = np.concatenate([part.y for part in parts])
    weights, qid = (
        None if getattr(parts[0], name) is None else np.concatenate([getattr(part, name) for part in parts])
        for name in ("weights", "qid")
    )
    return Dataset(X, y, qid, source.zero_based, None, source.name, 0, weights, source.feature_names)


def is_source(X: Any) -> bool:
    """Whether X is read as a source; arrays, sparse matrices and frames in memory are not."""
    return isinstance(X, str | os.PathLike | Dataset)


def as_source(source: Any, spec: ColumnSpec, format: str | None = None, zero_based: ZeroBased = "auto") -> Source:
    """A source for a path or several of them, a pair (X, y), or an iterator of such pairs."""
    columns = spec
    if isinstance(source, str | os.PathLike):
        return file_source(os.fspath(source), format, columns, zero_based)
    if isinstance(source, tuple) and len(source) == 2 and hasattr(source[0], "shape"):
        return ArraySource("arrays", *source, weights=columns.weight, qid=columns.qid)
    if isinstance(source, list | tuple) and source and all(isinstance(path, str | os.PathLike) for path in source):
        paths = [os.fspath(path) for path in source]
        if len(paths) == 1:
            return file_source(paths[0], format, columns, zero_based)
        others = [path for path in paths if (format or format_of(path)) != "svmlight"]
        if others:
            raise DataError(f"{others[0]}: several files must be svmlight files")
        return SvmlightSource(paths, zero_based)
    if hasattr(source, "__iter__") and not hasattr(source, "shape"):
        return BlockSource(source)
    raise TypeError(
        "source: expected a path, several paths, a pair of arrays (X, y) or an iterator of them, "
        f"got {type(source).__name__}"
    )


def file_source(path: str, format: str | None, columns: ColumnSpec, zero_based: ZeroBased = "auto") -> Source:
    """A source for one file or store."""
    kind = format_of(path) if format is None else format
    if kind not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)} or None, got {format!r}")
    os.stat(path)  # a missing file is the same error for every format
    given = [f"{name}=" for name in ("label", "weight", "qid") if getattr(columns, name) is not None]
    if kind in ("svmlight", "store") and given:
        name = "names a column" if len(given) == 1 else "name columns"
        where = "svmlight files have their labels in front" if kind == "svmlight" else "a store has its own"
        raise ValueError(f"{' and '.join(given)} {name} of a table; {where}")
    if kind == "svmlight":
        return SvmlightSource([path], zero_based)
    if kind == "store":
        return StoreSource(Store(path))
    if kind == "npy":
        return NpySource(path, columns)
    return NpzSource(path, columns) if kind == "npz" else TableSource(path, kind, columns)


def format_of(path: str | os.PathLike[str]) -> str:
    """The format by the name of a file; a folder is a store."""
    file = Path(path)
    if file.is_dir():
        return "store"
    suffix = file.suffix.lower()
    if suffix in _COMPRESSED:
        suffix = file.with_suffix("").suffix.lower()
    return _SUFFIXES.get(suffix, "svmlight")


class SvmlightSource(Source):
    """svmlight files, read some lines at a time; columns are indices as written."""

    any_index = False  # whether indices may be beyond the 32 bits of a store's columns

    def __init__(self, paths: list[str], zero_based: ZeroBased) -> None:
        if zero_based not in (True, False, "auto"):
            raise ValueError(f"zero_based must be True, False or 'auto', got {zero_based!r}")
        self.name = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
        self._paths, self._given = paths, zero_based
        self.zero_based = zero_based is True
        self._sizes = [os.path.getsize(path) for path in paths]

    def __iter__(self) -> Iterator[Batch]:
        has_qid: bool | None = None
        for file, path in enumerate(self._paths):
            read = line = 0
            for text in _split(text_blocks(path)):
                batch, lines = self._parse(path, text, line)
                read += len(text)
                # The size of compressed text is unknown; the size of the file is a lower bound of it.
                before = sum(self._sizes[:file]) + min(read, self._sizes[file])
                self.share = min(1.0, before / max(1, sum(self._sizes)))
                if batch is not None and batch.X.shape[0]:
                    if has_qid is not None and (batch.qid is not None) != has_qid:
                        have = "have" if has_qid else "have not"
                        raise DataError(
                            f"{path}: from line {line + 1} on: expected 'qid:' as the lines before {have} it"
                        )
                    has_qid = batch.qid is not None
                    yield batch
                line += lines

    @property
    def is_undecided(self) -> bool:
        """Whether index 0 has not occurred so far, and would change the columns."""
        return self._given == "auto" and not self.zero_based

    def _parse(self, path: str, text: NDArray[np.uint8], line: int) -> tuple[Batch | None, int]:
        """The rows of some lines, and the number of lines."""
        least = 0 if self._given else 1  # "auto" is true: index 0 is allowed
        reader = core.SvmlightReader64(min_index=least, keep_bad=0)
        reader.start_file()
        for number, problem in reader.feed(text, threads.count(-1)):
            raise DataError(f"{path}:{line + number}: {problem}")
        lines = int(np.count_nonzero(text == ord("\n")))
        if not reader.rows:
            return None, lines
        if self._given == "auto" and reader.min_index == 0:
            self.zero_based = True
        top = reader.max_index
        if top > INT32_MAX and not self.any_index:
            raise too_wide(self.name, top)
        y, queries, pointers, indices, values = reader.take()
        qid = None if queries is None else query_ids(*queries)
        base = 0 if self.zero_based else 1
        X = sparse.csr_matrix((values, indices, pointers), shape=(len(y), max(top + 1, base)))
        X.has_sorted_indices = X.has_canonical_format = True
        return Batch(X, y, None, qid, base), lines


def _split(blocks: Iterable[NDArray[np.uint8]]) -> Iterator[NDArray[np.uint8]]:
    """Blocks of whole lines of at most `parsed_bytes`, unless a line is longer."""
    size = read_settings().parsed_bytes
    for block in blocks:
        start = 0
        while len(block) - start > size:
            last = np.flatnonzero(block[start : start + size] == ord("\n"))
            if not len(last):  # a longer line: the rest at once
                break
            stop = start + int(last[-1]) + 1
            yield block[start:stop]
            start = stop
        yield block[start:]


class StoreSource(Source):
    """The rows of a store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.name, self.feature_names = os.fspath(store.path), store.feature_names
        self.zero_based = store.manifest.zero_based
        stored = store.manifest.preprocessing
        self.preprocessing = None if stored is None else Preprocessing.from_dict(stored)

    def __iter__(self) -> Iterator[Batch]:
        store = self.store
        # Not store.y: the texts of all rows at once would take more memory than a block.
        texts = store.texts("label_names")
        labels = store.column("y") if texts is None else store.codes("y", texts)
        for k, (start, stop) in enumerate(pairwise(store.edges)):
            mine = slice(int(start), int(stop))
            arrays = store.read(k)
            X: Any = arrays[0]
            if store.sparse:
                X = sparse.csr_matrix(arrays, shape=(mine.stop - mine.start, store.shape[1]))
            weights, qid = (None if part is None else part[mine] for part in (store.weights, store.qid))
            self.share = (k + 1) / len(store.manifest.blocks)
            y = labels[mine] if texts is None else np.asarray(texts)[labels[mine]]
            yield Batch(X, y, weights, qid)

    def check_intact(self) -> None:
        self.store.check_intact()
