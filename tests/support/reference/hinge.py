"""Twins of src/core/hinge.hpp. `a` holds y_i s_i: label times weight."""

from itertools import pairwise

import numpy as np

TIE = 1e-12


def losses(f, a):
    return np.maximum(0.0, np.abs(a) - a * f)


def value(f, a):
    return losses(f, a).sum()


def sides(f, a):
    """1 inside the margin, 0 tied, -1 outside."""
    slack = np.where(a > 0, 1 - f, 1 + f)
    return np.where(np.abs(slack) <= TIE * (1 + np.abs(f)), 0, np.sign(slack)).astype(int)


def balance(f, a):
    side = sides(f, a)
    tied = side == 0
    return a[side > 0].sum(), a[tied & (a > 0)].sum(), a[tied & (a <= 0)].sum()


def slopes(f, a, tied_positive, tied_negative, bounds):
    tied = np.where(a > 0, tied_positive, tied_negative)
    g = -a * np.choose(sides(f, a) + 1, [np.zeros(len(a)), tied, np.ones(len(a))])
    return g, np.array([np.abs(g[i:j]).sum() for i, j in pairwise(bounds)])


def tangents(X, a, W, b, edges):
    """At each point, over each piece: the slope of the loss in (w, b), the loss, and the plane's offset."""
    wide, sums, heights = np.hstack([X, np.ones((len(X), 1))]), [], []
    for i, j in pairwise(edges):
        for f in (X[i:j] @ W.T + b).T:
            inside = losses(f, a[i:j]) > 0
            sums.append(-(a[i:j] * inside) @ wide[i:j])
            heights.append((value(f, a[i:j]), np.abs(a[i:j][inside]).sum()))
    return np.array(sums), np.array(heights)


def breakpoints(f, to, a):
    """Where each row's loss along the line has its breakpoint, and by how much the slope jumps there."""
    c, r = np.abs(a) - a * f, -a * (np.ones(len(f)) if to is None else to - f)
    moving = r != 0
    return -c[moving] / r[moving], np.abs(r[moving])


def along(f, to, a, k):
    """The loss at k on the line."""
    return value(f + k * (1.0 if to is None else to - f), a)


def crossing(at, jumps, slope, curvature, level, low, high):
    """The smallest k in (low, high] where slope + curvature k + (jumps up to k) reaches level, by sorting."""
    here = low
    for k, jump in sorted(zip(at, jumps, strict=True)):
        if not low < k <= high:
            continue
        if slope + curvature * k >= level:
            return np.clip((level - slope) / curvature, here, k) if curvature > 0 else k
        slope += jump
        if slope + curvature * k >= level:
            return k
        here = k
    return np.clip((level - slope) / curvature, here, high) if curvature > 0 else high


def sift(f, a, band):
    """Each row's place, "kept", "inside" or "outside"; and which rows are kept."""
    slack = np.where(a > 0, 1 - f, 1 + f)
    place = np.where(slack > 0, "inside", "outside")
    place[np.abs(slack) <= band] = "kept"
    place[a == 0] = "outside"
    return place, np.flatnonzero(place == "kept")


def violators(f, a, place):
    """The rows with weight that are inside with a slack below 0, or outside with one above."""
    slack = np.where(a > 0, 1 - f, 1 + f)
    wrong = ((place == "inside") & (slack < 0)) | ((place == "outside") & (slack > 0))
    return np.flatnonzero(wrong & (a != 0))
