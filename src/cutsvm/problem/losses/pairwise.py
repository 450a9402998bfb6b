"""The pairwise hinge loss: sum over the pairs of a query with y_i > y_j of s_i s_j max(0, 1 - (f_i - f_j)).

`PairLoss` is what it shares with its square (`cutsvm.problem.losses.squared_pairwise`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from cutsvm._native import core
from cutsvm._utils.threads import cached_property
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.problem.certificate import UNIT, exact_difference, gamma, widened
from cutsvm.problem.line_search.breakpoints import LineValues
from cutsvm.problem.line_search.tangents import by_tangents
from cutsvm.problem.planes import Heights
from cutsvm.problem.point import LossSupports

if TYPE_CHECKING:
    from cutsvm.problem.losses import Line


@dataclass(frozen=True)
class PairSettings:
    """How pairs are counted.

    tie: a pair as close as this to the margin is on it, and does not count: round-off must not choose among slopes.
    every_pair: rows up to which every pair is evaluated for the precise loss.
    terms, sums: terms of slopes times scores that are added up, by blocks; additions of sums of levels.
    heavy: products of weights up to here, and sums of many of them, have room for slopes and scores.
    sample, pays: rows of a sample, and how many times as many there have to be for it to pay.
    """

    tie: float = 1e-12
    every_pair: int = 1024
    terms: int = 8192
    sums: int = 64
    heavy: float = 1e70
    sample: int = 2000
    pays: int = 8


class Evaluation(NamedTuple):
    """Slopes by row; by query the weight of the pairs that count, and their loss."""

    slopes: Vector
    weights: Vector
    losses: Vector


Found = TypeVar("Found")
Own = TypeVar("Own", bound="PairLoss")


class Recent(Generic[Found]):
    """What was found at the last two vectors of scores: solvers ask for value, slopes and a line at the same ones."""

    def __init__(self) -> None:
        self._known: list[tuple[Vector, Found]] = []

    def __call__(self, scores: Vector, find: Callable[[Vector], Found]) -> Found:
        for k, (known, found) in enumerate(self._known):
            if known[0] == scores[0] and np.array_equal(known, scores):  # the first tells most of them apart
                self._known.insert(0, self._known.pop(k))
                return found
        self._known = [(scores.copy(), find(scores)), *self._known[:1]]
        return self._known[0][1]


class PairLine:
    """The loss along a line of scores. It has a breakpoint for each pair, so they are not counted: each k takes a
    sort."""

    exact = False

    def __init__(self, loss: Pairwise, scores: Vector, to: Vector, times: float = 1.0) -> None:
        self.n, self._times = loss.n, times
        self._loss, self._scores, self._to, self._direction = loss, scores, to, to - scores

    def evaluate(self, ks: Vector) -> LineValues:
        slopes, values, scores = np.empty(len(ks)), np.empty(len(ks)), np.empty(self.n)
        for m, k in enumerate(ks):
            core.blend(self._scores, self._to, k, scores, self._loss.threads)  # as the solver's next point will be
            here = self._loss.evaluate(scores)
            values[m], slopes[m] = self._times * here.losses.sum(), self._times * (here.slopes @ self._direction)
        return LineValues(values, slopes)

    def minimise(self, tilt: float, curvature: float, guess: float) -> float:
        few = self.sample()
        return by_tangents(self, tilt, curvature, (by_tangents(few, tilt, curvature, guess) if few else 0.0) or guess)

    def sample(self) -> PairLine | None:
        """About the same line from few rows, to begin a search with; None where that would save nothing."""
        few = self._loss.sample
        return None if few is None else PairLine(few.loss, self._scores[few.rows], self._to[few.rows], few.times)


class Sample(NamedTuple):
    """The loss of some of the rows; multiplied by `times` it is about that of all."""

    loss: Pairwise
    rows: Ints
    times: float


class PairLoss(ABC):
    """A loss of rows that stand query by query: query q has the rows starts[q]..starts[q + 1].

    Only the order of the values y within a query counts; rows of one query with the same y make no pair. Where products
    of two weights could overflow or underflow, `weights` are those given divided by `unit`, a power of 2 that makes the
    heaviest pair weigh about 1; `total` is the weight of all pairs in these units. `longest` is the number of rows of
    the longest query.
    """

    supports: LossSupports
    settings = PairSettings()
    score_bound = offset_unit = 1.0

    def __init__(self, y: Array, weights: Vector, starts: Ints, threads: int = 1) -> None:
        self.n, self.threads = len(y), threads
        self.starts: Ints = np.ascontiguousarray(starts, dtype=np.int64)
        self.longest = int(np.diff(self.starts).max())
        self.ranks, self.levels = _levels(y, self.starts)
        self._memory = core.PairMemory()
        self.unit = _unit(self.ranks, weights, self.starts, self.levels, self.settings.heavy)
        self.weights = weights if self.unit == 1.0 else weights / self.unit
        # At equal scores every pair counts. Sums are of each query alone: one that makes no pair adds nothing.
        self.weight = self.total = float(self.count(np.zeros(self.n), 1.0).weights.sum())

    @classmethod
    def standing_for(cls: type[Own], weight: float, longest: int) -> Own:
        """The loss of two rows that stands for that of many: of their total weight, and longest query."""
        loss = cls(np.arange(2), np.ones(2), np.array([0, 2]))
        loss.weights, loss.weight, loss.total, loss.longest = np.array([1.0, weight]), weight, weight, longest
        return loss

    def __getstate__(self) -> dict[str, Any]:
        """For pickles and copies: memory to sort in is made again."""
        return {name: value for name, value in vars(self).items() if name != "_memory"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _memory=core.PairMemory())

    @property
    def n_pairs(self) -> float:
        """The weight of all pairs as it was given: without weights, their number."""
        return self.total * self.unit * self.unit

    def count(self, scores: Vector, margin: float) -> Evaluation:
        """Of the pairs with f_i - f_j < margin, in O(n log n). A query's loss is margin x weight + slopes . scores."""
        queries = len(self.levels)
        found = Evaluation(np.empty(self.n), np.empty(queries), np.empty(queries))
        rows = (self.ranks, self.weights, self.starts, self.levels)
        core.pair_slopes(*rows, scores, margin, *found, self._memory, self.threads)
        return found

    @abstractmethod
    def value(self, scores: Vector) -> float:
        """See `cutsvm.problem.losses.Loss`."""

    @abstractmethod
    def precise(self, scores: Vector, rest: Vector, error: float = 0.0) -> float:
        """See `cutsvm.problem.losses.Loss`: of few rows from every pair, of many to the precision of the sweeps."""

    @abstractmethod
    def change(self, value: float, shift: float) -> float:
        """See `cutsvm.problem.losses.Loss`."""

    @abstractmethod
    def line(self, scores: Vector, to: Vector | None = None) -> Line:
        """See `cutsvm.problem.losses.Loss`."""

    @abstractmethod
    def slopes(self, scores: Vector, bounds: Ints, out: Vector, *, balanced: bool) -> Heights:
        """See `RowLoss.slopes`. Bounds lie between queries; slopes sum to 0 in each, so they are always balanced."""

    @abstractmethod
    def slope_errors(self, heights: Heights) -> Vector:
        """By shard, given its plane: at least sum_i |error of g_i|."""

    @abstractmethod
    def value_error(self, size: float) -> float:
        """What adding up the loss may cost if no score is larger than this, besides what `change` has for the
        terms of `PairSettings`."""

    @cached_property
    def _sum_error(self) -> float:
        """The relative error of a sum over rows of one query."""
        return gamma(self.longest + self.settings.sums)

    def _shortfalls(self, scores: Vector, rest: Vector, error: float, first: int, last: int) -> Array:
        """max(0, 1 - (f_i - f_j)) for the pairs of one query, and 0 for other i, j."""
        mine = slice(first, last)
        f, more, ranks = scores[mine], rest[mine], self.ranks[mine]
        ahead, lost = exact_difference(f[:, None], f)
        lost += more[:, None] - more
        short = np.where(ranks[:, None] > ranks, (1.0 - ahead) - lost + 2.0 * error, 0.0)
        return np.maximum(0.0, short)

    def _by_shard(self, of_queries: Vector, bounds: Ints) -> Vector:
        """Sums over the queries of each shard; one row, or number, for each query."""
        queries = np.searchsorted(self.starts, bounds).tolist()
        return np.array([of_queries[first:last].sum(axis=0) for first, last in pairwise(queries)])

    def best_shift(self, scores: Vector) -> float:
        """None: an intercept does not change a difference of scores."""
        return 0.0

    def misordered(self, scores: Vector) -> Vector:
        """By query: the weight of the pairs in the wrong order, those with equal scores at one half."""
        wrong, ties = self.count(scores, 0.0).weights, self.count(scores, math.ulp(0.0)).weights
        return 0.5 * (wrong + ties)


