"""Text that is safe to print."""

from __future__ import annotations


def printable(text: str) -> str:
    """Text with its control characters, which a file or its name may hold, escaped."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)
