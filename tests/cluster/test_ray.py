"""The tests of all engines on Ray, where it is installed."""

import pytest

from cutsvm.cluster import connect
from tests.support.cluster import python_path
from tests.support.engines import ClusterTests

pytestmark = pytest.mark.slow
ray = pytest.importorskip("ray")


@pytest.fixture(scope="module")
def executor():
    options = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 200 << 20, "log_to_driver": False}
    with connect(engine="ray", runtime_env={"env_vars": {"PYTHONPATH": python_path()}}, **options) as executor:
        yield executor


class TestRay(ClusterTests):
    pass
