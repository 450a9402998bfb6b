"""What is done to the columns of a table so that they become X: missing values, text, dates, scales.

It is estimated from the training rows, kept in stores and models, and applied again to the rows to predict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import isfinite
from typing import Any, Literal

Kind = Literal["number", "date", "text"]
_KINDS = ("number", "date", "text")


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

    @property
    def feature_names(self) -> list[str]:
        """The names of the columns of X."""
        return [name for column in self.columns for name in column.feature_names]

    def apply(self, part: Any) -> Any:
        """X for some rows of a table, a pyarrow.RecordBatch: an array or a CSR matrix."""
        raise NotImplementedError

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