class Pairwise(PairLoss):
    """sum over the pairs of a query with y_i > y_j of s_i s_j max(0, 1 - (f_i - f_j))."""

    supports = LossSupports(pairs=True)

    def __init__(self, y: Array, weights: Vector, starts: Ints, threads: int = 1) -> None:
        super().__init__(y, weights, starts, threads)
        self._recent: Recent[Evaluation] = Recent()

    def evaluate(self, scores: Vector) -> Evaluation:
        """At a margin of 1."""
        return self._recent(scores, self._evaluate)

    def _evaluate(self, scores: Vector) -> Evaluation:
        tie = self.settings.tie
        slopes, weights, losses = self.count(scores, 1.0 - tie)
        return Evaluation(slopes, weights, losses + tie * weights)

    def value(self, scores: Vector) -> float:
        return float(self.evaluate(scores).losses.sum())

    def precise(self, scores: Vector, rest: Vector, error: float = 0.0) -> float:
        if self.n <= self.settings.every_pair:
            total = 0.0
            for first, last in pairwise(self.starts.tolist()):
                s = self.weights[first:last]
                total += float(s @ self._shortfalls(scores, rest, error, first, last) @ s)
            return widened(total, self.n, error)
        if not error:
            found = self.count(scores, 1.0)
            return float(found.losses.sum() + found.slopes @ rest)
        # By a wider margin: no difference of two scores is off by more than twice the error of one.
        largest = max(float(scores.max()), -float(scores.min()))
        found = self.count(scores, 1.0 + 2.0 * error + 8.0 * UNIT * (1.0 + largest))
        rounding = gamma(self.settings.terms) * (1.0 + 2.0 * largest) * float(found.weights.sum())
        return float(found.losses.sum()) + rounding

    def change(self, value: float, shift: float) -> float:
        return self.weight * shift

    def slopes(self, scores: Vector, bounds: Ints, out: Vector, *, balanced: bool) -> Heights:
        here = self.evaluate(scores)
        np.copyto(out, here.slopes)
        return Heights.of_weights(self._by_shard(here.weights, bounds))

    def slope_errors(self, heights: Heights) -> Vector:
        """g_i is s_i times the difference of two sums of weights, in which only numbers above 0 are added up; over all
        rows both, times s_i, add up to the offset. Sums of equal powers of 2 are exact.
        """
        if self._exact:
            return np.zeros(len(heights.offsets))
        return 4.0 * self._sum_error * heights.magnitudes

    def value_error(self, size: float) -> float:
        return 0.0

    @cached_property
    def _exact(self) -> bool:
        first = float(self.weights[0])
        return first > 0.0 and math.frexp(first)[0] == 0.5 and bool((self.weights == first).all())

    def line(self, scores: Vector, to: Vector | None = None) -> PairLine:
        return PairLine(self, scores, scores + 1.0 if to is None else to)

    @cached_property
    def sample(self) -> Sample | None:
        """Whole queries, or rows of all queries if those are large; always the same ones."""
        few = self.settings.sample
        if self.n < self.settings.pays * few:
            return None
        sizes, draw, share = np.diff(self.starts), np.random.default_rng(0).random, few / self.n
        whole = len(sizes) >= few // 10  # queries are many enough to take some as they are
        rows = np.flatnonzero(np.repeat(draw(len(sizes)) < share, sizes) if whole else draw(self.n) < share)
        starts = np.searchsorted(rows, self.starts)
        loss = Pairwise(self.ranks[rows], self.weights[rows], starts)
        return Sample(loss, rows, self.total / loss.total) if loss.total > 0.0 else None


