"""A data set in memory, and the one door through which files become data sets."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

__all__ = ["Dataset", "open_dataset"]

# What the suffix of a file says of its format; anything else is taken for svmlight text.
_SUFFIXES = {
    ".npy": "npy",
    ".npz": "npz",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_FORMATS = ("svmlight", "npy", "npz", "csv", "parquet", "arrow", "store")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples with labels, as read from a file.

    Attributes
    ----------
    X
        One row per sample, indices sorted.
    y
        One label per sample.
    qid
        The query of each sample, if the file has queries: int64, or text if any id is no 64-bit integer.
    zero_based
        Whether index 0 of the file is the first column; else index 1 is.
    feature_ids
        The file's index of each column, increasing, if the columns are only those seen; else None.
    source
        Where the data are from, for messages.
    ignored
        How many distinct features of the file were dropped because the model does not know them.
    """

    X: csr_matrix[Any]
    y: NDArray[Any]
    qid: NDArray[Any] | None
    zero_based: bool
    feature_ids: NDArray[Any] | None
    source: str
    ignored: int = 0


def open_dataset(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    label: str | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    n_features: int | None = None,
) -> Dataset:
    """Read a data file.

    Parameters
    ----------
    path
        A file in svmlight format, plain or compressed (gzip, bzip2, xz, zstd).
    format
        "svmlight", or None to go by the name of the file.
    label
        The column of labels, for tables only.
    zero_based
        Whether indices count from 0. "auto": they do if index 0 occurs.
    n_features
        Number of columns, if it is more than the file shows.
    """
    from cutsvm.io.svmlight import read_svmlight

    kind = _format_of(path) if format is None else format
    if kind not in _FORMATS:
        raise ValueError(f"format must be one of {', '.join(_FORMATS)} or None, got {format!r}")
    if kind != "svmlight":
        raise NotImplementedError(
            f"{os.fspath(path)}: the format {kind} is not supported yet; "
            "load it with numpy or pandas and call fit(X, y)"
        )
    if label is not None:
        raise ValueError("label= names a column of a table; svmlight files have their labels in front")
    return read_svmlight(path, zero_based=zero_based, n_features=n_features)


def _format_of(path: str | os.PathLike[str]) -> str:
    """The format that the name of a file or folder stands for."""
    file = Path(path)
    if file.is_dir():
        return "store"
    suffix = file.suffix.lower()
    if suffix in _COMPRESSED:
        suffix = file.with_suffix("").suffix.lower()
    return _SUFFIXES.get(suffix, "svmlight")
