"""The exact searches against brute force over all breakpoints, the others against the paper's pseudo-code."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cutsvm._native import core
from cutsvm.problem.line_search import SEARCHES, TCA, ArnostiSettings, exact, lowest, new_search
from cutsvm.problem.line_search.intercept import InterceptSettings
from cutsvm.problem.losses import Hinge
from tests.support.reference import arnosti as paper
from tests.support.reference import hinge
from tests.support.strategies import next_to, rng_of, seeds, some_labels, some_scores


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
    at, jumps = hinge.breakpoints(f, to, a)
    # Between breakpoints h is a parabola: its lowest point lies at a breakpoint, at 0 or where a piece has slope 0.
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
    at, _ = hinge.breakpoints(f, None, a)
    lowest_value = min(hinge.along(f, None, a, k) for k in (at if n < 400 else rng.choice(at, 300)))
    assert hinge.along(f, None, a, found) <= lowest_value + 1e-9 * (1 + lowest_value)


@given(seed=seeds, n=st.integers(2, 40), decades=st.sampled_from([0, 6, 12, 30, 300]))
def test_best_intercept_counts_light_rows_beside_heavy_ones(seed, n, decades):
    """No other place is better, exactly, however far apart the weights are; up to the last digits of the place, which
    may be all of a heavy row's loss."""
    rng = rng_of(seed)
    f = np.round(rng.normal(size=n), 2)
    a = rng.choice([-1.0, 1.0], size=n) * 10.0 ** rng.uniform(-decades / 2, decades / 2, size=n)
    a[:2] = abs(a[0]), -abs(a[1])
    found = Hinge(a).best_shift(f)

    def loss(k):
        margins = [1 - (1 if ai > 0 else -1) * (Fraction(fi) + Fraction(k)) for fi, ai in zip(f, a, strict=True)]
        return sum(abs(Fraction(ai)) * max(0, margin) for ai, margin in zip(a, margins, strict=True))

    best = min(loss(float(k)) for k in np.sign(a) - f)
    assert min(map(loss, next_to(found, f))) <= best * Fraction(1 + 1e-11)


@given(
    seed=seeds,
    n=st.integers(2, 400),
    decades=st.sampled_from([12, 30]),
    different=st.sampled_from([1, 2, 5, 1000]),
    most=st.sampled_from([1, 3, 20]),
)
def test_best_intercept_is_the_same_if_few_breakpoints_are_sorted(seed, n, decades, different, most):
    """Counted between places, however many tie, or all sorted at once."""
    rng = rng_of(seed)
    f = rng.normal(size=different)[rng.integers(0, different, n)]
    a = rng.choice([-1.0, 0.0, 1.0], size=n) * 10.0 ** rng.uniform(-decades / 2, decades / 2, size=n)
    a[:2] = abs(a[0]) + 1e6, -abs(a[1]) - 1e-6
    few = InterceptSettings(most=most, places=7, sample=16)
    assert Hinge(a).best_shift(f, counting=few) == Hinge(a).best_shift(f)


def test_lowest_returns_the_middle_of_a_plateau():
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
    offsets = loss.slopes(f, np.array([0, n]), g, balanced=True).offsets
    assert abs(g.sum()) <= 1e-9 * np.abs(a).sum()
    other = some_scores(rng, n)
    assert hinge.value(other, a) >= g @ other + offsets[0] - 1e-9 * np.abs(a).sum()


class CountedLine:
    """A line that counts its sweeps."""

    def __init__(self, line):
        self.line, self.n, self.crossing, self.sweeps, self.exact = line, line.n, line.crossing, 0, True

    def minimise(self, tilt, curvature, guess):
        return exact(self, tilt, curvature, guess)

    def evaluate(self, ks):
        assert 0 < len(ks) <= core.LINE_POINTS
        self.sweeps += 1
        return self.line.evaluate(ks)


def some_line(rng, kind, n):
    """A line of scores with tilt, curvature and base as a solver has them: |w + k s|^2 / (2 C), s = 0 if flat."""
    w, s, C = rng.normal(size=3), rng.normal(size=3), 10.0 ** rng.uniform(-3, 3)
    f, a = some_scores(rng, n), some_labels(rng, n)
    to = f + (some_scores(rng, n) - f) * 10.0 ** rng.uniform(-2, 2)
    if kind == "scores do not change":
        to = f.copy()
    elif kind == "flat":
        to, s = f.copy(), np.zeros(3)
    elif kind == "no loss":
        f = to = 5.0 * np.sign(a)
    elif kind == "nothing at all":
        f, w, s = 5.0 * np.sign(a), np.zeros(3), np.zeros(3)
        to = f.copy()
    elif kind == "uphill":
        s = 0.1 * w
        to = f.copy()
    line = CountedLine(Hinge(a).line(f, to))
    return line, float(w @ s) / C, float(s @ s) / C, 0.5 * float(w @ w) / C


def on(line, tilt, curvature, base):
    """f(mu), one point at a time."""

    def f(mu):
        return float(line.line.evaluate(np.array([mu])).values[0]) + (base + mu * (tilt + 0.5 * curvature * mu))

    return f


kinds = st.sampled_from(["any"] * 5 + ["scores do not change", "flat", "no loss", "nothing at all", "uphill"])


@pytest.mark.parametrize("name", SEARCHES)
@given(seed=seeds, kind=kinds, n=st.integers(1, 300), before=st.integers(0, 3))
def test_never_worse_than_no_step(name, seed, kind, n, before):
    rng, find = rng_of(seed), SEARCHES[name]()
    for _ in range(before + 1):  # whatever the last searches have left behind
        line, *penalty = some_line(rng, kind, n)
        found = find(line, *penalty)
        f = on(line, *penalty)
        assert 0.0 <= found <= 100.0
        assert f(found) <= f(0.0) + (1e-12 * abs(f(0.0)) if name == "exact" else 0.0)


