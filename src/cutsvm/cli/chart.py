"""Charts in plain text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_EIGHTHS = " ▁▂▃▄▅▆▇█"


def gap_chart(
    history: Sequence[Mapping[str, Any]], *, width: int = 56, height: int = 7, encoding: str | None = "utf-8"
) -> list[str]:
    """The gap on a logarithmic scale against time, as lines of text; hash signs if the encoding has no blocks."""
    tol = float(history[-1]["tol"])
    bottom, top = math.floor(math.log10(tol)), 0
    end = float(history[-1]["seconds"])
    levels = [_level(_gap_at(history, end * column / (width - 1)), bottom, top) for column in range(width)]
    lines = _columns(levels, height, encoding, lambda share: f"{10 ** (bottom + (top - bottom) * share):7.0e}")
    lines.append(" " * 8 + "+" + "-" * width)
    lines.append(" " * 9 + f"{'0 s':<{width - 10}}{end:>8.2f} s")
    return lines


def bar_chart(
    values: Sequence[float],
    names: Sequence[str],
    *,
    scale: Callable[[float], str],
    mark: int | None = None,
    height: int = 7,
    encoding: str | None = "utf-8",
) -> list[str]:
    """A bar for each value, scaled from the lowest to the highest, as lines of text; mark: the index of one."""
    known = [value for value in values if math.isfinite(value)]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    low -= 0.05 * (high - low) or 1.0  # so that the lowest bar is visible
    width = max(2, 64 // max(1, len(values)))
    levels = [(value - low) / (high - low) if math.isfinite(value) else 0.0 for value in values]
    columns = [level for level in levels for _ in range(width - 1)]
    texts = [scale(low + (high - low) * (row + 1) / height) for row in range(height)]
    left = max(map(len, texts))
    lines = []
    for line in _columns(columns, height, encoding, lambda share: f"{scale(low + (high - low) * share):>{left}}"):
        axis, bars = line[: left + 2], line[left + 2 :]
        lines.append(axis + " ".join(bars[k : k + width - 1] for k in range(0, len(bars), width - 1)).rstrip())
    lines.append(" " * (left + 1) + "+" + "-" * (width * len(values)))
    if mark is not None:
        place = width * mark
        lines.append(" " * (left + 2 + place) + f"^ C = {names[mark]}")
    room = max(1, width * len(values) - len(names[0]))
    lines.append(" " * (left + 2) + names[0] + (f"{names[-1]:>{room}}" if len(names) > 1 else ""))
    return lines


def _columns(levels: Sequence[float], height: int, encoding: str | None, axis: Callable[[float], str]) -> list[str]:
    """Columns from 0 to 1 as lines of blocks, or of hash signs; `axis` labels the upper edge of a line."""
    blocks = _EIGHTHS
    try:
        blocks.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        blocks = " " * 4 + "#" * 5
    lines = []
    for row in range(height - 1, -1, -1):
        eighths = [round(8 * min(max(level * height - row, 0.0), 1.0)) for level in levels]
        lines.append(f"{axis((row + 1) / height)} |" + "".join(blocks[part] for part in eighths))
    return lines


def _gap_at(history: Sequence[Mapping[str, Any]], seconds: float) -> float:
    """The gap at that time."""
    known = [float(record["gap"]) for record in history if record["seconds"] <= seconds]
    return known[-1] if known else 1.0


def _level(gap: float, bottom: float, top: float) -> float:
    """The height of the gap in the chart, from 0 to 1."""
    power = math.log10(gap) if gap > 0 else bottom
    return min(max((power - bottom) / (top - bottom), 0.0), 1.0) if top > bottom else 0.0
