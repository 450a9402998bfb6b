"""Spark DataFrames: a partition is a part. It is cut into pieces of chunks by Spark, which sends each to its chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from operator import itemgetter
from typing import Any

from cutsvm._utils.errors import DataError
from cutsvm.cluster.collections.base import Collection
from cutsvm.cluster.collections.given import Given, of_tables
from cutsvm.cluster.collections.tables import Columns, arrow_batch, check_arrow_schema
from cutsvm.cluster.protocol import Column, Executor
from cutsvm.io.formats.arrow_values import arrow
from cutsvm.io.store.batches import Batch

__all__ = ["of_spark_frame"]

FEATURES = "features"  # the column of vectors of Spark's own estimators


def of_spark_frame(executor: Executor, X: Any, given: Given) -> Collection:
    """X is a DataFrame of Spark; what is given are names of its columns, or None.

    The features are the vectors of the column "features", if there is one; otherwise all other columns.
    """
    if executor.name != "spark":
        raise DataError(f"a Spark DataFrame is read by Spark, not by engine {executor.name!r}")
    if type(X).__module__.startswith("pyspark.sql.connect"):
        raise DataError(
            "a DataFrame of Spark Connect has no RDD: use a session of Spark itself, without a remote address"
        )
    given.check_names("the DataFrame")
    columns = given.columns(X.columns, "the DataFrame")
    columns = replace(columns, features=feature_columns(X, columns.features))
    plain = plain_columns(X, columns.read)
    schema = import_module("pyspark.sql.pandas.types").to_arrow_schema(plain.schema)
    d, narrow = check_arrow_schema(schema, columns, "the DataFrame")
    packed = plain.mapInArrow(_packed, "batch binary").rdd
    parts = Column(packed.mapPartitionsWithIndex(_numbered), int(packed.getNumPartitions()))
    opener, lengths = partial(_opened, columns=columns), None if d is None else parts.map(_rows)
    return of_tables(
        executor, parts, opener, "partition", columns, d, narrow=narrow, lengths=lengths, cut=cut_partitions
    )


def feature_columns(X: Any, names: Sequence[str]) -> tuple[str, ...]:
    """The column of vectors, if it is one of these; otherwise all of them."""
    return (FEATURES,) if FEATURES in names and _is_vector(X, FEATURES) else tuple(names)


def apply_to_columns(X: Any, columns: Columns, task: Callable[[Any], Any], kind: str) -> Any:
    """A column of Spark with what `task` gives for a table of these columns, row by row. kind: its type."""
    functions = import_module("pyspark.sql.functions")
    by_arrow = hasattr(functions, "arrow_udf")

    def of_arrays(*arrays: Any) -> Any:
        return task(arrow("Spark").Table.from_arrays(list(arrays), names=list(columns.features)))

    def of_series(*series: Any) -> Any:  # before Spark 4.1
        return of_arrays(*map(arrow("Spark").Array.from_pandas, series)).to_pandas()

    for function in (of_arrays, of_series):
        function.__annotations__.clear()  # Spark would read them: those of a function on columns are its default
    apply = functions.arrow_udf(of_arrays, kind) if by_arrow else functions.pandas_udf(of_series, kind)
    chosen = [_plain(X, name, for_arrow=by_arrow) for name in columns.features]
    return apply(*chosen)


def _plain(X: Any, name: str, *, for_arrow: bool = True) -> Any:
    """A column; vectors as Spark stores them, or dense."""
    functions = import_module("pyspark.sql.functions")
    column = functions.col(f"`{name}`")
    if not _is_vector(X, name):
        return column
    return functions.unwrap_udt(column) if for_arrow else import_module("pyspark.ml.functions").vector_to_array(column)


def _is_vector(X: Any, name: str) -> bool:
    linalg = import_module("pyspark.ml.linalg")
    return isinstance(X.schema[name].dataType, linalg.VectorUDT)


def plain_columns(X: Any, names: Sequence[str]) -> Any:
    """These columns, vectors as Spark stores them, which is what Arrow can hold."""
    return X.select(*(_plain(X, name).alias(name) for name in names))


def _packed(batches: Iterable[Any]) -> Iterator[Any]:
    """Each batch as bytes, in a row of its own."""
    pa = arrow("Spark")
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.RecordBatch.from_arrays([pa.array([sink.getvalue().to_pybytes()], pa.binary())], names=["batch"])


def _numbered(number: int, rows: Iterable[Any]) -> list[tuple[int, list[bytes]]]:
    return [(number, [bytes(row.batch) for row in rows])]


def _rows(batches: list[bytes]) -> int:
    return sum(_unpacked(batch).num_rows for batch in batches)


def _unpacked(batch: bytes) -> Any:
    return arrow("Spark").ipc.open_stream(batch).read_all()


def cut_partitions(
    column: Column, task: Callable[[Any, Any], Any], cuts: Sequence[Sequence[tuple[int, int, Any]]], count: int
) -> Column:
    """Pieces are sent to the partitions of their lists, and only they: a group would get whole values."""
    sent = column.values.flatMap(partial(_pieces, task, cuts)).groupByKey(count, int)
    return Column(sent.mapValues(_in_order), count)


def _pieces(
    task: Callable[[Any, Any], Any], cuts: Sequence[Sequence[tuple[int, int, Any]]], numbered: tuple[int, Any]
) -> Iterator[tuple[int, tuple[int, Any]]]:
    number, value = numbered
    for target, place, own in cuts[number]:
        try:
            yield target, (place, task(value, own))
        except Exception as error:  # Spark would try again, and make a text of it
            yield target, (place, failed(error))


def _in_order(pieces: Iterable[tuple[int, Any]]) -> Any:
    found = [piece for _, piece in sorted(pieces, key=itemgetter(0))]
    return next((piece for piece in found if is_failed(piece)), found)


def failed(error: Exception) -> Any:
    return import_module("cutsvm.cluster.spark").Failed(error)


def is_failed(piece: Any) -> bool:
    return isinstance(piece, import_module("cutsvm.cluster.spark").Failed)


@dataclass(frozen=True, eq=False)
class PackedPart:
    """Batches of a partition, as bytes."""

    batches: list[bytes]
    columns: Columns
    name: str

    @property
    def rows(self) -> int:
        return _rows(self.batches)

    @property
    def feature_names(self) -> None:
        """Vectors have no names; those of other columns are known before."""
        return None

    def read(self, begin: int = 0, end: int | None = None) -> Iterator[Batch]:
        first, last = 0, self.rows if end is None else end
        for batch in self.batches:
            table = _unpacked(batch)
            start, stop = max(begin - first, 0), min(last - first, table.num_rows)
            if start < stop:
                some = table.slice(start, stop - start)
                yield arrow_batch(some, self.columns, self.name, first + start)
            first += table.num_rows


def _opened(value: list[bytes], name: str, columns: Columns) -> PackedPart:
    return PackedPart(value, columns, name)
