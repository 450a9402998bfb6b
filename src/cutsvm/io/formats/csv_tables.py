"""CSV and TSV files as tables, by pyarrow.csv: pyarrow.dataset does not tell the row of a bad value.

Blocks of whole lines are read here and parsed by Arrow one after the other. Arrow's own reader of streams reads ahead
in a thread, which aborts the process if it is still at work when Python ends.
"""

from __future__ import annotations

import csv
import lzma
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from cutsvm._utils.errors import DataError
from cutsvm.io.files import SourceFile
from cutsvm.io.formats.arrow_values import arrow, kind_of, words
from cutsvm.io.formats.table_files import Tables, aligned, arrow_errors, key_types, needed, with_text_keys
from cutsvm.io.paths import Input
from cutsvm.io.settings import read_settings

_MAX_HEAD = 1 << 20  # bytes that show what the columns hold
_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_ROW = re.compile(r"Row #(\d+)")
_RAGGED = re.compile(r"CSV parse error: Row #(\d+): Expected (\d+) columns, got (\d+)")
_BAD_VALUE = re.compile(
    r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to (\w+)(?:\[\w+\])?: invalid value '(.*)'", re.S
)


class CsvTables(Tables):
    """Files of CSV. The first lines of the first file tell which columns hold numbers, dates and texts."""

    def __init__(self, name: str, files: Sequence[Input]) -> None:
        self.name, self._files = name, files
        self.file = files[0].name
        self._sizes = [file.size or 1 for file in files]
        self._types: dict[str, Any] = {}
        self._verbatim: frozenset[str] = frozenset()
        self._first: tuple[list[str], int] = ([], 0)  # the columns of the file that is read, and its rows so far
        with self._errors(files[0]):
            head = _Head(files[0])
            first = self._parsed(head.lines(), head)
            self._types = {column: first.column(column).type for column in head.names}
            self._damaged = {column for column in head.names if _is_mostly_numbers(first.column(column))}
        pa = arrow(name)
        fields = [pa.field(column, self._types[column]) for column in head.names]
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
        schema = pa.schema([field.with_type(self._types.get(field.name, field.type)) for field in self.schema])
        self.schema = with_text_keys(schema, self._files, kinds)

    def batches(self, columns: Sequence[str], condition: Any = None) -> Iterator[Any]:
        wanted = needed(columns, condition, self.schema.names)
        total, first = sum(self._sizes), self._files[0].name
        for k, file in enumerate(self._files):
            self.file = file.name
            with self._errors(file):
                head = _Head(file)
                stream, raw, own = _stream(file)
                rows = 0
                for block in _blocks(stream, head):
                    self._first = (head.names, rows)
                    table = self._parsed(block, head, wanted)
                    rows += table.num_rows
                    self.share = min(1.0, (sum(self._sizes[:k]) + min(raw.tell(), self._sizes[k])) / total)
                    for batch in table.combine_chunks().to_batches():
                        batch = aligned(self._with_holes(batch, wanted), file, wanted, self.schema, first)
                        yield from self._chosen(batch, columns, condition)
            if isinstance(own, SourceFile):
                own.version.check()
                own.close()

    def _parsed(self, lines: bytes, head: _Head, wanted: Sequence[str] | None = None) -> Any:
        """The table of some lines. Arrow tells the row of a bad value only if it uses one thread."""
        pa, arrow_csv = arrow(self.name), arrow(self.name, "pyarrow.csv")
        needed_names = set(head.names if wanted is None else wanted)
        own = [name for name in head.names if name in needed_names]
        types = {name: self._types[name] for name in own if name in self._types}

        def read(threads: bool) -> Any:
            return arrow_csv.read_csv(
                pa.BufferReader(lines),
                read_options=arrow_csv.ReadOptions(use_threads=threads, column_names=head.names),
                parse_options=arrow_csv.ParseOptions(delimiter=head.delimiter),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=types, include_columns=[] if len(own) == len(head.names) else own
                ),
            )

        try:
            return read(True)
        except pa.ArrowInvalid:
            return read(False)

    def _with_holes(self, batch: Any, wanted: Sequence[str]) -> Any:
        """The batch with empty texts, NA and the like as missing values, as they are in columns of numbers.

        Of labels, queries and columns to keep only empty texts are: NA may be the name of a class.
        """
        pa, csv_module = arrow(self.name), arrow(self.name, "pyarrow.csv")
        compute = arrow(self.name, "pyarrow.compute")
        holes = pa.array(csv_module.ConvertOptions().null_values)
        for name in wanted:
            place = batch.schema.get_field_index(name)
            if place >= 0 and kind_of(batch.schema.field(place).type) == "text":
                column = batch.column(place)
                missing = compute.is_in(column, value_set=pa.array([""]) if name in self._verbatim else holes)
                batch = batch.set_column(place, name, compute.if_else(missing, pa.scalar(None, column.type), column))
        return batch

    @contextmanager
    def _errors(self, file: Input) -> Iterator[None]:
        """Errors of Arrow as DataError, with the row and the name of the column."""
        try:
            with arrow_errors(file.name):
                yield
        except DataError as error:
            names, rows = self._first
            text = _ROW.sub(lambda found: f"Row #{int(found[1]) + rows}", str(error))
            found = _BAD_VALUE.search(text)
            ragged = _RAGGED.search(text)
            if ragged is not None:
                line = int(ragged[1]) + 1  # below the names
                raise DataError(f"{file.name}:{line}: Expected {ragged[2]} columns, got {ragged[3]}") from None
            if found is None:
                raise DataError(text) from None
            row = f"row {int(found[2]) - 1}, " if found[2] else ""
            counted = " (counted from 0)" if row else ""
            dates = found[3].startswith(("timestamp", "date", "time"))
            what = "a date" if dates else "a whole number, as in the first lines" if "int" in found[3] else "a number"
            raise DataError(
                f"{file.name}: {row}column {names[int(found[1])]!r}: expected {what}, found {found[4]!r}{counted}"
            ) from None


