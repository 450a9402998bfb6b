"""Which rows a shard has: enough to find it again in the next fit, whose rows may be others.

Of each row there is a hash of its values (`cutsvm.driver.fingerprint`), which stores keep, so that no pass is needed.
Of each shard there are SHA-256 hashes of these, of its labels and of its weights, and the weight of each label where
that is all there is to the weights. Where rows are in memory, labels and weights are kept themselves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from cutsvm._utils.types import Array, Ints, Vector
from cutsvm._utils.validation import parts
from cutsvm.driver.fingerprint import row_hashes
from cutsvm.matrix import DenseRows, SparseRows, StoreRows
from cutsvm.problem.losses import CrammerSinger, Hinge, Multinomial, PairLoss, Tube
from cutsvm.problem.losses.smooth import LabelLoss, TargetLoss
from cutsvm.problem.oracle import Oracle

Kind: TypeAlias = tuple[str | int | float, ...]  # of oracle, intercept and loss, with its parameters


@dataclass(frozen=True)
class SearchSettings:
    """How shards are found again."""

    labels: int = 64  # of which the weights are listed, at most
    places: int = 32  # that are looked at for a shard, where its first and its last row occur more than once


class ShardTraits(NamedTuple):
    """A shard: its number of rows, the hashes of the first, the last and all of them, of labels and of weights.

    table: label and weight where every label has one weight, a positive one.
    """

    rows: int
    first: int
    last: int
    hashes: str
    labels: str
    weights: str
    table: list[tuple[float, float]] | None

    @classmethod
    def from_json(cls, given: Any) -> ShardTraits:
        """The inverse of a list of the fields; ValueError or TypeError if it is none."""
        rows, first, last, hashes, labels, weights, table = given
        for number in (rows, first, last):
            if type(number) is not int or number < 0:
                raise ValueError("a shard is not described by whole numbers")
        for text in (hashes, labels, weights):
            if type(text) is not str:
                raise ValueError("a shard has no hash")
        if table is not None:
            table = [(float(label), float(weight)) for label, weight in table]
            if not all(weight > 0.0 for _, weight in table):
                raise ValueError("the weight of a label is not positive")
        return cls(rows, first, last, hashes, labels, weights, table)


class FoundShard(NamedTuple):
    """An old shard among the new rows: its number, where it begins, and r: r times its planes are planes again."""

    number: int
    begin: int
    share: float


@dataclass(frozen=True, eq=False)
class Traits:
    """What tells a risk: its kind, a hash of each of its rows, and label (or target) and weight of each."""

    kind: Kind
    hashes: Array
    labels: Callable[[slice], Array]
    weights: Callable[[slice], Vector]
    held: bool  # labels and weights may be kept in memory
    pairs: bool  # the loss is one of pairs of rows
    settings: SearchSettings = SearchSettings()

    @property
    def n(self) -> int:
        return len(self.hashes)

    def shards(self, bounds: Ints) -> list[ShardTraits]:
        """The traits of each shard."""
        return [self._shard(int(begin), int(end)) for begin, end in pairwise(bounds)]

    def _shard(self, begin: int, end: int) -> ShardTraits:
        ends = (int(self.hashes[begin]), int(self.hashes[end - 1])) if end > begin else (0, 0)
        labels, weights, table = self.values(begin, end)
        return ShardTraits(end - begin, *ends, self.digest(begin, end), labels, weights, table)

    def digest(self, begin: int, end: int) -> str:
        """A hash of the values of some rows."""
        return _digest(self.hashes[part] for part in _parts(begin, end))

    def values(self, begin: int, end: int) -> tuple[str, str, list[tuple[float, float]] | None]:
        """Hashes of labels and weights, and the table of both if there is one."""
        labels, weights = hashlib.sha256(), hashlib.sha256()
        table: dict[float, float] | None = {}
        for part in _parts(begin, end):
            s, y = self.weights(part), self.labels(part)
            low, high = float(s.min()), float(s.max())
            if low <= 0.0:  # of weight 0: any label
                y = np.where(s > 0.0 if y.ndim == 1 else s[:, None] > 0.0, y, 0)
            labels.update(np.ascontiguousarray(y).data)
            weights.update(np.ascontiguousarray(s[:1] if low == high else s).data)
            table = None if table is None else self._extended(table, y, s, low, high)
        return labels.hexdigest(), weights.hexdigest(), None if table is None else sorted(table.items())

    def _extended(
        self, table: dict[float, float], y: Array, s: Vector, low: float, high: float
    ) -> dict[float, float] | None:
        """The table with these rows; None if a label has several weights or 0, or labels are targets, or many."""
        if low <= 0.0 or y.ndim > 1 or y.dtype.kind not in "bui":
            return None
        present = np.flatnonzero(np.bincount(y))
        if len(present) > self.settings.labels:
            return None
        for label in present.tolist():
            own = s[:1] if low == high else s[y == label]
            if own.min() < own.max() or table.setdefault(float(label), float(own[0])) != own[0]:
                return None
        return table

    def find(self, old: Sequence[ShardTraits]) -> list[tuple[int, int]]:
        """The old shards whose rows are all here, side by side: their numbers, and where they begin.

        Rows may have been deleted from other shards, and appended at the end.
        """
        found, place, missing = [], 0, 0
        for number, shard in enumerate(old):
            begin = self._place(shard, place, place + missing) if shard.rows else None
            if begin is None:
                missing += shard.rows
            else:
                found.append((number, begin))
                place, missing = begin + shard.rows, 0
        return found

    def _place(self, shard: ShardTraits, low: int, high: int) -> int | None:
        """Where these rows begin, between `low` and `high`."""
        high = min(high, self.n - shard.rows)
        first, last = np.uint64(shard.first), np.uint64(shard.last)
        tried = 0
        for part in _parts(low, high + 1):
            ends = slice(part.start + shard.rows - 1, part.stop + shard.rows - 1)
            for place in np.flatnonzero((self.hashes[part] == first) & (self.hashes[ends] == last)).tolist():
                begin = part.start + place
                if self.digest(begin, begin + shard.rows) == shard.hashes:
                    return int(begin)
                tried += 1
                if tried >= self.settings.places:
                    return None
        return None


def share_of(old: ShardTraits, labels: str, weights: str, table: list[tuple[float, float]] | None) -> float:
    """The r for which s'_i >= r s_i of all rows of a shard with the same labels; 0: there is none, or it is unknown."""
    if old.labels != labels:
        return 0.0
    if old.weights == weights:
        return 1.0
    if old.table is None or table is None:
        return 0.0
    before, now = dict(old.table), dict(table)
    return min((now.get(label, 0.0) / weight for label, weight in before.items()), default=0.0)


