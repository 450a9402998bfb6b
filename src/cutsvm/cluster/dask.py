"""Tasks on a Dask cluster (https://distributed.dask.org).

A round is one graph: a task for each element, with the blocks of the user's collection that it reads, and one for the
arguments that all elements share. All of it is kept by the scheduler until it was computed, so that the tasks of a lost
worker run again on another one; scattered data would be lost with their worker.
"""

from __future__ import annotations

import math
import uuid
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from time import perf_counter
from typing import Any

import dask
from distributed import CancelledError, Client
from distributed import TimeoutError as DaskTimeoutError
from distributed.scheduler import KilledWorker

from cutsvm._utils.errors import ClusterError, NoWorkersError
from cutsvm.cluster.protocol import Column, Common, Executor, Resources, Window, of_element, size_of, worker_error
from cutsvm.io.models.model_format import package_version

__all__ = ["Dask"]


@dataclass(eq=False)
class Dask(Executor):
    """Tasks on the workers of `client`. owned: the client is closed with this executor.

    The values of a column may be, or contain in lists and tuples, plain values, futures and delayed objects. Delayed
    objects are computed once in every round that needs them, and forgotten as soon as the last task has read them.
    """

    client: Client
    owned: bool = False
    window: Window = field(default_factory=Window)

    name = "dask"

    def _check_open(self) -> None:
        if self.client.status in ("closing", "closed"):
            raise ClusterError("the Dask client was closed: connect again, or make a new distributed.Client")

    @property
    def resources(self) -> Resources:
        self._check_open()
        workers: Sequence[Mapping[str, Any]] = list(self.client.scheduler_info(n_workers=-1)["workers"].values())
        threads, memory = (sum(worker[key] for worker in workers) for key in ("nthreads", "memory_limit"))
        return Resources(len(workers), threads, memory)

    def close(self) -> None:
        if self.owned:
            self.client.close()

    def check(self) -> None:
        """On all workers, and on the scheduler, which unpickles the tasks too."""
        self._check_open()
        own, found = package_version(), self.client.run(package_version, on_error="return")
        if not found:
            warnings.warn("the Dask cluster has no workers yet: tasks wait until there are some", stacklevel=2)
        found = {f"worker {address}": version for address, version in found.items()}
        try:
            found["the scheduler"] = self.client.run_on_scheduler(package_version)
        except ImportError as error:
            found["the scheduler"] = error
        # A worker that was lost in this moment says nothing; one that replaces it is checked by its first task.
        other = [name for name, version in found.items() if version != own and not isinstance(version, OSError)]
        if other:
            version, more = found[other[0]], f" and {len(other) - 1} more" if len(other) > 1 else ""
            has = f"cutsvm {version}" if isinstance(version, str) else f"no cutsvm ({version})"
            raise ClusterError(
                f"{other[0]}{more}: {has}; the client runs {own}: install the same version on the client, "
                "the scheduler and all workers"
            )

    def hold(self, column: Column) -> Column:
        return Column(self._futures(column), len(column))

    def _futures(self, column: Column) -> list[Any]:
        """Starts the tasks of all elements. Their keys are (name, k), so that errors can name part k."""
        self._check_open()
        name, values = f"cutsvm-{uuid.uuid4().hex}", column.values
        task = dask.delayed(of_element, pure=False)
        # The warning is about data in graphs; these are the point w and the like, which the tasks have in common.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            common = self.client.submit(_same, Common.of(column), key=f"{name}-common")
            elements = [
                task(common, column.own(k), *(values[i] for i in column.numbers(k)), dask_key_name=(name, k))
                for k in range(len(column))
            ]
            return list(self.client.compute(elements, optimize_graph=False, traverse=False))

    def _collect(self, column: Column) -> Iterator[Any]:
        waiting, largest = deque(self._futures(column)), 0
        try:
            while waiting:
                self._wait(waiting[0])
                _check(waiting[0])
                first = islice(waiting, self.window.count(largest))
                count = sum(1 for _ in takewhile(lambda future: future.status == "finished", first))
                # A result stays on its worker as long as a future of it is here.
                some = self.client.gather([waiting.popleft() for _ in range(count)])
                while some:
                    largest = max(largest, size_of(some[0]))
                    yield some.pop(0)
        finally:
            if waiting:
                self.client.cancel(list(waiting))

    def _wait(self, future: Any) -> None:
        """Waits for a task to end, or for the deadline if there are no workers."""
        while self.deadline < math.inf:
            left = self.deadline - perf_counter()
            try:
                future.exception(timeout=min(max(left, 0.1), 1.0))
                return
            except DaskTimeoutError:
                if left <= 0.0 and not self.resources.workers:
                    raise NoWorkersError("max_time is over, and the Dask cluster has no workers") from None
            except CancelledError:  # `_check` says why
                return


def _check(future: Any) -> None:
    """Waits for a task, and raises what it has raised."""
    error = future.exception()
    if future.cancelled():
        raise ClusterError("Dask has dropped the tasks: its scheduler was restarted, or someone else cancelled them")
    if isinstance(error, KilledWorker):
        part = error.task[1] if isinstance(error.task, tuple) else error.task
        raise ClusterError(
            f"part {part}, or another one that the same workers had: {error.allowed_failures + 1} workers died, the "
            f"last one at {error.last_worker.address}. Most often they ran out of memory: use smaller parts, workers "
            "with more memory, or fewer threads. If workers are lost for other reasons, such as preemption, set Dask's "
            "distributed.scheduler.allowed-failures higher"
        )
    if error is not None:
        raise worker_error(error)


def _same(value: Any) -> Any:
    return value
