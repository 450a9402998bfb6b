"""Where the time goes: seconds per phase, gathered around the solvers and not inside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from time import perf_counter
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

COUNTS = ("passes", "visits", "rows_read", "rows_written")
PHASES = ("scores", "planes", "line_search", "qp", "descent", "sift", "centre", "hessian")


class Clock:
    """Seconds per phase, and how often something happened, since the clock was made.

    before: what a clock showed from which this one goes on: `seconds`, `seconds_PHASE` and counters by their names.
    """

    def __init__(self, before: Mapping[str, float] | None = None) -> None:
        before = before or {}
        self.began = perf_counter() - before.get("seconds", 0.0)
        self.spent: dict[str, float] = {phase: before.get(f"seconds_{phase}", 0.0) for phase in PHASES}
        self.counts: Counter[str] = Counter({name: int(before.get(name, 0)) for name in COUNTS})
        self.inner = 0.0  # seconds of timed calls within the one that is running

    @property
    def seconds(self) -> float:
        return perf_counter() - self.began


_current: ContextVar[Clock | None] = ContextVar("clock", default=None)


@contextmanager
def clock(before: Mapping[str, float] | None = None) -> Iterator[Clock]:
    """A clock that `timed` and `count` write to within this context."""
    fresh = Clock(before)
    token = _current.set(fresh)
    try:
        yield fresh
    finally:
        _current.reset(token)


class timed:  # noqa: N801  # used like a function
    """`with timed(phase):` the seconds of the block go to `phase` of the clock that is running, if one is.

    `@timed(phase)` does so for a function. A timed block within another counts for its own phase only.
    """

    __slots__ = ("before", "began", "phase", "running")

    def __init__(self, phase: str) -> None:
        self.phase = phase

    def __enter__(self) -> None:
        self.running = running = _current.get()
        if running is not None:
            self.before, running.inner = running.inner, 0.0
            self.began = perf_counter()

    def __exit__(self, *error: object) -> None:
        running = self.running
        if running is not None:
            seconds = perf_counter() - self.began
            running.spent[self.phase] += seconds - running.inner
            running.inner = self.before + seconds

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            with timed(self.phase):
                return function(*args, **kwargs)

        return call


def count(what: str, by: int = 1) -> None:
    """Adds to a counter of the clock that is running, if one is."""
    running = _current.get()
    if running is not None:
        running.counts[what] += by
