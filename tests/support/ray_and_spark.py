"""Ray and Spark on this machine, for tests; skipped where they are not installed."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.cluster import python_path


@contextmanager
def ray_session(cpus: int = 2) -> Iterator[Any]:
    """Ray with worker processes on this machine."""
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    ray.init(
        num_cpus=cpus,
        include_dashboard=False,
        object_store_memory=100 << 20,
        logging_level=logging.ERROR,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": python_path()}},
    )
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    try:
        yield ray
    finally:
        ray.shutdown()


@contextmanager
def spark_session(cpus: int = 2) -> Iterator[Any]:
    """Spark on threads of a Java process of this machine, with Python workers."""
    sql = pytest.importorskip("pyspark.sql")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = python_path()
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "3",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
    }
    session = sql.SparkSession.builder.master(f"local[{cpus}]").config(map=settings).getOrCreate()
    try:
        yield session
    finally:
        session.stop()
