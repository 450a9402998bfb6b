"""Exact searches along a line: min over k of h(k) = loss(f + k t) + tilt k + curvature k^2 / 2.

The loss is piecewise linear in k, so h' rises in steps. A sweep evaluates h' at several points at once and brackets
its zero; the few breakpoints that are left inside are searched by selection. Together O(n), and exact.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cutsvm._utils.types import Vector

if TYPE_CHECKING:
    from cutsvm.problem.losses import BreakpointLine, MarginLoss

# Where the first sweep evaluates, in units of the guess.
_AHEAD = np.array([0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0])
_AROUND = np.array([-4.0, -1.0, -0.25, -0.05, 0.05, 0.25, 1.0, 4.0])
_BEYOND = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0])
_INSIDE = np.arange(1, 9) / 9

# A share of the rows whose breakpoints may be selected from, how often to narrow before that, and how many there may be
# then: they take memory. Rows with equal scores share their breakpoints, so that no interval may have fewer.
_FEW = 1 / 16
_ROUNDS = 4
_MOST = 1 << 19
# Slopes below this share of the weight are round-off, if that is as little as LIGHT of the lightest row's.
FLAT, LIGHT = 1e-12, 1e-3
# Scores far out on a line carry the round-off of a short segment many times over: no step goes further than this.
FURTHEST = 100.0


def exact(line: BreakpointLine, tilt: float, curvature: float, guess: float = 1.0) -> float:
    """argmin over k in [0, 100] of loss(f + k t) + tilt k + curvature k^2 / 2."""
    guess = min(max(guess, 1e-6), FURTHEST / _AHEAD[-1])
    return min(FURTHEST, _cross(line, tilt, curvature, 0.0, guess * _AHEAD, floor=True))


def lowest(line: BreakpointLine, flat: float) -> float:
    """argmin over all k of loss(f + k t), in the middle where slopes within +-flat make it a plateau."""
    found = _bracket(line, 0.0, 0.0, -flat, _AROUND)
    left = _inside(line, found, 0.0, -flat)
    if isinstance(found, Bracket) and found.slope_high > flat:  # the right end lies in it, too
        return 0.5 * (left + _inside(line, found, 0.0, flat))
    if line.evaluate(np.array([left])).slopes[0] > flat:
        return left
    return 0.5 * (left + _cross(line, 0.0, 0.0, flat, left + _AROUND))


def best_intercept(loss: MarginLoss, scores: Vector) -> float:
    """argmin over k of the loss of scores + k, in the middle where that is a plateau.

    Slopes within FLAT of the weight that counts there are round-off. Where all rows weigh about the same, that may as
    well be FLAT of all the weight. Else rows would be lost that are light beside others, which may have no loss there:
    then weights are added up from both sides, so that nothing is ever subtracted.
    """
    if FLAT * loss.total <= LIGHT * loss.lightest:
        return lowest(loss.line(scores), FLAT * loss.total)
    rows = np.flatnonzero(loss.signed)
    y, weights = np.sign(loss.signed[rows]), np.abs(loss.signed[rows])
    breakpoints = y - scores[rows]  # positive rows have a loss to the left of theirs, negative ones to the right
    order = np.argsort(breakpoints, kind="stable")
    breakpoints, positive, weights = breakpoints[order], y[order] > 0.0, weights[order]
    rising = np.cumsum(np.where(positive, 0.0, weights))  # the slopes just right of each breakpoint
    falling = np.append(np.cumsum(np.where(positive, weights, 0.0)[::-1])[::-1][1:], 0.0)
    flat = FLAT * (rising + falling)
    left = int(np.argmax(rising - falling >= -flat))  # there is one: at the last breakpoint nothing falls
    beyond = np.flatnonzero(rising - falling > flat)
    return float(breakpoints[left] if not len(beyond) else 0.5 * breakpoints[left] + 0.5 * breakpoints[beyond[0]])


class Bracket(NamedTuple):
    """Where h' reaches a level: with `slope`, that of the loss with the tilt, at low; slope_high is h' at high."""

    low: float
    high: float
    slope: float
    slope_high: float


def _cross(
    line: BreakpointLine, tilt: float, curvature: float, level: float, ks: Vector, *, floor: bool = False
) -> float:
    """The smallest k where h' reaches level. With floor: not left of ks[0]."""
    return _inside(line, _bracket(line, tilt, curvature, level, ks, floor=floor), curvature, level)


def _inside(line: BreakpointLine, found: Bracket | float, curvature: float, level: float) -> float:
    if not isinstance(found, Bracket):
        return found
    return line.crossing(found.low, found.high, found.slope, curvature, level)


def _bracket(
    line: BreakpointLine, tilt: float, curvature: float, level: float, ks: Vector, *, floor: bool = False
) -> Bracket | float:
    """Few breakpoints around the place where h' reaches level, or that place itself."""
    low, high, slope_low, slope_high = -np.inf, np.inf, 0.0, np.inf
    rounds = 0
    while True:
        values = line.evaluate(ks)
        below = values.slopes + tilt + curvature * ks < level
        j = int(np.count_nonzero(below))  # h' never falls: the first j are below
        if floor and low == -np.inf and j == 0:
            return float(ks[0])
        before = values.breakpoints[j - 1] if j else 0.0
        if j:
            low, slope_low = float(ks[j - 1]), float(values.slopes[j - 1]) + tilt
        if j < len(ks):
            high, slope_high = float(ks[j]), float(values.slopes[j]) + tilt + curvature * float(ks[j])
            inside = values.breakpoints[j] - before if j else line.n
        if low == -np.inf or high == np.inf:
            edge = max(abs(ks[0]), abs(ks[-1]))
            if floor and low >= FURTHEST:
                return low
            if edge > 1e200:  # no such k: the loss does not change along the line
                return low if high == np.inf else high
            ks = np.sort(edge * _BEYOND * (-1.0 if low == -np.inf else 1.0))
            continue
        rounds += 1
        if inside <= _MOST and (inside <= _FEW * line.n + 1024 or rounds > _ROUNDS):
            return Bracket(low, high, slope_low, slope_high)
        ks = low + (high - low) * _INSIDE if rounds <= _ROUNDS else _floats_between(low, high)
        if not len(ks):  # all breakpoints that are left are at one place
            return high


def _floats_between(low: float, high: float) -> Vector:
    """Up to 8 numbers between two, evenly spaced in the order of all float64: about 20 such steps leave none."""
    first, last = _rank(low), _rank(high)
    ranks = sorted({first + (last - first) * j // 9 for j in range(1, 9)} - {first, last})
    return np.array([_of_rank(rank) for rank in ranks])


def _rank(value: float) -> int:
    """The place of a number in the order of all float64, 0 for 0.0."""
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)


def _of_rank(rank: int) -> float:
    value: float = struct.unpack("<d", struct.pack("<q", abs(rank)))[0]
    return value if rank >= 0 else -value
