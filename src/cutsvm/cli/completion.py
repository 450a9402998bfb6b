"""`cutsvm completion SHELL`: a script with which a shell completes commands, options and files, made by shtab."""

from __future__ import annotations

import argparse
import importlib.util
import re

from cutsvm.cli.messages import CommandError

# How the help texts call options and arguments that are files.
_FILES = re.compile(r"(DATA|FILE|MODEL|OUT|STORE)\b")


def completion(options: argparse.Namespace) -> int:
    """Print the script."""
    if importlib.util.find_spec("shtab") is None:
        raise CommandError("completion needs shtab: pip install 'cutsvm[completion]'", 1)
    import shtab

    from cutsvm.cli.parser import build_parser

    parser, commands = build_parser()
    for command in commands.values():
        for action in command._actions:  # argparse has no public list of them
            if _FILES.match(str(action.metavar)):
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, options.shell))
    return 0
