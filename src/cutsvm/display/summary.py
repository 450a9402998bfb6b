"""A fit summarised for people: its certificate in words, its tolerance, and the work that it took."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
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


def total_passes(estimator: Any) -> int:
    """Passes over the data, summed over the one-vs-rest problems."""
    return sum(int(records[-1]["passes"]) for records in by_label(estimator.history_).values())


def seconds_before_resume(estimator: Any) -> float:
    """Seconds of the earlier runs whose checkpoint the fit resumed from."""
    if estimator.checkpoint is None:
        return 0.0
    first = [records[0] for records in by_label(estimator.history_).values()]
    return float(sum(record["seconds"] for record in first if record["iteration"] > 0))


def by_label(history: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """The records of each one-vs-rest problem, in their order."""
    problems: dict[str, list[Mapping[str, Any]]] = {}
    for record in history:
        problems.setdefault(str(record.get("label", "")), []).append(record)
    return problems
