"""What a fit leaves for the next one of the same estimator (`warm_start`), and what of it still holds.

A plane under R is a plane under every larger loss. So the planes of a fit hold for the next one if

    its first rows are the old rows, with the same labels     more rows only add to R
    and their weights s'_i >= r s_i, r > 0                    then R' >= r R, and r times a plane lies below R'

which is looked at, not assumed: rows are compared by a hash of all their values (`cutsvm.driver.fingerprint`), and
labels and weights one by one. Bounds are never kept: they are computed again from the planes. Pairs of rows are more
than a sum over rows: there all must be the same.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple, TypeAlias

import numpy as np

from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.driver.fingerprint import row_hashes
from cutsvm.matrix import DenseRows, SparseRows
from cutsvm.problem.certificate import UNIT
from cutsvm.problem.losses import CrammerSinger, Hinge, Loss, Multinomial, PairLoss, Tube
from cutsvm.problem.losses.smooth import LabelLoss, TargetLoss
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.planes import Bundle, Planes
from cutsvm.solvers.protocol import FitContext

Kind: TypeAlias = tuple[str | int | float, ...]  # of oracle, intercept and loss, with its parameters


class Traits(NamedTuple):
    """What tells a risk: its kind, a hash of each of its rows, and label (or target) and weight of each."""

    kind: Kind
    hashes: Array
    labels: Array
    weights: Vector


class Kept(NamedTuple):
    """The planes of a bundle; the places where its shards are cut, if it is of all rows."""

    planes: Planes
    shard: Ints
    weights: Vector
    bounds: Ints | None


class KeptProblem(NamedTuple):
    """What one problem of a fit leaves."""

    kind: Kind
    check: str  # of all rows' hashes
    labels: Array
    weights: Vector
    kept: list[Kept]

    def share(self, new: Traits, loss: Loss) -> float:
        """The r for which r times an old plane is a plane under the new risk; 0: none is."""
        n = len(self.weights)
        if len(new.hashes) < n or new.kind != self.kind or _check(new.hashes[:n]) != self.check:
            return 0.0
        counts = self.weights > 0.0
        if not np.array_equal(new.labels[:n][counts], self.labels[counts]):
            return 0.0
        if isinstance(loss, PairLoss):
            return float(np.array_equal(new.weights, self.weights))
        return float((new.weights[:n][counts] / self.weights[counts]).min()) if counts.any() else 0.0


class Slot:
    """The place of one problem among those that an estimator keeps."""

    def __init__(self, places: dict[str, KeptProblem], label: str) -> None:
        self._places, self._label = places, label
        self._traits: Traits | None = None

    def restore(self, context: FitContext) -> None:
        """Puts what still holds into the context."""
        oracle = context.oracle
        self._traits = _traits(oracle)
        old = self._places.pop(self._label, None)
        share = 0.0 if old is None or self._traits is None else old.share(self._traits, oracle.loss)
        if old is None or share <= 0.0:
            return
        for planes, shard, weights, bounds in old.kept:
            bundle = context.bundle
            if bounds is None:
                bundle = oracle.new_bundle(max(context.Cs))
                context.more_bundles.append(bundle)
            else:  # new rows are in the last shard
                context.replace_oracle(oracle.with_bounds(np.append(bounds[:-1], oracle.matrix.n)))
            errors = share * (planes.errors + 4.0 * UNIT * planes.errors[:, 2:])
            offsets = share * (planes.offsets - 4.0 * UNIT * np.abs(planes.offsets))
            scaled = Planes(share * planes.slopes, offsets, errors)
            bundle.resume(scaled, shard, weights, (0.0, 0.0))

    def keep(self, context: FitContext) -> None:
        """Takes over what the fit leaves; nothing of rows on disk."""
        if self._traits is None:
            return
        kept = [_kept(context.bundle, context.oracle.bounds), *(_kept(other, None) for other in context.bundles[1:])]
        kind, hashes, labels, weights = self._traits
        check = _check(hashes)
        self._places[self._label] = KeptProblem(kind, check, labels, weights, [one for one in kept if len(one.shard)])


def _check(hashes: Array) -> str:
    return hashlib.sha256(hashes.data).hexdigest()


def _kept(bundle: Bundle, bounds: Ints | None) -> Kept:
    planes = Planes(bundle.slopes.copy(), bundle.offsets.copy(), bundle.errors.copy())
    return Kept(planes, bundle.shard.copy(), bundle.weights.copy(), None if bounds is None else bounds.copy())


def _traits(oracle: Oracle) -> Traits | None:
    rows, loss = oracle.matrix, oracle.loss
    if not isinstance(rows, DenseRows | SparseRows):
        return None
    hashes = row_hashes(rows)
    kind: Kind = (type(oracle).__name__, oracle.size, oracle.intercept.value, type(loss).__name__)
    if isinstance(loss, Hinge | LabelLoss):
        return Traits(kind, hashes, np.sign(loss.signed).astype(np.int8), np.abs(loss.signed))
    if isinstance(loss, Tube):
        shape = (loss.epsilon, loss.below, loss.above)
        return Traits((*kind, *shape), hashes, loss.targets.copy(), loss.weights.copy())
    if isinstance(loss, TargetLoss):
        return Traits((*kind, loss.epsilon), hashes, loss.targets.copy(), loss.weights.copy())
    if isinstance(loss, CrammerSinger | Multinomial):
        return Traits(kind, hashes, loss.y.copy(), loss.weights.copy())
    if isinstance(loss, PairLoss):
        query = np.repeat(np.arange(len(loss.levels)), np.diff(loss.starts))
        return Traits(kind, hashes, np.column_stack([loss.ranks, query]), loss.weights.copy())
    return None
