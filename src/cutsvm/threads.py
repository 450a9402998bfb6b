"""How many threads a fit uses: `n_jobs` becomes a number here and nowhere else."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

from cutsvm._native import core

_forked = False


def _after_fork() -> None:
    # GNU OpenMP hangs in a forked child whose parent had started threads; one thread needs no OpenMP.
    global _forked
    _forked = True


os.register_at_fork(after_in_child=_after_fork)


def count(n_jobs: int | None) -> int:
    """Threads for `n_jobs`: None is 1 (or what joblib's context says), -1 all cores that we may use."""
    if _forked:
        return 1
    return int(max(1, min(effective_n_jobs(n_jobs), core.max_threads())))


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Within this context BLAS runs on one thread.

    The sweeps own the cores (OpenMP); the reduced problem is small. Two pools of threads that wait for
    each other by spinning cost more than a second core brings.
    """
    limit: AbstractContextManager[Any] = _pools().limit(limits=1, user_api="blas")
    return limit
