"""Tables, some rows at a time: files of Parquet, Arrow and Feather, tables in memory, datasets of pyarrow.

pyarrow.dataset finds the row groups of Parquet files that a filter needs, and reads datasets that are no files. Its
scanner decodes whole row groups, often hundreds of megabytes, so that files are read by pyarrow.parquet in batches.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from cutsvm._utils.errors import DataError
from cutsvm.io.files import SourceFile
from cutsvm.io.formats.arrow_values import arrow, is_empty, kind_of
from cutsvm.io.paths import Input
from cutsvm.io.settings import read_settings

NO_KEY = "__HIVE_DEFAULT_PARTITION__"  # a folder of rows in which the column is missing


class Tables:
    """Rows of a table. `batches` may be called again, unless the rows come from a stream that can be read once."""

    name: str
    schema: Any
    file: str  # that is being read, for messages
    share: float | None = None  # that has been read

    def batches(self, columns: Sequence[str], condition: Any = None) -> Iterator[Any]:
        """Batches with these columns in this order, of the rows for which the condition holds."""
        raise NotImplementedError

    def expect(self, kinds: Mapping[str, str], verbatim: Sequence[str], *, only_numbers: bool = False) -> None:
        """How to read columns where the file leaves that open, as CSV does: as numbers, dates or texts.

        kinds: that are known from the training data; verbatim: columns in which NA is a text; only_numbers: others are
        numbers.
        """

    def _chosen(self, batch: Any, columns: Sequence[str], condition: Any) -> Iterator[Any]:
        """Some rows and columns of a batch, in batches that are small enough."""
        pa, use = arrow(self.name), read_settings()
        if condition is not None:
            kept = pa.Table.from_batches([batch]).filter(condition).combine_chunks().to_batches()
            batch = kept[0] if kept else batch.slice(0, 0)
        batch = batch.select(list(columns))
        step = max(1, min(use.table_rows, use.table_values // max(1, len(columns))))
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)


def needed(columns: Sequence[str], condition: Any, names: Sequence[str]) -> list[str]:
    """The columns, and those that the condition may name."""
    text = "" if condition is None else str(condition)
    return list(dict.fromkeys([*columns, *(name for name in names if name in text)]))


@contextmanager
def arrow_errors(name: str) -> Iterator[None]:
    """Errors of Arrow as DataError; name: of the file."""
    pa = arrow(name)
    try:
        yield
    # UnicodeDecodeError: text that is not UTF-8. OverflowError: lengths that do not fit the types of C.
    except (pa.ArrowException, UnicodeDecodeError, OverflowError) as error:
        raise DataError(f"{name}: {'; '.join(map(str, error.args))}") from None
    except OSError as error:
        if isinstance(error, FileNotFoundError) or error.errno is not None:
            raise
        raise DataError(f"{name}: {error}") from None


class FileTables(Tables):
    """Files of one format. The first has the columns; the others have at least these."""

    _verbatim: frozenset[str] = frozenset()

    def __init__(self, name: str, kind: str, files: Sequence[Input]) -> None:
        self.name, self._kind, self._files = name, kind, files
        self.file = files[0].name
        self._sizes = [file.size or 1 for file in files]
        with arrow_errors(self.file):
            own = self._schema(files[0])
            keys = files[0].keys
            if set(keys) & set(own.names):
                raise DataError(f"{self.file}: the column {min(set(keys) & set(own.names))!r} is also in its folder")
            self.schema = own
            for key, dtype in key_types(files).items():
                self.schema = self.schema.append(arrow(name).field(key, dtype))

    def expect(self, kinds: Mapping[str, str], verbatim: Sequence[str], *, only_numbers: bool = False) -> None:
        self._verbatim = frozenset(verbatim)
        self.schema = with_text_keys(self.schema, self._files, kinds)

    def _schema(self, file: Input) -> Any:
        stream = self._open(file)
        if self._kind == "parquet":
            return self._parquet(stream).schema_arrow
        return _open_ipc(stream)[0].schema

    def _open(self, file: Input) -> Any:
        if not file.local:
            return file.arrow_file()
        return SourceFile(file.path) if file.held is None else file.held.duplicate()

    def _parquet(self, stream: Any) -> Any:
        return arrow(self.name, "pyarrow.parquet").ParquetFile(
            stream, buffer_size=read_settings().parquet_bytes, pre_buffer=False
        )

    def batches(self, columns: Sequence[str], condition: Any = None) -> Iterator[Any]:
        wanted = needed(columns, condition, self.schema.names)
        total, first = sum(self._sizes), self._files[0].name
        for k, file in enumerate(self._files):
            self.file = file.name
            with arrow_errors(file.name):
                stream = self._open(file)
                for batch, done in self._read(stream, file, wanted, condition):
                    self.share = None if done is None else (sum(self._sizes[:k]) + done * self._sizes[k]) / total
                    batch.validate(full=True)  # Arrow does not check offsets, indices and lengths
                    whole = aligned(batch, file, wanted, self.schema, first, self._verbatim)
                    yield from self._chosen(whole, columns, condition)
                if isinstance(stream, SourceFile):
                    stream.version.check()
                    stream.close()

    def _read(self, stream: Any, file: Input, wanted: list[str], condition: Any) -> Iterator[tuple[Any, float | None]]:
        """Batches of a file as they are, and the share of it that has been read."""
        if self._kind == "parquet":
            reader = self._parquet(stream)
            names = set(reader.schema_arrow.names)
            own = [name for name in wanted if name in names]
            groups = self._row_groups(file, reader, condition)
            total, read = sum(reader.metadata.row_group(group).num_rows for group in groups), 0
            for batch in reader.iter_batches(read_settings().table_rows, row_groups=groups, columns=own):
                read += batch.num_rows
                yield batch, read / max(1, total)
            return
        reader, count = _open_ipc(stream)
        if count is None:
            for batch in reader:
                yield batch, None
            return
        for k in range(count):
            yield reader.get_batch(k), (k + 1) / count

    def _row_groups(self, file: Input, reader: Any, condition: Any) -> list[int]:
        """The row groups that may have rows for which the condition holds, by their statistics."""
        every = list(range(reader.metadata.num_row_groups))
        if condition is None or not file.local or file.held is not None:
            return every
        pa, dataset = arrow(self.name), arrow(self.name, "pyarrow.dataset")
        known = dataset.scalar(True)
        for key, value in file.keys.items():
            field = self.schema.field(key)
            if value != NO_KEY:
                known = known & (dataset.field(key) == key_scalar(file, key, field.type))
        fragment = dataset.ParquetFileFormat().make_fragment(
            os.path.abspath(file.path), arrow(self.name, "pyarrow.fs").LocalFileSystem(), known
        )
        own = {field.name: field for field in reader.schema_arrow if not is_empty(field.type)}
        # Statistics are compared as what they are: 0.5 is no whole number, as the first file may have them.
        schema = pa.schema([own.get(field.name, field) for field in self.schema])
        return [group.id for group in fragment.subset(condition, schema=schema).row_groups]


def aligned(batch: Any, file: Input, wanted: Sequence[str], schema: Any, first: str, exact: Container[str] = ()) -> Any:
    """The batch with the wanted columns, of what they hold in the schema, which is that of the file `first`.

    Numbers and dates keep their own type, except in the columns `exact`: what is whole in one file need not be in the
    next, and a column without any value has no type.
    """
    pa = arrow(file.name)
    columns, own = [], set(batch.schema.names)
    for name in wanted:
        field = schema.field(name)
        if name in file.keys:
            column = pa.repeat(key_scalar(file, name, field.type), batch.num_rows)
        elif name in own:
            column = _of_type(batch.column(name), field.type, exact=name in exact)
            if column is None:
                other = batch.schema.field(name).type
                raise DataError(f"{file.name}: column {name!r} holds {other}, and {field.type} in {first}")
        else:
            raise DataError(f"{file.name}: there is no column {name!r}, which {first} has")
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=list(wanted))


def _of_type(column: Any, dtype: Any, *, exact: bool) -> Any:
    """The column as one of this type, or as it is if it holds the same and `exact` is not asked for; None: neither."""
    kind, own = kind_of(dtype), kind_of(column.type)
    if column.type == dtype or (is_empty(dtype) and not exact):
        return column
    if is_empty(column.type) or (kind == "text" and own is not None):
        return column.cast(dtype)
    if own != kind:
        return None
    return column.cast(dtype) if exact or kind is None else column


def key_types(files: Sequence[Input]) -> dict[str, Any]:
    """The columns that the names of the folders state, as in year=2024/month=1."""
    pa = arrow(files[0].name)
    types: dict[str, Any] = {}
    for key in files[0].keys:
        values = [file.keys.get(key) for file in files]
        if None in values:
            file = files[values.index(None)]
            raise DataError(f"{file.name}: expected to be in a folder {key}=..., as {files[0].name} is")
        types[key] = pa.int64() if all(_is_whole(str(value)) for value in values if value != NO_KEY) else pa.string()
    return types


def key_scalar(file: Input, key: str, dtype: Any) -> Any:
    """The value that the name of a folder states; null if it is Hive's word for that."""
    pa, value = arrow(file.name), file.keys[key]
    return pa.scalar(None if value == NO_KEY else value, pa.string()).cast(dtype)


