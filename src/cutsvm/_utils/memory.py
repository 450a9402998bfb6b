"""How much memory there is and how much a fit needs: turns `memory_limit` into a `Plan`."""

from __future__ import annotations

import ctypes
import gc
import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

_UNITS = {"": 1, "B": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
# Where Linux states the memory of a container and its use: control groups of version 2 and of version 1.
_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_CONTAINER_USE = ("/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory/memory.usage_in_bytes")
_CONTAINER_STAT = ("/sys/fs/cgroup/memory.stat", "/sys/fs/cgroup/memory/memory.stat")


@dataclass(frozen=True)
class MemorySettings:
    """How the memory of a fit from a store is estimated; sizes are in bytes."""

    fixed: int = 50_000_000  # planes, the scores of a block, and whatever the interpreter needs
    vectors: int = 5  # float64 numbers per row: label, weight, slopes now and before, a group
    scores: int = 3  # points whose scores are kept, a float64 number per row and output
    row_copies: float = 1.2  # how often a row of the working set is held: some twice, for a moment or in part
    sparse_row_copies: float = 2.1  # the same of CSR rows, which are joined and copied as a whole
    row_overhead: int = 72  # of the working set's own problem, per row and output
    paired_row: int = 230  # of the pairwise loss and its solvers per row, most of it to sort
    smooth_paired_row: int = 120  # more of a row where the loss has second derivatives
    exact_row: int = 340  # more of a row where thresholds need sums of whole numbers of any size
    vector_share: float = 0.3  # of the memory that is left may hold numbers of all rows
    min_rows: int = 2000  # that the working set must be able to hold
    plane_vectors: int = 40  # of the length of a plane, besides planes: sums in pieces, points, copies
    group_sums: int = 1 << 25  # of the groups of rows, in pieces; at least one piece
    planes: int = 1000  # that a reduced problem may have if there is memory
    min_planes: int = 24
    planes_in_fixed: float = 0.4  # of `fixed` is for planes
    plane_share: float = 0.4  # of the memory that is left may be for planes, too
    machine_share: float = 0.6  # of the machine's memory that a fit without a limit may take
    free_share: float = 0.6  # of the memory that is free now: memory_limit="auto"
    step: int = 32 << 20  # what the process already uses is rounded up to a multiple of this
    # Problems are solved side by side only if each can hold this share of the rows, or none can: passes are shared, but
    # with few rows held there are many more of them.
    held_share: float = 1 / 8
    # Of problems that are solved side by side: for all, and for each in place of `fixed`.
    together: int = 24_000_000
    each: int = 22_000_000

    def held_row(self, size: float, outputs: int, *, sparse: bool) -> float:
        """What a row of `size` bytes takes in the working set."""
        return (self.sparse_row_copies if sparse else self.row_copies) * size + self.row_overhead * outputs


@dataclass(frozen=True)
class Plan:
    """Whether to train from the store, and how many of its rows may be held in memory."""

    on_disk: bool
    room: int | None
    description: str
    vectors_in_memory: bool = True  # a few numbers of each row are in memory too
    plane_bytes: int | None = None  # for planes and their reduced problem; None: any number
    at_once: int = 1  # problems that are solved side by side


def planes_in_files(size: int, wide: int = 1024) -> bool:
    """Whether planes of this number of coordinates are in files, if memory is limited."""
    return size >= wide


def bytes_of_planes(many: int, size: int) -> int:
    """What this number of planes takes, each of `size` numbers, with their reduced problem.

    m planes take 3 m size numbers unless they are in files, since they are copied as they grow; the reduced problem 6 m
    min(m, size). Twice, since a solver may have planes of all rows and of a working set.
    """
    return 16 * many * ((0 if planes_in_files(size) else 3 * size) + 6 * min(many, size))


def planes_within(memory: int, size: int) -> int:
    """The largest number of planes that takes no more than this memory; at least one."""
    many = 1
    while bytes_of_planes(2 * many, size) <= memory:
        many *= 2
    for power in range(many.bit_length() - 1, -1, -1):
        if bytes_of_planes(many + (1 << power), size) <= memory:
            many += 1 << power
    return many


def parse_limit(limit: Any) -> int:
    """Bytes: a whole number, or text as "300MB", "2GB", "1.5 GiB"; "auto": a share of what is free now.

    "2GB total" is a limit of the whole process: `allowance` subtracts what it holds.
    """
    expected = 'expected bytes as a whole number, or text as "300MB", "2GB" or "auto"'
    if isinstance(limit, int) and not isinstance(limit, bool):
        if limit > 0:
            return limit
        raise ValueError(f"memory_limit={limit!r}: {expected}, above 0")
    if limit == "auto":
        return max(1, int(MemorySettings().free_share * free()))
    text = limit.upper() if isinstance(limit, str) else ""
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([KMGT]?I?)B?(?:\s+TOTAL)?\s*", text)
    if found is None or found[2] not in {**_UNITS, **_BINARY}:
        raise ValueError(f"memory_limit={limit!r}: {expected}")
    size = int(float(found[1]) * {**_UNITS, **_BINARY}[found[2]])
    if size < 1:
        raise ValueError(f"memory_limit={limit!r}: {expected}, above 0")
    return size


class Allowance(NamedTuple):
    """Bytes that a fit may add to the `held` ones of the process, and the limit in words."""

    size: int
    held: int
    why: str

    def error(self, least: float, reason: str = "") -> ValueError:
        """A fit needs at least this number of bytes, which is more."""
        because = f", since {reason}" if reason else ""
        total = f" ({format_bytes(self.held + least)} in all)" if self.held else ""
        return ValueError(f"{self.why}: too little for a fit; expected at least {format_bytes(least)}{total}{because}")


def allowance(memory_limit: str | int, step: int) -> Allowance:
    """What a fit may add under this limit; of a limit in all, what the process holds counts in multiples of `step`."""
    size, held = parse_limit(memory_limit), in_use(step)
    if isinstance(memory_limit, str) and memory_limit.strip().lower().endswith("total"):
        why = f"the limit is {format_bytes(size)} and the process holds {format_bytes(held)} already"
        return Allowance(max(0, size - held), held, why)
    auto = ' ("auto")' if memory_limit == "auto" else ""
    beside = f" beside the {format_bytes(held)} that the process holds" if held else ""
    return Allowance(size, held, f"memory_limit is {format_bytes(size)}{auto}{beside}")


def _allowed(need: float, memory_limit: str | int | None, use: MemorySettings) -> Allowance:
    """What a fit may add under this limit; without one, what the machine has for a fit that needs more."""
    return _machine(need, use) if memory_limit is None else allowance(memory_limit, use.step)


def _machine(need: float, use: MemorySettings) -> Allowance:
    """What a fit without a limit may add, if `need` is too much for the machine."""
    held = in_use(use.step)
    size = max(0, int(use.machine_share * total()) - held)
    return Allowance(
        size, held, f"{format_bytes(need)} would be too much for memory: the limit is {format_bytes(size)}"
    )


def _in_memory(need: float, memory_limit: str | int | None, use: MemorySettings) -> bool:
    """Whether the data are loaded: without a limit, or with "auto", if there is memory."""
    if memory_limit is None:
        limit = int(use.machine_share * total())
        return limit == 0 or need <= limit
    return memory_limit == "auto" and need <= parse_limit("auto")


def plan(
    rows: int,
    size: int,
    memory_limit: str | int | None,
    outputs: int = 1,
    settings: MemorySettings | None = None,
    *,
    features: int = 1,
    problems: int = 1,
    sparse: bool = False,
) -> Plan:
    """How to train from a store of `rows` rows and `size` bytes: from disk if there is a limit, else in memory
    if that suffices.

    problems: number of them that may be solved side by side from disk; `room` and `plane_bytes` are those of one.
    sparse: whether the rows are CSR.

    The number of rows held decides which rows a solver sees. It must be the same for the same call, so it depends on
    the limit, or without one on the memory of the machine; not on what is free, unless the limit is "auto". Where it is
    a limit of the whole process, it depends on the memory of the process in coarse steps only.

    Raises ValueError if the limit does not even hold the numbers kept per row.
    """
    use = MemorySettings() if settings is None else settings
    vectors = 8 * rows * (use.vectors + use.scores * outputs)
    if _in_memory(size + vectors, memory_limit, use):
        return Plan(False, None, f"{format_bytes(size + vectors)} in memory", at_once=problems)
    given = _allowed(size + vectors, memory_limit, use)
    row = use.held_row(size / rows, outputs, sparse=sparse)

    def divided(many: int) -> tuple[int, bool, int, float]:
        """Rows held, whether vectors are in memory, bytes for planes, and what is left, of each of `many` problems."""
        own = use if many == 1 else replace(use, fixed=use.each)
        shared = 0 if many == 1 else use.together
        left, plane_bytes = _beside_planes((given.size - shared) // many - own.fixed, outputs, features, own)
        extra = rows // many if problems > 1 else 0  # a byte per row says which fold it is in
        in_memory = vectors + extra <= use.vector_share * left
        left -= vectors + extra if in_memory else 0
        return min(rows, max(0, int(left / row))), in_memory, plane_bytes, left

    enough = (many for many in range(problems, 0, -1) if divided(many)[0] >= min(rows, use.held_share * rows))
    at_once = next(enough, problems)
    room, in_memory, plane_bytes, left = divided(at_once)
    if room < min(rows, use.min_rows):
        raise given.error(given.size + at_once * (row * use.min_rows - left))
    where = "in memory" if in_memory else "in a file beside it"
    many = f", {at_once} of {problems} problems side by side" if problems > 1 else ""
    each = " for each" if at_once > 1 else ""
    text = f"from disk: {given.why}{many}; scores and labels ({format_bytes(at_once * vectors)}) {where}"
    return Plan(True, room, f"{text}, up to {room:,} rows held{each}", in_memory, plane_bytes, at_once)


def plan_parts(
    rows: int, size: int, memory_limit: str | int | None, *, outputs: int, features: int, problems: int, sparse: bool
) -> Plan:
    """How many of the rows of a collection, `size` bytes in all, the client may hold; nothing is kept of the others.

    problems: that are solved at a time, each of which may hold as many.
    """
    use = MemorySettings()
    given = _allowed(size, memory_limit, use)
    left, plane_bytes = _beside_planes((given.size - use.fixed) // problems, outputs, features, use)
    row = use.held_row(size / max(1, rows), outputs, sparse=sparse)
    room = min(rows, max(0, int(left / row)))
    if room < min(rows, use.min_rows):
        raise given.error(given.size + problems * (row * use.min_rows - left))
    return Plan(True, room, f"up to {room:,} rows held by the client", False, plane_bytes)


def _beside_planes(left: int, outputs: int, features: int, use: MemorySettings) -> tuple[int, int]:
    """What is left of some memory beside numbers for each feature, and what planes may take."""
    plane = outputs * (features + 1)
    groups = 8 * max(2, outputs**2) * (features + 1)
    left -= 8 * use.plane_vectors * plane + 4 * groups + min(16 * groups, max(use.group_sums, groups))
    given = int(use.planes_in_fixed * use.fixed)
    most = max(given + int(use.plane_share * max(0, left)), bytes_of_planes(use.min_planes, plane))
    planes = min(bytes_of_planes(use.planes, plane), most)
    return left - max(0, planes - given), max(planes, given)


def plan_pairs(
    rows: int,
    size: int,
    memory_limit: str | int | None,
    settings: MemorySettings | None = None,
    *,
    features: int = 1,
    levels: int = 0,
    exact: bool = False,
    smooth: bool = False,
) -> Plan:
    """How to train on the pairs of a store's queries: rows in memory or on disk, what is kept of each in memory.

    levels: of y, between which thresholds are computed; exact: from sums of whole numbers. smooth: the loss has second
    derivatives.
    """
    use = MemorySettings() if settings is None else settings
    vectors = (use.paired_row + smooth * use.smooth_paired_row + levels // 8 + exact * use.exact_row) * rows
    if _in_memory(size + vectors, memory_limit, use):
        return Plan(False, None, f"{format_bytes(size + vectors)} in memory")
    given = _allowed(size + vectors, memory_limit, use)
    left, plane_bytes = _beside_planes(given.size - use.fixed - vectors, 1, features, use)
    if left < 0:
        raise given.error(given.size - left)
    text = f"from disk: {given.why}; numbers of each row in memory"
    return Plan(True, 0, text, plane_bytes=plane_bytes)


def format_bytes(size: float) -> str:
    """A size with its unit."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.0f} bytes"


def private() -> int:
    """Bytes of private memory of this process (RssAnon); 0 if the system does not tell."""
    return _status("/proc/self/status", "RssAnon")


def in_use(step: int) -> int:
    """The same, rounded up to a multiple of `step`: two runs of one program differ by some pages.

    What an earlier fit has freed goes back to the system first: a second one in the same process has as much room.
    """
    _release()
    return -(-private() // step) * step


def _release() -> None:
    """Gives memory that nothing refers to back to the system, where its library can."""
    gc.collect()
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


@cache
def total() -> int:
    """Bytes of memory of the machine, or of the container if that has less; 0 if the system does not tell."""
    try:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        machine = 0
    return min((limit for limit in (machine, *map(_number, _CONTAINER)) if limit > 0), default=0)


def free() -> int:
    """Bytes of memory that are free now, in the machine or in the container if that has less.

    Pages of files that the system takes back when it needs them are free; 0 if the system does not tell.
    """
    found = [_status("/proc/meminfo", "MemAvailable")]
    for limit, use, stat in zip(_CONTAINER, _CONTAINER_USE, _CONTAINER_STAT, strict=True):
        most = _number(limit)
        if 0 < most <= total():
            found.append(max(1, most - _number(use) + _value(stat, "inactive_file")))
    return min((size for size in found if size > 0), default=0)


def _number(file: str) -> int:
    """The number in a file; 0 if the file does not exist or holds no number."""
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


def _value(file: str, key: str) -> int:
    """The number after a word at the beginning of a line."""
    try:
        with open(file) as lines:
            return next((int(line.split()[1]) for line in lines if line.split()[:1] == [key]), 0)
    except (OSError, ValueError, IndexError):
        return 0
