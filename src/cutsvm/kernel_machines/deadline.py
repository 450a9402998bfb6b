"""Time limit and progress of the long loops of kernel machines: the kernel matrix, the steps, the certificate."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")
LOGGER = logging.getLogger("cutsvm.kernel")


class OutOfTimeError(Exception):
    """A loop would take longer than there is time for."""


@dataclass(frozen=True)
class Deadline:
    """The seconds that a fit may take from `began` on; verbose: log the progress of long loops."""

    max_time: float | None = None
    verbose: bool = False
    log_every: float = 5.0  # seconds between lines of progress
    began: float = field(default_factory=perf_counter)

    @property
    def left(self) -> float:
        """Seconds that are left, 0 if there are none; infinite without a limit."""
        return float("inf") if self.max_time is None else max(0.0, self.max_time - self.spent)

    @property
    def spent(self) -> float:
        return perf_counter() - self.began

    def within(self, seconds: float) -> Deadline:
        """The same with at most `seconds` left."""
        return replace(self, max_time=self.spent + min(self.left, seconds))

    def at_least(self, seconds: float) -> Deadline:
        """The same with at least `seconds` left."""
        return self if self.left >= seconds else replace(self, max_time=self.spent + seconds)

    def track(self, what: str, steps: Iterable[T], share: float = 1.0) -> Iterator[T]:
        """Iterates over steps of equal length.

        Raises OutOfTimeError as soon as the steps so far show that all of them take clearly more than `share` of the
        seconds that were left at the beginning.
        """
        steps = steps if isinstance(steps, Sequence) else list(steps)
        began, available, shown = perf_counter(), share * self.left, perf_counter()
        for done, step in enumerate(steps):
            now = perf_counter()
            spent = now - began
            expected = spent * len(steps) / max(1, done)
            if spent > available or (spent > 0.1 * available and expected > 1.25 * available):
                raise OutOfTimeError(what)
            if self.verbose and now - shown >= self.log_every:
                shown = now
                log(f"{what}: {100 * done // len(steps)} %, {now - began:.0f} s")
            yield step


def log(text: str) -> None:
    """One line through the logger "cutsvm.kernel"."""
    LOGGER.info("%s", text)
