"""Dask clusters of real worker processes on this machine, and tasks for them."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import cutsvm
from cutsvm.io.models import model_format
from tests.support import ROOT


@contextmanager
def dask_cluster(n_workers: int = 2, threads: int = 1, **options: Any) -> Iterator[Any]:
    """The client of a cluster of processes, which a nanny starts again when they die; options: Dask's settings."""
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
    settings = {
        "distributed.scheduler.allowed-failures": 1000,  # a task is given up if that many workers died with it
        "distributed.scheduler.worker-ttl": None,  # a process of a busy machine is slow, not dead
        "distributed.comm.timeouts.connect": "60s",
        "distributed.worker.memory.terminate": False,
        **options,
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=threads,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",  # any port that is free
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def python_path() -> str:
    """PYTHONPATH for workers that import cutsvm and the tests from where this process has them."""
    return os.pathsep.join(map(str, [ROOT, Path(cutsvm.__file__).parents[1]]))


def other_version() -> None:
    """Makes the process that runs this believe that it has another version of cutsvm."""
    model_format.version = lambda name: "0.0.7"
    model_format.package_version.cache_clear()


def no_cutsvm() -> None:
    """Hides cutsvm from the process that runs this."""

    class Hidden:
        def find_spec(self, name: str, *_: object) -> None:
            if name.partition(".")[0] == "cutsvm":
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    sys.meta_path.insert(0, Hidden())
    for name in [name for name in sys.modules if name.partition(".")[0] == "cutsvm"]:
        del sys.modules[name]


def pids_of_workers(client: Any) -> list[int]:
    return list(client.run(os.getpid, on_error="ignore").values())


def started_again(client: Any, before: list[int], count: int) -> bool:
    """Whether `count` of the workers were replaced by new ones, which the scheduler takes a while to see."""

    def replaced() -> bool:
        now = pids_of_workers(client)
        return len(now) == len(before) and len(set(before) - set(now)) == count

    return wait_until(replaced, 60.0)


def kill_workers(client: Any, count: int | None = None) -> list[int]:
    """SIGKILL for the first `count` workers, or all; their process numbers."""
    killed = pids_of_workers(client)[:count]
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    return killed


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Whether the condition came true in that time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
