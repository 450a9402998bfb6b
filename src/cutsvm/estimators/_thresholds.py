"""Levels: their order, and the best thresholds between them for given scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cutsvm._utils.types import Array, Ints, Vector
from cutsvm._utils.validation import parts
from cutsvm._utils.warn import warn

# The cost of predicting level `at` for rows of other levels.
COSTS: dict[str, Callable[[Ints, int], Vector]] = {
    "absolute": lambda levels, at: np.abs(levels - at).astype(np.float64),
    "zero_one": lambda levels, at: (levels != at).astype(np.float64),
}


def best_thresholds(scores: Vector, levels: Ints, weights: Vector, count: int, loss: str) -> Vector:
    """`count` - 1 rising thresholds with the lowest sum of weight x cost; a row's level is how many its score exceeds.

    Dynamic programming over the sorted scores, in O(n count) after the sort. A cut is a place between two different
    scores, or an end. With P_r(t) the cost of all rows before cut t at level r, and A_r(t) the lowest cost of these
    rows at levels up to r in rising order:

        A_0(t) = P_0(t),    A_r(t) = P_r(t) + min over u <= t of (A_{r-1}(u) - P_r(u))

    and level r begins at the minimiser u. A threshold is halfway between the scores beside its cut, or 1 beyond the
    last one.
    """
    some = np.flatnonzero(weights > 0.0)
    order = some[np.argsort(scores[some], kind="stable")]
    f, y, s = scores[order], levels[order], _summable(weights[order], count)
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(f) > 0.0) + 1, [len(f)]])
    best, begins = _prefix(COSTS[loss](y, 0), s, cuts), []
    for r in range(1, count):
        ahead = _prefix(COSTS[loss](y, r), s, cuts)
        change = best - ahead
        lowest = np.minimum.accumulate(change)
        begins.append(np.packbits(change == lowest))  # where level r may begin
        best = ahead + lowest
    at, chosen = len(cuts) - 1, []
    for packed in reversed(begins):
        at = int(np.flatnonzero(np.unpackbits(packed, count=len(cuts))[: at + 1])[-1])
        chosen.append(_between(f, int(cuts[at])))
    return np.array(chosen[::-1])


def sums_are_exact(weights: Array, count: int, max_ratio: float = 2.0**40) -> bool:
    """Whether sums of these weights in float64 tell them apart: that of all is at most max_ratio times the smallest."""
    total, least = 0.0, np.inf
    for part in parts(len(weights)):
        mine = weights[part]
        total, least = total + float(mine.sum()), min(least, float(mine[mine > 0.0].min(initial=np.inf)))
    return count * total <= max_ratio * least


def _summable(weights: Vector, count: int) -> Array:
    """The weights; as integers of any size if sums of floats are not exact enough.

    Costs are sums over all rows before a cut: a float would lose a light row that comes after a heavy one.
    """
    if sums_are_exact(weights, count):
        return weights
    mantissas, exponents = np.frexp(weights)
    shifts = (exponents - exponents.min()).tolist()
    whole = [int(m) << shift for m, shift in zip((mantissas * 2.0**53).tolist(), shifts, strict=True)]
    return np.array(whole, dtype=object)


def _prefix(costs: Vector, weights: Array, cuts: Ints) -> Array:
    """The sum of weight x cost before each cut."""
    products = costs.astype(np.int64) * weights if weights.dtype == object else costs * weights
    sums: Array = np.concatenate([np.zeros(1, dtype=products.dtype), np.cumsum(products)])[cuts]
    return sums


def _between(f: Vector, cut: int) -> float:
    """A number that f[cut - 1] does not exceed and f[cut] does."""
    if cut == 0:
        return float(f[0]) - 1.0
    if cut == len(f):
        return float(f[-1]) + 1.0
    middle = 0.5 * float(f[cut - 1]) + 0.5 * float(f[cut])
    return middle if middle < f[cut] else float(f[cut - 1])


def level_of(scores: Vector, thresholds: Vector) -> Array:
    """How many of the rising thresholds each score exceeds."""
    return np.asarray(np.searchsorted(thresholds, scores, side="left"))


def stated_order(y: Any) -> Array | None:
    """The order that a pandas categorical states."""
    dtype: Any = getattr(y, "dtype", None)
    return np.asarray(dtype.categories) if getattr(dtype, "ordered", None) else None


def in_stated_order(classes: Array, stated: Array | None) -> Ints:
    """The order of the classes, which are ascending: their places among the stated labels, or as they are."""
    if stated is None:
        if classes.dtype.kind not in "iufb":
            shown = " < ".join(map(repr, classes.tolist()[:5])) + (" < ..." if len(classes) > 5 else "")
            warn(f"OrdinalSVC: the labels are text, taken in alphabetical order, {shown}; levels= states another order")
        return np.arange(len(classes))
    place = {label: k for k, label in enumerate(stated.tolist())}
    if len(place) < len(stated):
        raise ValueError(f"levels={stated.tolist()!r}: expected each label once")
    missing = [label for label in classes.tolist() if label not in place]
    if missing:
        raise ValueError(f"y has the label {missing[0]!r}, which is not among levels={stated.tolist()!r}")
    return np.argsort([place[label] for label in classes.tolist()])
