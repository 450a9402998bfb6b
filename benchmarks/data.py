"""The data sets of the benchmarks: real ones from a folder of .npz files, synthetic ones made here.

X is float32, a C-ordered array or CSR. y is float64: -1 and +1 in the two-class sets, 1 to K in those with K
classes. Dense features are scaled to [0, 1] by their smallest and largest value unless the set says otherwise;
sparse sets are taken as they are, word counts as tf-idf.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

DEFAULT_FOLDER = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
TEMPORARY = Path(tempfile.gettempdir()) / "cutsvm-benchmarks"

# The label that is the positive class.
POSITIVE = {"covtype": 1, "kdd04_bio": 1, "mnist": 3, "a9a": 1, "w8a": 1, "ijcnn1": 1, "arxiv": 1}
REAL = tuple(POSITIVE)
SYNTHETIC = ("synthetic-small", "synthetic-long", "synthetic-wide")
# Sets with more classes: the file, and what is done to its values.
MULTI = {
    "covtype-7": ("covtype", "unit range"),
    "mnist-10": ("mnist", "pixels"),
    "mnist-10-raw": ("mnist", ""),
    "poker": ("poker", ""),
    "news20": ("news20", "tf-idf"),
    "20newsgroups": ("20newsgroups", ""),
}
WITH_TEST = ("poker",)  # the test rows are taken too: the more, the better


class DataSet(NamedTuple):
    """A problem of two or more classes, or of regression; then y is real, and `classes` means nothing."""

    name: str
    X: Any  # a C-ordered array, or CSR
    y: np.ndarray
    classes: int = 2
    loss: str = "hinge"

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def sparse(self) -> bool:
        return sp.issparse(self.X)

    @property
    def density(self) -> float:
        stored = self.X.nnz if self.sparse else np.count_nonzero(self.X)
        return float(stored / (self.X.shape[0] * self.X.shape[1]))

    def subset(self, n: int, seed: int = 0) -> DataSet:
        """`n` rows drawn without replacement; a larger `n` with the same seed holds the smaller one."""
        if n >= self.n:
            return self
        rows = np.random.default_rng(seed).permutation(self.n)[:n]
        y, classes = numbered(self.y[rows]) if self.classes > 2 else (self.y[rows], self.classes)
        return self._replace(name=f"{self.name}-{n}", X=self.X[rows], y=y, classes=classes)


def numbered(labels: np.ndarray) -> tuple[np.ndarray, int]:
    """The classes numbered from 1, and how many there are."""
    found, places = np.unique(labels, return_inverse=True)
    return places + 1.0, len(found)


def available(names: list[str], folder: Path) -> tuple[list[str], list[str]]:
    """Split `names` into those that can be loaded and those whose file is missing."""

    def exists(name: str) -> bool:
        base = name.partition(":")[0]
        if base in SYNTHETIC:
            return True
        stem = MULTI[base][0] if base in MULTI else base
        return (base in POSITIVE or base in MULTI) and (folder / f"{stem}.npz").exists()

    found = [name for name in names if exists(name)]
    return found, [name for name in names if name not in found]


def load(name: str, folder: Path = DEFAULT_FOLDER) -> DataSet:
    """Load a real set from `folder`, or make a synthetic one. `name:ROWS` is a random subset."""
    name, _, rows = name.partition(":")
    if name in SYNTHETIC:
        data = synthetic(name)
    else:
        data = _many(name, folder) if name in MULTI else _real(name, folder)
    return data.subset(int(rows)) if rows else data


def _many(name: str, folder: Path) -> DataSet:
    """A set with more than two classes."""
    stem, treatment = MULTI[name]
    with np.load(folder / f"{stem}.npz") as file:
        y, classes = numbered(np.concatenate([file["y"], file["y_test"]]) if name in WITH_TEST else file["y"])
        if "X" in file:
            X = np.vstack([file["X"], file["X_test"]]) if name in WITH_TEST else file["X"]
            return DataSet(name, treated(X, treatment), y, classes)
        counts = sp.csr_matrix((file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"]))
    return DataSet(name, tfidf(counts) if treatment == "tf-idf" else _tidy(counts), y, classes)


def treated(X: np.ndarray, treatment: str) -> np.ndarray:
    """Dense values scaled as told: every feature by itself, pixels all alike, or not at all."""
    if treatment == "unit range":
        return unit_range(X)
    return np.ascontiguousarray(X / 255 if treatment == "pixels" else X, dtype=np.float32)


def held_out(name: str, folder: Path) -> DataSet | None:
    """The test rows of a dense set whose scaling does not come from the training rows; None where there are none."""
    stem, treatment = MULTI[name]
    with np.load(folder / f"{stem}.npz") as file:
        if treatment == "unit range" or name in WITH_TEST or "X_test" not in file:
            return None
        return DataSet(f"{name}-test", treated(file["X_test"], treatment), *numbered(file["y_test"]))


def _real(name: str, folder: Path) -> DataSet:
    with np.load(folder / f"{name}.npz") as file:
        y = np.where(file["y"] == POSITIVE[name], 1.0, -1.0)
        if "X" in file:
            return DataSet(name, unit_range(file["X"]), y)
        X = sp.csr_matrix((file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"]))
    return DataSet(name, tfidf(X) if name == "arxiv" else _tidy(X), y)


def unit_range(X: np.ndarray) -> np.ndarray:
    """Scale every feature to [0, 1]; a constant one becomes 0."""
    low = X.min(axis=0)
    width = X.max(axis=0) - low
    width[width == 0] = 1
    return np.ascontiguousarray((X - low) / width, dtype=np.float32)


def tfidf(counts: sp.csr_matrix) -> sp.csr_matrix:
    """log(1 + count) x idf with rows of unit length, idf = log((1 + n) / (1 + df)) + 1."""
    n, d = counts.shape
    document_frequency = np.bincount(counts.indices, minlength=d)
    idf = np.log((1 + n) / (1 + document_frequency)) + 1
    values = np.log1p(counts.data.astype(np.float64)) * idf[counts.indices]
    rows = np.repeat(np.arange(n), np.diff(counts.indptr))
    length = np.sqrt(np.bincount(rows, weights=values**2, minlength=n))
    length[length == 0] = 1
    values /= length[rows]
    return _tidy(sp.csr_matrix((values, counts.indices, counts.indptr), shape=counts.shape))


def _tidy(X: sp.csr_matrix) -> sp.csr_matrix:
    """float32 values, int32 indices, sorted: the form that every solver here can read."""
    X = X.astype(np.float32)
    X.sort_indices()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def synthetic(name: str, seed: int = 0) -> DataSet:
    """A made-up set: small and dense, long and thin, or wide and sparse. A tenth of the labels are random."""
    rng = np.random.default_rng(seed)
    X: Any
    if name == "synthetic-wide":
        X = _words(rng, n=50_000, d=20_000, per_row=50)
    else:
        n, d = (20_000, 50) if name == "synthetic-small" else (5_000_000, 40)
        X = rng.random((n, d), dtype=np.float32)
    scores = X @ rng.standard_normal(X.shape[1])
    y = np.where(scores > np.median(scores), 1.0, -1.0)
    noisy = rng.random(len(y)) < 0.1
    y[noisy] = rng.choice([-1.0, 1.0], size=noisy.sum())
    return DataSet(name, X, y)


def _words(rng: np.random.Generator, n: int, d: int, per_row: int) -> sp.csr_matrix:
    """Rows of words drawn by Zipf's law, weighted as text is."""
    law = 1 / np.arange(1, d + 1)
    columns = rng.choice(d, size=n * per_row, p=law / law.sum())
    rows = np.repeat(np.arange(n), per_row)
    counts = sp.coo_matrix((np.ones(n * per_row, dtype=np.float32), (rows, columns)), shape=(n, d)).tocsr()
    return tfidf(counts)


