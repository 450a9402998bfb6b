"""The options that apply to a task, and the estimator that they make."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from cutsvm._utils import validation
from cutsvm._utils.memory import parse_limit
from cutsvm._utils.types import Array
from cutsvm.cli.messages import CommandError, as_command_error, first_values, flag
from cutsvm.cli.papers import PAPERS, Paper
from cutsvm.cli.values import number_or_word
from cutsvm.io.models.tasks import TASKS

# Options of kernels and of their solver, and those that have them.
_KERNEL_OPTIONS = {"gamma": ("rbf", "poly", "sigmoid"), "degree": ("poly",), "coef0": ("poly", "sigmoid")}
_KERNEL_OPTIONS |= dict.fromkeys(("epochs", "average", "seed"), ("sgd",))
# Options of solvers, and the solvers that have them; auto becomes ocas with one of its own.
_OCAS = ("auto", "ocas", "sifting")
_SOLVER_OPTIONS = {
    "line_search": _OCAS,
    "cut_at": _OCAS,
    "guard": _OCAS,
    "shards": (*_OCAS, "cpa"),
    "exact": (*_OCAS, "cpa"),
    "epsilon": ("ocas", "cpa", "accpm"),
    "buckets": ("ocas", "cpa", "accpm"),
    "formulation": ("accpm",),
}


def validate_options(options: argparse.Namespace) -> None:
    """Refuse, before any data are read, options that the task or the solver does not have."""
    task, paper = options.task, paper_of(options)
    if paper is not None:
        paper.check(options)
    for name in sorted(frozenset().union(*(other.options for other in TASKS.values())) - task.options):
        if _given(options, name):
            takers = [other.name for other in TASKS.values() if name in other.options]
            raise CommandError(f"{flag(name)} applies to --task {_listed(takers)}, not to {task}")
    if getattr(options, "loss", None) is not None and options.loss not in task.losses:
        legal = "; ".join(f"{other} has {_listed(other.losses)}" for other in TASKS.values() if other.losses)
        raise CommandError(f"--loss {options.loss} is not a loss of --task {task}: {legal}")
    if options.solver not in task.solvers:
        raise CommandError(
            f"--solver {options.solver} is not available for --task {task}: expected {_listed(task.solvers, 'or')}"
        )
    options.cost = 1.0 if options.cost is None else options.cost
    if task.has_kernel:
        _check_kernel_options(options)
    else:
        _check_solver_options(options, paper)
    with as_command_error():
        build_estimator(options)._check_params()


def _check_solver_options(options: argparse.Namespace, paper: Paper | None) -> None:
    """Refuse options that the solver does not have."""
    for name, solvers in _SOLVER_OPTIONS.items():
        if paper is None and _given(options, name) and options.solver not in solvers:
            takers = [solver for solver in solvers if solver != "auto"]
            raise CommandError(f"{flag(name)} applies to --solver {_listed(takers)}, not to {options.solver}")


def paper_of(options: argparse.Namespace) -> Paper | None:
    """The paper of `--paper`, which not every command has."""
    name = getattr(options, "paper", None)
    return None if name is None else PAPERS[name]


def cost_of(options: argparse.Namespace, rows: int) -> float:
    """C of the estimator, if it is trained on this number of rows."""
    paper = paper_of(options)
    cost: float = options.cost if paper is None else paper.cost(options, rows)
    return cost


def _check_kernel_options(options: argparse.Namespace) -> None:
    """Refuse options that the kernel or the solver does not have, and a seed out of range."""
    chosen = "exact" if options.epochs in (None, "auto") else "sgd"
    kernel, solver = options.kernel or "rbf", chosen if options.solver == "auto" else options.solver
    for name, takers in _KERNEL_OPTIONS.items():
        if getattr(options, name) is not None and not {kernel, solver} & set(takers):
            kind, own = ("--solver", solver) if "sgd" in takers else ("--kernel", kernel)
            raise CommandError(f"--{name} applies to {kind} {_listed(takers)}, not to {own}")
    if options.tol is not None and solver == "sgd" and options.epochs not in (None, "auto"):
        raise CommandError(f"-e and --epochs {options.epochs}: sgd ends after its epochs at any gap, leave one out")
    if options.seed is not None:
        with as_command_error():
            validation.whole("seed", options.seed, least=0)
        if options.seed >= 2**32:
            raise CommandError(f"seed={options.seed}: expected a whole number below 2^32")


def _given(options: argparse.Namespace, name: str) -> bool:
    return getattr(options, name, None) not in (None, [])  # not every command has every option


def _listed(names: Sequence[str], last: str = "and") -> str:
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def build_estimator(options: argparse.Namespace, class_weight: Mapping[Any, float] | None = None, rows: int = 1) -> Any:
    """The estimator of the task with the parameters that the options state, for this number of rows."""
    paper = paper_of(options)
    params = {
        "tol": options.tol,
        "solver": None if paper is not None else _solver(options),
        "class_weight": class_weight,
        "multi_class": options.multi_class,
        "max_time": options.max_time,
        "n_jobs": options.n_jobs,
        "memory_limit": _memory_limit(options.memory),
        "checkpoint": options.checkpoint,
        "epsilon": options.tube,
        **{name: getattr(options, name, None) for name in ("loss", "quantile", "nu", "kernel", *_KERNEL_OPTIONS)},
    }
    if "cost" in options.task.options:
        params["C"] = cost_of(options, rows)
    params["random_state"] = params.pop("seed")
    if options.bias is not None:
        params |= {"fit_intercept": options.bias != -1, "intercept": "regularized"}
    if paper is not None:
        params |= paper.parameters(options, rows)
        params["fit_intercept"] = None if paper.intercept or "bias" not in options.task.options else False
    given = {name: value for name, value in params.items() if value is not None}
    return options.task.make_estimator(**{**options.task.parameters, **given})


def _memory_limit(memory: str | None) -> str | None:
    """`--memory` limits the whole process, `memory_limit` what a fit adds to it."""
    if memory is None or memory == "auto":
        return memory
    with as_command_error():
        parse_limit(memory)
    return memory if memory.endswith("total") else f"{memory} total"


def _solver(options: argparse.Namespace) -> Any:
    """The name of a solver, a solver object if it has options, or None for the default."""
    from cutsvm.solvers import ACCPM, CPA, OCAS, Sifting

    given = {name: getattr(options, name) for name in _SOLVER_OPTIONS if _given(options, name)}
    if not given:
        return None if options.solver == "auto" else options.solver
    if options.solver == "sifting":
        return Sifting(inner=OCAS(**given))
    return {"cpa": CPA, "accpm": ACCPM}.get(options.solver, OCAS)(**given)


def class_weight(options: argparse.Namespace, classes: Array) -> dict[Any, float] | None:
    """The factors of `-wLABEL W` by class."""
    if not options.weights:
        return None
    numeric = classes.dtype.kind in "iuf"
    known = {float(label) if numeric else label: label for label in classes.tolist()}
    found = {}
    for label, weight in options.weights:
        key = number_or_word(label) if numeric else label
        if key not in known:
            raise CommandError(
                f"-w{label}: there is no class {label!r}; the data have {first_values(classes.tolist())}"
            )
        found[known[key]] = weight
    return found
