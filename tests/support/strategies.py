"""Random data of the property tests."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 40) | st.sampled_from([4095, 4096, 4097, 9000])


def examples(count):
    """`count` examples where others have the 40 of the default profile, and proportionally many in other profiles."""
    return settings(max_examples=max(1, count * settings.default.max_examples // 40))


def rng_of(seed):
    return np.random.default_rng(seed)


def next_to(k, *others, digits=4):
    """k and floats beside it: places that rounding may have meant, of k or of the numbers that it was made of."""
    units = {np.spacing(size) for size in (abs(k), *(np.abs(numbers).max() for numbers in others))}
    return [float(k + step * unit) for unit in units for step in range(-digits, digits + 1)]


def some_rows(rng, n, d):
    """Integers over 8: sums are exact, so the order in which they are added does not matter."""
    return rng.integers(-8, 9, size=(n, d)) * (rng.random((n, d)) < 0.5) / 8.0


def some_scores(rng, n):
    """Scores with many ties: at the margin, and among each other."""
    f = rng.integers(-8, 9, size=n) / 4.0
    return np.where(rng.random(n) < 0.5, f, rng.normal(size=n))


def some_labels(rng, n):
    return rng.choice([-1.0, 1.0], size=n) * rng.integers(0, 4, size=n)
