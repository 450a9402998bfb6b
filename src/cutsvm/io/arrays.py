"""Sources of rows that are arrays: in memory, memory-mapped, in .npy and .npz files, or given block by block."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray
from scipy import sparse

from cutsvm.errors import DataError
from cutsvm.io.batches import Batch, is_sparse
from cutsvm.io.roles import Roles

__all__ = ["ArraySource", "BlockSource", "NpzSource", "npy_source"]

Array = NDArray[Any]
CHUNK = 32 << 20  # bytes of rows in a batch, about
_ZIPPED = (zipfile.BadZipFile, EOFError, ValueError, OSError)


class ArraySource:
    """A matrix, dense or sparse or a data frame, and one label (weight, query) per row."""

    zero_based: bool | None = None

    def __init__(self, name: str, X: Any, y: Any, *, weights: Any = None, qid: Any = None) -> None:
        self.name = name
        self._frame = hasattr(X, "iloc")
        self.feature_names = [str(column) for column in X.columns] if self._frame else None
        self._X = X.tocsr() if is_sparse(X) else X if self._frame else np.asanyarray(X)
        if len(self._X.shape) != 2:
            raise DataError(f"{name}: expected a matrix, rows x features, found the shape {self._X.shape}")
        self._columns = [None if part is None else np.asanyarray(part) for part in (y, weights, qid)]
        for what, part in zip(("labels", "weights", "queries"), self._columns, strict=True):
            if part is not None and part.shape != (self._X.shape[0],):
                raise DataError(f"{name}: {self._X.shape[0]} rows, but {what} of shape {part.shape}")
        self._done = 0

    def __iter__(self) -> Iterator[Batch]:
        n, d = self._X.shape
        per_row = 12 * self._X.nnz // max(n, 1) if is_sparse(self._X) else 8 * d
        step = max(1, CHUNK // max(1, per_row))
        for start in range(0, n, step):
            mine = slice(start, min(n, start + step))
            X = self._X.iloc[mine].to_numpy() if self._frame else self._X[mine]
            y, weights, qid = (None if part is None else part[mine] for part in self._columns)
            assert y is not None
            self._done = mine.stop
            yield Batch(X, y, weights, qid)

    def done(self) -> float:
        return float(self._done / max(1, self._X.shape[0]))


class BlockSource:
    """An iterator of (X, y), (X, y, weights) or (X, y, weights, qid)."""

    zero_based: bool | None = None
    feature_names: list[str] | None = None

    def __init__(self, blocks: Iterable[Any]) -> None:
        self.name, self._blocks = "blocks", blocks

    def __iter__(self) -> Iterator[Batch]:
        for number, block in enumerate(self._blocks):
            if not isinstance(block, tuple | list) or not 2 <= len(block) <= 4:
                raise DataError(f"block {number}: expected (X, y), (X, y, weights) or (X, y, weights, qid)")
            X, y, *more = block
            if hasattr(X, "iloc") and self.feature_names is None and number == 0:
                self.feature_names = [str(column) for column in X.columns]
            yield Batch(X if is_sparse(X) else np.asarray(X), np.asarray(y), *more)

    def done(self) -> None:
        return None


def npy_source(path: str, roles: Roles) -> ArraySource:
    """A memory-mapped .npy file; the labels are one of its columns or another such file."""
    X = _load_npy(path)
    if X.ndim != 2:
        raise DataError(f"{path}: expected a matrix, rows x features, found the shape {X.shape}")
    width = X.shape[1]
    columns: list[Array | None] = []
    used: list[int] = []
    for what, role in (("label", roles.label), ("weight", roles.weight), ("qid", roles.qid)):
        if role is None and what == "label":
            raise DataError(
                f"{path}: where are the labels? label= expects the number of a column (0 is the first, -1 the last) "
                "or another .npy file"
            )
        if isinstance(role, str) and role.endswith(".npy"):
            columns.append(_load_npy(role))
        elif role is None:
            columns.append(None)
        else:
            number = _number(role)
            if number is None or not -width <= number < width:
                raise DataError(
                    f"{path}: {what}={role!r}: expected the number of one of the {width} columns or a .npy file"
                )
            used.append(number % width)
            columns.append(X[:, number])
    if used:
        X = _without(X, used)
    y, weights, qid = columns
    return ArraySource(path, X, y, weights=weights, qid=qid)


def _without(X: Array, used: list[int]) -> Any:
    """X without some columns: still in place if these are at its ends."""
    kept = [column for column in range(X.shape[1]) if column not in used]
    if kept and kept[-1] - kept[0] == len(kept) - 1:
        return X[:, kept[0] : kept[-1] + 1]
    return X[:, kept]


def _load_npy(path: str) -> Array:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]
    except (ValueError, EOFError) as error:
        raise DataError(f"{path}: not a .npy file of numbers ({error})") from None


def _number(role: str | int) -> int | None:
    try:
        return int(role)
    except ValueError:
        return None


class NpzSource:
    """A .npz file with y and X, or y and the parts of a CSR matrix (data, indices, indptr, shape), read as a stream.

    Weights and queries are in it as sample_weight and qid.
    """

    zero_based: bool | None = None
    feature_names: list[str] | None = None

    def __init__(self, path: str, roles: Roles) -> None:
        self.name = path
        try:
            self._zip = zipfile.ZipFile(path)
        except zipfile.BadZipFile as error:
            raise DataError(f"{path}: not a .npz file ({error})") from None
        members = {name.removesuffix(".npy") for name in self._zip.namelist()}
        self._label = str(roles.label or "y")
        if self._label not in members:
            raise DataError(f"{path}: no array {self._label!r} with the labels; there are {', '.join(sorted(members))}")
        self._sparse = "X" not in members and {"data", "indices", "indptr", "shape"} <= members
        if not self._sparse and "X" not in members:
            raise DataError(f"{path}: no array 'X'; there are {', '.join(sorted(members))}")
        self._weight = str(roles.weight or ("sample_weight" if "sample_weight" in members else "")) or None
        self._qid = str(roles.qid or ("qid" if "qid" in members else "")) or None
        self._done = 0.0

    def __iter__(self) -> Iterator[Batch]:
        try:
            y = self._whole(self._label)
            weights = None if self._weight is None else self._whole(self._weight)
            qid = None if self._qid is None else self._whole(self._qid)
            start = 0
            for X in self._csr_batches() if self._sparse else self._dense_batches():
                mine = slice(start, start + X.shape[0])
                own = [None if part is None else part[mine] for part in (weights, qid)]
                start = mine.stop
                self._done = start / max(1, len(y))
                yield Batch(X, y[mine], own[0], own[1])
        except DataError:
            raise
        except _ZIPPED as error:
            raise DataError(f"{self.name}: damaged ({error})") from None
        if start != len(y):
            raise DataError(f"{self.name}: {start} rows, but {len(y)} labels")

    def _whole(self, name: str) -> Array:
        return _Member(self._zip, self.name, name).rest()

    def _dense_batches(self) -> Iterator[Array]:
        member = _Member(self._zip, self.name, "X")
        if len(member.shape) != 2:
            raise DataError(f"{self.name}: X has the shape {member.shape}, expected rows x features")
        if member.fortran:  # the rows of such a file are not together
            yield member.rest()
            return
        n, d = member.shape
        step = max(1, CHUNK // max(1, d * member.dtype.itemsize))
        for start in range(0, n, step):
            rows = min(step, n - start)
            yield member.read(rows * d).reshape(rows, d)

    def _csr_batches(self) -> Iterator[Any]:
        n, d = (int(side) for side in self._whole("shape"))
        pointers = self._whole("indptr").astype(np.int64)
        if len(pointers) != n + 1 or pointers[0] != 0 or (np.diff(pointers) < 0).any():
            raise DataError(f"{self.name}: indptr does not rise from 0 in {n + 1} steps")
        values, columns = (_Member(self._zip, self.name, name) for name in ("data", "indices"))
        start = 0
        while start < n:
            stop = int(np.searchsorted(pointers, pointers[start] + CHUNK // 12, side="right")) - 1
            stop = min(n, max(start + 1, stop))
            many = int(pointers[stop] - pointers[start])
            parts = values.read(many), columns.read(many), pointers[start : stop + 1] - pointers[start]
            yield sparse.csr_matrix(parts, shape=(stop - start, d))
            start = stop

    def done(self) -> float:
        return self._done


class _Member:
    """One array of a .npz file, read bit by bit."""

    def __init__(self, archive: zipfile.ZipFile, path: str, name: str) -> None:
        self._stream, self._path, self._name = archive.open(f"{name}.npy"), path, name
        version = npy_format.read_magic(self._stream)
        header = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        self.shape, self.fortran, self.dtype = header(self._stream)
        if self.dtype.hasobject:
            raise DataError(f"{path}: {name} holds Python objects, expected numbers or text")

    def read(self, count: int) -> Array:
        data = self._stream.read(count * self.dtype.itemsize)
        if len(data) != count * self.dtype.itemsize:
            raise DataError(f"{self._path}: {self._name} is cut short")
        return np.frombuffer(data, dtype=self.dtype)

    def rest(self) -> Array:
        flat = self.read(int(np.prod(self.shape, dtype=np.int64)))
        return flat.reshape(self.shape, order="F" if self.fortran else "C")
