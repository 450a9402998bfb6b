"""Signals to the process of the tests."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


def default_sigint() -> None:
    """For `preexec_fn` of a child process: SIGINT interrupts it, wherever the tests run."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def sigint_interrupts() -> Iterator[None]:
    """Within it, SIGINT raises KeyboardInterrupt: a shell starts background processes with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
