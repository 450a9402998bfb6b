"""The rows in parts, so that a solver reads only those that may matter where it is.

P. Bialon: A linear Support Vector Machine solver for a large number of training examples, Control and Cybernetics 38
(2009), section 6, "mechanism 2". Now and then all rows are dispatched: at a point w', row i goes into a bucket by

    v_i = (y_i (w'.x_i + b') - 1) / length_i

At another w no score has changed by more than move((w, b) - (w', b')) length_i
(`cutsvm.solvers.bucketing.score_bounds`). So

    v_i >= move     no loss at w: the row need not be read
    v_i <= -move    inside the margin at w: its loss is s_i (1 - y_i (w.x_i + b)). With `both_sides` the bucket's sum of
                    these, made once, stands for its rows: they need not be read either

The first line is the paper's, with lengths |(x_i, 1)|, but for a sign in its v_i and for the 1, which b needs. The
second is ours, and so are the lengths of `whiten`. A dispatch costs n rows read and n written. It is done when 2 K n
rows were read since the last one (Remark 1, K = 3), so it makes the whole at most (K + 1) / K times slower; and as long
as it saves less than it costs, after twice as many rows each time. `count=1` means no dispatch at all.

The paper does not say where buckets begin. Here half of them hold the rows on either side of the margin, the k-th of h
from it those up to the (k/h)^2 quantile of their side: late in a run moves are small, and the small buckets matter.

Before the first dispatch parts are runs of rows in their order: one, or, where a solver may stop reading early, runs
that are short at first. The buckets of rows on disk are files: `cutsvm.solvers.bucketing.bucket_files`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import cast

import numpy as np
from scipy.linalg import LinAlgError

from cutsvm._utils.timing import count as tally
from cutsvm._utils.timing import timed
from cutsvm._utils.types import Vector
from cutsvm.matrix.protocol import Rows, RowsInMemory
from cutsvm.problem.losses import MarginLoss
from cutsvm.problem.oracle import Oracle
from cutsvm.solvers.bucketing.parts import Part, Plane, Worst, label_sums, no_plane
from cutsvm.solvers.bucketing.score_bounds import Plain, Whitened


@dataclass(frozen=True)
class BucketSettings:
    """The paper's K of Remark 1; runs of rows double from n / first_run to n / last_run.

    safety: moves are taken this much longer, for rounding.
    piece_bytes: of rows that are dispatched at a time into buckets on disk. sample_rows: rows that say where these
        begin, or as many as a piece holds. pending_bytes: of rows that wait in all buckets together, about, until a
        block is full.
    """

    K: int = 3
    first_run: int = 1024
    last_run: int = 8
    safety: float = 1.0 + 1e-9
    piece_bytes: int = 4 << 20
    pending_bytes: int = 32 << 20
    sample_rows: int = 10_000


class Buckets:
    """The rows of an oracle in parts; runs: cut into runs from the start, for a reader that may stop early."""

    matrix: Rows

    def __init__(
        self,
        oracle: Oracle,
        *,
        count: int,
        both_sides: bool = False,
        whiten: bool = False,
        runs: bool = False,
        settings: BucketSettings | None = None,
    ) -> None:
        if not oracle.supports.margin:
            raise TypeError("rows in buckets: a hinge loss expected, of rows in memory or in a store")
        self.oracle, self.matrix, self.loss = oracle, oracle.matrix, cast("MarginLoss", oracle.loss)
        self.count, self.both_sides, self.whiten = count, both_sides, whiten
        self.place: Vector | None = None  # where the last dispatch was
        self.read, self.spared = 0, 0  # rows since then
        self.settings = settings or BucketSettings()
        self.wait = 2 * self.settings.K * self.matrix.n
        ends = _runs(self.matrix.n, self.settings) if runs else [0, self.matrix.n]
        self.parts = [self._run(begin, end) for begin, end in pairwise(ends)]

    def close(self) -> None:
        """Removes files, if there are any."""

    def _run(self, begin: int, end: int) -> Part:
        rows, loss = cast("RowsInMemory", self.matrix).part(begin, end), self.loss.part(slice(begin, end))
        return Part(self.oracle, rows, loss, np.arange(begin, end))

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
            if self.place is not None:
                pays = self.spared >= 2 * self.matrix.n
                self.wait = max(2 * self.settings.K * self.matrix.n, self.wait // 2) if pays else 2 * self.wait
            self.dispatch(w)

    def dispatch(self, w: Vector) -> None:
        """Every row goes into the bucket of its v_i at w."""
        self.parts = []  # their memory is needed
        self.parts = self._filled(w.copy())
        self.place, self.read, self.spared = w.copy(), 0, 0
        tally("rows_written", self.matrix.n)

    @timed("sift")
    def _filled(self, w: Vector) -> list[Part]:
        v = distances(self.loss.signed, self.oracle.score(w).scores, self.moves.lengths)
        order = np.argsort(v, kind="stable")
        inside = int(np.searchsorted(v[order], 0.0))
        parts = []
        for begin, end in ranges(inside, self.matrix.n, self.count):
            numbers = np.sort(order[begin:end])  # as they were: neighbours stay close
            part = Part(self.oracle, self.matrix.take(numbers), self.loss.take(numbers), numbers)
            part.low, part.high = float(v[order[begin]]), float(v[order[end - 1]])
            if self.both_sides and part.high < 0.0:
                part.totals = label_sums(part.matrix, part.loss.signed)
            parts.append(part)
        return parts

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
        near, sure = self.within(self.move(w), both_sides=both_sides)
        self.spared += self.matrix.n - sum(part.n for part in near)
        return near, sure

    def worst(self, w: Vector) -> Iterator[Worst | None]:
        """The row that is furthest inside the margin at w, of each part where one may be; the surest first."""
        near, _ = self.near(w)
        for part in near:
            self.read += part.n
            yield part.worst(w)
        self._passed(near)

    def sums(self, w: Vector) -> Iterator[Plane]:
        """The plane at w of the rows read so far, after each part; at first of those that need no reading."""
        near, sure = self.near(w, both_sides=self.both_sides)
        total = no_plane(self.oracle)
        for part in sure:
            total = total.plus(part.inside(w))
        yield total._replace(whole=not near)
        for part in near:
            self.read += part.n
            total = total.plus(part.plane(w))
            yield total._replace(whole=part is near[-1])
        self._passed(near)

    def _passed(self, near: list[Part]) -> None:
        """Parts say nothing of passes over all rows."""
        if self.oracle.whole and sum(part.n for part in near) == self.matrix.n:
            tally("passes")


def _runs(n: int, settings: BucketSettings) -> list[int]:
    """Where runs begin and end that double in length up to n / last_run."""
    ends, length = [0], max(1, n // settings.first_run)
    while ends[-1] < n:
        ends.append(min(n, ends[-1] + length))
        length = min(2 * length, -(-n // settings.last_run))
    return ends


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
