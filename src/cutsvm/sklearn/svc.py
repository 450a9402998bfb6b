"""SVC with scikit-learn's signature."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from sklearn import svm
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from cutsvm.sklearn import checks
from cutsvm.sklearn.fall_through import FallThrough
from cutsvm.sklearn.screening import possible_support


class SVC(FallThrough, svm.SVC):  # type: ignore[misc]
    """`sklearn.svm.SVC`: the fit is scikit-learn's own, with a linear kernel without rows that cannot matter.

    For other kernels `cutsvm.KernelSVC` minimises the same objective, and its `to_sklearn` gives a fitted SVC.

    With `kernel="linear"`, two classes and 2,000 rows or more, a certified fit proves which rows have a margin above 1
    at the optimum. They are no support vectors, and scikit-learn fits the others: the solution is the same, in less
    time.
    """

    support_: Any
    _least_rows = 2000

    def _refused_parameters(self) -> str | None:
        legal = {
            "kernel": checks.is_one_of(self.kernel, "linear"),
            "C": checks.is_positive(self.C),
            "max_iter": checks.is_whole(self.max_iter, -1) and int(self.max_iter) == -1,
            # Of "balanced" the weights would be those of the rows that are left.
            "class_weight": self.class_weight is None or isinstance(self.class_weight, dict),
            "probability": not checks.is_boolean(self.probability) or not self.probability,
        }
        return checks.first_failed(self, legal)

    def _fit_certified(self, X: Any, y: Any, sample_weight: Any) -> str | None:
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, order="C", accept_large_sparse=False)
        check_classification_targets(y)
        rows = len(y)
        if rows < self._least_rows:
            return f"{rows:,} rows are few"
        names = vars(self).get("feature_names_in_")
        classes, codes = np.unique(y, return_inverse=True)
        weights = checks.row_weights(1.0 if sample_weight is None else sample_weight, rows)
        if weights is None or len(classes) != 2 or not np.bincount(codes, weights).all():
            return "there are not two classes, each with weights of at least 0"
        factors = np.array([float((self.class_weight or {}).get(label, 1.0)) for label in classes.tolist()])
        if not np.all((factors > 0.0) & (factors < np.inf)):
            return f"class_weight={self.class_weight!r} has factors that are not finite and above 0"
        try:
            possible = possible_support(X, np.where(codes == 1, 1.0, -1.0), weights * factors[codes], float(self.C))
        except FloatingPointError as error:
            return str(error)
        left = np.flatnonzero(possible)
        text = "%s: %s of %s rows are proven to be no support vectors; scikit-learn's own fit of the others follows"
        logging.getLogger("cutsvm").info(text, type(self).__name__, f"{rows - len(left):,}", f"{rows:,}")
        svm.SVC.fit(self, X[left], y[left], None if sample_weight is None else weights[left])
        self.support_ = left[self.support_].astype(self.support_.dtype)
        self.shape_fit_ = X.shape
        if names is not None:
            self.feature_names_in_ = names
        return None
