"""The choice between the exact solver and NL-SGD, by the size of the largest pair of classes.

The exact solver computes the kernel values of about as many rows as there will be support vectors, each with all rows;
one epoch of NL-SGD computes about half as many, and does so again in every epoch. So the exact solver is the faster
way to the accuracy of NL-SGD after some epochs, until its cache holds too small a part of the rows that it returns to.
docs/kernel-machines.md has the measurements.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cutsvm.kernel_machines.context import KernelSolver
from cutsvm.kernel_machines.exact import Exact
from cutsvm.kernel_machines.sgd import SGD


@dataclass(frozen=True)
class AutoSettings:
    """Rows of two classes up to which the exact solver is chosen."""

    exact_rows: int = 200_000


@dataclass(frozen=True)
class Auto:
    """The exact solver for up to `exact_rows` rows in two classes, NL-SGD beyond."""

    settings: AutoSettings = field(default=AutoSettings(), repr=False, kw_only=True)

    def choose(self, largest_pair: int, *, fit_intercept: bool, epochs: bool = False) -> tuple[KernelSolver, str]:
        """The solver, and why; epochs: whether a number of them is asked for.

        An intercept is free in the exact solver and regularised in NL-SGD.
        """
        most = self.settings.exact_rows
        if epochs:
            return SGD().with_intercept(fit_intercept), "sgd: a number of epochs is asked for"
        if largest_pair <= most:
            return Exact(fit_intercept), f"exact: at most {most:,} rows in two classes"
        many = f"sgd: {largest_pair:,} rows in two classes, more than {most:,}"
        return SGD().with_intercept(fit_intercept), many
