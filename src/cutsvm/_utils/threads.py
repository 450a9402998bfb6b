"""How many threads a fit uses: `n_jobs` becomes a number here and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from multiprocessing import current_process
from threading import Event, Lock, Thread, local
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs, parallel_config
from threadpoolctl import ThreadpoolController

from cutsvm._native import core

# Numbers in X up to which one thread is faster: others take longer to wake than they help.
FEW = 1 << 18

T = TypeVar("T")

_forked = False


class _BlasLimit:
    """The limit on BLAS's threads, which is the whole process's: the first fit sets it, the last one takes it back."""

    def __init__(self) -> None:
        self.lock, self.fits = Lock(), 0
        self.before: Any = None

    def enter(self) -> None:
        with self.lock:
            if self.fits == 0:
                with _any_thread():
                    self.before = _pools().limit(limits=1)
            self.fits += 1

    def leave(self) -> None:
        with self.lock:
            self.fits -= 1
            if self.fits == 0:
                with _any_thread():
                    self.before.restore_original_limits()


_blas = _BlasLimit()


def _after_fork() -> None:
    # GNU OpenMP hangs in a forked child whose parent had started threads; one thread needs no OpenMP.
    global _forked, _blas
    _forked = True
    _blas = _BlasLimit()  # another thread of the parent may have held its lock


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
    found = int(max(1, min(jobs, core.max_threads())))
    return found if found == 1 or _can_start(found) else 1


# Bytes of address space that each thread should find beside its stack: what libraries keep for a thread is allocated
# when it first calls them, and the C library ends the process where that fails.
SPARE = 16 << 20
_known = local()  # most: so many threads are known to be there for this one


def _can_start(count: int) -> bool:
    """Whether so many threads, with this one, can run at once: OpenMP ends the process where it cannot start one.

    There may be a limit on memory or on threads. OpenMP keeps its threads, so they are asked for once.
    """
    if count <= getattr(_known, "most", 1):
        return True
    end, started = Event(), []
    try:
        for _ in range(count - 1):
            thread = Thread(target=end.wait, daemon=True)
            thread.start()
            started.append(thread)
        _check_spare(count)
    except (RuntimeError, MemoryError):  # "can't start new thread"
        return False
    finally:
        end.set()
        for thread in started:
            thread.join()
    _known.most = count
    return True


def _check_spare(count: int) -> None:
    """Raises MemoryError if there is no address space for so many threads; nothing is written, so none is used."""
    np.empty(SPARE * count, dtype=np.uint8)


class ThreadPool(ThreadPoolExecutor):
    """One whose lack of threads is a MemoryError: it comes of a limit on memory, or on threads."""

    def __init__(self, count: int) -> None:
        _check_spare(count)
        super().__init__(count)

    def submit(self, call: Callable[..., T], /, *args: Any, **more: Any) -> Future[T]:
        try:
            return super().submit(call, *args, **more)
        except RuntimeError as error:
            if "start new thread" not in str(error):
                raise
            raise MemoryError("another thread cannot be started") from error


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def _any_thread() -> Iterator[None]:
    """Within this context any thread may set the limit.

    threadpoolctl 3.8 lets the first thread alone set OpenBLAS's; but the last fit may end in another one.
    """
    clear = [
        lib.clear_controlling_thread for lib in _pools().lib_controllers if hasattr(lib, "clear_controlling_thread")
    ]
    for let_go in clear:
        let_go(force=True)
    try:
        yield
    finally:
        for let_go in clear:
            let_go(force=True)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within this context BLAS runs on one thread.

    The sweeps own the cores (OpenMP); the reduced problem is small. Two pools of threads that wait for each other by
    spinning cost more than a second core brings; and products are rounded differently on several threads, so a fit in a
    thread would not give the bits that it gives alone. Fits may overlap: the limit holds until the last one ends.
    """
    limit = _blas
    limit.enter()
    try:
        yield
    finally:
        limit.leave()
