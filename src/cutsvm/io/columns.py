"""Which columns of a table are labels, weights and queries; the others are features."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cutsvm._utils.errors import DataError
from cutsvm._utils.text import listed
from cutsvm._utils.validation import one_of
from cutsvm.io.preprocessing import Preprocessing

Labels = Literal["required", "optional", "none"]
# Names of the column of labels that are looked for if the user names none.
_LABELS = ("label", "y", "target", "class")


_PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # pandas writes the index of a frame as a column


@dataclass(frozen=True)
class ColumnSpec:
    """The columns of a table and what is to be done to them, as the user states it.

    label, weight, qid: names or numbers of columns, None to look for them. columns: the features, None: all others;
    exclude: columns that are no features; keep: columns that batches carry along. filter: the rows, a pyarrow
    expression. labels: whether there must be a column of labels, may be, or is to be left alone. preprocessing: that of
    a store or a model; it is applied and nothing is estimated.
    """

    label: str | int | None = None
    weight: str | int | None = None
    qid: str | int | None = None
    columns: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    keep: Sequence[str] = ()
    filter: Any = None
    labels: Labels = "required"
    categorical: Literal["one-hot", "refuse"] = "one-hot"
    missing: Literal["mean", "zero", "refuse"] = "mean"
    scale: Literal["none", "standard", "minmax"] = "none"
    preprocessing: Preprocessing | None = None

    def checked(self) -> ColumnSpec:
        """The specification itself; ValueError for a value that is not legal."""
        for name, value in (("columns", self.columns), ("exclude", self.exclude)):
            if isinstance(value, str):
                raise ValueError(f"{name}={value!r}: expected a list of names, as [{value!r}]")
        one_of("categorical", self.categorical, ("one-hot", "refuse"))
        one_of("missing", self.missing, ("mean", "zero", "refuse"))
        one_of("scale", self.scale, ("none", "standard", "minmax"))
        return self

    def refuse_table_options(self, why: str, besides: Sequence[str] = ()) -> None:
        """Raise if something is stated that only tables have."""
        stated = {name: getattr(self, name) is not None for name in ("label", "weight", "qid", "columns", "filter")}
        stated |= {"exclude": len(self.exclude) > 0, "keep": len(self.keep) > 0, "scale": self.scale != "none"}
        given = [f"{name}=" for name, is_stated in stated.items() if is_stated and name not in besides]
        if given:
            words = "names a column" if len(given) == 1 else "name columns"
            raise ValueError(f"{' and '.join(given)} {words} of a table; {why}")

    def resolve(self, source: str, names: Sequence[str]) -> ColumnNames:
        """These columns among `names`; source: of the table, for messages."""
        known = self.preprocessing
        label = self._label(source, names)
        weight = _other(source, names, self.weight, None if known is None else known.weight, "sample_weight")
        qid = _other(source, names, self.qid, None if known is None else known.qid, "qid")
        taken = [name for name in (label, weight, qid) if name is not None]
        if len(set(taken)) < len(taken):
            raise DataError(f"{source}: label, weight and qid must be different columns")
        for name in (*self.exclude, *self.keep):
            _name_of(source, names, name)
        there = set(names)
        if known is not None:
            features = [column.name for column in known.columns]
            absent = [name for name in features if name not in there]
            if absent:
                raise DataError(f"{source}: there is no column {absent[0]!r}, which the model was trained with")
        elif self.columns is not None:
            features = [name if name in there else _name_of(source, names, name) for name in self.columns]
        else:
            features = list(names)
        if known is None:
            unused = {*taken, *(_name_of(source, names, name) for name in self.exclude)}
            unused |= set(self._unread_labels(names))
            unused |= {name for name in names if _PANDAS_INDEX.fullmatch(name)} - set(self.columns or ())
            features = [name for name in dict.fromkeys(features) if name not in unused]
        counts = Counter(names)
        twice = next((name for name in (*taken, *features) if counts[name] > 1), None)
        if twice is not None:
            raise DataError(f"{source}: the column {twice!r} appears twice")
        return ColumnNames(label, weight, qid, features, [*dict.fromkeys([*features, *taken, *self.keep])])

    def _label(self, source: str, names: Sequence[str]) -> str | None:
        if self.labels == "none":
            return None
        label = self.label
        if label is None and self.preprocessing is not None:
            label = self.preprocessing.label
        if label is None:
            known = self.preprocessing
            features = () if known is None else {column.name for column in known.columns}
            found = [name for name in _LABELS if name in names and name not in features]
            if len(found) == 1:
                return found[0]
            if self.labels == "optional":
                return None
            raise DataError(f"{source}: which column has the labels? label= expects one of the columns {listed(names)}")
        if self.labels == "optional" and isinstance(label, str) and self.label is None and label not in names:
            return None
        return _name_of(source, names, label)

    def _unread_labels(self, names: Sequence[str]) -> list[str]:
        """The column of labels if it is to be left alone: it is no feature."""
        if self.labels != "none":
            return []
        if self.label is not None:
            return [names[_index_of("table", names, self.label)]] if self.label in names else []
        return [name for name in _LABELS if name in names]


@dataclass(frozen=True)
class ColumnNames:
    """Names of columns; read: all that are read."""

    label: str | None
    weight: str | None
    qid: str | None
    features: list[str]
    read: list[str]


def _name_of(source: str, names: Sequence[str], column: str | int) -> str:
    return names[_index_of(source, names, column)]


def _index_of(source: str, names: Sequence[str], column: str | int) -> int:
    if column in names:
        if names.count(str(column)) > 1:
            raise DataError(f"{source}: the column {column!r} appears twice")
        return list(names).index(str(column))
    try:
        number = int(column)
    except ValueError:
        number = len(names)
    if not -len(names) <= number < len(names):
        raise DataError(f"{source}: there is no column {column!r}; the columns are {listed(names)}")
    return number % len(names)


def _other(source: str, names: Sequence[str], given: str | int | None, stored: str | None, usual: str) -> str | None:
    """The column of weights or of queries: as given, as in the training data, or by its usual name."""
    if given is not None:
        return _name_of(source, names, given)
    return next((name for name in (stored, usual) if name is not None and name in names), None)
