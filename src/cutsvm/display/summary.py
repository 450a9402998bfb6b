"""A fit summarised for people: its certificate in words, its tolerance, and the work that it took."""

from __future__ import annotations

import math
from typing import Any

# From this gap on the lower bound is below half a percent of the objective, and says next to nothing.
_UNINFORMATIVE_GAP = 0.995


def describe_gap(gap: float) -> str | None:
    """The relative gap g in words, as the excess g / (1 - g) over the optimum; None if it is uninformative."""
    if not (math.isfinite(gap) and gap < _UNINFORMATIVE_GAP):
        return None
    percent = float(f"{100 * gap / (1 - gap):.2g}")
    return f"within {percent:g} % of the best possible objective"


def requested_tol(estimator: Any) -> float | None:
    """The gap at which the fit stops; None if it runs a fixed number of epochs."""
    fixed = estimator._trains_in_epochs and (estimator.epochs != "auto" or not estimator.certify)
    return None if fixed else float(estimator.tol)


def iteration_unit(estimator: Any) -> str:
    """What `n_iter_` of the estimator counts."""
    import numpy as np  # not above: the command line must answer Ctrl-C while it loads

    from cutsvm.io.models.tasks import task_of

    unit = "epoch" if estimator._trains_in_epochs else task_of(estimator).iteration_unit
    return unit if np.array_equal(estimator.n_iter_, 1) else f"{unit}s"


def total_passes(estimator: Any) -> float:
    """Passes over the data, summed over the one-vs-rest problems."""
    last: dict[str, float] = {}
    for record in estimator.history_:
        last[str(record.get("label", ""))] = record["passes"]
    return sum(last.values())


def seconds_before_resume(estimator: Any) -> float:
    """Seconds of the earlier runs whose checkpoint the fit resumed from."""
    if estimator.checkpoint is None:
        return 0.0
    first: dict[str, dict[str, Any]] = {}
    for record in estimator.history_:
        first.setdefault(str(record.get("label", "")), record)
    return float(sum(record["seconds"] for record in first.values() if record["iteration"] > 0))
