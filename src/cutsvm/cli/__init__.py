"""The command `cutsvm`: train, path, predict, check, info, demo.

Results go to standard output, everything else to standard error. Exit codes: 0 fine, 1 failed,
2 bad usage or bad input.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Sequence

from cutsvm.cli.messages import CommandError, complain

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; bad input never ends in a traceback."""
    try:
        _replace_closed_streams()
        # A file name that is not valid text in the user's encoding must not stop a result from being shown.
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        code = _run(sys.argv[1:] if argv is None else list(argv))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _abandon_stdout()
        return 1
    except OSError as error:  # files are dealt with in the commands, so this is the standard output
        _abandon_stdout()
        return complain(f"cannot write the results: {error.strerror}", 1)


def _replace_closed_streams() -> None:
    """Whoever closed a standard stream (`>&-`) gets the null device in its place.

    Python has None for it, and the next file that is opened would get its number: what other libraries print would go
    into the model.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))


def _run(argv: list[str]) -> int:
    try:
        from cutsvm.cli.parser import parse  # takes a second, and Ctrl-C may come in it

        options = parse(argv)
        options.words = argv  # as they were typed
        code: int = options.run(options)
        return code
    except SystemExit as end:  # argparse: 0 after --help and --version, 2 after bad usage
        return end.code if isinstance(end.code, int) else 2
    except CommandError as error:
        return complain(str(error), error.code)
    except KeyboardInterrupt:
        return complain("interrupted, nothing was written", 1)
    except MemoryError:
        return complain("not enough memory", 1)


def _abandon_stdout() -> None:
    """Nobody reads on: keep the interpreter from complaining when it flushes at its end."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
