"""Reading svmlight/libsvm text: `<label> [qid:<id>] <index>:<value> ... [# comment]`.

The compiled parser appends blocks of whole lines to arrays; the arrays become a `Dataset` once the base of the indices
is known.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_matrix

from cutsvm._native import core
from cutsvm._utils import threads
from cutsvm._utils.errors import DataError
from cutsvm._utils.types import Array
from cutsvm.io.dataset import Dataset
from cutsvm.io.formats.text import text_blocks
from cutsvm.io.paths import Input
from cutsvm.io.settings import read_settings

Path = str | os.PathLike[str]
Paths = Path | Iterable[Path | Input]
ZeroBased = bool | Literal["auto"]

_INT32_MAX = 2**31 - 1


def read_svmlight(
    path_or_paths: Paths,
    *,
    zero_based: ZeroBased = "auto",
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    n_threads: int | None = None,
    feature_ids: Array | None = None,
    extra: Literal["error", "ignore"] = "error",
) -> Dataset:
    """Read one or more svmlight files, plain or compressed (known by their first bytes), as one data set.

    zero_based: whether indices count from 0. "auto": they do if index 0 occurs anywhere in the files.
    n_features: number of columns. Without it, as many as the largest index asks for; if that is beyond 2^31 - 1, the
        columns are the features seen, and `feature_ids` of the result tells which.
    dtype: of the values, float64 or float32.
    n_threads: all by default; the result does not depend on it.
    feature_ids: increasing indices, as written in the files, that are to become the columns.
    extra: what to do with features beyond `n_features` or not in `feature_ids`: "error", or "ignore" to drop and count
        them.

    `qid` of the result is int64 if every query id of the files is a 64-bit integer. Else it is text: the integers in
    decimal (007 is 7), the others as written; bytes that are not UTF-8 become surrogates. The first bad line raises
    `DataError`: `FILE:LINE: what was expected`.
    """
    _check_options(zero_based, n_features, feature_ids, extra)
    raw = load(path_or_paths, zero_based=zero_based, dtype=dtype, n_threads=n_threads)
    if raw.y.size == 0:
        raise DataError(f"{raw.source}: no samples")
    width, ids, ignored = _choose_columns(raw, n_features, feature_ids, extra)
    X = csr_matrix((raw.values, raw.indices, raw.indptr), shape=(raw.y.size, width))
    X.has_sorted_indices = X.has_canonical_format = True
    return Dataset(X, raw.y, raw.qid, raw.zero_based, ids, raw.source, ignored)


@dataclass
class RawSamples:
    """The samples of the files, with indices as written."""

    y: NDArray[np.float64]
    qid: NDArray[np.int64] | NDArray[np.str_] | None
    indptr: NDArray[np.int64]
    indices: Array
    values: Array
    zero_based: bool
    has_zero: bool
    max_index: int
    source: str
    bad_lines: list[str]
    n_bad: int


def load(
    path_or_paths: Paths,
    *,
    zero_based: ZeroBased = "auto",
    dtype: DTypeLike = np.float64,
    n_threads: int | None = None,
    keep_bad: int = 0,
) -> RawSamples:
    """All samples of the files. A bad line raises; with `keep_bad` they are skipped and that many described."""
    several = [path_or_paths] if isinstance(path_or_paths, str | os.PathLike) else path_or_paths
    files = [path if isinstance(path, Input) else Input(os.fspath(path)) for path in several]
    paths = [file.name for file in files]
    if not paths:
        raise ValueError("expected at least one file, got an empty list of paths")
    if n_threads is not None and n_threads < 1:
        raise ValueError(f"n_threads must be 1 or more, got {n_threads}")
    n_threads = threads.count(-1 if n_threads is None else n_threads)
    min_index = 0 if zero_based else 1  # "auto" is true: index 0 is allowed
    if np.dtype(dtype) not in (np.float64, np.float32):
        raise ValueError(f"dtype must be float64 or float32, got {np.dtype(dtype)}")
    kind = core.SvmlightReader64 if np.dtype(dtype) == np.float64 else core.SvmlightReader32
    reader = kind(min_index=min_index, keep_bad=keep_bad)
    bad_lines: list[str] = []
    for path, file in zip(paths, files, strict=True):
        reader.start_file()
        for block in text_blocks(file):
            found = [f"{path}:{line}: {text}" for line, text in reader.feed(block, n_threads)]
            if found and not keep_bad:
                raise DataError(found[0])
            bad_lines += found[: keep_bad - len(bad_lines)]
    has_zero = reader.min_index == 0
    max_index, n_bad = reader.max_index, reader.n_bad
    y, queries, indptr, indices, values = reader.take()
    qid = None if queries is None else query_ids(*queries)
    base = has_zero if zero_based == "auto" else bool(zero_based)
    source = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    return RawSamples(y, qid, indptr, indices, values, base, has_zero, max_index, source, bad_lines, n_bad)


def query_ids(
    ids: NDArray[np.int64], text_rows: NDArray[np.int64], texts: list[bytes]
) -> NDArray[np.int64] | NDArray[np.str_]:
    """The query of each row: int64 if every id is an integer, else all ids as text.

    For `text_rows`, the rows whose id is no integer, `ids` holds the index of the id in `texts`. `ids` is overwritten.
    """
    if not text_rows.size:
        return ids
    is_number = np.ones(ids.size, dtype=np.bool_)
    is_number[text_rows] = False
    numbers, places = np.unique(ids[is_number], return_inverse=True)
    ids[is_number] = len(texts) + places
    # Bytes that are not UTF-8 become surrogates, so that distinct ids stay distinct.
    names = [text.decode("utf-8", "surrogateescape") for text in texts] + [str(number) for number in numbers.tolist()]
    return np.array(names, dtype=np.str_)[ids]


def _check_options(zero_based: ZeroBased, n_features: int | None, feature_ids: Array | None, extra: str) -> None:
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based must be True, False or 'auto', got {zero_based!r}")
    if extra not in ("error", "ignore"):
        raise ValueError(f"extra must be 'error' or 'ignore', got {extra!r}")
    if n_features is not None and not 0 <= n_features <= _INT32_MAX:
        raise ValueError(f"n_features must be between 0 and {_INT32_MAX}, got {n_features}")
    if feature_ids is None:
        return
    ids = np.asarray(feature_ids)
    if ids.ndim != 1 or ids.dtype.kind not in "iu" or bool(np.any(ids[1:] <= ids[:-1])):
        raise ValueError("feature_ids must be one row of increasing integers")
    if n_features not in (None, ids.size):
        raise ValueError(f"n_features is {n_features} but there are {ids.size} feature_ids")


def _choose_columns(
    raw: RawSamples, n_features: int | None, feature_ids: Array | None, extra: str
) -> tuple[int, Array | None, int]:
    """Turn the indices of `raw` into columns, in place if possible: their number, their ids, how many were dropped."""
    if feature_ids is not None:
        ids = np.asarray(feature_ids, dtype=np.int64)
        ignored = _drop_extra(raw, lambda part: _is_in(part, ids), extra, f"the {ids.size} known features")
        raw.indices = _positions(raw.indices, ids)
        return ids.size, ids, ignored
    if n_features is None and raw.max_index > _INT32_MAX:
        ids = _distinct(raw.indices)
        raw.indices = _positions(raw.indices, ids)
        return ids.size, ids, 0
    first = 0 if raw.zero_based else 1
    width = max(raw.max_index + 1 - first, 0) if n_features is None else n_features
    ignored = 0
    if raw.max_index >= width + first:
        ignored = _drop_extra(raw, lambda part: part < width + first, extra, f"the {width} features")
    raw.indices -= first
    raw.indices = raw.indices.astype(np.int32, copy=False)
    return width, None, ignored


def _slices(size: int) -> Iterator[slice]:
    step = read_settings().slice_entries
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))


def _distinct(indices: Array) -> NDArray[np.int64]:
    """The sorted distinct indices, computed by slices to avoid a sorted copy of all of them."""
    distinct = np.empty(0, dtype=np.int64)
    for part in _slices(indices.size):
        distinct = np.union1d(distinct, indices[part])
    return distinct


def _positions(indices: Array, ids: NDArray[np.int64]) -> NDArray[np.int32]:
    """The position of each index in `ids`, which contains all of them."""
    positions = np.empty(indices.size, dtype=np.int32)
    for part in _slices(indices.size):
        positions[part] = np.searchsorted(ids, indices[part])
    return positions


def _is_in(indices: Array, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    if ids.size == 0:
        return np.zeros(indices.size, dtype=np.bool_)
    positions = np.minimum(np.searchsorted(ids, indices), ids.size - 1)
    return np.asarray(ids[positions] == indices)


def _drop_extra(raw: RawSamples, known: Callable[[Array], NDArray[np.bool_]], extra: str, name: str) -> int:
    """Remove the entries whose index is unknown, and return the number of distinct indices removed."""
    keep = np.empty(raw.indices.size, dtype=np.bool_)
    for part in _slices(raw.indices.size):
        keep[part] = known(raw.indices[part])
    if bool(keep.all()):
        return 0
    dropped = _distinct(raw.indices[~keep])
    if extra == "error":
        more = f"and {dropped.size - 1} more are" if dropped.size > 1 else "is"
        raise DataError(
            f"{raw.source}: index {dropped[0]} {more} beyond {name}; "
            "read_svmlight(..., extra='ignore') leaves such features out"
        )
    kept = np.concatenate(([0], np.cumsum(keep, dtype=np.int64)))
    raw.indptr = kept[raw.indptr]
    raw.indices = raw.indices[keep]
    raw.values = raw.values[keep]
    return int(dropped.size)
