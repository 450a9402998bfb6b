"""`cutsvm path`: one fit for each C, as a table and a curve; with -v the best C by cross-validation."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import ExitStack
from typing import Any

import numpy as np

from cutsvm._utils.types import Array
from cutsvm.cli.chart import bar_chart
from cutsvm.cli.cluster_option import ClusterData, check_cluster, describe_traffic, on_cluster, uses_cluster
from cutsvm.cli.data import as_labels, as_targets, check_picture, write_figure
from cutsvm.cli.liblinear_types import describe_type
from cutsvm.cli.messages import CommandError, Messages, as_command_error, print_json, print_result
from cutsvm.cli.tasks import build_estimator, class_weight, validate_options
from cutsvm.cli.train import (
    check_discrete,
    check_format,
    check_model_output,
    describe_data,
    labels_of,
    read_data,
    write_model,
)
from cutsvm.cli.validate import splitter
from cutsvm.cli.validate_on_disk import describe_reads
from cutsvm.display.summary import total_passes
from cutsvm.estimators.path_cv import Chooser
from cutsvm.io.dataset import Dataset
from cutsvm.io.models.tasks import load


def path(options: argparse.Namespace) -> int:
    """Read the data, fit a path over C, show the table and the curve."""
    messages = Messages(quiet=options.quiet)
    check_cluster(options, folds=True)
    if options.task.path is None:  # only -s can state such a task
        raise CommandError(f"-s {options.type} is --task {options.task}, which has no path over C")
    validate_options(options)
    if options.type is not None:
        messages.note(describe_type(options))
    inputs = [options.data, *options.also]
    if options.plot is not None:
        check_picture("--plot", options.plot, inputs, (".png", ".svg", ".pdf"))
    if options.model is not None:
        if options.folds is None:
            raise CommandError("--model writes the model with the best C, which -v FOLDS finds: add -v")
        check_model_output(options.model, inputs)
    elif options.format is not None:
        raise CommandError("--format applies to the file of --model: add --model")
    options.format = options.format or "cutsvm"
    if options.metric is not None:
        if options.scoring is not None:
            raise CommandError("--metric and --scoring both say what to maximise: leave one of them out")
        options.scoring = None if options.metric.kind == "pairs" else options.metric.name
    for name in ("metric", "scoring"):
        if options.folds is None and getattr(options, name) is not None:
            raise CommandError(f"--{name} is the score of -v FOLDS: add -v")
    with ExitStack() as stack:
        return _path(options, inputs, messages, stack)


def _path(options: argparse.Namespace, inputs: list[str], messages: Messages, stack: ExitStack) -> int:
    task = options.task
    data: Dataset | ClusterData
    if uses_cluster(options):
        stack.enter_context(messages.forwarded_logs())
        data = stack.enter_context(on_cluster(options, inputs, messages))
        y, classes = None, data.classes
    else:
        with messages.forwarded_logs():
            data = read_data(options, inputs, stack)
        y, classes = _labels(options, data)
    if not task.has_targets and len(classes) < 2 and (task.has_classes or isinstance(data, Dataset)):
        raise CommandError(f"{data.source}: all labels are {classes[0]}, expected two or more of them")
    check_format(options, data, classes)
    check_discrete(task, data, classes)
    about = data.describe(task) if isinstance(data, ClusterData) else describe_data(task, data, classes)
    messages.note(f"{data.source}: {about}")
    with as_command_error(options.data), messages.collecting_warnings():
        models, chooser, seconds = _fit(options, data, y, classes)
        if y is None and task.has_classes:
            for model in models:
                model.classes_ = as_labels(model.classes_)  # a store holds numbers as float64
    if options.model is not None and chooser is not None:
        best = models[_place(models, chooser)]
        messages.note(f"model: {write_model(best, options.model, data, options)}")
    if options.json:
        print_json(_json_fields(options, data, models, chooser, seconds))
    elif not options.quiet:
        _show(options, models, chooser, seconds)
        if isinstance(data, ClusterData):
            print_result(describe_traffic((chooser or models[0]).cluster_))
    if options.find_cost and chooser is not None and not options.json:
        print_result(_best(options, models, chooser))
    if options.plot is not None:
        _draw(options, models, chooser)
    return 0


def _labels(options: argparse.Namespace, data: Dataset) -> tuple[Array | None, Array]:
    """The labels of all rows, None if the fits read them from a store, and the distinct ones if they are classes."""
    if options.memory is not None:
        return labels_of(options, data)
    y = as_targets(data, options.task) if options.task.has_targets else as_labels(data.y)
    return y, np.empty(0) if options.task.has_targets else np.unique(y)


def _fit(
    options: argparse.Namespace, data: Dataset | ClusterData, y: Array | None, classes: Array
) -> tuple[list[Any], Chooser | None, float]:
    """The models, with -v the cross-validation that chose one of them, and the seconds it took."""
    estimator = build_estimator(options, class_weight(options, classes))
    params = estimator.get_params(deep=False)
    for name in ("C", "checkpoint"):
        del params[name]
    given_rows, extra = _given(options, data, y)
    began = time.perf_counter()
    if options.folds is None:
        given = {"estimator": estimator} if options.task.path_takes_estimator else params
        models = load(options.task.path)(*given_rows, Cs=options.Cs, **extra, **given)
        return list(models), None, time.perf_counter() - began
    # The folds of `train -v`: shuffled with a fixed seed; queries stay whole.
    cv: Any = options.folds
    if not options.task.has_queries and not isinstance(data, ClusterData):
        cv = splitter(options)
    chooser = load(options.task.cv_estimator)(options.Cs, cv=cv, scoring=options.scoring, **params)
    chooser.fit(*given_rows, **extra)
    return chooser.path_, chooser, time.perf_counter() - began


def _given(
    options: argparse.Namespace, data: Dataset | ClusterData, y: Array | None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Rows and labels for a fit, and weights and queries. Rows that stay on disk or in parts have all of these."""
    if isinstance(data, ClusterData):
        return (data.parts,), {}
    if options.memory is not None:
        return (data if y is None else data.with_labels(y),), {}
    extra: dict[str, Any] = {"qid": data.qid} if options.task.has_queries else {}
    if data.weights is not None:
        extra["sample_weight"] = data.weights
    return (data.X, y), extra


