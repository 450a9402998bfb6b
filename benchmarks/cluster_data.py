"""Parquet files for `cluster.py`: rows of real and synthetic sets in pieces, and F of anybody's answer over them."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cluster_fit import LABEL, files_of, read_part

GROUP = 1 << 16  # rows of a row group


def write_part(file: Path, X: np.ndarray, y: np.ndarray) -> None:
    """A file of float32 columns and a label of -1 and +1."""
    columns = {f"f{place}": pa.array(np.ascontiguousarray(X[:, place])) for place in range(X.shape[1])}
    columns[LABEL] = pa.array(y.astype(np.int8))
    pq.write_table(pa.table(columns), file, row_group_size=GROUP, compression="snappy")


def covtype(data: Path, rows: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """covtype, class 2 against the rest; every feature has mean 0 and variance 1. rows: only the first ones."""
    with np.load(data / "covtype.npz") as file:
        X, labels = file["X"][:rows].astype(np.float64), file["y"][:rows]
    deviation = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)
    return X.astype(np.float32), np.where(labels == 2, 1, -1)


def write_repeated(folder: Path, X: np.ndarray, y: np.ndarray, times: int) -> None:
    """The same rows again and again, a file for each time."""
    folder.mkdir(parents=True)
    for number in range(times):
        write_part(folder / f"part-{number:03d}.parquet", X, y)


def write_cut(folder: Path, X: np.ndarray, y: np.ndarray, parts: int) -> None:
    """The rows once, in this number of files of different sizes."""
    folder.mkdir(parents=True)
    shares = np.cumsum(1.0 + np.arange(parts) % 3)
    edges = [0, *np.round(shares / shares[-1] * len(y)).astype(int).tolist()]
    for number, (begin, end) in enumerate(itertools.pairwise(edges)):
        write_part(folder / f"part-{number:03d}.parquet", X[begin:end], y[begin:end])


def two_classes(rows: int, features: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes that overlap: the side of a plane, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features), dtype=np.float32)
    w = np.random.default_rng(23).standard_normal(features)
    return X, np.where(X @ w + rng.standard_normal(rows) > 0.0, 1, -1)


def write_synthetic(folder: Path, rows: int, features: int, files: int) -> int:
    """Synthetic rows, made and written a file at a time; the bytes on disk."""
    folder.mkdir(parents=True)
    for number in range(files):
        count = rows * (number + 1) // files - rows * number // files
        write_part(folder / f"part-{number:03d}.parquet", *two_classes(count, features, 1000 + number))
    return sum(file.stat().st_size for file in folder.iterdir())


def objective(folder: str, w: np.ndarray, b: float, C: float) -> float:
    """F(w, b) = |w|^2 / 2 + C sum of hinge losses over all files, in float64; b is free."""
    total = 0.0
    for file in files_of(folder):
        X, y = read_part(file)
        for begin in range(0, len(y), GROUP):
            scores = X[begin : begin + GROUP].astype(np.float64) @ w + b
            total += float(np.maximum(0.0, 1.0 - y[begin : begin + GROUP] * scores).sum())
    return 0.5 * float(w @ w) + C * total
