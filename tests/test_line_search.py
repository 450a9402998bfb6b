"""The exact searches against brute force over all knots."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cutsvm.line_search import exact, lowest
from cutsvm.losses import Hinge
from reference import hinge
from test_kernels import rng_of, seeds, some_labels, some_scores


@given(
    seed=seeds,
    n=st.integers(2, 3000),
    scale=st.sampled_from([1e-3, 1.0, 1e3]),
    guess=st.sampled_from([1e-3, 1.0, 50.0]),
)
def test_exact_is_exact(seed, n, scale, guess):
    rng = rng_of(seed)
    f, to, a = some_scores(rng, n), some_scores(rng, n) * scale, some_labels(rng, n)
    tilt, curvature = float(rng.normal() * n / 4), float(rng.uniform(0.1, 5.0) * n)

    def h(k):
        return hinge.along(f, to, a, k) + tilt * k + 0.5 * curvature * k * k

    found = exact(Hinge(a).line(f, to), tilt, curvature, guess)
    assert found >= 0.0
    at, jumps = hinge.knots(f, to, a)
    # Between knots h is a parabola: its lowest point lies at a knot, at 0 or where a piece has slope 0.
    order = np.argsort(at)
    left = (-a * (to - f))[(-a * (to - f)) < 0].sum() + tilt
    slopes = left + np.concatenate([[0.0], np.cumsum(jumps[order])])
    candidates = np.concatenate([[0.0], at, -slopes / curvature])
    best = min(h(k) for k in candidates if k >= 0.0) if n < 400 else h(found)
    assert h(found) <= best + 1e-9 * (1 + abs(best))
    for nearby in (found * (1 - 1e-4), found * (1 + 1e-4) + 1e-9):
        assert h(found) <= h(nearby) + 1e-9 * (1 + abs(h(found)))


@given(seed=seeds, n=st.integers(2, 3000))
def test_lowest_is_the_weighted_median(seed, n):
    rng = rng_of(seed)
    f, a = some_scores(rng, n), some_labels(rng, n)
    a[0], a[1] = 1.0, -1.0  # both classes
    found = lowest(Hinge(a).line(f), 1e-12 * np.abs(a).sum())
    at, _ = hinge.knots(f, None, a)
    lowest_value = min(hinge.along(f, None, a, k) for k in (at if n < 400 else rng.choice(at, 300)))
    assert hinge.along(f, None, a, found) <= lowest_value + 1e-9 * (1 + lowest_value)


def test_lowest_takes_the_middle_of_a_plateau():
    """Two rows, one of each class, that no b can put on the wrong side between -1 and 1."""
    line = Hinge(np.array([1.0, -1.0])).line(np.array([2.0, -2.0]))
    assert lowest(line, 1e-12) == 0.0


@given(seed=seeds, n=st.integers(2, 500))
def test_balanced_slopes_sum_to_zero(seed, n):
    """With the best b, the tied rows can take up what is missing."""
    rng = rng_of(seed)
    f, a = some_scores(rng, n), some_labels(rng, n)
    a[0], a[1] = 1.0, -1.0
    loss = Hinge(a)
    f = f + lowest(loss.line(f), 1e-12 * loss.total)
    g = np.empty(n)
    offsets = loss.slopes(f, np.array([0, n]), g, balanced=True)
    assert abs(g.sum()) <= 1e-9 * np.abs(a).sum()
    other = some_scores(rng, n)
    assert hinge.value(other, a) >= g @ other + offsets[0] - 1e-9 * np.abs(a).sum()
