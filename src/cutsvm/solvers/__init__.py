"""The solvers: one algorithm a file, each a small frozen object that gives a generator of iterates."""

from __future__ import annotations

from cutsvm.solvers.accpm.solver import ACCPM
from cutsvm.solvers.auto import Auto
from cutsvm.solvers.cpa import CPA
from cutsvm.solvers.dcd import DCD
from cutsvm.solvers.ocas import OCAS
from cutsvm.solvers.protocol import Solver
from cutsvm.solvers.sifting.solver import Sifting

__all__ = ["ACCPM", "CPA", "DCD", "OCAS", "Auto", "Sifting", "resolve"]

REGISTRY = {"auto": Auto, "ocas": OCAS, "cpa": CPA, "dcd": DCD, "sifting": Sifting, "accpm": ACCPM}


def resolve(solver: str | Solver) -> Solver:
    """The solver of that name with its default settings; a configured solver is what it is."""
    if not isinstance(solver, str):
        if isinstance(solver, Solver) and not isinstance(solver, type):
            return solver
        raise TypeError(f"solver: a name or a solver object expected, got {solver!r}")
    if solver in REGISTRY:
        fresh: Solver = REGISTRY[solver]()
        return fresh
    names = ", ".join(map(repr, REGISTRY))
    raise ValueError(f"solver={solver!r}: expected one of {names}, or a solver object")
