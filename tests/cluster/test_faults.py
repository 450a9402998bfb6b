"""Workers that die, come back, are slow, or run another version: real processes and SIGKILL."""

import os
import signal
import threading
import time

import dask.array as da
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from cutsvm import LinearSVC
from cutsvm._utils.errors import ClusterError, NoWorkersError
from cutsvm.cluster import Local, connect
from cutsvm.cluster.collections.arrays import of_arrays, split_arrays
from cutsvm.cluster.protocol import Column, fold
from cutsvm.driver.records import Status
from tests.support import cluster_tasks as tasks
from tests.support.cluster import (
    dask_cluster,
    kill_workers,
    no_cutsvm,
    other_version,
    pids_of_workers,
    started_again,
    wait_until,
)
from tests.support.signals import sigint_interrupts

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client():
    """A cluster of its own, whose workers are killed."""
    with dask_cluster(2) as client:
        yield client


@pytest.fixture
def executor(client):
    client.wait_for_workers(2, timeout=60)
    with connect(client) as executor:
        yield executor


def when(condition, action):
    """Runs the action in a thread, once the condition holds."""

    def run():
        if wait_until(condition):
            action()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


VALUES = (np.random.default_rng(0).normal(size=24) * 10.0 ** np.arange(-12, 12)).tolist()


def some_work(executor, folder):
    """Held values, regrouped, folded: sums of floats, which show the order in which they were made."""
    held = executor.hold(executor.put(VALUES).map(tasks.counted, folder=str(folder), seconds=0.05))
    groups = [[k, (k + 1) % len(VALUES)] for k in range(len(VALUES))]
    return fold(executor, held.regroup(groups).map(tasks.plus), tasks.plus, width=4, here=False)


@pytest.mark.parametrize("count", [1, None], ids=["one worker", "all workers"])
def test_killed_workers_do_not_change_a_bit(executor, client, tmp_path, count):
    (tmp_path / "local").mkdir()
    (tmp_path / "dask").mkdir()
    expected = some_work(Local(1), tmp_path / "local")
    before = pids_of_workers(client)
    killer = when(lambda: len(list((tmp_path / "dask").iterdir())) >= 8, lambda: kill_workers(client, count))
    assert some_work(executor, tmp_path / "dask") == expected
    killer.join()
    assert started_again(client, before, count or 2)
    assert len(list((tmp_path / "dask").iterdir())) > len(VALUES)  # some ran again


def test_a_round_waits_for_workers_that_come_later():
    with dask_cluster(0) as client:
        with pytest.warns(UserWarning, match="no workers yet"):
            executor = connect(client)
        assert executor.resources.workers == 0
        starter = threading.Timer(0.5, lambda: client.cluster.scale(1))
        starter.start()
        assert list(executor.collect(executor.put([1, 2]).map(tasks.scaled, [0, 0], factor=2))) == [2, 4]
        starter.join()


@pytest.mark.filterwarnings("ignore:the Dask cluster has no workers yet")
def test_max_time_ends_a_wait_for_workers():
    rng = np.random.default_rng(0)
    X = da.from_array(rng.normal(size=(30_000, 4)), chunks=(10_000, 4))
    y = (X[:, 0] > 0.1).astype(int)
    with dask_cluster(0) as client, client.as_current():
        begin = time.monotonic()
        with pytest.raises(ClusterError, match="max_time is over, and the Dask cluster has no workers"):
            LinearSVC(max_time=1.0).fit(X, y)
        assert time.monotonic() - begin < 20


def test_max_time_keeps_the_best_model_if_all_workers_are_gone():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30_000, 4))
    given = of_arrays(Vanishing(1), split_arrays(values, (values[:, 0] > 0.1).astype(int), parts=3))
    with pytest.warns(ConvergenceWarning):
        model = LinearSVC(max_time=60.0).fit(given)
    assert model.status_ is Status.MAX_TIME and 0.0 <= model.lower_bound_ <= model.objective_
    assert given.executor.deadline == np.inf