def _norm(model: Any) -> float:
    return float(np.linalg.norm(model.coef_))


def _show(options: argparse.Namespace, models: list[Any], chooser: Chooser | None, seconds: float) -> None:
    """A line for each C, then the curve."""
    score = "" if chooser is None else f"{_score_name(options):>18}"
    print_result(f"  {'C':>10}{score}  {'gap':>8}  {'|w|':>10}  {'objective':>12}  {'passes':>6}")
    for k, model in enumerate(models):
        chosen = chooser is not None and model.C == chooser.C_
        mean = ""
        if chooser is not None:
            own = chooser.scores_[:, k]
            mean = f"{np.nanmean(own):10.4f} +-{np.nanstd(own):6.4f}"
        numbers = f"{model.gap_:8.1e}  {_norm(model):10.4g}  {model.objective_:12.6g}  {total_passes(model):6g}"
        print_result(f"{'*' if chosen else ' '} {model.C:10.4g}{mean}  {numbers}")
    print_result("")
    print_result("\n".join(_chart(models, chooser)))
    worst = max(model.gap_ for model in models)
    what = f"{len(models)} C" + ("" if chooser is None else f" in {len(chooser.scores_)} folds and on all rows")
    print_result(f"{what}: every gap at most {worst:.1e}, {seconds:.2f} s")
    if chooser is not None and hasattr(chooser, "reads_"):
        print_result(describe_reads(chooser))
    if chooser is not None and not options.find_cost:
        edge = " (at the end of the range: try a wider one)" if chooser.C_ in (models[0].C, models[-1].C) else ""
        print_result(f"best: C = {chooser.C_:.6g}{edge}")


def _best(options: argparse.Namespace, models: list[Any], chooser: Chooser) -> str:
    """The last line of LIBLINEAR's `train -C`."""
    mean, name = np.nanmean(chooser.scores_[:, _place(models, chooser)]), _score_name(options)
    shown = f"{mean:g}" if options.task.has_targets or options.scoring else f"{100 * mean:g}%"
    return f"Best C = {chooser.C_:g}  CV {name} = {shown}"


def _place(models: list[Any], chooser: Chooser) -> int:
    return [model.C for model in models].index(chooser.C_)


def _score_name(options: argparse.Namespace) -> str:
    return str(options.scoring or options.task.score_name)


def _chart(models: list[Any], chooser: Chooser | None) -> list[str]:
    """The mean score, or without folds |w| on a logarithmic scale."""
    encoding = getattr(sys.stdout, "encoding", None)
    names = [f"{model.C:.3g}" for model in models]
    if chooser is None:
        lengths = np.log10([max(_norm(model), 1e-300) for model in models])
        return ["|w|", *bar_chart(lengths.tolist(), names, scale=lambda power: f"{10**power:.1e}", encoding=encoding)]
    with np.errstate(invalid="ignore"):
        means = np.nanmean(chooser.scores_, axis=0).tolist()
    marked = _place(models, chooser)
    return bar_chart(means, names, scale=lambda value: f"{value:.4f}", mark=marked, encoding=encoding)


def _json_fields(
    options: argparse.Namespace,
    data: Dataset | ClusterData,
    models: list[Any],
    chooser: Chooser | None,
    seconds: float,
) -> dict[str, Any]:
    """The fields of `--json`."""
    facts = {"task": options.task.name, "data": [options.data, *options.also], "rows": data.shape[0]}
    numbers = {name: [getattr(model, f"{name}_") for model in models] for name in ("objective", "lower_bound", "gap")}
    more: dict[str, Any] = {
        "norm": [_norm(model) for model in models],
        "converged": [bool(model.converged_) for model in models],
    }
    chosen: dict[str, Any] = {}
    if chooser is not None:
        chosen = {"C": chooser.C_, "scoring": options.scoring, "scores": chooser.scores_, "fold_gaps": chooser.gaps_}
        chosen["mean_scores"] = np.nanmean(chooser.scores_, axis=0)
        if hasattr(chooser, "reads_"):
            chosen |= {"passes": chooser.reads_.passes, "passes_requested": chooser.reads_.requested_passes}
    if isinstance(data, ClusterData):
        more["cluster"] = (chooser or models[0]).cluster_
    return {**facts, "Cs": [model.C for model in models], **chosen, **numbers, **more, "seconds": seconds}


def _draw(options: argparse.Namespace, models: list[Any], chooser: Chooser | None) -> None:
    from matplotlib.figure import Figure

    from cutsvm.plotting import PathDisplay

    figure = Figure(figsize=(7.2, 6.4), layout="constrained", dpi=150)  # without pyplot: it needs no window system
    axes = figure.subplots(2 if chooser is None else 3, 1, sharex=True)
    PathDisplay.from_estimator(models if chooser is None else chooser, ax=axes, score_name=_score_name(options))
    write_figure(options.plot, figure)
    Messages(quiet=options.quiet).note(f"picture: {options.plot}")
