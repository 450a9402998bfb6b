"""The analytic-centre cutting-plane method."""

from __future__ import annotations

from cutsvm.solvers.accpm.solver import ACCPM

__all__ = ["ACCPM"]
