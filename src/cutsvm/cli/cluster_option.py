"""`--cluster ADDRESS` and `--engine E`: training on the machines where the rows are read."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cutsvm._utils.memory import format_bytes
from cutsvm._utils.types import Array
from cutsvm.cli.data import as_labels
from cutsvm.cli.inputs import check_inputs
from cutsvm.cli.messages import CommandError, Messages, as_command_error, flag
from cutsvm.cluster.engines import connect
from cutsvm.cluster.open import open_parts
from cutsvm.cluster.parts import Parts
from cutsvm.cluster.protocol import Executor, Resources
from cutsvm.display.progress import RoundBar
from cutsvm.io.models.tasks import TASKS, Task
from cutsvm.io.paths import STDIN, format_of, is_address

# How addresses begin that only one engine has.
_SCHEMES = {"ray://": "ray", "spark://": "spark"}
# Options that need the rows here, by their values if they are not stated.
_ROWS_HERE = {
    "find_cost": False,
    "paper": None,
    "report": None,
    "plot": None,
    "filter": None,
    "scale": "none",
    "zero_based": "auto",
}
_WORDS = {"find_cost": "-C"}
_SOLVERS = ("auto", "sifting", "batched", "local_dual")


def uses_cluster(options: argparse.Namespace) -> bool:
    return options.cluster is not None or options.engine is not None


def check_cluster(options: argparse.Namespace, *, folds: bool = False) -> None:
    """Refuse, before anything is connected, what does not go together; `engine` is stated afterwards.

    folds: the command cross-validates on the cluster.
    """
    if not uses_cluster(options):
        return
    address, task = options.cluster, options.task
    if options.engine is None:
        options.engine = next((name for scheme, name in _SCHEMES.items() if address.startswith(scheme)), "dask")
    if options.engine == "local" and address is not None:
        raise CommandError(f"--engine local is this machine and has no address: leave --cluster {address} out")
    if options.engine == "dask" and address is None:
        raise CommandError("--engine dask: where is its scheduler? --cluster tcp://HOST:8786 says it")
    if not task.on_cluster:
        able = ", ".join(other.name for other in TASKS.values() if other.on_cluster)
        raise CommandError(f"--task {task} does not train on a cluster, it needs all rows on one machine; {able} do")
    if not folds and getattr(options, "folds", None) is not None:
        raise CommandError(f"-v needs the rows on this machine; `cutsvm path -v` takes {_stated(options)}")
    if options.solver not in _SOLVERS:
        raise CommandError(f"--solver {options.solver} needs the rows on this machine: expected {', '.join(_SOLVERS)}")
    for name, unset in _ROWS_HERE.items():
        if getattr(options, name, unset) != unset:
            given = _WORDS.get(name, flag(name))
            raise CommandError(f"{given} needs the rows on this machine: leave it or {_stated(options)} out")


def _stated(options: argparse.Namespace) -> str:
    return "--cluster" if options.cluster is not None else f"--engine {options.engine}"


@dataclass(frozen=True, eq=False)
class ClusterData:
    """Rows in parts, as far as the command line describes them; what files have and tables have not is None."""

    source: str
    parts: Parts

    zero_based = None
    feature_ids = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.parts.facts.n, self.parts.facts.d

    @property
    def entries(self) -> int:
        return self.parts.facts.entries

    @property
    def spread(self) -> float:
        """max_j a_j / min_j a_j with a_j = max_i |x_ij|, over the features with a_j > 0."""
        found = self.parts.facts.magnitudes
        if found.low is None or found.high is None:  # sparse rows: not known
            return 1.0
        largest = np.maximum(np.abs(found.low), np.abs(found.high))
        largest = largest[largest > 0.0]
        return float(largest.max() / largest.min()) if len(largest) else 1.0

    @property
    def classes(self) -> Array:
        """Labels of rows with weight; none where y is a number."""
        labels = self.parts.facts.labels
        return as_labels(labels.labels[labels.weights > 0.0])

    def describe(self, task: Task) -> str:
        """Rows, features, parts and labels in one line."""
        facts, parts = self.parts.facts, self.parts.given
        labels = f"{len(self.classes):,} {task.label_noun}"
        if not task.has_classes:
            labels = f"{task.label_noun} from {facts.labels.low:.4g} to {facts.labels.high:.4g}"
        return f"{facts.n:,} rows, {facts.d:,} features, {parts:,} {'part' if parts == 1 else 'parts'}, {labels}"


@contextmanager
def on_cluster(options: argparse.Namespace, inputs: list[str], messages: Messages) -> Iterator[ClusterData]:
    """The rows of DATA as parts on the cluster, which is left when the training has ended."""
    source = _collection(options, inputs)
    with _quiet_logs(), _connected(options) as executor:
        if options.engine != "local":
            messages.note(f"{options.engine}: {_size(executor.resources)}")
        with as_command_error(inputs[0]), RoundBar() as bar:
            if not messages.quiet:
                executor.progress = partial(_show, bar, executor)
            targets = options.task.make_estimator()._targets
            parts = open_parts(source, targets=targets, executor=executor)
            executor.progress = None
        yield ClusterData(inputs[0] if len(inputs) == 1 else f"{len(inputs)} inputs", parts)


def _size(resources: Resources) -> str:
    """Workers, which some engines do not tell, and threads. A cluster that grows on demand may have none yet."""
    if not resources.threads:
        return "no workers yet: the training starts when there are some"
    workers = f"{resources.workers:,} workers, " if resources.workers else ""
    return f"{workers}{resources.threads:,} threads"


def _show(bar: RoundBar, executor: Executor, done: int, parts: int) -> None:
    bar(executor.traffic.rounds, executor.traffic.doing, done, parts)


@contextmanager
def _connected(options: argparse.Namespace) -> Iterator[Executor]:
    own: dict[str, Any] = {"n_jobs": options.n_jobs} if options.engine == "local" else {}
    with as_command_error():
        executor = connect(options.cluster, options.engine, **own)
    with executor:
        yield executor


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """What engines log about lost workers and the like is not for the user of a command: errors are raised."""
    loggers = {logger: logger.level for logger in map(logging.getLogger, ("distributed", "ray", "py4j", "asyncio"))}
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in loggers.items():
            logger.setLevel(level)


def _collection(options: argparse.Namespace, inputs: list[str]) -> Any:
    """Parquet files, or the path of a store."""
    from cutsvm.cluster.collections.parquet import parquet

    if STDIN in inputs:
        raise CommandError("-: other machines cannot read the standard input of this one: name a file")
    check_inputs(inputs)
    with as_command_error(inputs[0]):
        kinds = [options.data_format or format_of(path) for path in inputs]
    own = {name: getattr(options, name) for name in ("label", "weight", "qid", "columns", "exclude")}
    if kinds == ["store"]:
        for name, value in own.items():
            if value:
                raise CommandError(f"{flag(name)} names a column of a table; a store has its own")
        return inputs[0]
    for path, kind in zip(inputs, kinds, strict=True):
        if kind != "parquet":
            here = "" if is_address(path) else f"; `cutsvm convert {path} STORE` makes a store"
            raise CommandError(f"{path}: {_stated(options)} takes Parquet files or one store, this is {kind}{here}")
    return parquet(inputs, **own)


def describe_traffic(figures: dict[str, Any]) -> str:
    """What a fit has taken of the cluster, in one line."""
    reads, rounds, received = figures["reads"], figures["rounds"], format_bytes(figures["received"])
    return f"cluster: {figures['method']}, {reads} readings of all rows in {rounds} rounds, {received} to the client"
