"""One Dask cluster for all tests that leave its workers alone."""

import pytest

from tests.support.cluster import dask_cluster


@pytest.fixture(scope="session")
def dask_client():
    """Two worker processes of one thread each."""
    with dask_cluster(2) as client:
        yield client
