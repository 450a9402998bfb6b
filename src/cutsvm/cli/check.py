"""`cutsvm check`: the contents of data, and the bad lines of svmlight files."""

from __future__ import annotations

import argparse

from cutsvm.cli.inputs import check_inputs, column_options
from cutsvm.cli.messages import as_command_error, print_json, print_result
from cutsvm.io.columns import ColumnSpec
from cutsvm.io.formats.svmlight_source import SvmlightSource
from cutsvm.io.inspect import FileReport, inspect_file
from cutsvm.io.inspect_source import SourceReport, inspect_source
from cutsvm.io.open import as_source


def check(options: argparse.Namespace) -> int:
    """Print the report; exit code 2 if there are bad lines or no rows."""
    check_inputs([options.data, *options.also])
    with as_command_error(options.data):
        report = _report(options)
    if options.json:
        print_json(report.to_dict())
    else:
        print_result(str(report))
    return 2 if report.n_bad_lines or not report.rows else 0


def _report(options: argparse.Namespace) -> FileReport | SourceReport:
    own = column_options(options)
    format, base = own.pop("format"), own.pop("zero_based")
    inputs = [options.data, *options.also]
    source = as_source(inputs[0] if len(inputs) == 1 else inputs, ColumnSpec(**own), format, base)
    if isinstance(source, SvmlightSource):
        return inspect_file(source.files, zero_based=base)
    return inspect_source(source)
