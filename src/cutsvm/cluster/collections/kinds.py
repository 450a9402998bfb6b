"""Which kind of collection something is, and the collection that it becomes. Imports no library that is not in use."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from cutsvm._utils.errors import DataError
from cutsvm.cluster.collections.arrays import of_arrays, split_arrays
from cutsvm.cluster.collections.base import Collection
from cutsvm.cluster.collections.dask_arrays import of_dask_array
from cutsvm.cluster.collections.dask_frames import of_dask_frame
from cutsvm.cluster.collections.delayed import of_delayed
from cutsvm.cluster.collections.given import Given
from cutsvm.cluster.collections.parquet import ParquetFiles, of_parquet, parquet
from cutsvm.cluster.collections.ray_datasets import of_ray_dataset
from cutsvm.cluster.collections.spark_frames import of_spark_frame
from cutsvm.cluster.collections.stores import of_store
from cutsvm.cluster.engines import connect, current_executor
from cutsvm.cluster.local import Local
from cutsvm.cluster.protocol import Executor
from cutsvm.cluster.rows import Targets
from cutsvm.io.columns import ColumnSpec, Labels
from cutsvm.io.dataset import StoredDataset
from cutsvm.io.paths import format_of
from cutsvm.io.store.store import Store

__all__ = ["Kind", "as_collection", "kind_of_collection"]

Kind = Literal["dask array", "dask frame", "delayed", "parts", "parquet", "ray", "spark"]


def kind_of_collection(X: Any) -> Kind | None:
    """The kind of a collection; None: it is none."""
    if isinstance(X, list | tuple):
        tuples = all(isinstance(part, tuple) and len(part) > 1 for part in X)
        if tuples and any(hasattr(part[0], "shape") for part in X):  # others are the numbers of a row
            return "parts"
        return "delayed" if X and all(map(_is_delayed, X)) else None
    if isinstance(X, ParquetFiles):
        return "parquet"
    if _is_instance(X, "dask.array", "Array"):
        return "dask array"
    if _is_instance(X, "dask.dataframe", "DataFrame"):
        return "dask frame"
    if _is_instance(X, "ray.data", "Dataset"):
        return "ray"
    if _is_instance(X, "pyspark.sql", "DataFrame"):
        return "spark"
    return None


def _is_instance(X: Any, module: str, name: str) -> bool:
    """Whether X is of this class, if its module was imported at all."""
    known = sys.modules.get(module)
    return known is not None and isinstance(X, vars(known)[name])


def _is_delayed(part: Any) -> bool:
    return _is_instance(part, "dask.delayed", "Delayed") or _is_instance(part, "distributed", "Future")


def as_collection(
    X: Any,
    y: Any,
    sample_weight: Any,
    qid: Any,
    executor: Executor | None,
    targets: Targets,
    features: Sequence[str] | None = None,
) -> Collection:
    """X with what belongs to its rows as a collection, on this executor or the one of the cluster that is in use.

    features: the columns of a table that a model was trained with; None: all others.
    """
    kind = kind_of_collection(X)
    if kind is None and isinstance(X, str | os.PathLike | StoredDataset):
        return _of_path(X, executor, targets)
    labels: Labels = "none" if targets == "none" else "required"
    own: tuple[Any, Any, Any] = (None if targets == "none" else y, sample_weight, qid)
    if kind in ("dask array", "dask frame", "delayed"):
        executor = executor or current_executor("dask") or Local()
    if kind == "dask array":
        return of_dask_array(executor or Local(), X, *own)
    given = Given(*own, labels, features)
    if kind == "dask frame":
        return of_dask_frame(executor or Local(), X, given)
    if kind == "ray":
        return of_ray_dataset(executor or connect(engine="ray"), X, given)
    if kind == "spark":
        return of_spark_frame(executor or connect(X.sparkSession, engine="spark"), X, given)
    if kind is not None:
        _refuse_arrays(*own)
    if kind == "delayed":
        return of_delayed(executor or Local(), X, ColumnSpec(*own, columns=features, labels=labels))
    if kind == "parquet":
        files = _with_columns(X, *own)
        return of_parquet(executor or files.executor or current_executor("dask") or Local(), files, labels, features)
    if kind == "parts":
        _refuse_names(*own)
        return of_arrays(executor or Local(), X)
    return of_arrays(executor or Local(), split_arrays(X, y, sample_weight, qid=qid))


def _refuse_arrays(y: Any, sample_weight: Any, qid: Any) -> None:
    """Parts of these kinds have all that belongs to their rows."""
    for name, own in (("y", y), ("sample_weight", sample_weight), ("qid", qid)):
        if own is not None and not isinstance(own, str):
            raise ValueError(f"{name}: the parts have their own, or it is the name of a column")


def _refuse_names(y: Any, sample_weight: Any, qid: Any) -> None:
    """Arrays have no columns with names."""
    for name, own in (("y", y), ("sample_weight", sample_weight), ("qid", qid)):
        if own is not None:
            raise ValueError(f"{name}={own!r}: the parts are arrays, (X, y, weights, qid), which have their own")


def _with_columns(files: ParquetFiles, y: Any, sample_weight: Any, qid: Any) -> ParquetFiles:
    """The files with the columns that `fit` or `score` names."""
    given = {"label": ("y", y), "weight": ("sample_weight", sample_weight), "qid": ("qid", qid)}
    for own, (name, column) in given.items():
        stated = getattr(files.spec, own)
        if column is not None and stated not in (None, column):
            raise ValueError(f"{name}={column!r}, and the files are said to have {own}={stated!r}: name it once")
    named = {own: column for own, (_, column) in given.items() if column is not None}
    return replace(files, spec=replace(files.spec, **named)) if named else files


def _of_path(path: str | os.PathLike[str] | StoredDataset, executor: Executor | None, targets: Targets) -> Collection:
    """A store, or Parquet files."""
    if isinstance(path, StoredDataset):
        return of_store(executor or Local(), path.store, labels=targets != "none")
    kind = format_of(path)
    if kind == "store":
        return of_store(executor or Local(), Store(path), labels=targets != "none")
    if kind != "parquet":
        raise DataError(f"{os.fspath(path)}: expected Parquet files or a store, found {kind}; cutsvm.convert makes one")
    return as_collection(parquet(path), None, None, None, executor, targets)
