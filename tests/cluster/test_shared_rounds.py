"""Several problems share rounds: each gets what it would get alone, and every chunk is read once for all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pytest

from cutsvm._utils.errors import ClusterError
from cutsvm.cluster.folds import FoldParts, RowFolds, find_folds
from cutsvm.cluster.grains import LayoutSettings
from cutsvm.cluster.local import Local
from cutsvm.cluster.open import OpenSettings, open_parts, split_arrays
from cutsvm.cluster.shared_rounds import SharedRounds

SMALL = OpenSettings(layout=LayoutSettings(fewest_rows=16, least=64, most_chunks=30))


@pytest.fixture
def parts():
    rng = np.random.default_rng(0)
    X, y, weights = rng.normal(size=(1000, 3)), rng.normal(size=1000), rng.random(1000)
    return open_parts(split_arrays(X, y, weights, parts=5), executor=Local(2), targets="numbers", settings=SMALL)


def weighted(grain, *, power):
    return grain.weights @ grain.rows.X**power


def added(*sums):
    return sum(sums[1:], start=sums[0])


@dataclass
class FailsAt:
    number: int

    def __call__(self, grain):
        if grain.number == self.number:
            raise ClusterError(f"grain {self.number} is lost")
        return np.zeros(1)


def side_by_side(parts, *programs):
    """What each program(parts) returns or raises, in a thread of its own; and what was read."""
    with SharedRounds(parts.executor, parts.chunks, turns=2) as shared, ThreadPoolExecutor(len(programs)) as pool:
        problems = [shared.problem() for _ in programs]

        def run(program, problem):
            with problem:
                try:
                    return program(replace(parts, executor=problem))
                except ClusterError as error:
                    return error

        found = list(pool.map(run, programs, problems))
        return found, shared.reads


def powers(*numbers, here=True):
    return lambda parts: [parts.fold(weighted, added, power=power, here=here) for power in numbers]


def test_results_are_those_of_each_problem_alone(parts):
    programs = powers(1, 2, 3), powers(5), powers(4, 1)
    assert (len(parts.chunks), len(parts.layout.edges)) == (21, 64)  # chunks of 3 grains
    before = replace(parts.executor.traffic)
    found, reads = side_by_side(parts, *programs)
    traffic = parts.executor.traffic
    assert (traffic.rounds - before.rounds, traffic.reads - before.reads) == (3, 3)
    assert (reads.passes, reads.requested_passes) == (3, 6)
    for own, program in zip(found, programs, strict=True):
        np.testing.assert_array_equal(own, program(parts))


def test_sums_made_by_workers(parts):
    """Some problems leave their results with the workers, which add them up."""
    programs = powers(1, 2, here=False), powers(3, 1), powers(5, here=False)
    assert len(parts.chunks) > 16
    found, reads = side_by_side(parts, *programs)
    assert (reads.passes, reads.requested_passes) == (2, 5)
    for own, program in zip(found, programs, strict=True):
        np.testing.assert_array_equal(own, program(parts))


def test_a_problem_may_leave_a_round_and_read_within_one(parts):
    def first_only(parts):
        elements = parts.each(weighted, added, power=1)
        found = [next(elements)]
        elements.close()
        return [*found, parts.fold(weighted, added, power=3)]

    def nested(parts):
        return [added(own, parts.fold(weighted, added, power=2)) for own in parts.each(weighted, added, power=1)]

    programs = first_only, powers(2, 2), nested
    found, _ = side_by_side(parts, *programs)
    for own, program in zip(found, programs, strict=True):
        np.testing.assert_array_equal(own, program(parts))


def test_an_error_comes_to_all_problems_of_the_round(parts):
    found, _ = side_by_side(parts, lambda parts: parts.fold(FailsAt(3), added), powers(1), powers(2, 1))
    assert [str(own) for own in found] == ["grain 3 is lost"] * 3


def test_the_weights_of_a_fold(parts):
    folds = RowFolds(4, parts.facts.n, shuffled=True)
    facts = find_folds(parts, folds, "numbers")
    numbers = np.arange(parts.facts.n)
    assert facts.rows.sum() == parts.facts.n and facts.rows.min() > 200
    blocks = [(grain.first, grain.block) for chunk in parts.executor.collect(parts.chunks) for grain in chunk.grains()]
    weights, X, y = (np.concatenate([getattr(block, name) for _, block in blocks]) for name in ("weights", "X", "y"))
    for fold in range(4):
        trains = weights * (folds.of(numbers) != fold)
        labels = facts.trained(fold)
        own = FoldParts.of(parts, parts.executor, folds, fold, labels)
        np.testing.assert_allclose(own.fold(weighted, added, power=1), trains @ X)
        assert own.facts.weight == pytest.approx(trains.sum())
        assert (labels.low, labels.high) == (y[trains > 0].min(), y[trains > 0].max())
        assert not np.any(folds.of(own.facts.sample.numbers) == fold)
    assert facts.scale.squares == pytest.approx(weights @ (X**2).sum(axis=1))


def test_folds_of_consecutive_rows_are_those_of_scikit_learn():
    from sklearn.model_selection import KFold

    folds = RowFolds(3, 11, shuffled=False)
    for fold, (_, test) in enumerate(KFold(3).split(np.empty(11))):
        np.testing.assert_array_equal(np.flatnonzero(folds.of(np.arange(11)) == fold), test)
