"""Rows with a kernel, as core/kernel_values.hpp takes them."""

import numpy as np

from cutsvm._native import core
from cutsvm.kernel_machines.kernel_rows import GEMM


def block(X, kernel="rbf", gamma=0.5, coef0=0.3, degree=3, offset=0.0, threads=1):
    dtype = X.dtype
    squares = np.einsum("ij,ij->i", X, X, dtype=np.float64).astype(dtype)
    kind = core.KernelBlock64 if dtype == np.float64 else core.KernelBlock32
    return kind(GEMM[dtype], kernel, gamma, coef0, degree, offset, X, squares, threads)
