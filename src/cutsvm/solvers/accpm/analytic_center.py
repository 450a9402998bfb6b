"""The analytic centre of a set of cuts.

P. Bialon: A linear Support Vector Machine solver for a large number of training examples, Control and Cybernetics 38
(2009), the potential of Algorithm 1 and its minimum by Algorithm 6; after Yu. Nesterov: Complexity estimates of some
cutting plane methods based on the analytic barrier, Mathematical Programming 69 (1995).

With k cuts a_i.x >= c_i of length |a_i| = 1, and a solution known to lie within R of 0, the centre is

    argmin over x of  Phi(x) = (8 + k) / (2 R^2) |x|^2 - sum_i ln s_i,    s_i = a_i.x - c_i > 0

A new cut goes through the last centre, where its s is 0. Then (Algorithm 6), with H an approximation of Phi's Hessian:

    1. x = the minimum of Phi on the half-line x + t (1/H) a, a the new cut: a point inside again. Update H
    2. x = the minimum of Phi on the half-line x - t (1/H) Phi'(x). Update H
    3. go on with 2 until Phi' (1/H) Phi' <= 0.1

H = rho I + sum_i a_i a_i' / t_i^2 with rho = (8 + k) / R^2: t_i is s_i as it was when the cut's term was last updated,
which it is once the two differ by a tenth. The paper's signs are mended: it writes -ln of the negative of s_i.

Fewer cuts than coordinates: x = A'y, and H is inverted by Woodbury's formula, without its subtraction,
(1/H) A'u = A' (1/(rho T^2 + A A')) T^2 u, T = diag(t). Then all is done with y and the cuts' products A A'.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from cutsvm._utils.timing import timed
from cutsvm._utils.types import Ints, Vector


@dataclass(frozen=True)
class CentreSettings:
    """near, steps: the paper's rule for a centre that is near enough, and steps 2 at most; three to six are usual.

    factor: a cut's term in H is updated when s_i is not within this factor of t_i any more.
    flat, tries: a search along a line ends at this square of the Newton decrement, and after this number of points.
    ridge: added to the diagonal of a matrix that rounding has left without a Cholesky factor, as a share of its largest
        entry.
    """

    near: float = 0.1
    steps: int = 50
    factor: float = 1.1
    flat: float = 1e-4
    tries: int = 60
    ridge: float = 1e-14


class Step(NamedTuple):
    """A direction p: its coordinates in the form that is in use, q = A p, x.p and |p|^2."""

    p: Vector
    q: Vector
    xp: float
    pp: float


Allocate = Callable[[tuple[int, int]], Vector]


class Centre:
    """The centre `x` of the cuts so far; R is `radius`. allocate: memory for cuts."""

    def __init__(
        self, size: int, radius: float, settings: CentreSettings | None = None, allocate: Allocate = np.zeros
    ) -> None:
        self.radius, self.settings = radius, settings or CentreSettings()
        self.x: Vector = np.zeros(size)
        self.slacks: Vector = np.empty(0)
        self._form: _ByCuts | _ByCoordinates = _ByCuts(size, self.settings, allocate)

    @timed("centre")
    def cut(self, normal: Vector) -> bool:
        """Adds the cut normal.y <= normal.x and moves x to the new centre.

        False if it cannot, and x stays: the normal is 0, or the set is too thin for float64.
        """
        length = float(np.linalg.norm(normal))
        if not 0.0 < length < np.inf:
            return False
        form = self._form
        form.add(-normal / length)
        if isinstance(form, _ByCuts) and form.cuts.used > len(self.x):
            form = self._form = _ByCoordinates(form)
        slacks = form.slacks()
        slacks[-1] = 0.0
        if not (slacks[:-1] > 0.0).all():
            return False
        moved = self._recentre(slacks)
        if moved is None:
            return False
        self.slacks, self.x = moved, form.point()
        return True

    @property
    def mean_log_distance(self) -> float:
        """The mean of ln(s_i / R): what the paper's stop test looks at."""
        return float(np.log(self.slacks / self.radius).mean())

    def _recentre(self, slacks: Vector) -> Vector | None:
        """Algorithm 6 from the last centre; the slacks at the new one, or None if rounding forbids it."""
        form, k = self._form, len(slacks)
        rho = (8.0 + k) / self.radius**2
        # The direction (1/H) a does not depend on the new cut's own t, only its length does.
        guess = float(np.exp(np.log(slacks[:-1]).mean())) if k > 1 else self.radius
        if not form.update(rho, np.append(slacks[:-1], guess)):
            return None
        inward = np.zeros(k)
        inward[-1] = 1.0
        step = form.solve(0.0, inward)
        for _ in range(self.settings.steps):
            t = lowest(slacks, step.q, rho * step.xp, rho * step.pp, self.settings)
            if t is None:
                return None
            slacks = slacks + t * step.q
            form.move(step, t)
            if not ((slacks > 0.0).all() and form.update(rho, slacks)):
                return None
            step = form.solve(-rho, 1.0 / slacks)
            if float((step.q / slacks).sum()) - rho * step.xp <= self.settings.near:
                return slacks
        return slacks


