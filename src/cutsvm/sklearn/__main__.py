"""`python -m cutsvm.sklearn script.py [args]` and `python -m cutsvm.sklearn -m module [args]`: patch, then run."""

from __future__ import annotations

import os
import runpy
import sys

from cutsvm.sklearn.patching import patch

USAGE = """usage: python -m cutsvm.sklearn script.py [argument ...]
       python -m cutsvm.sklearn -m module [argument ...]

Runs a script or a module with LinearSVC, LinearSVR and SVC of cutsvm.sklearn in place of scikit-learn's."""


def main(arguments: list[str]) -> int:
    """Runs what the arguments name, as `python` itself would."""
    if arguments[:1] in (["-h"], ["--help"]):
        try:
            print(USAGE, flush=True)
        except BrokenPipeError:  # the reader has gone; the interpreter flushes again at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    as_module = arguments[:1] == ["-m"]
    rest = arguments[1:] if as_module else arguments
    if not rest or (rest[0].startswith("-") and not as_module):
        print(USAGE, file=sys.stderr)
        return 2
    if not as_module and not os.path.exists(rest[0]):
        print(f"{rest[0]}: there is no such file", file=sys.stderr)
        return 2
    patch()
    sys.argv = rest
    if as_module:
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(rest[0]))
        runpy.run_path(rest[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
