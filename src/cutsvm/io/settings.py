"""How much of a source is read at a time: `ReadSettings`, the same for all readers of the process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace


@dataclass(frozen=True)
class ReadSettings:
    """Sizes of the pieces in which rows are read and checked; only `max_categories` changes what is accepted."""

    text_bytes: int = 64 << 20  # of svmlight text, read or decompressed
    parsed_bytes: int = 8 << 20  # of svmlight text, parsed into one batch
    batch_bytes: int = 32 << 20  # of the rows of arrays in one batch
    table_rows: int = 1 << 16  # of a table in one batch, at most
    table_values: int = 1 << 22  # of a table in one batch, at most
    csv_bytes: int = 8 << 20  # of CSV text, parsed at once
    parquet_bytes: int = 1 << 20  # of each column of a Parquet file, read at once
    max_categories: int = 1000  # of a column of texts
    slice_entries: int = 1 << 24  # of a temporary array
    slice_rows: int = 1 << 16  # of rows that are inspected together
    column_bytes: int = 8 << 20  # of a store's column that is rewritten

    def scaled(self, share: float) -> ReadSettings:
        """Pieces of at most this share of the size."""
        sizes = [own.name for own in fields(self) if own.name != "max_categories"]
        return replace(self, **{name: max(1, int(min(1.0, share) * getattr(self, name))) for name in sizes})


_current = ReadSettings()


def read_settings() -> ReadSettings:
    """The settings in use."""
    return _current


@contextmanager
def use_read_settings(settings: ReadSettings) -> Iterator[None]:
    """Use other settings within this context, in all threads."""
    global _current
    before, _current = _current, settings
    try:
        yield
    finally:
        _current = before
