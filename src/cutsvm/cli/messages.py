"""Output of the command line: results to standard output, everything else to standard error."""

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

from cutsvm._utils.errors import ClusterError
from cutsvm._utils.text import printable
from cutsvm.display.summary import describe_gap

_SHOWN = 8
_LOGGERS = ("cutsvm.checkpoint", "cutsvm.cluster", "cutsvm.kernel", "cutsvm.tables", "cutsvm.warm_start")


class CommandError(Exception):
    """Ends the command with one line on standard error. Code 1: failed, 2: bad usage or bad input."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code


class Messages:
    """Notes on standard error, none when quiet."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet

    def note(self, text: str) -> None:
        if not self.quiet:
            _to_stderr(text)

    def warn(self, text: str) -> None:
        self.note(f"cutsvm: warning: {one_line(text)}")

    @contextlib.contextmanager
    def collecting_warnings(self, ignored: tuple[type[Warning], ...] = ()) -> Iterator[None]:
        """Show the warnings of a block after it, each once."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for text in dict.fromkeys(str(found.message) for found in caught if not issubclass(found.category, ignored)):
            self.warn(text)

    @contextlib.contextmanager
    def forwarded_logs(self) -> Iterator[None]:
        """Print what checkpoints, kernel machines and tables log as notes."""
        handler = _NoteHandler(self)
        before = {logger: logger.level for logger in map(logging.getLogger, _LOGGERS)}
        for logger in before:
            logger.addHandler(handler)
            logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            for logger, level in before.items():
                logger.removeHandler(handler)
                logger.setLevel(level)


class _NoteHandler(logging.Handler):
    """Print log records as notes."""

    def __init__(self, messages: Messages) -> None:
        super().__init__()
        self.messages = messages

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.note(one_line(record.getMessage()))


def print_error(text: str, code: int) -> int:
    """Print an error message, also when quiet, and return the exit code."""
    _to_stderr(f"cutsvm: {one_line(text)}")
    return code


def _to_stderr(text: str) -> None:
    # Standard error may be closed; the exit code still tells.
    with contextlib.suppress(OSError, ValueError):
        print(printable(text), file=sys.stderr, flush=True)


def print_result(text: str) -> None:
    """Print a result to standard output, its control characters escaped."""
    print("\n".join(map(printable, text.split("\n"))))


def print_json(fields: Mapping[str, Any]) -> None:
    """Print one JSON object on one line of standard output; numbers that are not finite become null."""
    print_result(json.dumps({key: _finite(value) for key, value in fields.items()}, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return _finite(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def one_line(text: str) -> str:
    """Text with its line breaks replaced by blanks and its control characters escaped."""
    return printable(" ".join(text.split()))


def flag(name: str) -> str:
    """The option of this name in the namespace, as it is typed."""
    typed = {"bias": "-B", "weights": "-wLABEL", "tol": "-e", "cost": "-c", "tube": "-p", "type": "-s"}
    return typed.get(name, f"--{name.replace('_', '-')}")


def first_values(values: list[Any]) -> str:
    """The first few values, text in quotes."""
    shown = ", ".join(f"{v:.10g}" if isinstance(v, float) else repr(v) for v in values[:_SHOWN])
    return shown if len(values) <= _SHOWN else f"{shown}, ... ({len(values):,} in all)"


@contextlib.contextmanager
def as_command_error(name: str = "") -> Iterator[None]:
    """Turn errors of reading a file or checking data into a `CommandError` with exit code 2; name: of the file."""
    try:
        yield
    except NotImplementedError as error:
        raise CommandError(str(error) or "not available yet") from error
    # DataError, ModelFileError and scikit-learn's are ValueErrors; ImportError: no decompressor.
    except (ValueError, FloatingPointError, ImportError) as error:
        if is_out_of_memory(error):
            raise MemoryError from error
        raise CommandError(str(error)) from error
    except ClusterError as error:
        raise CommandError(str(error), 1) from error
    except OSError as error:
        if error.errno == errno.ENOMEM:
            raise MemoryError from error
        raise CommandError(f"{error.filename or name}: {error.strerror or error}") from error


def is_out_of_memory(error: Exception) -> bool:
    """Whether a library could not be loaded for lack of memory, by the message of the system's loader."""
    causes = ("failed to map segment", "cannot allocate memory", "cannot create shared object descriptor")
    return isinstance(error, ImportError) and any(cause in str(error).lower() for cause in causes)


def certificate(gap: float, tol: float | None) -> str:
    """The gap in words, and as a number."""
    shown = f"gap {gap:.1e}" + ("" if tol is None else f", tol {tol:.0e}")
    return f"{describe_gap(gap) or 'nothing is proven yet about the best possible objective'} ({shown})"
