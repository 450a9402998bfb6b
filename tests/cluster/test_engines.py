"""Columns do the same on threads and on Dask; Ray and Spark have files of their own with the same tests."""

import pytest

from cutsvm.cluster import Local
from tests.support.engines import ClusterTests, EngineTests


class TestLocal(EngineTests):
    @pytest.fixture(params=[1, 3])
    def executor(self, request):
        return Local(request.param)


class TestDask(ClusterTests):
    @pytest.fixture
    def executor(self, dask_client):
        from cutsvm.cluster.dask import Dask

        return Dask(dask_client)