class Vanishing(Local):
    """Its workers are gone after three rounds."""

    def _collect(self, column):
        if self.traffic.rounds > 3:
            assert self.deadline < np.inf
            raise NoWorkersError("max_time is over, and there are no workers")
        return super()._collect(column)


def test_a_slow_worker_holds_up_its_own_part_only(executor, tmp_path):
    seconds = [1.5, *[0.0] * 30]
    elements = executor.collect(executor.put(list(range(31))).map(tasks.waits, seconds, folder=str(tmp_path)))
    begin = time.monotonic()
    assert list(elements) == list(range(31))
    assert time.monotonic() - begin < 15
    order = [path.name for path in sorted(tmp_path.iterdir(), key=lambda path: path.stat().st_mtime_ns)]
    assert order[-1] == "0"  # all others were done before


def test_a_part_that_kills_its_workers_is_named(executor, client, monkeypatch):
    before = pids_of_workers(client)
    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 0)
    held = executor.hold(executor.put(list(range(4))).map(tasks.dies, bad=2))
    with pytest.raises(ClusterError, match=r"^part [0-3], or another.*: 1 workers died.*memory.*allowed-failures"):
        list(executor.collect(held))
    with pytest.raises(ClusterError, match=r"^part [0-3], or another"):
        list(executor.collect(held.regroup([[0, 1], [2, 3]]).map(tasks.plus)))
    del held
    assert started_again(client, before, 1)


@pytest.mark.parametrize(
    ("change", "has"), [(other_version, r"cutsvm 0\.0\.7"), (no_cutsvm, "no cutsvm")], ids=["version", "no cutsvm"]
)
def test_a_worker_that_differs_is_refused_at_the_start(executor, client, change, has):
    address, pid = next(iter(client.run(os.getpid).items()))
    before = pids_of_workers(client)
    client.run(change, workers=[address])
    try:
        with pytest.raises(ClusterError, match=rf"^worker {address}: {has}.*; the client runs .*: install the same"):
            connect(client)
    finally:
        os.kill(pid, signal.SIGKILL)  # its nanny starts one that is as it was
    assert started_again(client, before, 1)
    connect(client)


def test_tasks_that_someone_cancelled(executor, client):
    held = executor.hold(executor.put([0.0, 1.0]).map(tasks.waits, [1.0, 1.0]))
    threading.Timer(0.3, lambda: client.cancel(held.values, force=True)).start()
    with pytest.raises(ClusterError, match="dropped the tasks"):
        list(executor.collect(held))


def test_ctrl_c_cancels_the_tasks_that_did_not_run(executor, client, tmp_path):
    column = executor.put(list(range(200))).map(tasks.counted, folder=str(tmp_path), seconds=0.05)
    ended = threading.Event()

    def interrupt():
        """Once may be lost: Python ignores what is raised while it frees objects."""
        os.kill(os.getpid(), signal.SIGINT)
        while not ended.wait(1.0):
            os.kill(os.getpid(), signal.SIGINT)

    interrupter = when(lambda: any(tmp_path.iterdir()), interrupt)
    with sigint_interrupts(), pytest.raises(KeyboardInterrupt):
        try:
            list(executor.collect(column))
        finally:
            ended.set()
    interrupter.join()
    assert wait_until(lambda: not client.cluster.scheduler.tasks)
    assert len(list(tmp_path.iterdir())) < 100
    assert list(executor.collect(executor.put([1, 2]))) == [1, 2]


def test_nothing_stays_on_the_workers(executor, client):
    size = 1 << 22

    def kept():
        return sum(len(keys) for keys in client.has_what().values())

    assert wait_until(lambda: kept() == 0)
    held = executor.hold(executor.put(list(range(3))).map(tasks.filled, size=size))
    assert list(executor.collect(held.map(tasks.length))) == [size] * 3
    assert wait_until(lambda: kept() == 3)
    assert isinstance(held, Column)
    del held
    assert wait_until(lambda: kept() == 0)
    elements = executor.collect(executor.put(list(range(8))).map(tasks.filled, size=size))
    next(elements)
    elements.close()
    assert wait_until(lambda: kept() == 0)
