"""A chart of the gap in plain text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["gap_chart"]

_EIGHTHS = " ▁▂▃▄▅▆▇█"


def gap_chart(
    history: Sequence[Mapping[str, Any]], *, width: int = 56, height: int = 7, encoding: str | None = "utf-8"
) -> list[str]:
    """The gap on a logarithmic scale against time, as lines of text (hash signs where blocks cannot be)."""
    tol = float(history[-1]["tol"])
    bottom, top = math.floor(math.log10(tol)), 0
    end = float(history[-1]["seconds"])
    levels = [_level(_gap_at(history, end * column / (width - 1)), bottom, top) for column in range(width)]
    blocks = _EIGHTHS if _can_show(_EIGHTHS, encoding) else " " * 4 + "#" * 5
    lines = []
    for row in range(height - 1, -1, -1):
        eighths = [round(8 * min(max(level * height - row, 0.0), 1.0)) for level in levels]
        power = bottom + (top - bottom) * (row + 1) / height
        lines.append(f"{10**power:7.0e} |" + "".join(blocks[part] for part in eighths))
    lines.append(" " * 8 + "+" + "-" * width)
    lines.append(" " * 9 + f"{'0 s':<{width - 10}}{end:>8.2f} s")
    return lines


def _gap_at(history: Sequence[Mapping[str, Any]], seconds: float) -> float:
    """The gap that was known at that moment."""
    known = [float(record["gap"]) for record in history if record["seconds"] <= seconds]
    return known[-1] if known else 1.0


def _level(gap: float, bottom: float, top: float) -> float:
    """0 at the foot of the chart, 1 at its top."""
    power = math.log10(gap) if gap > 0 else bottom
    return min(max((power - bottom) / (top - bottom), 0.0), 1.0) if top > bottom else 0.0


def _can_show(text: str, encoding: str | None) -> bool:
    try:
        text.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
