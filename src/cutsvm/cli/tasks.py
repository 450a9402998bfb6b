"""Options of the command line against the task: which of them apply, and the estimator that they make."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from cutsvm._utils.types import Array
from cutsvm.cli import kernel_task
from cutsvm.cli.messages import CommandError, as_command_error
from cutsvm.io.models.tasks import TASKS

__all__ = ["build_estimator", "class_weight", "validate_options"]

# Options that not every task has: their names in the namespace, and on the command line.
_FLAGS = {
    "bias": "-B",
    "weights": "-wLABEL",
    "multi_class": "--multi-class",
    "line_search": "--line-search",
    "shards": "--shards",
    "checkpoint": "--checkpoint",
    "memory": "--memory",
    **{name: f"--{name}" for name in kernel_task.OPTIONS},
}
# Options of solvers, and the solvers that have them.
_SOLVER_OPTIONS = {"line_search": ("auto", "ocas", "sifting"), "shards": ("auto", "ocas", "sifting", "cpa")}


def validate_options(options: argparse.Namespace) -> None:
    """Refuse, before any data are read, options that the task or the solver does not have."""
    task = options.task
    for name, flag in _FLAGS.items():
        if _given(options, name) and name not in task.options:
            takers = [other.name for other in TASKS.values() if name in other.options]
            raise CommandError(f"{flag} applies to --task {_listed(takers)}, not to {task}")
    if options.solver not in task.solvers:
        raise CommandError(
            f"--solver {options.solver} is not available for --task {task}: expected {_listed(task.solvers, 'or')}"
        )
    if task.has_kernel:
        kernel_task.check_options(options)
        with as_command_error():
            build_estimator(options)._check_params()
        return
    for name, solvers in _SOLVER_OPTIONS.items():
        if _given(options, name) and options.solver not in solvers:
            raise CommandError(f"{_FLAGS[name]} applies to --solver {_listed(solvers[1:])}, not to {options.solver}")


def _given(options: argparse.Namespace, name: str) -> bool:
    return getattr(options, name, None) not in (None, [])  # not every command has every option


def _listed(names: Sequence[str], last: str = "and") -> str:
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def build_estimator(options: argparse.Namespace, class_weight: Mapping[Any, float] | None = None) -> Any:
    """The estimator of the task with the parameters that the options state."""
    params = {
        "tol": options.tol,
        "solver": _solver(options),
        "class_weight": class_weight,
        "multi_class": options.multi_class,
        "max_time": options.max_time,
        "n_jobs": options.n_jobs,
        "memory_limit": options.memory,
        "checkpoint": options.checkpoint,
        **kernel_task.parameters(options),
    }
    if options.bias is not None:
        params |= {"fit_intercept": options.bias != -1, "intercept": "regularized"}
    given = {name: value for name, value in params.items() if value is not None}
    return options.task.make_estimator(options.cost, **{**options.task.parameters, **given})


def _solver(options: argparse.Namespace) -> Any:
    """The name of a solver, a solver object if it has options, or None for the default."""
    from cutsvm.solvers import CPA, OCAS, Sifting

    if options.shards is None and options.line_search is None:
        return None if options.solver == "auto" else options.solver
    shards: Any = "auto" if options.shards is None else options.shards
    if options.solver == "cpa":
        return CPA(shards=shards)
    ocas = OCAS(shards=shards, line_search=options.line_search or "exact")
    return Sifting(inner=ocas) if options.solver == "sifting" else ocas


def class_weight(options: argparse.Namespace, classes: Array) -> dict[Any, float] | None:
    """The factors of `-wLABEL W` by class."""
    if not options.weights:
        return None
    if classes.dtype.kind not in "iuf":
        raise CommandError("-wLABEL takes labels that are numbers, those of the data are text")
    known = {float(label): label for label in classes.tolist()}
    for label, _ in options.weights:
        if label not in known:
            raise CommandError(f"-w{label:g}: there is no class {label:g} in the data")
    return {known[label]: weight for label, weight in options.weights}
