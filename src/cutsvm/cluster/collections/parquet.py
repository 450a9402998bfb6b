"""Parquet files as parts: a worker opens a file, and reads the row groups that it needs, some rows at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import local
from typing import Any

import numpy as np

from cutsvm._utils.errors import ClusterError, DataError
from cutsvm._utils.threads import ThreadPool
from cutsvm._utils.types import Ints
from cutsvm.cluster.collections.base import Collection
from cutsvm.cluster.collections.tables import Columns, arrow_batch, check_arrow_schema
from cutsvm.cluster.protocol import Executor
from cutsvm.io.columns import ColumnSpec, Labels
from cutsvm.io.files import SourceFile
from cutsvm.io.formats.arrow_values import arrow
from cutsvm.io.formats.table_files import aligned, arrow_errors, key_types
from cutsvm.io.paths import Input, find, is_address, with_keys
from cutsvm.io.settings import read_settings
from cutsvm.io.store.batches import Batch

__all__ = ["ParquetFiles", "of_parquet", "parquet"]


@dataclass(frozen=True)
class ParquetFiles:
    """Parquet files, which workers read themselves; made by `cutsvm.cluster.parquet`."""

    paths: tuple[str, ...]
    spec: ColumnSpec
    executor: Executor | None = field(default=None, compare=False)


def parquet(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    label: str | None = None,
    weight: str | None = None,
    qid: str | None = None,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    executor: Executor | None = None,
) -> ParquetFiles:
    """Parquet files for `fit` on several machines: each worker reads the rows that it needs, in every pass.

    Parameters
    ----------
    path
        A file, a folder, a glob, or several of them; also an address of fsspec, as s3://bucket/folder/*.parquet. The
        workers must see them under the same name.
    label, weight, qid
        The columns of labels, weights and queries; by default label (or y, target, class), sample_weight and qid.
    columns, exclude
        The columns that are features, by default all others; and columns that are not.
    executor
        Where they are read; by default the Dask cluster that this process uses, or threads of this process.
    """
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not paths:
        raise ValueError("path: expected a path, got an empty list")
    spec = ColumnSpec(label, weight, qid, columns, exclude).checked()
    spec = replace(spec, columns=None if columns is None else tuple(columns), exclude=tuple(exclude))
    return ParquetFiles(tuple(_everywhere(os.fspath(own)) for own in paths), spec, executor)


def _everywhere(path: str) -> str:
    """A path that does not depend on the folder of a process."""
    return path if is_address(path) else os.path.abspath(path)


@dataclass(frozen=True, eq=False)
class ParquetFile:
    """A file that a worker opens. groups: the first row of each row group, and the row after the last."""

    file: Input
    groups: tuple[int, ...]
    schema: Any  # of all files, without what is not read
    first: str  # the file that has this schema
    columns: Columns

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def rows(self) -> int | None:
        """Not known without opening the file: that it has as many as before is checked when it is read."""
        return None

    @property
    def feature_names(self) -> Sequence[str] | None:
        """None if a column holds vectors."""
        known, _ = check_arrow_schema(self.schema, self.columns, self.name)
        return None if known is None else self.columns.features

    def read(self, begin: int = 0, end: int | None = None) -> Iterator[Batch]:
        last = self.groups[-1] if end is None else end
        if begin >= last:
            return
        with arrow_errors(self.name):
            cursor = _cursors.take(self, begin) or Cursor(self, begin)
            while cursor.row < last:
                first, some = cursor.row, cursor.next(last)
                some.validate(full=True)  # Arrow does not check offsets, indices and lengths
                whole = aligned(some, self.file, self.columns.read, self.schema, self.first)
                yield arrow_batch(whole, self.columns, self.name, first)
            _cursors.keep(cursor)

    @property
    def key(self) -> tuple[Any, ...]:
        """The same for a copy of this in another task."""
        return self.name, self.groups, self.columns

    def step(self) -> int:
        """Rows that are decoded at a time."""
        use = read_settings()
        return max(1, min(use.table_rows, use.table_values // max(1, len(self.columns.read))))


class Cursor:
    """A place in a file: a row group cannot be read from its middle on, so that the next task goes on from here."""

    def __init__(self, source: ParquetFile, begin: int) -> None:
        self.key = source.key
        self.row = max(start for start in source.groups[:-1] if start <= begin)
        self._batches, self._rest = _decoded(source, self.row), None
        while self.row < begin:
            self.next(begin)

    def next(self, last: int) -> Any:
        """Rows from here on, some, up to the row `last`."""
        batch = next(self._batches) if self._rest is None else self._rest
        count = min(batch.num_rows, last - self.row)
        self._rest = batch.slice(count) if count < batch.num_rows else None
        self.row += count
        return batch.slice(0, count)


def _decoded(source: ParquetFile, row: int) -> Iterator[Any]:
    """Batches from the row group that starts with this row on. No method: the file is closed with its last user."""
    with open_stream(source.file) as stream:
        reader = parquet_file(stream, source.name)
        if row_groups(reader) != source.groups:
            raise ClusterError(f"{source.name}: the file has changed since it was first read: write files once")
        there = set(reader.schema_arrow.names)
        columns = [name for name in source.columns.read if name in there]
        for group in range(int(np.searchsorted(source.groups, row, side="right")) - 1, len(source.groups) - 1):
            for batch in reader.iter_batches(source.step(), row_groups=[group], columns=columns):
                if batch.num_rows:
                    yield batch


class Cursors(local):
    """The last place of each thread."""

    def __init__(self) -> None:
        self._kept: Cursor | None = None

    def take(self, source: ParquetFile, begin: int) -> Cursor | None:
        """The place, if it is this one."""
        kept, self._kept = self._kept, None
        return kept if kept is not None and kept.row == begin and kept.key == source.key else None

    def keep(self, cursor: Cursor) -> None:
        self._kept = cursor if cursor.row < cursor.key[1][-1] else None


_cursors = Cursors()


def open_stream(file: Input) -> Any:
    """The bytes of a file, as pyarrow reads them; closed by a with statement."""
    return SourceFile(file.path) if file.local else file.arrow_file()


def parquet_file(stream: Any, name: str) -> Any:
    return arrow(name, "pyarrow.parquet").ParquetFile(
        stream, buffer_size=read_settings().parquet_bytes, pre_buffer=False
    )


def row_groups(reader: Any) -> tuple[int, ...]:
    """The first row of each row group, and the row after the last."""
    counts = (reader.metadata.row_group(group).num_rows for group in range(reader.metadata.num_row_groups))
    return tuple(np.cumsum([0, *counts]).tolist())


def _footer(file: Input) -> tuple[tuple[int, ...], Any]:
    """Row groups and schema of a file."""
    with arrow_errors(file.name), open_stream(file) as stream:
        reader = parquet_file(stream, file.name)
        return row_groups(reader), reader.schema_arrow


def of_parquet(
    executor: Executor, files: ParquetFiles, labels: Labels, features: Sequence[str] | None = None, threads: int = 16
) -> Collection:
    """The files as a collection; their footers are read here, some at a time, and have the numbers of rows."""
    found = [file for path in files.paths for file in find(path)]
    inputs = with_keys(found) if len(files.paths) > 1 else found
    with ThreadPool(min(threads, len(inputs))) as pool:
        footers = list(pool.map(_footer, inputs))
    pa, first = arrow(inputs[0].name), inputs[0].name
    schema = footers[0][1]
    for key, dtype in key_types(inputs).items():
        schema = schema.append(pa.field(key, dtype))
    spec = ColumnSpec(
        files.spec.label, files.spec.weight, files.spec.qid, files.spec.columns, files.spec.exclude, labels=labels
    )
    columns = Columns.of(spec.resolve(first, schema.names))
    if features is not None:
        absent = [name for name in features if name not in schema.names]
        if absent:
            raise DataError(f"{first}: there is no column {absent[0]!r}, which the model was trained with")
        columns = replace(columns, features=tuple(features))
    if not columns.features:
        raise DataError(f"{first}: there is no column of features")
    d, narrow = check_arrow_schema(schema, columns, first)
    for file, (_, own) in zip(inputs, footers, strict=True):
        there = [name for name in columns.features if name in own.names]
        narrow &= check_arrow_schema(own, Columns(tuple(there)), file.name)[1]
    schema = pa.schema([schema.field(name) for name in columns.read])
    values = [
        ParquetFile(file, groups, schema, first, columns) for file, (groups, _) in zip(inputs, footers, strict=True)
    ]
    return Collection(
        executor,
        executor.put(values),
        _itself,
        [file.name for file in inputs],
        sizes=[groups[-1] for groups, _ in footers],
        d=d,
        sparse=False,
        narrow=narrow,
        feature_names=columns.features if d is not None else None,
        weighted=columns.weight is not None,
        queried=columns.qid is not None,
        starts=_starts([groups for groups, _ in footers]),
    )


def _starts(groups: Sequence[tuple[int, ...]]) -> Ints:
    """Rows at which row groups start, numbered over all files."""
    before = np.cumsum([0, *(own[-1] for own in groups)])
    return np.concatenate(
        [np.asarray(own[:-1], dtype=np.int64) + first for own, first in zip(groups, before, strict=False)]
    )


def _itself(value: ParquetFile, name: str) -> ParquetFile:
    return value
