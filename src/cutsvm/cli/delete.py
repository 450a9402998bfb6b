"""`cutsvm delete`: rows out of a store."""

from __future__ import annotations

import argparse
import time

import numpy as np

from cutsvm.cli.append import open_store, print_change
from cutsvm.cli.messages import as_command_error


def delete(options: argparse.Namespace) -> int:
    """Delete the rows, and print how many are left."""
    began = time.perf_counter()
    with as_command_error(options.store):
        data = open_store(options.store)
        before = data.shape[0]
        rows = options.filter
        if rows is None:
            # A row too many is refused with its number.
            ranges = [(start, max(start + 1, min(stop, before + 1))) for start, stop in options.rows]
            rows = np.concatenate([np.arange(*ends) for ends in ranges])
        data.delete(rows)
    print_change(options, data, began, deleted=before - data.shape[0])
    return 0
