"""Kernel machines: their solvers, kernel values in blocks, one machine per pair of classes."""

from __future__ import annotations

from typing import Any

from cutsvm.kernel_machines.auto import Auto
from cutsvm.kernel_machines.context import KernelSolver
from cutsvm.kernel_machines.exact import Exact
from cutsvm.kernel_machines.l2 import ISDA, MinNorm
from cutsvm.kernel_machines.sgd import SGD

__all__ = ["ISDA", "SGD", "SOLVERS", "Auto", "Exact", "KernelSolver", "MinNorm", "resolve"]

SOLVERS: dict[str, KernelSolver | Auto] = {
    "auto": Auto(),
    "exact": Exact(),
    "sgd": SGD(),
    "isda": ISDA(),
    "min_norm": MinNorm(),
}


def resolve(solver: Any) -> KernelSolver | Auto:
    """The solver object with this name; a solver object itself."""
    if isinstance(solver, (Auto, Exact, SGD, ISDA, MinNorm)):
        return solver
    if isinstance(solver, str) and solver in SOLVERS:
        return SOLVERS[solver]
    raise ValueError(f"solver={solver!r}: expected one of {', '.join(map(repr, SOLVERS))}, or a solver object")
