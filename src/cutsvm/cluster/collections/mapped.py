"""map_rows: a function of blocks of rows, for a collection: a collection of its results, which is not computed yet.

A Dask array gives a Dask array, a Dask DataFrame a Series or DataFrame with the same index, delayed parts delayed
arrays; a Ray Dataset or Spark DataFrame one with a column more. Rows keep their order. The parts of other collections
are read in one round, and their results are an array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from cutsvm._utils.types import Array
from cutsvm.cluster.collections.base import Collection, Opener, arrays_of
from cutsvm.cluster.collections.dask_parts import dask
from cutsvm.cluster.collections.delayed import AnyOpener
from cutsvm.cluster.collections.kinds import as_collection, kind_of_collection
from cutsvm.cluster.collections.tables import Columns, arrow_batch, frame_part, with_text_names
from cutsvm.cluster.grains import Grain
from cutsvm.cluster.parts import Parts
from cutsvm.cluster.rows import checked_blocks
from cutsvm.io.columns import ColumnSpec
from cutsvm.io.formats.arrow_values import arrow

__all__ = ["RowTask", "map_rows"]


@dataclass(frozen=True, eq=False)
class RowTask:
    """A function of a matrix with `d` columns: an array with an entry, or a row, for each of its rows.

    example: a result of any number of rows, which has their type. feature_names: the columns that it takes of a table;
    None: all. column: the name of the results in a table; several: their names if a row has several.
    """

    function: Callable[[Any], Array]
    d: int
    example: Array
    feature_names: tuple[str, ...] | None
    column: str
    several: tuple[str, ...] = ()

    def __call__(self, X: Any) -> Array:
        """The results, also of no rows."""
        return self.function(X) if X.shape[0] else self.example[:0]

    def check(self, d: int) -> None:
        """Raise unless rows have as many columns as the function takes."""
        if d != self.d:
            raise ValueError(f"X has {d} features, but the model is expecting {self.d} features as input")

    def columns(self, names: Sequence[str]) -> Columns:
        """The columns of a table that it takes."""
        if self.feature_names is None:
            self.check(len(names))
            return Columns(tuple(names))
        absent = [name for name in self.feature_names if name not in names]
        if absent:
            raise ValueError(f"X has no column {absent[0]!r}, which the model was trained with")
        return Columns(self.feature_names)


def map_rows(X: Any, task: RowTask) -> Any:
    """The results of `task` for the rows of a collection."""
    kind = kind_of_collection(X)
    if kind == "dask array":
        return _of_dask_array(X, task)
    if kind == "dask frame":
        return _of_dask_frame(X, task)
    if kind == "delayed":
        run = dask().delayed(_of_delayed)
        return [run(part, task, k) for k, part in enumerate(X)]
    if kind == "ray":
        return _of_ray(X, task)
    if kind == "spark":
        return _of_spark(X, task)
    if isinstance(X, Parts):
        return np.concatenate([task.example[:0], *X.each(_of_grain, _stacked, task=task)])
    return _in_a_round(X, task)


# Dask


def _of_dask_array(X: Any, task: RowTask) -> Any:
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions: expected a matrix, rows x features")
    task.check(int(X.shape[1]))
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    example = task.example[:0]
    wide: dict[str, Any] = {"drop_axis": 1} if example.ndim == 1 else {"chunks": (X.chunks[0], (example.shape[1],))}
    return X.map_blocks(_of_block, task=dask().delayed(task), dtype=example.dtype, meta=example, **wide)


def _of_block(block: Any, task: RowTask) -> Array:
    return task(arrays_of((block,), "X").X)


def _of_dask_frame(X: Any, task: RowTask) -> Any:
    X = with_text_names(X)
    columns = task.columns(list(X.columns))
    meta = _of_frame(X._meta[list(columns.features)], task, columns)
    return X[list(columns.features)].map_partitions(_of_frame, task=task, columns=columns, meta=meta)


def _of_frame(frame: Any, task: RowTask, columns: Columns) -> Any:
    """A Series, or a frame if there are several results for a row."""
    pandas = import_module("pandas")
    found = task(frame_part(frame, columns, "the DataFrame").X)
    if found.ndim == 1:
        return pandas.Series(found, index=frame.index, name=task.column)
    return pandas.DataFrame(found, index=frame.index, columns=list(task.several))


def _of_delayed(part: Any, task: RowTask, number: int) -> Array:
    spec = ColumnSpec(columns=task.feature_names, labels="none")
    opened = AnyOpener(spec)(part, f"part {number}")
    return _joined(task, [task(batch.X) for batch in opened.read()])


# Ray


def _of_ray(X: Any, task: RowTask) -> Any:
    columns = task.columns([name for name in X.columns() if name != task.column])
    found = X.map_batches(_with_column, batch_format="pyarrow", fn_kwargs={"task": task, "columns": columns})
    found.context.execution_options.preserve_order = True
    return found


def _with_column(table: Any, task: RowTask, columns: Columns) -> Any:
    found = _arrow_array(task(arrow_batch(table, columns, "the Dataset").X))
    if task.column in table.column_names:
        table = table.drop_columns([task.column])
    return table.append_column(task.column, found)


def _arrow_array(found: Array) -> Any:
    """Results as a column; several in a row as a list."""
    pa = arrow("a table")
    if found.ndim == 1:
        return pa.array(found.tolist() if found.dtype.kind in "UO" else found)
    return pa.array(list(found), pa.list_(pa.float64()))


# Spark


def _of_spark(X: Any, task: RowTask) -> Any:
    from cutsvm.cluster.collections.spark_frames import apply_to_columns, feature_columns

    names = [name for name in X.columns if name != task.column]
    named = feature_columns(X, names) if task.feature_names is None else task.feature_names
    columns = Columns(named) if len(named) == 1 else task.columns(named)
    return X.withColumn(task.column, apply_to_columns(X, columns, _Predicted(task, columns), _spark_type(task.example)))


@dataclass(frozen=True, eq=False)
class _Predicted:
    """The results for a table, as a column."""

    task: RowTask
    columns: Columns

    def __call__(self, table: Any) -> Any:
        batch = arrow_batch(table, self.columns, "the DataFrame")
        if batch.X.shape[0]:
            self.task.check(batch.X.shape[1])
        return _arrow_array(self.task(batch.X))


def _spark_type(example: Array) -> str:
    if example.ndim == 2:
        return "array<double>"
    return {"i": "bigint", "u": "bigint", "b": "boolean", "f": "double"}.get(example.dtype.kind, "string")


# Others: one round


def _in_a_round(X: Any, task: RowTask) -> Array:
    own = X if isinstance(X, Collection) else as_collection(X, None, None, None, None, "none", task.feature_names)
    parts = own.column.map(_of_part, own.names, opener=own.opener, task=task)
    return np.concatenate([task.example[:0], *own.executor.collect(parts)])


def _of_part(value: Any, name: str, *, opener: Opener, task: RowTask) -> Array:
    blocks = checked_blocks(opener(value, name), name, "none", task.d, task.feature_names)
    return _joined(task, [task(block.X) for block in blocks])


def _of_grain(grain: Grain, *, task: RowTask) -> Array:
    return task(grain.block.X)


def _stacked(*found: Array) -> Array:
    return np.concatenate(found)


def _joined(task: RowTask, found: Sequence[Array]) -> Array:
    return found[0] if len(found) == 1 else np.concatenate([task.example[:0], *found])