def with_text_keys(schema: Any, files: Sequence[Input], kinds: Mapping[str, str]) -> Any:
    """The schema, where numbers in the names of folders are texts if they were in training: 01 is not 1 then."""
    pa = arrow(files[0].name)
    texts = {key for key in files[0].keys if kinds.get(key) == "text"}
    return pa.schema([field.with_type(pa.string()) if field.name in texts else field for field in schema])


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and text.isascii() and len(text) < 19


def _open_ipc(stream: Any) -> tuple[Any, int | None]:
    """A reader of an Arrow file, and the number of its batches; of a stream that is unknown."""
    pa, ipc = arrow("Arrow files"), arrow("Arrow files", "pyarrow.ipc")
    # Not mapped: a file that is truncated meanwhile would raise SIGBUS.
    file = pa.PythonFile(stream, mode="r") if isinstance(stream, SourceFile) else stream
    try:
        reader = ipc.open_file(file)
        return reader, reader.num_record_batches
    except pa.ArrowInvalid:
        file.seek(0)
        return ipc.open_stream(file), None


class MemoryTables(Tables):
    """A pyarrow.Table, or a pyarrow.dataset.Dataset of any kind."""

    def __init__(self, name: str, rows: Any) -> None:
        self.name = self.file = name
        self._rows, self.schema = rows, rows.schema

    def batches(self, columns: Sequence[str], condition: Any = None) -> Iterator[Any]:
        dataset = arrow(self.name, "pyarrow.dataset")
        use = read_settings()
        read = 0
        if isinstance(self._rows, dataset.Dataset):
            small = {"batch_size": use.table_rows, "batch_readahead": 1, "fragment_readahead": 1}
            scanner = self._rows.scanner(columns=list(columns), filter=condition, **small)
            batches, condition = scanner.to_batches(), None
        else:
            wanted = needed(columns, condition, self.schema.names)
            batches = self._rows.select(wanted).to_batches(max_chunksize=use.table_rows)
        with arrow_errors(self.name):
            for batch in batches:
                read += batch.num_rows
                if not isinstance(self._rows, dataset.Dataset):
                    self.share = read / max(1, self._rows.num_rows)
                batch.validate(full=True)
                yield from self._chosen(batch, columns, condition)


class StreamTables(Tables):
    """A pyarrow.RecordBatchReader, which can be read once."""

    def __init__(self, name: str, reader: Any) -> None:
        self.name = self.file = name
        self._reader, self.schema = reader, reader.schema

    def batches(self, columns: Sequence[str], condition: Any = None) -> Iterator[Any]:
        with arrow_errors(self.name):
            for batch in self._reader:
                batch.validate(full=True)
                yield from self._chosen(batch, columns, condition)
