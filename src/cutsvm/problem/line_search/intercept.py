"""The best intercept of rows of unlike weights: argmin over k of the hinge loss of scores + k, by counting.

Row i has a breakpoint at y_i - f_i: a positive row has a loss to the left of it, a negative one to the right. The slope
of the loss at k is the weight of the negative rows whose breakpoint is at k or left of it, `rising`, less that of the
positive rows whose breakpoint is right of k, `falling`. Slopes within `flat` of the weight that counts there, rising +
falling, are round-off. Weights are added up from both sides, so that nothing is ever subtracted: rows that are light
beside others, which may have no loss there, still count.

There may be more rows than memory can hold numbers of. So breakpoints are counted, some rows at a time, between the
quantiles of a sample, until few enough are left to be sorted. If many are at one place, which no quantile separates,
they are counted between floats that are evenly spaced in the order of all float64, until that place is the only one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cutsvm._utils.types import Array, Vector
from cutsvm._utils.validation import parts


@dataclass(frozen=True)
class InterceptSettings:
    """most: breakpoints that are sorted; more take memory. places: between which they are counted in one sweep.
    sample: rows whose quantiles are the first places.
    """

    most: int = 1 << 17
    places: int = 1023
    sample: int = 1 << 14


COUNTING = InterceptSettings()
Condition = Callable[[Vector, Vector], Array]  # of rising and falling: whether a place is far enough to the right


def counted_intercept(signed: Vector, scores: Vector, flat: float, counting: InterceptSettings = COUNTING) -> float:
    """argmin over k of the hinge loss of scores + k, in the middle where that is a plateau; signed: y_i s_i."""

    def reached(rising: Vector, falling: Vector) -> Array:
        return rising - falling >= -flat * (rising + falling)

    def passed(rising: Vector, falling: Vector) -> Array:
        return rising - falling > flat * (rising + falling)

    rows = _Rows(signed, scores)
    whole = rows.bracket()
    at_left, at_right = (_narrowed(rows, whole, condition, counting) for condition in (reached, passed))
    few = rows.selected(at_left, counting)
    left = _first(few, at_left, reached)
    beyond = _first(few if at_right == at_left else rows.selected(at_right, counting), at_right, passed)
    return left if beyond == np.inf else 0.5 * left + 0.5 * beyond


class _Bracket(NamedTuple):
    """Places in (low, high], rising at low, falling at high, and the number of breakpoints inside."""

    low: float
    high: float
    rising: float
    falling: float
    inside: int


class _Rows(NamedTuple):
    """y_i s_i and the score of each row."""

    signed: Vector
    scores: Vector

    def breakpoints(self, low: float, high: float) -> Iterator[tuple[Vector, Vector]]:
        """The breakpoints in (low, high] with y_i s_i, some rows at a time; rows without weight have none."""
        for part in parts(len(self.signed)):
            signed = self.signed[part]
            at = np.sign(signed) - self.scores[part]
            inside = (signed != 0.0) & (at > low) & (at <= high)
            yield at[inside], signed[inside]

    def bracket(self) -> _Bracket:
        """All breakpoints."""
        low, high, inside = np.inf, -np.inf, 0
        for at, _ in self.breakpoints(-np.inf, np.inf):
            low, high = min(low, float(at.min(initial=np.inf))), max(high, float(at.max(initial=-np.inf)))
            inside += len(at)
        return _Bracket(float(np.nextafter(low, -np.inf)), high, 0.0, 0.0, inside)

    def selected(self, bracket: _Bracket, settings: InterceptSettings) -> tuple[Vector, Vector]:
        """The breakpoints of a bracket in their order, with y_i s_i; those of one place as two, one of either sign."""
        if bracket.inside > settings.most:
            sums = np.zeros(2)
            for _, signed in self.breakpoints(bracket.low, bracket.high):
                sums += np.maximum(signed, 0.0).sum(), np.minimum(signed, 0.0).sum()
            return np.full(2, bracket.high), sums
        found = [(at, signed) for at, signed in self.breakpoints(bracket.low, bracket.high) if len(at)]
        at, signed = (np.concatenate(columns) for columns in zip(*found, strict=True)) if found else (np.empty(0),) * 2
        order = np.argsort(at, kind="stable")
        return at[order], signed[order]

    def quantiles(self, bracket: _Bracket, settings: InterceptSettings) -> Vector:
        """Of a sample of rows, those inside the bracket."""
        every = max(1, len(self.signed) // settings.sample)
        some = np.sort(np.sign(self.signed[::every]) - self.scores[::every])
        chosen = np.unique(some[:: max(1, len(some) // settings.places)])
        return chosen[(chosen > bracket.low) & (chosen < bracket.high)]


def _narrowed(rows: _Rows, bracket: _Bracket, condition: Condition, settings: InterceptSettings) -> _Bracket:
    """Few breakpoints, or one place, around the first place where the condition holds."""
    places = rows.quantiles(bracket, settings) if bracket.inside > settings.most else np.empty(0)
    while bracket.inside > settings.most:
        if not len(places):
            places = floats_between(bracket.low, bracket.high, settings.places)
        if not len(places):  # all breakpoints that are left are at one place
            return bracket
        positive, negative, counts = np.zeros((3, len(places) + 1))
        for at, signed in rows.breakpoints(bracket.low, bracket.high):
            where = np.searchsorted(places, at)  # in (places[k - 1], places[k]]
            positive += np.bincount(where, weights=np.maximum(signed, 0.0), minlength=len(positive))
            negative += np.bincount(where, weights=np.maximum(-signed, 0.0), minlength=len(positive))
            counts += np.bincount(where, minlength=len(positive))
        rising = bracket.rising + np.append(0.0, np.cumsum(negative))  # at low, at each place, at high
        falling = bracket.falling + np.append(np.cumsum(positive[::-1])[::-1], 0.0)
        ends = np.concatenate([[bracket.low], places, [bracket.high]])
        beyond = condition(rising[1:-1], falling[1:-1])
        k = int(np.argmax(beyond)) if beyond.any() else len(places)
        bracket = _Bracket(float(ends[k]), float(ends[k + 1]), float(rising[k]), float(falling[k + 1]), int(counts[k]))
        places = np.empty(0)
    return bracket


def _first(few: tuple[Vector, Vector], bracket: _Bracket, condition: Condition) -> float:
    """The first of these breakpoints where the condition holds; infinite if there is none."""
    at, signed = few
    rising = bracket.rising + np.cumsum(np.maximum(-signed, 0.0))  # just right of each breakpoint
    later = np.cumsum(np.maximum(signed, 0.0)[::-1])[::-1]
    found = condition(rising, bracket.falling + np.append(later[1:], 0.0))
    return float(at[np.argmax(found)]) if found.any() else np.inf


def floats_between(low: float, high: float, many: int = 8) -> Vector:
    """Up to this number between two, evenly spaced in the order of all float64: about 20 such steps leave none."""
    first, last = _rank(low), _rank(high)
    ranks = sorted({first + (last - first) * j // (many + 1) for j in range(1, many + 1)} - {first, last})
    return np.array([_of_rank(rank) for rank in ranks])


def _rank(value: float) -> int:
    """The place of a number in the order of all float64, 0 for 0.0."""
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)


def _of_rank(rank: int) -> float:
    value: float = struct.unpack("<d", struct.pack("<q", abs(rank)))[0]
    return value if rank >= 0 else -value
