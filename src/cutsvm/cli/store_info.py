"""`cutsvm info STORE`: the contents of a store."""

from __future__ import annotations

from typing import Any

from cutsvm._utils.memory import format_bytes
from cutsvm.cli.messages import as_command_error, first_values, one_line, print_json, print_result

__all__ = ["store_info"]


def store_info(path: str, *, json: bool) -> int:
    """Print a table, or JSON; reads and checks every file of the store."""
    with as_command_error(path):
        facts = _facts(path)
    if json:
        print_json(facts)
        return 0
    base = facts["zero_based"]
    rows = [
        ("store", f"{path} ({facts['bytes']:,} bytes in {facts['blocks']:,} blocks)"),
        ("format", f"cutsvm store, written by version {facts['version']}"),
        ("source", facts["source"]),
        ("rows", f"{facts['rows']:,}"),
        ("features", f"{facts['features']:,}" + ("" if base is None else f", counted from {0 if base else 1}")),
        ("values", f"{facts['entries']:,} {facts['dtype']}, {facts['layout']}"),
        ("labels", first_values(facts["classes"])),
        ("also", ", ".join(facts["also"]) or "no weights, no queries"),
        *([("names", first_values(facts["feature_names"]))] if facts["feature_names"] else []),
        ("checked", "every block has its length and checksum"),
    ]
    width = max(len(key) for key, _ in rows)
    for key, value in rows:
        print_result(f"{key:<{width}}  {one_line(value)}")
    return 0


def _facts(path: str) -> dict[str, Any]:
    import numpy as np

    from cutsvm._utils.validation import distinct
    from cutsvm.io.store.store import Store

    store = Store(path)
    manifest = store.manifest
    for number in range(len(manifest.blocks)):
        store.read(number)
    squares = store.squares
    return {
        "store": path,
        "format": "cutsvm-store",
        "version": manifest.made_by,
        "source": manifest.source,
        "rows": manifest.rows,
        "features": manifest.features,
        "entries": manifest.entries,
        "layout": manifest.layout,
        "dtype": str(np.dtype(manifest.dtype)),
        "bytes": manifest.size,
        "blocks": len(manifest.blocks),
        "block_bytes": format_bytes(manifest.size / len(manifest.blocks)),
        "zero_based": manifest.zero_based,
        "classes": distinct(store.y).tolist(),
        "also": [name for name in ("weights", "qid") if name in manifest.parts],
        "largest_norm": float(np.sqrt(squares.max())),
        "feature_names": store.feature_names,
    }
