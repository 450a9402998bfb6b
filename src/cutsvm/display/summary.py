"""What a fit has come to, for people: the certificate in words, how it ended, and what it took."""

from __future__ import annotations

import math
from typing import Any

NOTHING = 0.995  # a gap that is shown as 1: the best objective may be a hundredth of this one, or any part of it

__all__ = ["earlier", "ending", "goal", "passes", "rounds", "stochastic", "within"]


def within(gap: float) -> str | None:
    """The gap in words, None if it proves next to nothing. It is a share of the objective, in words one of the best."""
    if not (math.isfinite(gap) and gap < NOTHING):
        return None
    percent = float(f"{100 * gap / (1 - gap):.2g}")
    return f"within {percent:g} % of the best possible objective"


def stochastic(estimator: Any) -> bool:
    """Whether it was trained by stochastic gradient steps, in epochs."""
    from cutsvm.io.models.model_file import task_of
    from cutsvm.kernel_machines import SGD

    return task_of(estimator) == "kernel" and (estimator.solver == "sgd" or isinstance(estimator.solver, SGD))


def goal(estimator: Any) -> float | None:
    """The gap that a fit is to reach; None: it is to do a number of epochs."""
    only_epochs = stochastic(estimator) and (estimator.epochs != "auto" or not estimator.certify)
    return None if only_epochs else float(estimator.tol)


def ending(estimator: Any) -> str:
    """How the fit ended."""
    return str(estimator.status_.value)


def rounds(estimator: Any) -> str:
    """What `n_iter_` of the estimator counts."""
    import numpy as np  # not above: the command line is to answer Ctrl-C at once

    kind = "iteration"
    if hasattr(estimator, "dual_coef_"):
        kind = "epoch" if stochastic(estimator) else "round"
    return kind if np.array_equal(estimator.n_iter_, 1) else f"{kind}s"


def passes(estimator: Any) -> float:
    """Passes over the data, of all one-vs-rest problems together."""
    last: dict[str, float] = {}
    for record in estimator.history_:
        last[str(record.get("label", ""))] = record["passes"]
    return sum(last.values())


def earlier(estimator: Any) -> float:
    """Seconds of the runs that this one has gone on from; kernel machines have no checkpoints."""
    if hasattr(estimator, "dual_coef_"):
        return 0.0
    first: dict[str, dict[str, Any]] = {}
    for record in estimator.history_:
        first.setdefault(str(record.get("label", "")), record)
    return float(sum(record["seconds"] for record in first.values() if record["iteration"] > 0))
