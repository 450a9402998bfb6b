"""What the command line says, and where: results to standard output, the rest to standard error."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import math
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from cutsvm._utils.text import printable
from cutsvm.display.summary import within

__all__ = [
    "CommandError",
    "Messages",
    "as_command_error",
    "certificate",
    "collected_warnings",
    "complain",
    "no_room_for_library",
    "one_line",
    "print_json",
    "result",
    "some",
]

_SHOWN = 8


class CommandError(Exception):
    """Ends the command with one line on standard error. Code 1: failed, 2: bad usage or bad input."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code


class Messages:
    """Remarks on standard error, none at all when quiet."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet

    def note(self, text: str) -> None:
        if not self.quiet:
            _to_stderr(text)

    def warn(self, text: str) -> None:
        self.note(f"cutsvm: warning: {one_line(text)}")

    @contextlib.contextmanager
    def repeating(self, logger: str) -> Iterator[None]:
        """What a part of the package logs, as remarks."""
        source, handler = logging.getLogger(logger), _Remark(self)
        before = source.level
        source.addHandler(handler)
        source.setLevel(logging.INFO)
        try:
            yield
        finally:
            source.removeHandler(handler)
            source.setLevel(before)


class _Remark(logging.Handler):
    """Log lines to standard error, as remarks."""

    def __init__(self, say: Messages) -> None:
        super().__init__()
        self.say = say

    def emit(self, record: logging.LogRecord) -> None:
        self.say.note(one_line(record.getMessage()))


def complain(text: str, code: int) -> int:
    """Say what went wrong, also when quiet; returns the exit code."""
    _to_stderr(f"cutsvm: {one_line(text)}")
    return code


def _to_stderr(text: str) -> None:
    # Whoever closed standard error does not want to hear it, and the exit code still tells.
    with contextlib.suppress(OSError, ValueError):
        print(printable(text), file=sys.stderr, flush=True)


def result(text: str) -> None:
    """A result, to standard output; control characters that a file or its name brought along are spelt out."""
    print("\n".join(map(printable, text.split("\n"))))


def print_json(fields: Mapping[str, Any]) -> None:
    """One JSON object on one line of standard output; what is not finite becomes null."""
    result(json.dumps({key: _finite(value) for key, value in fields.items()}, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return _finite(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def one_line(text: str) -> str:
    """Text without line breaks and without control characters."""
    return printable(" ".join(text.split()))


def some(values: list[Any]) -> str:
    """The first few values; text in quotes, so that a label with a blank or a control sign is seen as one."""
    shown = ", ".join(f"{v:.10g}" if isinstance(v, float) else repr(v) for v in values[:_SHOWN])
    return shown if len(values) <= _SHOWN else f"{shown}, ... ({len(values):,} in all)"


@contextlib.contextmanager
def collected_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """The warnings of a block, to be told in our own way."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


@contextlib.contextmanager
def as_command_error(name: str = "") -> Iterator[None]:
    """Turn what reading a file or checking data may raise into one line and exit code 2."""
    try:
        yield
    except NotImplementedError as error:
        raise CommandError(str(error) or "not available yet") from error
    # DataError, ModelFileError and scikit-learn's are ValueErrors; ImportError: no decompressor.
    except (ValueError, FloatingPointError, ImportError) as error:
        if no_room_for_library(error):
            raise MemoryError from error
        raise CommandError(str(error)) from error
    except OSError as error:
        if error.errno == errno.ENOMEM:
            raise MemoryError from error
        raise CommandError(f"{error.filename or name}: {error.strerror or error}") from error


def no_room_for_library(error: Exception) -> bool:
    """Whether a library could not be loaded for lack of memory, in the words of the system's loader."""
    words = ("failed to map segment", "cannot allocate memory", "cannot create shared object descriptor")
    return isinstance(error, ImportError) and any(word in str(error).lower() for word in words)


def certificate(gap: float, tol: float | None) -> str:
    """The gap in words, and as a number."""
    shown = f"gap {gap:.1e}" + ("" if tol is None else f", tol {tol:.0e}")
    return f"{within(gap) or 'nothing is proven yet about the best possible objective'} ({shown})"
