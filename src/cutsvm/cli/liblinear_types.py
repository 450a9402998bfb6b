"""`-s N`: the solver types of LIBLINEAR as tasks, losses and intercepts of cutsvm.

-s also sets what LIBLINEAR does by default: no intercept unless there is -B, and -p 0.1 for regression. Its primal and
dual solvers have the same optimum, so that 1 and 2 are the same problem here, as are 0 and 7, and 11 and 12.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from cutsvm.cli.messages import CommandError, flag


@dataclass(frozen=True)
class LiblinearType:
    """What a solver type of LIBLINEAR means: values of options, by their names in the namespace."""

    name: str
    task: str
    loss: str | None = None
    multi_class: str | None = None
    tube: float | None = None  # LIBLINEAR's default of -p
    has_intercept: bool = True  # with -B

    @property
    def settings(self) -> dict[str, Any]:
        given = {"task": self.task, "loss": self.loss, "multi_class": self.multi_class}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def as_options(self) -> str:
        return " ".join(f"{flag(name)} {value}" for name, value in self.settings.items())


TYPES = {
    0: LiblinearType("L2R_LR", "classify", "logistic", "ovr"),
    1: LiblinearType("L2R_L2LOSS_SVC_DUAL", "classify", "squared_hinge", "ovr"),
    2: LiblinearType("L2R_L2LOSS_SVC", "classify", "squared_hinge", "ovr"),
    3: LiblinearType("L2R_L1LOSS_SVC_DUAL", "classify", "hinge", "ovr"),
    4: LiblinearType("MCSVM_CS", "classify", "hinge", "crammer_singer"),
    7: LiblinearType("L2R_LR_DUAL", "classify", "logistic", "ovr"),
    11: LiblinearType("L2R_L2LOSS_SVR", "regress", "squared_epsilon_insensitive", tube=0.1),
    12: LiblinearType("L2R_L2LOSS_SVR_DUAL", "regress", "squared_epsilon_insensitive", tube=0.1),
    13: LiblinearType("L2R_L1LOSS_SVR_DUAL", "regress", "epsilon_insensitive", tube=0.1),
    21: LiblinearType("ONECLASS_SVM", "oneclass", has_intercept=False),
}
_L1_REGULARISED = {5: "L1R_L2LOSS_SVC", 6: "L1R_LR"}


def solver_type(text: str) -> int:
    """The number of a solver type, for argparse."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 4 else -1
    if number in _L1_REGULARISED:
        raise argparse.ArgumentTypeError(
            f"{_L1_REGULARISED[number]} regularises with |w|_1, which is not available here; "
            "1, 2 (squared hinge) and 0, 7 (logistic) have the same loss with |w|^2 / 2"
        )
    if number not in TYPES:
        raise argparse.ArgumentTypeError(f"expected one of {', '.join(map(str, TYPES))}, got {text!r}")
    return number


def apply_type(options: argparse.Namespace) -> None:
    """Set the options that `-s` stands for; `CommandError` if another option contradicts it."""
    if getattr(options, "type", None) is None:
        return
    own = TYPES[options.type]
    for name, value in own.settings.items():
        given = getattr(options, name)
        if given not in (None, value):
            raise CommandError(
                f"-s {options.type} is {own.as_options}, not {flag(name)} {given}; {flag(name)} {given} "
                f"{_numbers_with(name, given)}"
            )
        setattr(options, name, value)
    if options.bias is None and own.has_intercept:
        options.bias = -1
    if options.tube is None:
        options.tube = own.tube


def _numbers_with(name: str, value: str) -> str:
    numbers = [str(number) for number, own in TYPES.items() if own.settings.get(name) == value]
    return f"is -s {', '.join(numbers)}" if numbers else "has no -s: leave -s out"


def one_vs_rest(options: argparse.Namespace) -> str:
    """The option that trains each class against the rest with the same loss."""
    if getattr(options, "type", None) is None:
        return "add --multi-class ovr"
    own = TYPES[options.type]
    number = next(n for n, other in TYPES.items() if (other.loss, other.multi_class) == (own.loss, "ovr"))
    return f"take -s {number}"


def describe_type(options: argparse.Namespace) -> str:
    """What was understood, in one line."""
    own = TYPES[options.type]
    words = [own.as_options]
    if own.has_intercept:
        words.append("a regularised intercept" if options.bias == 1 else "no intercept (-B 1 adds one)")
    if own.tube is not None:
        words.append(f"-p {options.tube:g}")
    if options.tol is not None:
        words.append(f"-e {options.tol:g} is the relative gap, not LIBLINEAR's tolerance")
    return f"-s {options.type} ({own.name}): {', '.join(words)}"
