"""`cutsvm check`: what is in a data file, and what is wrong with it."""

from __future__ import annotations

import argparse

from cutsvm.cli.data import check_source
from cutsvm.cli.messages import as_command_error, print_json, result

__all__ = ["check"]


def check(options: argparse.Namespace) -> int:
    """Print the report; exit code 2 if lines cannot be read, or none is there."""
    from cutsvm.io.inspect import inspect_file

    check_source(options.data)
    with as_command_error(options.data):
        report = inspect_file(options.data)
    if options.json:
        print_json(report.to_dict())
    else:
        result(str(report))
    return 2 if report.n_bad_lines or not report.rows else 0
