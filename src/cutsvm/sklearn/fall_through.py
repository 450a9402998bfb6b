"""A fit by cutsvm or, where it cannot, by scikit-learn."""

from __future__ import annotations

import logging
from typing import Any


class FallThrough:
    """A class of scikit-learn's, to be derived from after this one, whose `fit` is tried by cutsvm first."""

    coef_: Any
    objective_: float
    lower_bound_: float
    gap_: float

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fits the model to rows X with labels or targets y."""
        for name in ("objective_", "lower_bound_", "gap_"):  # of an earlier fit by cutsvm
            vars(self).pop(name, None)
        reason = self._refused_parameters() or self._fit_certified(X, y, sample_weight)
        if reason is not None:
            name = type(self).__name__
            logging.getLogger("cutsvm").info("%s: %s; scikit-learn's own fit follows", name, reason)
            super().fit(X, y, sample_weight)  # type: ignore[misc]
        return self

    def _refused_parameters(self) -> str | None:
        """Why the parameters are left to scikit-learn, to train with or to refuse."""
        raise NotImplementedError

    def _fit_certified(self, X: Any, y: Any, sample_weight: Any) -> str | None:
        """Trains, or returns why these data are left to scikit-learn."""
        raise NotImplementedError
