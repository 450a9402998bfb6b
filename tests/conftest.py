"""Shared strategies and data."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from cutsvm._utils import threads

# The default runs the same examples every time, so that a failure comes from the change; "thorough" runs new ones.
settings.register_profile(
    "default", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=40, derandomize=True
)
settings.register_profile("fast", parent=settings.get_profile("default"), max_examples=6)
settings.register_profile("thorough", parent=settings.get_profile("default"), max_examples=1000, derandomize=False)


def pytest_configure(config):
    default = "fast" if config.option.markexpr == "fast" else "default"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", default))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Marks what is not slow as fast, and runs slow tests first, so that workers end together."""
    for item in items:
        if item.get_closest_marker("slow") is None:
            item.add_marker("fast")
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(autouse=True, scope="session")
def threads_for_little_data():
    """Threads are used for data of any size."""
    before = threads.configure(threads.ThreadSettings(min_size=0))
    yield
    threads.configure(before)


@pytest.fixture(scope="session")
def overlapping():
    """Two classes that overlap: 5,000 x 12, with one empty column."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 12))
    X[:, 3] = 0.0
    y = np.where(X @ rng.normal(size=12) + rng.normal(size=5000) > 0.3, 1, -1)
    return X, y
