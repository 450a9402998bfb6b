"""The plan of a fit on a cluster against what the fit takes, and what is shown of its rounds."""

from __future__ import annotations

import io
import json
import logging
import pickle
from typing import Any

import numpy as np
import pytest

from cutsvm import LinearSVC, linear_path
from cutsvm.cluster.collections.arrays import of_arrays, split_arrays
from cutsvm.cluster.collections.base import Collection
from cutsvm.cluster.costs import iterations_of_planes, sums_received, violator_rounds
from cutsvm.cluster.local import Local
from cutsvm.display.callbacks import Log, ProgressBar
from tests.support.problems import long_data


def collection(n: int = 30_000, parts: int = 3, classes: int = 2) -> Collection:
    X, y = long_data(n, 6)
    if classes > 2:
        y = np.digitize(X[:, 0], [-0.5, 0.5])
    return of_arrays(Local(1), split_arrays(X, y, parts=parts))


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("limit", [None, "52MB"])
def test_the_plan_and_what_is_taken(loss: str, limit: str | None) -> None:
    X = collection()
    model = LinearSVC(C=1e4 / 30_000, loss=loss, memory_limit=limit).fit(X)
    taken, planned = model.cluster_, model.cluster_["planned"]
    assert (taken["reads"], taken["rounds"]) == (X.executor.traffic.reads, X.executor.traffic.rounds)
    assert taken["received"] == X.executor.traffic.received
    if taken["method"] == "sifting":
        assert planned["reads"] <= taken["reads"] <= planned["most_reads"] == planned["reads"] + 2
        assert 0.8 * planned["received"] < taken["received"] < planned["most_received"]
    else:
        assert planned["most_reads"] == planned["reads"]
        assert taken["reads"] <= 2 * planned["reads"]
        assert 0.5 < taken["received"] / planned["received"] < 2.0
    assert (taken["engine"], taken["workers"], taken["parts"], taken["held"]) == ("local", 1, 3, True)
    assert taken["reason"] == model.history_[-1]["note"]
    assert json.loads(json.dumps(taken)) == taken
    assert pickle.loads(pickle.dumps(model)).cluster_ == taken


@pytest.mark.parametrize("Cn", [1e2, 1e4, 1e6])
def test_the_plan_is_a_range_that_holds_for_every_C(Cn: float) -> None:
    """covtype 2 times, at C n = 1e6, had twice the bytes of a plan without a second set of violators."""
    taken = LinearSVC(C=Cn / 30_000, memory_limit="1GB").fit(collection()).cluster_
    planned = taken["planned"]
    for name in ("reads", "rounds"):
        assert planned[name] <= taken[name] <= planned[f"most_{name}"]
    assert 0.8 * planned["received"] < taken["received"] < planned["most_received"] < 2.5 * planned["received"]


def test_violators_are_planned_within_the_room() -> None:
    free, tight = (violator_rounds(1000.0, 82.0, room) for room in (None, 1500.0))
    assert [sum(own.rows for own in rounds) for rounds in (free, tight)] == [1500.0, 500.0]
    assert [sum(own.received for own in rounds) for rounds in (free, tight)] == [150_000.0, 50_000.0]
    assert sum(own.rows for own in violator_rounds(1000.0, 82.0, 900.0)) == 0.0


def test_a_second_fit_counts_its_own_rounds_and_one_in_memory_has_none() -> None:
    X = collection()
    model = LinearSVC(C=0.1).fit(X)
    first = model.cluster_
    assert model.fit(X).cluster_ == first
    model.fit(np.eye(4), [0, 1, 0, 1])
    assert not hasattr(model, "cluster_")


def test_problems_of_each_class_are_planned_together() -> None:
    model = LinearSVC(C=0.1, multi_class="ovr").fit(collection(classes=3))
    one = LinearSVC(C=0.1).fit(collection())
    assert model.cluster_["planned"]["rounds"] - 1 == 3 * (one.cluster_["planned"]["rounds"] - 1)
    assert model.cluster_["reads"] >= 7


def test_rounds_of_a_path_are_not_known_before() -> None:
    X = collection()
    models = linear_path(X, Cs=[0.01, 0.1])
    assert models[0].cluster_["planned"]["rounds"] is models[0].cluster_["planned"]["most_rounds"] is None
    assert models[0].cluster_["rounds"] == X.executor.traffic.rounds


def test_the_plan_is_in_the_log_before_the_first_round_of_the_solver(caplog: pytest.LogCaptureFixture) -> None:
    X = collection()
    seen = []
    X.executor.progress = lambda done, parts: seen.append(len(caplog.records))
    with caplog.at_level(logging.INFO, logger="cutsvm.cluster"):
        LinearSVC(C=0.1).fit(X)
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(
        "plan: local, 1 thread; 30,000 rows of 6 features in 3 parts, held by the workers; sifting: "
    )
    assert "about 3 to 5 readings of all rows in 3 to 5 rounds, 1 done; between " in line
    assert line.endswith(" of its memory")
    chunks = X.executor.traffic.parts // X.executor.traffic.rounds
    assert (set(seen[:chunks]), set(seen[chunks:])) == ({0}, {1})


class Slow(ProgressBar):
    """A line each time."""

    def __init__(self, stream: io.StringIO) -> None:
        super().__init__(stream=stream, every=0.0)


def test_rounds_are_shown_by_their_parts() -> None:
    stream = io.StringIO()
    LinearSVC(C=0.1, callbacks=[Slow(stream)]).fit(collection())
    rounds = [line for line in stream.getvalue().splitlines() if line.startswith("round ")]
    assert rounds[0] == "round 1 (facts): 1 of 8 parts"
    assert rounds[-1] == "round 4 (find violators): 8 of 8 parts"
    assert "round 3 (sift rows): 5 of 8 parts" in rounds


def test_lines_about_rounds_are_few(caplog: pytest.LogCaptureFixture) -> None:
    X = collection()
    with caplog.at_level(logging.INFO, logger="cutsvm"):
        LinearSVC(C=0.1, verbose=1).fit(X)
        assert not [record for record in caplog.records if record.getMessage().startswith("round ")]
        LinearSVC(C=0.1, callbacks=[Log(every=0.0)]).fit(X)
    assert "round 1 (facts): 8 of 8 parts" in [record.getMessage() for record in caplog.records]
    assert X.executor.progress is None


@pytest.mark.parametrize(("chunks", "shards", "found"), [(10, 4, 80.0), (1000, 4, 32.0), (1000, 32, 256.0)])
def test_sums_that_are_too_large_are_added_up_by_workers(chunks: int, shards: int, found: float) -> None:
    assert sums_received(chunks, 8.0, 100.0, shards) == found


def test_iterations_grow_with_C_and_with_the_accuracy() -> None:
    def many(*args: Any) -> int:
        return iterations_of_planes(*args)

    assert [many(Cn, 1e-3) for Cn in (1e2, 1e4, 1e6)] == [8, 14, 20]
    assert many(1e4, 1e-4) > many(1e4, 1e-3) > many(1e4, 1e-2) >= 1