def _parts(begin: int, end: int) -> Iterable[slice]:
    return (slice(begin + part.start, min(end, begin + part.stop)) for part in parts(max(0, end - begin)))


def _digest(arrays: Iterable[Array]) -> str:
    found = hashlib.sha256()
    for values in arrays:
        found.update(np.ascontiguousarray(values).data)
    return found.hexdigest()


def traits_of(oracle: Oracle) -> Traits | None:
    """The traits of a risk; None of rows or losses of other kinds, and of rows on disk that have no hashes there."""
    rows, loss = oracle.matrix, oracle.loss
    hashes: Array | None = None
    if isinstance(rows, StoreRows):
        hashes = rows.store.hashes
    elif isinstance(rows, DenseRows | SparseRows):
        hashes = row_hashes(rows)
    if hashes is None:
        return None
    kind: Kind = (type(oracle).__name__, oracle.size, oracle.intercept.value, type(loss).__name__)
    held = not isinstance(rows, StoreRows)
    if isinstance(loss, Hinge | LabelLoss):
        signed = loss.signed
        return Traits(kind, hashes, lambda own: signed[own] > 0.0, lambda own: np.abs(signed[own]), held, False)
    if isinstance(loss, Tube):
        kind = (*kind, loss.epsilon, loss.below, loss.above)
    elif isinstance(loss, TargetLoss):
        kind = (*kind, loss.epsilon)
    if isinstance(loss, Tube | TargetLoss):
        targets, weights = loss.targets, loss.weights
    elif isinstance(loss, CrammerSinger | Multinomial):
        targets, weights = loss.y, loss.weights
    elif isinstance(loss, PairLoss):
        return Traits(kind, hashes, partial(_ranks, loss), lambda own: loss.weights[own], held, True)
    else:
        return None
    return Traits(kind, hashes, lambda own: targets[own], lambda own: weights[own], held, False)


def _ranks(loss: PairLoss, own: slice) -> Array:
    """The ranks of some rows, and the numbers of their queries."""
    query = np.searchsorted(loss.starts, np.arange(own.start, own.stop), side="right") - 1
    return np.column_stack([loss.ranks[own], query])
