"""What `--task kernel` has of its own: options, which of them go together, and the estimator that they make."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from cutsvm.cli.messages import CommandError, as_command_error
from cutsvm.display.summary import stochastic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cutsvm.estimators.kernel import KernelSVC

__all__ = ["OPTIONS", "SOLVERS", "add_options", "check_options", "kernel_svc", "machine_facts", "machine_rows"]

# Options that no other task has, and what in turn takes them: kernels, or solvers.
OPTIONS = {
    "kernel": (),
    "gamma": ("rbf", "poly"),
    "degree": ("poly",),
    "coef0": ("poly",),
    "epochs": ("sgd",),
    "average": ("sgd",),
    "seed": ("sgd",),
}
_KERNELS = ("rbf", "poly", "linear")  # a precomputed one has no rows that a file could hold
SOLVERS = ("auto", "sgd", "isda", "min_norm")
_SHOWN = 8  # classes


def add_options(parser: argparse.ArgumentParser) -> None:
    """The group of options; what is a legal value the estimator says."""
    group = parser.add_argument_group("kernel machines (--task kernel)")
    group.add_argument("--kernel", choices=_KERNELS, help="(default: rbf)")
    scale = "of rbf and poly: a number, scale or auto (default: scale, 1 / (features * variance))"
    group.add_argument("--gamma", metavar="G", type=_value, help=scale)
    group.add_argument("--degree", metavar="D", type=_value, help="of poly (default: 3)")
    group.add_argument("--coef0", metavar="A", type=_value, help="of poly (default: 0)")
    group.add_argument(
        "--epochs",
        metavar="N",
        type=_value,
        help="of sgd: cycles over the rows, and no more (default: auto, until the gap is -e)",
    )
    mean = "of sgd: the share of its last steps whose mean is the model (default: 0.5)"
    group.add_argument("--average", metavar="S", type=_value, help=mean)
    group.add_argument("--seed", metavar="N", type=_value, help="of sgd: for the order of the rows (default: 0)")


def _value(text: str) -> int | float | str:
    """A whole number, another number, or the word itself."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def check_options(options: argparse.Namespace) -> None:
    """Options that do not go together, and values that are not legal, before the data are read."""
    kernel, solver = options.kernel or "rbf", _solver(options)
    for name, takers in OPTIONS.items():
        if takers and getattr(options, name) is not None and not {kernel, solver} & set(takers):
            kind, own = ("--solver", solver) if "sgd" in takers else ("--kernel", kernel)
            raise CommandError(f"--{name} belongs to {kind} {' and '.join(takers)}, {own} has no use for it")
    if options.tol is not None and solver == "sgd" and options.epochs not in (None, "auto"):
        raise CommandError(f"-e has no use for it: with --epochs {options.epochs} sgd ends after them, at any gap")
    with as_command_error():
        from cutsvm._utils import validation

        if options.seed is not None:
            validation.whole("seed", options.seed, least=0)
            if options.seed >= 2**32:
                raise CommandError(f"seed={options.seed}: expected a whole number below 2^32")
        kernel_svc(options, None)._check_params()


def kernel_svc(options: argparse.Namespace, class_weight: Mapping[Any, float] | None) -> KernelSVC:
    """The estimator."""
    from cutsvm.estimators.kernel import KernelSVC

    names = ("kernel", "gamma", "degree", "coef0", "epochs", "average", "tol")
    return KernelSVC(
        options.cost,
        solver=_solver(options),
        class_weight=class_weight,
        max_time=options.max_time,
        memory_limit=options.memory,
        random_state=options.seed or 0,
        n_jobs=options.n_jobs,
        **{name: getattr(options, name) for name in names if getattr(options, name) is not None},
    )


def _solver(options: argparse.Namespace) -> str:
    return "sgd" if options.solver == "auto" else str(options.solver)


def machine_facts(estimator: KernelSVC) -> dict[str, Any]:
    """What a fitted machine is made of, under the names that --json uses."""
    used = {"rbf": ("gamma_",), "poly": ("gamma_", "degree", "coef0")}.get(estimator.kernel, ())
    of_steps = ("average", "random_state") if stochastic(estimator) else ()
    numbers = {name.rstrip("_"): getattr(estimator, name) for name in (*used, *of_steps)}
    return {"kernel": estimator.kernel, **numbers, "n_support": estimator.n_support_}


def machine_rows(estimator: KernelSVC) -> list[tuple[str, str]]:
    """The same for a reader: rows of two columns."""
    facts = machine_facts(estimator)
    words = [f"{name} {facts[name]:.6g}" for name in ("gamma", "degree", "coef0") if name in facts]
    if "gamma" in facts and isinstance(estimator.gamma, str):
        words[0] += f" ({estimator.gamma})"
    counts = estimator.n_support_.tolist()
    of_classes = [f"{n:,} of {label!r}" for label, n in zip(estimator.classes_.tolist(), counts, strict=True)]
    shown = ", ".join(of_classes[:_SHOWN]) + (", ..." if len(of_classes) > _SHOWN else "")
    vectors = estimator.support_vectors_
    kind = f"{'sparse' if hasattr(vectors, 'indptr') else 'dense'} {vectors.dtype}"
    return [
        ("kernel", ", ".join([estimator.kernel, *words])),
        ("support", f"{sum(counts):,} vectors, {kind}: {shown}"),
    ]
