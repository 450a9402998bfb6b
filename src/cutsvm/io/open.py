"""Opens what the user names (files, tables, arrays, an iterator, a store): as a data set, or as a source of rows."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from itertools import chain
from typing import Any, Literal

import numpy as np
from scipy import sparse

from cutsvm._utils.errors import DataError
from cutsvm.io.columns import ColumnSpec, Labels
from cutsvm.io.dataset import Dataset, StoredDataset
from cutsvm.io.formats.arrays import ArraySource, BlockSource, ChainedSource, is_matrix
from cutsvm.io.formats.csv_tables import CsvTables
from cutsvm.io.formats.frames import is_arrow, is_frame, table_of, tables_of_blocks
from cutsvm.io.formats.npy import NpySource, NpzSource
from cutsvm.io.formats.svmlight import ZeroBased, read_svmlight
from cutsvm.io.formats.svmlight_source import SvmlightSource
from cutsvm.io.formats.table_files import FileTables
from cutsvm.io.formats.tables import TableSource
from cutsvm.io.paths import FORMATS, STDIN, Input, common_format, find, to_local, with_keys
from cutsvm.io.store.batches import Batch, ReadAgain, Source, checked, is_sparse, value_type
from cutsvm.io.store.source import DatasetSource, StoreSource
from cutsvm.io.store.store import Store


def open_dataset(
    source: Any,
    *,
    format: str | None = None,
    label: str | int | None = None,
    weight: str | int | None = None,
    qid: str | int | None = None,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    filter: Any = None,
    categorical: Literal["one-hot", "refuse"] = "one-hot",
    missing: Literal["mean", "zero", "refuse"] = "mean",
    scale: Literal["none", "standard", "minmax"] = "none",
    labels: Labels = "required",
    zero_based: ZeroBased = "auto",
    n_features: int | None = None,
) -> Dataset:
    """Read data into memory, or open a store.

    Parameters
    ----------
    source
        A file: svmlight, plain or compressed (gzip, bzip2, xz, zstd), .npy, .npz, or with pyarrow CSV, TSV, Parquet,
        Arrow, Feather; several files of one format as a list, a glob or a folder, whose folders may state columns
        (year=2024/part-0.parquet); an address of fsspec, as s3://bucket/key; "-", the standard input; or a store
        written by `cutsvm.convert`. Or a table: a pandas or polars frame (lazy too), a DuckDB relation, a table, a
        reader of batches or a dataset of pyarrow; or an iterator of blocks, as for `cutsvm.convert`.
    format
        "svmlight", "npy", "npz", "csv", "parquet", "arrow" or "store"; None: by the name of the file.
    label
        Of a table the column of labels: its name or its number (-1 is the last); by default the one called label, y,
        target or class. Of an .npy file the number of the column, or another .npy file; of an .npz file the name of
        the array, by default y.
    weight, qid
        Of a table the columns of weights and queries, by default those called sample_weight and qid.
    columns, exclude
        Of a table: the columns that are features, by default all others; and columns that are not.
    filter
        Of a table: which rows, an expression of pyarrow or a text such as "year >= 2020 and city != 'Rome'".
    categorical
        Of a table: "one-hot" makes one column of 0 and 1 for each text of a column of texts; "refuse" raises.
    missing
        Of a table: what a missing number becomes: the "mean" of its column, "zero"; or "refuse" raises. A missing text
        is 0 in all columns of its texts.
    scale
        Of a table: "standard" scales numbers and dates to mean 0 and standard deviation 1, "minmax" to 0 to 1.
    labels
        "optional": a table or array without labels is read too, and its labels are 0, for `LinearOneClassSVM`.
    zero_based
        Whether indices in svmlight files count from 0. "auto": they do if index 0 occurs.
    n_features
        Number of columns, if it is more than an svmlight file shows.
    """
    spec = ColumnSpec(label, weight, qid, columns, exclude, (), filter, labels, categorical, missing, scale).checked()
    rows = as_source(source, spec, format, zero_based)
    if isinstance(rows, SvmlightSource):
        return read_svmlight(rows.files, zero_based=zero_based, n_features=n_features)
    if isinstance(rows, DatasetSource):
        return rows.data
    data = StoredDataset(rows.store) if isinstance(rows, StoreSource) else _gather(rows)
    if n_features not in (None, data.shape[1]):
        raise DataError(f"{rows.name}: {data.shape[1]} features, expected n_features={n_features}")
    return data


def open_data_set(X: Any, y: Any, labels: Labels = "required") -> Dataset:
    """The data set X, or that of the source X."""
    if y is not None:
        raise ValueError("a data set has its own labels: leave y out")
    return X if isinstance(X, Dataset) else open_dataset(X, labels=labels)


def _gather(source: Source) -> Dataset:
    """All rows of a source, in memory."""
    try:
        parts = list(_checked_batches(source))
    except ReadAgain:
        parts = list(_checked_batches(source))
    if not parts:
        raise DataError(f"{source.name}: no samples")
    matrices = [part.X for part in parts]
    X = matrices[0]
    if len(parts) > 1:
        X = sparse.vstack(matrices, format="csr") if is_sparse(X) else np.vstack(matrices)
    y, weights, qid = (
        None if getattr(parts[0], name) is None else np.concatenate([getattr(part, name) for part in parts])
        for name in ("y", "weights", "qid")
    )
    y = np.zeros(X.shape[0], dtype=np.int64) if y is None else y
    log_summary(source)
    own = source.feature_names, source.preprocessing
    return Dataset(X, y, qid, source.zero_based, None, source.name, 0, weights, *own)


def _checked_batches(source: Source) -> Iterator[Batch]:
    first = 0
    for batch in source:
        if batch.X.shape[0]:
            yield checked(batch, value_type(None, batch.X.dtype), source, first)
            first += batch.X.shape[0]


def is_source(X: Any) -> bool:
    """Whether X is read as a source; arrays, sparse matrices and frames in memory are not."""
    if isinstance(X, str | os.PathLike | Dataset | Source | Iterator):
        return True
    if isinstance(X, list | tuple):
        return _are_paths(X)
    return is_arrow(X) or is_frame(X, lazy=True)


def _are_paths(source: Any) -> bool:
    return bool(source) and all(isinstance(path, str | os.PathLike) for path in source)


def as_source(source: Any, spec: ColumnSpec, format: str | None = None, zero_based: ZeroBased = "auto") -> Source:
    """A source for everything that has rows: see `open_dataset`; also a pair of arrays, or an iterator of blocks."""
    if isinstance(source, Source):
        return source
    if isinstance(source, Dataset):
        return _dataset_source(source, spec)
    if isinstance(source, str | os.PathLike):
        return _file_source([os.fspath(source)], format, spec, zero_based)
    if isinstance(source, list | tuple) and _are_paths(source):
        return _file_source([os.fspath(path) for path in source], format, spec, zero_based)
    if is_arrow(source) or is_frame(source, lazy=True) or is_frame(source, lazy=False):
        return TableSource(table_of(source, once=spec.preprocessing is not None), spec)
    if isinstance(source, tuple) and len(source) == 2 and is_matrix(source[0]):
        spec.refuse_table_options("a pair of arrays has its own", besides=("weight", "qid"))
        return ArraySource("arrays", *source, weights=spec.weight, qid=spec.qid)
    if is_matrix(source) and spec.labels != "required":
        return ArraySource("array", source, None)
    if isinstance(source, Iterable) and not is_matrix(source):
        return _block_source(source, spec)
    more = "" if find_spec("narwhals") else "; frames need the package narwhals: pip install cutsvm[files]"
    raise TypeError(
        "source: expected a path, several paths, a table, a pair of arrays (X, y) or an iterator of them, "
        f"got {type(source).__name__}{more}"
    )


def _block_source(blocks: Iterable[Any], spec: ColumnSpec) -> Source:
    """Blocks of arrays, or of frames and tables."""
    parts = iter(blocks)
    first = next(parts, None)
    every = parts if first is None else chain([first], parts)
    if first is not None and (is_arrow(first) or is_frame(first, lazy=False)):
        return TableSource(tables_of_blocks(every, once=spec.preprocessing is not None), spec)
    return BlockSource(every, labels=spec.labels)


def _dataset_source(data: Dataset, spec: ColumnSpec) -> Source:
    spec.refuse_table_options("a data set has its own")
    if isinstance(data, StoredDataset) and not data.loaded:
        return StoreSource(data.store, spec)
    return DatasetSource(data, spec)


def _file_source(paths: list[str], format: str | None, spec: ColumnSpec, zero_based: ZeroBased) -> Source:
    """A source for files of one format, or for a store."""
    if format is not None and format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)} or None, got {format!r}")
    files = [file for path in paths for file in (find(path) if format != "store" else [Input(path)])]
    files = with_keys(files) if len(paths) > 1 else files
    name = files[0].name if paths == [STDIN] else paths[0]
    if len(paths) > 1:
        name += f" and {len(paths) - 1} more"
    kind = format or common_format(files, name)
    if kind == "svmlight":
        spec.refuse_table_options("svmlight files have their labels in front")
        return SvmlightSource(files, zero_based, spec.labels)
    if kind == "store":
        spec.refuse_table_options("a store has its own")
        if len(files) > 1:
            raise DataError(f"{files[1].name}: a store and other files cannot be read together")
        return StoreSource(Store(files[0].path), spec)
    if kind in ("npy", "npz"):
        spec.refuse_table_options(f".{kind} files have columns without names", besides=("label", "weight", "qid"))
        make = NpySource if kind == "npy" else NpzSource
        parts = [make(to_local(file), spec) for file in files]
        return parts[0] if len(parts) == 1 else ChainedSource(name, parts)
    files = [to_local(file) if file.local else file for file in files]
    return TableSource(CsvTables(name, files) if kind == "csv" else FileTables(name, kind, files), spec)


def log_summary(source: Source) -> None:
    """Log what was done to the columns of a table."""
    summary = source.summary()
    if summary:
        logging.getLogger("cutsvm.tables").info("%s: %s", source.name, summary)
