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

from cutsvm.cli.messages import CommandError, is_out_of_memory, print_error

__all__ = ["main"]

# Bytes: Python and the libraries take 500 MB, with pandas and PyArrow, which scikit-learn loads if they are installed.
# With less some of them crash while they are loaded or unloaded, which cannot be caught.
MIN_ADDRESS_SPACE = 640 << 20


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; bad input never raises."""
    try:
        _replace_closed_streams()
        # A file name that is not valid text in the user's encoding must not stop a result from being shown.
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        code = _run(sys.argv[1:] if argv is None else list(argv))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _redirect_stdout_to_null()
        return 1
    except OSError as error:  # the commands catch errors of files, so this is the standard output
        _redirect_stdout_to_null()
        return print_error(f"cannot write the results: {error.strerror}", 1)


def _replace_closed_streams() -> None:
    """Replace standard streams that are closed (`>&-`) by the null device.

    Otherwise the next file that is opened would get the number of the stream, and what libraries print to it would go
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
        _check_address_space()
        from cutsvm.cli.parser import parse  # takes a second, and Ctrl-C may come in it
        from cutsvm.io.models.tasks import load

        options = parse(argv)
        options.words = argv  # as they were typed
        return int(load(options.run)(options))
    except SystemExit as end:  # argparse: 0 after --help and --version, 2 after bad usage
        return end.code if isinstance(end.code, int) else 2
    except CommandError as error:
        return print_error(str(error), error.code)
    except KeyboardInterrupt:
        return print_error("interrupted, nothing was written", 1)
    except MemoryError:
        return print_error("not enough memory", 1)
    except ImportError as error:  # a library of an incomplete installation, or one for which there is no memory
        return print_error("not enough memory" if is_out_of_memory(error) else f"cannot load a library: {error}", 1)


def _check_address_space() -> None:
    """Under `ulimit -v`: raise if the libraries do not fit, and have OpenBLAS start no threads.

    It starts one per core when it is loaded, and hangs or ends the process if it cannot.
    """
    try:
        import resource
    except ImportError:  # not on Windows
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return
    if limit < MIN_ADDRESS_SPACE:
        raise CommandError(
            f"not enough memory: the limit on the address space (ulimit -v) is {limit >> 20} MiB, expected at least "
            f"{MIN_ADDRESS_SPACE >> 20} MiB",
            1,
        )
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _redirect_stdout_to_null() -> None:
    """The reader has gone: keep the interpreter from raising when it flushes at its end."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
