"""memory_limit: what it counts, its forms, free memory of machines and containers, and what errors say."""

import numpy as np
import pytest

from cutsvm import LinearSVC, convert
from cutsvm._utils import memory
from cutsvm._utils.memory import MemorySettings, parse_limit, plan, plan_pairs
from cutsvm.kernel_machines.context import FitOptions
from cutsvm.kernel_machines.memory_plan import bytes_for_values

MB = 10**6


@pytest.fixture
def held(monkeypatch):
    """Sets what the process holds."""
    return lambda size: monkeypatch.setattr(memory, "private", lambda: size)


def test_a_limit_is_what_a_fit_may_add(held):
    rooms = []
    for size in (100 * MB, 3000 * MB):
        held(size)
        rooms.append(plan(10**7, 10**9, "200MB", features=20).room)
    assert rooms[0] == rooms[1]


def test_a_limit_of_the_process_is_less_what_it_holds(held):
    step = MemorySettings().step
    held(4 * step)
    beside = plan(10**7, 10**9, 300 * MB - 4 * step, features=20)
    within = plan(10**7, 10**9, "300MB total", features=20)
    assert within.room == beside.room
    held(3 * step + 1)  # in coarse steps
    assert plan(10**7, 10**9, "300MB total", features=20).room == within.room


def test_messages_state_both(held):
    held(10 * MemorySettings().step)
    with pytest.raises(ValueError, match=r"^memory_limit is 1 MB beside the 336 MB that the process holds: too little"):
        plan(10**7, 10**9, "1MB")
    with pytest.raises(ValueError, match=r"the limit is 300 MB and the process holds 336 MB already: .*MB in all"):
        plan_pairs(10**6, 10**9, "300MB total")
    assert "memory_limit is 2 GB beside the 336 MB that the process holds;" in plan(10**7, 10**9, "2GB").description


@pytest.mark.parametrize("problems", [1, 4])
def test_what_a_fit_needs_at_least_suffices(problems, held):
    held(0)
    with pytest.raises(ValueError, match=r"expected at least ([\d.]+) MB") as caught:
        plan(10**7, 10**9, 1, features=20, problems=problems)
    least = float(str(caught.value).rpartition("at least ")[2].split()[0])
    assert plan(10**7, 10**9, int(1.01 * least * MB), features=20, problems=problems).on_disk
    with pytest.raises(ValueError):
        plan(10**7, 10**9, int(0.98 * least * MB), features=20, problems=problems)


def test_problems_share_the_memory(held):
    held(0)
    one, four = (plan(10**7, 10**9, "200MB", features=20, problems=many) for many in (1, 4))
    assert 4 * four.room < one.room and "4 of 4 problems side by side" in four.description


def test_problems_run_some_after_others_where_each_can_then_hold_more_rows(held):
    held(0)
    plans = [plan(10**7, 10**9, f"{size}MB", features=20, problems=4) for size in (200, 400, 800, 1600)]
    assert [found.at_once for found in plans] == [4, 1, 2, 4]
    assert all(found.room >= 10**7 / 8 for found in plans[1:])


def test_csr_rows_take_more_of_the_memory(held):
    held(0)
    dense, sparse = (plan(10**7, 10**9, "400MB", features=20, sparse=kind) for kind in (False, True))
    assert sparse.room < 0.8 * dense.room


def test_auto_takes_a_share_of_what_is_free(monkeypatch):
    monkeypatch.setattr(memory, "free", lambda: 1000 * MB)
    assert parse_limit("auto") == 600 * MB
    assert not plan(10**6, 100 * MB, "auto").on_disk  # it fits
    assert plan(10**7, 10**9, "auto", features=20).room == plan(10**7, 10**9, "600MB", features=20).room


def test_free_memory_of_a_container(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "total", lambda: 64 * 10**9)
    machine = memory.free()
    for name, text in (("max", "1000000000"), ("current", "700000000"), ("stat", "anon 5\ninactive_file 100000000\n")):
        (tmp_path / name).write_text(text)
    for name in ("_CONTAINER", "_CONTAINER_USE", "_CONTAINER_STAT"):
        file = {"_CONTAINER": "max", "_CONTAINER_USE": "current", "_CONTAINER_STAT": "stat"}[name]
        monkeypatch.setattr(memory, name, (str(tmp_path / file),))
    assert memory.free() == min(machine or 10**12, 400 * MB)
    (tmp_path / "max").write_text("max\n")  # no limit
    assert abs(memory.free() - machine) < 2 * 10**9


def test_a_fit_with_auto(tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 3))
    convert((X, (X[:, 0] > 0).astype(int)), tmp_path / "store")
    auto, none = (LinearSVC(memory_limit=limit).fit(tmp_path / "store") for limit in ("auto", None))
    assert np.array_equal(auto.coef_, none.coef_)


# Kernel machines


def options():
    return FitOptions(2, 0.5, 1e-3, 1)


def test_the_rows_of_a_kernel_machine_count(held):
    held(0)
    X = np.broadcast_to(0.0, (100_000, 100))  # 80 MB
    with pytest.raises(ValueError, match=r"at least \d+ MB.*, since a kernel machine has its rows in memory"):
        bytes_for_values("300MB", X, options())
    left, given = bytes_for_values("1GB", X, options())
    assert left < 10**9 - 5 * 80 * MB and given.panel_bytes < left


def test_kernel_values_of_few_rows_get_the_whole_limit():
    X = np.zeros((120, 3))
    assert bytes_for_values(4 * 120 * 120, X, options())[0] == 4 * 120 * 120


def test_all_limits_in_the_process_are_refused_if_it_holds_more(held):
    held(500 * MB)
    X = np.zeros((50, 2))
    with pytest.raises(ValueError, match="and the process holds"):
        bytes_for_values("100MB total", X, options())


def test_problems_on_parts_share_the_limit():
    given = {"outputs": 1, "features": 10, "sparse": False}
    rooms = [memory.plan_parts(10**8, 10**10, 4 * 10**9, problems=problems, **given).room for problems in (1, 6)]
    assert rooms[0] < 10**8 and rooms[1] == pytest.approx(rooms[0] / 6, rel=0.2)
