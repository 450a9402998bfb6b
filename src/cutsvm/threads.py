"""How many threads a fit uses: `n_jobs` becomes a number here and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from multiprocessing import current_process
from threading import current_thread, main_thread

from joblib import effective_n_jobs, parallel_config
from threadpoolctl import ThreadpoolController

from cutsvm._native import core

# Numbers in X up to which one thread is faster: others take longer to wake than they help.
FEW = 1 << 18

_forked = False


def _after_fork() -> None:
    # GNU OpenMP hangs in a forked child whose parent had started threads; one thread needs no OpenMP.
    global _forked
    _forked = True


os.register_at_fork(after_in_child=_after_fork)


def count(n_jobs: int | None, size: int = FEW) -> int:
    """Threads for `n_jobs`: None is 1 (or what joblib's context says), -1 all cores that we may use.

    size: how many numbers there are to go over; for few it is one thread. The answer has the same bits.
    """
    if _forked or size < FEW:
        return 1
    if current_process().daemon:
        # joblib counts processes, which a daemon (a Dask worker, say) may not start; threads it may.
        with parallel_config(backend="threading"):
            jobs = effective_n_jobs(n_jobs)
    else:
        jobs = effective_n_jobs(n_jobs)
    return int(max(1, min(jobs, core.max_threads())))


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within this context BLAS runs on one thread.

    The sweeps own the cores (OpenMP); the reduced problem is small. Two pools of threads that wait for each other by
    spinning cost more than a second core brings. The limit is the whole process's, so only the main thread sets it:
    whoever starts fits in threads of their own decides about BLAS.
    """
    if current_thread() is not main_thread():
        yield
        return
    with _pools().limit(limits=1, user_api="blas"):
        yield
