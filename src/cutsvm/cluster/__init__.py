"""Fits on more than one machine: the same tasks on threads, Dask, Ray or Spark."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Not later, as the others: the function has the name of its module, which would take its place here.
from cutsvm.cluster.engines import connect, current_executor

if TYPE_CHECKING:
    from cutsvm.cluster.collections.parquet import parquet
    from cutsvm.cluster.local import Local
    from cutsvm.cluster.protocol import Executor

__all__ = ["Executor", "Local", "connect", "current_executor", "parquet"]

# Where each name lives; it is imported when it is first asked for.
_HOMES = {
    "Executor": "cutsvm.cluster.protocol",
    "Local": "cutsvm.cluster.local",
    "parquet": "cutsvm.cluster.collections.parquet",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
