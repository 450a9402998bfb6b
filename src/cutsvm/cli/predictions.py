"""The files that `cutsvm predict` writes: text, Parquet or Arrow, block by block."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, BinaryIO

import numpy as np

from cutsvm._utils.text import printable
from cutsvm._utils.types import Array, Vector
from cutsvm.cli.messages import CommandError

FORMATS = ("text", "parquet", "arrow")
_SUFFIXES = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow"}
_LINES_PER_PIECE = 8192


@dataclass(frozen=True, eq=False)
class Predicted:
    """What is written of some rows; kept: a pyarrow.RecordBatch of columns of the data."""

    labels: Array | None = None
    scores: Vector | None = None
    chances: Vector | None = None
    kept: Any = None

    @property
    def rows(self) -> int:
        part = self.scores if self.labels is None else self.labels
        return 0 if part is None else len(part)


def format_of_output(path: str | None, given: str | None) -> str:
    """The format asked for, or the one of the suffix of the file."""
    suffix = os.path.splitext(path or "")[1].lower()
    return given or _SUFFIXES.get(suffix, "text")


@contextmanager
def writer(kind: str, stream: BinaryIO, classes: Array | None) -> Iterator[Callable[[Predicted], None]]:
    """A function that writes some rows to the stream; classes: of the model, if it has classes."""
    if kind == "text":
        yield _TextWriter(stream, classes).write
        return
    with _TableWriter(kind, stream, classes) as table:
        yield table.write


class _TextWriter:
    """A line for each row: its kept columns, then its label, or its scores, or its label and probabilities.

    Labels are whole numbers as 1 and not as 1.0, scores exact to the last bit. Probabilities are as LIBLINEAR's: a line
    `labels` with the classes comes first. Kept columns end with a tab.
    """

    def __init__(self, stream: BinaryIO, classes: Array | None) -> None:
        self._stream, self._classes = stream, classes
        self._texts: dict[Any, str] = {}  # of labels, as there are few
        self._is_first = True

    def write(self, part: Predicted) -> None:
        if self._is_first and part.chances is not None:
            assert self._classes is not None
            labels = " ".join(map(shown_label, self._classes.tolist()))
            names = [] if part.kept is None else [printable(name) for name in part.kept.schema.names]
            self._put(["\t".join([*names, f"labels {labels}"])])
        self._is_first = False
        for start in range(0, part.rows, _LINES_PER_PIECE):
            mine = slice(start, start + _LINES_PER_PIECE)
            lines = self._lines(part, mine)
            if part.kept is not None:
                kept = part.kept.slice(start, _LINES_PER_PIECE)
                columns = [map(_shown_value, column.to_pylist()) for column in kept.columns]
                lines = map("\t".join, zip(*columns, lines, strict=True))
            self._put(lines)

    def _lines(self, part: Predicted, mine: slice) -> Iterator[str]:
        labels: Iterator[str] = iter(())
        if part.labels is not None:
            own = part.labels[mine].tolist()
            labels = map(shown_label, own) if self._classes is None else map(self._known_label, own)
        numbers = part.scores if part.chances is None else part.chances
        if numbers is None:
            return labels
        rows = numbers[mine].reshape(len(numbers[mine]), -1).tolist()
        texts = (" ".join(map(repr, row)) for row in rows)
        return texts if part.labels is None else map(" ".join, zip(labels, texts, strict=True))

    def _known_label(self, value: Any) -> str:
        if value not in self._texts:
            self._texts[value] = shown_label(value)
        return self._texts[value]

    def _put(self, lines: Any) -> None:
        self._stream.write("".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace"))


class _TableWriter:
    """Columns: those that are kept, prediction, score or score_CLASS, probability_CLASS."""

    def __init__(self, kind: str, stream: BinaryIO, classes: Array | None) -> None:
        self._kind, self._stream = kind, stream
        self._classes = [] if classes is None else [shown_label(label) for label in classes.tolist()]
        self._arrow = arrow_library("pyarrow", kind)
        self._open: Any = None

    def __enter__(self) -> _TableWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if self._open is None:
            return
        # After an error it is closed too, since pyarrow would do so later, and print that it cannot.
        with nullcontext() if kind is None else suppress(Exception):
            self._open.close()

    def write(self, part: Predicted) -> None:
        columns: dict[str, Any] = {}
        if part.kept is not None:
            for name, column in zip(part.kept.schema.names, part.kept.columns, strict=True):
                # A file of Arrow cannot have another dictionary in each batch.
                is_coded = self._arrow.types.is_dictionary(column.type)
                columns[name] = column.dictionary_decode() if is_coded else column
        own = self._numbers(part)
        twice = next((name for name in own if name in columns), None)
        if twice is not None:
            raise CommandError(f"--keep {twice}: the predictions have a column of this name; rename that of the data")
        table = self._arrow.table(columns | own)
        if self._open is None:
            self._open = self._opened(table.schema)
        self._open.write_table(table)

    def _numbers(self, part: Predicted) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if part.labels is not None:
            found["prediction"] = self._arrow.array(part.labels)
        for name, numbers in (("score", part.scores), ("probability", part.chances)):
            if numbers is None:
                continue
            if numbers.ndim == 1:
                found[name] = self._arrow.array(numbers)
                continue
            for label, column in zip(self._classes, numbers.T, strict=True):
                found[f"{name}_{label}"] = self._arrow.array(np.ascontiguousarray(column))
        return found

    def _opened(self, schema: Any) -> Any:
        if self._kind == "parquet":
            return arrow_library("pyarrow.parquet", self._kind).ParquetWriter(self._stream, schema)
        return arrow_library("pyarrow.ipc", self._kind).new_file(self._stream, schema)


def arrow_library(name: str, kind: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise CommandError(f"--format {kind} needs the package pyarrow: pip install cutsvm[files]") from None


def shown_label(value: Any) -> str:
    """A label as text, on one line."""
    # A text may hold a line break or an escape sequence for the terminal.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else printable(str(value))


def _shown_value(value: Any) -> str:
    """A value of a kept column; nothing where it is missing."""
    return "" if value is None else printable(str(value))
