"""`--cluster` and `--engine` for the parser, which loads no engine."""

from __future__ import annotations

import argparse

ENGINES = ("dask", "ray", "spark", "local")


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """The options of commands that can use several machines."""
    add = parser.add_argument_group("several machines (docs/cluster.md)").add_argument
    where = (
        "train on a cluster, tcp://host:8786 (Dask), ray://host:10001 or spark://host:7077; DATA is Parquet files or a "
    )
    add("--cluster", metavar="ADDRESS", help=f"{where}store, under names that all its machines know")
    engine = "dask, ray or spark, or local: threads of this machine, and no address (default: dask with --cluster)"
    add("--engine", metavar="E", choices=ENGINES, help=engine)