BOXES = {"gca": paper.GCA, "gca2": paper.GCA2, "tca": paper.TCA}
SAFE = {"gca": paper.SafeGCA, "gca2": paper.SafeGCA2, "tca": paper.SafeTCA}
OTHERS = {
    "beta": 0.5,
    "gamma": 0.05,
    "g": 3.0,
    "h": 0.25,
    "t1": 0.1,
    "t2": 0.3,
    "factor": 4.0,
    "least": 0.01,
    "most": 2.0,
}


class TooFarError(Exception):
    """Our searches end at 100."""


def within(f, furthest=100.0):
    def limited(mu):
        if abs(mu) > furthest:
            raise TooFarError
        return f(mu)

    return limited


@pytest.mark.parametrize("constants", [{}, OTHERS], ids=["the paper's", "others"])
@pytest.mark.parametrize("safe", [False, True], ids=["as in the box", "safe"])
@pytest.mark.parametrize("name", BOXES)
@given(
    seed=seeds,
    kind=kinds,
    n=st.integers(1, 200),
    runs=st.integers(1, 12),
    first_step=st.sampled_from([0.0, 0.02, 0.5, 1.0, 3.0]),
)
def test_searches_are_the_papers(name, safe, constants, seed, kind, n, runs, first_step):
    """To the last bit, from one search to the next."""
    rng = rng_of(seed)
    find = new_search(name, ArnostiSettings(**constants), safe=safe, first_step=first_step)
    same = (SAFE if safe else BOXES)[name](first_step, **constants)
    line, *penalty = some_line(rng, kind, n)
    for _ in range(runs):
        if rng.random() < 0.3:  # as a solver's lines do, those that follow are much alike, but not always
            line, *penalty = some_line(rng, kind, n)
        try:
            mu = same(within(on(line, *penalty)))
        except TooFarError:
            assume(False)
        assert find(line, *penalty) == mu
        assert find.uncertainty == same.uncertainty


@given(seed=seeds, kind=kinds, n=st.integers(1, 300))
def test_gca_takes_four_sweeps(seed, kind, n):
    line, *penalty = some_line(rng_of(seed), kind, n)
    SEARCHES["gca"]()(line, *penalty)
    assert line.sweeps <= 4


@pytest.mark.parametrize("name", ["gca2", "tca"])
@given(seed=seeds, kind=kinds, n=st.integers(1, 200), first_step=st.sampled_from([0.0, 0.5, 90.0, 1e6]))
def test_unsafe_searches_stay_within_their_limits(name, seed, kind, n, first_step):
    line, *penalty = some_line(rng_of(seed), kind, n)
    find = new_search(name, safe=False, first_step=first_step)
    for _ in range(3):
        assert 0.0 <= find(line, *penalty) <= 100.0


def test_an_unsafe_search_may_take_f_up():
    """The minimum is at 0.001: the grid from -0.5 has no point between 0 and twice that, and f(0) is not compared."""
    line = CountedLine(Hinge(np.ones(1)).line(np.full(1, 5.0), np.full(1, 5.0)))
    curve = (-0.001, 1.0, 20.0)
    f = on(line, *curve)
    unsafe, safe = (new_search("gca2", safe=safe, first_step=0.5)(line, *curve) for safe in (False, True))
    assert 0.0 < unsafe < 0.02
    assert f(unsafe) > f(0.0) >= f(safe)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"beta": 0.6}, "beta=0.6: expected 0.01 to 0.5"),
        ({"gamma": 0.0}, "gamma=0.0: expected a finite number above 0"),
        ({"t1": -1.0}, "t1=-1.0: expected a finite number above 0"),
        ({"factor": 0.5}, "factor=0.5: expected at least 1"),
    ],
)
def test_settings_that_make_no_sense(wrong, message):
    with pytest.raises(ValueError, match=message):
        ArnostiSettings(**wrong)


@pytest.mark.parametrize("name", ["gca", "gca2", "tca"])
@given(seed=seeds, n=st.integers(50, 300), minimum=st.floats(0.0, 1.9))
def test_finds_an_interior_minimum(name, seed, n, minimum):
    """Within beta^2 of the true one, or gamma; on a line that is steep enough for its floats to tell."""
    find, line = SEARCHES[name](), CountedLine(Hinge(np.ones(n)).line(np.full(n, 5.0), np.full(n, 5.0)))
    found = find(line, -minimum * n, float(n), float(2 * n))
    assert abs(found - minimum) <= 0.04


@pytest.mark.parametrize(("name", "most"), [("gca", 4), ("gca2", 2), ("tca", 2)])
def test_few_sweeps_once_mu_is_stable(name, most):
    rng = rng_of(5)
    line, *penalty = some_line(rng, "any", 300)
    find = SEARCHES[name]()
    for _ in range(12):
        line.sweeps = 0
        find(line, *penalty)
    assert line.sweeps <= most


def test_moving_window():
    """The minimum is 3 to the right of the first window, then 3 to the left of where it was."""
    line = CountedLine(Hinge(np.ones(1)).line(np.full(1, 5.0), np.full(1, 5.0)))
    find = TCA()
    assert find(line, -5.0, 1.0, 20.0) == pytest.approx(5.0, abs=0.02)
    for _ in range(10):
        find(line, -5.0, 1.0, 20.0)
    assert find.uncertainty == 0.02
    assert find(line, -2.0, 1.0, 20.0) == pytest.approx(2.0, abs=0.02)
    assert find.uncertainty == 0.04
