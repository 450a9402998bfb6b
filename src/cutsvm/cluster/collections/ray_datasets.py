"""Ray Datasets: a block is a part. Blocks are made once, in order, and stay in Ray's object store during the fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from cutsvm._utils.errors import DataError
from cutsvm.cluster.collections.base import Collection
from cutsvm.cluster.collections.given import Given, of_tables
from cutsvm.cluster.collections.tables import ArrowPart, Columns, check_arrow_schema, check_pandas_types
from cutsvm.cluster.protocol import Column, Executor
from cutsvm.io.formats.arrow_values import arrow

__all__ = ["in_order", "of_ray_dataset"]


@dataclass(frozen=True)
class ArrowOpener:
    """Opens an Arrow table with these columns."""

    columns: Columns

    def __call__(self, value: Any, name: str) -> ArrowPart:
        return ArrowPart(value, self.columns, name)


def of_ray_dataset(executor: Executor, X: Any, given: Given) -> Collection:
    """X is a Ray Dataset; what is given are names of its columns, or None."""
    if executor.name != "ray":
        raise DataError(f"a Ray Dataset is read by Ray, not by engine {executor.name!r}")
    given.check_names("the Dataset")
    with in_order(X):
        schema = X.schema()
        if schema is None:
            raise DataError("the Dataset has no rows")
        columns = given.columns(list(schema.names), "the Dataset")
        if isinstance(schema.base_schema, arrow("a Dataset").Schema):
            d, narrow = check_arrow_schema(schema.base_schema, columns, "the Dataset")
        else:  # blocks are pandas frames
            types = dict(zip(schema.names, schema.base_schema.types, strict=True))
            d, narrow = len(columns.features), check_pandas_types(types, columns.features, "the Dataset")
        blocks = X.select_columns(columns.read).materialize().to_arrow_refs()
    parts = Column(blocks, len(blocks))
    return of_tables(
        executor, parts, ArrowOpener(columns), "block", columns, d, narrow=narrow, lengths=parts.map(_rows)
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
