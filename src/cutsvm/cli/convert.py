"""`cutsvm convert`: a data file in, a store out."""

from __future__ import annotations

import argparse
import os
import time

import numpy as np

from cutsvm._utils.text import printable
from cutsvm.cli.data import check_input
from cutsvm.cli.messages import CommandError, Messages, as_command_error, print_json, print_result
from cutsvm.display.progress import CopyBar
from cutsvm.io.store.convert import convert as write_store


def convert(options: argparse.Namespace) -> int:
    """Write the store, and print its shape."""
    inputs = [options.data, *options.also]
    for source in inputs:
        check_input(source, folder=True)
        if os.path.isdir(options.store) and os.path.samefile(source, options.store):
            raise CommandError(f"{options.store}: is an input, it would be overwritten")
    began = time.perf_counter()
    with as_command_error(options.store), CopyBar() as bar:
        data = write_store(
            inputs,
            options.store,
            format=options.format,
            label=options.label,
            weight=options.weight,
            qid=options.qid,
            zero_based=options.zero_based,
            dtype=np.float32 if options.float32 else None,
            progress=None if options.quiet else bar,
        )
    seconds = time.perf_counter() - began
    (rows, features), entries = data.shape, data.entries
    if options.json:
        facts = {"rows": rows, "features": features, "entries": entries, "seconds": seconds}
        print_json({"data": inputs, "store": options.store, **facts})
    else:
        messages = Messages(quiet=options.quiet)
        messages.note(f"{data.source}: {rows:,} rows, {features:,} features, {entries:,} values, {seconds:.2f} s")
        if not options.quiet:
            print_result(f"store: {printable(options.store)}")
    return 0
