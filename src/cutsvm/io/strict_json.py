"""JSON from untrusted files: any defect is a ValueError."""

from __future__ import annotations

import json
from typing import Any, NoReturn

__all__ = ["parse_json"]

_MAX_DEPTH = 32  # levels of lists and objects; files of cutsvm have five


def parse_json(text: bytes) -> Any:
    """The value of an ASCII text.

    NaN and infinities, which are not JSON, and values nested in more than 32 levels are refused: printing, comparing or
    hashing them later would exhaust the stack.
    """
    try:
        value = json.loads(text.decode("ascii"), parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    level = [value]
    for _ in range(_MAX_DEPTH):
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
