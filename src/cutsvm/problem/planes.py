"""Planes under the risk, the sums over rows that they are made of, and the bundle of all planes so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from cutsvm._utils.memory import planes_within
from cutsvm._utils.threads import cached_property
from cutsvm._utils.timing import timed
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.matrix import Choices, PlaneMemory, Rows
from cutsvm.problem.certificate import RowScale, dual_bound, gamma
from cutsvm.qp.problem import ReducedProblem
from cutsvm.qp.sorted_planes import ReducedSolution

OVERFLOW = 1e120  # C times a slope; its square is what counts


class Heights(NamedTuple):
    """The offsets of planes sum_i c_i (x_i, 1), one for each shard, and what their rounding errors depend on.

    sizes: sum |c_i|. magnitudes: the sum of the absolute values of the numbers that the offset is a sum of.
    """

    offsets: Vector
    sizes: Vector
    magnitudes: Vector

    @classmethod
    def of_weights(cls, offsets: Vector) -> Heights:
        """Where an offset is sum |c_i| itself, as with the hinge loss."""
        return cls(offsets, offsets, offsets)


@dataclass(frozen=True, eq=False)
class Planes:
    """R_p(w) >= slopes[p] . w + offsets[p], one row per shard p, up to rounding.

    errors: what rounding may have cost slope and offset of each plane, and what the slopes in the free coordinates: the
    number e of `cutsvm.problem.certificate`, twice. Then sum_i |c_i| of its coefficients, or half of it where a row has
    two.
    """

    slopes: Vector
    offsets: Vector
    errors: Vector

    def overflow(self, C: float) -> bool:
        """Whether they are too steep for a reduced problem at C."""
        return not C * float(np.abs(self.slopes).max(initial=0.0)) < OVERFLOW

    def balanced(self, most: float) -> Planes:
        """Planes whose slopes in b, the last coordinate, sum to 0, if their mean misses it by `most`, which is then an
        error; if it misses it by more, the bundle balances them."""
        excess = float(self.slopes[:, -1].mean())
        if not 0.0 < abs(excess) <= most:
            return self
        slopes, errors = self.slopes.copy(), self.errors.copy()
        slopes[:, -1] -= excess
        errors[:, 1] += abs(excess)
        return Planes(slopes, self.offsets, errors)


class Bundle:
    """The planes so far: R(w) >= sum_p max(0, max_k slope_pk . w + offset_pk) =: R_B(w).

    Planes do not depend on C, so a bundle serves every C. With two free coordinates and more, its bound depends on
    `intercept_box`: some minimiser of the whole objective has none of them beyond it, for every C in question.

    memory: for planes and the reduced problem; None: any. If `most` fit and more are added, those of the least weight
    in the last solution are replaced by one plane per shard, their mean with these weights: it lies below R_p as they
    do, and the bound of the last solution stays.
    """

    # A plane is idle that adds less than this share of the mean that its shard's planes add to the bound. With several
    # free coordinates planes of little weight may be what balances the others: those are kept.
    IDLE, BALANCING = 0.02, 0.001
    MOVED = 1 << 22  # bytes of planes that are moved at a time

    def __init__(
        self,
        size: int,
        n_free: int,
        scale: Callable[[], RowScale],
        intercept_box: float = np.inf,
        memory: PlaneMemory | None = None,
    ) -> None:
        self.n_free, self.intercept_box = n_free, intercept_box
        self.most = None if memory is None else planes_within(memory.size, size)
        self._memory = memory
        self._allocate = np.zeros if memory is None else memory.allocator(size)
        self._scale = scale
        self._slopes = np.empty((0, size))  # grown by doubling; the first `_used` rows count
        self._offsets: Vector = np.empty(0)
        self._errors: Vector = np.empty((0, 3))
        self._shard: Ints = np.empty(0, dtype=np.int64)
        self._gram = np.empty((0, 0))
        self._known = 0  # rows of the Gram matrix that are filled in
        self._weights: Vector = np.empty(0)  # the last solution's, of the planes it knew, in units of C
        self._idle: Ints = np.empty(0, dtype=np.int64)  # solutions in a row without this plane
        self._used = 0
        self._largest = 0.0  # of all slopes
        self._highest = (0.0, 0.0)  # the best bound so far, and the C that it is for
        self._rising = False  # whether the last solution has bettered it
        self._care = 1.0  # by how much more exactly to solve because it has not
        self._proven = (0.0, 0.0)  # a bound from elsewhere, and its C

    def __len__(self) -> int:
        return self._used

    @property
    def slopes(self) -> Vector:
        """The planes' slopes, one row each."""
        return self._slopes[: self._used]

    @property
    def offsets(self) -> Vector:
        return self._offsets[: self._used]

    @property
    def errors(self) -> Vector:
        return self._errors[: self._used]

    @property
    def sizes(self) -> Vector:
        """sum_i |c_i| of each plane's coefficients."""
        return self._errors[: self._used, 2]

    @property
    def shard(self) -> Ints:
        """The shard that each plane belongs to."""
        return self._shard[: self._used]

    @property
    def weights(self) -> Vector:
        """The planes' weights in the last solution, in units of C."""
        return self._weights[: self._used]

    @property
    def largest(self) -> float:
        """The largest absolute slope that any plane has had."""
        return self._largest

    def heaviest(self, copies: int = 4) -> Array:
        """Indices of all planes or, where memory is limited, of as many as leave room for the copies; rising."""
        many = self._used
        if self._memory is not None:
            many = min(many, max(1, self._memory.size // (8 * copies * self._slopes.shape[1])))
        adds = self.weights * self.sizes
        return np.sort(np.argsort(-adds, kind="stable")[:many]) if many < self._used else np.arange(self._used)

    def proven(self, C: float) -> float:
        """A bound of the objective that holds before any plane is looked at: that of a run which this one goes on."""
        return self._proven[0] if self._proven[1] == C else 0.0

    def resume(self, planes: Planes, shard: Ints, weights: Vector, proven: tuple[float, float]) -> None:
        """Takes up an empty bundle where another of the same risk ended; `proven` is its bound and the C of that."""
        m = len(shard)
        self._grow(m)
        self._slopes[:m], self._offsets[:m], self._shard[:m] = planes.slopes, planes.offsets, shard
        self._errors[:m] = planes.errors
        self._weights[:m], self._idle[:m] = weights, 0
        self._used = m
        self._largest = max(float(planes.slopes.max(initial=0.0)), -float(planes.slopes.min(initial=0.0)))
        self._proven = self._highest = proven

    def add(self, planes: Planes) -> None:
        """Adds one plane per shard, but for those that say no more than R_p >= 0."""
        nontrivial = np.flatnonzero((planes.offsets > 0.0) | planes.slopes.any(axis=1))
        fresh = len(nontrivial)
        if self.most is not None and self._used + fresh > self.most:
            self._combine(max(1, self.most // 2 - fresh))
        if self._used + fresh > len(self._offsets):
            doubled = max(2 * len(self._offsets), 16)
            self._grow(max(doubled if self.most is None else min(doubled, self.most), self._used + fresh))
        rows = slice(self._used, self._used + fresh)
        self._slopes[rows], self._offsets[rows] = planes.slopes[nontrivial], planes.offsets[nontrivial]
        self._errors[rows] = planes.errors[nontrivial]
        self._shard[rows], self._weights[rows], self._idle[rows] = nontrivial, 0.0, 0
        self._used += fresh
        self._largest = max(self._largest, float(np.abs(planes.slopes).max()))

    def _grow(self, capacity: int) -> None:
        def larger(old: Vector) -> Vector:
            new = np.zeros((capacity, *old.shape[1:]), dtype=old.dtype)
            new[: self._used] = old[: self._used]
            return new

        slopes = self._allocate((capacity, self._slopes.shape[1]))
        slopes[: self._used] = self._slopes[: self._used]
        self._slopes = slopes
        self._offsets, self._errors, self._weights = map(larger, (self._offsets, self._errors, self._weights))
        self._shard, self._idle = (larger(a).astype(np.int64) for a in (self._shard, self._idle))  # type: ignore[arg-type]

    def _combine(self, many: int) -> None:
        """Leaves up to this number of planes: the latest, those that add most to the bound, and means of the others."""
        m, shard, lost = self._used, self.shard, gamma(self._used + 8)
        weights = np.maximum(self._weights[:m], 0.0)
        latest = (self._weights[:m] == 0.0) & (self._idle[:m] == 0)  # no solution has seen them
        order = np.argsort(-np.where(latest, np.inf, weights * self.sizes), kind="stable")
        stay = max(0, many - len(np.unique(shard)))
        rest = np.sort(order[stay:])
        rest = rest[weights[rest] > 0.0]
        means = []
        for p in np.unique(shard[rest]).tolist():
            mine = rest[shard[rest] == p]
            total = float(weights[mine].sum())
            x = weights[mine] / total * (1.0 - lost)  # of sum 1 at most, whatever rounding takes
            offset, errors = float(x @ self.offsets[mine]), x @ self.errors[mine]
            height = float(x @ np.abs(self.offsets[mine]))
            errors = errors + 2.0 * lost * (errors[2] + errors)  # of adding up the slope: as in `dual_bound`
            slope = np.zeros(self._slopes.shape[1])
            for times, k in zip(x.tolist(), mine.tolist(), strict=True):  # a copy of them all might not fit
                slope += times * self._slopes[k]
            means.append((total, p, slope, offset - lost * height, errors))
        self._keep(np.sort(order[:stay]))
        for total, p, slope, offset, errors in sorted(means, key=lambda mean: -mean[0])[: many - stay]:
            k = self._used
            self._slopes[k], self._offsets[k], self._errors[k], self._shard[k] = slope, offset, errors, p
            self._weights[k], self._idle[k] = total, 0
            self._used += 1

    def height(self, w: Vector) -> float:
        """R_B(w)"""
        tops = np.zeros(1 + int(self.shard.max(initial=0)))
        np.maximum.at(tops, self.shard, self.slopes @ w + self.offsets)
        return float(tops.sum())

    def minimise(self, C: float, tol: float) -> ReducedSolution:
        """min over w of |w|^2/2 + C R_B(w), to an absolute tolerance; its bound holds whatever the tolerance."""
        with timed("qp"):
            if not C * self._largest < OVERFLOW:
                raise FloatingPointError("the objective would overflow: scale the features, or lower C")
            m = self._used
            if m == 0:
                return ReducedSolution(np.zeros(self._slopes.shape[1]), 0.0, 0.0, 0.0, np.empty(0), 0)
            problem = ReducedProblem(
                self._slopes[:m],
                self._offsets[:m],
                self._shard[:m],
                self.n_free,
                self._gram_matrix(),
                self.intercept_box,
            )
            solution = problem.solve(C, self._care * tol, self._weights[:m])
            self._weights[:m] = solution.weights
            highest = self._highest[0] if self._highest[1] == C else 0.0
            self._rising = solution.lower > highest
            self._highest = max(highest, solution.lower), C
            self._care = 1.0 if self._rising else max(1e-6, 0.25 * self._care)
            shard = self._shard[:m]
            adds = solution.weights * self.sizes
            mean = np.bincount(shard, weights=adds) / np.maximum(1, np.bincount(shard))
            busy = adds > (self.IDLE if self.n_free < 2 else self.BALANCING) * mean[shard]
            self._idle[:m] = np.where(busy, 0, self._idle[:m] + 1)
            return replace(solution, lower=self.bound(C, solution.weights))

    @property
    def scale(self) -> RowScale:
        """What bounds need to know of the rows; it may take a pass, which is made when the first bound is."""
        if "_known_scale" not in self.__dict__:
            self._known_scale = self._scale()
        return self._known_scale

    def bound(self, C: float, weights: Vector) -> float:
        """The lower bound of the objective that these weights of the planes prove, rounding errors taken off."""
        return dual_bound(self.slopes, self.offsets, self.errors, self.shard, weights, C, self.scale)

    def _gram_matrix(self) -> Vector | None:
        """slopes @ slopes.T over the regularised coordinates, if that is smaller than the slopes' own."""
        m, known = self._used, self._known
        features = self._slopes.shape[1] - self.n_free
        if m > features:
            return None
        if len(self._gram) < m:
            gram = np.empty((len(self._offsets),) * 2)
            gram[:known, :known] = self._gram[:known, :known]
            self._gram = gram
        if known < m:
            part = self._slopes[:m, :features]
            block = part[known:m] @ part.T
            self._gram[known:m, :m] = block
            self._gram[:m, known:m] = block.T
            self._known = m
        return self._gram[:m, :m]

    def drop_idle(self, patience: int, *, always: bool = False) -> None:
        """Drops planes that carried no weight in the last `patience` solutions.

        Only while the bound rises: otherwise a plane that is dropped could come back, and so on for ever. Not so if it
        is for another C from now on (`always`).
        """
        if not (self._rising or always):
            return
        m = self._used
        keep = np.flatnonzero(self._idle[:m] < patience)
        if len(keep) < m:
            self._keep(keep)

    def _keep(self, keep: Ints) -> None:
        """Drops all other planes; `keep` rises."""
        known = keep[keep < self._known]
        self._gram[: len(known), : len(known)] = self._gram[np.ix_(known, known)]
        self._known, self._used = len(known), len(keep)
        for array in (self._slopes, self._offsets, self._errors, self._shard, self._weights, self._idle):
            some = max(1, self.MOVED // max(1, array[:1].nbytes))
            for begin in range(0, len(keep), some):  # not all at once: a copy of wide planes might not fit
                array[begin : begin + some][: len(keep) - begin] = array[keep[begin : begin + some]]


@dataclass(eq=False)
class RowSums:
    """sums[p] = sum over the rows i of shard p of g_i (x_i, 1), for coefficients g that change from call to call.

    An update adds and subtracts the rows whose coefficient has changed, so its rounding error grows with all the weight
    ever moved: a sum is recomputed once that is `stale` times the weight that the plane has itself.
    """

    matrix: Rows
    bounds: Ints
    size: int
    stale: float
    calls: int = 0  # updates since all sums were last recomputed
    sums: Vector = field(init=False)
    moved: Vector = field(init=False)  # by shard, the sum of |coefficients| ever added

    def __post_init__(self) -> None:
        shards = len(self.bounds) - 1
        self.sums, self.moved = np.zeros((shards, self.size)), np.zeros(shards)

    @cached_property
    def _coefficients(self) -> Vector:
        """g of the last call, 0 at first."""
        last: Vector = self.matrix.vector(self.matrix.n)
        last.fill(0.0)
        return last

    @cached_property
    def workspace(self) -> Vector:
        """Memory for the next g."""
        return self.matrix.vector(self.matrix.n)

    def update(self, g: Vector, offsets: Vector) -> int:
        """The sums for g; returns how many rows were read. offsets: the weight that each plane has itself."""
        stale = np.flatnonzero(self.moved > self.stale * offsets)
        self.calls = 1 if len(stale) == len(offsets) else self.calls + 1
        for p in stale:
            self.sums[p], self.moved[p] = 0.0, 0.0
            self._coefficients[self.bounds[p] : self.bounds[p + 1]] = 0.0
        return self.matrix.accumulate(self._coefficients, g, self.bounds, self.sums, self.moved)


@dataclass(eq=False)
class ChoiceSums:
    """The same for several classes: a row that chooses class k adds s_i x_i to class k and subtracts it from its own.

    sums[p] has the features of all classes side by side.
    """

    matrix: Rows
    bounds: Ints
    classes: int
    y: Array
    stale: float
    added: int = 0  # rows added or subtracted since all sums were last recomputed
    sums: Vector = field(init=False)
    moved: Vector = field(init=False)

    def __post_init__(self) -> None:
        shards = len(self.bounds) - 1
        self.sums, self.moved = np.zeros((shards, self.classes * self.matrix.d)), np.zeros(shards)

    @cached_property
    def _choices(self) -> Array:
        """The classes chosen in the last call; at first each row's own, which makes all sums 0."""
        last = self.matrix.vector(self.matrix.n, np.int32)
        np.copyto(last, self.y)
        return last

    @cached_property
    def workspace(self) -> Array:
        """Memory for the next choices."""
        return self.matrix.vector(self.matrix.n, np.int32)

    def update(self, choices: Array, weights: Vector, offsets: Vector) -> int:
        """The sums for these choices; returns how many rows were read."""
        stale = np.flatnonzero(self.moved > self.stale * offsets)
        if len(stale) == len(offsets):
            self.added = 0
        for p in stale:
            mine = slice(self.bounds[p], self.bounds[p + 1])
            self.sums[p], self.moved[p], self._choices[mine] = 0.0, 0.0, self.y[mine]
        change = Choices(self.y, weights, self._choices, choices, self.classes)
        read = self.matrix.accumulate_choices(change, self.bounds, self.sums, self.moved)
        self.added += 2 * read
        return read
