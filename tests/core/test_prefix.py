"""The kernel of the early-returning oracle against NumPy: where it stops, what it has added up, on any layout."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from cutsvm.matrix import as_rows, stacked
from tests.support.layouts import LAYOUTS
from tests.support.strategies import rng_of, seeds


def twin(X, a, w, b, limit, slope, heights):
    """Row by row, as in the paper's Algorithm 4; adds to slope and heights."""
    for j, (x, ai) in enumerate(zip(X, a, strict=True)):
        left = abs(ai) - ai * (x @ w + b)
        if left > 0.0:
            slope -= ai * np.append(x, 1.0)
            heights += left, abs(ai)
        if heights[0] > limit:
            return j + 1
    return len(a)


def problem(rng, n, d):
    X = rng.normal(size=(n, d))  # none on the margin, where rounding would decide
    a = rng.choice([-2.0, -1.0, 0.0, 1.0, 0.5], size=n)
    return X, a, rng.normal(size=d), float(rng.normal())


@pytest.mark.parametrize("threads", [1, 2, 3])
@given(
    seed=seeds,
    n=st.sampled_from([1, 2, 63, 64, 65, 1024, 1025, 3000, 9000]),
    d=st.integers(1, 9),
    layout=st.sampled_from(["float64", "fortran", "csr", "strided", "csr_long"]),
    share=st.sampled_from([-0.1, 0.0, 0.001, 0.3, 0.9, 2.0, np.inf]),
)
def test_prefix_is_its_twin(threads, seed, n, d, layout, share):
    rng = rng_of(seed)
    X, a, w, b = problem(rng, n, d)
    loss = np.maximum(0.0, np.abs(a) - a * (X @ w + b)).sum()
    limit = share * loss if share < np.inf else np.inf
    if loss == 0.0:
        limit = np.inf
    limit += 1e-9  # rounding does not decide
    slope, heights, theirs, both = np.ones(d + 1), np.array([0.0, 3.0]), np.ones(d + 1), np.array([0.0, 3.0])
    stop, read = as_rows(LAYOUTS[layout](X), threads).prefix(a, w, b, limit, slope, heights)
    assert stop == twin(X, a, w, b, limit, theirs, both)
    assert stop <= read <= n
    assert read == stop or threads > 1
    assert_allclose(slope, theirs, atol=1e-9 * n)
    assert_allclose(heights, both, rtol=1e-11)


@given(seed=seeds, cut=st.integers(1, 2999), share=st.sampled_from([0.2, 0.7, np.inf]))
def test_threads_and_parts_do_not_matter(seed, cut, share):
    """Not a bit by threads; rows in several parts stop at the same row."""
    rng = rng_of(seed)
    X, a, w, b = problem(rng, 3000, 4)
    limit = share * np.maximum(0.0, np.abs(a) - a * (X @ w + b)).sum() + 1e-9 if share < np.inf else np.inf
    found = []
    for rows in (as_rows(X), as_rows(X, 2), as_rows(X, 3), stacked([as_rows(X[:cut]), as_rows(X[cut:])])):
        slope, heights = np.zeros(5), np.zeros(2)
        found.append((rows.prefix(a, w, b, limit, slope, heights)[0], slope, heights))
    for stop, slope, heights in found[1:3]:
        assert stop == found[0][0]
        assert_array_equal(slope, found[0][1])
        assert_array_equal(heights, found[0][2])
    assert found[3][0] == found[0][0]
    assert_allclose(found[3][1], found[0][1], atol=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": np.ones(3)}, "one entry per row expected"),
        ({"w": np.ones(3)}, "w: one entry per feature expected"),
        ({"slope": np.zeros(2)}, "slope: d \\+ 1 entries expected"),
        ({"heights": np.zeros(3)}, "heights: two entries expected"),
    ],
)
def test_wrong_lengths_raise(change, message):
    given = {"a": np.ones(4), "w": np.ones(2), "slope": np.zeros(3), "heights": np.zeros(2)} | change
    with pytest.raises(ValueError, match=message):
        as_rows(np.ones((4, 2))).prefix(given["a"], given["w"], 0.0, np.inf, given["slope"], given["heights"])
