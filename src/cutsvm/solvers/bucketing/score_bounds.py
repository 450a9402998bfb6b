"""How far a score can move when (w, b) does: |score_i(w, b) - score_i(w', b')| <= move((w, b) - (w', b')) length_i.

Plain, by Cauchy and Schwarz:

    move(w, b) = |(w, b)|,    length_i = |(x_i, 1)|    (without the 1 if there is no b)

Whitened: the same after a change of coordinates that leaves all scores as they are. With the mean row m, the covariance
S = L L' of the rows and any s > 0,  w.x_i + b = (L'w).((1/L) (x_i - m)) + (w.m + b), so

    move(w, b) = |(L'w, (w.m + b) / s)|,    length_i = |((1/L) (x_i - m), s)|

A move along directions in which the rows hardly differ, and those are the directions in which a solver converges
slowly, now counts for little. It takes n d^2 operations once. `docs/solvers.md` has measurements.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from cutsvm._utils.timing import timed
from cutsvm._utils.types import Ints, Vector
from cutsvm.matrix.protocol import Rows, RowsOnDisk, cut_blocks
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Intercept


class Plain:
    """Moves by Cauchy and Schwarz."""

    def __init__(self, oracle: Oracle, rows: Rows) -> None:
        self._rows, self._one = rows, float(oracle.intercept is not Intercept.NONE)
        if oracle.supports.streaming:
            self._squares = cast("RowsOnDisk", rows).row_squares
        else:
            with timed("sift"):
                self._squares = rows.vector(rows.n)
                rows.by_row().squares(self._squares)
                oracle.count_rows()

    def lengths_of(self, rows: slice | Ints) -> Vector:
        """The lengths of some rows."""
        lengths: Vector = np.sqrt(self._squares[rows] + self._one)
        return lengths

    @property
    def lengths(self) -> Vector:
        return self.lengths_of(slice(0, self._rows.n))

    def move(self, change: Vector) -> float:
        with np.errstate(over="ignore"):  # an infinite bound is one
            return float(np.linalg.norm(change))


class Whitened:
    """The same in coordinates in which the rows spread alike in all directions.

    widest: with more features than this, n d^2 operations are too many. ridge: the diagonal of S is raised by this
    share of its largest entry, since features may depend on each other. share: s^2 is this share of the number of
    features, which is the mean of |(1/L) (x_i - m)|^2.
    """

    widest, ridge, share = 500, 1e-6, 0.1

    @timed("sift")
    def __init__(self, oracle: Oracle, rows: Rows) -> None:
        n, self.d = rows.n, rows.d
        total, products = np.zeros(self.d), np.zeros((self.d, self.d))
        for block in _blocks(rows, np.eye(self.d), np.zeros(self.d)):
            total += block.sum(axis=0)
            products += block.T @ block
        self.mean = total / n
        S = products / n - np.outer(self.mean, self.mean)
        S[np.diag_indices_from(S)] += self.ridge * max(float(S.diagonal().max()), np.finfo(float).tiny)
        self.L: Vector = cholesky(S, lower=True)
        inverse: Vector = solve_triangular(self.L, np.eye(self.d), lower=True)
        self.s = float(np.sqrt(self.share * self.d))
        changed = _blocks(rows, np.ascontiguousarray(inverse), -inverse @ self.mean)
        self.lengths: Vector = rows.vector(n)
        at = 0
        for block in changed:
            self.lengths[at : at + len(block)] = np.sqrt((block * block).sum(axis=1) + self.s**2)
            at += len(block)
        oracle.count_rows()
        oracle.count_rows()

    def lengths_of(self, rows: slice | Ints) -> Vector:
        part: Vector = self.lengths[rows]
        return part

    def move(self, change: Vector) -> float:
        w = change[: self.d]
        shift = float(w @ self.mean) + (float(change[self.d]) if len(change) > self.d else 0.0)
        with np.errstate(over="ignore"):
            return float(np.hypot(np.linalg.norm(w @ self.L), shift / self.s))


def _blocks(rows: Rows, W: Vector, b: Vector, most: int = 1 << 20) -> Iterator[Vector]:
    """X W' + b, some rows at a time: about `most` numbers, since squares of them are made, too."""
    for _, block in cut_blocks(rows.blocks(), max(1, min(1 << 13, most // len(W)))):
        out = np.empty((block.n, len(W)))
        block.scores_many(W, b, out)
        yield out
