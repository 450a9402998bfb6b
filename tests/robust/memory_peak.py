"""Peak private memory (RssAnon) of a command, seen from outside: what `memory_limit` promises to bound.

Samples /proc/PID/status of the child every few milliseconds, as docs/larger-than-memory.md describes.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple


class Peak(NamedTuple):
    """How a process ended, the most private memory that it was seen with (bytes), and what it printed."""

    returncode: int
    private: int
    output: str


def private_bytes(pid: int) -> int:
    """RssAnon of a process in bytes; 0 once it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon:")), 0)


def watch(words: list[str], every: float = 0.005) -> Peak:
    """Runs a command to its end and samples its private memory."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    most = 0
    while process.poll() is None:
        most = max(most, private_bytes(process.pid))
        time.sleep(every)
    assert process.stdout is not None
    with process.stdout as stream:
        return Peak(process.returncode, most, stream.read())


if __name__ == "__main__":
    found = watch(sys.argv[1:])
    print(found.output, end="")
    print(f"peak RssAnon: {found.private / 1e6:.1f} MB, exit code {found.returncode}")
