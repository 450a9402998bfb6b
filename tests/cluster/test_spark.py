"""The tests of all engines on Spark, where it is installed."""

import os
import sys

import pytest

from cutsvm.cluster import connect
from cutsvm.cluster.protocol import Column
from tests.support import cluster_tasks as tasks
from tests.support.cluster import python_path
from tests.support.engines import ClusterTests

pytestmark = pytest.mark.slow
pytest.importorskip("pyspark")


@pytest.fixture(scope="module")
def executor():
    options = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", python_path())
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.delenv("SPARK_HOME", raising=False)
        with connect("local[2,4]", engine="spark", **options) as executor:
            yield executor


class TestSpark(ClusterTests):
    def test_values_may_be_an_rdd(self, executor):
        rdd = executor.session.sparkContext.parallelize([(k, "abcd"[k]) for k in range(4)], 4)
        column = Column(rdd, 4)
        assert list(executor.collect(column)) == ["a", "b", "c", "d"]
        assert list(executor.collect(column.regroup([[1, 0], [3, 2, 1]]).map(tasks.joined))) == ["(b a)", "(d c b)"]

    def test_a_killed_python_worker(self, executor, tmp_path):
        column = executor.put(list(range(6))).map(tasks.dies_once, bad=3, folder=str(tmp_path))
        assert list(executor.collect(column)) == list(range(6))
        assert os.listdir(tmp_path) == ["died"]
