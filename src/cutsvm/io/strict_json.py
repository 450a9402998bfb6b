"""JSON from files that nobody vouches for: whatever is wrong with it is a ValueError."""

from __future__ import annotations

import json
from typing import Any, NoReturn

__all__ = ["parse_json"]

DEEPEST = 32  # levels of lists and objects; our own files have five


def parse_json(text: bytes) -> Any:
    """The value of an ASCII text.

    NaN and infinities, which are no JSON, and values nested more than `DEEPEST` levels are refused: printing, comparing
    or hashing them later would exhaust the stack.
    """
    try:
        value = json.loads(text.decode("ascii"), parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    level = [value]
    for _ in range(DEEPEST):
        level = [item for parent in level for item in _children(parent)]
        if not level:
            return value
    raise ValueError("nested too deeply")


def _children(value: Any) -> list[Any]:
    """The lists and objects directly inside a value."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [item for item in inside if isinstance(item, list | dict)]


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not allowed")
