"""`cutsvm info`: the contents of a model file or a store."""

from __future__ import annotations

import argparse
import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from cutsvm.cli.data import check_input
from cutsvm.cli.kernel_task import machine_facts, machine_rows
from cutsvm.cli.messages import as_command_error, certificate, first_values, one_line, print_json, print_result
from cutsvm.display.summary import iteration_unit, requested_tol
from cutsvm.io.models.tasks import TASKS

if TYPE_CHECKING:
    from cutsvm.io.models.model_file import SavedModel

__all__ = ["info"]


def info(options: argparse.Namespace) -> int:
    """Print a table, or JSON."""
    from cutsvm.io.models.model_file import load_model

    if os.path.isdir(options.model):
        from cutsvm.cli.store_info import store_info

        return store_info(options.model, json=options.json)
    check_input(options.model)
    with as_command_error(options.model):
        model = load_model(options.model)
        size = os.path.getsize(options.model)
    if options.json:
        print_json({"file": options.model, "bytes": size, **_facts(model)})
    else:
        for line in _table(options.model, size, model):
            print_result(line)
    return 0


def _facts(model: SavedModel) -> dict[str, Any]:
    """All facts, as fields of `--json`."""
    estimator = model.estimator
    names = getattr(estimator, "feature_names_in_", None)
    results = {key: getattr(estimator, f"{key}_", None) for key in ("objective", "lower_bound", "gap", "n_iter")}
    status = getattr(estimator, "status_", None)
    settings = ("C", "multi_class", "fit_intercept", "intercept", "class_weight", "threshold_loss")
    fitted = ("classes", "thresholds", "n_pairs", "n_queries", "n_skipped_queries")
    return {
        "format": model.format,
        "version": model.version,
        "task": model.task,
        **{key: getattr(estimator, f"{key}_") for key in fitted if hasattr(estimator, f"{key}_")},
        "features": estimator.n_features_in_,
        **(machine_facts(estimator) if TASKS[model.task].has_kernel else _weight_facts(estimator)),
        **{key: getattr(estimator, key) for key in settings if hasattr(estimator, key)},
        "tol": requested_tol(estimator),
        "solver": str(estimator.solver),
        **results,
        "converged": getattr(estimator, "converged_", None),
        "status": None if status is None else status.value,
        "zero_based": model.zero_based,
        "compacted": model.feature_ids is not None,
        "feature_names": None if names is None else list(names),
    }


def _weight_facts(estimator: Any) -> dict[str, Any]:
    weights = {"nonzero_weights": int(np.count_nonzero(estimator.coef_)), "dtype": str(estimator.coef_.dtype)}
    return {**weights, "intercepts": estimator.intercept_}


def _table(path: str, size: int, model: SavedModel) -> list[str]:
    """The most important facts, in two columns."""
    facts, task = _facts(model), TASKS[model.task]
    rows = [
        ("file", f"{path} ({size:,} bytes)"),
        ("format", model.format if model.version is None else f"cutsvm, written by version {model.version}"),
        ("task", model.task),
        *([("classes", first_values(facts["classes"].tolist()))] if "classes" in facts else []),
        ("features", f"{facts['features']:,}, counted from {_base(model)}"),
    ]
    if task.has_kernel:
        rows += machine_rows(model.estimator)
    else:
        rows.append(("weights", f"{facts['nonzero_weights']:,} not zero, {facts['dtype']}"))
    if "thresholds" in facts:
        rows.append(("thresholds", first_values(facts["thresholds"].tolist())))
    elif task.has_classes and not task.has_kernel:
        rows.append(("intercept", _intercept(facts)))
    if "n_pairs" in facts:
        rows.append(("pairs", _pairs(facts)))
    if facts["feature_names"] is not None:
        rows.append(("names", first_values(facts["feature_names"])))
    if model.format == "cutsvm":
        rows += _fit_rows(facts, iteration_unit(model.estimator))
    width = max(len(key) for key, _ in rows)
    return [f"{key:<{width}}  {one_line(value)}" for key, value in rows]


def _fit_rows(facts: dict[str, Any], unit: str) -> list[tuple[str, str]]:
    """Parameters of the fit, and its certificate."""
    gap = facts["gap"]
    gap = math.nan if gap is None else float(np.max(gap))
    work = f"{facts['solver']}, {first_values(_list(facts['n_iter']))} {unit}"
    rows = [("C", f"{facts['C']:g}"), ("solver", work)]
    if facts.get("class_weight"):
        rows.append(("class weight", str(facts["class_weight"])))
    return [
        *rows,
        ("objective", first_values(_list(facts["objective"]))),
        ("lower bound", first_values(_list(facts["lower_bound"]))),
        ("certificate", certificate(gap, facts["tol"])),
        ("status", facts["status"] or "unknown"),
    ]


def _list(value: Any) -> list[Any]:
    return list(np.atleast_1d(value).tolist())


def _base(model: SavedModel) -> str:
    if model.zero_based is None:
        return "the first column (not trained from a file)"
    only = "" if model.feature_ids is None else ", only those seen in training"
    return f"{0 if model.zero_based else 1}{only}"


def _pairs(facts: dict[str, Any]) -> str:
    text = f"{facts['n_pairs']:,.10g}"
    if "n_queries" in facts:
        text += f" of {facts['n_queries']:,} queries, {facts['n_skipped_queries']:,} of them without a pair"
    return text


def _intercept(facts: dict[str, Any]) -> str:
    if facts.get("fit_intercept") is None:
        return f"{first_values(_list(facts['intercepts']))} (where the training error is lowest)"
    if not facts["fit_intercept"]:
        return "none"
    kind = {"free": "not regularised", "regularized": "regularised"}.get(facts["intercept"], "")
    return f"{first_values(_list(facts['intercepts']))} ({kind})"
