"""The data sets of `kernel.py`: their rows, held-out rows, scaling and settings of C and gamma."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import data

SEED = 0
HELD_OUT = 5_000  # rows for the test error, at most
LIKE_ALL = 1.2  # a set with fewer than this many times the rows asked for is taken whole
DENSE_BELOW = 2_000  # features: peers get a sparse set of fewer as a dense array too


class Source(NamedTuple):
    """A file, what is done to its values, the positive class (None: all classes), and the central C and gamma."""

    file: str
    scaling: str
    positive: int | None
    C: float
    gamma: float
    rows: tuple[int, ...]


SOURCES = {
    "ijcnn1": Source("ijcnn1", "", 1, 10.0, 1.0, (30_000, 100_000)),
    "a9a": Source("a9a", "", 1, 1.0, 0.02, (30_000, 100_000)),
    "w8a": Source("w8a", "", 1, 10.0, 0.05, (30_000, 100_000)),
    "usps-3": Source("usps", "", 3, 10.0, 0.02, (30_000,)),
    "mnist-3": Source("mnist", "pixels", 3, 4.0, 0.02, (30_000, 100_000)),
    "covtype": Source("covtype", "unit range", data.POSITIVE["covtype"], 10.0, 10.0, (30_000, 100_000)),
    "optdigits-10": Source("optdigits", "sixteenths", None, 10.0, 0.05, (10_000,)),
    "usps-10": Source("usps", "", None, 10.0, 0.02, (10_000,)),
    "mnist-10": Source("mnist", "pixels", None, 4.0, 0.02, (10_000, 60_000)),
}
PICTURE = "covtype"
PICTURE_ROWS = (1_000, 3_000, 10_000, 30_000, 100_000)
FACTORS = {"central": 1.0, "small C": 0.1, "large C": 10.0}


class Rows(NamedTuple):
    """Training rows with their labels, and rows that were held out, perhaps none."""

    name: str
    X: Any  # float32, a C-ordered array or CSR
    y: np.ndarray  # -1 and 1, or numbers of classes
    X_test: Any
    y_test: np.ndarray

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def classes(self) -> np.ndarray:
        return np.unique(self.y)

    def layouts(self) -> list[str]:
        """The forms in which a peer may have the rows: sparse ones with few features dense as well."""
        if not sp.issparse(self.X):
            density = np.count_nonzero(self.X[:1000]) / self.X[:1000].size
            return ["dense", "csr"] if density < 0.3 else ["dense"]
        return ["csr", "dense"] if self.X.shape[1] < DENSE_BELOW else ["csr"]

    def form(self, layout: str, dtype: Any = np.float32) -> Any:
        if layout == "csr":
            return sp.csr_matrix(self.X, dtype=dtype)
        return np.ascontiguousarray(self.X.toarray() if sp.issparse(self.X) else self.X, dtype=dtype)


class Problem(NamedTuple):
    """One training problem: rows of a set, C and gamma."""

    set: str
    rows: int
    setting: str
    C: float
    gamma: float


def available(names: list[str], folder: Path) -> tuple[list[str], list[str]]:
    """Split `names` into those that can be loaded and those that are unknown or have no file."""
    found = [name for name in names if name in SOURCES and (folder / f"{SOURCES[name].file}.npz").exists()]
    return found, [name for name in names if name not in found]


def size(name: str, folder: Path) -> int:
    with np.load(folder / f"{SOURCES[name].file}.npz") as file:
        return len(file["y"])


def problems(names: list[str], folder: Path, quick: int | None = None) -> list[Problem]:
    """All problems of the sets, small ones first; with `quick` one of that many rows for each set."""
    found = []
    for name in names:
        source, n = SOURCES[name], size(name, folder)
        wanted = set(source.rows) if quick is None else {quick}
        sizes = {n if n < LIKE_ALL * rows else rows for rows in wanted}
        factors = FACTORS if source.positive is not None and quick is None else {"central": 1.0}
        for rows in sizes:
            found += [Problem(name, rows, key, source.C * by, source.gamma) for key, by in factors.items()]
        if name == PICTURE and quick is None:
            more = [rows for rows in PICTURE_ROWS if rows not in sizes]
            found += [Problem(name, rows, "central", source.C, source.gamma) for rows in more]
    return sorted(found, key=lambda problem: (names.index(problem.set), problem.rows))


def load(name: str, rows: int, folder: Path) -> Rows:
    """`rows` rows drawn at random, and held-out ones: the set's own test rows, or others of its rows."""
    source = SOURCES[name]
    with np.load(folder / f"{source.file}.npz") as file:
        X, y = _matrix(file, ""), file["y"]
        own = "y_test" in file
        X_test, y_test = (_matrix(file, "test"), file["y_test"]) if own else (X[:0], y[:0])
    if source.scaling == "unit range":
        X = data.unit_range(X)
    order = np.random.default_rng(SEED).permutation(len(y))
    if not own:
        later = order[rows : rows + HELD_OUT]
        X_test, y_test = X[later], y[later]
    few = np.random.default_rng(SEED).permutation(len(y_test))[:HELD_OUT]
    taken = order[:rows]
    parts = (X[taken], y[taken], X_test[few], y_test[few])
    return Rows(name, *(_labels(part, source) if part.ndim == 1 else _scaled(part, source) for part in parts))


def _matrix(file: Any, part: str) -> Any:
    """The rows of a file as they are stored: `X`, `X_test`, or the arrays of a CSR matrix."""
    if "X" in file:
        return file["X_test" if part else "X"]
    keys = [f"{part}_{key}" if part else key for key in ("data", "indices", "indptr", "shape")]
    values, indices, pointers, shape = (file[key] for key in keys)
    width = int(file["shape"][1])
    X = sp.csr_matrix((values.astype(np.float32), indices, pointers), shape=tuple(shape))
    X.resize((X.shape[0], width))
    X.sort_indices()
    return X


def _scaled(X: Any, source: Source) -> Any:
    by = {"pixels": np.float32(1 / 255), "sixteenths": np.float32(1 / 16)}.get(source.scaling)
    X = X if by is None else X * by
    return X.astype(np.float32) if sp.issparse(X) else np.ascontiguousarray(X, dtype=np.float32)


def _labels(y: np.ndarray, source: Source) -> np.ndarray:
    return y.astype(np.float64) if source.positive is None else np.where(y == source.positive, 1.0, -1.0)
