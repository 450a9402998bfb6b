"""Paths over C of several folds, and to all rows, that run side by side and share what they read of the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from cutsvm._utils import threads
from cutsvm.driver.records import Status
from cutsvm.estimators import path
from cutsvm.estimators._cross_validation import Limits
from cutsvm.estimators._ingest import TrainingData
from cutsvm.solvers.protocol import Solver

if TYPE_CHECKING:
    from cutsvm.estimators.path_cv import LinearChooser

__all__ = ["ConcurrentFits"]


class Reader(Protocol):
    """What one of the fits reads with; a context manager for its thread."""

    def __enter__(self) -> Any: ...

    def __exit__(self, *error: object) -> None: ...

    def close(self) -> None:
        """The others do not wait for it any more."""


Own = TypeVar("Own", bound=Reader)


@dataclass(eq=False)
class ConcurrentFits:
    """One fit for each of `folds` folds and, if the chooser refits, one to all rows; each is a path over Cs.

    at_once: how many run at a time. threads: of each.
    """

    chooser: LinearChooser
    solver: Solver
    Cs: list[float]
    folds: int
    at_once: int
    threads: int
    began: float = field(default_factory=perf_counter)
    stop: Event = field(default_factory=Event)

    @property
    def many(self) -> int:
        return self.folds + int(self.chooser.refit)

    def run(self, reader: Callable[[], Own], data_of: Callable[[int, Own], TrainingData]) -> list[list[Any]]:
        """The models of all fits. data_of: the data of a fold, or of all rows, that a reader reads."""
        paths: list[list[Any]] = []
        for first in range(0, self.many, self.at_once):
            some = range(first, min(self.many, first + self.at_once))
            readers = [reader() for _ in some]  # all of them before any is used
            paths += self._run([partial(self._fit, place, data_of) for place in some], readers)
        return paths

    def _fit(self, place: int, data_of: Callable[[int, Own], TrainingData], reader: Own) -> list[Any]:
        with reader:
            left, rounds = self.chooser.max_time, -(-(self.many - place // self.at_once * self.at_once) // self.at_once)
            seconds = None if left is None else max((left - (perf_counter() - self.began)) / rounds, 1e-9)
            limits = Limits(self.threads, seconds, lambda record: self.stop.is_set())
            template: Any = self.chooser._template(self.chooser._kind, limits)
            models = path.copies(template, self.Cs)
            try:
                template._fit_path(models, self.solver, data_of(place, reader))
            except ValueError as error:
                raise ValueError(f"fold {place + 1}: {error}" if place < self.folds else str(error)) from None
            if any(model.status_ in (Status.INTERRUPTED, Status.CALLBACK) for model in models):
                self.stop.set()
            return models

    def _run(self, fits: Sequence[Callable[[Own], list[Any]]], readers: Sequence[Own]) -> list[list[Any]]:
        """The models of all fits, each in a thread; after Ctrl-C, or an error of one, all end where they are."""
        running: list[Future[list[Any]]] = []
        with threads.ThreadPool(len(fits)) as pool:
            try:
                for fit, reader in zip(fits, readers, strict=True):
                    running.append(pool.submit(fit, reader))
                wait(running, return_when=FIRST_EXCEPTION)
                if any(one.done() and one.exception() is not None for one in running):
                    self.stop.set()
                wait(running)
            except BaseException as error:  # Ctrl-C comes to the main thread only: the event stops the others
                self.stop.set()
                for reader in readers[len(running) :]:  # of threads that did not start: nobody may wait for them
                    reader.close()
                if not isinstance(error, KeyboardInterrupt) or len(running) < len(fits):
                    raise
            return [one.result() for one in running]
