"""The options of the commands that change a store."""

from __future__ import annotations

import argparse
from functools import partial

from cutsvm.cli import values


def add_append(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("store", metavar="STORE", help="the store")
    add("data", metavar="DATA", nargs="+", help="the new rows: files as for convert, one after the other")
    formats = ("svmlight", "npy", "npz", "csv", "parquet", "arrow", "store")
    add("--format", choices=formats, help="of DATA (default: by its name)")
    add("--label", metavar="COLUMN", help="of a table the labels (default: as for convert)")
    add("--weight", metavar="COLUMN", help="of a table the weights (default: sample_weight, if there)")
    add("--qid", metavar="COLUMN", help="of a table the queries (default: qid, if there)")
    add("--filter", metavar="TEXT", help="of a table: append the rows of which this holds")
    add("--features", metavar="N", type=partial(values.whole, least=1), help="of sparse rows: make the store this wide")
    _add_output(parser)


def add_delete(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("store", metavar="STORE", help="the store")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--rows", metavar="ROWS", type=values.row_ranges, help="numbers from 0 and ranges: 10:20,35")
    condition = 'rows of which this holds: label, weight, qid, row and features, as "label == 3 and age > 90"'
    which.add_argument("--filter", metavar="TEXT", help=condition)
    _add_output(parser)


def add_compact(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("store", metavar="STORE", help="the store")
    _add_output(parser)


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="the result as one JSON object")
    parser.add_argument("-q", dest="quiet", action="store_true", help="quiet: print errors and results only")
