"""KernelSVC: support vector machines with kernels, one for each pair of classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from itertools import combinations
from os import PathLike
from typing import Any, Literal

import numpy as np
from sklearn import svm
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from cutsvm._utils import memory, threads, validation
from cutsvm._utils.types import Ints, Vector
from cutsvm.display.summary import describe_gap
from cutsvm.driver.fingerprint import of_labels, solver_name
from cutsvm.driver.records import Record, Status
from cutsvm.estimators._base import CertifiedClassifier
from cutsvm.estimators._ingest import TrainingData, ingest
from cutsvm.estimators._kernel import KernelData, KernelFunction, KernelMachine
from cutsvm.estimators._libsvm import libsvm_twin
from cutsvm.estimators._predict import by_block
from cutsvm.kernel_machines import SGD, Auto, Exact, KernelSolver, resolve
from cutsvm.kernel_machines.context import Deadline, FitOptions, PairSolver, log
from cutsvm.kernel_machines.driver import Driver
from cutsvm.kernel_machines.dual_problem import group_rows
from cutsvm.kernel_machines.gram import with_constant
from cutsvm.kernel_machines.memory_plan import bytes_for_matrix
from cutsvm.kernel_machines.one_vs_one import constant_scores, decisions, duals, largest_pair, pair_scores


@dataclass(eq=False, repr=False)
class KernelSVC(CertifiedClassifier, KernelMachine):
    """Support vector machine with a kernel and a certified duality gap.

    For two classes it minimises, over w in the kernel's feature space and b,

        F = lambda / 2 |w|^2 + 1/n sum_i s_i max(0, 1 - y_i f(x_i)),     lambda = 1 / (C n),  f(x) = w.phi(x) + b

    with s = sample_weight x class_weight and n = sum of sample_weight, which is 1 / (C n) times what `sklearn.svm.SVC`
    minimises. b is free with `solver="exact"`, and regularised with the others, which have |w|^2 + b^2 in place of
    |w|^2. `"isda"` and `"min_norm"` have max(0, ..)^2 / 2 in place of max(0, ..). More than two classes: one such
    problem for each pair of them, of whose rows n is then the number; the class with most votes wins, of several the
    one with the largest sum of scores. A weight is the number of times that a row occurs: rows that are alike are one
    row with the sum of their weights.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the margin; it means the same as in `sklearn.svm.SVC`.
    kernel : {"rbf", "poly", "linear", "sigmoid", "precomputed"} or callable, default="rbf"
        exp(-gamma |x - z|^2), (gamma x.z + coef0)^degree, x.z, tanh(gamma x.z + coef0), or X itself: a square matrix of
        kernel values in `fit`, and rows of values with the training rows in `predict`. A function is called as
        kernel(X, Z) with two matrices of rows, and returns the matrix of their values: with all training rows in `fit`,
        with blocks of rows and the support vectors in `predict`. Matrices, those of "sigmoid" and of functions too,
        have to be symmetric and positive semi-definite, which is checked (beyond 2,000 rows by 30 steps of Lanczos'
        method). Otherwise "isda" and "min_norm" refuse them, and "exact" and "sgd" train with a warning and without a
        bound. "linear" with "sgd" computes no kernel matrix.
    gamma : {"scale", "auto"} or float, default="scale"
        "scale": 1 / (n_features X.var()). "auto": 1 / n_features.
    degree : int, default=3
    coef0 : float, default=0.0
        At least 0: below, (gamma x.z + coef0)^degree is not positive semi-definite.
    solver : {"auto", "exact", "sgd", "isda", "min_norm"} or a solver object, default="auto"
        "exact": working sets on the dual, with kernel rows from BLAS. "sgd": NL-SGD, cycles over the shuffled rows,
        then coordinate ascent on the dual. "isda" and "min_norm": NN-ISDA and MN-SVM, on the dual of the L2 machine.
        All run until the certified gap is `tol`, except for "sgd" with a number of `epochs`, or where the kernel matrix
        does not fit into `memory_limit`. "auto" is "sgd" if there is a number of `epochs`, or more than 200,000
        different rows in two classes, and "exact" otherwise.
        `cutsvm.kernel_machines` has them as objects.
    fit_intercept : bool, default=True
        Whether there is an intercept b: in "exact" a free one, as in `SVC`, in "sgd", "isda" and "min_norm" a
        regularised one, K + 1 in place of K. Solver objects `SGD`, `ISDA` and `MinNorm` are as they are configured,
        whatever this says: without an intercept, as in their papers, unless they have `intercept="regularized"`.
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
        Limit on the working sets of "exact", on the cycles over the rows of "sgd", those of the ascent included, and on
        the rounds of "isda" and "min_norm", of 20,000 steps each.
    max_time : float, default=None
        Limit in seconds, kernel values and certificate included. The model so far is kept, with its gap; the same
        holds after Ctrl-C. Without time to compute the gap, that of "exact" is a wider one from its steps, or NaN where
        it has none, and that of the other solvers is NaN.
    memory_limit : str or int, default=None
        What a fit may add to the memory of the process, as in `LinearSVC`: copies of the rows, which are in memory, and
        kernel values, which are float32. None: 1 GB for kernel values alone. A matrix of all of them is kept if it
        fits. If not, "exact" keeps the rows of it that it has used last, "sgd" computes those of a block of rows with
        the support so far, and the other two need it for each pair.
    checkpoint : path, default=None
        "exact" writes its dual vectors there while it runs; after a kill the same call goes on from them. The file is
        removed when the fit has converged. The other solvers have none.
    random_state : int, RandomState or None, default=None
        For the order of the rows in "sgd". None is 0: the same call gives the same model, for any `n_jobs`. If rows are
        alike, or a weight is not 1, they are sorted first, and the model does not depend on the order that they are
        given in.
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
        b of each pair.
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
    kernel: str | KernelFunction = "rbf"
    gamma: float | Literal["scale", "auto"] = "scale"
    degree: int = 3
    coef0: float = 0.0
    solver: str | KernelSolver | Auto = "auto"  # type: ignore[assignment]
    fit_intercept: bool = True
    epochs: int | Literal["auto"] = "auto"
    average: float = 0.5
    tol: float = 1e-3
    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None
    certify: bool = True
    max_iter: int = 10_000
    max_time: float | None = None
    memory_limit: str | int | None = None
    checkpoint: str | PathLike[str] | None = None
    random_state: Any = None
    n_jobs: int | None = None
    callbacks: Sequence[Callable[[Record], object]] | None = None
    verbose: int = 0

    @property
    def _trains_in_epochs(self) -> bool:
        """Whether the solver is NL-SGD, whose iterations are epochs."""
        return isinstance(resolve(self.solver), SGD) or self.__dict__.get("_solver_name") == SGD.name

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelSVC:
        """Fits the model to rows X with labels y, or to a data set: `fit("train.svm")`."""
        asked = self._check_params()
        deadline = self._begin()
        data = ingest(self, X, y, sample_weight)
        counts = data.weights.copy()
        validation.apply_class_weights(data.weights, self.class_weight, data.classes, data.y, data.class_names)
        with threads.one_blas_thread():
            groups = group_rows(data.X, data.y, data.weights, given=self._precomputed)
            solver = self._choose(asked, largest_pair(np.searchsorted(data.classes, groups.targets)))
            self._solver_name = solver.name
            if not isinstance(solver, PairSolver):
                groups = groups.in_order(data.y, data.weights, counts)
            options = self._plan(data, deadline, len(groups.rows))
            rows = self._kernel_data(data.X, counts, options, groups, loss=solver.loss)
            driver = Driver(
                solver,
                float(self.C),
                options,
                options.cache_bytes,
                self._callbacks(),
                positive_semidefinite=not self._indefinite,
            )
            self._fit_groups(driver, data, counts, rows)
        self._warn_unless_converged(data)
        return self

    def _fit_groups(self, driver: Driver, data: TrainingData, counts: Vector, rows: KernelData) -> None:
        """Rows that are alike are one, in an order of their own: a weight is the number of times of a row.

        Where there are none, and all weights are 1, solvers that visit one row after another keep the given order.
        """
        solver, groups, n_classes = driver.solver, rows.groups, len(data.classes)
        labels, offset = np.searchsorted(data.classes, groups.targets), solver.kernel_offset
        if self.checkpoint is not None and not isinstance(solver, PairSolver):
            raise ValueError(f'checkpoint: solver="{solver.name}" has none, solver="exact" has; leave it out')
        labels_hash = partial(of_labels, data.y, data.classes)
        checkpoint = self._dual_checkpoint(data, labels_hash, solver=solver_name(solver))
        driver = replace(driver, options=replace(driver.options, checkpoint=checkpoint))
        # Values that are kept are as precise as float32 can be; those of a block of rows are computed fast.
        precise = not isinstance(solver, PairSolver)
        precise &= self._linear or solver.loss == "l2" or driver.fits(len(labels))
        points = rows.points(groups.rows, driver.options.threads, precise=precise, offset=offset)
        order = np.arange(len(labels))
        if solver.visits_rows:
            random = check_random_state(0 if self.random_state is None else self.random_state)
            order = random.permutation(len(labels))
            order = order if groups.merged else groups.group[order]
            driver = replace(driver, options=replace(driver.options, seed=int(random.randint(2**31 - 1))))
        results, problems = driver.solve(points, labels, groups.weights, order, groups.sums(counts))
        alpha = np.concatenate([result.w for result in results])
        dual = duals(problems, alpha, n_classes, len(labels))
        self.classes_ = data.class_names
        self._certify(results, checkpoint)
        self._set_machines(data, groups.spread(dual, data.rows.n))
        if isinstance(solver, PairSolver):
            self.intercept_ = np.array([result.intercept for result in results])
        else:
            self.intercept_ = constant_scores(offset, dual, labels)
        if self._linear:  # the very weights whose objective was computed
            X, width = with_constant(points.X if precise else points.original, offset), int(data.X.shape[1])
            found = np.array([problems.weights(X, p, alpha) for p in range(len(problems))])
            self.coef_ = np.ascontiguousarray(found[:, :width])
            self.intercept_ = found[:, width] if offset else self.intercept_

    def _choose(self, asked: KernelSolver | Auto, largest_pair: int) -> KernelSolver:
        """The solver for two classes with this number of rows.

        `fit_intercept` is for solvers by name and for the exact one; other solver objects are as they were made.
        """
        if isinstance(asked, Auto):
            solver, why = asked.choose(largest_pair, fit_intercept=self.fit_intercept, epochs=self.epochs != "auto")
            if self.verbose:
                log(why)
            return solver
        named = isinstance(self.solver, str) or isinstance(asked, Exact)
        return asked.with_intercept(self.fit_intercept) if named else asked

    def _check_params(self) -> KernelSolver | Auto:  # type: ignore[override]
        if self.epochs != "auto":
            validation.whole("epochs", self.epochs, least=1)
        validation.share("average", self.average)
        solver: KernelSolver | Auto = super()._check_params()
        return solver

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
            adaptive=auto,
            after_epochs=Status.EPOCHS if auto or epochs <= self.max_iter else Status.MAX_ITER,
            deadline=Deadline() if deadline is None else deadline,
            seed=seed,
        )

    def _warn_unless_converged(self, data: TrainingData) -> None:
        if self.status_ is not Status.EPOCHS or self.certify:  # without certificate, the epochs were all that was asked
            super()._warn_unless_converged(data)

    def _advice(self, data: TrainingData) -> str:
        if self.status_ is not Status.EPOCHS or self._indefinite or np.isnan(self.gap_):
            other = self._linear and self.status_ is Status.MAX_ITER
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

    def _why_unknown(self) -> str:
        return super()._why_unknown() if self.certify else "as certify=False says"

    def _set_machines(self, data: TrainingData, dual: Vector) -> None:
        """Sets the support, in the order of the classes; dual: coefficients of all rows."""
        by_class = np.argsort(data.y, kind="stable")
        self._set_support(data.X, dual[:, by_class], by_class)
        labels = np.searchsorted(data.classes, data.y[self.support_])
        self.n_support_ = np.bincount(labels, minlength=len(self.classes_))

    def _pair_scores(self, X: Any) -> Vector:
        """One column per pair of classes."""
        check_is_fitted(self)
        if self._linear:
            linear = self._scores(X)
            return linear.reshape(len(linear), -1)
        return self._checked(X, self._pair_scores_of_matrix)

    def _pair_scores_of_matrix(self, X: Any) -> Vector:
        scores, edges = np.tile(self.intercept_, (X.shape[0], 1)), self._edges()
        for rows, values in self._values_with_support(X):
            scores[rows] += pair_scores(values, self.dual_coef_, edges)
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

    def to_sklearn(self) -> Any:
        """A fitted `sklearn.svm.SVC` that predicts the same, for tools that know scikit-learn's classes only.

        A new fit of it minimises the objective of "exact" with its free intercept.
        """
        params = {name: getattr(self, name) for name in ("C", "kernel", "degree", "coef0", "class_weight")}
        return libsvm_twin(self, svm.SVC(gamma=self.gamma, break_ties=True, **params))
