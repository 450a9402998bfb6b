"""Small data sets and files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np


class CommandResult(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., CommandResult]


def write_svmlight(path: Path, X: np.ndarray, y: np.ndarray, first: int = 1) -> Path:
    """An svmlight file whose features count from `first`; zeros are left out."""
    lines = []
    for label, row in zip(y, X, strict=True):
        pairs = " ".join(f"{column + first}:{value!r}" for column, value in enumerate(row.tolist()) if value != 0)
        lines.append(f"{label:g} {pairs}\n")
    path.write_text("".join(lines))
    return path


def blobs(classes: list[float], rows: int = 120, width: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping clouds, one per class."""
    random = np.random.default_rng(seed)
    centres = 1.2 * np.random.default_rng(99).standard_normal((len(classes), width))
    which = np.arange(rows) % len(classes)
    return centres[which] + random.standard_normal((rows, width)), np.array(classes)[which]
