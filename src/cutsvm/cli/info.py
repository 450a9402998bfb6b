"""`cutsvm info`: the contents of a model file or a store."""

from __future__ import annotations

import argparse
import math
import os
from typing import Any

import numpy as np

from cutsvm._utils.memory import format_bytes
from cutsvm._utils.validation import distinct
from cutsvm.cli.data import check_input
from cutsvm.cli.messages import as_command_error, certificate, first_values, one_line, print_json, print_result
from cutsvm.display.summary import iteration_unit, requested_tol
from cutsvm.io.models.model_file import SavedModel, load_model
from cutsvm.io.models.tasks import TASKS
from cutsvm.io.preprocessing import Preprocessing
from cutsvm.io.store.store import Store

_OBJECTIVE = ("loss", "epsilon", "quantile", "nu")  # parameters of the objective besides C
_MAX_CLASSES = 8  # whose support vectors are counted


def info(options: argparse.Namespace) -> int:
    """Print a table, or JSON."""
    path = options.model
    store = os.path.isdir(path)
    if not store:
        check_input(path)
    with as_command_error(path):
        if store:
            facts = store_facts(path)
            lines = _store_table(path, facts)
        else:
            model, size = load_model(path), os.path.getsize(path)
            facts = {"file": path, "bytes": size, **model_facts(model)}
            lines = model_table(path, size, model)
    if options.json:
        print_json(facts)
    else:
        print_result("\n".join(lines))
    return 0


def _lines(rows: list[tuple[str, str]]) -> list[str]:
    """Names and values in two columns."""
    width = max(len(key) for key, _ in rows)
    return [f"{key:<{width}}  {one_line(value)}" for key, value in rows]


def _store_table(path: str, facts: dict[str, Any]) -> list[str]:
    base, deleted = facts["zero_based"], facts["deleted"]
    return _lines(
        [
            ("store", f"{path} ({facts['bytes']:,} bytes in {facts['blocks']:,} blocks)"),
            ("format", f"cutsvm store, written by version {facts['version']}"),
            ("source", facts["source"]),
            ("rows", f"{facts['rows']:,}" + (f", and {deleted:,} deleted ones on disk" if deleted else "")),
            ("features", f"{facts['features']:,}" + ("" if base is None else f", counted from {0 if base else 1}")),
            ("values", f"{facts['entries']:,} {facts['dtype']}, {facts['layout']}"),
            ("labels", first_values(facts["classes"])),
            ("also", ", ".join(facts["also"]) or "no weights, no queries"),
            *([("names", first_values(facts["feature_names"]))] if facts["feature_names"] else []),
            ("checked", "every block has its length and checksum"),
            *((f"version {change['version']}", _change(change)) for change in facts["history"]),
        ]
    )


def _change(change: dict[str, Any]) -> str:
    when = f"{change['time']}: " if change["time"] else ""
    return f"{when}{change['action']}, {change['rows']:,} rows then ({change['what']})"


def store_facts(path: str) -> dict[str, Any]:
    """The contents of a store, every file of it read and checked."""
    store = Store(path)
    manifest = store.manifest
    for number in range(len(manifest.blocks)):
        store.read(number)
    return {
        "store": path,
        "format": "cutsvm-store",
        "version": manifest.made_by,
        **{name: getattr(manifest, name) for name in ("source", "rows", "features", "entries", "layout", "zero_based")},
        "dtype": str(np.dtype(manifest.dtype)),
        "bytes": manifest.size_on_disk,
        "deleted": manifest.all_rows - manifest.rows,
        "blocks": len(manifest.blocks),
        "block_bytes": format_bytes(manifest.size / len(manifest.blocks)),
        "classes": distinct(store.y).tolist(),
        "also": [name for name in ("weights", "qid") if name in manifest.parts],
        "largest_norm": float(np.sqrt(store.squares.max())),
        "feature_names": store.feature_names,
        "history": [{"version": number, **vars(change)} for number, change in enumerate(manifest.history, start=1)],
        "preprocessing": manifest.preprocessing,
    }


def model_facts(model: SavedModel) -> dict[str, Any]:
    """All facts, as fields of `--json`."""
    estimator = model.estimator
    names = getattr(estimator, "feature_names_in_", None)
    results = {key: getattr(estimator, f"{key}_", None) for key in ("objective", "lower_bound", "gap", "n_iter")}
    status = getattr(estimator, "status_", None)
    settings = ("C", *_OBJECTIVE, "multi_class", "fit_intercept", "intercept", "class_weight", "threshold_loss")
    fitted = ("classes", "thresholds", "n_pairs", "n_queries", "n_skipped_queries")
    if TASKS[model.task].has_kernel:
        own = machine_facts(estimator)
    else:
        own = {"nonzero_weights": int(np.count_nonzero(estimator.coef_)), "dtype": str(estimator.coef_.dtype)}
        own["intercepts"] = estimator.intercept_
    return {
        "format": model.format,
        "version": model.version,
        "task": model.task,
        **{key: getattr(estimator, f"{key}_") for key in fitted if hasattr(estimator, f"{key}_")},
        "features": estimator.n_features_in_,
        **own,
        **{key: getattr(estimator, key) for key in settings if hasattr(estimator, key)},
        "tol": requested_tol(estimator),
        "solver": str(estimator.solver),
        **results,
        "converged": getattr(estimator, "converged_", None),
        "status": None if status is None else status.value,
        "zero_based": model.zero_based,
        "compacted": model.feature_ids is not None,
        "feature_names": None if names is None else list(names),
        "label": model.label,
        "preprocessing": None if model.preprocessing is None else model.preprocessing.to_dict(),
    }


