"""What a fit shows while it runs: a log line per iteration, or a bar that counts decades of the gap.

A callback is any callable that takes a `Record` after every iteration; returning True stops the fit.
"""

from __future__ import annotations

import logging
import math
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

if TYPE_CHECKING:
    from cutsvm.run import Record

__all__ = ["Log", "ProgressBar"]

_logger = logging.getLogger("cutsvm")


class _CurrentStderr(logging.StreamHandler[TextIO]):
    """Writes to the standard error of the moment, which notebooks and tests exchange."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr


class Log:
    """One line per iteration through the logger "cutsvm"; to standard error if logging was not set up."""

    def __init__(self, level: int = logging.INFO) -> None:
        self.level = level

    def __call__(self, record: Record) -> None:
        self._make_audible()
        if record.note and record.iteration == 0:
            _logger.log(self.level, "%s", f"{_problem(record)} by {record.note}")
        _logger.log(self.level, "%s", describe(record))

    def _make_audible(self) -> None:
        """Who asks for a log wants to see it; a program that set up logging itself is left alone."""
        if _logger.level == logging.NOTSET:
            _logger.setLevel(self.level)
        if not _logger.hasHandlers():
            _logger.addHandler(_CurrentStderr())


def describe(record: Record) -> str:
    """An iteration in one line."""
    label = f"{_problem(record)}: " if record.label else ""
    return (
        f"{label}iteration {record.iteration:4d}  objective {record.primal:.6e}  bound {record.lower:.6e}  "
        f"gap {record.gap:.2e}  {record.planes} planes  {record.passes:g} passes  {record.seconds:.2f} s"
    )


def _problem(record: Record) -> str:
    """Which of the one-vs-rest problems this is."""
    return f"class {record.label} against the rest" if record.label else "training"


def decades(first: float, gap: float, tol: float) -> tuple[float, float]:
    """(decades of the gap behind us, decades from the first gap to tol)"""
    # A lower bound far below zero makes gaps above 1; they say nothing yet, so the count starts at 1.
    end = max(tol, 1e-16)
    start = max(min(first, 1.0) if math.isfinite(first) else 1.0, end)
    total = math.log10(start / end)
    if math.isnan(gap):
        return 0.0, total
    return min(max(math.log10(start / max(gap, end)), 0.0), total), total


class ProgressBar:
    """A bar on standard error: how many decades the gap has fallen on its way to `tol`.

    On a terminal it is redrawn in place; elsewhere a plain line appears every `every` seconds, and one at
    the end. As a context manager it is one bar for all that happens inside; given to an estimator as it is,
    it starts anew for every problem.
    """

    def __init__(self, *, stream: TextIO | None = None, every: float = 5.0) -> None:
        self.every = every
        self._stream = stream
        self._first: dict[str, float] = {}
        self._last: Record | None = None
        self._printed: Record | None = None
        self._next_line = time.monotonic() + every
        self._display: Progress | None = None
        self._console: Console | None = None
        self._managed = False

    def __getstate__(self) -> dict[str, float]:
        """A copy, as cross-validation makes them, starts afresh: screens cannot be copied."""
        return {"every": self.every}

    def __setstate__(self, state: dict[str, float]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def __enter__(self) -> ProgressBar:
        self._managed = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._managed = False
        self.close()

    def __call__(self, record: Record) -> None:
        self._last = record
        first = self._first.setdefault(record.label, record.gap)
        if self._console is None:
            self._console = Console(file=self._stream or sys.stderr)
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            self._draw(self._console, record, first)
        elif time.monotonic() >= self._next_line:
            self._print_line(self._console, record)
        if record.gap <= record.tol and not self._managed:
            self.close()

    def close(self) -> None:
        """Leave the last state on the screen."""
        if self._display is not None:
            self._display.stop()
        elif self._console is not None and self._last is not None and self._last is not self._printed:
            self._print_line(self._console, self._last)
        self._display = self._console = self._last = None

    def _draw(self, console: Console, record: Record, first: float) -> None:
        starting = self._display is None
        if self._display is None:
            self._display = _display(console)
            self._display.add_task("", total=1.0, gap=math.nan, tol=record.tol, seconds=0.0, work="")
        done, total = decades(first, record.gap, record.tol)
        self._display.update(
            self._display.task_ids[0],
            # A problem solved at the first point has no decade to go: its bar is full.
            completed=done if total > 0 else 1.0,
            total=total if total > 0 else 1.0,
            description=_problem(record),
            gap=record.gap,
            tol=record.tol,
            seconds=record.seconds,
            work=f"{record.passes:g} passes  {record.planes} planes",
        )
        if starting:  # not before there is something to show
            self._display.start()

    def _print_line(self, console: Console, record: Record) -> None:
        self._printed = record
        self._next_line = time.monotonic() + self.every
        console.file.write(describe(record) + "\n")
        console.file.flush()


def _display(console: Console) -> Progress:
    """The bar with the gap, the time and the work beside it."""
    columns: tuple[Any, ...] = (
        TextColumn("{task.description}", style="bold", markup=False),
        BarColumn(bar_width=28, complete_style="cyan", finished_style="green"),
        TextColumn("gap {task.fields[gap]:.1e} -> {task.fields[tol]:.0e}"),
        TextColumn("{task.fields[seconds]:.1f} s", style="cyan"),
        TextColumn("{task.fields[work]}", style="dim"),
    )
    return Progress(*columns, console=console, refresh_per_second=10)
