"""`cutsvm append`, and what the commands that change a store share."""

from __future__ import annotations

import argparse
import os
import time

from cutsvm._utils.text import printable
from cutsvm.cli.inputs import check_inputs
from cutsvm.cli.messages import CommandError, Messages, as_command_error, print_json, print_result
from cutsvm.display.progress import CopyBar
from cutsvm.io.dataset import StoredDataset
from cutsvm.io.store.store import Store


def append(options: argparse.Namespace) -> int:
    """Append the rows of all files, and print what the store has then."""
    check_inputs(options.data)
    began = time.perf_counter()
    with as_command_error(options.store), Messages(quiet=options.quiet).forwarded_logs(), CopyBar() as bar:
        data = open_store(options.store)
        before = data.shape[0]
        given = {name: getattr(options, name) for name in ("format", "label", "weight", "qid", "filter")}
        source = options.data if len(options.data) > 1 else options.data[0]  # several files: one version
        data.append(source, **given, n_features=options.features, progress=None if options.quiet else bar)
    print_change(options, data, began, appended=data.shape[0] - before)
    return 0


def open_store(path: str) -> StoredDataset:
    """The store; anything else is refused."""
    if not os.path.isdir(path):
        found = "there is no such store" if not os.path.exists(path) else "not a store, but a file"
        raise CommandError(f"{path}: {found}; cutsvm convert makes stores")
    return StoredDataset(Store(path))


def print_change(options: argparse.Namespace, data: StoredDataset, began: float, **counts: int) -> None:
    """What was done, and the version that the store has now."""
    seconds, (rows, _) = time.perf_counter() - began, data.shape
    if options.json:
        print_json({"store": options.store, **counts, "rows": rows, "version": data.version, "seconds": seconds})
        return
    words = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    Messages(quiet=options.quiet).note(f"{words}, {seconds:.2f} s")
    if not options.quiet:
        print_result(f"store: {printable(options.store)}, version {data.version}, {rows:,} rows")
