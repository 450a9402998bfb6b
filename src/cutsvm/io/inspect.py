"""A description of a data file, its bad lines and what is unusual about it, for `cutsvm check`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cutsvm._utils.text import printable
from cutsvm._utils.types import Array
from cutsvm._utils.validation import spread_of_sizes
from cutsvm.io.formats.svmlight import Paths, RawSamples, ZeroBased, load
from cutsvm.io.settings import read_settings

_MAX_BAD_LINES = 20
_MAX_CLASSES = 20
_SCALE_LIMIT = 1e4  # ratio of column sizes from which scaling the features pays


@dataclass(frozen=True)
class FileReport:
    """A description of the good lines of a file, and its bad lines."""

    source: str
    rows: int
    features: int  # columns from the base to the largest index
    features_seen: int  # at least once
    largest_index: int | None
    zero_based: bool
    base_reason: str  # how the base of the indices was found
    nonzeros: int
    density: float  # share of nonzeros in rows x features seen
    value_range: tuple[float, float] | None
    n_classes: int
    classes: tuple[tuple[float, int], ...]  # the first labels by value, with how many rows each has
    continuous_labels: bool
    queries: int | None
    zero_rows: int
    duplicate_rows: int  # that repeat an earlier row, label and query included (by a 64-bit hash)
    scale_ratio: float | None  # largest over smallest of the columns' greatest absolute values above 0
    n_bad_lines: int
    bad_lines: tuple[str, ...]
    hints: tuple[str, ...]  # what may be a mistake, one sentence each

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [printable(self.source), *_table(self)]
        lines += [f"  hint: {hint}" for hint in self.hints]
        if self.n_bad_lines:
            more = self.n_bad_lines - len(self.bad_lines)
            lines.append(f"  {many(self.n_bad_lines, 'bad line')}:")
            lines += [f"    {printable(line)}" for line in self.bad_lines]
            lines += [f"    ... and {more:,} more"] if more else []
        return "\n".join(lines)


def inspect_file(path_or_paths: Paths, *, zero_based: ZeroBased = "auto", n_threads: int | None = None) -> FileReport:
    """Read one or more svmlight files and report on them; bad lines are listed, not raised."""
    raw = load(path_or_paths, zero_based=zero_based, n_threads=n_threads, keep_bad=_MAX_BAD_LINES)
    first = 0 if raw.zero_based else 1
    sizes = _column_sizes(raw)
    queries = raw.qid  # as numbers
    if queries is not None and queries.dtype != np.int64:
        queries = np.unique(queries, return_inverse=True)[1].astype(np.int64, copy=False)
    nonzeros, zero_rows, hashes = _scan_rows(raw, queries)
    reason = "index 0 occurs" if raw.has_zero else "index 0 does not occur"
    labels, counts = np.unique(raw.y, return_counts=True)
    facts: dict[str, Any] = {
        "source": raw.source,
        "rows": raw.y.size,
        "features": max(raw.max_index + 1 - first, 0),
        "features_seen": sizes.size,
        "largest_index": raw.max_index if raw.max_index >= 0 else None,
        "zero_based": raw.zero_based,
        "base_reason": reason if zero_based == "auto" else "as given",
        "nonzeros": nonzeros,
        "density": nonzeros / max(raw.y.size * sizes.size, 1),
        "value_range": (float(raw.values.min()), float(raw.values.max())) if raw.values.size else None,
        "n_classes": labels.size,
        "classes": tuple(zip(labels.tolist()[:_MAX_CLASSES], counts.tolist()[:_MAX_CLASSES], strict=True)),
        "continuous_labels": are_continuous(labels, raw.y.size),
        "queries": None if queries is None else np.unique(queries).size,
        "zero_rows": zero_rows,
        "duplicate_rows": raw.y.size - np.unique(hashes).size,
        "scale_ratio": spread_of_sizes(sizes) if (sizes > 0).any() else None,
        "n_bad_lines": raw.n_bad,
        "bad_lines": tuple(raw.bad_lines),
    }
    return FileReport(**facts, hints=tuple(hints(facts)))


def _scan_rows(raw: RawSamples, queries: Array | None) -> tuple[int, int, NDArray[np.uint64]]:
    """The number of nonzeros, of rows without any, and a hash of each row, computed in blocks."""
    hashes = np.empty(raw.y.size, dtype=np.uint64)
    nonzeros = zero_rows = 0
    step = read_settings().slice_rows
    for start in range(0, raw.y.size, step):
        block = slice(start, min(start + step, raw.y.size))
        bounds = raw.indptr[block.start : block.stop + 1]
        entries = slice(bounds[0], bounds[-1])
        bounds = bounds - bounds[0]
        filled = raw.values[entries] != 0
        before = np.concatenate(([0], np.cumsum(filled, dtype=np.int64)))
        per_row = np.diff(before[bounds])
        nonzeros += int(before[-1])
        zero_rows += int(np.count_nonzero(per_row == 0))
        mixed = _mix(_mix(raw.indices[entries].astype(np.uint64)) ^ raw.values[entries].view(np.uint64))
        # Unsigned sums wrap around, so differences of running sums are exact. Stored zeros are left out.
        running = np.concatenate((np.zeros(1, np.uint64), np.cumsum(np.where(filled, mixed, np.uint64(0)))))
        hashes[block] = np.diff(running[bounds])
        hashes[block] += _mix((raw.y[block] + 0.0).view(np.uint64))
        if queries is not None:
            hashes[block] ^= _mix(queries[block].view(np.uint64))
    return nonzeros, zero_rows, hashes


def _mix(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A hash of 64 bits: a change of one bit changes about half of the result."""
    mixed = bits + np.uint64(0x9E3779B97F4A7C15)
    for factor in (np.uint64(0xD6E8FEB86659FD93), np.uint64(0xA0761D6478BD642F)):
        mixed ^= mixed >> np.uint64(32)
        mixed *= factor
    mixed ^= mixed >> np.uint64(29)
    return mixed


