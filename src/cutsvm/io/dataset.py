"""Data sets in memory or in a store: `Dataset`, and `open_dataset`, which reads files."""

from __future__ import annotations

import os
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from cutsvm.io.store.batches import Source
    from cutsvm.io.store.store import Store

__all__ = ["Dataset", "StoredDataset", "is_data_set", "open_data_set", "open_dataset"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples with labels, as read from a file.

    Attributes
    ----------
    X
        One row per sample: a csr_matrix, indices sorted, or an array.
    y
        One label per sample.
    qid
        The query of each sample, if the file has queries: int64, or text if any id is not a 64-bit integer.
    zero_based
        Whether indices of the file count from 0, else from 1. None: the file has columns and no indices.
    feature_ids
        The file's index of each column, increasing, if the columns are only the features seen; else None.
    source
        The name of the data, for messages.
    ignored
        How many distinct features of the file were dropped because the model has not seen them.
    weights
        The weight of each sample, if the file has weights.
    feature_names
        The names of the columns, if the file has names.
    """

    X: Any
    y: NDArray[Any]
    qid: NDArray[Any] | None
    zero_based: bool | None
    feature_ids: NDArray[Any] | None
    source: str
    ignored: int = 0
    weights: NDArray[Any] | None = None
    feature_names: list[str] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        rows, features = self.X.shape
        return int(rows), int(features)

    def with_labels(self, y: NDArray[Any]) -> Dataset:
        """The same samples with other labels."""
        other = copy(self)
        other.__dict__["y"] = y  # the dataclass is frozen
        return other

    def in_order_of(self, names: Sequence[str] | None) -> Dataset:
        """The data with the columns `names` in this order, if both the data and the caller have names."""
        if names is None or self.feature_names is None or list(names) == self.feature_names:
            return self
        index = {name: column for column, name in enumerate(self.feature_names)}
        missing = [name for name in names if name not in index]
        if missing:
            raise ValueError(f"{self.source}: there is no column {missing[0]!r}, which the model was trained with")
        other = copy(self)
        other.__dict__.update(X=self.X[:, [index[name] for name in names]], feature_names=list(names))
        return other

    @property
    def entries(self) -> int:
        """Number of stored values."""
        return int(self.X.nnz if hasattr(self.X, "nnz") else self.X.size)

    @property
    def spread(self) -> float:
        """max_j a_j / min_j a_j with a_j = max_i |x_ij|, over the features with a_j > 0."""
        from cutsvm._utils.validation import scale_spread

        return scale_spread(self.X)


class StoredDataset(Dataset):
    """A data set in a store. Labels, weights and queries are mapped; X is read at its first use."""

    store: Store

    def __init__(self, store: Store, source: str | None = None) -> None:
        known: dict[str, Any] = {"zero_based": store.manifest.zero_based, "feature_ids": None, "ignored": 0}
        known["source"] = os.fspath(store.path) if source is None else source
        columns = {"qid": store.qid, "weights": store.weights, "feature_names": store.feature_names}
        # The dataclass is frozen.
        self.__dict__.update(store=store, **known, **columns)

    def __getattr__(self, name: str) -> Any:
        if name not in ("X", "y"):
            raise AttributeError(f"a data set has no attribute {name!r}")
        found = self.__dict__[name] = self.store.load() if name == "X" else self.store.y
        return found

    def ranked_labels(self, vector: Callable[[int], NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """The labels as numbers; texts as their ranks in sorted order, and the sorted texts.

        vector: allocates the ranks.
        """
        names = self.store.texts("label_names")
        if names is None or "y" in self.__dict__:
            return self.y, None
        import numpy as np

        codes = self.store.codes("y", names)
        texts, ranks = np.unique(names, return_inverse=True)
        y = vector(len(codes))
        for start in range(0, len(codes), 1 << 20):
            y[start : start + (1 << 20)] = ranks[codes[start : start + (1 << 20)]]
        return y, texts

    def __repr__(self) -> str:
        rows, features = self.shape
        return f"StoredDataset({self.source!r}, {rows:,} rows, {features:,} features)"

    @property
    def loaded(self) -> bool:
        """Whether X is in memory."""
        return "X" in self.__dict__

    @property
    def shape(self) -> tuple[int, int]:
        return self.store.shape

    @property
    def entries(self) -> int:
        return self.store.manifest.entries

    @property
    def spread(self) -> float:
        return self.store.manifest.spread


def open_dataset(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    label: str | int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    n_features: int | None = None,
) -> Dataset:
    """Read a data file, or open a store.

    Parameters
    ----------
    path
        A file: svmlight, plain or compressed (gzip, bzip2, xz, zstd), .npy, .npz, or with pyarrow CSV, TSV, Parquet,
        Arrow, Feather; or a store written by `cutsvm.convert`.
    format
        "svmlight", "npy", "npz", "csv", "parquet", "arrow" or "store"; None: by the name of the file.
    label
        Of a table the column of labels: its name or its number (-1 is the last); by default the one called label, y,
        target or class. Columns called sample_weight and qid are weights and queries. Of an .npy file the number of the
        column, or another .npy file; of an .npz file the name of the array, by default y.
    zero_based
        Whether indices in svmlight files count from 0. "auto": they do if index 0 occurs.
    n_features
        Number of columns, if it is more than an svmlight file shows.
    """
    from cutsvm.io.columns import ColumnSpec
    from cutsvm.io.formats.svmlight import read_svmlight
    from cutsvm.io.open import StoreSource, SvmlightSource, file_source

    source = file_source(os.fspath(path), format, ColumnSpec(label), zero_based)
    if isinstance(source, SvmlightSource):
        return read_svmlight(path, zero_based=zero_based, n_features=n_features)
    data = StoredDataset(source.store) if isinstance(source, StoreSource) else _gather(source)
    if n_features not in (None, data.shape[1]):
        from cutsvm._utils.errors import DataError

        raise DataError(f"{os.fspath(path)}: {data.shape[1]} features, expected n_features={n_features}")
    return data


def is_data_set(X: Any) -> bool:
    """Whether X is a data set or the path of one, and not a matrix."""
    return isinstance(X, (str, os.PathLike, Dataset))


def open_data_set(X: Any, y: Any) -> Dataset:
    """The data set X, or the one in the file X."""
    if y is not None:
        raise ValueError("a data set has its own labels: leave y out")
    return X if isinstance(X, Dataset) else open_dataset(X)


def _gather(source: Source) -> Dataset:
    """All rows of a source, in memory."""
    import numpy as np

    from cutsvm._utils.errors import DataError
    from cutsvm.io.store.batches import checked, value_type

    parts, first = [], 0
    for batch in source:
        part = checked(batch, value_type(None, batch.X.dtype), source, first)
        first += part.X.shape[0]
        parts.append(part)
    if not first:
        raise DataError(f"{source.name}: no samples")
    matrices = [part.X for part in parts]
    X = matrices[0] if len(parts) == 1 else _stacked(matrices)
    y = np.concatenate([part.y for part in parts])
    weights, qid = (
        None if getattr(parts[0], name) is None else np.concatenate([getattr(part, name) for part in parts])
        for name in ("weights", "qid")
    )
    return Dataset(X, y, qid, source.zero_based, None, source.name, 0, weights, source.feature_names)


def _stacked(matrices: list[Any]) -> Any:
    import numpy as np
    from scipy import sparse

    from cutsvm.io.store.batches import is_sparse

    return sparse.vstack(matrices, format="csr") if is_sparse(matrices[0]) else np.vstack(matrices)
