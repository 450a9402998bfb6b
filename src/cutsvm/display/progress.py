"""Progress bars on standard error: redrawn in place on a terminal, a plain line at intervals elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn

Self = TypeVar("Self", bound="Bar")


class Bar:
    """Base class of the bars. Without a terminal it prints a line every `every` seconds, and one at the end."""

    def __init__(self, *, stream: TextIO | None = None, every: float = 5.0) -> None:
        self.every, self.managed = every, False
        self._stream = stream
        self._line: str | None = None  # the last one, if it is not printed yet
        self._next_line = time.monotonic() + every
        self._display: Progress | None = None
        self._console: Console | None = None

    def __getstate__(self) -> dict[str, float]:
        """Only the interval: a copy, as cross-validation makes it, starts a new bar."""
        return {"every": self.every}

    def __setstate__(self, state: dict[str, float]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def __enter__(self: Self) -> Self:
        self.managed = True
        return self

    def __exit__(self, *error: object) -> None:
        self.managed = False
        self.close()

    def columns(self) -> tuple[ProgressColumn, ...]:
        """The columns of the bar on a terminal."""
        raise NotImplementedError

    def show(self, line: str, draw: Callable[[Progress], None]) -> None:
        """Show the current state: `draw` it on a terminal, print `line` elsewhere."""
        if self._console is None:
            self._console = Console(file=self._stream or sys.stderr)
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            starting = self._display is None
            if self._display is None:
                self._display = Progress(*self.columns(), console=self._console, refresh_per_second=10)
            draw(self._display)
            if starting:  # after the first drawing, so that no empty bar appears
                self._display.start()
            return
        self._line = line
        if time.monotonic() >= self._next_line:
            self._print_line(self._console)

    def close(self) -> None:
        """End the bar, its last state left on the screen."""
        if self._display is not None:
            self._display.stop()
        elif self._console is not None:
            self._print_line(self._console)
        self._display = self._console = self._line = None

    def _print_line(self, console: Console) -> None:
        if self._line is not None:
            console.file.write(self._line + "\n")
            console.file.flush()
        self._line, self._next_line = None, time.monotonic() + self.every


class _ShareBar(Bar):
    """The share of some work that is done, and the time left."""

    def __init__(self, name: str, *, stream: TextIO | None = None, every: float = 5.0) -> None:
        super().__init__(stream=stream, every=every)
        self._name, self._began = name, time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def columns(self) -> tuple[ProgressColumn, ...]:
        return (*name_and_bar(), TextColumn("{task.fields[words]}"), TextColumn("{task.fields[left]}", style="cyan"))

    def show_share(self, done: float | None, line: str, words: str) -> None:
        """Show the share, None if it is unknown: with `words` on a terminal, as `line` elsewhere."""
        left = _left(self.seconds, done)

        def draw(display: Progress) -> None:
            if not display.task_ids:
                display.add_task(self._name, total=None if done is None else 1.0, words=words, left=left)
            display.update(display.task_ids[0], completed=done or 0.0, words=words, left=left)

        self.show(f"{self._name}: {line}{left}", draw)


class CopyBar(_ShareBar):
    """For `progress` of `cutsvm.convert`."""

    def __init__(self) -> None:
        super().__init__("converting")

    def __call__(self, rows: int, written: int, done: float | None) -> None:
        words = f"{rows:,} rows  {written / 1e6:,.0f} MB written"
        share = "" if done is None else f"{100 * done:.0f} %  "
        self.show_share(done, f"{share}{words}  {self.seconds:.0f} s", words)


class CountBar(_ShareBar):
    """For a number of items."""

    def __call__(self, done: float, of: int) -> None:
        words = f"{100 * done / of:.0f} %  {self.seconds:.0f} s"
        self.show_share(done / of, words, words)


class RoundBar(_ShareBar):
    """For the rounds before a fit on a cluster: the parts that are done. Without a terminal nothing is left to say."""

    def __init__(self) -> None:
        super().__init__("reading")

    def __call__(self, number: int, doing: str, done: int, parts: int) -> None:
        words = f"round {number} ({doing}): {done:,} of {parts:,} parts"
        self.show_share(done / parts, words, words)

    def close(self) -> None:
        self._line = None
        super().close()


def name_and_bar() -> tuple[ProgressColumn, ...]:
    """The first columns of all bars."""
    name = TextColumn("{task.description}", style="bold", markup=False)
    return name, BarColumn(bar_width=28, complete_style="cyan", finished_style="green")


def _left(seconds: float, done: float | None) -> str:
    """The estimated time left, empty within the first second."""
    if not done or seconds < 1.0 or done >= 1.0:
        return ""
    rest = seconds * (1.0 - done) / done
    if rest < 90.0:
        return f", about {rest:.0f} s left"
    return f", about {rest / 60.0:.0f} min left" if rest < 5400.0 else f", about {rest / 3600.0:.1f} h left"
