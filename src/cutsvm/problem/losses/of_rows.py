"""What losses that are sums over rows of a function of one score share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from cutsvm._native import core
from cutsvm._utils.threads import cached_property

__all__ = ["SumOfRowLosses"]


class SumOfRowLosses(ABC):
    """A sum over rows of a function of their score, which `rows` is, in compiled code.

    A pickle has the numbers that it is made of, and the sums over them: those are the same to the last bit.
    """

    n: int
    threads: int

    @cached_property
    def rows(self) -> core.RowLoss:
        return self._row_loss()

    @abstractmethod
    def _row_loss(self) -> core.RowLoss: ...

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "rows"}
