"""The compiled kernels: the build for the best instruction set that this machine runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np


@contextmanager
def _idle_threads_sleep() -> Iterator[None]:
    """While OpenMP is loaded: threads that wait shall sleep, unless the user has said otherwise.

    By default they spin. On a machine with other work that made a fit 10 times slower; on an idle one it gains a
    tenth. OpenMP reads the variable once, and it is put back at once.
    """
    name = "OMP_WAIT_POLICY"
    before = os.environ.get(name)
    os.environ.setdefault(name, "passive")
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]


if TYPE_CHECKING:
    import cutsvm._core as core
else:
    with _idle_threads_sleep():
        core = import_module("cutsvm._core")
        for _level in range(core.cpu_level(), 2, -1):
            try:
                core = import_module(f"cutsvm._core_v{_level}")
                break
            except ImportError:  # not built for this platform
                continue

__all__ = ["core", "matrix_of"]


def matrix_of(X: Any, threads: int = 1) -> core.Matrix:
    """The matrix that the kernels read: of a dense array, or of CSR that is valid."""
    if not hasattr(X, "indptr"):
        return core.Matrix(X, threads)
    wide = np.promote_types(X.indices.dtype, X.indptr.dtype)  # SciPy keeps the two alike; others may not
    columns, pointers = X.indices.astype(wide, copy=False), X.indptr.astype(wide, copy=False)
    return core.Matrix(X.data, columns, pointers, int(X.shape[1]), threads)
