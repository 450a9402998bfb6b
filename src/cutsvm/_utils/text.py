"""Text that is safe to print."""

from __future__ import annotations

from collections.abc import Sequence


def printable(text: str) -> str:
    """Text with its control characters, which a file or its name may hold, escaped."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def listed(names: Sequence[str], most: int = 8) -> str:
    """The first names in quotes."""
    shown = ", ".join(map(repr, names[:most]))
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"
