"""Kernel values for the exact solver: of some rows with all, fast; and scores in float64 for the certificate.

Values come from products of matrices by BLAS, tile by tile (core/kernel_values.hpp), where rows are dense or may be
made so, and where rounding errors allow it; else from `Points`, which also has sparse rows and given matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import cython_blas

from cutsvm._native import core
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.kernel_machines.context import Deadline
from cutsvm.kernel_machines.gram import EPS, Points, blocks, in_blocks, is_sparse

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
# SciPy exports its BLAS to compiled code; so we need none of our own.
GEMM = {FLOAT32: cython_blas.__pyx_capi__["sgemm"], FLOAT64: cython_blas.__pyx_capi__["dgemm"]}
Source = Any  # a KernelBlock of core, or Callable[[Ints], Array]


@dataclass(frozen=True)
class RowSettings:
    """Which values are computed how."""

    # Rows up to which kernel values are float64: their matrix is small, and then so are all rounding errors.
    float64_rows: int = 2048
    # In the worst case, of a value in float32 relative to the largest K(x, x): beyond, float64.
    max_error: float = 1e-3
    largest: float = 1e30  # of K(x, x) in float32
    min_density: float = 0.02  # of sparse rows that are made dense
    max_dense_bytes: int = 1 << 28  # of such rows
    max_features: float = 0.95  # share of the features up to which the others are left out
    block_rows: int = 512  # of scores, between two checks of the time
    block_values: int = 20_000_000


def sum_of_sums(values: Array, coef: Vector) -> Vector:
    """values @ coef, SUM_ROWS terms at a time: see core/row_cache.hpp."""
    out = np.zeros(len(values))
    for terms in blocks(len(coef), core.SUM_ROWS):
        out += values[:, terms] @ coef[terms]
    return out


class KernelRows:
    """The rows of `points`, whose kernel values a solver wants; dtype: of these values."""

    def __init__(self, points: Points, *, precise: bool = False, settings: RowSettings | None = None) -> None:
        self.points, self.settings = points, RowSettings() if settings is None else settings
        self.lengths: Vector = np.sqrt(np.maximum(0.0, points.diagonal()))  # sqrt(K(x, x))
        most = float(self.lengths.max(initial=0.0)) ** 2
        small = len(points) <= self.settings.float64_rows or most > self.settings.largest
        exact = precise or small or self._largest_error(np.float32) > self.settings.max_error * most
        self.dtype: Any = FLOAT64 if exact else FLOAT32

    def __len__(self) -> int:
        return len(self.points)

    @property
    def given(self) -> bool:
        """Whether the values are the caller's."""
        return self.points.given

    @property
    def linear(self) -> bool:
        """Whether f is linear in the rows."""
        return self.points.kernel.name == "linear" and not self.points.kernel.offset

    @property
    def rounding(self) -> float:
        """Of values in float64: see `Points.rounding`."""
        return self.points.rounding

    @property
    def width(self) -> int:
        """Numbers that a kernel value takes."""
        return 1 if self.points.given else int(self.points.X.shape[1])

    @cached_property
    def sizes(self) -> Vector:
        """By which errors of values grow: |x| for distances, else sqrt(K(x, x))."""
        if self.points.given or self.points.kernel.base != "distance":
            return self.lengths
        return np.sqrt(self.points.squares.astype(np.float64))

    def _factors(self, dtype: Any) -> tuple[float, float, float]:
        """A value of rows of sizes a and b is off by at most p + q a b + r (a^2 + b^2), in this precision."""
        points, unit = self.points, 0.5 * float(np.finfo(dtype).eps)
        if points.given:
            return 0.0, unit, 0.0
        d, gamma = self.width, points.kernel.gamma
        terms = min(d, core.FEATURES + d / core.FEATURES) + 4.0
        # 8 units of exp_negative, the products with gamma and an offset; squares are rounded sums in float64, and rows
        # may have been rounded, too.
        if points.kernel.name == "rbf":
            return (12.0 + points.kernel.offset) * unit, 2.0 * gamma * terms * unit, 12.0 * gamma * unit
        power = 1.0 if points.kernel.name == "linear" else 1.1 * points.kernel.degree
        return 0.0, (terms + 4.0) * power * unit, 0.0

    def _largest_error(self, dtype: Any) -> float:
        p, q, r = self._factors(dtype)
        return p + (q + 2.0 * r) * float(self.sizes.max(initial=0.0)) ** 2

    def errors(self, moved: tuple[float, float, float], sums: float) -> Vector:
        """Bounds of the errors of f at all rows, which is a sum of changes.

        moved: sums of |change| size^p, p = 0, 1, 2; sums: the relative error of adding up.
        """
        p, q, r = self._factors(self.dtype)
        a, most = self.sizes, float(self.lengths.max(initial=0.0))
        off: Vector = p * moved[0] + q * a * moved[1] + r * (a * a * moved[0] + moved[2])
        return off + (sums + self.rounding) * self.lengths * most * moved[0]

    @cached_property
    def dense(self) -> bool:
        """Whether the values come from dense blocks."""
        points, use = self.points, self.settings
        if points.given:
            return False
        if points.kernel.base == "distance":
            # The error of the expanded square may be too large even in float64: see Points._recompute.
            most = points.settings.max_error_float64
            if 2.0 * points.kernel.gamma * EPS * float(points.squares.max(initial=0.0)) > most:
                return False
        if not is_sparse(points.X):
            return True
        n, d = map(int, points.X.shape)
        return bool(points.X.nnz >= use.min_density * n * d and 8 * n * d <= use.max_dense_bytes)

    @cached_property
    def _columns(self) -> Ints | None:
        """The features that values depend on, if these are fewer: constant ones change no distance."""
        X = self.points.original
        if is_sparse(X) or not len(X):
            return None
        size = self.points.settings.pass_rows
        ends = np.empty((2, -(-len(X) // size), X.shape[1]), dtype=X.dtype)

        def fill(part: slice) -> None:
            X[part].min(axis=0, out=ends[0, part.start // size])
            X[part].max(axis=0, out=ends[1, part.start // size])

        self.points.each_block(fill)
        least, most = ends[0].min(axis=0), ends[1].max(axis=0)
        matter = np.flatnonzero(least < most if self.points.kernel.base == "distance" else (least != 0) | (most != 0))
        return matter if len(matter) <= self.settings.max_features * X.shape[1] else None

    def _block(self, rows: Ints | slice, dtype: Any) -> Any:
        """Rows as a dense block with the kernel."""
        points, kernel = self.points, self.points.kernel
        X = self._dense_rows(rows, dtype)
        squares = np.empty(len(X), dtype=dtype)

        def fill(part: slice) -> None:
            squares[part] = np.einsum("ij,ij->i", X[part], X[part], dtype=np.float64)

        in_blocks(fill, len(X), points.settings.pass_rows, points.threads)
        kind = core.KernelBlock64 if dtype == FLOAT64 else core.KernelBlock32
        own = (kernel.name, kernel.gamma, kernel.coef0, kernel.degree, kernel.offset)
        return kind(GEMM[dtype], *own, X, squares, points.threads)

    def _dense_rows(self, rows: Ints | slice, dtype: Any) -> Array:
        """Rows as the kernel sees them, without the features that do not matter."""
        points, columns = self.points, self._columns
        if is_sparse(points.X):
            return np.ascontiguousarray(points.X[rows].toarray(), dtype=dtype)
        ready = dtype == FLOAT32 or points.precise
        X, means = (points.X, None) if ready else (points.original, points.means)
        if means is None and columns is None and isinstance(rows, slice) and X.dtype == dtype and X.flags.c_contiguous:
            own: Array = X
            return own
        which = np.arange(len(X))[rows]
        out = np.empty((len(which), X.shape[1] if columns is None else len(columns)), dtype=dtype)

        def fill(part: slice) -> None:
            some = X[which[part]]
            if means is not None:
                some = np.subtract(some, means, dtype=np.float64)
            out[part] = some if columns is None else some[:, columns]

        in_blocks(fill, len(which), points.settings.pass_rows, points.threads)
        return out

    def source(self, rows: Ints | None = None) -> Source:
        """What computes the values of some rows with all, or with those of `rows`, by which they are numbered."""
        if self.dense:
            return self._block(slice(None) if rows is None else rows, self.dtype)
        columns = np.arange(len(self)) if rows is None else rows

        def values(which: Ints) -> Array:
            out = np.empty((len(which), len(columns)), dtype=self.dtype)
            self.points.values(columns[which], self.points, columns, out)
            return out

        return values

    def precise_block(self) -> Any:
        """All rows as a block that computes values in float64. requires: `dense`."""
        return self._block(slice(None), FLOAT64)

    def matrix(self) -> Array:
        """The values of all pairs of rows."""
        out = np.empty((len(self), len(self)), dtype=self.dtype)
        if self.dense:
            self._block(slice(None), self.dtype).matrix(out)
        else:
            self.points.matrix(out)
        return out

    def score_terms(self, support: int) -> int:
        """Additions, one after another, that a score of `scores` takes: a sum of sums over a block."""
        return min(support, core.SUM_ROWS + -(-support // core.SUM_ROWS))

    def scores(self, support: Ints, coef: Vector, rows: Ints, deadline: Deadline) -> Vector:
        """f of these rows in float64: the sum over the support of coef K."""
        out, use = np.zeros(len(rows)), self.settings
        if not len(support):
            return out
        if self.dense:
            self._block_scores(support, coef, rows, out, deadline)
            return out
        precise = self.points.precisely()
        for part in deadline.track("certificate", list(blocks(len(rows), use.block_rows))):
            values = np.empty((part.stop - part.start, len(support)))
            precise.values(rows[part], precise, support, values)
            out[part] = sum_of_sums(values, coef)
        return out

    def _block_scores(self, support: Ints, coef: Vector, rows: Ints, out: Vector, deadline: Deadline) -> None:
        """out = f of these rows, from dense blocks.

        Of the values of the support with itself one half is computed, if most of it is among the rows.
        """
        vectors, place = self._block(support, FLOAT64), np.full(len(self), -1)
        place[support] = np.arange(len(support))
        at, own = place[rows], np.zeros(len(support))
        among = at >= 0
        if 2 * len(np.unique(at[among])) <= len(support):
            among[:] = False
        others = rows[~among]
        fresh = np.zeros(len(others))

        def add_tiles(first: int, last: int) -> None:
            vectors.own_scores(coef, first, last, own)

        def compute(part: slice) -> None:
            vectors.scores(coef, self._block(others[part], FLOAT64), fresh[part])

        size = max(self.settings.block_rows, self.settings.block_values // len(support))
        steps = [partial(add_tiles, *ends) for ends in self._runs_of_tiles(len(support))] if among.any() else []
        for step in deadline.track(
            "certificate", steps + [partial(compute, part) for part in blocks(len(others), size)]
        ):
            step()
        out[among], out[~among] = own[at[among]], fresh

    def _runs_of_tiles(self, n: int) -> list[tuple[int, int]]:
        """0 .. number of tiles of n columns in runs with as many values, where tile k has values with k + 1 tiles."""
        tiles = np.arange(1, -(-n // core.TILE_COLUMNS) + 1)
        done = np.cumsum(tiles) * core.TILE_COLUMNS**2 // self.settings.block_values
        ends = [0, *(np.flatnonzero(np.diff(done)) + 1).tolist(), len(tiles)]
        return list(pairwise(ends))

    def extended_scores(self, support: Ints, coef: Vector, rows: Ints, deadline: Deadline) -> Array:
        """The same in extended precision, for few rows."""
        out, wide = np.zeros(len(rows), dtype=np.longdouble), coef.astype(np.longdouble)
        with np.errstate(over="ignore", invalid="ignore"):
            for part in deadline.track("certificate", list(blocks(len(rows), self.settings.block_rows))):
                out[part] = self.points.extended(rows[part], support) @ wide
        return out

    def more_precise(self) -> KernelRows | None:
        """The same with values in float64; None if they are that."""
        if self.dtype == FLOAT64:
            return None
        return KernelRows(self.points, precise=True, settings=self.settings)


class SomeRows(KernelRows):
    """Some of `all_rows`, with values in float64; they are copied only when values have to be computed."""

    def __init__(self, all_rows: KernelRows, rows: Ints) -> None:
        self.all_rows, self.rows = all_rows, rows
        self.settings, self.dtype, self.lengths = all_rows.settings, FLOAT64, all_rows.lengths[rows]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def given(self) -> bool:
        return self.all_rows.given

    @property
    def rounding(self) -> float:
        return self.all_rows.rounding

    @property
    def width(self) -> int:
        return self.all_rows.width

    @property
    def linear(self) -> bool:
        return self.all_rows.linear

    @cached_property
    def points(self) -> Points:  # type: ignore[override]
        return self.all_rows.points.take(self.rows)


class MatrixRows(SomeRows):
    """The same with values from a matrix of those of all rows."""

    def __init__(self, all_rows: KernelRows, matrix: Array, rows: Ints) -> None:
        super().__init__(all_rows, rows)
        self.values = matrix

    def source(self, rows: Ints | None = None) -> Source:
        columns = self.rows if rows is None else self.rows[rows]
        return lambda which: self.values[np.ix_(columns[which], columns)]

    def scores(self, support: Ints, coef: Vector, rows: Ints, deadline: Deadline) -> Vector:
        return sum_of_sums(self.values[np.ix_(self.rows[rows], self.rows[support])], coef)