class _Head:
    """The beginning of a file: names of the columns, the delimiter, and the bytes of the line of names."""

    def __init__(self, file: Input) -> None:
        stream, _, own = _stream(file)
        self._text = bytes(stream.read(_MAX_HEAD))
        own.close()
        head = self._text.decode("utf-8-sig", errors="replace")
        if not head.strip():
            raise DataError(f"{file.name}: no samples")
        line = re.split("[\r\n]", head, maxsplit=1)[0]
        self.delimiter = max("\t,;", key=line.count)
        try:
            fields = [field.strip() for field in next(csv.reader([line], delimiter=self.delimiter, strict=True), [])]
        except csv.Error as error:
            raise DataError(f"{file.name}:1: expected the names of the columns ({error})") from None
        if not fields:
            raise DataError(f"{file.name}:1: expected the names of the columns, found an empty line")
        header = not all(map(_is_number, fields))
        self.names = fields if header else [f"f{place}" for place in range(len(fields))]
        if len(set(self.names)) < len(self.names):
            twice = max(self.names, key=self.names.count)
            raise DataError(f"{file.name}: the column {twice!r} appears twice")
        bare = self._text.removeprefix(b"\xef\xbb\xbf")
        self.skipped = len(self._text) - len(bare)
        if header:
            found = re.search(b"\r\n|\r|\n", bare)
            self.skipped += len(bare) if found is None else found.end()
        if not self._text[self.skipped :].strip():
            raise DataError(f"{file.name}: no samples")

    def lines(self) -> bytes:
        """The first lines that are complete."""
        text = self._text[self.skipped :]
        end = _last_line_end(text)
        return text[:end] if end and len(self._text) == _MAX_HEAD else text


def _stream(file: Input) -> tuple[Any, Any, Any]:
    """The decompressed stream, the stream of the file, and the file."""
    pa = arrow(file.name)
    if file.local:
        own = SourceFile(file.path) if file.held is None else file.held.duplicate()
        raw = pa.PythonFile(own, mode="r")
    else:
        own = raw = file.arrow_file()
    if file.path.lower().endswith(".xz"):
        return pa.PythonFile(lzma.open(raw), mode="r"), raw, own
    codec = next((codec for suffix, codec in _CODECS.items() if file.path.lower().endswith(suffix)), None)
    return (raw if codec is None else pa.CompressedInputStream(raw, codec)), raw, own


def _blocks(stream: Any, head: _Head) -> Iterator[bytes]:
    """Blocks of whole lines, without the line of names."""
    rest, size = b"", read_settings().csv_bytes
    stream.read(head.skipped)
    while piece := stream.read(size):
        text = rest + piece
        end = _last_line_end(text)
        rest = text[end:]
        if text[:end].strip():
            yield text[:end]
    if rest.strip():
        yield rest


def _last_line_end(text: bytes) -> int:
    """The place after the last line break; 0 if there is none."""
    return max(text.rfind(b"\n"), text.rfind(b"\r")) + 1 if b"\n" not in text else text.rfind(b"\n") + 1


def _is_mostly_numbers(column: Any) -> bool:
    """Whether half of the distinct texts or more are numbers."""
    found = words(column) if kind_of(column.type) == "text" else []
    return bool(found) and 2 * sum(map(_is_number, found)) >= len(found)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
