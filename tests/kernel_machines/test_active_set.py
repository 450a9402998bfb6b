"""Newton steps on the free variables of a dual."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutsvm.kernel_machines.active_set import ActiveSetSettings, newton_steps
from tests.support.reference import kernel_dual as twin


@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(1, 30), rank=st.integers(0, 30), intercept=st.booleans(),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
)  # fmt: skip
def test_newton_steps(seed, n, rank, intercept, scale):
    """Within the bounds, with the same sum, never worse; at the optimum if no bound is met, whatever the rank."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, rank)) * scale
    K, c, low, high = Z @ Z.T, np.where(rng.random(n) < 0.5, 1.0, -1.0), np.full(n, -3.0), np.full(n, 2.0)
    s = rng.uniform(-2.9, 1.9, size=n)
    found = newton_steps(K, c - K @ s, s, low, high, free_intercept=intercept, settings=ActiveSetSettings())
    if found is None:
        return
    assert np.all((low <= found) & (found <= high))
    assert not intercept or found.sum() == pytest.approx(s.sum(), rel=1e-12, abs=1e-12)
    size = 1.0 + abs(twin.dual_value(K, c, s))
    assert twin.dual_value(K, c, found) >= twin.dual_value(K, c, s) - 1e-9 * size
    free = (found > low) & (found < high)
    g = (c - K @ found)[free]
    if free.all():
        assert np.ptp(g) if intercept else np.abs(g).max() <= 1e-4 * (1.0 + scale**2 * n)


def test_no_step_at_the_optimum_or_without_work():
    K, s, low, high = np.eye(3), np.array([0.5, 0.2, -0.7]), np.full(3, -1.0), np.ones(3)
    for g, settings in ((np.zeros(3), ActiveSetSettings()), (np.ones(3), ActiveSetSettings(most_work=0.0))):
        assert newton_steps(K, g, s, low, high, free_intercept=False, settings=settings) is None
    assert newton_steps(K, np.ones(3), s, low, high, free_intercept=True, settings=ActiveSetSettings()) is None
