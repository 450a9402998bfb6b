"""`cutsvm train`: a data file in, a model file and a certificate out."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from contextlib import ExitStack
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cutsvm._utils.memory import parse_limit
from cutsvm._utils.text import printable
from cutsvm._utils.types import Array
from cutsvm.cli.cluster_option import ClusterData, check_cluster, describe_traffic, on_cluster, uses_cluster
from cutsvm.cli.data import as_labels, as_targets, check_output, read_rows
from cutsvm.cli.find_cost import find_cost
from cutsvm.cli.info import machine_facts
from cutsvm.cli.inputs import check_inputs, column_options, default_model
from cutsvm.cli.liblinear_types import describe_type, one_vs_rest
from cutsvm.cli.messages import (
    CommandError,
    Messages,
    as_command_error,
    certificate,
    one_line,
    print_json,
    print_result,
)
from cutsvm.cli.report_option import check_report, write_report
from cutsvm.cli.tasks import build_estimator, class_weight, paper_of, validate_options
from cutsvm.cli.valid_option import check_valid, evaluate_valid, valid_fields
from cutsvm.cli.validate import cross_validate
from cutsvm.cli.validate_on_disk import cross_validate_on_disk, refuse_folds_on_disk
from cutsvm.display.callbacks import ProgressBar
from cutsvm.display.summary import iteration_unit, requested_tol, seconds_before_resume, total_passes
from cutsvm.driver.checkpoint import kept_files
from cutsvm.driver.checkpoint_file import check_path
from cutsvm.estimators._base import Certified
from cutsvm.io.dataset import Dataset, StoredDataset
from cutsvm.io.models.liblinear import check_writable
from cutsvm.io.models.model_file import check_liblinear, is_model_file, save_model
from cutsvm.io.models.tasks import Task, task_of
from cutsvm.io.store.convert import as_store

_SETTINGS = ("C", "loss", "epsilon", "quantile", "nu")  # fields of --json


def train(options: argparse.Namespace) -> int:
    """Read the data, train, write the model, and print its certificate; with -C find the best C."""
    check_cluster(options)
    if options.find_cost:
        return find_cost(options)
    messages = Messages(quiet=options.quiet)
    validate_options(options)
    if options.type is not None:
        messages.note(describe_type(options))
    inputs = [options.data, *options.also]
    options.format = options.format or "cutsvm"
    target = options.model or ("" if options.folds is not None else default_model(options.data))
    if options.folds is None:
        check_model_output(target, inputs)
    if options.keep_checkpoint and options.checkpoint is None:
        raise CommandError("--keep-checkpoint: of which file? --checkpoint FILE says it")
    if options.checkpoint is not None:
        _check_checkpoint(options, target)
    if options.report is not None:
        check_report(options, target, inputs)
    check_valid(options)
    with ExitStack() as stack:
        if options.keep_checkpoint:
            stack.enter_context(kept_files())
        return _train(options, inputs, target, messages, stack)


def _train(options: argparse.Namespace, inputs: list[str], target: str, messages: Messages, stack: ExitStack) -> int:
    task = options.task
    began = time.perf_counter()
    data: Dataset | ClusterData
    y: Array | None = None
    with messages.forwarded_logs():
        if uses_cluster(options):
            data = stack.enter_context(on_cluster(options, inputs, messages))
            classes = data.classes
        else:
            data = read_data(options, inputs, stack)
            y, classes = labels_of(options, data)
    reading = time.perf_counter() - began
    _check_classes(options, data, classes)
    if options.folds is None:
        check_format(options, data, classes)
    check_discrete(task, data, classes)
    about = data.describe(task) if isinstance(data, ClusterData) else describe_data(task, data, classes)
    messages.note(f"{data.source}: {about}, read in {reading:.2f} s")
    estimator = build_estimator(options, class_weight(options, classes), data.shape[0])
    if (paper := paper_of(options)) is not None:
        paper.check_classes(options, len(classes))
        messages.note(f"as in {paper.citation}: {one_line(repr(estimator))}")
    if options.folds is not None and isinstance(data, StoredDataset) and options.memory is not None:
        return cross_validate_on_disk(options, estimator, data, y)
    if options.folds is not None and y is not None and isinstance(data, Dataset):
        return cross_validate(options, estimator, data, y)
    if isinstance(data, StoredDataset) and estimator._trains_from_disk:
        with as_command_error(data.source):
            messages.note(f"training {estimator._memory_plan(data.store).description}")
    seconds = fit_with_progress(estimator, messages, _rows(data, y))
    if task.has_classes:
        estimator.classes_ = as_labels(estimator.classes_)  # a store holds numbers as float64
    written = write_model(estimator, target, data, options)
    _print_certificate(options, estimator, data, messages, written, seconds)
    measured = None if options.valid is None else evaluate_valid(options, estimator)
    reported = options.report is None or isinstance(data, ClusterData)
    if options.report is not None and isinstance(data, Dataset):
        reported = write_report(options, estimator, data, written, seconds)
    if options.report is not None and reported:
        messages.note(f"report: {options.report}")
    if options.json:
        fields = {"task": task.name, "data": inputs, "model": written}
        if options.paper is not None:
            fields |= {"paper": options.paper, "paper_C": options.cost}
        if options.report is not None:
            fields["report"] = options.report if reported else None
        fields |= {"rows": data.shape[0], "features": data.shape[1], "nonzeros": data.entries}
        fields |= {"queries": estimator.n_queries_} if task.has_queries else {}
        fields |= {"classes": classes} if task.has_classes else {}
        fields |= {} if options.valid is None else valid_fields(options, measured)
        fields |= {"cluster": estimator.cluster_} if isinstance(data, ClusterData) else {}
        print_json({**fields, **_fit_fields(estimator), "seconds": seconds, "seconds_reading": reading})
    complete = reported and (options.valid is None or measured is not None)
    return 0 if written == target and complete else 1


def _rows(data: Dataset | ClusterData, y: Array | None) -> Any:
    """What is fitted."""
    if isinstance(data, ClusterData):
        return data.parts
    return data if y is None else data.with_labels(y)


def read_data(options: argparse.Namespace, inputs: list[str], stack: ExitStack) -> Dataset:
    """The data; if `--memory` limits the rows in memory, a file becomes a temporary store."""
    if options.memory is None or not options.task.memory_limits_rows:
        return read_rows(inputs, options.zero_based, **column_options(options))
    refuse_folds_on_disk(options)
    check_inputs(inputs)
    with as_command_error(inputs[0]):
        parse_limit(options.memory)
        return stack.enter_context(as_store(inputs[0] if len(inputs) == 1 else inputs, **column_options(options)))


def labels_of(options: argparse.Namespace, data: Dataset) -> tuple[Array | None, Array]:
    """The labels of all rows, None if the fit reads them from a store, and the distinct ones if they are classes."""
    limited = options.memory is not None and options.task.memory_limits_rows
    on_disk = isinstance(data, StoredDataset) and (options.folds is None or limited)
    if options.task.has_targets:
        return None if on_disk and data.y.dtype.kind == "f" else as_targets(data, options.task), np.empty(0)
    if on_disk and isinstance(data, StoredDataset):
        return None, as_labels(data.store.labels) if options.task.needs_labels else np.empty(0)
    y = as_labels(data.y)
    return y, np.unique(y) if options.task.needs_labels else np.empty(0)


def _check_classes(options: argparse.Namespace, data: Dataset | ClusterData, classes: Array) -> None:
    task = options.task
    if task.has_targets or not task.needs_labels or (isinstance(data, ClusterData) and not task.has_classes):
        return
    if len(classes) < 2:
        raise CommandError(f"{data.source}: all labels are {classes[0]}, expected two {task.label_noun} or more")
    if task.max_classes is not None and len(classes) > task.max_classes:
        raise CommandError(
            f"{data.source}: {len(classes)} classes, --task {task} takes two; ordinal takes more, in order"
        )
    if options.solver in ("dcd", "accpm") and build_estimator(options)._outputs(len(classes)) > 1:
        raise CommandError(
            f"--solver {options.solver} takes two classes at a time, here are {len(classes)}: {one_vs_rest(options)}"
        )


def check_discrete(task: Task, data: Dataset | ClusterData, classes: Array) -> None:
    """Refuse measurements where classes are expected: scikit-learn takes whole numbers and texts as classes."""
    if task.has_classes and classes.dtype.kind == "f":
        broken = next(label for label in classes.tolist() if label != round(label))
        raise CommandError(
            f"{data.source}: continuous labels such as {broken:g} are no {task.label_noun} for --task {task}; "
            "--task regress predicts numbers"
        )


def check_model_output(target: str, inputs: list[str]) -> None:
    """Refuse to overwrite a file that is not a model: it may be data."""
    check_output(target, inputs)
    with as_command_error(target):
        if os.path.isfile(target) and os.path.getsize(target) > 0 and not is_model_file(target):
            raise CommandError(f"{target}: exists and is not a model, so it is left alone")


def _check_checkpoint(options: argparse.Namespace, target: str) -> None:
    """Refuse, before the data are read, a file that cannot be a checkpoint."""
    if options.folds is not None:
        raise CommandError("--checkpoint is for training, -v trains many times: leave one of them out")
    if os.path.realpath(options.checkpoint) == os.path.realpath(target):
        raise CommandError(f"{target}: MODEL and --checkpoint are one file, expected two")
    with as_command_error(options.checkpoint):
        check_path(options.checkpoint)


def check_format(options: argparse.Namespace, data: Dataset | ClusterData, classes: Array) -> None:
    """Refuse, before the training, a model that its format cannot hold."""
    if options.format == "liblinear":
        with as_command_error():
            check_liblinear(options.task)
            check_writable(classes, data.zero_based, data.feature_ids)


def describe_data(task: Task, data: Dataset, classes: Array) -> str:
    """Rows, features, nonzeros, classes and queries in one line."""
    rows, features = data.shape
    base = "" if data.zero_based is None else f" (counted from {0 if data.zero_based else 1})"
    labels = f", {len(classes):,} {task.label_noun}" if len(classes) else ""
    if task.has_targets:
        labels = f", {task.label_noun} from {data.y.min():.4g} to {data.y.max():.4g}"
    if task.has_queries:
        queries = 1 if data.qid is None else len(np.unique(data.qid))
        labels += f", {queries:,} {'query' if queries == 1 else 'queries'}"
    return f"{rows:,} rows, {features:,} features{base}, {data.entries:,} nonzeros{labels}"


def fit_with_progress(estimator: Certified, messages: Messages, X: Any, y: Array | None = None) -> float:
    """Fit with a progress bar of the gap, and return the seconds it took."""
    began = time.perf_counter()
    # The certificate says that it did not converge.
    with messages.collecting_warnings((ConvergenceWarning,)), as_command_error(), messages.forwarded_logs():
        # The bar counts decades of the gap down to the tolerance; a fixed number of epochs has none.
        shown = not messages.quiet and requested_tol(estimator) is not None
        with ProgressBar() as bar:
            estimator.set_params(callbacks=[bar] if shown else None).fit(X, y)
    return time.perf_counter() - began


def write_model(estimator: Certified, target: str, data: Dataset | ClusterData, options: argparse.Namespace) -> str:
    """Write the model and return its path: `target`, or if that fails a private folder among the temporary files."""
    where: dict[str, Any] = {"zero_based": data.zero_based, "feature_ids": data.feature_ids}
    try:
        save_model(estimator, target, format=options.format, **where)
        return target
    except OSError as error:
        reason = error.strerror
    try:
        # A new private folder: no other user can have put a link there, or can read the model.
        fallback = os.path.join(tempfile.mkdtemp(prefix="cutsvm-"), "fallback.model")
        try:
            save_model(estimator, fallback, format=options.format, **where)
            os.chmod(fallback, 0o600)
        except OSError:
            shutil.rmtree(os.path.dirname(fallback), ignore_errors=True)
            raise
    except OSError:
        raise CommandError(f"cannot write the model to {target}: {reason}", 1) from None
    Messages(quiet=False).note(f"cutsvm: cannot write the model to {target}: {reason}; it is in {fallback}")
    return fallback


def _fit_fields(estimator: Certified) -> dict[str, Any]:
    """The numbers of a fit, as fields of `--json`."""
    numbers = {name: getattr(estimator, f"{name}_") for name in ("objective", "lower_bound", "gap", "n_iter")}
    settings = {name: getattr(estimator, name) for name in _SETTINGS if hasattr(estimator, name)}
    settings |= {"tol": requested_tol(estimator), "solver": str(estimator.solver)}
    status = {"converged": bool(estimator.converged_), "status": estimator.status_.value}
    if task_of(estimator).has_kernel:
        own = machine_facts(estimator)
    else:
        own = {"passes": total_passes(estimator), "chosen": estimator.history_[-1]["note"]}
    return {**settings, **numbers, **status, **own}


def _print_certificate(
    options: argparse.Namespace,
    estimator: Certified,
    data: Dataset | ClusterData,
    messages: Messages,
    written: str,
    seconds: float,
) -> None:
    """The certificate and where the model is; if it did not converge, what to do."""
    gap = float(np.max(estimator.gap_))
    if estimator.history_ and (chosen := estimator.history_[-1]["note"]):
        messages.note(f"solver {chosen}")
    if options.task.has_queries and (skipped := estimator.n_skipped_queries_):
        messages.note(f"{skipped:,} of {estimator.n_queries_:,} queries have one level, and make no pair")
    before = seconds_before_resume(estimator)
    spent = f"{seconds:.2f} s" + (f" after {before:.3g} s in earlier runs" if before else "")
    tol = requested_tol(estimator)
    own_rule = estimator.status_.name == "EPSILON"
    ended = f"; {estimator.status_.value}" if own_rule else ""
    words = f"{certificate(gap, None if own_rule else tol)}, {_work(estimator)}, {spent}{ended}"
    all_epochs = tol is None and estimator.status_.name == "EPOCHS"
    if not estimator.converged_ and not all_epochs:
        messages.warn(f"not converged ({estimator.status_.value}): {words}. {_advice(options, data, tol)}")
    if options.json or options.quiet:
        return
    if estimator.converged_:
        print_result(f"certified: {words}")
    elif all_epochs:
        print_result(f"epochs done: {words}")
    else:
        print_result(f"not converged: gap {gap:.1e}" + ("" if tol is None else f", tol {tol:.0e}"))
    if isinstance(data, ClusterData):
        print_result(describe_traffic(estimator.cluster_))
    print_result(f"model: {printable(written)}")


def _work(estimator: Certified) -> str:
    """Passes over the data, or the support vectors and iterations of a kernel machine."""
    if not task_of(estimator).has_kernel:
        return f"{total_passes(estimator):g} passes"
    support = f"{len(estimator.support_):,} support vectors"
    if requested_tol(estimator) is None and not estimator.converged_:
        return support  # the last epoch may be incomplete
    return f"{support}, {estimator.n_iter_:,} {iteration_unit(estimator)}"


def _advice(options: argparse.Namespace, data: Dataset | ClusterData, tol: float | None) -> str:
    """What to do about a gap that is too large, as options of the command line."""
    longer = "a larger --max-time" if options.max_time is not None else "more time"
    spread = data.spread
    scale = f", scale the features (the largest is {spread:.0e} times the smallest)" if spread > 1e4 else ""
    again = f" The same command resumes from {options.checkpoint}." if options.checkpoint is not None else ""
    paper = paper_of(options)
    has_tol = tol is not None and (paper is None or "tol" in paper.takes)
    accept = "; or accept a larger -e" if has_tol else ""
    return f"The best model so far is kept; for a smaller gap give it {longer}{scale}{accept}.{again}"
