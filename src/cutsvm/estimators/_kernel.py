"""What the estimators with a kernel share: its parameters, kernel values, limits, and scores from the support."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from cutsvm._utils import memory, threads, validation
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.display.callbacks import ensure_log_handler
from cutsvm.driver.fingerprint import Fingerprint, Scalar, of_column, of_rows
from cutsvm.driver.records import Result
from cutsvm.estimators._base import Certified
from cutsvm.estimators._ingest import TrainingData, check_matrix
from cutsvm.estimators._predict import CheckedMatrix
from cutsvm.kernel_machines import resolve
from cutsvm.kernel_machines.checkpoint import DualCheckpoint
from cutsvm.kernel_machines.context import LOGGER, Deadline, FitOptions, Solution
from cutsvm.kernel_machines.driver import drive
from cutsvm.kernel_machines.dual_problem import Groups, group_rows
from cutsvm.kernel_machines.gram import (
    EPS,
    KERNELS,
    GramSettings,
    Kernel,
    Points,
    alike,
    blocks,
    from_sparse_parts,
    in_blocks,
    is_sparse,
    sparse_parts,
    with_short_indices,
)
from cutsvm.kernel_machines.memory_plan import bytes_for_values
from cutsvm.kernel_machines.semidefinite import IndefiniteKernelError, check_kernel_matrix
from cutsvm.kernel_machines.variance import variance_of

KernelFunction = Callable[[Any, Any], Any]
Solutions = Callable[[Points, Groups, FitOptions], Iterator[Solution]]  # of the problem on these rows


@dataclass(frozen=True, eq=False)
class KernelData:
    """The rows of a fit as the kernel sees them.

    groups: rows that are alike as one. matrix: the kernel values of all rows with each other, where a matrix of them
    stands for the kernel, else None. rounding: how far it may be from a kernel's.
    """

    X: Any
    kernel: Kernel
    groups: Groups
    matrix: Array | None
    rounding: float

    def points(self, rows: Ints, n_threads: int, *, precise: bool, offset: float = 0.0) -> Points:
        """Some rows, in this order; offset: see `Kernel`."""
        if self.matrix is None:
            own = _take_rows(self.X, rows, n_threads)
            return Points(own, replace(self.kernel, offset=offset), n_threads, precise=precise)
        values = self.matrix[np.ix_(rows, rows)]
        points = Points(values, Kernel("precomputed", offset=offset), n_threads, precise=precise)
        points.given_rounding = self.rounding
        return points


def _take_rows(X: Any, rows: Ints, n_threads: int) -> Any:
    """X[rows], by several threads if X is dense."""
    if is_sparse(X) or n_threads == 1:
        return X[rows]
    out = np.empty((len(rows), *X.shape[1:]), dtype=X.dtype)

    def take(part: slice) -> None:
        out[part] = X[rows[part]]

    in_blocks(take, len(rows), GramSettings.pass_rows, n_threads)
    return out


class KernelMachine(Certified):
    """An estimator whose score of a row is a sum over the support of coefficients times kernel values."""

    kernel: str | KernelFunction
    gamma: float | Literal["scale", "auto"]
    degree: int
    coef0: float

    gamma_: float
    support_: Ints
    support_vectors_: Any
    n_support_: Ints
    dual_coef_: Vector

    checkpoint: str | PathLike[str] | None
    solver = "exact"  # no parameter, unless an estimator makes it one
    _indefinite = ""  # why nothing is proven: the kernel matrix is not one of a kernel
    _resolve = staticmethod(resolve)  # type: ignore[assignment]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """For pickles and skops: sparse support vectors as plain arrays, which skops loads without trust."""
        state: dict[str, Any] = dict(super().__getstate__())
        if is_sparse(state.get("support_vectors_")):
            state["support_vectors_"] = sparse_parts(state["support_vectors_"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(parts := state.get("support_vectors_"), dict):
            state = state | {"support_vectors_": from_sparse_parts(parts)}
        super().__setstate__(state)

    @property
    def _precomputed(self) -> bool:
        """Whether X is a matrix of kernel values."""
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def _linear(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "linear"

    # Parameters and limits

    def _check_params(self) -> Any:
        if not callable(self.kernel):
            validation.one_of("kernel", self.kernel, KERNELS, "a function kernel(X, Z) of two matrices of rows")
        if isinstance(self.gamma, str):
            validation.one_of("gamma", self.gamma, ("scale", "auto"))
        else:
            validation.positive("gamma", self.gamma)
        validation.whole("degree", self.degree, least=1)
        validation.finite("coef0", self.coef0)
        if self.kernel == "poly" and self.coef0 < 0:
            raise ValueError(
                f"coef0={self.coef0}: expected at least 0; below, (gamma x.z + coef0)^degree is not positive "
                f"semi-definite, and no kernel: {self.degree} coef0 (gamma x.z)^{self.degree - 1} counts negatively"
            )
        return super()._check_params()

    def _begin(self) -> Deadline:
        """The time limit, from now on."""
        if self.verbose:
            ensure_log_handler()
        return Deadline(self.max_time, LOGGER.isEnabledFor(logging.INFO))

    def _gamma(self, X: Any, counts: Vector | None = None) -> float:
        """gamma as a number; counts: how often each row occurs."""
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        if self.kernel not in ("rbf", "poly", "sigmoid"):
            return 1.0  # not used
        if self.gamma == "auto":
            return 1.0 / int(X.shape[1])
        variance = variance_of(X, counts)
        return 1.0 / (int(X.shape[1]) * variance) if variance > 0.0 else 1.0

    def _limit(self) -> int:
        """Bytes that kernel values may take, if nothing else takes any."""
        if self.memory_limit is None:
            return memory.parse_limit("1 GB")
        return memory.allowance(self.memory_limit, memory.MemorySettings().step).size

    def _options(self, n: int, n_threads: int, deadline: Deadline | None = None) -> FitOptions:
        deadline = Deadline() if deadline is None else deadline
        return FitOptions(0, 0.0, self.tol, n_threads, max_iter=int(self.max_iter), deadline=deadline)

    def _plan(self, data: TrainingData, deadline: Deadline, n: int) -> FitOptions:
        """The options of a fit on n groups of rows, with what the memory limit leaves for kernel values."""
        # Of the kernel values, those of a working set are worked on at a time: an eighth.
        options, values = self._options(n, threads.count(self.n_jobs, n**2 // 8), deadline), self._limit()
        if self.memory_limit is not None:
            values, options = bytes_for_values(self.memory_limit, data.X, options, given=self._precomputed)
        return replace(options, cache_bytes=values)

    def _groups(self, data: TrainingData, targets: Vector) -> Groups:
        """Rows that are alike as one."""
        n_threads = threads.count(self.n_jobs, data.rows.n * data.rows.d)
        return group_rows(data.X, targets, data.weights, given=self._precomputed, threads=n_threads)

    def _dual_checkpoint(
        self, data: TrainingData, targets: Callable[[], str], **settings: Scalar
    ) -> DualCheckpoint | None:
        """The checkpoint of a fit, if one is named; targets: computes a hash of them, settings: those of the solver."""
        if self.checkpoint is None:
            return None
        name = (
            getattr(self.kernel, "__qualname__", type(self.kernel).__name__) if callable(self.kernel) else self.kernel
        )
        kernel = {"kernel": name, "degree": self.degree, "coef0": self.coef0, "gamma": self.gamma_}
        facts = {"estimator": type(self).__name__, **self._objective_settings(), **settings, **kernel}
        facts |= {"rows": data.rows.n, "features": data.rows.d}
        hashes = {"X": of_rows(data.rows), "y": targets(), "weights": of_column(data.weights)}
        return DualCheckpoint(self.checkpoint, Fingerprint(facts, hashes))

    # Kernel values of the training rows

    @property
    def _kernel(self) -> Kernel:
        name = "precomputed" if callable(self.kernel) else self.kernel
        return Kernel(name, self.gamma_, int(self.degree), float(self.coef0))

    def _kernel_data(
        self, X: Any, counts: Vector, options: FitOptions, groups: Groups, loss: str = "hinge"
    ) -> KernelData:
        """The rows as the kernel sees them; sets gamma_. An indefinite matrix is refused unless the loss is "hinge"."""
        self._indefinite = ""
        if self._precomputed:
            validation.square(X)
        counted = self.gamma == "scale" and not self._precomputed
        self.gamma_ = self._gamma(*groups.counted(X, counts)) if counted else self._gamma(X)
        matrix = self._matrix(X, options)
        rounding = EPS
        if matrix is not None:
            try:
                rounding = check_kernel_matrix(matrix, name="X" if self._precomputed else "K")
            except IndefiniteKernelError as error:
                if loss != "hinge":
                    raise
                self._indefinite, rounding = str(error), np.inf
        return KernelData(X, self._kernel, groups, matrix, rounding)

    def _matrix(self, X: Any, options: FitOptions) -> Array | None:
        """The kernel values of all training rows, where a matrix of them stands for the kernel."""
        if self._precomputed:
            values: Array = X.toarray() if is_sparse(X) else np.asarray(X)
            return values
        if not callable(self.kernel) and self.kernel != "sigmoid":
            return None
        n = int(X.shape[0])
        if self.memory_limit is not None and 8 * n * n > options.cache_bytes:
            raise ValueError(
                f"kernel={self.kernel!r} takes a matrix of all kernel values, of {n:,} rows in "
                f"{memory.format_bytes(8.0 * n * n)}: raise memory_limit"
            )
        if callable(self.kernel):
            return self._called(X, X)
        found = np.empty((n, n))
        Points(X, self._kernel, options.threads).matrix(found)
        return found

    def _called(self, X: Any, Z: Any) -> Array:
        """The values of a kernel that is a function, checked."""
        assert callable(self.kernel)
        found = self.kernel(with_short_indices(X), with_short_indices(Z))
        try:
            values = np.asarray(found.toarray() if is_sparse(found) else found, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"kernel={self.kernel!r} has returned no matrix of numbers: {error}") from None
        expected = (int(X.shape[0]), int(Z.shape[0]))
        if values.shape != expected:
            raise ValueError(
                f"kernel={self.kernel!r} has returned values of shape {values.shape}: expected {expected}, one for "
                f"each row of X, of shape {X.shape}, with each row of Z, of shape {Z.shape}"
            )
        if not np.isfinite(values).all():
            i, j = (int(k) for k in np.argwhere(~np.isfinite(values))[0])
            raise ValueError(f"kernel={self.kernel!r} has returned {values[i, j]} for row {i} of X and row {j} of Z")
        return values

    # The model

    def _set_support(self, X: Any, dual: Vector, order: Ints) -> None:
        """Sets the support, which is rows with a coefficient; order: the rows of these coefficients."""
        support = np.flatnonzero(dual.any(axis=0))
        self.support_ = order[support]
        self.dual_coef_ = np.ascontiguousarray(dual[:, support])
        self.support_vectors_ = np.empty((0, 0)) if self._precomputed else X[self.support_]
        self.__dict__.pop("coef_", None)

    def _checked(self, X: Any, scores: Callable[[Any], Vector]) -> Vector:
        """scores(X) of rows that are checked."""
        check_is_fitted(self)
        if isinstance(X, CheckedMatrix):
            return X.scores(scores)
        # For a matrix of kernel values scikit-learn checks for NaN before it checks the number of columns.
        return scores(check_matrix(self, X, reset=False, ensure_all_finite=self._precomputed))

    def _values_with_support(self, X: Any) -> Iterator[tuple[slice, Array]]:
        """Blocks of rows of X, and their kernel values with the support."""
        n, size = int(X.shape[0]), len(self.support_)
        n_threads = threads.count(self.n_jobs, n * size)
        if not size:  # the fit ended before its first step
            return
        with threads.one_blas_thread():
            if callable(self.kernel):
                for rows in blocks(n, 512):
                    yield rows, self._called(X[rows], self.support_vectors_)
                return
            given = self._precomputed
            X, vectors = (X, X) if given else alike(X, self.support_vectors_)
            support = Points(vectors, self._kernel, n_threads, precise=X.dtype == np.float64)
            points = support if given else support.like(X)
            columns = self.support_ if given else slice(0, size)
            for rows in blocks(n, points.settings.block_rows):
                values = np.empty((rows.stop - rows.start, size), dtype=X.dtype)
                points.values(rows, support, columns, values)
                yield rows, values

    def _advice(self, data: TrainingData) -> str:
        if self._indefinite:
            return f"{self._indefinite}. There is no best objective then, and nothing is proven of the model."
        if np.isnan(self.gap_):
            return f"Stopped: {self.status_.value}. How good the model is was not computed, {self._why_unknown()}."
        return super()._advice(data)

    def _why_unknown(self) -> str:
        return "for lack of time: raise max_time, or take fewer rows"


class SingleKernelMachine(KernelMachine):
    """A machine that is one problem on all rows: f(x) = sum_k dual_coef_[0, k] K(x, x_k) + intercept_[0]."""

    def _fit(
        self, data: TrainingData, targets: Vector, solutions: Solutions, deadline: Deadline, scale: float = 1.0
    ) -> Result:
        """Sets the model, whose coefficients and intercept are `scale` times those of the solver.

        Rows that are alike are one, in an order of their own: a weight is the number of times of a row.
        """
        with threads.one_blas_thread():
            groups = self._groups(data, targets)
            options = self._plan(data, deadline, len(groups.rows))
            rows = self._kernel_data(data.X, data.weights, options, groups)
            points = rows.points(groups.rows, options.threads, precise=False)
            checkpoint = self._dual_checkpoint(data, lambda: of_column(targets))
            options = replace(options, checkpoint=checkpoint)
            result = drive(solutions(points, groups, options), self.tol, self._callbacks())
        coef, n = scale * result.w, data.rows.n
        self._certify([result], checkpoint)
        self._set_support(data.X, groups.spread(coef[None], n), np.arange(n))
        self.n_support_ = np.array([len(self.support_)])
        self.intercept_ = np.array([scale * result.intercept])
        if self._linear:
            self.coef_ = np.asarray(data.X[groups.rows].T @ coef, dtype=np.float64).reshape(1, -1)
        return result

    def _sums(self, X: Any) -> Vector:
        """f(x) of each row."""
        return self._scores(X) if self._linear else self._checked(X, self._sums_of_matrix)

    def _sums_of_matrix(self, X: Any) -> Vector:
        scores = np.full(int(X.shape[0]), self.intercept_[0])
        for rows, values in self._values_with_support(X):
            scores[rows] += values @ self.dual_coef_[0].astype(values.dtype, copy=False)
        return scores