def lowest(slacks: Vector, q: Vector, tilt: float, curvature: float, settings: CentreSettings) -> float | None:
    """argmin over t > 0 of tilt t + curvature t^2/2 - sum_i ln(s_i + t q_i): Newton's method between two brackets.

    Slacks may be 0 where q is above 0. None if the function does not fall at 0.
    """
    inward = q < 0.0
    if not np.isfinite(q).all() or np.any((slacks <= 0.0) & (q <= 0.0)):
        return None
    if (slacks > 0.0).all() and tilt - float((q / slacks).sum()) >= 0.0:
        return None
    low, high = 0.0, float((slacks[inward] / -q[inward]).min()) if inward.any() else np.inf
    t = min(1.0, 0.5 * high)
    for _ in range(settings.tries):
        share = q / (slacks + t * q)
        slope, bend = tilt + curvature * t - float(share.sum()), curvature + float(share @ share)
        if slope * slope <= settings.flat * bend:
            return t
        low, high = (t, high) if slope < 0.0 else (low, t)
        t -= slope / bend
        if not low < t < high:
            t = 0.5 * (low + high) if high < np.inf else 2.0 * low
        if t in (low, high):  # next to each other
            break
    return low if low > 0.0 else None


class _Grown:
    """Rows that are added one at a time, in an array that doubles."""

    def __init__(self, width: int, allocate: Allocate) -> None:
        self._allocate, self._rows = allocate, allocate((16, width))
        self.used = 0

    def append(self, row: Vector) -> None:
        if self.used == len(self._rows):
            rows = self._allocate((2 * self.used, self._rows.shape[1]))
            rows[: self.used] = self._rows
            self._rows = rows
        self._rows[self.used] = row
        self.used += 1

    @property
    def rows(self) -> Vector:
        return self._rows[: self.used]


def _factorise(matrix: Vector, least: float) -> tuple[Vector, bool] | None:
    """The Cholesky factor of a matrix, or of one next to it; None if there is none."""
    for ridge in (0.0, least * len(matrix), 1e4 * least * len(matrix)):
        try:
            guarded = matrix + ridge * float(matrix.diagonal().max()) * np.eye(len(matrix)) if ridge else matrix
            factor: tuple[Vector, bool] = cho_factor(guarded, lower=True, check_finite=False)
        except LinAlgError:
            continue
        return factor if np.isfinite(factor[0].diagonal()).all() else None
    return None


class _Form(ABC):
    """Coordinates of x, the cuts, and H with its rho and t_i."""

    def __init__(self, cuts: _Grown, c: Vector, settings: CentreSettings) -> None:
        self.cuts, self.c, self.settings = cuts, c, settings
        self.rho, self.t = 0.0, np.empty(0)
        self._factor: tuple[Vector, bool] | None = None

    def update(self, rho: float, slacks: Vector) -> bool:
        """H at these slacks; False if rounding forbids it."""
        known = len(self.t)
        off = np.abs(np.log(slacks[:known] / self.t)) > np.log(self.settings.factor)
        stale = np.concatenate([np.flatnonzero(off), np.arange(known, len(slacks))])  # new cuts included
        if len(stale) or rho != self.rho:
            t = np.append(self.t, np.empty(len(slacks) - known))
            t[stale] = slacks[stale]
            matrix = self._changed(rho, t, stale)
            self.rho, self.t = rho, t
            self._factor = _factorise(matrix, self.settings.ridge)
        return self._factor is not None

    @abstractmethod
    def _changed(self, rho: float, t: Vector, stale: Ints) -> Vector:
        """The matrix to factorise, with another rho and with t where it is stale."""


