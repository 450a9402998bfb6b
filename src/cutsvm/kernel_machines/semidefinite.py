"""Checks that a precomputed matrix is a kernel's: symmetric and positive semi-definite.

The lower bound needs |w|^2 >= 0 for every w. The error for another matrix names the evidence: a diagonal entry, two
rows, or a vector v with v'Xv < 0. F then has no lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from scipy import linalg

from cutsvm._utils.types import Array, Vector
from cutsvm.kernel_machines.gram import EPS, blocks, is_sparse

EPS32 = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class SpectrumSettings:
    """Tolerances of the check of a kernel matrix, and how its smallest eigenvalue is bounded."""

    tolerance: float = 1e-5  # of sqrt(K_ii K_jj): values need not be computed in float64
    min_diagonal: float = 1e-10  # of the largest diagonal entry: below, an entry counts as 0
    max_cholesky_rows: int = 2000  # for more rows, Lanczos' method
    lanczos_steps: int = 30


class IndefiniteKernelError(ValueError):
    """The matrix is not symmetric or not positive semi-definite; the text says why."""


def check_kernel_matrix(X: Any, settings: SpectrumSettings | None = None, name: str = "X") -> float:
    """A bound rho such that X is a kernel matrix to rho sqrt(X_ii X_jj) in each quadratic form.

    Raises IndefiniteKernelError if X, which the text calls `name`, is not symmetric and positive semi-definite.
    """
    settings = SpectrumSettings() if settings is None else settings
    K = X.toarray() if is_sparse(X) else np.asarray(X)
    diagonal = np.diagonal(K).astype(np.float64)
    top = float(np.max(np.abs(diagonal), initial=0.0))
    lowest = int(np.argmin(diagonal))
    if diagonal[lowest] < -settings.min_diagonal * top or (top == 0.0 and K.any()):
        if top == 0.0:
            lowest, other = (int(k) for k in np.argwhere(K)[0])
            _refuse(_minor(K, lowest, other, name))
        _refuse(f"{name}[{lowest}, {lowest}] = {diagonal[lowest]:.6g} is below 0")
    if top == 0.0:
        return EPS
    scale = np.sqrt(np.maximum(diagonal, settings.min_diagonal * top))
    asymmetry = _check_pairs(K, scale, settings.tolerance, name)
    own = EPS if K.dtype == np.float64 else EPS32
    return own + asymmetry + _check_spectrum(K, scale, settings, name)


def _check_pairs(K: Array, scale: Vector, tolerance: float, name: str) -> float:
    """The largest asymmetry, relative to the scales of the two rows; checks every minor of two rows."""
    worst = 0.0
    for rows in blocks(len(K), 512):
        limits = scale[rows, None] * scale
        away = np.abs(K[rows] - K[:, rows].T) / limits
        i, j = np.unravel_index(int(np.argmax(away)), away.shape)
        if away[i, j] > tolerance:
            a, b = rows.start + int(i), int(j)
            raise IndefiniteKernelError(
                f"the kernel matrix is not symmetric: {name}[{a}, {b}] = {K[a, b]:.6g}, "
                f"{name}[{b}, {a}] = {K[b, a]:.6g}"
            )
        worst = max(worst, float(away[i, j]))
        size = np.abs(K[rows]) / limits
        i, j = np.unravel_index(int(np.argmax(size)), size.shape)
        if size[i, j] > 1.0 + tolerance:
            _refuse(_minor(K, rows.start + int(i), int(j), name))
    return worst


def _minor(K: Array, i: int, j: int, name: str) -> str:
    return (
        f"{name}[{i}, {j}] = {K[i, j]:.6g} with {name}[{i}, {i}] = {K[i, i]:.6g} and {name}[{j}, {j}] = "
        f"{K[j, j]:.6g}, and no kernel has |{name}[i, j]| > sqrt({name}[i, i] {name}[j, j])"
    )


def _check_spectrum(K: Array, scale: Vector, settings: SpectrumSettings, name: str) -> float:
    """How far the smallest eigenvalue, of K scaled to a diagonal of 1, may lie below 0."""
    n = len(K)
    rounding, coarse = 4.0 * n * EPS, 4.0 * float(np.sqrt(n)) * EPS32
    if n > settings.max_cholesky_rows:
        lowest, vector = _lanczos(K, scale, settings.lanczos_steps)
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
    _refuse(f"v'{name}v = {form:.3g} for a vector v whose largest entries are those of the rows {largest}")


def _has_factor(K: Array, shift: float) -> bool:
    """Whether K + shift I has a Cholesky factor."""
    shifted = K.astype(np.float64)
    shifted[np.diag_indices(len(K))] += shift
    try:
        linalg.cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return False
    return True


def _lanczos(K: Array, scale: Vector, steps: int) -> tuple[float, Vector]:
    """A unit vector with a small quadratic form of K scaled to a diagonal of 1, and that form."""
    q = np.random.default_rng(0).standard_normal(len(K))
    q /= np.linalg.norm(q)
    basis: list[Vector] = []
    a: list[float] = []
    b: list[float] = []
    for _ in range(steps):
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
