"""Fields of frozen settings: which of them a reader, or a model file, is shown."""

from __future__ import annotations

import dataclasses
from typing import Any


def shown_fields(settings: Any) -> dict[str, Any]:
    """The fields that `repr` shows, and the others where they do not have their default."""
    values = {field: getattr(settings, field.name) for field in dataclasses.fields(settings)}
    return {field.name: value for field, value in values.items() if field.repr or value != field.default}


def fields_repr(settings: Any) -> str:
    """Type and shown fields, as a dataclass's `repr` writes them."""
    parts = ", ".join(f"{name}={value!r}" for name, value in shown_fields(settings).items())
    return f"{type(settings).__name__}({parts})"
