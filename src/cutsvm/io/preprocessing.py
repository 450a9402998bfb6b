"""What is done to the columns of a table so that they become X: missing values, text, dates, scales.

It is estimated from the training rows, kept in stores and models, and applied again to the rows to predict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from cutsvm._utils.errors import DataError
from cutsvm._utils.types import Array
from cutsvm.io.formats.arrow_values import Kind, arrow, codes, is_empty, kind_of, numbers

_KINDS = ("number", "date", "text")


_REMEDY = "; missing='mean' or 'zero' fills in such values"


class MissingValueError(DataError):
    """A missing value where none is allowed: the column, and the row counted from 0."""

    def __init__(
        self, column: str, row: int, remedy: str = _REMEDY, file: str | None = None, filtered: bool = False
    ) -> None:
        place = f"row {row}" if file is None else f"{file}: row {row}"
        counted = "counted from 0, after the filter" if filtered else "counted from 0"
        super().__init__(f"{place}, column {column!r}: expected a value, found none ({counted}){remedy}")
        self.column, self.row, self.remedy = column, row, remedy


@dataclass(frozen=True)
class TableColumn:
    """One column of a table.

    A number or a date (in days since 1970-01-01) x becomes (x - shift) / scale, where a missing x is `fill`; None:
    missing values are refused. A text becomes one column for each category: 1 in its own, 0 in the others.
    """

    name: str
    kind: Kind = "number"
    categories: tuple[str, ...] = ()
    fill: float | None = None
    shift: float = 0.0
    scale: float = 1.0

    @property
    def feature_names(self) -> list[str]:
        """The names of the columns of X that it becomes."""
        return [f"{self.name}={text}" for text in self.categories] if self.kind == "text" else [self.name]

    @property
    def changes_values(self) -> bool:
        """Whether a number of the table is another number in X, missing ones aside."""
        return self.kind != "number" or self.shift != 0.0 or self.scale != 1.0

    @cached_property
    def _places(self) -> dict[str, int]:
        return {text: place for place, text in enumerate(self.categories)}

    def codes(self, values: Any, counts: Counts) -> Array:
        """The category of each text, -1 for a missing or unseen one."""
        if kind_of(values.type) is None:
            raise self._refused(values.type)
        found, unseen = codes(values, self._places)
        if unseen:
            counts.unseen[self.name] += unseen
        missing = int(np.count_nonzero(found < 0)) - unseen
        if missing:
            counts.missing_texts[self.name] += missing
        return found

    def values(self, values: Any, counts: Counts) -> Array:
        """The numbers or dates in X."""
        if kind_of(values.type) != self.kind and not is_empty(values.type):
            raise self._refused(values.type)
        found = numbers(values)
        if found.dtype.kind == "f":
            missing = np.isnan(found)
            if missing.any():
                if self.fill is None:
                    raise MissingValueError(self.name, int(np.argmax(missing)))
                counts.filled[self.name] += int(np.count_nonzero(missing))
                found = np.where(missing, self.fill, found.astype(np.float64))
        if self.shift != 0.0 or self.scale != 1.0:
            found = (found.astype(np.float64) - self.shift) / self.scale
        return found

    def _refused(self, dtype: Any) -> DataError:
        return DataError(f"column {self.name!r} holds {dtype}, expected {self.kind}s as in the training data")


@dataclass
class Counts:
    """How many numbers of each column were filled in, how many texts are missing, and how many are no category."""

    filled: Counter[str] = field(default_factory=Counter)
    missing_texts: Counter[str] = field(default_factory=Counter)
    unseen: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Preprocessing:
    """The columns of a table that hold labels, weights and queries, and what is done to the others.

    sparse: whether X is CSR, because that is smaller than an array.
    """

    label: str | None
    weight: str | None
    qid: str | None
    columns: tuple[TableColumn, ...]
    sparse: bool = False

    @cached_property
    def feature_names(self) -> list[str]:
        """The names of the columns of X."""
        return [name for column in self.columns for name in column.feature_names]

    def apply(self, part: Any, counts: Counts | None = None, dtype: DTypeLike = np.float64) -> Any:
        """X for some rows of a table, a pyarrow.RecordBatch or Table: an array or a CSR matrix.

        counts: is added to. `MissingValueError` has the first value that is missing and must not be.
        """
        counts = Counts() if counts is None else counts
        batch = _one_batch(part) if isinstance(part, arrow("a table").Table) else part
        there = set(batch.schema.names)
        absent = [column.name for column in self.columns if column.name not in there]
        if absent:
            raise DataError(f"there is no column {absent[0]!r}, which the model was trained with")
        make = self._csr if self.sparse else self._array
        with np.errstate(over="ignore", invalid="ignore"):  # infinities are refused later, with row and column
            return make(batch, counts, np.dtype(dtype))

    def _array(self, batch: Any, counts: Counts, dtype: np.dtype[Any]) -> Array:
        X = np.empty((batch.num_rows, len(self.feature_names)), dtype=dtype)
        start = 0
        for column in self.columns:
            values = batch.column(column.name)
            if column.kind == "text":
                X[:, start : start + len(column.categories)] = 0.0
                own = column.codes(values, counts)
                rows = np.flatnonzero(own >= 0)
                X[rows, start + own[rows]] = 1.0
            else:
                X[:, start] = column.values(values, counts)
            start += len(column.feature_names)
        return X

    def _csr(self, batch: Any, counts: Counts, dtype: np.dtype[Any]) -> Any:
        """Every row has one entry for each number and each text, unless that is missing or no category."""
        rows, many = batch.num_rows, len(self.columns)
        values, places = np.ones((rows, many), dtype=dtype), np.empty((rows, many), dtype=np.int32)
        start, some_missing = 0, False
        for k, column in enumerate(self.columns):
            if column.kind == "text":
                own = column.codes(batch.column(column.name), counts)
                some_missing |= bool((own < 0).any())
                np.add(own, start, out=places[:, k], where=own >= 0, casting="unsafe")
                places[own < 0, k] = -1
            else:
                values[:, k] = column.values(batch.column(column.name), counts)
                places[:, k] = start
            start += len(column.feature_names)
        pointers = np.arange(rows + 1, dtype=np.int32) * many
        if some_missing:
            present = places >= 0
            values, places = values[present], places[present]
            np.cumsum(present.sum(axis=1), out=pointers[1:])
        shape = (rows, len(self.feature_names))
        X: Any = sparse.csr_matrix((values.reshape(-1), places.reshape(-1), pointers), shape=shape)
        X.has_sorted_indices = X.has_canonical_format = True
        return X

    def to_dict(self) -> dict[str, Any]:
        """As values of JSON."""
        known = asdict(self)
        known["columns"] = [{**column, "categories": list(column["categories"])} for column in known["columns"]]
        return known

    @classmethod
    def from_dict(cls, known: Any) -> Preprocessing:
        """The inverse of `to_dict`; ValueError says what is wrong: a file may be damaged."""
        _check_names(cls, known, "preprocessing")
        for name in ("label", "weight", "qid"):
            if known[name] is not None and type(known[name]) is not str:
                raise ValueError(f"preprocessing: {name} is {known[name]!r}, expected the name of a column")
        if type(known["sparse"]) is not bool or type(known["columns"]) is not list:
            raise ValueError("preprocessing: sparse is not true or false, or columns is not a list")
        columns = tuple(map(_column, known["columns"]))
        if len({column.name for column in columns}) < len(columns):
            raise ValueError("preprocessing: a column appears twice")
        return cls(known["label"], known["weight"], known["qid"], columns, known["sparse"])


def _column(known: Any) -> TableColumn:
    _check_names(TableColumn, known, "preprocessing of a column")
    name, kind, texts = known["name"], known["kind"], known["categories"]
    if type(name) is not str or kind not in _KINDS:
        raise ValueError(f"preprocessing: column {name!r} is of the kind {kind!r}, expected {', '.join(_KINDS)}")
    legal = type(texts) is list and all(type(text) is str for text in texts) and (kind == "text" or not texts)
    if not legal or texts != sorted(set(texts)):
        raise ValueError(f"preprocessing: the categories of {name!r} are not distinct texts in order")
    numbers = {what: known[what] for what in ("fill", "shift", "scale")}
    for what, number in numbers.items():
        if number is None and what == "fill":
            continue
        if type(number) not in (int, float) or not isfinite(number) or (what == "scale" and number <= 0.0):
            raise ValueError(f"preprocessing: {what} of {name!r} is {number!r}")
        numbers[what] = float(number)
    return TableColumn(name, kind, tuple(texts), **numbers)


def _check_names(kind: type, known: Any, what: str) -> None:
    names = [own.name for own in fields(kind)]
    if not isinstance(known, Mapping) or set(known) != set(names):
        raise ValueError(f"{what}: expected an object with {', '.join(names)}")


def _one_batch(part: Any) -> Any:
    """The rows of a pyarrow.Table as one batch."""
    batches = part.combine_chunks().to_batches()
    return batches[0] if batches else part.schema.empty_table().to_batches()[0]
