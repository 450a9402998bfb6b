"""`cutsvm train`: a data file in, a model file and a certificate out."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cutsvm._utils.text import printable
from cutsvm.cli.data import as_labels, check_source, check_target, read_rows, zero_based
from cutsvm.cli.kernel_task import kernel_svc, machine_facts
from cutsvm.cli.messages import (
    CommandError,
    Messages,
    as_command_error,
    certificate,
    collected_warnings,
    print_json,
    result,
)
from cutsvm.cli.report_option import check_report, write_report
from cutsvm.cli.tasks import check_options
from cutsvm.display.summary import earlier, ending, goal, passes, rounds
from cutsvm.io.dataset import StoredDataset

if TYPE_CHECKING:
    from cutsvm.estimators._base import Certified
    from cutsvm.io.dataset import Dataset

__all__ = [
    "check_format",
    "check_model_target",
    "estimator_of",
    "facts_of",
    "fit_with_progress",
    "train",
    "validate_options",
    "write_model",
]


def train(options: argparse.Namespace) -> int:
    """Read, train, write the model, say how good it is."""
    say = Messages(quiet=options.quiet)
    validate_options(options)
    sources = [options.data, *options.also]
    target = options.model or f"{options.data}.model"
    if options.folds is None:
        check_model_target(target, sources)
    if options.checkpoint is not None:
        _check_checkpoint(options, target)
    if options.report is not None:
        check_report(options, target, sources)
    with ExitStack() as until_done:
        return _train(options, sources, target, say, until_done)


def _train(options: argparse.Namespace, sources: list[str], target: str, say: Messages, until_done: ExitStack) -> int:
    began = time.perf_counter()
    data = _read(options, sources, until_done)
    reading = time.perf_counter() - began
    y: npt.NDArray[Any] | None = None  # of a store they may be too many
    if isinstance(data, StoredDataset) and options.task == "classify" and options.folds is None:
        classes = as_labels(data.store.labels)
    else:
        y = as_labels(data.y)
        classes = np.unique(y)
    if len(classes) < 2:
        wanted = "two levels" if options.task in ("rank", "ordinal") else "two classes"
        raise CommandError(f"{data.source}: all labels are {classes[0]}, expected {wanted} or more")
    if len(classes) > 2 and options.task == "roc":
        raise CommandError(f"{data.source}: {len(classes)} classes, --task roc takes two; ordinal takes more, in order")
    if len(classes) > 2 and options.solver in ("dcd", "accpm") and options.multi_class != "ovr":
        raise CommandError(
            f"--solver {options.solver} knows two classes at a time, here are {len(classes)}: add --multi-class ovr"
        )
    if options.folds is None:
        check_format(options, data, classes)
    say.note(f"{data.source}: {facts_of(options.task, data, classes)}, read in {reading:.2f} s")
    estimator = estimator_of(options, classes)
    extra: dict[str, Any] = {"qid": data.qid} if options.task == "rank" and options.memory is None else {}
    if data.weights is not None and options.task not in ("classify", "kernel") and options.memory is None:
        extra["sample_weight"] = data.weights
    if options.folds is not None and y is not None:
        from cutsvm.cli.validate import cross_validate

        return cross_validate(options, estimator, data, y)
    seconds = fit_with_progress(estimator, *_to_fit(options, data, y, classes, say), say, **extra)
    if y is None:
        estimator.classes_ = classes  # a store has its numbers as float64
    elif options.task in ("roc", "ordinal"):
        estimator.classes_ = as_labels(estimator.classes_)  # likewise, where the rows stayed on disk
    written = write_model(estimator, target, data, options)
    _report(options, estimator, data, say, written, seconds)
    reported = options.report is None or write_report(options, estimator, data, written, seconds)
    if options.report is not None and reported:
        say.note(f"report: {options.report}")
    if options.json:
        files = {"task": options.task, "data": sources, "model": written}
        if options.report is not None:
            files["report"] = options.report if reported else None
        shape = {"rows": data.shape[0], "features": data.shape[1], "nonzeros": data.entries}
        times = {"seconds": seconds, "seconds_reading": reading}
        labels = {"queries": getattr(estimator, "n_queries_", None)} if options.task == "rank" else {"classes": classes}
        print_json({**files, **shape, **labels, **_outcome(estimator), **times})
    return 0 if written == target and reported else 1


def _read(options: argparse.Namespace, sources: list[str], until_done: ExitStack) -> Dataset:
    """The data; with a limit on memory those of a file stay in a temporary store."""
    if options.memory is None or options.task == "kernel":
        return read_rows(sources, zero_based(options.zero_based), options.label)
    if options.folds is not None:
        raise CommandError("--memory is for training, -v has all rows in memory: leave one of them out")
    if len(sources) > 1:
        raise CommandError("--memory takes one file or store: make a store of several with cutsvm convert --also")
    from cutsvm._utils.memory import parse
    from cutsvm.io.store.convert import as_store

    check_source(sources[0], folder=True)
    with as_command_error(sources[0]):
        parse(options.memory)
        base = zero_based(options.zero_based)
        return until_done.enter_context(as_store(sources[0], label=options.label, zero_based=base))


def _to_fit(
    options: argparse.Namespace,
    data: Dataset,
    y: npt.NDArray[Any] | None,
    classes: npt.NDArray[Any],
    say: Messages,
) -> tuple[Any, npt.NDArray[Any] | None]:
    """What fit takes: the data as they are, of which a store may then stay on disk, or X and y."""
    from cutsvm._utils.memory import parse, plan

    if options.task in ("rank", "roc", "ordinal") and options.memory is not None:
        return data, None
    if options.task not in ("classify", "kernel"):
        return data.X, y
    if y is not None:
        return data.with_labels(y), None
    assert isinstance(data, StoredDataset)
    outputs = len(classes) if len(classes) > 2 and options.multi_class != "ovr" else 1
    with as_command_error(data.source):
        how = plan(data.store, None if options.memory is None else parse(options.memory), outputs)
    say.note(f"training {how.words}")
    return data, None


def validate_options(options: argparse.Namespace) -> None:
    check_options(options)
    if options.line_search is not None and options.solver in ("cpa", "accpm"):
        raise CommandError(f"--line-search belongs to --solver ocas or sifting, {options.solver} has none")
    if options.line_search is not None and options.solver == "dcd":
        raise CommandError("--line-search belongs to --solver ocas or sifting, that of dcd is always exact")
    if options.shards is not None and options.solver in ("dcd", "accpm"):
        raise CommandError(f"--shards belongs to --solver ocas, sifting or cpa, {options.solver} has none")


def check_model_target(target: str, sources: list[str]) -> None:
    """Besides the usual: what is written over must have been a model, so that data cannot be lost."""
    from cutsvm.io.models.model_file import is_model_file

    check_target(target, sources)
    with as_command_error(target):
        if os.path.isfile(target) and os.path.getsize(target) > 0 and not is_model_file(target):
            raise CommandError(
                f"{target}: exists and is not a model, so it is left alone; for more data files use --also"
            )


def _check_checkpoint(options: argparse.Namespace, target: str) -> None:
    """A file that cannot be one is better named before the data are read."""
    from cutsvm.driver.checkpoint import check_path

    if options.folds is not None:
        raise CommandError("--checkpoint is for training, -v trains many times: leave one of them out")
    if os.path.realpath(options.checkpoint) == os.path.realpath(target):
        raise CommandError(f"{target}: MODEL and --checkpoint are one file, expected two")
    with as_command_error(options.checkpoint):
        check_path(options.checkpoint)


def check_format(options: argparse.Namespace, data: Dataset, classes: npt.NDArray[Any]) -> None:
    """What the format cannot hold is better said before the training than after it."""
    from cutsvm.io.models.liblinear import check_writable
    from cutsvm.io.models.model_file import check_task

    if options.format == "liblinear":
        with as_command_error():
            check_task(options.task)
            check_writable(classes, data.zero_based, data.feature_ids)


def facts_of(task: str, data: Dataset, classes: npt.NDArray[Any]) -> str:
    rows, features = data.shape
    base = "" if data.zero_based is None else f" (counted from {0 if data.zero_based else 1})"
    counted = f"{features:,} features{base}"
    labels = f"{len(classes):,} {'levels' if task in ('rank', 'ordinal') else 'classes'}"
    if task == "rank":
        queries = 1 if data.qid is None else len(np.unique(data.qid))
        labels += f", {queries:,} {'query' if queries == 1 else 'queries'}"
    return f"{rows:,} rows, {counted}, {data.entries:,} nonzeros, {labels}"


def estimator_of(options: argparse.Namespace, classes: npt.NDArray[Any]) -> Certified:
    from cutsvm.estimators.linear import LinearSVC
    from cutsvm.estimators.ranking import OrdinalSVC, RankingSVM, ROCAreaSVC

    if options.task == "kernel":
        return kernel_svc(options, _class_weight(options.weights, classes))
    tol = 1e-3 if options.tol is None else options.tol
    if options.task != "classify":
        kind = {"rank": RankingSVM, "roc": ROCAreaSVC, "ordinal": OrdinalSVC}[options.task]
        limits: dict[str, Any] = {"max_time": options.max_time, "n_jobs": options.n_jobs}
        limits |= {"checkpoint": options.checkpoint, "memory_limit": options.memory}
        return kind(options.cost, tol=tol, solver=_solver(options), **limits)
    return LinearSVC(
        options.cost,
        tol=tol,
        solver=_solver(options),
        multi_class=options.multi_class or "crammer_singer",
        fit_intercept=options.bias != -1,
        intercept="free" if options.bias is None else "regularized",
        class_weight=_class_weight(options.weights, classes),
        max_time=options.max_time,
        n_jobs=options.n_jobs,
        memory_limit=options.memory,
        checkpoint=options.checkpoint,
    )


def _solver(options: argparse.Namespace) -> Any:
    """The name of a solver, or a solver object when there is something to configure."""
    from cutsvm.solvers import CPA, OCAS, Sifting

    if options.shards is None and options.line_search is None:
        return options.solver
    shards: Any = "auto" if options.shards is None else options.shards
    if options.solver == "cpa":
        return CPA(shards=shards)
    ocas = OCAS(shards=shards, line_search=options.line_search or "exact")
    return Sifting(inner=ocas) if options.solver == "sifting" else ocas


def _class_weight(weights: list[tuple[float, float]], classes: npt.NDArray[Any]) -> dict[Any, float] | None:
    if not weights:
        return None
    if classes.dtype.kind not in "iuf":
        raise CommandError("-wLABEL takes labels that are numbers, those of the data are text")
    known = {float(label): label for label in classes.tolist()}
    for label, _ in weights:
        if label not in known:
            raise CommandError(f"-w{label:g}: there is no class {label:g} in the data")
    return {known[label]: weight for label, weight in weights}


def fit_with_progress(estimator: Certified, X: Any, y: npt.NDArray[Any] | None, say: Messages, **extra: Any) -> float:
    """Fit, with the gap shown as it falls; returns the seconds it took."""
    from sklearn.exceptions import ConvergenceWarning

    from cutsvm.display.callbacks import ProgressBar

    began = time.perf_counter()
    with as_command_error(), collected_warnings() as caught, _remarks(say), ProgressBar() as bar:
        # Without a gap to reach there is nothing to show until the end.
        shown = not say.quiet and goal(estimator) is not None
        estimator.set_params(callbacks=[bar] if shown else None).fit(X, y, **extra)
    for warning in caught:
        # That it did not converge is told with the certificate.
        if not issubclass(warning.category, ConvergenceWarning):
            say.warn(str(warning.message))
    return time.perf_counter() - began


@contextmanager
def _remarks(say: Messages) -> Iterator[None]:
    """What checkpoints and kernel machines log, as remarks."""
    with say.repeating("cutsvm.checkpoint"), say.repeating("cutsvm.kernel"):
        yield


def write_model(estimator: Certified, target: str, data: Dataset, options: argparse.Namespace) -> str:
    """Write the model and return where it is: if not at `target`, in a private folder among the temporary files."""
    from cutsvm.io.models.model_file import save_model

    where: dict[str, Any] = {"zero_based": data.zero_based, "feature_ids": data.feature_ids}
    try:
        save_model(estimator, target, format=options.format, **where)
        return target
    except OSError as error:
        reason = error.strerror
    try:
        # A fresh folder of the user's own: nobody else can have put a link there, or can read the model.
        spare = os.path.join(tempfile.mkdtemp(prefix="cutsvm-"), "spare.model")
        try:
            save_model(estimator, spare, format=options.format, **where)
            os.chmod(spare, 0o600)
        except OSError:
            shutil.rmtree(os.path.dirname(spare), ignore_errors=True)
            raise
    except OSError:
        raise CommandError(f"cannot write the model to {target}: {reason}", 1) from None
    Messages(quiet=False).note(f"cutsvm: cannot write the model to {target}: {reason}; it is in {spare}")
    return spare


def _outcome(estimator: Certified) -> dict[str, Any]:
    """The numbers of a fit, under the names that --json uses."""
    numbers = {name: getattr(estimator, f"{name}_") for name in ("objective", "lower_bound", "gap", "n_iter")}
    settings = {"C": estimator.C, "tol": goal(estimator), "solver": str(estimator.solver)}
    status = {"converged": bool(estimator.converged_), "status": ending(estimator)}
    if hasattr(estimator, "dual_coef_"):
        own = machine_facts(estimator)
    else:
        own = {"passes": passes(estimator), "chosen": estimator.history_[-1]["note"]}
    return {**settings, **numbers, **status, **own}


def _report(
    options: argparse.Namespace, estimator: Certified, data: Dataset, say: Messages, written: str, seconds: float
) -> None:
    """The certificate and where the model is; if it did not converge, what to do."""
    gap = float(np.max(estimator.gap_))
    if estimator.history_ and (chosen := estimator.history_[-1]["note"]):
        say.note(f"solver {chosen}")
    if skipped := getattr(estimator, "n_skipped_queries_", 0):
        say.note(f"{skipped:,} of {estimator.n_queries_:,} queries have one level, and make no pair")
    before = earlier(estimator)
    spent = f"{seconds:.2f} s" + (f" after {before:.3g} s in earlier runs" if before else "")
    tol = goal(estimator)
    words = f"{certificate(gap, tol)}, {_work(estimator)}, {spent}"
    asked_for = tol is None and estimator.status_.name == "EPOCHS"  # a number of epochs, and they are done
    if not estimator.converged_ and not asked_for:
        advice = _advice(options, data, tol)
        say.warn(f"not converged ({estimator.status_.value}): {words}. {advice}")
    if options.json or options.quiet:
        return
    if estimator.converged_:
        result(f"certified: {words}")
    elif asked_for:
        result(f"epochs done: {words}")
    else:
        result(f"not converged: gap {gap:.1e}" + ("" if tol is None else f", tol {tol:.0e}"))
    result(f"model: {printable(written)}")


def _work(estimator: Certified) -> str:
    """What the fit took."""
    if not hasattr(estimator, "dual_coef_"):
        return f"{passes(estimator):g} passes"
    kept = f"{len(estimator.support_):,} support vectors"
    if goal(estimator) is None and not estimator.converged_:
        return kept  # an epoch was broken off
    return f"{kept}, {estimator.n_iter_:,} {rounds(estimator)}"


def _advice(options: argparse.Namespace, data: Dataset, tol: float | None) -> str:
    """What to do about a gap that is too large, in the words of the command line."""
    longer = "a larger --max-time" if options.max_time is not None else "more time"
    spread = data.spread
    scale = f", scale the features (the largest is {spread:.0e} times the smallest)" if spread > 1e4 else ""
    again = f" The same command goes on from {options.checkpoint}." if options.checkpoint is not None else ""
    accept = "" if tol is None else "; or accept a larger -e"
    return f"The best model so far is kept; for a smaller gap give it {longer}{scale}{accept}.{again}"
