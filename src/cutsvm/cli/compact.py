"""`cutsvm compact`: a store without its deleted rows."""

from __future__ import annotations

import argparse
import time

from cutsvm.cli.append import open_store, print_change
from cutsvm.cli.messages import as_command_error
from cutsvm.display.progress import CopyBar


def compact(options: argparse.Namespace) -> int:
    """Write the store again, and print how much smaller it is."""
    began = time.perf_counter()
    with as_command_error(options.store), CopyBar() as bar:
        data = open_store(options.store)
        before = data.store.manifest.size_on_disk
        data.compact(progress=None if options.quiet else bar)
    print_change(options, data, began, freed_bytes=before - data.store.manifest.size_on_disk)
    return 0
