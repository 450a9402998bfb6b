"""CSV and TSV files as tables, by pyarrow.csv: pyarrow.dataset does not tell the row of a bad value."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from cutsvm._utils.errors import DataError
from cutsvm.io.files import SourceFile
from cutsvm.io.formats.arrow_values import arrow, kind_of, words
from cutsvm.io.formats.table_files import Tables, aligned, arrow_errors, key_types, needed
from cutsvm.io.paths import Input
from cutsvm.io.settings import read_settings

_MAX_HEAD = 1 << 20  # bytes of the first line of a CSV file
_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_BAD_VALUE = re.compile(
    r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to \w+: invalid value '(.*)'", re.S
)


class CsvTables(Tables):
    """Files of CSV. The first block of the first file tells which columns hold numbers, dates and texts."""

    def __init__(self, name: str, files: Sequence[Input]) -> None:
        self.name, self._files = name, files
        self.file = files[0].name
        self._sizes = [file.size or 1 for file in files]
        self._types: dict[str, Any] = {}
        self._verbatim: frozenset[str] = frozenset()
        with self._errors(files[0]):
            names, _, _ = self._head(files[0])
            reader, _, _ = self._open(files[0])
            first = next(iter(reader), None)
            if first is None:
                raise DataError(f"{self.file}: no samples")
            self._types = {column: first.column(column).type for column in names}
            self._damaged = {column for column in names if _is_mostly_numbers(first.column(column))}
        pa = arrow(name)
        fields = [pa.field(column, self._types[column]) for column in names]
        self.schema = pa.schema(fields + [pa.field(key, dtype) for key, dtype in key_types(files).items()])

    def expect(self, kinds: Mapping[str, str], verbatim: Sequence[str], *, only_numbers: bool = False) -> None:
        pa = arrow(self.name)
        self._verbatim = frozenset(verbatim)
        for name, dtype in self._types.items():
            numeric = only_numbers or name in self._damaged  # the rows of their bad values are then reported
            kind = kinds.get(name, None if name in verbatim else "number" if numeric else kind_of(dtype))
            if kind == "number" and not pa.types.is_boolean(dtype):
                self._types[name] = pa.float64()  # the first ones may be whole by chance
            elif kind is not None and kind != kind_of(dtype):
                self._types[name] = pa.string() if kind == "text" else pa.timestamp("us")
            place = self.schema.get_field_index(name)
            self.schema = self.schema.set(place, self.schema.field(place).with_type(self._types[name]))

    def batches(self, columns: Sequence[str], condition: Any = None) -> Iterator[Any]:
        wanted = needed(columns, condition, self.schema.names)
        total = sum(self._sizes)
        for k, file in enumerate(self._files):
            self.file = file.name
            with self._errors(file):
                reader, raw, stream = self._open(file)
                for batch in reader:
                    read = min(raw.tell(), self._sizes[k])
                    self.share = min(1.0, (sum(self._sizes[:k]) + read) / total)
                    batch = aligned(self._with_holes(batch, wanted), file, wanted, self.schema, self._files[0].name)
                    yield from self._chosen(batch, columns, condition)
            if isinstance(stream, SourceFile):
                stream.version.check()
                stream.close()

    def _with_holes(self, batch: Any, wanted: Sequence[str]) -> Any:
        """The batch with empty texts, NA and the like as missing values, as they are in columns of numbers."""
        pa, csv_module = arrow(self.name), arrow(self.name, "pyarrow.csv")
        compute = arrow(self.name, "pyarrow.compute")
        holes = pa.array(csv_module.ConvertOptions().null_values)
        for name in wanted:
            place = batch.schema.get_field_index(name)
            if name not in self._verbatim and place >= 0 and kind_of(batch.schema.field(place).type) == "text":
                column = batch.column(place)
                missing = compute.is_in(column, value_set=holes)
                batch = batch.set_column(place, name, compute.if_else(missing, pa.scalar(None, column.type), column))
        return batch

    def _open(self, file: Input) -> tuple[Any, Any, Any]:
        """A reader, the stream that it reads, and the file."""
        arrow_csv = arrow(self.name, "pyarrow.csv")
        names, delimiter, header = self._head(file)
        stream, raw, own = self._stream(file)
        reader = arrow_csv.open_csv(
            stream,
            read_options=arrow_csv.ReadOptions(
                use_threads=False, block_size=read_settings().csv_bytes, column_names=names, skip_rows=int(header)
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter),
            convert_options=arrow_csv.ConvertOptions(
                column_types={name: dtype for name, dtype in self._types.items() if name in names}
            ),
        )
        return reader, raw, own

    def _stream(self, file: Input) -> tuple[Any, Any, Any]:
        """The decompressed stream, the stream of the file, and the file."""
        pa = arrow(self.name)
        if file.local:
            own = SourceFile(file.path) if file.held is None else file.held.duplicate()
            raw = pa.PythonFile(own, mode="r")
        else:
            own = raw = file.arrow_file()
        codec = next((codec for suffix, codec in _CODECS.items() if file.path.lower().endswith(suffix)), None)
        return (raw if codec is None else pa.CompressedInputStream(raw, codec)), raw, own

    def _head(self, file: Input) -> tuple[list[str], str, bool]:
        """Names of the columns, the delimiter, and whether the first line is a header."""
        stream, _, _ = self._stream(file)
        head = stream.read(_MAX_HEAD).decode("utf-8-sig", errors="replace")
        if not head.strip():
            raise DataError(f"{file.name}: no samples")
        line = re.split("[\r\n]", head, maxsplit=1)[0]
        delimiter = max("\t,;", key=line.count)
        try:
            fields = [field.strip() for field in next(csv.reader([line], delimiter=delimiter, strict=True), [])]
        except csv.Error as error:
            raise DataError(f"{file.name}:1: expected the names of the columns ({error})") from None
        if not fields:
            raise DataError(f"{file.name}:1: expected the names of the columns, found an empty line")
        header = not all(map(_is_number, fields))
        names = fields if header else [f"f{place}" for place in range(len(fields))]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"{file.name}: the column {twice!r} appears twice")
        return names, delimiter, header

    @contextmanager
    def _errors(self, file: Input) -> Iterator[None]:
        """Errors of Arrow as DataError, with the row and the name of the column."""
        try:
            with arrow_errors(file.name):
                yield
        except DataError as error:
            found = _BAD_VALUE.search(str(error))
            if found is None:
                raise
            names, _, header = self._head(file)
            row = f"row {int(found[2]) - 1 - header}, " if found[2] else ""
            counted = " (counted from 0)" if row else ""
            raise DataError(
                f"{file.name}: {row}column {names[int(found[1])]!r}: expected a number, found {found[3]!r}{counted}"
            ) from None


def _is_mostly_numbers(column: Any) -> bool:
    """Whether more than half of the distinct texts are numbers."""
    found = words(column) if kind_of(column.type) == "text" else []
    return 2 * sum(map(_is_number, found)) > len(found)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
