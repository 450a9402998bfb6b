"""The data matrix: in memory (dense, CSR, several of them stacked) or in a store on disk, behind one protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from cutsvm._utils.types import Ints
from cutsvm.matrix.arrays import DenseRows, SparseRows, as_rows
from cutsvm.matrix.protocol import (
    COMPRESSION,
    Choices,
    CompressionSettings,
    Descent,
    PlaneMemory,
    Rows,
    RowsInMemory,
    Seen,
)
from cutsvm.matrix.stacked import StackedRows
from cutsvm.matrix.store import StoreRows

__all__ = [
    "COMPRESSION",
    "Choices",
    "CompressionSettings",
    "DenseRows",
    "Descent",
    "PlaneMemory",
    "Rows",
    "RowsInMemory",
    "Seen",
    "SparseRows",
    "StackedRows",
    "StoreRows",
    "WholeRows",
    "as_rows",
    "concatenate",
    "in_order",
    "stacked",
]

# Rows of one kind, of which some can be taken out.
WholeRows = DenseRows | SparseRows | StoreRows


def concatenate(parts: list[RowsInMemory]) -> RowsInMemory:
    """The rows of all parts, which are of one kind, in one matrix; empties the list."""
    kind: Any = type(parts[0])
    rows: RowsInMemory = kind.concatenated(parts)
    return rows


def stacked(parts: Sequence[Rows]) -> Rows:
    """The rows of all parts, of any kind, as one matrix, without a copy."""
    return StackedRows(cast("Sequence[RowsInMemory]", parts))


def in_order(numbers: Ints) -> Ints:
    """The row numbers sorted, each once: np.unique, several times faster."""
    numbers = np.sort(numbers)
    return numbers[np.diff(numbers, prepend=-1) > 0]
