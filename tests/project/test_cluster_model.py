"""The model of fits on a cluster: `tools/simulate_cluster.py`."""

from __future__ import annotations

import csv
import itertools
import math
from dataclasses import replace
from pathlib import Path

import pytest

from cutsvm.cluster.grains import Counts, Layout, LayoutSettings
from cutsvm.solvers.sifting.solver import SiftingSettings
from tools.cluster_model import ENGINES, SOURCES, Cluster, Constants, Data, batched, dual, largest, sifting, simulate
from tools.simulate_cluster import check, draw_check, grid, table

CONSTANTS = Constants()


@pytest.mark.parametrize(
    "n, row_bytes", [(1, 8.0), (4097, 8.0), (1_000_000, 400.0), (11_620_240, 216.0), (10**9, 40.0)]
)
def test_counts_are_those_of_the_layout(n, row_bytes):
    layout, counts = Layout.of(n, row_bytes), Counts.of(n, row_bytes, LayoutSettings())
    assert (len(layout.edges) - 1, len(layout.chunks) - 1) == (counts.grains, counts.chunks)
    assert layout.edges[1] == min(n, counts.rows) and layout.chunks[1] == min(counts.grains, counts.each)


def test_counts_of_any_number_of_rows():
    counts = Counts.of(10**12, 400.0, LayoutSettings())
    assert counts.rows == 65_536 and counts.grains == math.ceil(1e12 / 65_536)
    assert counts.chunks <= LayoutSettings().most_chunks


@pytest.mark.parametrize("Cn, rounds", [(1e2, 8), (1e4, 14), (1e6, 20)])
def test_rounds_and_bytes_of_cutting_planes(Cn, rounds):
    plan = batched(Data(1_000_000, 54, Cn=Cn), Cluster(), CONSTANTS)
    assert len(plan.rounds) == 1 + rounds and plan.reads == 1 + rounds and not plan.limit
    assert {step.received for step in plan.rounds[1:]} == {32 * 16 * 55 * 8.0}


def test_bytes_of_sifting():
    data = Data(1_000_000, 99, sizes=False)
    plan = sifting(data, Cluster(), CONSTANTS)
    assert [step.name for step in plan.rounds] == ["sizes", "facts and sample", "sift", "advance"]
    sample = (1_000_000 * 10.0) ** (2 / 3)
    near = 1_000_000 * min(0.2, 3.5 * math.sqrt(100 / sample))
    chunks, totals = data.counts.chunks, data.counts.chunks * 2 * 100 * 8.0
    facts = chunks * (256.0 + 16.0 * 99) + 16.0 * data.counts.grains
    expected = [8.0 * chunks, facts + sample * 396, near * 396 + totals, 0.05 * near * 396 + totals]
    assert [step.received for step in plan.rounds] == pytest.approx(expected, rel=1e-12)


def test_little_memory_takes_another_read_and_then_another_method():
    data = Data(10**9, 100)
    plans = [sifting(data, Cluster(client_memory=memory), CONSTANTS) for memory in (48e9, 6e9)]
    assert [plan.reads for plan in plans] == [3, 4] and not any(plan.limit for plan in plans)
    assert plans[1].memory < 6e9 < plans[0].memory
    found = simulate(Data(10**9, 10_000), Cluster()).plan
    assert found.method == "batched" and "client memory" in found.reason
    assert simulate(Data(10**9, 10**6, 100.0), Cluster()).plan.method == "dual"


def test_wide_rows_get_fewer_planes():
    plan = batched(Data(10**6, 10**6), Cluster(client_memory=8e9), CONSTANTS)
    assert not plan.limit and plan.memory < 8e9 and len(plan.rounds) > 15
    assert batched(Data(10**6, 10**6), Cluster(client_memory=1e8), CONSTANTS).limit.startswith("client memory")
    parts = dual(Data(10**7, 10**6, 100.0), Cluster(client_memory=8e9), CONSTANTS).rounds[-1].received / (
        8.0 * 1_000_001
    )
    assert parts == 15


@pytest.mark.parametrize("engine", ["dask", "ray", "spark"])
@pytest.mark.parametrize("data", [Data(10**8, 100), Data(10**9, 10_000), Data(10**9, 10**6, 100.0)], ids=str)
def test_more_workers_take_no_longer(data, engine):
    own = Cluster(engine=ENGINES[engine])
    found = [simulate(data, replace(own, workers=workers)) for workers in (1, 2, 3, 10, 30, 100, 300, 1000)]
    for fewer, more in itertools.pairwise(found):
        assert more.working <= fewer.working
        assert more.plan.received == fewer.plan.received  # what is computed does not depend on the workers
    assert found[0].working > 100 * found[-1].working or any("chunks" in text for text in found[-1].limits)


def test_what_is_slow_is_named():
    cluster = Cluster(workers=20)
    assert "the scheduler" in simulate(Data(10**9, 100), replace(cluster, engine=ENGINES["spark"])).limits
    assert "the network" in simulate(Data(10**9, 100), replace(cluster, bandwidth=1e7)).limits
    held = simulate(Data(10**9, 1000), replace(cluster, read=SOURCES["memory"]))
    assert any(text.startswith("worker memory") for text in held.limits)
    assert any("chunks" in text for text in simulate(Data(10**6, 100), replace(cluster, workers=100)).limits)


def test_cores_that_are_shared_take_the_sum():
    data, cluster = Data(10**7, 54), Cluster(workers=2, threads=1)
    apart, together = (simulate(data, replace(cluster, shared_cores=shared)) for shared in (False, True))
    assert apart.seconds < together.seconds <= apart.scheduling + apart.working + apart.network + apart.client + 0.1


def test_most_rows_of_sifting():
    limits = [largest(Cluster(), CONSTANTS, d) for d in (10, 100, 1000, 10_000)]
    assert limits == sorted(limits, reverse=True) and limits[-1] > 0
    small = replace(CONSTANTS, sifting=replace(SiftingSettings(), least_rows=10**16))
    assert largest(Cluster(), small, 10) == 0


def test_measured_runs_are_compared(tmp_path: Path):
    cluster, data = Cluster(workers=2), Data(10**7, 54)
    found = simulate(data, cluster, method="batched")
    row = {"engine": "dask", "workers": 2, "n": data.n, "d": data.d, "method": "batched"}
    row |= {"rounds": len(found.plan.rounds), "bytes": found.plan.received, "seconds": 2.0 * found.seconds}
    peer = {**row, "engine": "LinearSVC", "rounds": ""}
    with (tmp_path / "measured.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(row))
        writer.writeheader()
        writer.writerows([row, peer])
    lines = check(tmp_path / "measured.csv", cluster, CONSTANTS)
    assert len(lines) == 6 and lines[1].endswith("= 2.00") and lines[5].endswith(": 1 runs")
    draw_check(tmp_path / "measured.csv", cluster, CONSTANTS, tmp_path / "check.png")
    assert (tmp_path / "check.png").stat().st_size > 1000
    assert lines[2].startswith("rounds: 1.00 to 1.00") and lines[4].startswith("seconds: 2.00 to 2.00")


def test_table_has_a_line_for_each_size():
    rows = list(grid(Cluster(), CONSTANTS, 1e4))
    lines = table(rows)
    assert len(lines) == 2 + 5 * 6 and all(line.count("|") == 11 for line in lines)