def _levels(y: Array, starts: Ints) -> tuple[Array, Ints]:
    """y as 0, 1, ... within each query, and how many of them each query has."""
    query = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.lexsort((y, query)) if len(starts) > 2 else np.argsort(y, kind="stable")
    sorted_y, sorted_query = y[order], query[order]
    first = np.ones(len(y), dtype=bool)  # of a query
    first[1:] = sorted_query[1:] != sorted_query[:-1]
    rises = first.copy()
    rises[1:] |= sorted_y[1:] != sorted_y[:-1]
    counted = np.cumsum(rises)
    sorted_ranks = counted - np.maximum.accumulate(np.where(first, counted, 0))
    ranks = np.empty(len(y), dtype=np.int32)
    ranks[order] = sorted_ranks
    levels: Ints = np.zeros(len(starts) - 1, dtype=np.int64)
    some = np.diff(starts) > 0
    levels[some] = sorted_ranks[starts[1:][some] - 1] + 1  # the last row of a query has its highest level
    return ranks, levels


def _unit(ranks: Array, weights: Vector, starts: Ints, levels: Ints, heavy: float) -> float:
    """The power of 2 whose square is about the weight of the heaviest pair; 1 if no product can leave the range."""
    some = weights[weights > 0.0]
    if not len(some) or (some.max() < heavy and some.min() > 1.0 / heavy):
        return 1.0
    # The heaviest row of each level of each query; of the levels of a query the two heaviest make the heaviest pair.
    begins = np.concatenate([[0], np.cumsum(levels)])
    heaviest = np.zeros(int(begins[-1]))
    query = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    np.maximum.at(heaviest, begins[query] + ranks, weights)
    exponent = -np.inf
    for first, last in pairwise(begins.tolist()):
        if last - first > 1:
            low, high = np.partition(heaviest[first:last], -2)[-2:]
            exponent = max(exponent, np.log2(low) + np.log2(high) if low > 0.0 else -np.inf)
    return float(2.0 ** np.round(0.5 * exponent)) if np.isfinite(exponent) else 1.0
