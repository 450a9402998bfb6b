"""Rows of a part, checked and in the form that all parts of a collection have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse

from cutsvm._utils.errors import ClusterError, DataError
from cutsvm._utils.types import Array
from cutsvm.cluster.collections.base import Opener, Part
from cutsvm.cluster.grains import RowBlock
from cutsvm.io.store.batches import Batch, Source, checked, value_type

__all__ = ["PartPiece", "RowForm", "SparseRowsError", "Targets", "checked_blocks", "plain"]

Targets = Literal["classes", "numbers", "levels", "none"]


class SparseRowsError(ClusterError):
    """A part has sparse rows, which was not known before."""


class _Place(Source):
    """What messages say about rows of a part."""

    def __init__(self, name: str, feature_names: Sequence[str] | None) -> None:
        self.name = name
        self.feature_names = None if feature_names is None else list(feature_names)


@dataclass(frozen=True)
class RowForm:
    """The form of all rows: columns, type of the values, dense or sparse, and what y is."""

    d: int
    narrow: bool
    sparse: bool
    targets: Targets
    weighted: bool
    queried: bool
    feature_names: tuple[str, ...] | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float32 if self.narrow else np.float64)

    def no_rows(self, y: Array) -> RowBlock:
        """A block without rows. y: labels of the same kind."""
        empty = np.empty((0, self.d), dtype=self.dtype)
        return RowBlock(
            sparse.csr_matrix(empty) if self.sparse else empty,
            None if self.targets == "none" else y[:0],
            np.empty(0) if self.weighted else None,
            np.empty(0, dtype=np.int64) if self.queried and self.targets == "levels" else None,
        )

    def block(self, batch: Batch, name: str, first: int) -> RowBlock:
        """The rows of a batch; DataError if something is wrong. first: the number of its first row in the part."""
        X = batch.X
        if len(X.shape) == 2 and X.shape[1] != self.d:
            raise DataError(f"{name}: {X.shape[1]} columns, expected {self.d}, as other rows have")
        if sparse.issparse(X) and not self.sparse:
            raise SparseRowsError(f"{name}: it has sparse rows, and parts before have not")
        if self.sparse and not sparse.issparse(X):
            X = sparse.csr_matrix(np.asarray(X))
        y = None if self.targets == "none" else batch.y
        if y is None and self.targets != "none":
            raise DataError(f"{name}: there are no labels")
        for what, expected, own in (
            ("weights", self.weighted, batch.weights),
            ("queries", self.queried, batch.qid),
        ):
            if expected and own is None:
                raise DataError(f"{name}: there are no {what}, which other parts have")
        place = _Place(name, self.feature_names)
        y = None if y is None else _labels(np.asarray(y), self.targets, place, first)
        qid = None if batch.qid is None or self.targets != "levels" else plain(np.asarray(batch.qid))
        fine = checked(Batch(X, y, batch.weights, qid), self.dtype, place, first)
        if not self.sparse:
            fine_X: Any = np.ascontiguousarray(fine.X)
        else:
            fine_X = fine.X
        return RowBlock(fine_X, fine.y, fine.weights, fine.qid)


def checked_blocks(
    part: Part, name: str, targets: Targets, d: int, feature_names: Sequence[str] | None
) -> Iterator[RowBlock]:
    """The rows of a part, checked: dense or sparse, float32 or float64 as they are, with weights and queries if any."""
    names, first = None if feature_names is None else tuple(feature_names), 0
    for batch in part.read():
        if batch.X.shape[0]:
            narrow, is_sparse = value_type(None, batch.X.dtype) == np.float32, bool(sparse.issparse(batch.X))
            own = batch if targets != "none" else Batch(batch.X, None)
            block = RowForm(d, narrow, is_sparse, targets, False, False, names).block(own, name, first)
            first += block.n
            yield block


def plain(values: Array) -> Array:
    """An array of objects as numbers or text if they all are one or the other."""
    if values.dtype != object or not len(values):
        return values
    if all(isinstance(value, str) for value in values):
        return values.astype(str)
    if any(isinstance(value, str) or value is None for value in values):
        return values
    plain = np.array(values.tolist())
    return plain if plain.dtype.kind in "biuf" and plain.shape == values.shape else values


def _labels(y: Array, targets: Targets, place: Source, first: int) -> Array:
    """Labels as numbers or as text; numbers where targets are numbers."""
    y = plain(y)
    if y.dtype == object:
        wrong = [k for k, label in enumerate(y.tolist()) if not isinstance(label, str)]
        raise DataError(
            f"{place.name}: row {first + wrong[0]}: expected a label, found {y[wrong[0]]!r}; labels are numbers or text"
        )
    if targets == "classes":
        return y
    if y.dtype.kind not in "biuf":
        raise DataError(f"{place.name}: from row {first} on: expected numbers as y, found values of type {y.dtype}")
    return y.astype(np.float64)


@dataclass(frozen=True, eq=False)
class PartPiece:
    """Rows of a part from begin to end; size: that of the part when it was first read."""

    name: str
    part: Part
    form: RowForm
    begin: int
    end: int
    size: int

    @classmethod
    def of(cls, value: Any, plan: tuple[str, int, int, int], opener: Opener, form: RowForm) -> PartPiece:
        name, begin, end, size = plan
        return cls(name, opener(value, name), form, begin, end, size)

    def read(self) -> Iterator[RowBlock]:
        if self.part.rows is not None and self.part.rows != self.size:
            raise ClusterError(
                f"{self.name}: {self.part.rows} rows, expected {self.size}: the data must not change during a fit"
            )
        first = self.begin
        for batch in self.part.read(self.begin, self.end):
            block = self.form.block(batch, self.name, first)
            first += block.n
            if block.n:
                yield block
