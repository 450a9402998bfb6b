"""cached_property without a lock.

Until Python 3.12 that of functools holds a lock, one for all objects of a class, while it computes. A property that
reads rows may wait for other threads (`cutsvm.matrix.shared_reads`), and they would wait for the lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class cached_property(Generic[Value]):  # noqa: N801
    """Computed at its first use, then an attribute of the object; two threads may both compute it."""

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self.compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> cached_property[Value]: ...

    @overload
    def __get__(self, instance: object, owner: type[Any]) -> Value: ...

    def __get__(self, instance: object | None, owner: type[Any]) -> cached_property[Value] | Value:
        if instance is None:
            return self
        found = instance.__dict__[self.name] = self.compute(instance)
        return found
