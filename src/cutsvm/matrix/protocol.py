"""The data matrix X as an oracle reads it: scores of all rows, and sums of rows, however X is stored."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike

from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.matrix.magnitudes import Magnitudes

# Returned by an epoch of dual coordinate descent: the duality gap of the rows visited, the largest and the smallest
# projected gradient, and the number of rows that stay active.
Seen = tuple[float, float, float, int]


class Descent(NamedTuple):
    """The dual problem of an epoch of coordinate descent; see core/dcd.hpp."""

    a: Vector
    q: Vector
    C: float
    unit: float
    above: float
    below: float
    alpha: Vector

    def part(self, rows: slice) -> Descent:
        return self._replace(a=self.a[rows], q=self.q[rows], alpha=self.alpha[rows])


class Choices(NamedTuple):
    """The class that each row chooses, and the one that it chose before; see core/many.hpp."""

    y: Array
    weights: Vector
    old: Array
    fresh: Array
    classes: int

    def part(self, rows: slice) -> Choices:
        return Choices(self.y[rows], self.weights[rows], self.old[rows], self.fresh[rows], self.classes)


class Rows(Protocol):
    """n rows x_i of d features; `entries` values are read by one pass."""

    @property
    def n(self) -> int: ...
    @property
    def d(self) -> int: ...
    @property
    def entries(self) -> int: ...

    def vector(self, shape: int | tuple[int, int], dtype: DTypeLike = np.float64) -> Array:
        """Memory for numbers of each row, not initialised."""

    def scores(self, w: Vector, b: float, out: Vector) -> None:
        """out[i] = x_i . w + b"""

    def compensated_scores(self, w: Vector, b: float, out: Vector, rest: Vector) -> None:
        """out[i] + rest[i] = x_i . w + b in twice the digits; out[i] is that rounded once."""

    def centred(self) -> tuple[Rows, Vector | None]:
        """Rows less a row m, and m, where that leaves more digits; else the rows themselves and None."""

    @property
    def magnitudes(self) -> Magnitudes:
        """Bounds on the values of the rows."""

    def accumulate(self, old: Vector, fresh: Vector, bounds: Ints, sums: Vector, moved: Vector) -> int:
        """sums[p] += sum over shard p of (fresh_i - old_i) (x_i, 1); moved[p] += sum of |fresh_i - old_i|.

        Then old = fresh. Returns the number of rows read: those whose coefficient changed.
        """

    def scores_many(self, W: Vector, b: Vector, out: Vector) -> None:
        """out[i, k] = x_i . W[k] + b[k]"""

    def accumulate_choices(self, choices: Choices, bounds: Ints, sums: Vector, moved: Vector) -> int:
        """sums[p], class by class, += the change over the rows of shard p from the choice `old` to `fresh`.

        A row that chose k contributes s_i x_i to class k and -s_i x_i to its own. Then old = fresh. Returns the number
        of rows read.
        """

    def group_sums(self, weights: Vector, group: Array, sums: Vector) -> int:
        """sums[g] += sum of |weights_i| (x_i, 1) over the rows of group g; rows of a group below 0 are left out.

        Returns the number of rows read.
        """

    def tangents(self, signed: Vector, W: Vector, b: Vector, edges: Ints, partial: Vector, heights: Vector) -> None:
        """The hinge loss of each piece of rows and its tangent plane, at several points; see core/tangents.hpp."""
