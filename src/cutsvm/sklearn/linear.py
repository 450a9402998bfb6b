"""LinearSVC and LinearSVR with scikit-learn's signatures, trained with a certificate."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn import svm
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.sklearn import checks
from cutsvm.sklearn.fall_through import FallThrough
from cutsvm.sklearn.training import QuietLinearSVC, QuietLinearSVR, certified_options, train


class LinearSVC(FallThrough, svm.LinearSVC):  # type: ignore[misc]
    """`sklearn.svm.LinearSVC`, trained by cutsvm.

    Parameters, attributes and messages are scikit-learn's. For two classes it minimises, over w and b,

        F = (|w|^2 + (b / intercept_scaling)^2) / 2 + C sum_i s_i loss(y_i (w.x_i + b))

    with loss(m) = max(0, 1 - m)^2 ("squared_hinge") or max(0, 1 - m) ("hinge"). More classes are trained one against
    the rest, or as Crammer and Singer do. It stops where the certified relative gap is tol^2, at most 1e-3, so that
    |w - w*| <= tol sqrt(2 F). `max_iter` limits cutsvm's iterations. The result does not depend on `dual`, and
    `random_state` seeds no more than samples. `penalty="l1"` is left to scikit-learn.

    Fits by cutsvm have three more attributes: `objective_`, F at the solution; `lower_bound_`, which no F is below; and
    `gap_`, (objective_ - lower_bound_) / objective_.
    """

    def _refused_parameters(self) -> str | None:
        joint = checks.is_one_of(self.multi_class, "crammer_singer")  # penalty, loss and dual are then ignored
        primal = checks.is_boolean(self.dual) and not self.dual
        legal = checks.legal_in_both(self) | {
            "penalty": checks.is_one_of(self.penalty, "l2", *(["l1"] if joint else [])),
            "loss": checks.is_one_of(self.loss, "hinge", "squared_hinge"),
            "multi_class": joint or checks.is_one_of(self.multi_class, "ovr"),
            "class_weight": self.class_weight is None
            or isinstance(self.class_weight, dict)
            or checks.is_one_of(self.class_weight, "balanced"),
        }
        reason = checks.first_failed(self, legal)
        if reason is None and primal and not joint and self.loss == "hinge":
            return "loss='hinge' with dual=False is an error of scikit-learn"
        return reason

    def _fit_certified(self, X: Any, y: Any, sample_weight: Any) -> str | None:
        # scikit-learn's checks, but float32 and 64-bit indices need no copy here.
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        weights = None if sample_weight is None else checks.row_weights(sample_weight, len(y))
        if sample_weight is not None and weights is None:
            return "sample_weight is not one finite number of at least 0 for each row"
        if len(classes) < 2 or not np.bincount(codes, weights).all():
            return "there are no rows of two classes, each with weight"
        factors = self._class_factors(weights, classes, codes, y)
        if factors is not None and not np.all((factors > 0.0) & (factors < np.inf)):
            return f"class_weight={self.class_weight!r} has factors that are not finite and above 0"
        joint = self.multi_class == "crammer_singer"
        options = certified_options(self) | {"multi_class": self.multi_class}
        if joint:
            options["loss"] = "hinge"
        if joint and len(classes) == 2:
            # The optimum has w_2 = -w_1 = v / 2, and |v|^2 / 4 + C R(v) is half of |v|^2 / 2 + 2 C R(v).
            options["C"] *= 2.0
        try:
            train(self, QuietLinearSVC(**options), X, self._problems(codes, weights, factors))
        except FloatingPointError as error:
            return str(error)
        if joint and len(classes) == 2:
            self.objective_, self.lower_bound_ = self.objective_ / 2.0, self.lower_bound_ / 2.0
        self.classes_ = classes
        return None

    def _class_factors(self, weights: Vector | None, classes: Array, codes: Ints, y: Array) -> Vector | None:
        """The weights of the classes; None: all are 1."""
        if self.class_weight is None:
            return None
        if isinstance(self.class_weight, dict):
            return np.asarray(compute_class_weight(self.class_weight, classes=classes, y=y), dtype=np.float64)
        # "balanced", by weights; older versions of scikit-learn counted the rows.
        sums = np.bincount(codes, weights)
        return np.asarray(sums.sum() / (len(classes) * sums), dtype=np.float64)

    def _problems(
        self, codes: Ints, weights: Vector | None, factors: Vector | None
    ) -> list[tuple[Array, Vector | None]]:
        """Labels and weights of the problems to solve.

        In liblinear's problem of one class against the rest only that class has its factor, and the rest has 1.
        """
        if factors is None:
            return [(codes, weights)]
        weights = np.ones(len(codes)) if weights is None else weights
        if len(factors) == 2 or self.multi_class == "crammer_singer":
            return [(codes, weights * factors[codes])]
        return [((codes == k).astype(np.int64), weights * np.where(codes == k, f, 1.0)) for k, f in enumerate(factors)]


class LinearSVR(FallThrough, svm.LinearSVR):  # type: ignore[misc]
    """`sklearn.svm.LinearSVR`, trained by cutsvm.

    Parameters, attributes and messages are scikit-learn's. It minimises, over w and b,

        F = (|w|^2 + (b / intercept_scaling)^2) / 2 + C sum_i s_i loss(y_i - w.x_i - b)

    with loss(r) = max(0, |r| - epsilon) ("epsilon_insensitive") or max(0, |r| - epsilon)^2
    ("squared_epsilon_insensitive"). It stops where the certified relative gap is tol^2, at most 1e-3, so that
    |w - w*| <= tol sqrt(2 F). `max_iter` limits cutsvm's iterations. The result does not depend on `dual`, and
    `random_state` seeds no more than samples.

    Fits by cutsvm have three more attributes: `objective_`, F at the solution; `lower_bound_`, which no F is below; and
    `gap_`, (objective_ - lower_bound_) / objective_.
    """

    def _refused_parameters(self) -> str | None:
        primal = checks.is_boolean(self.dual) and not self.dual
        legal = checks.legal_in_both(self) | {
            "epsilon": isinstance(self.epsilon, Real) and 0.0 <= float(self.epsilon) < np.inf,
            "loss": checks.is_one_of(self.loss, "epsilon_insensitive", "squared_epsilon_insensitive"),
        }
        reason = checks.first_failed(self, legal)
        if reason is None and primal and self.loss == "epsilon_insensitive":
            return "loss='epsilon_insensitive' with dual=False is an error of scikit-learn"
        return reason

    def _fit_certified(self, X: Any, y: Any, sample_weight: Any) -> str | None:
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
        weights = None if sample_weight is None else checks.row_weights(sample_weight, len(y))
        if sample_weight is not None and weights is None:
            return "sample_weight is not one finite number of at least 0 for each row"
        if weights is not None and not weights.any():
            return "there are no rows with weight"
        if y.dtype.kind not in "iufb":
            return f"y has dtype {y.dtype}"
        options = certified_options(self) | {"epsilon": float(self.epsilon)}
        try:
            train(self, QuietLinearSVR(**options), X, [(np.asarray(y, dtype=np.float64), weights)])
        except FloatingPointError as error:
            return str(error)
        self.coef_ = self.coef_.ravel()
        return None
