"""Sources of rows in memory: arrays, memory maps, data frames, or blocks of them from an iterator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from cutsvm._utils.errors import DataError
from cutsvm.io.columns import Labels
from cutsvm.io.settings import read_settings
from cutsvm.io.store.batches import Batch, Source, as_csr, is_sparse


class ArraySource(Source):
    """A dense or sparse matrix or a data frame, and one label (weight, query) per row."""

    def __init__(self, name: str, X: Any, y: Any, *, weights: Any = None, qid: Any = None) -> None:
        self.name = name
        self._frame = hasattr(X, "iloc")
        self.feature_names = [str(column) for column in X.columns] if self._frame else None
        self._X = as_csr(X, name) if is_sparse(X) else X if self._frame else np.asanyarray(X)
        if len(self._X.shape) != 2:
            raise DataError(f"{name}: expected a matrix, rows x features, found the shape {self._X.shape}")
        self._columns = [None if part is None else np.asanyarray(part) for part in (y, weights, qid)]
        for what, part in zip(("labels", "weights", "queries"), self._columns, strict=True):
            if part is not None and part.shape != (self._X.shape[0],):
                raise DataError(f"{name}: {self._X.shape[0]} rows, but {what} of shape {part.shape}")

    def __iter__(self) -> Iterator[Batch]:
        n, d = self._X.shape
        per_row = 12 * self._X.nnz // max(n, 1) if is_sparse(self._X) else 8 * d
        step = max(1, read_settings().batch_bytes // max(1, per_row))
        for start in range(0, n, step):
            mine = slice(start, min(n, start + step))
            X = self._X.iloc[mine].to_numpy() if self._frame else self._X[mine]
            y, weights, qid = (None if part is None else part[mine] for part in self._columns)
            self.share = mine.stop / n
            yield Batch(X, y, weights, qid)


class BlockSource(Source):
    """An iterator of (X, y), (X, y, weights) or (X, y, weights, qid); of X alone unless labels are required."""

    def __init__(self, blocks: Iterable[Any], labels: Labels = "required") -> None:
        self.name, self._blocks, self._labels = "blocks", blocks, labels

    def __iter__(self) -> Iterator[Batch]:
        for number, block in enumerate(self._blocks):
            if self._labels != "required" and is_matrix(block):
                block = (block, None)
            if not isinstance(block, tuple | list) or not 2 <= len(block) <= 4:
                raise DataError(f"block {number}: expected (X, y), (X, y, weights) or (X, y, weights, qid)")
            X, y, *more = block
            if hasattr(X, "iloc") and self.feature_names is None and number == 0:
                self.feature_names = [str(column) for column in X.columns]
            labels = None if y is None or self._labels == "none" else np.asarray(y)
            yield Batch(X if is_sparse(X) else np.asarray(X), labels, *more)


class ChainedSource(Source):
    """Several sources, one after the other."""

    def __init__(self, name: str, parts: Sequence[Source]) -> None:
        self.name, self._parts = name, parts
        self._starts: list[int] = []

    def __iter__(self) -> Iterator[Batch]:
        self._starts, rows = [], 0
        for number, source in enumerate(self._parts):
            self._starts.append(rows)
            for batch in source:
                done = source.share
                self.share = None if done is None else (number + done) / len(self._parts)
                rows += batch.X.shape[0]
                yield batch

    def where(self, row: int) -> tuple[str, int]:
        number = max((k for k, start in enumerate(self._starts) if start <= row), default=0)
        return self._parts[number].where(row - self._starts[number])


def is_matrix(X: Any) -> bool:
    """Whether X is an array, a sparse matrix or a pandas frame."""
    return isinstance(X, np.ndarray) or is_sparse(X) or hasattr(X, "shape")
