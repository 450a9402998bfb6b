"""Sifting: the problem over a working set of rows, with full passes that certify it."""

from __future__ import annotations

from cutsvm.solvers.sifting.solver import Sifting

__all__ = ["Sifting"]
