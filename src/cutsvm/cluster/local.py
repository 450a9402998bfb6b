"""The executor of this process: tasks run on threads, a few at a time. A store is read by one of them, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from cutsvm._utils import threads
from cutsvm._utils.threads import ThreadPool
from cutsvm.cluster.protocol import Column, Executor, Resources, apply
from cutsvm.io.models.model_format import package_version

__all__ = ["Local"]


@dataclass(eq=False)
class Local(Executor):
    """Tasks on `n_jobs` threads of this process, in the order of the parts."""

    n_jobs: int | None = None

    name = "local"

    @property
    def resources(self) -> Resources:
        return Resources(1, threads.count(self.n_jobs))

    def hold(self, column: Column) -> Column:
        values = list(self._collect(column))
        return Column(values, len(values))

    def _collect(self, column: Column) -> Iterator[Any]:
        count, version = self.resources.threads, package_version()
        if count == 1:
            if column.inputs is None and not any(step.own is not None for step in column.steps):
                for value in column.values:  # of any number: blocks that are read one after the other
                    yield apply(version, column.tasks, [()] * len(column.steps), column.shared, value)
                return
            for k in range(len(column)):
                yield self._element(version, column, k)
            return
        waiting: deque[Future[Any]] = deque()
        with ThreadPool(count) as pool:
            try:
                for k in range(len(column)):
                    waiting.append(pool.submit(self._element, version, column, k))
                    if len(waiting) > count:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for task in waiting:
                    task.cancel()

    @staticmethod
    def _element(version: str, column: Column, k: int) -> Any:
        values = (column.values[number] for number in column.numbers(k))
        return apply(version, column.tasks, column.own(k), column.shared, *values)
