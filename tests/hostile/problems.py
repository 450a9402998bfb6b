"""Random problems whose numbers are hostile: problem k of a seed is made of (seed, k) alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

KINDS = {
    "binary": 0.38,
    "joint": 0.13,  # several classes in one problem (Crammer and Singer)
    "ovr": 0.06,
    "ranking": 0.13,
    "roc": 0.07,
    "ordinal": 0.08,
    "kernel": 0.15,
}
INTERCEPTS = ("free", "regularized", "none")
MANY_ROWS = 25_000  # of which few are distinct: what only large data reach
TOLS = (1e-3, 1e-3, 1e-3, 1e-2, 1e-5, 1e-8)


@dataclass
class Problem:
    """The data of a fit; X is dense here, `matrix` has the layout that is fitted."""

    seed: int
    number: int
    kind: str
    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    qid: np.ndarray | None
    C: float
    tol: float
    intercept: str
    layout: str
    traits: list[str]
    params: dict[str, Any] = field(default_factory=dict)
    repeats: int = 1

    def matrix(self) -> Any:
        """X as it is fitted."""
        X = self.X if self.repeats == 1 else np.repeat(self.X, self.repeats, axis=0)
        if self.layout == "dense":
            return X
        if self.layout == "fortran":
            return np.asfortranarray(X)
        matrix = sparse.csr_matrix(X)
        if self.layout == "csr long":
            matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
        return matrix

    def column(self, values: np.ndarray | None) -> np.ndarray | None:
        """One value per row, repeated as the rows are."""
        return values if values is None or self.repeats == 1 else np.repeat(values, self.repeats)

    @property
    def repro(self) -> str:
        return f"python -m tests.hostile.run --seed {self.seed} --problem {self.number}"

    def __str__(self) -> str:
        n, d = self.X.shape
        return (
            f"{self.kind} n={n * self.repeats} d={d} {self.X.dtype} {self.layout} C={self.C:.3g} tol={self.tol:g} "
            f"intercept={self.intercept} [{', '.join(self.traits)}] {self.params or ''}"
        )


class Maker:
    """Draws one problem."""

    def __init__(self, seed: int, number: int) -> None:
        self.seed, self.number = seed, number
        self.rng = np.random.default_rng([seed, number])
        self.traits: list[str] = []

    def chance(self, share: float, trait: str) -> bool:
        """With this probability; a trait that came is remembered."""
        if self.rng.random() >= share:
            return False
        self.traits.append(trait)
        return True

    def make(self, kind: str | None = None) -> Problem:
        rng = self.rng
        drawn = str(rng.choice(list(KINDS), p=np.array(list(KINDS.values())) / sum(KINDS.values())))
        kind = kind or drawn
        n, d = self._shape(kind)
        y, qid = self._labels(kind, n)
        X = self._values(n, d, y)
        X = self._scaled(X, gentle=kind == "kernel")
        weights = None if kind == "kernel" else self._weights(n, y, kind)
        C = 10.0 ** rng.uniform(-12, 12) if self.chance(0.4, "extreme C") else 10.0 ** rng.uniform(-3, 4)
        tol, intercept = float(rng.choice(TOLS)), str(rng.choice(INTERCEPTS))
        layout = str(rng.choice(["dense", "fortran", "csr", "csr long"], p=[0.5, 0.1, 0.3, 0.1]))
        params = self._kernel(X) if kind == "kernel" else {}
        repeats = 1
        if kind in ("binary", "ovr", "joint", "roc", "ordinal") and self.chance(0.02, "many repeated rows"):
            repeats = MANY_ROWS // n
        if "gram" in params:
            X = params.pop("gram")
        return Problem(
            self.seed, self.number, kind, X, y, weights, qid, C, tol, intercept, layout, self.traits, params, repeats
        )

    def _shape(self, kind: str) -> tuple[int, int]:
        rng = self.rng
        n, d = int(rng.integers(3, 15)), int(rng.integers(1, 7))
        if self.chance(0.06, "n = 2"):
            n = 2
        if self.chance(0.1, "d = 1"):
            d = 1
        elif self.chance(0.1, "d > n"):
            n, d = min(n, 6), int(rng.integers(7, 13))
        if kind in ("joint", "ovr"):
            n, d = max(n, 4), min(d, 5)
        if kind in ("ranking", "ordinal"):
            n = min(n, 11)
        return n, d

    def _labels(self, kind: str, n: int) -> tuple[np.ndarray, np.ndarray | None]:
        rng = self.rng
        qid = None
        if kind in ("binary", "roc"):
            y = rng.integers(0, 2, size=n)
            y[:2] = 0, 1
        elif kind in ("joint", "ovr"):
            K = int(rng.integers(3, 5)) if n > 4 else 3
            y = rng.integers(0, K, size=n)
            y[:K] = np.arange(K)
        elif kind == "kernel":
            K = 3 if n > 4 and self.chance(0.2, "three classes") else 2
            y = rng.integers(0, K, size=n)
            y[:K] = np.arange(K)
        else:
            y = rng.integers(0, int(rng.integers(2, 5)), size=n)
            y[:2] = 0, 1
            if kind == "ranking" and n > 3:
                qid = rng.integers(0, max(1, n // 3), size=n)
                qid[:2] = qid[0]
                if self.chance(0.3, "a query without pairs"):
                    y[qid == qid[-1]] = y[-1]
                    y[:2] = 0, 1
                    qid[:2] = 99
                if rng.random() < 0.5:
                    qid.sort()
        if kind not in ("ranking",) and self.chance(0.2, "sorted labels"):
            y.sort()
        return y, qid

    def _values(self, n: int, d: int, y: np.ndarray) -> np.ndarray:
        rng = self.rng
        X = rng.normal(size=(n, d))
        if self.chance(0.3, "separable"):
            X[:, 0] += 6.0 * y
        if self.chance(0.2, "integers"):
            X = np.rint(2.0 * X)
        if self.chance(0.15, "zeros"):
            X[rng.random(size=X.shape) < 0.6] = 0.0
        if d > 1 and self.chance(0.15, "constant column"):
            X[:, -1] = rng.choice([0.0, 1.0, -3.7])
        if d > 1 and self.chance(0.15, "duplicate column"):
            X[:, -1] = X[:, 0]
        if n > 3 and self.chance(0.15, "duplicate rows"):
            X[n // 2 :] = X[: n - n // 2]
        if self.chance(0.02, "all rows equal"):
            X[:] = X[0]
        return X

    def _scaled(self, X: np.ndarray, gentle: bool) -> np.ndarray:
        """The scales, offsets and the dtype."""
        rng = self.rng
        small = 6 if gentle else 30
        if self.chance(0.25, "scaled"):
            X = X * 10.0 ** rng.uniform(-small, small)
        if self.chance(0.15, "scaled columns"):
            X = X * 10.0 ** rng.uniform(-small, small, size=X.shape[1])
        elif self.chance(0.15, "columns of a few decades"):
            X = X * 10.0 ** rng.uniform(-4, 4, size=X.shape[1])
        if self.chance(0.2, "offset"):
            columns = rng.random(size=X.shape[1]) < rng.choice([0.4, 1.0])
            X = X + np.where(columns, np.abs(X).max() * 10.0 ** rng.uniform(0, 12), 0.0)
        if self.chance(0.03, "Unix times"):
            X = X.copy()
            X[:, 0] = 1.7e9 + np.rint(1e4 * rng.normal(size=len(X)))
        if self.chance(0.02, "integers near 2^53"):
            X = 2.0**53 - rng.integers(0, 40, size=X.shape)
        if self.chance(0.02, "subnormal"):
            X = X * 1e-310 / max(np.abs(X).max(), 1e-300)
        single = self.chance(0.35, "float32")
        if single:
            with np.errstate(over="ignore"):
                X = X.astype(np.float32)
            X = np.where(np.isfinite(X), X, np.float32(3e38)).astype(np.float32)
        return np.ascontiguousarray(X)

    def _weights(self, n: int, y: np.ndarray, kind: str) -> np.ndarray | None:
        rng = self.rng
        if not self.chance(0.5, "weights"):
            return None
        # Pairs weigh the product of two weights.
        most = 150.0 if kind in ("ranking", "roc", "ordinal") else 300.0
        way = int(rng.integers(0, 6))
        if way == 0:
            weights = rng.choice([0.5, 1.0, 2.0, 3.7], size=n)
        elif way == 1:
            weights = np.full(n, 10.0 ** rng.uniform(-most, most))
            self.traits.append("weights scaled")
        elif way == 2:
            weights = 10.0 ** rng.uniform(-6, 6, size=n)
            self.traits.append("weights over 12 decades")
        elif way == 3:
            weights = 10.0 ** (rng.uniform(-1, 1, size=n) * rng.uniform(1, most))
            self.traits.append("weights over many decades")
        elif way == 4:
            weights = np.where(y == y[0], 1e6, 1.0)
            self.traits.append("1e6 : 1")
        else:
            weights = np.ones(n)
            weights[rng.integers(0, n)] = 10.0 ** rng.uniform(6, 16)
            self.traits.append("one heavy row")
        if n > 4 and self.chance(0.1, "rows without weight"):
            weights = weights.astype(float)
            weights[-1] = 0.0
            if kind == "joint" or kind == "ovr":
                y[-1] = y[0]
        return weights.astype(np.float64)

    def _kernel(self, X: np.ndarray) -> dict[str, Any]:
        rng = self.rng
        kernel = str(rng.choice(["rbf", "linear", "poly", "precomputed"], p=[0.5, 0.2, 0.2, 0.1]))
        params: dict[str, Any] = {"kernel": kernel}
        if kernel == "rbf" and rng.random() < 0.5:
            spread = float(np.abs(X.astype(float) - X[0]).max()) or 1.0
            if 1e-150 < spread < 1e150:
                params["gamma"] = float(10.0 ** rng.uniform(-3, 1) / spread**2)
        if kernel == "poly":
            params |= {"degree": int(rng.integers(1, 4)), "coef0": float(rng.choice([0.0, 1.0]))}
        if kernel == "precomputed":  # integers: the matrix is exactly positive semi-definite
            Z = rng.integers(-9, 10, size=(len(X), 3)).astype(float)
            params["gram"] = (Z @ Z.T) * 2.0 ** int(rng.integers(-40, 40))
        if rng.random() < 0.2:
            params["class_weight"] = {0: float(2.0 ** int(rng.integers(-20, 20)))}
        return params


def problem(seed: int, number: int, kind: str | None = None) -> Problem:
    return Maker(seed, number).make(kind)
