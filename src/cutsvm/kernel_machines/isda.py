"""NN-ISDA: the L2 kernel machine by the non-negative iterative single data algorithm.

Lj. Zigic, R. Strack and V. Kecman, "L2 Support Vector Machines Revisited", 2013; V. Kecman and Lj. Zigic, "Algorithms
for Direct L2 Support Vector Machines", 2014. One of the two methods that Melki and Kecman (2016) compare NL-SGD with.

    max over alpha >= 0 of  sum_i alpha_i - alpha'(Q + diag r) alpha / 2,     Q_ij = y_i y_j K_ij,  r_i = 1 / (C s_i)

    alpha = 0
    repeat  i = the row that violates its condition most:  g_i = 1 - ((Q + diag r) alpha)_i = 0, or <= 0 if alpha_i = 0
            alpha_i = max(0, alpha_i + g_i / (Q_ii + r_i))
            now and then: some steps of conjugate gradients among the alphas above 0
    until   primal - dual <= tol primal

There is no intercept, so a single alpha can move on its own, and clipping at 0 is all that a step needs. The
conjugate gradients are ours: single steps are slow where C is large. All steps are in core/l2_dual.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cutsvm.kernel_machines.l2 import L2

__all__ = ["ISDA"]


@dataclass(frozen=True)
class ISDA(L2):
    """Coordinate ascent on the dual of the L2 machine."""

    name: ClassVar[str] = "isda"