def model_table(path: str, size: int, model: SavedModel) -> list[str]:
    """The most important facts, in two columns."""
    facts, task = model_facts(model), TASKS[model.task]
    rows = [
        ("file", f"{path} ({size:,} bytes)"),
        ("format", model.format if model.version is None else f"cutsvm, written by version {model.version}"),
        ("task", model.task),
        *([("classes", first_values(facts["classes"].tolist()))] if "classes" in facts else []),
        ("features", f"{facts['features']:,}, {_base(model)}"),
    ]
    if task.has_kernel:
        rows += machine_rows(model.estimator)
    else:
        rows.append(("weights", f"{facts['nonzero_weights']:,} not zero, {facts['dtype']}"))
    if "thresholds" in facts:
        rows.append(("thresholds", first_values(facts["thresholds"].tolist())))
    elif (task.has_classes or "fit_intercept" in facts) and not task.has_kernel:
        rows.append(("intercept", _intercept(facts)))
    elif not task.needs_labels:
        rows.append(("threshold", f"{float(model.estimator.offset_[0]):.10g}, below which rows are outliers"))
    if "n_pairs" in facts:
        rows.append(("pairs", _pairs(facts)))
    if facts["feature_names"] is not None:
        rows.append(("names", first_values(facts["feature_names"])))
    if model.label is not None:
        rows.append(("label", f"column {model.label!r}"))
    if model.preprocessing is not None:
        rows.append(("preprocessing", shown_preprocessing(model.preprocessing)))
    if "loss" in facts:
        rows.append(("loss", facts["loss"]))
    if model.format == "cutsvm":
        rows += _fit_rows(facts, iteration_unit(model.estimator))
    return _lines(rows)


def shown_preprocessing(found: Preprocessing) -> str:
    """The columns of the table by kind, and what is done to them."""
    kinds = [column.kind for column in found.columns]
    parts = [f"{kinds.count(kind)} of {kind}s" for kind in ("number", "date", "text") if kind in kinds]
    texts = [column for column in found.columns if column.kind == "text"]
    if texts:
        parts[-1] += f" ({sum(len(column.categories) for column in texts):,} categories)"
    scaled = sum(column.kind != "text" and (column.shift, column.scale) != (0.0, 1.0) for column in found.columns)
    filled = sum(column.fill is not None for column in found.columns)
    done = [f"{scaled} scaled"] * bool(scaled) + [f"missing values of {filled} filled in"] * bool(filled)
    return f"{len(kinds)} columns: {', '.join(parts)}" + (f"; {', '.join(done)}" if done else "")


def _fit_rows(facts: dict[str, Any], unit: str) -> list[tuple[str, str]]:
    """Parameters of the fit, and its certificate."""
    gap = facts["gap"]
    gap = math.nan if gap is None else float(np.max(gap))
    work = f"{facts['solver']}, {first_values(_list(facts['n_iter']))} {unit}"
    rows = [(name, f"{facts[name]:g}") for name in ("C", *_OBJECTIVE[1:]) if name in facts]
    rows.append(("solver", work))
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
    if model.preprocessing is not None:
        return "made of the columns of a table"
    if model.zero_based is None:
        return "counted from the first column (not trained from a file)"
    only = "" if model.feature_ids is None else ", only those seen in training"
    return f"counted from {0 if model.zero_based else 1}{only}"


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


def machine_facts(estimator: Any) -> dict[str, Any]:
    """Kernel parameters and support vectors of a fitted machine, as fields of `--json`."""
    own = {"rbf": ("gamma_",), "poly": ("gamma_", "degree", "coef0"), "sigmoid": ("gamma_", "coef0")}
    used = own.get(estimator.kernel, ())
    sgd = ("average", "random_state") if estimator._trains_in_epochs else ()
    numbers = {name.rstrip("_"): getattr(estimator, name) for name in (*used, *sgd)}
    return {"kernel": estimator.kernel, **numbers, "n_support": estimator.n_support_}


def machine_rows(estimator: Any) -> list[tuple[str, str]]:
    """The same as rows of two columns."""
    facts = machine_facts(estimator)
    words = [f"{name} {facts[name]:.6g}" for name in ("gamma", "degree", "coef0") if name in facts]
    if "gamma" in facts and isinstance(estimator.gamma, str):
        words[0] += f" ({estimator.gamma})"
    counts = estimator.n_support_.tolist()
    classes = getattr(estimator, "classes_", np.empty(0)).tolist()
    of_classes = [f"{n:,} of {label!r}" for label, n in zip(classes, counts, strict=False)]
    shown = ", ".join(of_classes[:_MAX_CLASSES]) + (", ..." if len(of_classes) > _MAX_CLASSES else "")
    vectors = estimator.support_vectors_
    kind = f"{'sparse' if hasattr(vectors, 'indptr') else 'dense'} {vectors.dtype}"
    return [
        ("kernel", ", ".join([estimator.kernel, *words])),
        ("support", f"{sum(counts):,} vectors, {kind}" + (f": {shown}" if shown else "")),
    ]
