"""Kernel values, block by block.

A kernel is a function of dot products or of squared distances, its `base`. That base does not depend on the kernel's
parameters, so one matrix of it serves them all:

    linear   x.z                                rbf      exp(-gamma |x - z|^2)
    poly     (gamma x.z + coef0)^degree         sigmoid  tanh(gamma x.z + coef0)
    precomputed: the caller's values

and, for a regularised intercept, a constant `offset` more.

Blocks have fixed sizes and each is the work of one thread with a BLAS of one thread, so that the values are the same
for any number of threads.

Squared distances are |x|^2 + |z|^2 - 2 x.z, a product of matrices with an error of eps (|x|^2 + |z|^2). Where that
error changes the kernel's value they are recomputed from the differences of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy import sparse

from cutsvm._native import matrix_of
from cutsvm._utils.threads import ThreadPool
from cutsvm._utils.types import Array, Ints, Vector

KERNELS = ("rbf", "poly", "linear", "sigmoid", "precomputed")
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class GramSettings:
    """Sizes of the blocks of kernel values, and when squared distances are recomputed from differences of rows."""

    block_rows: int = 512
    block_columns: int = 2048
    pass_rows: int = 2048  # of a pass over X, by one thread
    # The largest error of gamma |x - z|^2 in the expanded square; relative to |x - z|^2 where gamma is not known yet.
    max_error_float64: float = 1e-11
    max_error_float32: float = 1e-4
    max_base_error: float = 1e-7
    largest_square: float = 1e30  # |x|^2 up to which rows are float32
    negligible: float = 50.0  # from this gamma |x - z|^2 on the kernel's value, below 1e-21, does not matter

    def max_error(self, dtype: Any) -> float:
        return self.max_error_float64 if dtype == np.float64 else self.max_error_float32


@dataclass(frozen=True)
class Kernel:
    """A kernel and its parameters."""

    name: str = "rbf"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    offset: float = 0.0

    @property
    def base(self) -> Literal["distance", "dot"]:
        return "distance" if self.name == "rbf" else "dot"

    def of_base(self, base: Array, out: Array) -> None:
        """The kernel's values from its base; `out` may be `base` itself."""
        if self.name == "rbf":
            np.multiply(base, -self.gamma, out=out, casting="same_kind")
            np.exp(out, out=out)
        elif self.name == "poly":
            np.multiply(base, self.gamma, out=out, casting="same_kind")
            out += self.coef0
            once = out.copy()
            for _ in range(self.degree - 1):
                out *= once
        elif self.name == "sigmoid":
            np.multiply(base, self.gamma, out=out, casting="same_kind")
            out += self.coef0
            np.tanh(out, out=out)
        elif out is not base:
            np.copyto(out, base, casting="same_kind")
        if self.offset:
            out += self.offset


# Wraps a loop over blocks: logs its progress, and raises OutOfTimeError if there is no time for all of them.
Track = Callable[[Iterable[slice]], Iterable[slice]]


