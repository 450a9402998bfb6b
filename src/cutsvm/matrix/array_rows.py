"""What dense and sparse matrices in memory share: the bound matrix, whose methods are the kernels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import DTypeLike

from cutsvm._native import core
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.matrix.magnitudes import Magnitudes

Own = TypeVar("Own", bound="ArrayRows")


class ArrayRows(core.Matrix):
    """Rows in memory, read in place."""

    room: int | None = None  # rows that a solver may copy; None: any number
    held = True  # there is memory for a few numbers of each row

    @property
    @abstractmethod
    def magnitudes(self) -> Magnitudes: ...

    @abstractmethod
    def take(self: Own, rows: Ints) -> Own:
        """A copy of these rows."""

    @abstractmethod
    def part(self: Own, begin: int, end: int) -> Own:
        """The rows from begin to end, read where they are."""

    @abstractmethod
    def with_threads(self: Own, threads: int) -> Own:
        """The same rows, read by another number of threads."""

    def centred(self: Own) -> tuple[Own, Vector | None]:
        """Themselves: rows of these kinds are not centred."""
        return self, None

    @staticmethod
    def vector(shape: int | tuple[int, int], dtype: DTypeLike = np.float64) -> Array:
        return np.empty(shape, dtype=dtype)

    @cached_property
    def mean_square(self) -> float:
        """The mean of |x_i|^2, estimated from up to 1000 evenly spaced rows."""
        some = self.take(np.unique(np.linspace(0, self.n - 1, 1000).astype(np.int64)))
        return float(some.squares_of(0, some.n).mean())

    def squares_of(self, begin: int, end: int) -> Vector:
        """|x_i|^2 of the rows from begin to end."""
        out = np.empty(end - begin)
        self.part(begin, end).squares(out)
        return out

    def blocks(self: Own, size: int = 1 << 16) -> Iterator[tuple[slice, Own]]:
        """All rows, `size` at a time: their place, and the rows."""
        for begin in range(0, self.n, size):
            end = min(self.n, begin + size)
            yield slice(begin, end), self.part(begin, end)
