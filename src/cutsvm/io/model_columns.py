"""Rows of any source with the columns that a model was trained with: by name, by preprocessing, or by index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cutsvm._utils.errors import DataError
from cutsvm._utils.types import Array
from cutsvm.io.columns import ColumnSpec, Labels
from cutsvm.io.dataset import Dataset
from cutsvm.io.formats.npy import NpySource, NpzSource
from cutsvm.io.formats.svmlight import ZeroBased
from cutsvm.io.formats.svmlight_source import SvmlightSource
from cutsvm.io.formats.tables import TableSource
from cutsvm.io.open import as_source
from cutsvm.io.preprocessing import MissingValueError, Preprocessing, TableColumn
from cutsvm.io.store.batches import Batch, Source, is_sparse

_MAX_COUNTED = 1 << 20  # distinct features that the model does not know


@dataclass(frozen=True, eq=False)
class ModelColumns:
    """The columns that a model was trained with.

    width: their number. names: of the columns, if they have names. preprocessing: of a table. zero_based: whether the
    indices of an svmlight file counted from 0; None if there were no indices. feature_ids: the index of each column, if
    only those seen in training were kept.
    """

    width: int
    names: Sequence[str] | None = None
    preprocessing: Preprocessing | None = None
    zero_based: bool | None = None
    feature_ids: NDArray[np.int64] | None = None

    def open(
        self,
        X: Any,
        *,
        format: str | None = None,
        label: str | int | None = None,
        keep: Sequence[str] = (),
        zero_based: ZeroBased = "auto",
        labels: Labels = "optional",
    ) -> ModelSource:
        """The rows of X, which need no labels unless `label` names their column; labels="none": they are not read.

        format: of files, None by their names. keep: columns of a table that batches carry along. zero_based: of
        svmlight files; "auto": as in training.
        """
        if zero_based == "auto" and self.zero_based is not None:
            zero_based = self.zero_based
        known = self.preprocessing
        if known is None and self.names is not None:  # columns of numbers, by name
            known = Preprocessing(None, None, None, tuple(TableColumn(name) for name in self.names))
        spec = ColumnSpec(
            label,
            keep=tuple(keep),
            labels=labels if label is None else "required",
            # Nothing is estimated from the rows to predict.
            categorical="refuse",
            missing="refuse",
            preprocessing=known,
        )
        source = as_source(X, spec, format, zero_based)
        self._check_made_alike(source)
        return ModelSource(source, self, feature_ids=X.feature_ids if isinstance(X, Dataset) else None, given=X)

    def _check_made_alike(self, source: Source) -> None:
        """Refuse files without names of columns where features are made of texts and dates, or scaled."""
        columns = () if self.preprocessing is None else self.preprocessing.columns
        made = next((column.name for column in columns if column.changes_values), None)
        if made is not None and isinstance(source, SvmlightSource | NpySource | NpzSource):
            raise DataError(
                f"{source.name}: it has no names of columns, and the model was trained with features that are made of "
                f"those of a table, as {made!r}; expected a table with the same columns"
            )


class ModelSource(Source):
    """The batches of a source, with the columns of a model."""

    def __init__(
        self, source: Source, columns: ModelColumns, *, feature_ids: Array | None = None, given: Any = None
    ) -> None:
        self.name, self._source, self._columns, self._ids = source.name, source, columns, feature_ids
        self.feature_names = None if columns.names is None else list(columns.names)
        self._unknown: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        # An iterator is code of the caller, which may not be made for another thread.
        self.reads_in_background = not isinstance(given, Iterator)
        if isinstance(source, SvmlightSource):
            source.any_index = True

    @property
    def ignored(self) -> int:
        """How many distinct features were left out so far, since the model does not know them."""
        return len(self._unknown)

    @property
    def unseen(self) -> Mapping[str, int]:
        """By column of texts, how many rows so far have a text that did not occur in training."""
        return self._source.counts.unseen if isinstance(self._source, TableSource) else {}

    def where(self, row: int) -> tuple[str, int]:
        return self._source.where(row)

    def __iter__(self) -> Iterator[Batch]:
        source = self._source
        base = self._first_index()
        try:
            for batch in source:
                self.share = source.share
                yield replace(batch, X=self._with_columns(batch.X, base), base=0)
        except MissingValueError as error:
            what = "the model has no value for it: fill it in, or train with missing='mean' or 'zero'"
            raise DataError(f"{str(error).removesuffix(error.remedy)}; {what}") from None

    def check_intact(self) -> None:
        self._source.check_intact()

    def _first_index(self) -> int | None:
        """The index of the first column of the batches; None: they have columns and no indices."""
        source = self._source
        if isinstance(source, SvmlightSource):
            if source.is_undecided:  # index 0 may occur in the last line, and decides about the first
                if not all(file.can_be_read_again for file in source.files):
                    raise DataError(
                        f"{self.name}: whether its indices count from 0 or from 1 would be known at its end only; "
                        "state zero_based (on the command line --zero-based)"
                    )
                for _ in source:
                    if source.zero_based:
                        break
            return 0
        return None if source.zero_based is None else int(not source.zero_based)

    def _with_columns(self, X: Any, first: int | None) -> Any:
        """X with the columns of the model; first: the index of its first column."""
        names, known = self._columns.names, self._source.feature_names
        if names is not None and known is not None:
            return self._by_name(X, names, known)
        if first is not None:
            return self._by_index(X, first)
        if X.shape[1] != self._columns.width:
            raise DataError(
                f"{self.name}: {X.shape[1]} columns, expected the {self._columns.width} that the model was trained with"
            )
        return X

    def _by_name(self, X: Any, names: Sequence[str], known: Sequence[str]) -> Any:
        if list(names) == list(known):
            return X
        place = {name: column for column, name in enumerate(known)}
        missing = [name for name in names if name not in place]
        if missing:
            raise DataError(f"{self.name}: there is no column {missing[0]!r}, which the model was trained with")
        return X[:, [place[name] for name in names]]

    def _by_index(self, X: Any, first: int) -> Any:
        """X with a column for each index that the model knows."""
        own, width, ids = self._columns, self._columns.width, self._columns.feature_ids
        model_first = int(not (self._source.zero_based if own.zero_based is None else own.zero_based))
        if ids is None and self._ids is None and first == model_first and X.shape[1] == width:
            return X
        if not is_sparse(X):
            X = sparse.csr_matrix(X)
        indices = X.indices.astype(np.int64) + first if self._ids is None else self._ids[X.indices]
        if ids is None:
            places = indices - model_first
            inside = (places >= 0) & (places < width)
        elif len(ids):
            places = np.searchsorted(ids, indices).clip(max=len(ids) - 1)
            inside = ids[places] == indices
        else:
            places, inside = indices, np.zeros(len(indices), dtype=np.bool_)
        values, pointers = X.data, X.indptr
        if not inside.all():
            if len(self._unknown) < _MAX_COUNTED:
                self._unknown = np.union1d(self._unknown, indices[~inside])
            pointers = np.concatenate([[0], np.cumsum(inside)])[pointers]
            values, places = values[inside], places[inside]
        found: Any = sparse.csr_matrix((values, places, pointers), shape=(X.shape[0], width))
        found.has_sorted_indices = found.has_canonical_format = bool(X.has_canonical_format)
        return found
