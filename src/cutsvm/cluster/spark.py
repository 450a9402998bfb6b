"""Tasks on Spark (https://spark.apache.org), through RDDs: each element is a partition of its own.

Spark runs the tasks of a lost executor again, up to `spark.task.maxFailures` times. An error of a task is carried to
the client as a value: it would come out the same every time, and Spark would turn it into text.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from py4j.protocol import Py4JError
from pyspark import RDD, StorageLevel
from pyspark.errors import PySparkException

from cutsvm._utils.errors import ClusterError
from cutsvm.cluster.protocol import Column, Common, Executor, Resources, Window, of_element, size_of, worker_error

__all__ = ["Spark"]

Numbered = tuple[int, Any]


@dataclass(frozen=True, eq=False)
class Held:
    """A column that the executors keep, in memory or on their disks, as long as this object is used."""

    rdd: Any

    def __post_init__(self) -> None:
        weakref.finalize(self, _release, self.rdd).atexit = False


@dataclass(frozen=True, eq=False)
class Failed:
    """What a task has raised, in place of its result."""

    error: Exception


@dataclass(eq=False)
class Spark(Executor):
    """Tasks on the executors of a `SparkSession`. owned: the session is stopped with this executor.

    The values of a column are plain values, or an RDD whose partition k holds (k, value) and nothing else.
    """

    session: Any
    owned: bool = False
    window: Window = field(default_factory=lambda: Window(most=1 << 12))
    # The same RDDs in every round, for a few columns: Spark keeps on disk what its executors have sent each other.
    _grouped: deque[tuple[Any, Any, Any]] = field(default_factory=lambda: deque(maxlen=4), init=False, repr=False)

    name = "spark"

    @property
    def resources(self) -> Resources:
        return Resources(0, int(self.session.sparkContext.defaultParallelism))

    def close(self) -> None:
        if self.owned:
            self.session.stop()

    def hold(self, column: Column) -> Column:
        elements = self._rdd(column).persist(StorageLevel.MEMORY_AND_DISK)
        held = Held(elements)
        for found in self._run(elements, _failures, range(len(column))):
            raise worker_error(found.error)
        return Column(held, len(column))

    def _collect(self, column: Column) -> Iterator[Any]:
        elements, largest = self._rdd(column), 0
        numbers = iter(range(len(column)))
        while some := list(islice(numbers, self.window.count(largest) if largest else self.resources.threads)):
            results = self._run(elements, _results, some)
            while results:
                result = results.pop(0)
                if isinstance(result, Failed):
                    raise worker_error(result.error)
                largest = max(largest, size_of(result))
                yield result

    def _rdd(self, column: Column) -> Any:
        """The RDD of (k, element k); nothing runs yet."""
        own = (
            [column.own(k) for k in range(len(column))] if any(step.own is not None for step in column.steps) else None
        )
        common = self.session.sparkContext.broadcast((column.shared, own))
        noted = Common(Common.of(column).version, column.tasks, ())
        return self._inputs(column).map(partial(_element, noted, common), preservesPartitioning=True)

    def _inputs(self, column: Column) -> Any:
        """The RDD of (k, the values that element k is made of)."""
        values = column.values.rdd if isinstance(column.values, Held) else column.values
        if not isinstance(values, RDD):
            groups = [(k, [values[i] for i in column.numbers(k)]) for k in range(len(column))]
            return self.session.sparkContext.parallelize(groups, max(1, len(groups)))
        if column.inputs is None:
            return values.mapValues(_alone)
        for known, inputs, grouped in self._grouped:
            if known is values and inputs is column.inputs:
                return grouped
        targets: dict[int, list[tuple[int, int]]] = {}
        for k, numbers in enumerate(column.inputs):
            for place, number in enumerate(numbers):
                targets.setdefault(number, []).append((k, place))
        grouped = values.flatMap(partial(_sent, targets)).groupByKey(len(column), int).mapValues(_ordered)
        self._grouped.append((values, column.inputs, grouped))
        return grouped

    def _run(self, elements: Any, task: Any, numbers: Sequence[int]) -> list[Any]:
        try:
            return list(self.session.sparkContext.runJob(elements, task, list(numbers)))
        except (Py4JError, PySparkException) as error:
            known = worker_error(error)
            raise (
                known if isinstance(known, ClusterError) else ClusterError(f"Spark gave up: {_reason(error)}")
            ) from None


def _element(noted: Common, common: Any, numbered: Numbered) -> Numbered:
    """Runs on an executor: (k, element k)."""
    k, values = numbered
    failed = next((value for value in values if isinstance(value, Failed)), None)
    if failed is not None:
        return k, failed
    shared, own = common.value
    try:
        arguments = [()] * len(shared) if own is None else own[k]
        return k, of_element(Common(noted.version, noted.tasks, shared), arguments, *values)
    except Exception as error:
        return k, Failed(error)


def _alone(value: Any) -> list[Any]:
    return [value]


def _sent(targets: Mapping[int, Sequence[tuple[int, int]]], numbered: Numbered) -> list[Numbered]:
    number, value = numbered
    return [(k, (place, value)) for k, place in targets.get(number, ())]


def _ordered(values: Iterable[Numbered]) -> list[Any]:
    return [value for _, value in sorted(values, key=_place)]


def _place(numbered: Numbered) -> int:
    return numbered[0]


def _results(elements: Iterable[Numbered]) -> list[Any]:
    return [element for _, element in elements]


def _failures(elements: Iterable[Numbered]) -> list[Failed]:
    return [element for _, element in elements if isinstance(element, Failed)]


def _reason(error: Exception) -> str:
    """The line of a Java error, or of a Python worker's traceback, that says what happened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = next((line for line in lines if "Job aborted" in line), lines[-1] if lines else type(error).__name__)
    return f"{reason} (in the Python that PYSPARK_PYTHON names)" if "No module named" in reason else reason


def _release(rdd: Any) -> None:
    with suppress(Exception):  # the session may have been stopped
        rdd.unpersist()
