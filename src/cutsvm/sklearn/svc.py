"""SVC with scikit-learn's signature."""

from __future__ import annotations

from typing import Any

from sklearn import svm

from cutsvm.sklearn.fall_through import FallThrough


class SVC(FallThrough, svm.SVC):  # type: ignore[misc]
    """`sklearn.svm.SVC`: every fit is scikit-learn's own, and a line in the log says so.

    `predict` of an SVC needs libsvm's dual vector with its intercepts, in attributes that are private to scikit-learn.
    `cutsvm.KernelSVC` has no free intercept and no sample weights yet, so it minimises another objective.
    """

    def _refused_parameters(self) -> str | None:
        return "cutsvm has no solver for a kernel machine with a free intercept"

    def _fit_certified(self, X: Any, y: Any, sample_weight: Any) -> str | None:
        return None
