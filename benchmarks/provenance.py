"""The commit that a result was measured on, and the CSV files that keep it."""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

# Rows from before commits were written down, where nothing better is known.
EARLIER = "an earlier version of 0.1"


@cache
def commit() -> str:
    """The commit of the sources that are measured, with a + if they have changed since; "unknown" outside git."""
    git = ["git", "-C", str(Path(__file__).resolve().parent)]
    found = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", ":/src"], capture_output=True)
    return found.stdout.strip() + "+" * (changed.returncode == 1) if found.returncode == 0 else "unknown"


def write_rows(path: Path, fields: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """A CSV of the rows; those that have no commit yet are of the one that is measured now."""
    named = [name for name in fields if name != "commit"]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*named, "commit"])
        writer.writeheader()
        writer.writerows({"commit": commit()} | dict(row) for row in rows)


def measured_on(rows: Iterable[Mapping[str, Any]]) -> str:
    """The commits of the rows, each once, in their order."""
    return ", ".join(dict.fromkeys(str(row.get("commit") or EARLIER) for row in rows))
