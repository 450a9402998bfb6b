"""Callbacks that show the progress of a fit: a log line per iteration, or a bar of the decades of the gap.

A callback is any callable that takes a `Record` after every iteration; returning True stops the fit.
"""

from __future__ import annotations

import logging
import math
import sys
import time
from typing import Any, TextIO

from rich.progress import Progress, ProgressColumn, TaskID, TextColumn

from cutsvm._utils.text import printable
from cutsvm.display.progress import Bar, name_and_bar
from cutsvm.driver.records import Record

_logger = logging.getLogger("cutsvm")


class _CurrentStderr(logging.StreamHandler[TextIO]):
    """Writes to the current `sys.stderr`, which notebooks and tests replace."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr

    def format(self, record: logging.LogRecord) -> str:
        """The line with its control characters, which the name of a file or class may hold, escaped."""
        return printable(super().format(record))


class Log:
    """One line per iteration through the logger "cutsvm"; to standard error if logging is not configured.

    every: seconds between lines about a round of a fit on a cluster.
    """

    def __init__(self, level: int = logging.INFO, every: float = 5.0) -> None:
        self.level, self.every = level, every
        self._next_line = time.monotonic() + every

    def __call__(self, record: Record) -> None:
        ensure_log_handler(self.level)
        if record.note and record.iteration == 0:
            _logger.log(self.level, "%s", f"{_problem(record)} by {record.note}")
        _logger.log(self.level, "%s", describe(record))
        self._next_line = time.monotonic() + self.every

    def observe_round(self, number: int, doing: str, done: int, parts: int) -> None:
        """Of a fit on a cluster: how far a round is."""
        if time.monotonic() >= self._next_line:
            ensure_log_handler(self.level)
            _logger.log(self.level, "%s", describe_round(number, doing, done, parts))
            self._next_line = time.monotonic() + self.every


def ensure_log_handler(level: int = logging.INFO) -> None:
    """Show the log on standard error, unless the program has configured logging itself."""
    if _logger.level == logging.NOTSET:
        _logger.setLevel(level)
    if not _logger.hasHandlers():
        _logger.addHandler(_CurrentStderr())


def describe(record: Record) -> str:
    """One line that describes an iteration."""
    label = f"{_problem(record)}: " if record.label else ""
    return (
        f"{label}iteration {record.iteration:4d}  objective {record.primal:.6e}  bound {record.lower:.6e}  "
        f"gap {record.gap:.2e}  {record.planes} planes  {record.passes:g} passes  {record.seconds:.2f} s"
    )


def describe_round(number: int, doing: str, done: int, parts: int) -> str:
    """How far a round of a fit on a cluster is."""
    what = f" ({doing})" if doing else ""
    return f"round {number}{what}: {done:,} of {parts:,} parts"


def _problem(record: Record) -> str:
    """The name of a one-vs-rest problem, or "training"."""
    return f"class {printable(record.label)} against the rest" if record.label else "training"


def decades(first: float, gap: float, tol: float) -> tuple[float, float]:
    """(log10(first / gap), log10(first / tol)): decades done, decades in total."""
    # A lower bound far below zero gives gaps above 1, which are uninformative: the count starts at 1.
    end = max(tol, 1e-16)
    start = max(min(first, 1.0) if math.isfinite(first) else 1.0, end)
    total = math.log10(start / end)
    if math.isnan(gap):
        return 0.0, total
    return min(max(math.log10(start / max(gap, end)), 0.0), total), total


class ProgressBar(Bar):
    """A bar on standard error: the decades that the gap has fallen, out of those to `tol`.

    On a terminal it is redrawn in place; elsewhere a plain line is printed every `every` seconds, and one at the end.
    As a context manager it is one bar for all fits inside; otherwise every problem gets a new one.
    """

    def __init__(self, *, stream: TextIO | None = None, every: float = 5.0) -> None:
        super().__init__(stream=stream, every=every)
        self._first: dict[str, float] = {}

    def __call__(self, record: Record) -> None:
        first = self._first.setdefault(record.label, record.gap)
        self.show(describe(record), lambda display: self._draw(display, record, first))
        if record.gap <= record.tol and not self.managed:
            self.close()

    def observe_round(self, number: int, doing: str, done: int, parts: int) -> None:
        """Of a fit on a cluster: how far a round is, beside the bar, or as a plain line."""
        words = describe_round(number, doing, done, parts)

        def draw(display: Progress) -> None:
            display.update(self._task(display), work=words)

        self.show(words, draw)

    def columns(self) -> tuple[ProgressColumn, ...]:
        return (
            *name_and_bar(),
            TextColumn("{task.fields[gap]}"),
            TextColumn("{task.fields[seconds]:.1f} s", style="cyan"),
            TextColumn("{task.fields[work]}", style="dim"),
        )

    def _draw(self, display: Progress, record: Record, first: float) -> None:
        task = self._task(display)
        done, total = decades(first, record.gap, record.tol)
        # The bar of a problem solved at its first point is full.
        done, total = (done, total) if total > 0 else (1.0, 1.0)
        fields: dict[str, Any] = {"gap": f"gap {record.gap:.1e} -> {record.tol:.0e}", "seconds": record.seconds}
        fields["work"] = f"{record.passes:g} passes  {record.planes} planes"
        display.update(task, completed=done, total=total, description=_problem(record), **fields)

    @staticmethod
    def _task(display: Progress) -> TaskID:
        """The one bar of the display."""
        if not display.task_ids:
            display.add_task("training", total=1.0, gap="", seconds=0.0, work="")
        return display.task_ids[0]
