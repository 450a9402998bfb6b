"""The options that only `--task kernel` has, and a kernel machine described for `cutsvm info` and `--json`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from cutsvm._utils import validation
from cutsvm.cli.messages import CommandError, as_command_error

if TYPE_CHECKING:
    from cutsvm.estimators.kernel import KernelSVC

__all__ = ["OPTIONS", "add_options", "check_options", "machine_facts", "machine_rows", "parameters"]

# Options that no other task has, and the kernels or solvers that they apply to.
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
_SHOWN = 8  # classes


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the group of options; the estimator checks their values."""
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
    """Refuse options that the kernel or the solver does not have, and a seed out of range."""
    kernel, solver = options.kernel or "rbf", "sgd" if options.solver == "auto" else options.solver
    for name, takers in OPTIONS.items():
        if takers and getattr(options, name) is not None and not {kernel, solver} & set(takers):
            kind, own = ("--solver", solver) if "sgd" in takers else ("--kernel", kernel)
            raise CommandError(f"--{name} applies to {kind} {' and '.join(takers)}, not to {own}")
    if options.tol is not None and solver == "sgd" and options.epochs not in (None, "auto"):
        raise CommandError(f"-e and --epochs {options.epochs}: sgd ends after its epochs at any gap, leave one out")
    if options.seed is not None:
        with as_command_error():
            validation.whole("seed", options.seed, least=0)
        if options.seed >= 2**32:
            raise CommandError(f"seed={options.seed}: expected a whole number below 2^32")


def parameters(options: argparse.Namespace) -> dict[str, Any]:
    """The parameters of `KernelSVC` that its own options state; None for those that are not given."""
    names = {name: "random_state" if name == "seed" else name for name in OPTIONS}
    return {parameter: getattr(options, name, None) for name, parameter in names.items()}


def machine_facts(estimator: KernelSVC) -> dict[str, Any]:
    """Kernel parameters and support vectors of a fitted machine, as fields of `--json`."""
    used = {"rbf": ("gamma_",), "poly": ("gamma_", "degree", "coef0")}.get(estimator.kernel, ())
    sgd = ("average", "random_state") if estimator._trains_in_epochs else ()
    numbers = {name.rstrip("_"): getattr(estimator, name) for name in (*used, *sgd)}
    return {"kernel": estimator.kernel, **numbers, "n_support": estimator.n_support_}


def machine_rows(estimator: KernelSVC) -> list[tuple[str, str]]:
    """The same as rows of two columns."""
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
