"""Parts that Dask computes: by the workers of a cluster, or without one by this process, a few at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from threading import Lock
from typing import Any

from cutsvm.cluster.collections.base import Opener, Part, arrays_of
from cutsvm.cluster.local import Local
from cutsvm.cluster.protocol import Column, Executor

__all__ = ["Recent", "column_of", "dask", "results_of"]


def dask(module: str = "dask") -> Any:
    """The library, which the user has imported."""
    return import_module(module)


@dataclass(eq=False)
class Recent:
    """The parts that were computed last, `many` of them: neighbouring chunks often need the same one."""

    opener: Opener
    many: int
    _parts: OrderedDict[str, tuple[Lock, list[Part]]] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def __call__(self, value: Any, name: str) -> Part:
        with self._lock:
            lock, found = self._parts.setdefault(name, (Lock(), []))
            self._parts.move_to_end(name)
            while len(self._parts) > self.many:
                self._parts.popitem(last=False)
        with lock:
            if not found:
                found.append(self.opener(_computed(value), name))
            return found[0]


def results_of(executor: Executor, values: Sequence[Any]) -> Column:
    """A column of what delayed values are computed to."""
    column = Column(values, len(values))
    return column.map(_computed) if isinstance(executor, Local) else column


def _computed(value: Any) -> Any:
    return dask().compute(value, scheduler="synchronous")[0]


def column_of(executor: Executor, values: Sequence[Any], opener: Opener = arrays_of) -> tuple[Column, Opener]:
    """A column of delayed values, and what opens one."""
    if isinstance(executor, Local):
        return Column(values, len(values)), Recent(opener, executor.resources.threads + 1)
    return Column(values, len(values)), opener
