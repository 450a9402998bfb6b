"""Whether a matrix of kernel values is one: symmetric and positive semi-definite.

The proof of an answer needs |w|^2 >= 0 for every w. Where a given matrix does not have that, the evidence is named: a
diagonal entry, two rows, or a vector with a negative quadratic form. There is no best objective then: it has no bound.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from scipy import linalg

from cutsvm._utils.types import Array, Vector
from cutsvm.kernel_machines.gram import EPS, ROWS, blocks, is_sparse

__all__ = ["IndefiniteKernelError", "check_kernel_matrix"]

TOLERANCE = 1e-5  # of sqrt(K_ii K_jj): values need not be computed in float64
TINY = 1e-10  # of the largest diagonal entry: what is below is taken for 0
FACTORED = 2000  # rows up to which there is time for a Cholesky factor
STEPS = 30  # of Lanczos' method, beyond
EPS32 = float(np.finfo(np.float32).eps)


class IndefiniteKernelError(ValueError):
    """A matrix that is no kernel matrix; the text says why."""


def check_kernel_matrix(X: Any) -> float:
    """A bound rho such that X is a kernel matrix to rho sqrt(X_ii X_jj) in each quadratic form.

    Raises IndefiniteKernelError if it is none.
    """
    K = X.toarray() if is_sparse(X) else np.asarray(X)
    diagonal = np.diagonal(K).astype(np.float64)
    top = float(np.max(np.abs(diagonal), initial=0.0))
    lowest = int(np.argmin(diagonal))
    if diagonal[lowest] < -TINY * top or (top == 0.0 and K.any()):
        if top == 0.0:
            lowest, other = (int(k) for k in np.argwhere(K)[0])
            _refuse(_minor(K, lowest, other))
        _refuse(f"X[{lowest}, {lowest}] = {diagonal[lowest]:.6g} is below 0")
    if top == 0.0:
        return EPS
    scale = np.sqrt(np.maximum(diagonal, TINY * top))
    asymmetry = _check_pairs(K, scale)
    own = EPS if K.dtype == np.float64 else EPS32
    return own + asymmetry + _check_spectrum(K, scale)


def _check_pairs(K: Array, scale: Vector) -> float:
    """The largest asymmetry, relative to the scales of the two rows; every minor of two rows is looked at."""
    worst = 0.0
    for rows in blocks(len(K), ROWS):
        limits = scale[rows, None] * scale
        away = np.abs(K[rows] - K[:, rows].T) / limits
        i, j = np.unravel_index(int(np.argmax(away)), away.shape)
        if away[i, j] > TOLERANCE:
            a, b = rows.start + int(i), int(j)
            raise IndefiniteKernelError(
                f"the kernel matrix is not symmetric: X[{a}, {b}] = {K[a, b]:.6g}, X[{b}, {a}] = {K[b, a]:.6g}"
            )
        worst = max(worst, float(away[i, j]))
        size = np.abs(K[rows]) / limits
        i, j = np.unravel_index(int(np.argmax(size)), size.shape)
        if size[i, j] > 1.0 + TOLERANCE:
            _refuse(_minor(K, rows.start + int(i), int(j)))
    return worst


def _minor(K: Array, i: int, j: int) -> str:
    return (
        f"X[{i}, {j}] = {K[i, j]:.6g} with X[{i}, {i}] = {K[i, i]:.6g} and X[{j}, {j}] = {K[j, j]:.6g}, "
        "and no kernel has |X[i, j]| > sqrt(X[i, i] X[j, j])"
    )


def _check_spectrum(K: Array, scale: Vector) -> float:
    """How far the smallest eigenvalue, of K scaled to a diagonal of 1, may lie below 0."""
    n = len(K)
    rounding, coarse = 4.0 * n * EPS, 4.0 * float(np.sqrt(n)) * EPS32
    if n > FACTORED:
        lowest, vector = _lanczos(K, scale)
    else:
        scaled = K / scale[:, None] / scale
        scaled = 0.5 * (scaled + scaled.T)
        if _has_factor(scaled, rounding):
            return rounding
        if _has_factor(scaled, coarse):
            return coarse
        values, vectors = linalg.eigh(scaled, subset_by_index=[0, 0])
        lowest, vector = float(values[0]), vectors[:, 0]
    if lowest >= -coarse:
        return coarse
    v = vector / scale
    v /= np.abs(v).max()
    form = float(v @ (K @ v))
    largest = ", ".join(map(str, np.sort(np.argsort(-np.abs(v))[:4]).tolist()))
    _refuse(f"v'Xv = {form:.3g} for a vector v whose largest entries are those of the rows {largest}")


def _has_factor(K: Array, shift: float) -> bool:
    """Whether K + shift I has a Cholesky factor."""
    shifted = K.astype(np.float64)
    shifted[np.diag_indices(len(K))] += shift
    try:
        linalg.cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return False
    return True


def _lanczos(K: Array, scale: Vector) -> tuple[float, Vector]:
    """A unit vector with a small quadratic form of K scaled to a diagonal of 1, and that form."""
    q = np.random.default_rng(0).standard_normal(len(K))
    q /= np.linalg.norm(q)
    basis: list[Vector] = []
    a: list[float] = []
    b: list[float] = []
    for _ in range(STEPS):
        basis.append(q)
        image = (K @ (q / scale).astype(K.dtype, copy=False)).astype(np.float64) / scale
        a.append(float(q @ image))
        for _ in range(2):  # twice: rounding
            for known in basis:
                image -= (known @ image) * known
        b.append(float(np.linalg.norm(image)))
        if b[-1] < 1e-10:
            break
        q = image / b[-1]
    values, vectors = linalg.eigh_tridiagonal(a, b[: len(a) - 1])
    vector: Vector = np.column_stack(basis) @ vectors[:, 0]
    return float(values[0]), vector


def _refuse(why: str) -> NoReturn:
    raise IndefiniteKernelError(f"the kernel matrix is not positive semi-definite: {why}")
