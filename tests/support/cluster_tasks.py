"""Tasks that workers import: small pure functions."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cutsvm._utils.errors import DataError


def scaled(value: float, own: float, *, factor: float) -> float:
    return value * factor + own


def plus(*values: Any) -> Any:
    """Sums of floats, which depend on the order."""
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def joined(*values: Any) -> str:
    """Shows which values came in which order."""
    return "(" + " ".join(map(str, values)) + ")"


def refused(value: int, *, bad: int) -> int:
    if value == bad:
        raise DataError(f"part.csv:{value}: no number")
    return value


def counted(value: int, *, folder: str, seconds: float = 0.0) -> int:
    """Leaves a file in the folder for each time it runs."""
    Path(folder, f"{value}-{os.getpid()}-{time.monotonic_ns()}").touch()
    time.sleep(seconds)
    return value


def runs(folder: Path, value: int) -> int:
    """How often `counted` ran for this value."""
    return len(list(folder.glob(f"{value}-*")))


def filled(_: int, *, size: int) -> bytes:
    return b"\1" * size  # zeros would take no memory before they are written


def length(values: Sequence[Any]) -> int:
    return len(values)


def dies_once(value: int, *, bad: int, folder: str) -> int:
    """The first process that gets the value `bad` dies."""
    if value == bad:
        try:
            Path(folder, "died").touch(exist_ok=False)
        except FileExistsError:
            return value
        os.kill(os.getpid(), signal.SIGKILL)
    return value


def dies(value: int, *, bad: int) -> int:
    """Every process that gets the value `bad` dies."""
    if value == bad:
        os.kill(os.getpid(), signal.SIGKILL)
    return value


def waits(value: int, seconds: float, *, folder: str | None = None) -> int:
    """Leaves a file in the folder at its end."""
    time.sleep(seconds)
    if folder is not None:
        Path(folder, str(value)).touch()
    return value


def logged(value: int, *, folder: str, word: str) -> int:
    """Leaves a file whose name begins with the time."""
    time.sleep(0.01)
    Path(folder, f"{time.monotonic_ns():020}-{word}-{value}").touch()
    return value


def size_of_shared(_: int, *, shared: bytes) -> int:
    return len(shared)
