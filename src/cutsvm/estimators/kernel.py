"""KernelSVC: support vector machines with kernels, one for each pair of classes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from cutsvm._utils import memory, threads, validation
from cutsvm._utils.types import Ints, Vector
from cutsvm.display.callbacks import ensure_log_handler
from cutsvm.display.summary import describe_gap
from cutsvm.driver.records import Record, Status
from cutsvm.estimators._base import CertifiedClassifier
from cutsvm.estimators._ingest import TrainingData, check_matrix, ingest
from cutsvm.estimators._predict import CheckedMatrix, by_block
from cutsvm.kernel_machines import SGD, KernelSolver, resolve
from cutsvm.kernel_machines.context import LOGGER, Deadline, FitOptions
from cutsvm.kernel_machines.driver import Driver
from cutsvm.kernel_machines.gram import (
    EPS,
    KERNELS,
    Kernel,
    Points,
    alike,
    blocks,
    from_sparse_parts,
    is_sparse,
    sparse_parts,
    variance_of,
    with_constant,
)
from cutsvm.kernel_machines.memory_plan import bytes_for_matrix, bytes_for_values
from cutsvm.kernel_machines.one_vs_one import decisions, duals, pair_scores, sort_by_class
from cutsvm.kernel_machines.semidefinite import IndefiniteKernelError, check_kernel_matrix


@dataclass(eq=False, repr=False)
class KernelSVC(CertifiedClassifier):
    """Support vector machine with a kernel: hinge loss by stochastic gradient steps, or squared hinge loss by its dual.

    For two classes it minimises, over w in the kernel's feature space,

        F = lambda / 2 |w|^2 + 1/n sum_i s_i max(0, 1 - y_i f(x_i)),     lambda = 1 / (C n),  f(x) = w.phi(x)

    with s = class_weight; `solver="isda"` and `"min_norm"` have max(0, ..)^2 / 2 in place of max(0, ..). There is no
    intercept unless the solver object has one, and `SGD(C_times="mean")` has lambda = 1 / C. More than two classes: one
    such problem for each pair of them, of whose rows n is then the number; the class with most votes wins, of several
    the one with the largest sum of scores.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the margin; it means the same as in `sklearn.svm.SVC`.
    kernel : {"rbf", "poly", "linear", "precomputed"}, default="rbf"
        exp(-gamma |x - z|^2), (gamma x.z + coef0)^degree, x.z, or X itself: a square matrix of kernel values in `fit`,
        and rows of values with the training rows in `predict`. It has to be symmetric and positive semi-definite, which
        is checked (beyond 2,000 rows by 30 steps of Lanczos' method). Otherwise "isda" and "min_norm" refuse it, and
        "sgd" trains with a warning and without a bound. "linear" with "sgd" computes no kernel matrix.
    gamma : {"scale", "auto"} or float, default="scale"
        "scale": 1 / (n_features X.var()). "auto": 1 / n_features.
    degree : int, default=3
    coef0 : float, default=0.0
        At least 0: below, (gamma x.z + coef0)^degree is not positive semi-definite.
    solver : {"sgd", "isda", "min_norm"} or a solver object, default="sgd"
        "sgd": NL-SGD, cycles over the shuffled rows, then coordinate ascent on the dual. "isda" and "min_norm": NN-ISDA
        and MN-SVM, on the dual of the L2 machine. All run until the certified gap is `tol`, except for "sgd" with a
        number of `epochs`, or where the kernel matrix does not fit into `memory_limit`. `cutsvm.kernel_machines` has
        them as objects.
    epochs : int or "auto", default="auto"
        A number: that many cycles of NL-SGD and no ascent, which is the paper's algorithm. It does not stop at a gap:
        `converged_` is True only if `gap_` is within `tol` by then. "auto": 20,000 / n of them, at least 2 and at most
        20, and then the ascent.
    average : float, default=0.5
        "sgd" gives the mean of the alphas of this last share of its steps; with 0 the last one.
    tol : float, default=1e-3
        Relative gap (objective - lower bound) / objective at which to stop; above it `converged_` is False.
    class_weight : dict or "balanced", default=None
        Factors for the classes' weights; classes that are not named have 1.
    certify : bool, default=True
        Whether "sgd" computes objective and bound at the end: that takes the kernel values of all rows with the
        support once more. Without it both are NaN, `converged_` is False, and no ascent follows the epochs of "auto".
        The other two always compute them.
    max_iter : int, default=10_000
        Limit on the cycles over the rows of "sgd", those of the ascent included, and on the rounds of "isda" and
        "min_norm", of 20,000 steps each.
    max_time : float, default=None
        Limit in seconds, kernel values and certificate included. The model so far is kept, with its gap, which is NaN
        if there was no time to compute it; the same holds after Ctrl-C.
    memory_limit : str or int, default=None
        What a fit may add to the memory of the process, as in `LinearSVC`: copies of the rows, which are in memory, and
        kernel values, which are float32. None: 1 GB for kernel values alone. A matrix of all of them is kept if it
        fits. If not, "sgd" computes those of a block of rows with the support so far; the other two need it for each
        pair.
    random_state : int, RandomState or None, default=None
        For the order of the rows in "sgd". None is 0: the same call gives the same model, for any `n_jobs`.
    n_jobs : int, default=None
        Threads: None is 1, -1 all cores.
    callbacks : list of callables, default=None
        Each is called with a `cutsvm.Record` after every round; one that returns True ends the fit.
    verbose : int, default=0
        1: one line per round, and every 5 seconds of a longer one, through the logger "cutsvm", to stderr if it has no
        handler.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    support_ : ndarray of shape (n_support,)
        Rows with a coefficient in f, sorted by class.
    support_vectors_ : ndarray or CSR of shape (n_support, n_features); empty if the kernel is precomputed
    n_support_ : ndarray of shape (n_classes,)
    dual_coef_ : ndarray of shape (n_classes - 1, n_support)
        For each support row one coefficient per other class, in the order of the classes. In the machine of two classes
        a positive score is for the later one.
    coef_ : ndarray of shape (n_classes * (n_classes - 1) / 2, n_features), only if the kernel is linear
    intercept_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
        Added to the score of each pair; 0 but for `ISDA(intercept="regularized")` and `MinNorm` likewise.
    gamma_ : float
        The gamma that was used.
    objective_, lower_bound_, gap_ : float
        F summed over the pairs, a lower bound of its minimum, and (objective_ - lower_bound_) / objective_; all from
        kernel values in float64.
    converged_, status_, n_iter_, history_ : as in `LinearSVC`; n_iter_ of "sgd" is its number of cycles over the rows
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from cutsvm import KernelSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> model = KernelSVC(C=4.0, random_state=0).fit(X[:1000], y[:1000])
    >>> bool(model.score(X[1000:], y[1000:]) > 0.95)
    True
    """

    C: float = 1.0
    _: KW_ONLY
    kernel: str = "rbf"
    gamma: float | Literal["scale", "auto"] = "scale"
    degree: int = 3
    coef0: float = 0.0
    solver: str | KernelSolver = "sgd"  # type: ignore[assignment]
    epochs: int | Literal["auto"] = "auto"
    average: float = 0.5
    tol: float = 1e-3
    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None
    certify: bool = True
    max_iter: int = 10_000
    max_time: float | None = None
    memory_limit: str | int | None = None
    random_state: Any = None
    n_jobs: int | None = None
    callbacks: Sequence[Callable[[Record], object]] | None = None
    verbose: int = 0

    checkpoint = None  # not a parameter
    _resolve = staticmethod(resolve)  # type: ignore[assignment]

    @property
    def _trains_in_epochs(self) -> bool:
        """Whether the solver is NL-SGD, whose iterations are epochs."""
        return isinstance(resolve(self.solver), SGD)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
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

    def fit(self, X: Any, y: Any = None) -> KernelSVC:
        """Fits the model to rows X with labels y, or to a data set: `fit("train.svm")`."""
        solver = self._check_params()
        if self.verbose:
            ensure_log_handler()
        deadline = Deadline(self.max_time, LOGGER.isEnabledFor(logging.INFO))
        data = ingest(self, X, y)
        n, classes = data.rows.n, data.class_names
        validation.apply_class_weights(data.weights, self.class_weight, data.classes, data.y, classes)
        given_rounding, self._indefinite = EPS, ""
        if self.kernel == "precomputed":
            validation.square(data.X)
            given_rounding = self._given_rounding(data.X, solver)
        self.gamma_ = self._gamma(data.X)
        random = check_random_state(0 if self.random_state is None else self.random_state)
        by_class, labels, order = sort_by_class(np.searchsorted(data.classes, data.y), random)
        seed = int(random.randint(2**31 - 1))
        options = self._options(n, threads.count(self.n_jobs, n**2), deadline, seed)
        values = self._limit()
        if self.memory_limit is not None:
            given = self.kernel == "precomputed"
            values, options = bytes_for_values(self.memory_limit, data.X, options, given=given)
        driver = Driver(
            solver, float(self.C), options, values, self._callbacks(), positive_semidefinite=not self._indefinite
        )
        # Values that are kept are as precise as float32 can be; those of a block of rows are computed fast.
        precise = self.kernel == "linear" or solver.loss == "l2" or driver.fits(n)
        with threads.one_blas_thread():
            points = self._points(data.X, options.threads, precise=precise, offset=solver.kernel_offset).take(by_class)
            points.given_rounding = given_rounding
            results, problems = driver.solve(points, labels, data.weights[by_class], order)
            alpha = np.concatenate([result.w for result in results])
            # For a linear kernel: the very weights whose objective was computed.
            X = with_constant(points.X, solver.kernel_offset if self.kernel == "linear" else 0.0)
            linear = [problems.weights(X, p, alpha) for p in range(len(problems)) if self.kernel == "linear"]
        self.classes_ = classes
        self._certify(results, None)
        self._set_support(data.X, by_class, labels, duals(problems, alpha, len(classes), n), solver.kernel_offset)
        if self.kernel == "linear":
            found, width = np.array(linear), int(data.X.shape[1])
            self.coef_ = np.ascontiguousarray(found[:, :width])
            self.intercept_ = found[:, width] if solver.kernel_offset else np.zeros(len(found))
        self._warn_unless_converged(data)
        return self

    def _given_rounding(self, X: Any, solver: KernelSolver) -> float:
        """The distance of X from a kernel matrix; infinity, with the reason in `_indefinite`, if it is indefinite."""
        try:
            return check_kernel_matrix(X)
        except IndefiniteKernelError as error:
            if solver.loss != "hinge":
                raise
            self._indefinite = str(error)
            return np.inf

    def _check_params(self) -> KernelSolver:  # type: ignore[override]
        validation.one_of("kernel", self.kernel, KERNELS)
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
        if self.epochs != "auto":
            validation.whole("epochs", self.epochs, least=1)
        validation.share("average", self.average)
        return super()._check_params()  # type: ignore[return-value]

    def _gamma(self, X: Any) -> float:
        """gamma as a number."""
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        if self.kernel not in ("rbf", "poly"):
            return 1.0  # not used
        if self.gamma == "auto":
            return 1.0 / int(X.shape[1])
        variance = variance_of(X)
        return 1.0 / (int(X.shape[1]) * variance) if variance > 0.0 else 1.0

    def _points(self, X: Any, n_threads: int, *, precise: bool, offset: float = 0.0) -> Points:
        kernel = Kernel(self.kernel, self.gamma_, int(self.degree), float(self.coef0), offset)
        return Points(X, kernel, n_threads, precise=precise)

    def _limit(self) -> int:
        """Bytes that kernel values may take, if nothing else takes any."""
        if self.memory_limit is None:
            return memory.parse_limit("1 GB")
        return memory.allowance(self.memory_limit, memory.MemorySettings().step).size

    def _options(self, n: int, n_threads: int, deadline: Deadline | None = None, seed: int = 0) -> FitOptions:
        auto = self.epochs == "auto"
        epochs = min(20, max(2, round(20_000 / n))) if auto else int(self.epochs)
        return FitOptions(
            min(epochs, int(self.max_iter)),
            float(self.average),
            self.tol,
            n_threads,
            bool(self.certify),
            int(self.max_iter),
            finish=auto and bool(self.certify),
            after_epochs=Status.EPOCHS if auto or epochs <= self.max_iter else Status.MAX_ITER,
            deadline=Deadline() if deadline is None else deadline,
            seed=seed,
        )

    def _warn_unless_converged(self, data: TrainingData) -> None:
        if self.status_ is not Status.EPOCHS or self.certify:  # without certificate, the epochs were all that was asked
            super()._warn_unless_converged(data)

    def _advice(self, data: TrainingData) -> str:
        if self._indefinite:
            return f"{self._indefinite}. There is no best objective then, and nothing is proven of the model."
        if np.isnan(self.gap_):
            lack = "for lack of time: raise max_time, or take fewer rows"
            why = lack if self.certify else "as certify=False says"
            return f"Stopped: {self.status_.value}. How good the model is was not computed, {why}."
        if self.status_ is not Status.EPOCHS:
            other = self.kernel == "linear" and self.status_ is Status.MAX_ITER
            return super()._advice(data) + (" For the linear kernel LinearSVC takes less time." if other else "")
        proven = describe_gap(self.gap_)
        known = "Nothing is proven about the best objective" if proven is None else f"It is {proven}"
        need = memory.format_bytes(bytes_for_matrix(data.X, self._options(data.rows.n, 1).epochs))
        remedy = (
            f'memory_limit="{need}" holds the kernel matrix, with which the fit continues until the gap is within tol'
            if self.epochs == "auto"
            else 'epochs="auto" continues until the gap is within tol, more epochs reduce it slowly'
        )
        return f"Stopped at a gap of {self.gap_:.2g} (tol={self.tol:g}): {self.status_.value}. {known}; {remedy}."

    def _set_support(self, X: Any, by_class: Ints, labels: Ints, dual: Vector, offset: float) -> None:
        """Sets the support: rows with a coefficient, in the order of their classes; and the intercepts."""
        support = np.flatnonzero(dual.any(axis=0))
        self.support_ = by_class[support]
        self.dual_coef_ = np.ascontiguousarray(dual[:, support])
        self.n_support_ = np.bincount(labels[support], minlength=len(self.classes_))
        self.__dict__.pop("coef_", None)
        # A constant in all kernel values adds the sum of a pair's coefficients to its scores.
        ones = np.full((1, len(support)), offset)
        self.intercept_ = pair_scores(ones, self.dual_coef_, self._edges())[0]
        self.support_vectors_: Any = np.empty((0, 0)) if self.kernel == "precomputed" else X[self.support_]

    def _pair_scores(self, X: Any) -> Vector:
        """One column per pair of classes."""
        check_is_fitted(self)
        if self.kernel == "linear":
            linear = self._scores(X)
            return linear.reshape(len(linear), -1)
        if isinstance(X, CheckedMatrix):
            return X.scores(self._pair_scores_of_matrix)
        # For a matrix of kernel values scikit-learn checks for NaN before it checks the number of columns.
        given = self.kernel == "precomputed"
        return self._pair_scores_of_matrix(check_matrix(self, X, reset=False, ensure_all_finite=given))

    def _pair_scores_of_matrix(self, X: Any) -> Vector:
        given = self.kernel == "precomputed"
        n_threads = threads.count(self.n_jobs, X.shape[0] * len(self.support_))
        scores = np.zeros((X.shape[0], len(self.classes_) * (len(self.classes_) - 1) // 2))
        if not len(self.support_):  # the fit ended before its first step
            return scores
        with threads.one_blas_thread():
            X, vectors = (X, X) if given else alike(X, self.support_vectors_)
            support = self._points(vectors, n_threads, precise=X.dtype == np.float64)
            points = support if given else support.like(X)
            columns = self.support_ if given else slice(0, len(self.support_))
            edges = self._edges()
            for rows in blocks(X.shape[0], points.settings.block_rows):
                kernel = np.empty((rows.stop - rows.start, len(self.support_)), dtype=X.dtype)
                points.values(rows, support, columns, kernel)
                scores[rows] = pair_scores(kernel, self.dual_coef_, edges) + self.intercept_
        return scores

    def _edges(self) -> Ints:
        """Where each class's support begins, and the end."""
        return np.concatenate([[0], np.cumsum(self.n_support_)])

    @by_block
    def decision_function(self, X: Any) -> Vector:
        """f(x) for two classes, positive for classes_[1]; for more, of shape (n, n_classes), the votes of each class.

        To the votes a number between -1/3 and 1/3 is added that grows with the sum of a class's scores.
        """
        scores = self._pair_scores(X)
        if len(self.classes_) == 2:
            return scores[:, 0]
        low, high = np.array(list(combinations(range(len(self.classes_)), 2)), dtype=np.int32).T.copy()
        return decisions(scores, low, high, len(self.classes_))
