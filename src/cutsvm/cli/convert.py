"""`cutsvm convert`: a data file in, a store out."""

from __future__ import annotations

import argparse
import os
import time

import numpy as np

from cutsvm._utils.text import printable
from cutsvm.cli.inputs import check_inputs, column_options
from cutsvm.cli.messages import CommandError, Messages, as_command_error, print_json, print_result
from cutsvm.display.progress import CopyBar
from cutsvm.io.paths import STDIN
from cutsvm.io.store.convert import convert as write_store


def convert(options: argparse.Namespace) -> int:
    """Write the store, and print its shape."""
    inputs = [options.data, *options.also]
    check_inputs(inputs)
    if options.store == STDIN:
        raise CommandError("-: a store is a folder, it cannot be written to the standard output")
    for source in inputs:
        same = os.path.isdir(options.store) and os.path.exists(source) and os.path.samefile(source, options.store)
        if same:
            raise CommandError(f"{options.store}: is an input, it would be overwritten")
    began = time.perf_counter()
    messages = Messages(quiet=options.quiet)
    with as_command_error(options.store), messages.forwarded_logs(), CopyBar() as bar:
        data = write_store(
            inputs,
            options.store,
            **column_options(options),
            dtype=np.float32 if options.float32 else None,
            progress=None if options.quiet else bar,
        )
    seconds = time.perf_counter() - began
    (rows, features), entries = data.shape, data.entries
    if options.json:
        facts = {"rows": rows, "features": features, "entries": entries, "seconds": seconds}
        print_json({"data": inputs, "store": options.store, **facts})
    else:
        messages.note(f"{data.source}: {rows:,} rows, {features:,} features, {entries:,} values, {seconds:.2f} s")
        if not options.quiet:
            print_result(f"store: {printable(options.store)}")
    return 0
