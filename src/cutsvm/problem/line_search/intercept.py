"""The best intercept of rows of unlike weights: argmin over k of a piecewise linear loss of scores + k, by counting.

Row i has hinges max(0, a_ib (t_ib - f_i - k)), with breakpoints at t_ib - f_i: one with a > 0 is above 0 to the left of
its breakpoint, one with a < 0 to the right. The slope of the loss at k is the sum of |a| over the negative ones whose
breakpoint is at k or left of it, `rising`, less that over the positive ones whose breakpoint is right of k, `falling`.
Slopes within `flat` of what counts there, rising + falling, are round-off. They are added up from both sides, so that
nothing is ever subtracted: rows that are light beside others, which may have no loss there, still count.

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
Breakpoints = Callable[[slice], tuple[Vector, Vector]]  # of some rows: where they are, and a_ib


def counted_intercept(of_rows: Breakpoints, n: int, flat: float, counting: InterceptSettings = COUNTING) -> float:
    """argmin over k of the loss of scores + k, in the middle where that is a plateau; n: the number of rows."""

    def reached(rising: Vector, falling: Vector) -> Array:
        return rising - falling >= -flat * (rising + falling)

    def passed(rising: Vector, falling: Vector) -> Array:
        return rising - falling > flat * (rising + falling)

    rows = _Rows(of_rows, n)
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
    """The breakpoints of all rows."""

    of_rows: Breakpoints
    n: int

    def breakpoints(self, low: float, high: float) -> Iterator[tuple[Vector, Vector]]:
        """The breakpoints in (low, high] with a_ib, some rows at a time; rows without weight have none."""
        for part in parts(self.n):
            at, signed = self.of_rows(part)
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
        """The breakpoints of a bracket in their order, with a_ib; those of one place as two, one of either sign."""
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
        some = np.sort(self.of_rows(slice(None, None, max(1, self.n // settings.sample)))[0])
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
