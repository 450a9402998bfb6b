"""connect: which executor it gives, and what it says if there is none."""

import subprocess
import sys

import pytest

from cutsvm import cluster
from cutsvm._utils.errors import ClusterError
from cutsvm.cluster import Local, connect, current_executor
from tests.support.cluster import python_path


def test_threads_of_this_process():
    with connect(engine="local", n_jobs=1) as executor:
        assert isinstance(executor, Local)
        assert executor.resources.threads == 1
    with pytest.raises(ValueError, match="engine='local' has no address, got 'tcp://there:1'"):
        connect("tcp://there:1", engine="local")


def test_an_unknown_engine():
    with pytest.raises(ValueError, match="engine: one of 'dask', 'ray', 'spark', 'local' expected, got 'mpi'"):
        connect(engine="mpi")


@pytest.mark.parametrize("engine", ["dask", "ray", "spark"])
def test_an_engine_that_is_not_installed(monkeypatch, engine):
    library = {"dask": "dask", "ray": "ray", "spark": "py4j.protocol"}[engine]
    monkeypatch.delitem(sys.modules, f"cutsvm.cluster.{engine}", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"engine='{engine}' needs .*: pip install 'cutsvm\[{engine}\]'"):
        connect(engine=engine)


def test_nobody_answers():
    pytest.importorskip("distributed")
    with pytest.raises(ClusterError, match=r"^tcp://127\.0\.0\.1:9: no Dask scheduler answers there within 0\.5 s"):
        connect("tcp://127.0.0.1:9", timeout=0.5)


@pytest.mark.parametrize(
    ("engine", "address"), [("ray", "127.0.0.1:9"), ("ray", "ray://127.0.0.1:9"), ("spark", "spark://127.0.0.1:9")]
)
def test_nobody_answers_where_an_engine_would_take_minutes_to_say_so(engine, address):
    pytest.importorskip({"ray": "ray", "spark": "pyspark"}[engine])
    with pytest.raises(ClusterError, match=rf"^{address}: no (Ray cluster|Spark master) answers there"):
        connect(address, engine=engine)


def test_no_client_is_in_use():
    pytest.importorskip("distributed")
    assert current_executor() is None
    with pytest.raises(ClusterError, match="no Dask client is in use: name the scheduler, such as connect"):
        connect()


def test_a_client_of_the_user_is_left_open(dask_client):
    with connect(dask_client) as executor:
        assert list(executor.collect(executor.put([1, 2]))) == [1, 2]
    assert dask_client.status == "running"


def test_a_client_that_is_in_use_is_found(dask_client):
    with dask_client.as_current():
        assert current_executor().client is dask_client
        assert connect().client is dask_client
        assert current_executor("ray") is None
        assert current_executor("spark") is None


def test_a_client_of_its_own_is_closed(dask_client):
    address = dask_client.scheduler.address
    with connect(address) as executor:
        assert executor.resources.workers == 2
        assert executor.client is not dask_client
    assert executor.client.status == "closed"
    assert dask_client.status == "running"


def test_the_function_has_the_name_of_its_module():
    from cutsvm.cluster.engines import connect as same

    assert cluster.connect is same is connect


def test_engines_are_not_imported_before_they_are_asked_for():
    program = (
        "import sys, cutsvm, cutsvm.cluster; from cutsvm.cluster import connect, current_executor, Executor\n"
        "from cutsvm import LinearSVC\n"
        "assert current_executor() is None and connect(engine='local')\n"
        "print(sorted({'dask', 'distributed', 'ray', 'pyspark'} & set(sys.modules)))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONPATH": python_path()}
    )
    assert shown.stdout == "[]\n"


@pytest.mark.parametrize("address", ["", "nonsense", "tcp://host", "mpi://host:1", "tcp://host:port"])
def test_text_that_is_no_address(address):
    pytest.importorskip("distributed")
    with pytest.raises(ClusterError, match=rf"^'{address}' is no address of a Dask scheduler .* tcp://host:8786"):
        connect(address)


def test_a_dask_client_that_was_closed_and_one_without_workers():
    distributed = pytest.importorskip("distributed")
    options = {"processes": False, "dashboard_address": ":0", "set_as_default": False}
    with distributed.Client(n_workers=0, **options) as client:
        with pytest.warns(UserWarning, match="the Dask cluster has no workers yet"):
            executor = connect(client)
    for use in (lambda: executor.resources, lambda: connect(client), lambda: next(executor.collect(executor.put([1])))):
        with pytest.raises(ClusterError, match="the Dask client was closed: connect again"):
            use()
