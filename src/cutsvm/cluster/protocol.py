"""Executor: runs the same functions on every part of the data, wherever the parts are.

A task is a pure function of a part and of small arguments. So an engine may run it anywhere, run it again after a
worker was lost, or run it twice: the answer is the same to the last bit. Nothing here retries, schedules or talks to
another machine; the engine does that.

A `Column` has one element for each part. Functions that are mapped over it are only noted, and run when the elements
are collected, or held: between two rounds a worker keeps nothing unless it was told to.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import chain
from typing import Any, ClassVar, TypeVar

import numpy as np

from cutsvm._utils.errors import ClusterError
from cutsvm.io.models.model_format import package_version

__all__ = [
    "Column",
    "Common",
    "Executor",
    "Resources",
    "Step",
    "Traffic",
    "Window",
    "apply",
    "check_version",
    "fold",
    "of_element",
    "size_of",
    "worker_error",
]

Own = TypeVar("Own", bound="Executor")


@dataclass(frozen=True, eq=False)
class Step:
    """task(value, own[k], **shared) for element k; `own` may be missing."""

    task: Callable[..., Any]
    shared: Mapping[str, Any]
    own: Sequence[Any] | None = None


@dataclass(frozen=True, eq=False)
class Column:
    """Elements in the order of the parts: the steps applied to values, which are what an executor has.

    inputs: the numbers of the values that each element is made of; None: element k is made of value k alone.
    groups: consecutive elements that one task collects, since together they take less work; None: each has its own.
    """

    values: Any
    length: int
    inputs: Sequence[Sequence[int]] | None = None
    steps: tuple[Step, ...] = ()
    groups: Sequence[Sequence[int]] | None = None

    def __len__(self) -> int:
        return self.length

    def map(self, task: Callable[..., Any], own: Sequence[Any] | None = None, /, **shared: Any) -> Column:
        """task(element, own[k], **shared) of each element; nothing runs yet."""
        if own is not None and len(own) != self.length:
            raise ValueError(f"own: {self.length} values expected, got {len(own)}")
        return replace(self, steps=(*self.steps, Step(task, shared, own)))

    def regroup(self, inputs: Sequence[Sequence[int]]) -> Column:
        """Elements made of several values each: the first task gets them all. The column has no steps yet."""
        if self.steps or self.inputs is not None:
            raise ValueError("regroup: hold the column first")
        return replace(self, length=len(inputs), inputs=inputs)

    def take(self, numbers: Sequence[int]) -> Column:
        """Some of the elements."""
        steps = (step if step.own is None else replace(step, own=[step.own[k] for k in numbers]) for step in self.steps)
        inputs = [self.numbers(k) for k in numbers]
        return replace(self, length=len(inputs), inputs=inputs, steps=tuple(steps), groups=None)

    def grouped(self) -> Column:
        """One element for each group: a list of its elements."""
        assert self.groups is not None
        inputs = [sorted({number for k in group for number in self.numbers(k)}) for group in self.groups]
        own = [
            [([values.index(number) for number in self.numbers(k)], self.own(k)) for k in group]
            for group, values in zip(self.groups, inputs, strict=True)
        ]
        step = Step(elements_of_group, {"tasks": self.tasks, "arguments": self.shared}, own)
        return Column(self.values, len(inputs), inputs, (step,))

    @property
    def tasks(self) -> tuple[Callable[..., Any], ...]:
        return tuple(step.task for step in self.steps)

    @property
    def shared(self) -> tuple[Mapping[str, Any], ...]:
        """The arguments of all steps that are the same for all elements."""
        return tuple(step.shared for step in self.steps)

    def own(self, k: int) -> tuple[tuple[Any, ...], ...]:
        """The arguments of all steps for element k alone."""
        return tuple(() if step.own is None else (step.own[k],) for step in self.steps)

    def numbers(self, k: int) -> Sequence[int]:
        """The numbers of the values that element k is made of."""
        return (k,) if self.inputs is None else self.inputs[k]


def apply(
    version: str,
    tasks: Sequence[Callable[..., Any]],
    own: Sequence[tuple[Any, ...]],
    shared: Sequence[Mapping[str, Any]],
    *values: Any,
) -> Any:
    """One element of a column: this runs on a worker. version: that of the client."""
    check_version(version)
    return _run(tasks, own, shared, values)


def _run(
    tasks: Sequence[Callable[..., Any]],
    own: Sequence[tuple[Any, ...]],
    shared: Sequence[Mapping[str, Any]],
    values: Sequence[Any],
) -> Any:
    found = values
    for task, mine, common in zip(tasks, own, shared, strict=True):
        found = (task(*found, *mine, **common),)
    return found[0]


def elements_of_group(
    *given: Any, tasks: Sequence[Callable[..., Any]], arguments: Sequence[Mapping[str, Any]]
) -> list[Any]:
    """given: the values of a group, and for each element the places of its own among them, and its own arguments."""
    *values, elements = given
    return [_run(tasks, own, arguments, [values[place] for place in places]) for places, own in elements]


@dataclass(frozen=True, eq=False)
class Common:
    """What the tasks of all elements of a column have in common. It is sent once, not with each task."""

    version: str
    tasks: tuple[Callable[..., Any], ...]
    shared: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, column: Column) -> Common:
        return cls(package_version(), column.tasks, column.shared)


def of_element(common: Common, own: Sequence[tuple[Any, ...]], *values: Any) -> Any:
    """One element of a column: this runs on a worker."""
    return apply(common.version, common.tasks, own, common.shared, *values)


def check_version(version: str) -> None:
    """Raises unless this process runs the version of the client."""
    own = package_version()
    if own != version:
        raise ClusterError(f"a worker runs cutsvm {own} and the client {version}: install the same version on both")


def worker_error(error: Exception) -> Exception:
    """What a task has raised; if the worker could not even import cutsvm, or lacks a module of it, what to do."""
    missing = re.search(r"No module named '(cutsvm[\w.]*)'", str(error))
    if missing:
        return ClusterError(
            f"a worker cannot import {missing[1]}, the client runs cutsvm {package_version()}: install the same "
            "version on both"
        )
    return error


@dataclass(frozen=True)
class Window:
    """How many results the client fetches at a time: up to `most`, and about `bytes` if the others are as large."""

    most: int = 64
    bytes: int = 1 << 26

    def count(self, largest: int) -> int:
        """largest: bytes of the largest result of this round so far; 0: none came yet."""
        return max(1, min(self.most, self.bytes // largest)) if largest else 1


@dataclass(frozen=True)
class Resources:
    """What an engine has: workers, threads on all of them, and bytes of memory; 0: not known."""

    workers: int
    threads: int
    memory: int = 0


@dataclass
class Traffic:
    """What was done so far: rounds, those that read all rows, bytes of results that came to the client, and parts that
    were computed. doing: what the last round is for.
    """

    rounds: int = 0
    received: int = 0
    parts: int = 0
    reads: int = 0
    doing: str = ""


@dataclass(eq=False)
class Executor(ABC):
    """Where tasks run. As a context manager it is closed at the end, which leaves the user's own cluster running.

    progress: called with the numbers of parts done and of all parts of a round.
    deadline: when to give up waiting if there are no workers, by `perf_counter`.
    """

    name: ClassVar[str]

    progress: Callable[[int, int], None] | None = field(default=None, kw_only=True)
    traffic: Traffic = field(default_factory=Traffic, kw_only=True)
    deadline: float = field(default=math.inf, kw_only=True)

    def __enter__(self: Own) -> Own:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:  # noqa: B027  (most have nothing to close)
        """Gives back what was opened for this executor."""

    @property
    @abstractmethod
    def resources(self) -> Resources: ...

    def check(self) -> None:
        """Raises unless workers run the version of this process; here: those that take some tasks."""
        for _ in self._collect(self.put(range(2 * max(1, self.resources.threads)))):
            pass

    def put(self, values: Sequence[Any]) -> Column:
        """A column of small values of the client, such as the names of files."""
        return Column(values, len(values))

    @abstractmethod
    def hold(self, column: Column) -> Column:
        """Computes the elements, which stay with the workers until the column is no longer used."""

    def collect(self, column: Column, *, doing: str = "", reads: bool = False) -> Iterator[Any]:
        """One round: the elements in their order, as they come in; those that were yielded are forgotten here.

        doing: what it is for, in a word or two. reads: all rows are read for it.
        """
        self.traffic.rounds += 1
        self.traffic.reads += reads
        self.traffic.doing, done = doing, 0
        for element in self._elements(column):
            done += 1
            self.traffic.received += size_of(element)
            self.traffic.parts += 1
            if self.progress is not None:
                self.progress(done, len(column))
            yield element
            del element  # it takes memory while the next one is made

    def _elements(self, column: Column) -> Iterator[Any]:
        """The same as `_collect`, by a task for each group if there are groups."""
        if column.groups is None:
            return self._collect(column)
        return chain.from_iterable(self._collect(column.grouped()))

    @abstractmethod
    def _collect(self, column: Column) -> Iterator[Any]:
        """The elements in their order; each is fetched when it is asked for, or a few ahead."""


def fold(
    executor: Executor,
    column: Column,
    add: Callable[..., Any],
    width: int = 16,
    *,
    here: bool = True,
    doing: str = "",
    reads: bool = False,
) -> Any:
    """The sum of all elements in a fixed tree over their order: add(*elements) of up to `width` neighbours at a time.

    here: sums are made by the client; otherwise, as long as there are more than `width`, by workers: the same bits,
    more rounds, and fewer bytes. add(x) is x. doing, reads: as in `Executor.collect`.
    """
    while len(column) > width and not here:
        groups = [range(first, min(first + width, len(column))) for first in range(0, len(column), width)]
        column = executor.hold(column).regroup(groups).map(add)
    return _sum_up(executor.collect(column, doing=doing, reads=reads), add, width)


def _sum_up(elements: Iterator[Any], add: Callable[..., Any], width: int) -> Any:
    """The same tree, with at most `width` elements of each level in memory."""
    levels: list[list[Any]] = []
    for element in elements:
        carried = element
        for level in levels:
            level.append(carried)
            if len(level) < width:
                break
            carried = add(*level)
            level.clear()
        else:
            levels.append([carried])
    if not levels:
        raise ValueError("there are no parts")
    carried = None
    for level in levels:
        members = level if carried is None else [*level, carried]
        if members:
            carried = members[0] if len(members) == 1 else add(*members)
    return carried


def size_of(value: Any) -> int:
    """Bytes of the arrays and numbers of a result, about what travels."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, bytes | str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(size_of(key) + size_of(item) for key, item in value.items())
    if isinstance(value, tuple | list):
        return sum(map(size_of, value))
    if hasattr(value, "__dict__") and not isinstance(value, Enum | type):  # matrices and losses, too
        return sum(map(size_of, vars(value).values()))
    return 8
