"""The bundle: its lower bound, and which planes it drops."""

from __future__ import annotations

import numpy as np
import pytest

from cutsvm._utils.memory import bytes_of_planes
from cutsvm.io.temporary_arrays import TemporaryArrays
from cutsvm.matrix import PlaneMemory
from cutsvm.problem.certificate import Magnitudes, RowScale
from cutsvm.problem.planes import Bundle, Planes
from tests.support.reduced_problems import class_planes, problem_of
from tests.support.strategies import rng_of

UNIT_SCALE = RowScale(Magnitudes.of_norm(1.0, 3), 1, 0, False, 0.0)


def without_errors(slopes, offsets):
    """Planes whose coefficients add up to their offsets, as those of the hinge loss do, and that are exact."""
    zeros = np.zeros(len(offsets))
    return Planes(slopes, offsets, np.column_stack([zeros, zeros, offsets]))


def test_bundle_drops_only_idle_planes():
    """A plane below the others is dropped; the minimum stays."""
    rng = rng_of(1)
    bundle = Bundle(3, 0, lambda: UNIT_SCALE)
    for _ in range(4):
        bundle.add(without_errors(rng.normal(size=(2, 3)), 1 + rng.random(2)))
    bundle.add(without_errors(np.zeros((2, 3)), np.full(2, 1e-9)))
    before = bundle.minimise(1.0, 1e-10)
    for _ in range(3):
        bundle._rising = True
        bundle._idle[: len(bundle)] += 1
        bundle._idle[: len(bundle)] *= bundle._weights[: len(bundle)] < 1e-3
    bundle.drop_idle(2)
    assert len(bundle) < 10
    assert bundle.minimise(1.0, 1e-10).lower == pytest.approx(before.lower, rel=1e-6)


@pytest.mark.parametrize("size", [6, 60])
def test_bundle_with_several_free_intercepts(size):
    """The lower bound increases to the minimum of the reduced problem with all planes."""
    slopes, offsets, _ = class_planes(rng_of(3), 40, size, 1, 3)
    scale = RowScale(Magnitudes.of_norm(10.0, 3), 1, 3, False, 1e3)
    bundle = Bundle(size + 3, 3, lambda: scale, intercept_box=1e3)
    assert bundle.intercept_box == 1e3
    whole = problem_of("features", slopes, offsets, np.arange(40) % 2, 3, 1e3).solve(1.0, 1e-9)
    lower = 0.0
    for start in range(0, 40, 2):
        bundle.add(without_errors(slopes[start : start + 2], offsets[start : start + 2]))
        now = bundle.minimise(1.0, 1e-9).lower
        assert lower - 1e-8 <= now <= whole.value
        lower = now
    assert lower == pytest.approx(whole.value, rel=1e-7)


@pytest.mark.parametrize(("size", "shards"), [(5, 1), (5, 4), (1500, 2)], ids=["few features", "shards", "in files"])
def test_planes_beyond_the_memory_are_replaced_by_their_means(size, shards, tmp_path):
    """The bound never falls, stays below the minimum with all planes, and comes close to it; no more planes are kept
    than fit."""
    rng = rng_of(5)
    files = TemporaryArrays(tmp_path / "store")
    made = []

    def allocate(shape):
        made.append(files.zeros(shape))
        return made[-1]

    most = 6 * max(2, shards)
    memory = PlaneMemory(bytes_of_planes(most, size), allocate)
    scale = RowScale(Magnitudes.of_norm(10.0, 3), 1, 0, False, 0.0)
    few, every = Bundle(size, 0, lambda: scale, np.inf, memory), Bundle(size, 0, lambda: scale)
    assert few.most == most
    lower, w = 0.0, np.zeros(size)
    rows = rng.normal(size=(shards, 30, size)) + 1.0  # each shard is a sum of hinges
    for _ in range(80):
        inside = 1.0 - rows @ w > 0.0
        planes = without_errors(-np.where(inside[:, :, None], rows, 0.0).sum(axis=1), inside.sum(axis=1) * 1.0)
        few.add(planes)
        every.add(planes)
        found, whole = few.minimise(0.01, 1e-9), every.minimise(0.01, 1e-9)
        assert len(few) <= most
        assert lower - 1e-8 <= found.lower <= whole.value + 1e-8
        lower, w = found.lower, found.w
    assert lower >= 0.98 * whole.lower
    assert bool(made) == (size > 1000)


def test_the_bound_of_an_empty_bundle_is_zero():
    reduced = Bundle(3, 0, lambda: UNIT_SCALE).minimise(1.0, 1e-3)
    assert reduced.lower == 0.0
    assert not reduced.w.any()
