"""Pictures of fits, paths and models. Needs matplotlib (`pip install cutsvm[plot]`)."""

from __future__ import annotations

from cutsvm.display.plotting.convergence import ConvergenceDisplay, PathDisplay, plot_convergence, plot_time_breakdown
from cutsvm.display.plotting.grid import plot_grid
from cutsvm.display.plotting.models import MarginDisplay, WeightsDisplay
from cutsvm.display.plotting.residuals import ResidualsDisplay

__all__ = [
    "ConvergenceDisplay",
    "MarginDisplay",
    "PathDisplay",
    "ResidualsDisplay",
    "WeightsDisplay",
    "plot_convergence",
    "plot_grid",
    "plot_time_breakdown",
]
