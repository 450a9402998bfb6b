"""The solvers: one algorithm a file, each a small frozen object that gives a generator of iterates."""

from __future__ import annotations

from cutsvm.problem.line_search import ArnostiSettings
from cutsvm.solvers.accpm.solver import ACCPM
from cutsvm.solvers.auto import Auto, resolve
from cutsvm.solvers.cpa import CPA
from cutsvm.solvers.dcd import DCD
from cutsvm.solvers.line_batches import Batched
from cutsvm.solvers.local_dual import LocalDual
from cutsvm.solvers.newton import Newton
from cutsvm.solvers.ocas import OCAS
from cutsvm.solvers.sifting.solver import Sifting

__all__ = [
    "ACCPM",
    "CPA",
    "DCD",
    "OCAS",
    "ArnostiSettings",
    "Auto",
    "Batched",
    "LocalDual",
    "Newton",
    "Sifting",
    "resolve",
]
