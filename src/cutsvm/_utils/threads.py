"""The number of threads of a fit, from `n_jobs`, and limits on the threads of BLAS."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from multiprocessing import current_process
from threading import Event, Lock, Thread, local
from typing import Any, Generic, TypeVar, overload

import numpy as np
from joblib import effective_n_jobs, parallel_config
from threadpoolctl import ThreadpoolController

from cutsvm._native import core

T = TypeVar("T")


@dataclass(frozen=True)
class ThreadSettings:
    """When a fit uses several threads."""

    min_size: int = 1 << 18  # numbers in X; for fewer, waking other threads takes longer than they save
    # Bytes of address space that each thread needs beside its stack: libraries allocate thread-local memory at their
    # first call, and the C library ends the process if that fails.
    reserved: int = 16 << 20


_settings = ThreadSettings()


def configure(settings: ThreadSettings) -> ThreadSettings:
    """Use these settings in the whole process, and return the previous ones."""
    global _settings
    before, _settings = _settings, settings
    return before


_forked = False


class _BlasLimit:
    """The limit on the threads of BLAS in the whole process: the first fit sets it, the last one restores it."""

    def __init__(self) -> None:
        self.lock, self.fits = Lock(), 0
        self.before: Any = None

    def __enter__(self) -> None:
        with self.lock:
            if self.fits == 0:
                with _any_thread():
                    self.before = _pools().limit(limits=1)
            self.fits += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.fits -= 1
            if self.fits == 0:
                with _any_thread():
                    self.before.restore_original_limits()


_blas = _BlasLimit()


def _after_fork() -> None:
    # GNU OpenMP hangs in a forked child if the parent had started threads; one thread needs no OpenMP.
    global _forked, _blas
    _forked = True
    _blas = _BlasLimit()  # another thread of the parent may have held its lock


os.register_at_fork(after_in_child=_after_fork)


def count(n_jobs: int | None, size: int | None = None) -> int:
    """The number of threads for `n_jobs`: None is 1 (or that of joblib's context), -1 all cores.

    size: of the data, in numbers; one thread for small data. No result depends on the number of threads.
    """
    if _forked or (size is not None and size < _settings.min_size):
        return 1
    if current_process().daemon:
        # joblib counts processes, which a daemon (as a Dask worker) may not start; it may start threads.
        with parallel_config(backend="threading"):
            jobs = effective_n_jobs(n_jobs)
    else:
        jobs = effective_n_jobs(n_jobs)
    found = int(max(1, min(jobs, core.max_threads())))
    return found if found == 1 or _can_start(found) else 1


_known = local()  # most: the largest number of threads known to start from this one


def _can_start(count: int) -> bool:
    """Whether `count` threads, including this one, can run at once: OpenMP ends the process if it cannot start one.

    Memory or threads may be limited. OpenMP keeps its threads, so one check suffices.
    """
    if count <= getattr(_known, "most", 1):
        return True
    end, started = Event(), []
    try:
        for _ in range(count - 1):
            thread = Thread(target=end.wait, daemon=True)
            thread.start()
            started.append(thread)
        _check_address_space(count)
    except (RuntimeError, MemoryError):  # "can't start new thread"
        return False
    finally:
        end.set()
        for thread in started:
            thread.join()
    _known.most = count
    return True


def _check_address_space(count: int) -> None:
    """Raise MemoryError if the address space does not suffice for `count` threads; no memory is written."""
    np.empty(_settings.reserved * count, dtype=np.uint8)


class ThreadPool(ThreadPoolExecutor):
    """A pool that raises MemoryError if it cannot start a thread: memory or threads are limited."""

    def __init__(self, count: int) -> None:
        _check_address_space(count)
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
    """Allow any thread to set the limit within this context.

    threadpoolctl 3.8 lets only the first thread set the limit of OpenBLAS, but the last fit may end in another.
    """
    clear = [
        lib.clear_controlling_thread for lib in _pools().lib_controllers if hasattr(lib, "clear_controlling_thread")
    ]
    for release in clear:
        release(force=True)
    try:
        yield
    finally:
        for release in clear:
            release(force=True)


def one_blas_thread() -> _BlasLimit:
    """A context in which BLAS runs on one thread.

    The kernels use all cores by OpenMP, and the reduced problem is small. Two pools of spinning threads are slower than
    one; and products on several threads are rounded differently, so results would depend on the number of threads. Fits
    may overlap: the limit holds until the last one ends.
    """
    return _blas


class cached_property(Generic[T]):  # noqa: N801
    """Computed at its first use, then an attribute of the object; two threads may both compute it.

    Until Python 3.12 that of functools holds a lock, one for all objects of a class, while it computes. A property that
    reads rows may wait for other threads (`cutsvm.matrix.shared_reads`), and they would wait for the lock.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> cached_property[T]: ...

    @overload
    def __get__(self, instance: object, owner: type[Any]) -> T: ...

    def __get__(self, instance: object | None, owner: type[Any]) -> cached_property[T] | T:
        if instance is None:
            return self
        found = instance.__dict__[self.name] = self.compute(instance)
        return found
