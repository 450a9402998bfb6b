"""Collection: parts on an executor, each of which can be read, and what is known of them before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cutsvm._utils.errors import DataError
from cutsvm._utils.types import Array, Ints
from cutsvm.cluster.protocol import Column, Executor
from cutsvm.io.store.batches import Batch

__all__ = ["ArrayPart", "Collection", "Cut", "Opener", "Part", "arrays_of"]


class Part(Protocol):
    """Rows that have not been checked yet. rows: how many, if that is known without reading.

    feature_names: of the columns of X, if they have names.
    """

    @property
    def rows(self) -> int | None: ...

    @property
    def feature_names(self) -> Sequence[str] | None: ...

    def read(self, begin: int = 0, end: int | None = None) -> Iterator[Batch]:
        """The rows from begin to end in their order, some at a time."""


# A value of a column, with the name of the part for messages, as a Part; it runs on a worker and is pickled.
Opener = Callable[[Any, str], Part]


class Cut(Protocol):
    """Cuts the values of a column, and puts the pieces together again."""

    def __call__(
        self,
        column: Column,
        task: Callable[[Any, Any], Any],
        cuts: Sequence[Sequence[tuple[int, int, Any]]],
        count: int,
    ) -> Column:
        """A column of `count` lists of pieces, in order: task(value k, own) for each (list, place, own) of cuts[k]."""


@dataclass(frozen=True, eq=False)
class Collection:
    """The parts of one collection, in order.

    names: of the parts, for messages. sizes: rows of the parts. d: the number of columns. sparse: whether rows are
    sparse; entries: their stored values. narrow: whether float32 holds the values. weighted, queried: whether there are
    sample weights and queries. None: not known without reading.
    here: the values are arrays in this process, not made again when they are read.
    starts: rows, numbered over all parts, at which reading can begin; what is between is read from one of them on.
    cut: how an engine cuts parts that do not fit `Column.regroup`.
    lengths: a column with the numbers of rows of the parts, where that is less work than reading them.
    """

    executor: Executor
    column: Column
    opener: Opener
    names: Sequence[str]
    sizes: Sequence[int] | None = None
    d: int | None = None
    sparse: bool | None = None
    narrow: bool | None = None
    entries: int | None = None
    feature_names: Sequence[str] | None = None
    weighted: bool | None = None
    queried: bool | None = None
    here: bool = False
    starts: Ints | None = None
    cut: Cut | None = None
    lengths: Column | None = None


@dataclass(frozen=True, eq=False)
class ArrayPart:
    """Arrays in memory: X with labels, weights and queries, or None for each of these."""

    X: Any
    y: Array | None = None
    weights: Array | None = None
    qid: Array | None = None
    feature_names: Sequence[str] | None = None

    @property
    def rows(self) -> int:
        return int(self.X.shape[0])

    def read(self, begin: int = 0, end: int | None = None) -> Iterator[Batch]:
        rows = slice(begin, end)
        y, weights, qid = (None if values is None else values[rows] for values in (self.y, self.weights, self.qid))
        yield Batch(self.X if begin == 0 and end in (None, self.rows) else self.X[rows], y, weights, qid)


def arrays_of(value: Any, name: str, feature_names: Sequence[str] | None = None) -> ArrayPart:
    """A part from (X, y, weights, qid), of arrays or of what becomes one; the last ones may be missing."""
    X, *columns = value
    if any(np.ma.is_masked(own) for own in (X, *columns)):
        raise DataError(f"{name}: some values are masked, which says that they are missing: fill them in first")
    if not hasattr(X, "shape"):
        X = np.asarray(X)
    elif not hasattr(X, "tocsr"):
        X = np.asarray(X)
    elif X.format != "csr":
        X = X.tocsr()
    if len(X.shape) != 2 or (X.shape[0] and not X.shape[1]):
        raise DataError(f"{name}: expected a matrix, rows x features, found the shape {X.shape}")
    arrays = [None if own is None else np.asarray(own) for own in (*columns, None, None, None)[:3]]
    for k, what in enumerate(("labels", "weights", "queries")):
        own = arrays[k]
        if own is not None and own.shape == (X.shape[0], 1):
            own = arrays[k] = own[:, 0]  # a view: the user's array keeps its shape
        if own is not None and own.shape != (X.shape[0],):
            raise DataError(f"{name}: {X.shape[0]} rows but {what} of shape {own.shape}")
    y, weights, qid = arrays
    return ArrayPart(X, y, weights, qid, feature_names)
