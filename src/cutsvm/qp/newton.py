"""Newton's equations of the interior-point method, with one row per plane or one per feature.

M dx + c db = r,  c'dx - box_curvature db = s    with  M = C A A' + diag(z/x) + E' diag(u/t) E

where E says which plane belongs to which shard, and box_curvature is that of the box |b_j| <= intercept_bound, or 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from cutsvm._utils.types import Array, Vector
from cutsvm.qp.sorted_planes import SortedPlanes


class Direction(NamedTuple):
    """A solution of Newton's equations."""

    dx: Vector
    sums: Vector  # of dx over each shard
    combined: Vector | None  # A'dx; None where w follows from x
    db: Vector


Newton = Callable[[Vector, Vector], Direction]  # the direction for right sides r, s


class Cholesky:
    """L with L L' = a symmetric positive definite matrix."""

    def __init__(self, factor: Array) -> None:
        self._factor = factor

    def solve(self, right: Vector) -> Vector:
        solution: Vector = lapack.dpotrs(self._factor, right, lower=1)[0]
        return solution

    def forward(self, right: Vector) -> Vector:
        """(1/L) right"""
        solution: Vector = lapack.dtrtrs(self._factor, right, lower=1)[0]
        return solution

    def backward(self, right: Vector) -> Vector:
        """(1/L') right"""
        solution: Vector = lapack.dtrtrs(self._factor, right, lower=1, trans=1)[0]
        return solution


def cholesky(matrix: Array) -> Cholesky | None:
    """The factor of a symmetric matrix, which is overwritten; None if it is not positive definite."""
    factor, failed = lapack.dpotrf(matrix.T, lower=1, overwrite_a=1, clean=0)
    return None if failed else Cholesky(factor)


def regularize_diagonal(matrix: Array, first: int, regularization: float) -> Vector:
    """Increases the diagonal from row `first` on by this fraction per row; returns what was added."""
    places = np.arange(first, len(matrix))
    diagonal: Vector = matrix[places, places]
    added: Vector = np.where(diagonal > 0.0, regularization * len(matrix) * diagonal, 1.0)
    matrix[places, places] += added
    return added


class ByPlanes:
    """M itself, one row per plane. w is held as x and -C G x, its products with the planes."""

    def __init__(self, planes: SortedPlanes, C: float, gram: Vector, regularization: float) -> None:
        self.planes, self.C, self.regularization = planes, C, regularization
        one_shard = len(planes.starts) == 1
        self.gram = gram if one_shard else gram[np.ix_(planes.order, planes.order)]
        self.w: tuple[Vector, Vector]

    def quadratic(self, x: Vector) -> float:
        """|C A'x|^2"""
        return self.C * self.C * float(x @ (self.gram @ x))

    def start(self, x: Vector) -> None:
        """w = -C A'x"""
        self.w = x, -self.C * (self.gram @ x)

    def move(self, x: Vector, step_length: float, combined: Vector | None) -> None:
        """w after a step that led to x."""
        self.start(x)

    def plane_values(self) -> Vector:
        """A w + o"""
        return self.w[1] + self.planes.o

    def penalty(self) -> float:
        """|w|^2 / 2"""
        x, products = self.w
        return -0.5 * self.C * float(x @ products)

    def coefficients(self, w: tuple[Vector, Vector]) -> Vector:
        """w as a vector of features."""
        p = self.planes
        coefficients: Vector = -self.C * (p.in_given_order(w[0]) @ p.slopes[:, : p.features])
        return coefficients

    def exact_quadratic(self, x: Vector, w: tuple[Vector, Vector], coefficients: Vector) -> float:
        """|C A'x|^2 to the last digit, as the bound needs it."""
        combined = coefficients if x is w[0] else self.coefficients((x, x))
        return float(combined @ combined)

    def newton(self, x: Vector, t: Vector, z: Vector, u: Vector, box_curvature: Vector) -> Newton | None:
        """Newton's equations, factorised; None where rounding makes their matrix indefinite."""
        p = self.planes
        M = self.C * self.gram
        M[np.diag_indices_from(M)] += z / x
        for start, size, ratio in zip(p.starts, p.sizes, u / t, strict=True):
            M[start : start + size, start : start + size] += ratio
        factor = cholesky(M)
        if factor is None:
            return None
        if p.boxed:
            return self._boxed(factor, box_curvature)
        f = p.c.shape[1]
        M_inverse_c = factor.solve(p.c) if f else p.c

        def newton(r: Vector, s: Vector) -> Direction:
            dx, db = factor.solve(r), s
            if f:
                db = np.asarray(np.linalg.solve(p.c.T @ M_inverse_c, p.c.T @ dx - s), dtype=np.float64)
                dx = dx - M_inverse_c @ db
            return Direction(dx, p.per_shard(dx), None, db)

        return newton

    def _boxed(self, factor: Cholesky, box_curvature: Vector) -> Newton | None:
        """With M = L L' and V = (1/L) c, b's equations are V'V + box_curvature, positive however M is conditioned."""
        p = self.planes
        V = factor.forward(p.c)
        schur = V.T @ V
        schur[np.diag_indices_from(schur)] += box_curvature
        added = regularize_diagonal(schur, 0, self.regularization)
        inner = cholesky(schur)
        if inner is None:
            return None

        def newton(r: Vector, s: Vector) -> Direction:
            half = factor.forward(r)
            db = inner.solve(V.T @ half - s)
            db = db + inner.solve(added * db)  # one step of iterative refinement, for the matrix without `added`
            dx = factor.backward(half - V @ db)
            return Direction(dx, p.per_shard(dx), None, db)

        return newton


