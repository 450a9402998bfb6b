"""The problems of ranking.py: rows that stand query by query, and levels that say which of them should be higher.

X is float32, y float64, and only its order counts. LETOR's features are taken as they are, MSLR's go through a
logarithm; these and those of the ordinal sets are scaled to [0, 1]. The synthetic sets need no file.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from data import DEFAULT_FOLDER, unit_range

LETOR = ("letor_mq2008", "mslr_sample")
# Ordinal sets, as one query. NAME-10 has ten levels, NAME-2 its lower and its upper half.
ORDINAL = (
    *("stock", "winequality-red", "abalone", "bank32nh", "cpu_small", "house8L"),
    *("bank8FM", "california", "pyrimidines", "triazines", "wisconsin", "machine_cpu", "boston"),
)
# Rows of a query, queries, levels.
SYNTHETIC = {
    "one-1e5-2": (100_000, 1, 2),
    "one-1e5-10": (100_000, 1, 10),
    "one-1e6-2": (1_000_000, 1, 2),
    "one-1e6-10": (1_000_000, 1, 10),
    "many-1e6-5": (100, 10_000, 5),
}
FEATURES = 20


class RankSet(NamedTuple):
    """Rows, levels, and where each query starts: query q has the rows starts[q] to starts[q + 1]."""

    name: str
    X: np.ndarray
    y: np.ndarray
    starts: np.ndarray
    sparse: bool = False

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def density(self) -> float:
        return float(np.count_nonzero(self.X) / self.X.size)

    @property
    def queries(self) -> int:
        return len(self.starts) - 1

    @property
    def classes(self) -> int:
        return len(np.unique(self.y))

    @property
    def qid(self) -> np.ndarray:
        """The number of each row's query."""
        return np.repeat(np.arange(self.queries), np.diff(self.starts))

    @property
    def pairs(self) -> int:
        """Pairs of one query with different levels: all less those of one level, halved."""
        level = np.unique(self.y, return_inverse=True)[1]
        same = np.unique(self.qid * (level.max() + 1) + level, return_counts=True)[1]
        return int((np.sum(np.diff(self.starts) ** 2) - np.sum(same**2)) // 2)

    def subset(self, n: int) -> RankSet:
        """About n rows: the first queries, or some rows of the only one."""
        if n >= self.n:
            return self
        if self.queries > 1:
            last = max(1, int(np.searchsorted(self.starts, n, side="right")) - 1)
            end = self.starts[last]
            return RankSet(f"{self.name}-{end}", self.X[:end], self.y[:end], self.starts[: last + 1])
        rows = np.sort(np.random.default_rng(0).permutation(self.n)[:n])
        return RankSet(f"{self.name}-{n}", self.X[rows], self.y[rows], np.array([0, n]))


def available(names: list[str], folder: Path) -> tuple[list[str], list[str]]:
    """Split `names` into those that can be loaded and those that cannot."""
    found = [name for name in names if name in SYNTHETIC or (folder / path_of(name)).exists()]
    return found, [name for name in names if name not in found]


def path_of(name: str) -> str:
    return f"{name}.npz" if name in LETOR else f"ordinal/{name.rpartition('-')[0]}.npz"


def load(name: str, folder: Path = DEFAULT_FOLDER) -> RankSet:
    """A set by its name; NAME:ROWS takes about so many rows of it."""
    name, _, rows = name.partition(":")
    found = synthetic(name) if name in SYNTHETIC else _from_file(name, folder)
    return found.subset(int(rows)) if rows else found


def _from_file(name: str, folder: Path) -> RankSet:
    with np.load(folder / path_of(name)) as file:
        X = file["X"]
        if name in LETOR:
            X = unit_range(np.sign(X) * np.log1p(np.abs(X))) if name == "mslr_sample" else X
            return by_query(name, X, file["y"], file["qid"])
        y = file["y10"].astype(np.float64)
        y = np.where(y > 5, 1.0, 0.0) if name.endswith("-2") else y
        return RankSet(name, unit_range(X), y, np.array([0, len(y)]))


def by_query(name: str, X: np.ndarray, y: np.ndarray, qid: np.ndarray) -> RankSet:
    """The rows put together by query, in the order of the queries' numbers."""
    order = np.argsort(qid, kind="stable")
    starts = np.append(np.unique(qid[order], return_index=True)[1], len(y))
    return RankSet(name, np.ascontiguousarray(X[order], dtype=np.float32), y[order].astype(np.float64), starts)


def synthetic(name: str, seed: int = 0) -> RankSet:
    """Levels of equal size along a direction, with as much noise as signal."""
    rows, queries, levels = SYNTHETIC[name]
    rng = np.random.default_rng(seed)
    X = rng.random((rows * queries, FEATURES), dtype=np.float32)
    scores = X @ rng.standard_normal(FEATURES)
    scores += scores.std() * rng.standard_normal(len(scores))
    edges = np.quantile(scores, np.arange(1, levels) / levels)
    y = np.searchsorted(edges, scores).astype(np.float64)
    return RankSet(name, X, y, np.arange(queries + 1) * rows)


def steps(y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The pairs of one query, level by level: the rows of a level, and all the rows below it."""
    levels = np.unique(y)
    return [(np.flatnonzero(y == level), np.flatnonzero(y < level)) for level in levels[1:]]


def pair_loss(scores: np.ndarray, y: np.ndarray, starts: np.ndarray) -> tuple[float, float]:
    """The sum over the pairs of max(0, 1 - (f_i - f_j)), and how many are in order, a tie as a half.

    Nothing of cutsvm is in it: it is the measure for everybody. A sort for every level and query.
    """
    loss = right = 0.0
    for start, end in pairwise(starts):
        f = scores[start:end]
        for upper, lower in steps(y[start:end]):
            low = np.sort(f[lower])
            sums = np.append(np.cumsum(low[::-1])[::-1], 0.0)  # of all from here to the highest
            first = np.searchsorted(low, f[upper] - 1.0, side="right")
            loss += float(np.sum((len(low) - first) * (1.0 - f[upper]) + sums[first]))
            below = np.searchsorted(low, f[upper], side="left") + np.searchsorted(low, f[upper], side="right")
            right += float(below.sum()) / 2
    return loss, right


def differences(data: RankSet) -> tuple[np.ndarray, np.ndarray]:
    """A row x_i - x_j for every pair, every other one with both signs turned, so that there are two classes."""
    blocks = []
    for start, end in pairwise(data.starts):
        X = data.X[start:end].astype(np.float64)
        for upper, lower in steps(data.y[start:end]):
            blocks.append((X[upper][:, None] - X[lower][None]).reshape(-1, X.shape[1]))
    D = np.vstack(blocks)
    sign = np.where(np.arange(len(D)) % 2, -1.0, 1.0)
    D *= sign[:, None]
    return D, sign
