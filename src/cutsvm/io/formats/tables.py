"""Tables as sources of rows: CSV and TSV, Parquet, Arrow and Feather, read by pyarrow."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from cutsvm._utils.errors import DataError
from cutsvm._utils.types import Array
from cutsvm.io.columns import ColumnSpec
from cutsvm.io.files import SourceFile
from cutsvm.io.settings import read_settings
from cutsvm.io.store.batches import Batch, Source

_MAX_HEAD = 1 << 20  # bytes of the first line of a CSV file
_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_BAD_VALUE = re.compile(
    r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to \w+: invalid value '(.*)'", re.S
)


class TableSource(Source):
    """A table of numbers, whose labels and queries may be text."""

    def __init__(self, path: str, kind: str, columns: ColumnSpec) -> None:
        try:
            self._arrow = import_module("pyarrow")
        except ImportError:
            raise ImportError(
                f"{path}: reading {kind} files needs the package pyarrow: pip install cutsvm[files]"
            ) from None
        self.name, self._path = path, path
        self._file = SourceFile(path)
        self._share_read: Callable[[], float | None] = lambda: None
        with self._arrow_errors_as_data_error():
            read = {"csv": self._csv, "parquet": self._parquet, "arrow": self._ipc}[kind]
            self._columns, self._batches = read(columns)
        self.feature_names = [self._columns[place] for place in self._indices.features]

    def __iter__(self) -> Iterator[Batch]:
        rows, use = 0, read_settings()
        with self._arrow_errors_as_data_error():
            for batch in self._batches:
                batch.validate(full=True)  # Arrow does not check offsets, indices and lengths
                step = max(1, min(use.table_rows, use.table_values // max(1, len(self._columns))))
                for start in range(0, batch.num_rows, step):
                    part = batch.slice(start, step)
                    self.share = self._share_read()
                    yield self._batch(part, rows)
                    rows += part.num_rows
        self._file.version.check()

    # Readers of the formats return the names of the columns and an iterator of Arrow batches.

    def _parquet(self, columns: ColumnSpec) -> tuple[list[str], Iterator[Any]]:
        file = import_module("pyarrow.parquet").ParquetFile(self._file.duplicate())
        self._resolve_columns(file.schema_arrow, columns)
        return list(file.schema_arrow.names), self._counted(
            file.iter_batches(batch_size=read_settings().table_rows), file.metadata.num_rows
        )

    def _ipc(self, columns: ColumnSpec) -> tuple[list[str], Iterator[Any]]:
        ipc = import_module("pyarrow.ipc")
        # Not mapped: a file that is truncated meanwhile would raise SIGBUS.
        file = self._arrow.PythonFile(self._file.duplicate(), mode="r")
        try:
            reader = ipc.open_file(file)
            count = reader.num_record_batches
            batches = self._counted((reader.get_batch(k) for k in range(count)), count, rows=False)
        except self._arrow.ArrowInvalid:
            file.seek(0)
            reader = ipc.open_stream(file)
            batches = iter(reader)
        self._resolve_columns(reader.schema, columns)
        return list(reader.schema.names), batches

    def _csv(self, columns: ColumnSpec) -> tuple[list[str], Iterator[Any]]:
        arrow_csv = import_module("pyarrow.csv")
        names, delimiter, header = self._csv_head()
        self._indices = columns.resolve(self.name, names)
        number = self._arrow.float64()
        numeric = [*self._indices.features, *([] if self._indices.weight is None else [self._indices.weight])]
        stream, raw = self._stream()
        size = max(1, raw.size())
        self._share_read = lambda: min(1.0, raw.tell() / size)
        reader = arrow_csv.open_csv(
            stream,
            read_options=arrow_csv.ReadOptions(
                use_threads=False, block_size=read_settings().csv_bytes, column_names=names, skip_rows=int(header)
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter),
            convert_options=arrow_csv.ConvertOptions(column_types={names[place]: number for place in numeric}),
        )
        return names, iter(reader)

    def _stream(self) -> tuple[Any, Any]:
        """The decompressed stream, and the file."""
        raw = self._arrow.PythonFile(self._file.duplicate(), mode="r")
        codec = next((codec for suffix, codec in _CODECS.items() if self._path.lower().endswith(suffix)), None)
        return (raw if codec is None else self._arrow.CompressedInputStream(raw, codec)), raw

    def _csv_head(self) -> tuple[list[str], str, bool]:
        """Names of the columns, the delimiter, and whether the first line is a header."""
        stream, _ = self._stream()
        head = stream.read(_MAX_HEAD).decode("utf-8-sig", errors="replace")
        if not head.strip():
            raise DataError(f"{self.name}: no samples")
        line = re.split("[\r\n]", head, maxsplit=1)[0]
        delimiter = max("\t,;", key=line.count)
        try:
            fields = [field.strip() for field in next(csv.reader([line], delimiter=delimiter, strict=True), [])]
        except csv.Error as error:
            raise DataError(f"{self.name}:1: expected the names of the columns ({error})") from None
        if not fields:
            raise DataError(f"{self.name}:1: expected the names of the columns, found an empty line")
        header = not all(map(_is_number, fields))
        names = fields if header else [f"f{place}" for place in range(len(fields))]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"{self.name}: the column {twice!r} appears twice")
        return names, delimiter, header

    def _counted(self, batches: Iterator[Any], total: int, *, rows: bool = True) -> Iterator[Any]:
        read = 0
        self._share_read = lambda: read / max(1, total)
        for batch in batches:
            read += batch.num_rows if rows else 1
            yield batch

    def _is_numeric(self, kind: Any) -> bool:
        types = self._arrow.types
        known = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
        return any(of_kind(kind) for of_kind in known)

    def _check_label(self, kind: Any, name: str) -> None:
        """Refuse labels and queries that are neither numbers nor text, nor codes of them."""
        types = self._arrow.types
        value = kind.value_type if types.is_dictionary(kind) else kind
        if not (self._is_numeric(value) or types.is_string(value) or types.is_large_string(value)):
            raise DataError(f"{self.name}: column {name!r} holds {kind}, expected numbers or text")

    def _resolve_columns(self, schema: Any, columns: ColumnSpec) -> None:
        """Find the columns, and refuse features that are not numbers."""
        self._indices = columns.resolve(self.name, schema.names)
        types = self._arrow.types
        for place in self._indices.features:
            kind = schema.types[place]
            if not self._is_numeric(kind):
                what = "text" if types.is_string(kind) or types.is_large_string(kind) else str(kind)
                raise DataError(
                    f"{self.name}: column {schema.names[place]!r} holds {what}, expected numbers; "
                    "leave it out or make it numbers first (one column for each value)"
                )

    def _batch(self, batch: Any, first: int) -> Batch:
        places = self._indices
        columns = [self._array(batch.column(place), self._columns[place], first) for place in places.features]
        kinds = {column.dtype for column in columns}
        narrow = all(kind == np.float32 or (kind.kind in "iub" and kind.itemsize <= 2) for kind in kinds)
        X = np.empty((batch.num_rows, len(columns)), dtype=np.float32 if narrow and kinds else np.float64)
        for place, column in enumerate(columns):
            X[:, place] = column
        for label in (places.label, places.qid):
            if label is not None:
                self._check_label(batch.column(label).type, self._columns[label])
        y, weights, qid = (
            None if place is None else self._array(batch.column(place), self._columns[place], first)
            for place in (places.label, places.weight, places.qid)
        )
        assert y is not None
        return Batch(X, y, weights, qid)

    def _array(self, column: Any, name: str, first: int) -> Array:
        if column.null_count:
            row = first + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            raise DataError(f"{self.name}: row {row}, column {name!r}: expected a value, found none (counted from 0)")
        types = self._arrow.types
        if types.is_dictionary(column.type):
            column = column.dictionary_decode()
            if column.null_count:
                raise DataError(f"{self.name}: column {name!r}: expected a value for every code, found none")
        if types.is_decimal(column.type):
            column = column.cast(self._arrow.float64())
        values: Array = column.to_numpy(zero_copy_only=False)
        return values.astype(str) if values.dtype == object else values

    @contextmanager
    def _arrow_errors_as_data_error(self) -> Iterator[None]:
        try:
            yield
        # UnicodeDecodeError: text that is not UTF-8. OverflowError: lengths that do not fit the types of C.
        except (self._arrow.ArrowException, UnicodeDecodeError, OverflowError) as error:
            raise DataError(self._describe(error)) from None
        except OSError as error:
            if isinstance(error, FileNotFoundError) or error.errno is not None:
                raise
            raise DataError(f"{self.name}: {error}") from None

    def _describe(self, error: Exception) -> str:
        """The message of Arrow, with the row and the name of the column."""
        text = str(error)
        found = _BAD_VALUE.search(text)
        if found is None:
            return f"{self.name}: {text}"
        names = self._columns if hasattr(self, "_columns") else self._csv_head()[0]
        row = f"row {int(found[2]) - 1 - self._csv_head()[2]}, " if found[2] else ""
        counted = " (counted from 0)" if row else ""
        return f"{self.name}: {row}column {names[int(found[1])]!r}: expected a number, found {found[3]!r}{counted}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