def _column_sizes(raw: RawSamples) -> NDArray[np.float64]:
    """The greatest absolute value of each feature that occurs."""
    seen, columns = raw.indices, raw.indices
    if raw.max_index > 10_000_000:  # too wide for an array of all columns
        seen, columns = np.unique(raw.indices, return_inverse=True)
        sizes = np.full(seen.size, -1.0)
    else:
        sizes = np.full(raw.max_index + 1, -1.0)
    for start in range(0, columns.size, 1 << 22):
        part = slice(start, start + (1 << 22))
        np.maximum.at(sizes, columns[part], np.abs(raw.values[part]))
    return sizes[sizes >= 0]


def are_continuous(labels: NDArray[np.float64], rows: int) -> bool:
    """Whether there are more than 20 labels, and fractions among them or one for every two rows."""
    fractions = bool(np.any(labels != np.floor(labels)))
    return labels.size > 20 and (fractions or labels.size > rows / 2)


def many(count: int, noun: str) -> str:
    """The number and the noun, in the plural unless it is 1."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def hints(facts: dict[str, Any]) -> Iterator[str]:
    """What may be a mistake, one sentence each."""
    if facts["rows"] == 0:
        yield "there are no samples"
        return
    if facts["n_classes"] == 1:
        label = facts["classes"][0][0]
        only = label if isinstance(label, str) else f"{label:g}"
        yield f"all labels are {only}; a classifier needs at least two classes"
    if facts["continuous_labels"]:
        yield "the labels look continuous; a classifier takes each value for a class"
    if facts["scale_ratio"] is not None and facts["scale_ratio"] > _SCALE_LIMIT:
        yield f"features differ in size by a factor of {facts['scale_ratio']:.3g}; scaling them helps"
    if facts["features"] > 2**31:
        yield f"indices go beyond 32 bits; the columns will be the {facts['features_seen']:,} features seen"
    if facts["queries"] == facts["rows"]:
        yield "every query has one row only, so there is nothing to rank"
    if facts["duplicate_rows"] * 2 > facts["rows"]:
        yield "most rows are duplicates"


def _table(report: FileReport) -> Iterator[str]:
    seen = f"{report.features_seen:,} seen"
    largest = "none" if report.largest_index is None else f"largest index {report.largest_index:,}"
    yield f"  rows         {report.rows:,}"
    yield f"  features     {seen}, {largest}"
    yield f"  index base   {0 if report.zero_based else 1} ({report.base_reason})"
    yield from lines_of_rows(vars(report))
    yield f"  duplicates   {report.duplicate_rows:,}"
    if report.scale_ratio is not None:
        yield f"  scale ratio  {report.scale_ratio:.3g} (largest to smallest feature)"


def lines_of_rows(facts: dict[str, Any]) -> Iterator[str]:
    """Values, labels, queries and empty rows, which every report has."""
    yield f"  non-zeros    {facts['nonzeros']:,} ({facts['density']:.3g} of all)"
    if facts["value_range"] is not None:
        yield f"  values       {facts['value_range'][0]:g} to {facts['value_range'][1]:g}"
    yield f"  labels       {many(facts['n_classes'], 'different value')}"
    for label, count in facts["classes"]:
        shown = f"{label:g}" if isinstance(label, int | float) else printable(str(label))
        yield f"    {shown:>10}  {many(count, 'row')} ({count / facts['rows']:.1%})"
    if facts["n_classes"] > len(facts["classes"]):
        yield f"    ... and {facts['n_classes'] - len(facts['classes']):,} more"
    if facts["queries"] is not None:
        yield f"  queries      {facts['queries']:,}"
    yield f"  empty rows   {facts['zero_rows']:,}"
