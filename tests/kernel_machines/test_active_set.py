"""Newton steps on the free variables of a dual."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutsvm.kernel_machines.active_set import ActiveSetSettings, Schedule, newton_steps
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


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 40), intercept=st.booleans(), room=st.sampled_from([0.01, 1.0]))
def test_newton_steps_by_a_factor(seed, n, intercept, room):
    """Where K is positive definite: within the bounds, with the same sum, never worse, however many come to a bound."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, n + 5))
    K, c = Z @ Z.T, np.where(rng.random(n) < 0.5, 1.0, -1.0)
    s = rng.normal(size=n)
    best = np.linalg.solve(K, c)
    low, high = np.minimum(s, best) - room * rng.random(n), np.maximum(s, best) + room * rng.random(n)
    use = ActiveSetSettings(most_variables=0, most_outside=1.0)
    found = newton_steps(K, c - K @ s, s, low, high, free_intercept=intercept, settings=use)
    if found is None:
        assert intercept  # without, the best point is within the bounds
        return
    assert np.all((low <= found) & (found <= high))
    before, after = c @ s - 0.5 * s @ K @ s, c @ found - 0.5 * found @ K @ found
    assert after >= before
    if intercept:
        assert found.sum() == pytest.approx(s.sum(), rel=1e-9, abs=1e-9)
    else:
        np.testing.assert_allclose(found, best, rtol=1e-6, atol=1e-8)


def test_no_factor_of_a_singular_matrix():
    use = ActiveSetSettings(most_variables=0)
    K, s = np.ones((3, 3)), np.zeros(3)
    assert newton_steps(K, np.array([1.0, -1.0, 0.5]), s, s - 1.0, s + 1.0, free_intercept=False, settings=use) is None


def test_when_newton_steps_pay():
    """Four rounds with a stable number of free variables are a forecast; after a try in vain it takes more."""
    use = ActiveSetSettings()
    slow = [(0.9**k, 1e7 * k, 100) for k in range(20)]
    schedule = Schedule(use)
    assert [schedule.pays(gap, 1e-6, work, free) for gap, work, free in slow[:6]] == [False] * 4 + [True] * 2
    schedule.tried(False)
    assert [schedule.pays(gap, 1e-6, work, free) for gap, work, free in slow[:9]] == [False] * 8 + [True]
    for rounds in (
        [(0.1**k, 1e4 * k, 100) for k in range(5)],  # the steps are fast
        [(0.9**k, 1e7 * k, 100 + 10 * k) for k in range(9)],  # it is not known yet which variables are free
        [(0.9**k, 1e7 * k, 10_000) for k in range(9)],  # too many
    ):
        schedule = Schedule(use)
        assert not any([schedule.pays(gap, 1e-6, work, free) for gap, work, free in rounds])
