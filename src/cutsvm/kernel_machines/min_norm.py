"""MN-SVM: the L2 kernel machine as a point of least norm.

R. Strack, "Geometric Approach to Support Vector Machines Learning for Large Datasets", 2013. One of the two methods
that Melki and Kecman (2016) compare NL-SGD with. The rows y_i phi(x_i), each with a coordinate of its own of length
sqrt(r_i), r_i = 1 / (C s_i), span a polytope; up to its length the L2 machine is its point nearest to 0:

    min over alpha >= 0, sum_i alpha_i = 1, of  alpha'(Q + diag r) alpha

    alpha = the vertex nearest to 0
    repeat  i = argmin h,   j = argmax of h where alpha_j > 0,     h = (Q + diag r) alpha
            move the weight from j to i that brings the point nearest to 0   (Mitchell, Demyanov and Malozemov 1974)
            now and then: some steps of conjugate gradients among the alphas above 0
    until   primal - dual <= tol primal   for the best multiple of alpha

The conjugate gradients are ours: single steps are slow where C is large. All steps are in core/l2_dual.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cutsvm.kernel_machines.l2 import L2

__all__ = ["MinNorm"]


@dataclass(frozen=True)
class MinNorm(L2):
    """The point of least norm in a polytope."""

    name: ClassVar[str] = "min_norm"
