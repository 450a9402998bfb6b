"""What a fit leaves for the next one of the same estimator (`warm_start`), and what of it still holds.

R is a sum over shards, and a plane of a shard is a plane under every larger loss of its rows. So a plane of an old
shard holds for the next fit if

    the shard's rows are among the new ones, side by side and with the same labels     more rows only add to R
    and their weights s'_i >= r s_i, r > 0                                            then r times the plane lies below

which is looked at, not assumed (`cutsvm.driver.shard_traits`). Rows that are new join the last shard; a shard that has
lost rows loses its planes. Planes of a working set are of no shard: they hold if all old rows are there. Bounds are
never kept: they are computed again from the planes. Pairs of rows are more than a sum over rows: there all must be the
same.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

import numpy as np

from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.driver.shard_traits import FoundShard, Kind, ShardTraits, Traits, share_of, traits_of
from cutsvm.problem.certificate import UNIT
from cutsvm.problem.planes import Bundle, Planes
from cutsvm.solvers.protocol import FitContext

_logger = logging.getLogger("cutsvm.warm_start")


class Kept(NamedTuple):
    """The planes of a bundle, their shards and their weights."""

    planes: Planes
    shard: Ints
    weights: Vector


class KeptProblem(NamedTuple):
    """What one problem of a fit leaves: planes of its shards, and planes of working sets.

    labels, weights: of all rows, where they were in memory.
    """

    kind: Kind
    shards: list[ShardTraits]
    of_shards: Kept
    others: list[Kept]
    labels: Array | None = None
    weights: Vector | None = None

    def found(self, new: Traits) -> list[FoundShard]:
        """The shards that are among the new rows, with r > 0."""
        if new.kind != self.kind:
            return []
        starts = np.cumsum([0, *(shard.rows for shard in self.shards)])
        found = []
        for number, begin in new.find(self.shards):
            old = slice(int(starts[number]), int(starts[number + 1]))
            share = self._share(new, number, old, slice(begin, begin + old.stop - old.start))
            if share > 0.0:
                found.append(FoundShard(number, begin, share))
        same = len(found) == len(self.shards) and all(shard.share == 1.0 for shard in found)
        return [] if new.pairs and not (same and new.n == starts[-1]) else found

    def _share(self, new: Traits, number: int, old: slice, own: slice) -> float:
        if self.labels is None or self.weights is None:
            return share_of(self.shards[number], *new.values(own.start, own.stop))
        before, now = self.weights[old], new.weights(own)
        counts = before > 0.0
        if not np.array_equal(new.labels(own)[counts], self.labels[old][counts]):
            return 0.0
        if new.pairs:
            return float(np.array_equal(before, now))
        # A shard without weight has no planes.
        return float((now[counts] / before[counts]).min()) if counts.any() else 1.0


class Slot:
    """The place of one problem among those that an estimator keeps."""

    def __init__(self, places: dict[str, KeptProblem], label: str) -> None:
        self._places, self._label = places, label
        self._traits: Traits | None = None

    def restore(self, context: FitContext) -> None:
        """Puts what still holds into the context."""
        self._traits = traits_of(context.oracle)
        old = self._places.pop(self._label, None)
        if old is not None:
            take_up(context, old, self._traits, "warm start")

    def keep(self, context: FitContext) -> None:
        """Takes over what the fit leaves; nothing of rows that cannot be told."""
        if self._traits is not None:
            self._places[self._label] = kept_of(context, self._traits)


def kept_of(context: FitContext, traits: Traits) -> KeptProblem:
    """What a fit leaves."""
    everything = slice(0, traits.n)
    more = (traits.labels(everything).copy(), traits.weights(everything).copy()) if traits.held else (None, None)
    others = [_kept(bundle) for bundle in context.bundles[1:] if len(bundle)]
    return KeptProblem(traits.kind, traits.shards(context.oracle.bounds), _kept(context.bundle), others, *more)


def take_up(context: FitContext, old: KeptProblem, traits: Traits | None, what: str) -> None:
    """Puts the planes of an earlier fit that hold into the context, and says how many; what: to call it."""
    found = [] if traits is None else old.found(traits)
    if found:
        bounds, numbers = new_bounds(found, old.shards, context.oracle.matrix.n)
        context.replace_oracle(context.oracle.with_bounds(bounds))
        shares = np.zeros(len(old.shards))
        places = np.zeros(len(old.shards), dtype=np.int64)
        for one, place in zip(found, numbers, strict=True):
            shares[one.number], places[one.number] = one.share, place
        planes, shard, weights = old.of_shards
        keep = np.flatnonzero(shares[shard] > 0.0)
        own = Planes(planes.slopes[keep], planes.offsets[keep], planes.errors[keep])
        context.bundle.resume(_scaled(own, shares[shard[keep]]), places[shard[keep]], weights[keep], (0.0, 0.0))
    changed = len(old.shards) - len(found)
    if found and not changed:
        share = min(one.share for one in found)
        for planes, shard, weights in old.others:
            bundle = context.oracle.new_bundle(max(context.Cs))
            bundle.resume(_scaled(planes, np.full(len(shard), share)), shard, weights, (0.0, 0.0))
            context.more_bundles.append(bundle)
    many = len(old.of_shards.shard) + sum(len(other.shard) for other in old.others)
    kept = len(context.bundle) + sum(map(len, context.more_bundles))
    context.reused = f"{what}: {kept:,} of {many:,} planes kept, {changed:,} of {len(old.shards):,} shards changed"
    if not kept:
        context.reused += "; it begins at the last w"
    _logger.info("%s", context.reused)


def new_bounds(found: list[FoundShard], old: list[ShardTraits], n: int) -> tuple[Ints, list[int]]:
    """Where the new rows are cut, and the numbers that the shards which were found have now.

    Rows between them make shards; those at the end join the last one, unless they are more than a shard has.
    """
    edges, numbers = [0], []
    for shard in found:
        if shard.begin > edges[-1]:
            edges.append(shard.begin)
        numbers.append(len(edges) - 1)
        edges.append(shard.begin + old[shard.number].rows)
    more = n - edges[-1]
    if 0 < more <= n // len(old) and found[-1].number == len(old) - 1:
        edges[-1] = n
    elif more:
        edges.append(n)
    return np.array(edges, dtype=np.int64), numbers


def _scaled(planes: Planes, shares: Vector) -> Planes:
    """The planes, each times a share; rounding is taken off where that is not 1."""
    lost = np.where(shares == 1.0, 0.0, 4.0 * UNIT)
    errors = shares[:, None] * (planes.errors + lost[:, None] * planes.errors[:, 2:])
    offsets = shares * (planes.offsets - lost * np.abs(planes.offsets))
    return Planes(shares[:, None] * planes.slopes, offsets, errors)


def _kept(bundle: Bundle) -> Kept:
    some = bundle.heaviest()  # where memory is limited, others would not fit when they are used again
    planes = Planes(bundle.slopes[some], bundle.offsets[some], bundle.errors[some])
    return Kept(planes, bundle.shard[some], bundle.weights[some])
