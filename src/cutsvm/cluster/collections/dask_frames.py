"""Dask DataFrames: a partition is a part; y, weights and queries are columns of it, or Series with its partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cutsvm._utils.errors import DataError
from cutsvm.cluster.collections.base import ArrayPart, Collection
from cutsvm.cluster.collections.dask_parts import column_of, dask, results_of
from cutsvm.cluster.collections.given import Given
from cutsvm.cluster.collections.tables import Columns, check_pandas_types, frame_part, with_text_names
from cutsvm.cluster.protocol import Executor

__all__ = ["of_dask_frame"]


@dataclass(frozen=True)
class FrameOpener:
    """Opens (frame, y, weights, qid); the last three are None where the frame has them."""

    columns: Columns

    def __call__(self, value: Any, name: str) -> ArrayPart:
        frame, *extra = value
        return frame_part(frame, self.columns, name, extra)


def of_dask_frame(executor: Executor, X: Any, given: Given) -> Collection:
    """X is a Dask DataFrame; what is given are names of columns, Series, or None."""
    X = with_text_names(X)
    columns = given.columns(list(X.columns), "the DataFrame")
    narrow = check_pandas_types(X.dtypes, columns.features, "the DataFrame")
    frame = X[columns.read] if len(columns.read) < len(X.columns) else X
    series = {name: None if isinstance(own, str) else own for name, own in given.by_name.items()}
    if given.labels == "none":
        series["y"] = None
    extra = [_partitions(X, own, name) for name, own in series.items()]
    values = list(zip(frame.to_delayed(), *extra, strict=True))
    column, opener = column_of(executor, values, FrameOpener(columns))
    # Of files a column is less work than all of them.
    lengths = [dask().delayed(len)(part) for part in X[[columns.features[0]]].to_delayed()]
    return Collection(
        executor,
        column,
        opener,
        [f"partition {k}" for k in range(len(values))],
        d=len(columns.features),
        sparse=False,
        narrow=narrow,
        feature_names=columns.features,
        weighted=columns.weight is not None or series["sample_weight"] is not None,
        queried=columns.qid is not None or series["qid"] is not None,
        lengths=results_of(executor, lengths),
    )


def _partitions(X: Any, values: Any, name: str) -> list[Any]:
    """The partitions of a Series, which has as many as X; rows are compared when they are read."""
    if values is None:
        return [None] * int(X.npartitions)
    if not hasattr(values, "divisions"):
        raise DataError(
            f"{name}: expected the name of a column or a Dask Series, got {type(values).__module__.split('.')[0]}'s "
            f"{type(values).__name__}; a column of the DataFrame is the surest"
        )
    if values.npartitions != X.npartitions:
        raise DataError(
            f"{name} has {values.npartitions} partitions and X has {X.npartitions}: they are to be cut at the same rows"
        )
    if values.known_divisions and X.known_divisions and values.divisions != X.divisions:
        raise DataError(f"{name} and X have different divisions: {name}.repartition(divisions=X.divisions) cuts alike")
    return list(values.to_delayed())
