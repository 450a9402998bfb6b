"""How much memory there is, and how much a fit needs: `memory_limit` becomes a plan here."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cutsvm.io.store.store import Store

__all__ = ["Plan", "parse", "plan", "shown"]

_UNITS = {"": 1, "B": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
# Where Linux says how much memory a container may have: control groups of version 2 and of version 1.
_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_BINARY = {"KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
# Numbers per row that a fit holds besides X: labels, weights, scores of three points, slopes now and before, a group;
# with K classes the scores are K each.
_VECTORS, _SCORES = 5, 3
# A row that sifting holds: itself, twice for a moment or in part, and what its own small problem keeps of it.
_COPY, _OWN = 1.2, 72
_PER_PAIRED_ROW = 200  # bytes that the loss over pairs and its solvers keep for each row, most of them to sort it
FIXED = 50_000_000  # bytes for planes, the scores of a block, and whatever the interpreter needs
HELD = 0.3  # of what is left may be numbers of all rows
LEAST = 2000  # rows that a fit must be able to hold
USED = 0.6  # of the machine's memory may be taken without a limit
STEP = 32 << 20  # bytes: what the process holds already is rounded up to multiples of this


@dataclass(frozen=True)
class Plan:
    """Whether to train from the store, and how many of its rows may be held in memory."""

    streams: bool
    room: int | None
    words: str
    held: bool = True  # a few numbers of each row are in memory too


def parse(limit: Any) -> int:
    """Bytes: a whole number, or text as "300MB", "2GB", "1.5 GiB"."""
    expected = 'expected bytes as a whole number, or text as "300MB" or "2GB"'
    if isinstance(limit, int) and not isinstance(limit, bool):
        if limit > 0:
            return limit
        raise ValueError(f"memory_limit={limit!r}: {expected}, above 0")
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([KMGT]?I?)B?\s*", limit.upper()) if isinstance(limit, str) else None
    if found is None or found[2] not in {**_UNITS, **_BINARY}:
        raise ValueError(f"memory_limit={limit!r}: {expected}")
    size = int(float(found[1]) * {**_UNITS, **_BINARY}[found[2]])
    if size < 1:
        raise ValueError(f"memory_limit={limit!r}: {expected}, above 0")
    return size


def plan(store: Store, limit: int | None, outputs: int = 1) -> Plan:
    """How to train from a store: under a limit from the disk, else from memory if the machine has enough.

    How many rows are held decides which rows a solver looks at, so the plan must be the same whenever the same call is
    made: it knows the machine's memory and not how much of it is free, and what the process holds in coarse steps.

    Raises ValueError if the limit does not even hold what is kept per row.
    """
    rows = store.shape[0]
    vectors = 8 * rows * (_VECTORS + _SCORES * outputs)
    if limit is None:
        need, most = store.manifest.size + vectors, USED * total()
        if most == 0 or need <= most:
            return Plan(False, None, f"{shown(need)} in memory")
        limit = int(most)
        why = f"{shown(need)} would be too much for memory"
    else:
        why = f"memory_limit is {shown(limit)}"
    row = _COPY * store.manifest.size / rows + _OWN * outputs
    left = limit - in_use() - FIXED
    held = vectors <= HELD * left
    if held:
        left -= vectors
    room = min(rows, max(0, int(left / row)))
    if room < min(rows, LEAST):
        raise ValueError(f"{why}: too little for a fit; expected at least {shown(limit - left + row * LEAST)}")
    where = "in memory" if held else "in a file beside it"
    words = f"from disk: {why}; scores and labels ({shown(vectors)}) {where}, up to {room:,} rows held"
    return Plan(True, room, words, held)


def plan_pairs(store: Store, limit: int | None) -> Plan:
    """How to train on the pairs of a store's queries: rows in memory or on disk, what is kept of each in memory."""
    numbers = _PER_PAIRED_ROW * store.shape[0]
    why = "memory_limit is"
    if limit is None:
        need, most = store.manifest.size + numbers, USED * total()
        if most == 0 or need <= most:
            return Plan(False, None, f"{shown(need)} in memory")
        limit, why = int(most), f"{shown(need)} would be too much for memory: the limit is"
    need = in_use() + FIXED + numbers
    if need > limit:
        raise ValueError(f"{why} {shown(limit)}: too little for a fit; expected at least {shown(need)}")
    return Plan(True, 0, f"from disk: {why} {shown(limit)}; numbers of each row in memory")


def shown(size: float) -> str:
    """Bytes in words."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.0f} bytes"


def private() -> int:
    """Bytes of memory that are this process's own (RssAnon); 0 where the system does not say."""
    return _status("/proc/self/status", "RssAnon")


def in_use() -> int:
    """The same, rounded up to a multiple of STEP: two runs of one program differ by some pages."""
    return -(-private() // STEP) * STEP


@cache
def total() -> int:
    """Bytes of memory of the machine, or of the container if that has less; 0 where the system does not say."""
    try:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        machine = 0
    return min((limit for limit in (machine, *map(_number, _CONTAINER)) if limit > 0), default=0)


def _number(file: str) -> int:
    """The number in a file; 0 if there is none, or the word max."""
    try:
        with open(file) as stream:
            return int(stream.read())
    except (OSError, ValueError):
        return 0


def _status(file: str, key: str) -> int:
    try:
        with open(file) as lines:
            return next((1024 * int(line.split()[1]) for line in lines if line.startswith(f"{key}:")), 0)
    except OSError:
        return 0
