"""`cutsvm train -v`: accuracy by cross-validation."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cutsvm.cli.messages import Messages, collected_warnings, failures_in_words, print_json, result

if TYPE_CHECKING:
    from cutsvm.linear import LinearSVC

__all__ = ["cross_validate"]


def cross_validate(options: argparse.Namespace, estimator: LinearSVC, X: Any, y: npt.NDArray[Any]) -> int:
    """Train on all folds but one, predict that one; print the accuracy over all rows as LIBLINEAR does."""
    from sklearn.base import clone
    from sklearn.model_selection import StratifiedKFold

    say = Messages(quiet=options.quiet)
    folds = StratifiedKFold(n_splits=options.folds, shuffle=True, random_state=0)
    predicted = np.empty_like(y)
    gaps = []
    with failures_in_words(options.data), collected_warnings() as caught:
        for number, (inside, outside) in enumerate(folds.split(X, y), start=1):
            model = clone(estimator).fit(X[inside], y[inside])
            if model.status_.name == "INTERRUPTED":
                # The fit keeps its best model on Ctrl-C; here that must end the whole validation.
                raise KeyboardInterrupt
            predicted[outside] = model.predict(X[outside])
            gaps.append(float(np.max(model.gap_)))
            share = 100 * np.mean(predicted[outside] == y[outside])
            say.note(f"fold {number} of {options.folds}: accuracy {share:.4g}%, gap {gaps[-1]:.1e}")
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        say.warn(text)
    correct = int(np.sum(predicted == y))
    if options.json:
        facts = {"rows": len(y), "correct": correct, "folds": options.folds, "gaps": gaps, "C": options.cost}
        print_json({"cross_validation_accuracy": correct / len(y), **facts, "data": options.data})
    else:
        result(f"Cross Validation Accuracy = {100 * correct / len(y):g}%")
    return 0
