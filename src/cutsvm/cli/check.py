"""`cutsvm check`: the contents of a data file, and its bad lines."""

from __future__ import annotations

import argparse

from cutsvm.cli.data import check_input
from cutsvm.cli.messages import as_command_error, print_json, print_result
from cutsvm.io.inspect import inspect_file


def check(options: argparse.Namespace) -> int:
    """Print the report; exit code 2 if there are bad lines or no rows."""
    check_input(options.data)
    with as_command_error(options.data):
        report = inspect_file(options.data)
    if options.json:
        print_json(report.to_dict())
    else:
        print_result(str(report))
    return 2 if report.n_bad_lines or not report.rows else 0
