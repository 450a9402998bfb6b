"""Ray Datasets: a block is a part. Blocks are made once, in order, and stay in Ray's object store during the fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from cutsvm._utils.errors import DataError
from cutsvm.cluster.collections.base import Collection
from cutsvm.cluster.collections.dask_frames import columns_among
from cutsvm.cluster.collections.tables import ArrowPart, Columns, check_arrow_schema, check_pandas_types
from cutsvm.cluster.protocol import Column, Executor
from cutsvm.io.columns import Labels
from cutsvm.io.formats.arrow_values import arrow

__all__ = ["in_order", "of_ray_dataset"]


@dataclass(frozen=True)
class ArrowOpener:
    """Opens an Arrow table with these columns."""

    columns: Columns

    def __call__(self, value: Any, name: str) -> ArrowPart:
        return ArrowPart(value, self.columns, name)


def of_ray_dataset(
    executor: Executor,
    X: Any,
    y: Any,
    sample_weight: Any,
    qid: Any,
    labels: Labels = "required",
    features: Sequence[str] | None = None,
) -> Collection:
    """X is a Ray Dataset; y, sample_weight, qid are names of its columns, or None."""
    if executor.name != "ray":
        raise DataError(f"a Ray Dataset is read by Ray, not by engine {executor.name!r}")
    for name, own in (("y", y), ("sample_weight", sample_weight), ("qid", qid)):
        if own is not None and not isinstance(own, str):
            raise DataError(f"{name}: expected the name of a column of the Dataset, got {type(own).__name__}")
    with in_order(X):
        schema = X.schema()
        if schema is None:
            raise DataError("the Dataset has no rows")
        columns = columns_among(list(schema.names), y, sample_weight, qid, labels, "the Dataset", features)
        if isinstance(schema.base_schema, arrow("a Dataset").Schema):
            d, narrow = check_arrow_schema(schema.base_schema, columns, "the Dataset")
        else:  # blocks are pandas frames
            types = dict(zip(schema.names, schema.base_schema.types, strict=True))
            d, narrow = len(columns.features), check_pandas_types(types, columns.features, "the Dataset")
        blocks = X.select_columns(columns.read).materialize().to_arrow_refs()
    return Collection(
        executor,
        Column(blocks, len(blocks)),
        ArrowOpener(columns),
        [f"block {k}" for k in range(len(blocks))],
        d=d,
        sparse=False if d is not None else None,
        narrow=narrow,
        feature_names=None if d is None else columns.features,
        weighted=columns.weight is not None,
        queried=columns.qid is not None,
        lengths=Column(blocks, len(blocks)).map(_rows),
    )


def _rows(table: Any) -> int:
    return int(table.num_rows)


@contextmanager
def in_order(X: Any) -> Iterator[None]:
    """Blocks are made in the order of the rows, whichever task is first: Ray does not by default."""
    options = X.context.execution_options
    before, options.preserve_order = options.preserve_order, True
    try:
        yield
    finally:
        options.preserve_order = before