class _ByCuts(_Form):
    """x = A'y: one unknown per cut, for fewer cuts than coordinates."""

    def __init__(self, size: int, settings: CentreSettings, allocate: Allocate) -> None:
        super().__init__(_Grown(size, allocate), np.empty(0), settings)
        self._y: Vector = np.empty(0)
        self._gram = np.empty((0, 0))

    def add(self, a: Vector) -> None:
        """The cut a.y >= a.x"""
        old = self.cuts.rows @ a
        k = len(old)
        self.cuts.append(a)
        gram = np.empty((k + 1, k + 1))
        gram[:k, :k], gram[k, :k], gram[:k, k], gram[k, k] = self._gram, old, old, float(a @ a)
        self._gram = gram
        self.c, self._y = np.append(self.c, float(old @ self._y)), np.append(self._y, 0.0)

    def slacks(self) -> Vector:
        """s = A x - c"""
        slacks: Vector = self._gram @ self._y - self.c
        return slacks

    def _changed(self, rho: float, t: Vector, stale: Ints) -> Vector:
        matrix = self._gram.copy()
        matrix[np.diag_indices_from(matrix)] += rho * t**2
        return matrix

    def solve(self, of_x: float, u: Vector) -> Step:
        """(1/H) (of_x x + A'u)"""
        assert self._factor is not None
        p: Vector = cho_solve(self._factor, self.t**2 * (of_x * self._y + u), check_finite=False)
        q = self._gram @ p
        return Step(p, q, float(self._y @ q), float(p @ q))

    def move(self, step: Step, t: float) -> None:
        self._y = self._y + t * step.p

    def point(self) -> Vector:
        x: Vector = self._y @ self.cuts.rows
        return x


class _ByCoordinates(_Form):
    """x itself: for more cuts than coordinates."""

    def __init__(self, before: _ByCuts) -> None:
        super().__init__(before.cuts, before.c, before.settings)
        self._x = before.point()
        self._matrix = np.empty((0, 0))
        self._removed = np.inf  # from the matrix, by updates since it was made

    def add(self, a: Vector) -> None:
        self.cuts.append(a)
        self.c = np.append(self.c, float(a @ self._x))

    def slacks(self) -> Vector:
        slacks: Vector = self.cuts.rows @ self._x - self.c
        return slacks

    def _changed(self, rho: float, t: Vector, stale: Ints) -> Vector:
        change = 1.0 / t[stale] ** 2
        old = stale < len(self.t)
        change[old] -= 1.0 / self.t[stale[old]] ** 2
        self._removed += float(-change[change < 0.0].sum())
        # What was subtracted leaves its rounding errors: once it weighs more than what is there, all is summed anew.
        if 2 * len(stale) > len(t) or self._removed > float(np.trace(self._matrix)):
            scaled = self.cuts.rows / t[:, None]
            self._matrix, self._removed = scaled.T @ scaled, 0.0
            self._matrix[np.diag_indices_from(self._matrix)] += rho
        else:
            for sign in (1.0, -1.0):
                some = sign * change > 0.0
                scaled = self.cuts.rows[stale[some]] * np.sqrt(np.abs(change[some]))[:, None]
                self._matrix += sign * (scaled.T @ scaled)
            self._matrix[np.diag_indices_from(self._matrix)] += rho - self.rho
        return self._matrix

    def solve(self, of_x: float, u: Vector) -> Step:
        assert self._factor is not None
        p: Vector = cho_solve(self._factor, of_x * self._x + u @ self.cuts.rows, check_finite=False)
        return Step(p, self.cuts.rows @ p, float(self._x @ p), float(p @ p))

    def move(self, step: Step, t: float) -> None:
        self._x = self._x + t * step.p

    def point(self) -> Vector:
        return self._x
