"""Tables as sources of rows: the columns are found, preprocessed and become X, labels, weights and queries.

Nothing that the preprocessing needs is guessed: means, scales and categories are those of all rows. So a source with
texts or scales is read twice. One of numbers is read once, and again if a value is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from cutsvm._utils.errors import DataError
from cutsvm._utils.types import Array
from cutsvm.io.columns import ColumnSpec
from cutsvm.io.estimates import Estimate, NumberEstimate, TextEstimate
from cutsvm.io.filters import parse_filter
from cutsvm.io.formats.arrow_values import Kind, arrow, is_narrow, kind_of, labels
from cutsvm.io.formats.table_files import Tables, arrow_errors
from cutsvm.io.preprocessing import Counts, MissingValueError, Preprocessing, TableColumn
from cutsvm.io.store.batches import Batch, ReadAgain, Source


class TableSource(Source):
    """The rows of a table."""

    def __init__(self, tables: Tables, spec: ColumnSpec) -> None:
        self.name, self._tables, self._spec = tables.name, tables, spec
        names = self._names = spec.resolve(tables.name, tables.schema.names)
        known: dict[str, str] = {} if names.weight is None else {names.weight: "number"}
        if spec.preprocessing is not None:
            known |= {column.name: column.kind for column in spec.preprocessing.columns}
        others = {name for name in (names.label, names.qid, *spec.keep) if name is not None}
        only_numbers = spec.categorical == "refuse" and spec.preprocessing is None
        tables.expect(known, list(others - set(names.features)), only_numbers=only_numbers)
        self._filter = parse_filter(spec.filter, tables.schema)
        self._check_labels()
        self.counts = Counts()
        self._files: list[tuple[int, str]] = []  # the first row of each file, and its name
        self._read_twice = False
        self._dtype: np.dtype[Any] = np.dtype(np.float64)
        self.preprocessing = spec.preprocessing
        if self.preprocessing is None:
            self._kinds = {name: self._kind(name) for name in names.features}
            numbers = [name for name, kind in self._kinds.items() if kind != "text"]
            if numbers and spec.scale == "none" and all(is_narrow(tables.schema.field(name).type) for name in numbers):
                self._dtype = np.dtype(np.float32)
            self._read_twice = spec.scale != "none" or len(numbers) < len(self._kinds)
            # Only those who read labels, to train, expect ReadAgain.
            self._read_twice |= spec.labels != "required" and spec.missing == "mean"
            self.feature_names = names.features
            if not self._read_twice and spec.missing != "mean":
                self.preprocessing = self._estimated({})
        if self.preprocessing is not None:
            self.feature_names = self.preprocessing.feature_names

    def __iter__(self) -> Iterator[Batch]:
        self.counts, self._files = Counts(), []
        if self._read_twice and self.preprocessing is None:
            self.preprocessing = self._estimated(self._estimates_of_all())
            self.feature_names = self.preprocessing.feature_names
        if self.preprocessing is None:
            yield from self._rows_once()
        else:
            yield from self._rows(self.preprocessing)

    def _rows(self, preprocessing: Preprocessing) -> Iterator[Batch]:
        """The rows, with a preprocessing that is known."""
        for part, first in self._parts(self._names.read):
            with self._errors(first):
                X = preprocessing.apply(part, self.counts, self._dtype)
            yield self._batch(X, part, first)

    def _rows_once(self) -> Iterator[Batch]:
        """The rows of a table of numbers, while their means are estimated; ReadAgain if a value is missing."""
        estimates = self._estimates()
        plain = Preprocessing(None, None, None, tuple(TableColumn(name, kind) for name, kind in self._kinds.items()))
        for part, first in self._parts(self._names.read):
            try:
                with self._errors(first):
                    X = plain.apply(part, self.counts, self._dtype)
            except MissingValueError:
                self._read_twice = True
                raise ReadAgain from None
            for estimate in estimates.values():
                estimate.add(part.column(estimate.name))
            yield self._batch(X, part, first)
        self.preprocessing = self._estimated(estimates)

    def _parts(self, columns: list[str]) -> Iterator[tuple[Any, int]]:
        """Batches of Arrow, and the number of their first rows."""
        first = 0
        for part in self._tables.batches(columns, self._filter):
            if not self._files or self._files[-1][1] != self._tables.file:
                self._files.append((first, self._tables.file))
            self.share = self._tables.share
            yield part, first
            first += part.num_rows

    def _estimates(self) -> dict[str, Estimate]:
        """Estimates of the columns for which something has to be estimated."""
        spec, found = self._spec, dict[str, Estimate]()
        for name, kind in self._kinds.items():
            if kind == "text":
                found[name] = TextEstimate(name, self.name)
            elif spec.missing == "mean" or spec.scale != "none":
                found[name] = NumberEstimate(name, kind, spec.scale != "none")
        return found

    def _estimates_of_all(self) -> dict[str, Estimate]:
        estimates = self._estimates()
        for part, _ in self._parts(list(estimates)) if estimates else ():
            for estimate in estimates.values():
                estimate.add(part.column(estimate.name))
        self._files = []
        if any(isinstance(estimate, NumberEstimate) and estimate.missing for estimate in estimates.values()):
            self._dtype = np.dtype(np.float64)  # of the means that fill them in
        return estimates

    def _estimated(self, estimates: dict[str, Estimate]) -> Preprocessing:
        spec = self._spec
        fill = 0.0 if spec.missing == "zero" else None
        columns = tuple(
            estimates[name].column(self.name, spec.missing, spec.scale)
            if name in estimates
            else TableColumn(name, kind, fill=fill)
            for name, kind in self._kinds.items()
        )
        found = Counter(name for column in columns for name in column.feature_names)
        if found and max(found.values()) > 1:
            twice = found.most_common(1)[0][0]
            raise DataError(f"{self.name}: two features would be called {twice!r}; leave a column out: exclude=")
        # Bytes of a row: eight for a value, and four for the place of one in CSR.
        sparse = 12 * len(columns) + 4 < 8 * len(found)
        names = self._names
        return Preprocessing(names.label, names.weight, names.qid, columns, sparse)

    def _kind(self, name: str) -> Kind:
        dtype = self._tables.schema.field(name).type
        kind = kind_of(dtype)
        leave = f"leave it out: exclude=[{name!r}], on the command line --exclude {name}"
        if kind is None:
            raise DataError(f"{self.name}: column {name!r} holds {dtype}, expected numbers, texts or dates; {leave}")
        if kind == "text" and self._spec.categorical == "refuse":
            raise DataError(
                f"{self.name}: column {name!r} holds text, expected numbers; {leave}, or make it numbers: "
                "categorical='one-hot' makes one column for each value"
            )
        return kind

    def _check_labels(self) -> None:
        """Refuse labels and queries that are neither numbers nor text, and weights that are no numbers."""
        expected = {self._names.label: "numbers or text", self._names.qid: "numbers or text"}
        for name, words in {**expected, self._names.weight: "numbers"}.items():
            dtype = None if name is None else self._tables.schema.field(name).type
            if dtype is not None and kind_of(dtype) not in words.replace("numbers", "number").split(" or "):
                raise DataError(f"{self.name}: column {name!r} holds {dtype}, expected {words}")

    def _batch(self, X: Any, part: Any, first: int) -> Batch:
        names = self._names
        y, weights, qid = (self._column(part, name, first) for name in (names.label, names.weight, names.qid))
        return Batch(X, y, weights, qid, kept=self._kept(part) if self._spec.keep else None)

    def _kept(self, part: Any) -> Any:
        """The columns to keep, of the types of the first file, also if they are features."""
        columns = {name: part.column(name) for name in self._spec.keep}
        types = {name: self._tables.schema.field(name).type for name in columns}
        with arrow_errors(self._tables.file):
            found = [
                column if column.type == types[name] else column.cast(types[name]) for name, column in columns.items()
            ]
        return arrow(self.name).RecordBatch.from_arrays(found, names=list(columns))

    def _column(self, part: Any, name: str | None, first: int) -> Array | None:
        """Labels, weights or queries: none is missing."""
        if name is None:
            return None
        column = part.column(name)
        with self._errors(first):
            if column.null_count:
                raise MissingValueError(name, int(np.argmax(column.is_null().to_numpy(zero_copy_only=False))), "")
            return labels(column)

    def where(self, row: int) -> tuple[str, int]:
        """The file of a row, and the number of the row in it; with a filter, among the rows that it leaves."""
        place = max((place for place, (first, _) in enumerate(self._files) if first <= row), default=None)
        return (self.name, row) if place is None else (self._files[place][1], row - self._files[place][0])

    @contextmanager
    def _errors(self, first: int) -> Iterator[None]:
        """Name the file, and the row of a missing value; first: the number of the first row of the batch."""
        try:
            yield
        except MissingValueError as error:
            file, row = self.where(first + error.row)
            raise MissingValueError(error.column, row, error.remedy, file, self._filter is not None) from None
        except DataError as error:
            raise DataError(f"{self._tables.file}: {error}") from None

    def missing(self) -> Mapping[str, int]:
        return self.counts.filled + self.counts.missing_texts

    def summary(self) -> str:
        """What was done to the columns, in a line; nothing if the values are as they were."""
        if self.preprocessing is None:
            return ""
        parts = []
        total = self.counts.filled.total()
        if total:
            many = len(self.counts.filled)
            what = "zeros" if self._spec.missing == "zero" else "its mean" if many == 1 else "their means"
            parts.append(f"filled {total:,} missing value{'s' * (total > 1)} of {_columns(many)} with {what}")
        for column in self.preprocessing.columns:
            if column.kind == "text":
                parts.append(f"{column.name}: {_columns(len(column.categories))}, one for each value")
        dates = [column.name for column in self.preprocessing.columns if column.kind == "date"]
        parts += [f"{', '.join(dates)}: in days since 1970-01-01"] if dates else []
        scales = {"standard": "mean 0 and standard deviation 1", "minmax": "0 to 1"}
        if self._spec.scale in scales:
            parts.append(f"numbers and dates scaled to {scales[self._spec.scale]}")
        return "; ".join(parts)


def _columns(many: int) -> str:
    return f"{many:,} column{'s' * (many != 1)}"