class Points:
    """Rows of X as a kernel sees them.

    precise: kernel values are computed in float64, else dense ones in float32. For distances the features' means are
    subtracted from dense X first: that changes no distance, and less is lost in |x|^2 + |z|^2 - 2 x.z.
    given_rounding: for precomputed values, how far they may be from those of a kernel, as in `rounding`.
    """

    given_rounding = EPS

    def __init__(
        self,
        X: Any,
        kernel: Kernel,
        threads: int,
        *,
        precise: bool = True,
        means: Vector | None = None,
        settings: GramSettings | None = None,
    ) -> None:
        self.kernel, self.threads, self.precise, self.means = kernel, threads, precise, means
        self.settings = GramSettings() if settings is None else settings
        self.given = kernel.name == "precomputed"
        self.original = X
        if self.given:
            self.X: Any = X.toarray() if is_sparse(X) else np.asarray(X)
            return
        self._read(X, np.float64 if precise or is_sparse(X) else np.float32)
        if self.X.dtype == np.float32 and not self.squares.max(initial=0.0) <= self.settings.largest_square:
            self.precise = True
            self._read(X, np.float64)

    def _read(self, X: Any, dtype: Any) -> None:
        """The rows less their means, for distances, and their squares."""
        with np.errstate(over="ignore"):  # then they are read again in float64
            if self.kernel.base == "distance" and not is_sparse(X):
                own = self._mean_row(X) if self.means is None else self.means
                self.means, self.X = own, np.empty(X.shape, dtype)
                # The difference is in float64, whatever it is stored in.
                self.each_block(lambda rows: np.subtract(X[rows], own, out=self.X[rows], casting="same_kind"))
            else:
                self.X = X.astype(dtype, copy=False)
            self.squares = self._squares()

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def each_block(self, work: Callable[[slice], Any]) -> None:
        """A pass over the rows: work(rows) for each block of them, by several threads."""
        in_blocks(work, int(self.original.shape[0]), self.settings.pass_rows, self.threads)

    def _mean_row(self, X: Array) -> Vector:
        """The features' means: sums over fixed blocks of rows, so that threads do not change a bit."""
        n, size = len(X), self.settings.pass_rows
        sums = np.zeros((-(-n // size), X.shape[1]))
        self.each_block(lambda rows: X[rows].sum(axis=0, dtype=np.float64, out=sums[rows.start // size]))
        means: Vector = sums.sum(axis=0) / n
        return means

    def _squares(self) -> Vector:
        """|x|^2 of each row."""
        X = self.X
        if is_sparse(X):
            return np.asarray(X.multiply(X).sum(axis=1)).ravel().astype(X.dtype)
        squares: Vector = np.empty(len(X), X.dtype)
        self.each_block(lambda rows: np.einsum("ij,ij->i", X[rows], X[rows], out=squares[rows]))
        return squares

    def precisely(self) -> Points:
        """The same rows, for kernel values in float64."""
        if self.given or self.precise:
            return self
        return Points(self.original, self.kernel, self.threads, means=self.means, settings=self.settings)

    @property
    def rounding(self) -> float:
        """A bound rho of rounding errors: a value in float64 is off by at most rho sqrt(K(x, x) K(z, z))."""
        if self.given:
            return self.given_rounding
        terms = int(np.diff(self.X.indptr).max(initial=0)) if is_sparse(self.X) else int(self.X.shape[1])
        if self.kernel.name == "rbf":
            # A change of gamma |x - z|^2 by e changes the value by at most e.
            expanded = 2.0 * self.kernel.gamma * EPS * float(self.squares.max(initial=0.0))
            # The offset adds one rounding, of a value that grows with it.
            return (terms + 9) * (min(expanded, self.settings.max_error_float64) + EPS)
        # coef0 >= 0: |gamma x.z| + coef0 <= sqrt((gamma |x|^2 + coef0) (gamma |z|^2 + coef0))
        return (terms + 7) * EPS * (1 if self.kernel.name == "linear" else 1.1 * self.kernel.degree)

    def extended(self, rows: Ints | slice, columns: Ints) -> Array:
        """Values of some rows with others in extended precision, from the rows as they were given; for few of them."""
        if self.given:
            some: Array = self.X[rows][:, columns].astype(np.longdouble) + self.kernel.offset
            return some
        X, Z = (_dense(self.original[which]).astype(np.longdouble) for which in (rows, columns))
        distances = self.kernel.base == "distance"
        values = np.array([((x - Z) ** 2).sum(axis=1) if distances else Z @ x for x in X]).reshape(len(X), len(Z))
        self.kernel.of_base(values, values)
        return values

    def diagonal(self) -> Vector:
        """K(x, x) of all rows, in float64."""
        if self.given:
            return np.diagonal(self.X).astype(np.float64) + self.kernel.offset
        if self.kernel.name == "rbf":
            return np.full(len(self), 1.0 + self.kernel.offset)
        values: Vector = self.squares.astype(np.float64)
        self.kernel.of_base(values, values)
        return values

    def like(self, X: Any) -> Points:
        """Other rows with the same kernel, precision and means."""
        return Points(X, self.kernel, self.threads, precise=self.precise, means=self.means, settings=self.settings)

    def take(self, rows: Ints) -> Points:
        """Some rows, in this order."""
        some = copy(self)
        some.__dict__.pop("exact", None)
        if self.given:
            some.X = self.X[np.ix_(rows, rows)]
        else:
            some.X, some.squares = self.X[rows], self.squares[rows]
            some.original = self.original[rows]
        return some

    def values(
        self, rows: Ints | slice, others: Points, columns: Ints | slice, out: Array, *, base: bool = False
    ) -> None:
        """out = kernel values of these rows with those columns of `others`, or only the base of these values."""
        mine = self.X[rows]

        def fill(block: slice) -> None:
            theirs = _pick(columns, block)
            if self.given:
                out[:, block] = mine[:, theirs]
                if self.kernel.offset and not base:
                    out[:, block] += self.kernel.offset
                return
            values = mine @ others.X[theirs].T
            values = values.toarray() if is_sparse(values) else values
            if self.kernel.base == "distance":
                _distances(values, self.squares[rows], others.squares[theirs])
                self._recompute(values, rows, others, theirs, base=base)
            with np.errstate(over="ignore"):  # an overflow makes the objective infinite, which is an error
                if not base:
                    self.kernel.of_base(values, values)
                out[:, block] = values

        in_blocks(fill, out.shape[1], self.settings.block_columns, self.threads)

    def _recompute(self, values: Array, rows: Ints | slice, others: Points, columns: Any, *, base: bool) -> None:
        """Recomputes distances with a large error in the expanded square from the differences of the rows."""
        left, right = self.squares[rows], others.squares[columns]
        eps = float(np.finfo(values.dtype).eps)
        if base:
            lost = eps * (left[:, None] + right) > self.settings.max_base_error * values
        else:
            gamma, most = self.kernel.gamma, self.settings.max_error(values.dtype)
            if gamma * eps * (left.max(initial=0.0) + right.max(initial=0.0)) <= most:
                return
            error = gamma * eps * (left[:, None] + right)
            lost = (error > most) & (gamma * values - (self.X.shape[1] + 8) * error < self.settings.negligible)
        i, j = np.nonzero(lost)
        if len(i):
            found = np.empty(len(i))
            own, theirs = _places(rows)[i], _places(columns)[j]
            matrix_of(self.exact).pair_distances(own, matrix_of(others.exact), theirs, found)
            values[i, j] = found

    @cached_property
    def exact(self) -> Any:
        """The rows as they were given, in float64: row-major, or CSR with rising columns."""
        if not is_sparse(self.original):
            return np.ascontiguousarray(self.original, dtype=np.float64)
        rows = self.original.astype(np.float64)
        rows.sum_duplicates()
        return rows

    def matrix(self, out: Array, *, base: bool = False, track: Track | None = None) -> None:
        """out = the values for all pairs of rows; track: sees the blocks of rows, and may end the work."""
        steps: Iterable[slice] = list(blocks(len(self), self.settings.block_rows))
        for rows in steps if track is None else track(steps):
            rest = slice(rows.start if not self.given else 0, len(self))
            self.values(rows, self, rest, out[rows, rest], base=base)
            # Row by row, so that pages of memory are used one after another. Given values need not be symmetric.
            if not self.given:
                out[rows, : rows.start] = out[: rows.start, rows].T
        if self.kernel.base == "distance":  # the distance of a row to itself is 0 up to rounding
            np.fill_diagonal(out, 0.0 if base else 1.0 + self.kernel.offset)


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix or array."""
    return bool(sparse.issparse(X))


def with_short_indices(X: Any) -> Any:
    """X with indices of 32 bits, if it is a CSR matrix and they fit: not every compiled function takes longer ones."""
    if not is_sparse(X) or max(int(X.nnz), *map(int, X.shape)) > np.iinfo(np.int32).max:
        return X
    return type(X)((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)


def sparse_parts(X: Any) -> dict[str, Any]:
    """A CSR matrix or array as plain arrays."""
    return {
        "data": X.data,
        "indices": X.indices,
        "indptr": X.indptr,
        "shape": list(map(int, X.shape)),
        "array": isinstance(X, sparse.sparray),
    }


def from_sparse_parts(parts: dict[str, Any]) -> Any:
    """The CSR matrix or array that `sparse_parts` took apart."""
    kind = sparse.csr_array if parts["array"] else sparse.csr_matrix
    return kind((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"]))


def alike(X: Any, Z: Any) -> tuple[Any, Any]:
    """X and Z unchanged if both are dense or both CSR; else both as CSR."""
    if is_sparse(X) == is_sparse(Z):
        return X, Z
    return (X, sparse.csr_array(Z)) if is_sparse(X) else (sparse.csr_array(X), Z)


def with_constant(X: Any, offset: float) -> Any:
    """X with a column of sqrt(offset) more, so that products of rows grow by the offset; X itself if that is 0."""
    if not offset:
        return X
    column = np.full((int(X.shape[0]), 1), np.sqrt(offset))
    return sparse.hstack([X, sparse.csr_array(column)]).tocsr() if is_sparse(X) else np.hstack([X, column])


def identity(n: int) -> Array:
    """0, 1, .., n - 1, as kernels take places."""
    return np.arange(n, dtype=np.int32)


def in_blocks(work: Callable[[slice], Any], size: int, block: int, threads: int) -> None:
    """work(slice) for each block of `size`, by several threads."""
    if threads == 1 or size <= block:
        for one in blocks(size, block):
            work(one)
        return
    with ThreadPool(threads) as pool:
        for _ in pool.map(work, blocks(size, block)):
            pass


def blocks(size: int, block: int) -> Iterator[slice]:
    """0 .. size in runs of `block`."""
    return (slice(start, min(size, start + block)) for start in range(0, size, block))


def _pick(columns: Ints | slice, block: slice) -> Any:
    if isinstance(columns, slice):
        first = columns.start or 0
        return slice(first + block.start, first + block.stop)
    return columns[block]


def _dense(X: Any) -> Array:
    found: Array = X.toarray() if is_sparse(X) else np.asarray(X)
    return found


def _places(columns: Any) -> Ints:
    """Rows or columns as numbers."""
    return np.arange(columns.start or 0, columns.stop) if isinstance(columns, slice) else columns.astype(np.int64)


def _distances(dots: Array, left: Vector, right: Vector) -> None:
    """dots = |x|^2 + |z|^2 - 2 dots, and not below 0."""
    dots *= -2.0
    dots += left[:, None]
    dots += right
    np.maximum(dots, 0.0, out=dots)