def svmlight_file(data: DataSet, folder: Path = TEMPORARY) -> Path:
    """The set as svmlight text (1-based), written once per temporary folder. Nine digits keep a float32."""
    parts = (data.X.data, data.X.indices, data.X.indptr) if data.sparse else (data.X,)
    check = 0
    for part in (*parts, data.y):
        check = zlib.crc32(np.ascontiguousarray(part).data, check)
    path = folder / f"{data.name}-{check:08x}.svm"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}")
    with unfinished.open("w") as file:
        for start in range(0, data.n, 10_000):
            block = sp.csr_matrix(data.X[start : start + 10_000])
            file.write(_svmlight_text(block, data.y[start : start + 10_000]))
    unfinished.replace(path)
    return path


def _svmlight_text(X: sp.csr_matrix, y: np.ndarray) -> str:
    """Format a block of rows: one `%` per row is several times faster than one per value."""
    tokens: list[Any] = [None] * (2 * X.nnz)
    tokens[::2] = (X.indices + 1).tolist()
    tokens[1::2] = X.data.astype(np.float64).tolist()
    ends = (2 * X.indptr).tolist()
    lines = []
    for label, (start, end) in zip(y.tolist(), pairwise(ends), strict=True):
        if start == end:  # svmocas refuses a row without features
            lines.append(f"{label:+.0f} 1:0\n")
        else:
            pattern = "%+d" + " %d:%.9g" * ((end - start) // 2) + "\n"
            lines.append(pattern % (label, *tokens[start:end]))
    return "".join(lines)