class ByFeatures:
    """M = K + B B' with B = sqrt(C) A, inverted by Woodbury's formula: one row per feature.

    K inverts shard by shard: with k = x/z, its sum s over the shard and r = t/u,
    (1/K) v = k (v - mean + mean r/(r + s)), mean = sum of k v / s. Written with distances from the mean, nothing large
    is subtracted from anything large. w is updated by its own step, because x has fewer correct digits close to the
    solution.
    """

    def __init__(self, planes: SortedPlanes, C: float, regularization: float) -> None:
        self.planes, self.C, self.root, self.regularization = planes, C, float(np.sqrt(C)), regularization
        self.A = planes.slopes[planes.order, : planes.features]
        self.B = np.hstack([self.root * self.A, planes.c])
        self.w: Vector

    def quadratic(self, x: Vector) -> float:
        combined = self.C * (x @ self.A)
        return float(combined @ combined)

    def start(self, x: Vector) -> None:
        self.w = -self.C * (x @ self.A)

    def move(self, x: Vector, step_length: float, combined: Vector | None) -> None:
        assert combined is not None
        self.w = self.w - step_length * self.C * combined

    def plane_values(self) -> Vector:
        return self.A @ self.w + self.planes.o

    def penalty(self) -> float:
        return 0.5 * float(self.w @ self.w)

    def coefficients(self, w: Vector) -> Vector:
        return w

    def exact_quadratic(self, x: Vector, w: Vector, coefficients: Vector) -> float:
        return self.quadratic(x)

    def newton(self, x: Vector, t: Vector, z: Vector, u: Vector, box_curvature: Vector) -> Newton | None:
        p, B, d = self.planes, self.B, self.planes.features
        k = x / z
        total = p.per_shard(k)
        remainder = t / u / (t / u + total)  # r/(r + s)

        def solve_K(v: Vector) -> tuple[Vector, Vector]:
            """(1/K) v, and its sums over the shards without cancellation."""
            mean = p.per_shard(k * v) / total
            sums = mean * remainder * total
            out = k * (v - mean[p.shard])
            return out + k * ((sums - p.per_shard(out)) / total)[p.shard], sums

        factor, added = self._factorise(k, total, remainder, box_curvature)
        if factor is None:
            return None

        def newton(r: Vector, s: Vector) -> Direction:
            right = B.T @ solve_K(r)[0]
            right[d:] -= s
            y = factor.solve(right)
            if p.boxed:  # one step of iterative refinement, for the matrix without `added`
                y = y + factor.solve(np.concatenate([np.zeros(d), added * y[d:]]))
            dx, sums = solve_K(r - B @ y)
            return Direction(dx, sums, y[:d] / self.root, y[d:])

        return newton

    def _factorise(
        self, k: Vector, total: Vector, remainder: Vector, box_curvature: Vector
    ) -> tuple[Cholesky | None, Vector]:
        """1 + B' (1/K) B (for b without the 1), as a sum of squares: distances from the shards' means, and means."""
        p, B, d = self.planes, self.B, self.planes.features
        means: Array = p.per_shard(k[:, None] * B) / total[:, None]
        centered = B - means[p.shard]
        centered *= np.sqrt(k)[:, None]
        means *= np.sqrt(remainder * total)[:, None]
        H = centered.T @ centered + means.T @ means
        H[np.arange(d), np.arange(d)] += 1.0
        added = box_curvature
        if p.boxed:
            H[np.arange(d, len(H)), np.arange(d, len(H))] += box_curvature
            added = regularize_diagonal(H, d, self.regularization)
        return cholesky(H), added


Form = ByPlanes | ByFeatures  # a representation of w, with its way to solve Newton's equations
