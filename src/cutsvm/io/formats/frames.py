"""Frames of other libraries as tables, by narwhals: pandas, polars (lazy too), DuckDB relations, Arrow tables."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from itertools import chain
from typing import Any

from cutsvm._utils.errors import DataError
from cutsvm.io.files import SourceFile
from cutsvm.io.formats.arrow_values import arrow
from cutsvm.io.formats.table_files import FileTables, MemoryTables, StreamTables, Tables, arrow_errors
from cutsvm.io.paths import Input


def is_arrow(X: Any) -> bool:
    """Whether X is a table, a reader of batches or a dataset of pyarrow."""
    if "pyarrow" not in sys.modules:  # then X cannot be of it
        return False
    pa = sys.modules["pyarrow"]
    dataset = sys.modules.get("pyarrow.dataset")
    known = (pa.Table, pa.RecordBatch, pa.RecordBatchReader)
    return isinstance(X, known if dataset is None else (*known, dataset.Dataset))


def is_frame(X: Any, *, lazy: bool) -> bool:
    """Whether X is a frame that narwhals knows: a lazy one, which has no values yet, or one in memory."""
    if type(X).__module__.partition(".")[0] in ("builtins", "numpy", "scipy") or find_spec("narwhals") is None:
        return False
    narwhals = arrow("a frame", "narwhals")
    return isinstance(narwhals.from_native(X, pass_through=True), narwhals.LazyFrame if lazy else narwhals.DataFrame)


def table_of(X: Any, *, once: bool) -> Tables:
    """A frame, or what `is_arrow` is; once: the rows will be read once only, so that a reader can stay one."""
    pa, name = arrow("a table"), "table"
    if is_arrow(X):
        dataset = sys.modules.get("pyarrow.dataset")
        if dataset is not None and isinstance(X, dataset.FileSystemDataset):
            return _files_of(X, dataset)
        if isinstance(X, pa.RecordBatchReader):
            return StreamTables("reader", X) if once else _spooled(X)
        return MemoryTables(name, pa.Table.from_batches([X]) if isinstance(X, pa.RecordBatch) else X)
    narwhals = arrow("a frame", "narwhals")
    frame = narwhals.from_native(X)
    with arrow_errors(type(X).__name__):
        if isinstance(frame, narwhals.LazyFrame):
            return _lazy(type(X).__name__, frame)
        return MemoryTables(type(X).__name__, _plain_table(frame))


def tables_of_blocks(blocks: Iterable[Any], *, once: bool) -> Tables:
    """An iterator of frames or tables, of the same columns."""
    pa = arrow("blocks")
    parts = iter(blocks)

    first = next(parts, None)
    if first is None:
        raise DataError("blocks: no samples")
    schema = _as_table(first).schema

    def every() -> Iterator[Any]:
        for number, block in enumerate(chain([first], parts)):
            table = _as_table(block)
            if set(schema.names) - set(table.schema.names):
                absent = min(set(schema.names) - set(table.schema.names))
                raise DataError(f"block {number}: there is no column {absent!r}, which block 0 has")
            yield from table.select(schema.names).cast(schema).to_batches()

    reader = pa.RecordBatchReader.from_batches(schema, every())
    return StreamTables("blocks", reader) if once else _spooled(reader)


def _as_table(block: Any) -> Any:
    pa = arrow("blocks")
    if isinstance(block, pa.RecordBatch):
        return pa.Table.from_batches([block])
    return block if isinstance(block, pa.Table) else _plain_table(arrow("a frame", "narwhals").from_native(block))


def _plain_table(frame: Any) -> Any:
    """A frame of narwhals as a table, without the index that a pandas frame has."""
    return frame.to_arrow().select([str(name) for name in frame.columns])


def _files_of(dataset: Any, module: Any) -> Tables:
    """A dataset of local Parquet files is read as these; any other by its scanner."""
    fs = arrow("a dataset", "pyarrow.fs")
    name = dataset.files[0] if len(dataset.files) == 1 else f"{dataset.files[0]} and {len(dataset.files) - 1} more"
    parquet = isinstance(dataset.format, module.ParquetFileFormat)
    if not parquet or not isinstance(dataset.filesystem, fs.LocalFileSystem):
        return MemoryTables(name, dataset)
    files = [
        Input(
            fragment.path,
            keys={key: str(value) for key, value in module.get_partition_keys(fragment.partition_expression).items()},
        )
        for fragment in dataset.get_fragments()
    ]
    return FileTables(name, "parquet", files)


def _lazy(name: str, frame: Any) -> Tables:
    """The rows of a lazy frame in a temporary Parquet file, which its library writes without holding all of them."""
    return _temporary(name, "parquet", frame.sink_parquet)


def _spooled(reader: Any) -> Tables:
    """The rows of a reader in a temporary Arrow file: they are read twice."""
    ipc = arrow("a reader", "pyarrow.ipc")

    def write(path: str) -> None:
        with arrow_errors("reader"), ipc.new_file(path, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)

    return _temporary("reader", "arrow", write)


def _temporary(name: str, kind: str, write: Any) -> Tables:
    """A table in a temporary file, which has no name any more once it is open."""
    with tempfile.TemporaryDirectory(prefix="cutsvm-") as folder:
        path = os.path.join(folder, f"rows.{kind}")
        write(path)
        held = SourceFile(path)
    held.path = name
    return FileTables(name, kind, [Input(path, held=held, shown=name)])
