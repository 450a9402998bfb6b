"""Tasks on a Ray cluster (https://docs.ray.io).

Ray runs the tasks of a lost worker again, and computes held elements again that were lost with it, as often as that
takes (`max_retries=-1`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from cutsvm._utils.errors import ClusterError
from cutsvm.cluster.protocol import Column, Common, Executor, Resources, of_element, worker_error

__all__ = ["Ray", "RaySettings"]


@dataclass(frozen=True)
class RaySettings:
    """ahead: tasks for each processor that are started before the first result is fetched; small results wait here.

    cpus: of one task, as Ray counts them.
    """

    ahead: int = 8
    cpus: float = 1.0


@dataclass(eq=False)
class Ray(Executor):
    """Tasks on the cluster that `ray.init` has connected to. owned: the connection is closed with this executor.

    The values of a column may be plain values and object references.
    """

    owned: bool = False
    settings: RaySettings = field(default_factory=RaySettings)

    name = "ray"

    @property
    def resources(self) -> Resources:
        total = ray.cluster_resources()
        nodes = sum(1 for node in ray.nodes() if node["Alive"])
        return Resources(nodes, int(total.get("CPU", 0)), int(total.get("memory", 0)))

    def close(self) -> None:
        if self.owned:
            ray.shutdown()

    def hold(self, column: Column) -> Column:
        return Column(list(self._started(column)), len(column))

    def _started(self, column: Column) -> Iterator[Any]:
        """Starts a task for each element that is asked for."""
        common, values = ray.put(Common.of(column)), column.values
        task = ray.remote(of_element).options(num_cpus=self.settings.cpus, max_retries=-1, name="cutsvm")
        for k in range(len(column)):
            yield task.remote(common, column.own(k), *(values[i] for i in column.numbers(k)))

    def _collect(self, column: Column) -> Iterator[Any]:
        started = self._started(column)
        waiting = deque(islice(started, self.settings.ahead * max(1, self.resources.threads)))
        # After an error those that wait run to their end: ray.cancel of a task that just ends ends this process as well
        # (Ray 2.60: "Tried to complete task that was not pending").
        while waiting:
            result = _result(waiting[0])
            waiting.popleft()
            waiting.extend(islice(started, 1))
            yield result


def _result(task: Any) -> Any:
    try:
        return ray.get(task)
    except RayTaskError as error:
        raise worker_error(error.cause) from None
    except RayError as error:
        raise ClusterError(f"Ray could not compute a part: {error}") from None
