"""Conditions on the rows of a store, as text: "label == 3 and age > 90"."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cutsvm._utils.types import Array
from cutsvm.io.filters import parse_filter
from cutsvm.io.formats.arrow_values import arrow
from cutsvm.io.formats.table_files import arrow_errors
from cutsvm.io.preprocessing import Preprocessing, TableColumn
from cutsvm.io.store.store import Store

_SECONDS = 86400.0  # of a day


def rows_where(store: Store, text: str) -> NDArray[np.bool_]:
    """Whether a condition holds, for each row.

    It may name label, weight, qid, row (its number) and features; and where the rows come from a table, the columns of
    that, with their values there.
    """
    pa = arrow("filter")
    columns = _columns_of(store)
    names = [name for name in columns if name in text] or ["row"]
    found = np.zeros(store.shape[0], dtype=np.bool_)
    for k, (first, last) in enumerate(pairwise(store.edges.tolist())):
        block = _Block(store, k, slice(first, last))
        table = pa.table({name: columns[name](block) for name in names})
        types = {name: (name, table.schema.field(name).type) for name in names}
        condition = parse_filter(text, pa.schema([types.get(name, (name, pa.float64())) for name in columns]))
        place = f"{max(names, key=len)}-"  # a name that no column has
        numbered = table.append_column(place, pa.array(np.arange(first, last)))
        with arrow_errors(f"filter {text!r}"):  # a text beside a number
            found[numbered.filter(condition)[place].to_numpy()] = True
    return found


class _Block:
    """A block of rows; X is read where a condition names a feature."""

    def __init__(self, store: Store, number: int, rows: slice) -> None:
        self._store, self._number, self.rows = store, number, rows
        self._X: Any = None

    def feature(self, column: int) -> Array:
        store = self._store
        if self._X is None:
            arrays = store.read(self._number)
            shape = (self.rows.stop - self.rows.start, store.shape[1])
            self._X = sparse.csr_matrix(arrays, shape=shape).tocsc() if store.sparse else arrays[0]
        values: Any = self._X[:, [column]]
        return np.asarray(values.toarray() if store.sparse else values).ravel()


Column: TypeAlias = Callable[[_Block], Any]


def _columns_of(store: Store) -> dict[str, Column]:
    """What a condition may name, and how its values are found."""
    found: dict[str, Column] = {"row": lambda block: np.arange(block.rows.start, block.rows.stop)}
    found |= {name: _feature(place) for place, name in enumerate(store.feature_names or [])}
    parts = store.manifest.parts
    found["label"] = _numbers(store.column("y"), store.texts("label_names"))
    if "weights" in parts:
        found["weight"] = _numbers(store.column("weights"), None)
    if "qid" in parts:
        found["qid"] = _numbers(store.column("qid"), store.texts("qid_names"))
    if store.manifest.preprocessing is not None:
        known = Preprocessing.from_dict(store.manifest.preprocessing)
        given = ((known.label, "label"), (known.weight, "weight"), (known.qid, "qid"))
        found |= {name: found[column] for name, column in given if name is not None and column in found}
        place = 0
        for column in known.columns:
            found[column.name] = _table_column(column, place)
            place += len(column.feature_names)
    return found


def _numbers(values: Array, texts: list[str] | None) -> Column:
    """A column of the store; texts: that its numbers are codes of."""
    names = None if texts is None else np.asarray(texts, dtype=object)
    return lambda block: values[block.rows] if names is None else names[values[block.rows]]


def _feature(place: int) -> Column:
    return lambda block: block.feature(place)


def _table_column(column: TableColumn, first: int) -> Column:
    """A column of the table that became the features from `first` on."""
    if column.kind != "text":

        def values(block: _Block) -> Any:
            numbers = block.feature(first).astype(np.float64) * column.scale + column.shift
            if column.kind == "date":
                return np.datetime64(0, "s") + np.rint(numbers * _SECONDS).astype("timedelta64[s]")
            return numbers

        return values
    texts = np.array([*column.categories, None], dtype=object)

    def categories(block: _Block) -> Any:
        code = np.full(block.rows.stop - block.rows.start, len(column.categories))
        for k in range(len(column.categories)):
            code[block.feature(first + k) != 0.0] = k
        return texts[code]

    return categories
