"""The rows in buckets, so that a solver reads only those that may matter where it is.

P. Bialon: A linear Support Vector Machine solver for a large number of training examples, Control and Cybernetics 38
(2009), section 6, "mechanism 2". Now and then all rows are dispatched: at a point w', row i goes into a bucket by

    v_i = (y_i (w'.x_i + b') - 1) / length_i

At another w no score has changed by more than move((w, b) - (w', b')) length_i
(`cutsvm.solvers.bucketing.score_bounds`). So

    v_i >= move     no loss at w: the row need not be read
    v_i <= -move    inside the margin at w: its loss is s_i (1 - y_i (w.x_i + b)). With `both_sides` the bucket's sum of
                    these, made once, stands for its rows: they need not be read either

The first line is the paper's (4), with lengths |(x_i, 1)|, but for a sign in its v_i and for the 1, which b needs. As
in the paper buckets are read or left as a whole. The second is ours, and so are the lengths of `whiten`. A dispatch
costs n rows read and n written. It is done when 2 K n rows were read since the last one (Remark 1, K = 3), so it makes
the whole at most (K + 1) / K times slower. `count=1` means no dispatch at all.

`only_if_it_pays`, ours, adds to Remark 1: copying a row takes longer than reading it, and early in a run, when w jumps,
nothing is spared. Had the rows been dispatched a few points ago, about as many would be read now as there are with
v_i < the move since then. What was read beyond that is counted, and the next dispatch waits until it would have paid
for one.

The paper does not say where buckets begin. Here half of them hold the rows on either side of the margin, the k-th of h
from it those up to the (k/h)^2 quantile of their side: late in a run moves are small, and the small buckets matter.
Quantiles are those of a sample of rows, taken once; the range of a bucket's v_i is that of its own rows.

Nor does it say in which order buckets are read. Here it is that of v_i: what loses most comes first, so that an oracle
that may stop early does so early. The rows to be read are then neighbours: in memory they are a part of one matrix, and
one call of a kernel reads them. The buckets of rows on disk are files: `cutsvm.solvers.bucketing.bucket_files`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np
from scipy.linalg import LinAlgError

from cutsvm._utils.threads import cached_property
from cutsvm._utils.timing import count as tally
from cutsvm._utils.timing import timed
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.matrix import stacked
from cutsvm.matrix.protocol import Rows, RowsInMemory
from cutsvm.problem.certificate import sum_error
from cutsvm.problem.losses import MarginLoss
from cutsvm.problem.oracle import Oracle
from cutsvm.solvers.bucketing.parts import (
    Part,
    Plane,
    Worst,
    inside_plane,
    label_sums,
    no_plane,
    row_inside,
    worst_of,
)
from cutsvm.solvers.bucketing.score_bounds import Plain, Whitened


@dataclass(frozen=True)
class BucketSettings:
    """When rows are dispatched, and how.

    K: of Remark 1. only_if_it_pays: beyond that, rows read in vain must have cost as much as a dispatch, which takes as
        long as reading `cost` n rows; the move over the last `recent` points says how many those are.
    safety: moves are taken this much longer, for rounding.
    piece_bytes, piece_rows: of rows that are dispatched at a time into buckets on disk, at most. pending_bytes: of rows
        that wait in all buckets together, about, until they are written.
    sample_rows: rows that say where buckets begin, or as many as a piece holds.
    """

    K: int = 3
    only_if_it_pays: bool = True
    cost: float = 10.0
    recent: int = 8
    safety: float = 1.0 + 1e-9
    piece_bytes: int = 4 << 20
    piece_rows: int = 1 << 16
    pending_bytes: int = 8 << 20
    sample_rows: int = 10_000


class Buckets:
    """The rows of an oracle in parts: one at first, and then the buckets, in the order of v_i."""

    matrix: Rows

    def __init__(
        self,
        oracle: Oracle,
        *,
        count: int,
        both_sides: bool = False,
        whiten: bool = False,
        settings: BucketSettings | None = None,
    ) -> None:
        if not oracle.supports.margin:
            raise TypeError("rows in buckets: a hinge loss expected, of rows in memory or in a store")
        self.oracle, self.matrix, self.loss = oracle, oracle.matrix, cast("MarginLoss", oracle.loss)
        self.count, self.both_sides, self.whiten = count, both_sides, whiten
        self.place: Vector | None = None  # where the last dispatch was
        self.read, self.in_vain = 0, 0  # rows since then
        self.settings = settings or BucketSettings()
        self.wait = 2 * self.settings.K * self.matrix.n
        self._points: deque[Vector] = deque(maxlen=self.settings.recent)
        self.parts = [Part(self.matrix, self.loss, range(self.matrix.n))]
        self._sorted: tuple[RowsInMemory, Vector] | None = None  # rows and labels of all buckets, in memory

    def close(self) -> None:
        """Removes files, if there are any."""

    @cached_property
    def plain(self) -> Plain:
        return Plain(self.oracle, self.matrix)

    @cached_property
    def moves(self) -> Plain | Whitened:
        if self.whiten and self.matrix.d <= Whitened.widest:
            try:
                return Whitened(self.oracle, self.matrix)
            except LinAlgError:  # rounding has left nothing of how the rows spread
                pass
        return self.plain

    def dispatch_if_due(self, w: Vector) -> None:
        """The K-rule of Remark 1."""
        if self.count > 1 and self.read >= self.wait:
            least = self.settings.cost * self.matrix.n if self.settings.only_if_it_pays else 0.0
            if self.place is None or self.in_vain >= least:
                self.dispatch(w)

    def note(self, w: Vector, rows: int) -> None:
        """Counts rows that were read at w."""
        self.read += rows
        if self.place is not None and self.settings.only_if_it_pays:
            recent = self.moves.move(w - self._points[0]) if self._points else np.inf
            self.in_vain += max(0, rows - sum(part.n for part in self.parts if part.low < recent))
            self._points.append(w.copy())

    def dispatch(self, w: Vector) -> None:
        """Every row goes into the bucket of its v_i at w."""
        self.parts = []  # their memory is needed
        self.parts = self._filled(w.copy())
        self.place, self.read, self.in_vain = w.copy(), 0, 0
        tally("rows_written", self.matrix.n)

    @cached_property
    def _sample(self) -> tuple[Ints, RowsInMemory]:
        many = min(self.matrix.n, self.settings.sample_rows)
        numbers = np.linspace(0, self.matrix.n - 1, many).astype(np.int64)
        return numbers, self.matrix.take(numbers)

    def _edges(self, w: Vector) -> Vector:
        """Where buckets begin, but the first: by the quantiles of the sample, and at 0."""
        numbers, rows = self._sample
        lengths = self.moves.lengths_of(numbers)
        v = np.sort(distances(self.loss.signed[numbers], self.oracle.scores_of(rows, w), lengths))
        inside = int(np.searchsorted(v, 0.0))
        begins = [begin for begin, _ in ranges(inside, rows.n, self.count) if begin not in (0, inside)]
        return np.unique(np.append(v[begins], 0.0))

    @timed("sift")
    def _filled(self, w: Vector) -> list[Part]:
        self.oracle.count_rows()
        edges, n = self._edges(w), self.matrix.n
        v = distances(self.loss.signed, self.oracle.scores_of(self.matrix, w), self.moves.lengths_of(slice(0, n)))
        which, order = by_bucket(v, edges)
        bounds = list(pairwise(np.searchsorted(which, np.arange(len(edges) + 2)).tolist()))
        rows, loss = self._ordered(order, bounds), self.loss.take(order)
        parts = []
        for begin, end in bounds:
            if begin == end:
                continue
            part = Part(rows.part(begin, end), loss.part(slice(begin, end)), order[begin:end])
            own = v[part.numbers]
            part.low, part.high = float(own.min()), float(own.max())
            if self.both_sides and part.high < 0.0:
                part.totals = label_sums(part.matrix, part.loss.signed)
            parts.append(part)
        self._sorted = rows, loss.signed
        return parts

    def _ordered(self, order: Ints, bounds: list[tuple[int, int]]) -> RowsInMemory:
        """A copy of the rows by buckets; it takes the place of the one before."""
        matrix = cast("RowsInMemory", self.matrix)
        if matrix.storage.copies:
            return matrix.take(order, out=self._sorted[0] if self._sorted else None)
        each = [matrix.take(order[begin:end]) for begin, end in bounds if begin < end]  # in rising order
        return cast("RowsInMemory", stacked(each))

    def move(self, w: Vector) -> float:
        """How far w is from where the rows were dispatched."""
        return 0.0 if self.place is None else self.settings.safety * self.moves.move(w - self.place)

    def within(self, move: float, *, both_sides: bool) -> tuple[list[Part], list[Part]]:
        """The parts that have to be read that far from the last dispatch, and those that are inside the margin."""
        left = [part for part in self.parts if part.low < move or self.place is None]
        sure = [part for part in left if both_sides and part.totals is not None and part.high <= -move]
        return [part for part in left if part not in sure], sure

    def near(self, w: Vector, *, both_sides: bool = False) -> tuple[list[Part], list[Part]]:
        """The parts to be read at w, and those that are inside the margin for sure."""
        return self.within(self.move(w), both_sides=both_sides)

    def _joined(self, near: list[Part]) -> Iterator[tuple[Rows, Vector]]:
        """The rows of neighbouring parts and their labels: in memory those of all parts together."""
        if self.place is None:
            yield self.matrix, self.loss.signed
        elif near:
            assert self._sorted is not None
            rows, signed = self._sorted
            begin = sum(part.n for part in self.parts[: self.parts.index(near[0])])
            end = begin + sum(part.n for part in near)
            yield rows.part(begin, end), signed[begin:end]

    @timed("planes")
    def _prefix(self, w: Vector, near: list[Part], limit: float, before: Plane) -> tuple[Plane, int]:
        """The plane of `before` and of the rows of the near parts up to the one where the loss exceeds the limit.

        And the number of these rows.
        """
        W, b = self.oracle.parts(w)
        slope, heights, stop = np.zeros(self.matrix.d + 1), np.array([before.loss, 0.0]), 0
        for rows, signed in self._joined(near):
            rows_here, read = rows.prefix(signed, W, float(b), limit, slope, heights)
            stop += rows_here
            self.oracle.count_rows(read)
            if heights[0] > limit:
                break
        self.note(w, stop)  # not what was read: that depends on the number of threads
        loss, offset = float(heights[0]), float(heights[1])
        lost = sum_error(stop)
        error = offset * np.array([lost, lost, 1.0])
        own = Plane(slope[: self.oracle.size], offset * (1.0 - 2.0 * lost), loss - before.loss, error)
        return before.plus(own)._replace(loss=loss, whole=stop == sum(part.n for part in near)), stop

    def sums(self, w: Vector, limit: float = np.inf) -> Plane:
        """The plane at w of all rows, or of the first of them whose loss exceeds a limit."""
        near, sure = self.near(w, both_sides=self.both_sides)
        before = no_plane(self.oracle)
        for part in sure:
            before = before.plus(inside_plane(self.oracle, part, w))
        if before.loss > limit:
            return before._replace(whole=not near)
        return self._prefix(w, near, limit, before)[0]

    def first(self, w: Vector) -> Worst | None:
        """The first row inside the margin at w, if there is one."""
        near, _ = self.near(w)
        plane, stop = self._prefix(w, near, 0.0, no_plane(self.oracle))
        if plane.loss <= 0.0:
            return None
        for part in near:
            if stop <= part.n:
                return row_inside(self.oracle, part, stop - 1, plane.loss)
            stop -= part.n
        raise AssertionError("a row of no part")

    def worst(self, w: Vector) -> Worst | None:
        """The row that is furthest inside the margin at w, if there is one."""
        near, _ = self.near(w)
        many = sum(part.n for part in near)
        self.note(w, many)
        self.oracle.count_rows(many)
        found = [worst for part in near if (worst := worst_of(self.oracle, part, w)) is not None]
        return max(found, key=lambda worst: worst.slack, default=None)


def by_bucket(v: Vector, edges: Vector) -> tuple[Ints, Ints]:
    """The buckets of rows, rising, and the rows in that order; those of a bucket stay in theirs."""
    which: Array = np.zeros(len(v), np.uint8 if len(edges) < 1 << 8 else np.int64)
    for edge in edges:  # there are few of them
        which += v >= edge
    order = np.argsort(which, kind="stable")
    return which[order], order


def distances(signed: Vector, scores: Vector, lengths: Vector) -> Vector:
    """v_i; rows without weight are never of any use."""
    with np.errstate(divide="ignore", invalid="ignore"):
        v: Vector = (np.sign(signed) * scores - 1.0) / lengths
    v[signed == 0.0] = np.inf
    return v


def ranges(inside: int, n: int, count: int) -> list[tuple[int, int]]:
    """Ranges of the rows in the order of v: those inside the margin, then those outside, both in squares from it."""
    half = max(1, count // 2)
    squares = (np.arange(half + 1) / half) ** 2
    edges = np.concatenate([inside - inside * squares[::-1], inside + (n - inside) * squares])
    whole = np.unique(np.rint(edges).astype(np.int64)).tolist()
    return list(pairwise(whole))
