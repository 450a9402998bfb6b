"""Twins of src/core/hinge.hpp for the loss s (below max(0, -r - epsilon) + above max(0, r - epsilon)), r = f - t.

A `Tube` holds t, s, epsilon, below, above.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

TIE = 1e-12


class Tube(NamedTuple):
    t: np.ndarray
    s: np.ndarray
    epsilon: float
    below: float
    above: float


def hinges(tube):
    """a and t of the hinges max(0, a (t - f)): those below the targets first, then those above."""
    a = np.concatenate([tube.below * tube.s, -tube.above * tube.s])
    return a, np.concatenate([tube.t - tube.epsilon, tube.t + tube.epsilon])


def gaps(f, tube):
    """How far each row is below its tube, and above it."""
    return np.stack([tube.t - f - tube.epsilon, f - tube.t - tube.epsilon])


def value(f, tube):
    below, above = np.maximum(0.0, gaps(f, tube))
    return tube.s @ (tube.below * below + tube.above * above)


def sides(f, tube):
    """For each hinge 1 where it is above 0, 0 on a tie, else -1."""
    gap = gaps(f, tube)
    tied = np.abs(gap) <= TIE * (np.abs(tube.t) + np.abs(f) + tube.epsilon)
    return np.where(tied, 0, np.sign(gap)).astype(int)


def balance(f, tube):
    a, side = hinges(tube)[0], sides(f, tube).ravel()
    tied = side == 0
    return a[side > 0].sum(), a[tied & (a > 0)].sum(), a[tied & (a <= 0)].sum()


def slopes(f, tube, tied_positive, tied_negative, bounds):
    """Slopes; by shard the offset of their highest plane, the sum of |g|, and that of the terms of the offset."""
    side = sides(f, tube)
    shares = [
        np.choose(row + 1, [0.0, share, 1.0]) for row, share in zip(side, (tied_positive, tied_negative), strict=True)
    ]
    g = tube.s * (tube.above * shares[1] - tube.below * shares[0])
    columns = [-g * tube.t - tube.epsilon * np.abs(g), np.abs(g), np.abs(g) * (np.abs(tube.t) + tube.epsilon)]
    return g, np.array([[column[i:j].sum() for i, j in pairwise(bounds)] for column in columns])


def along(f, to, tube, k):
    """The loss at k on the line."""
    return value(f + k * (1.0 if to is None else to - f), tube)


def breakpoints(f, to, tube):
    """Where each row's loss along the line has its breakpoints, and by how much the slope jumps there."""
    (a, t), f = hinges(tube), np.tile(f, 2)
    r = -a * (1.0 if to is None else np.tile(to, 2) - f)
    moving = r != 0
    return -(a * (t - f))[moving] / r[moving], np.abs(r[moving])


def sift(f, tube, band):
    """Each row's place, "kept", "below", "above" or "outside"; and which rows are kept."""
    gap = gaps(f, tube)
    place = np.select([gap[0] > 0, gap[1] > 0], ["below", "above"], "outside")
    place[(np.abs(gap) <= band).any(axis=0)] = "kept"
    place[tube.s == 0] = "outside"
    return place, np.flatnonzero(place == "kept")


def violators(f, tube, place):
    """The rows with weight that have left their group, or are not without loss any more."""
    below, above = gaps(f, tube)
    wrong = ((place == "below") & (below < 0)) | ((place == "above") & (above < 0))
    wrong |= (place == "outside") & ((below > 0) | (above > 0))
    return np.flatnonzero(wrong & (tube.s != 0))
