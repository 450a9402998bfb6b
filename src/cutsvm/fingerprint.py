"""What a fit is of, in a few numbers: enough to tell whether a checkpoint belongs to the same data and parameters.

Data are told by sums: sum of v_i and sum of h_i v_i, where h_i differs from row to row. They are compared to 12 digits,
not by their bits, which another instruction set would change; and they do not say whether the rows were on disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutsvm.rows import WholeRows
from cutsvm.types import Array, Vector

PART = 1 << 16  # rows that are looked at together
HEAD = 1000  # rows whose single values count, not only their squares
CLOSE = 1e-12  # relative: sums that differ by less are the same
_STEP = 0.6180339887498949  # multiples of it, modulo 1, do not repeat

_WORDS = {
    "X": "X has other values",
    "y": "y has other labels",
    "weights": "the weights are others (sample_weight, class_weight)",
    "queries": "the queries are others",
}

Scalar = str | int | float | bool | None


@dataclass(frozen=True)
class Fingerprint:
    """The parameters that make the problem, with the shape of the data; and sums over the data."""

    settings: dict[str, Scalar]
    sums: dict[str, list[float]]

    def differences(self, there: Any) -> list[str]:
        """What is different in another one, as `to_dict` made it, in words."""
        settings, sums = there.get("settings"), there.get("sums")
        if not isinstance(settings, dict) or not isinstance(sums, dict):
            return ["it does not say of what it is"]
        names = dict.fromkeys([*self.settings, *settings])
        found = [
            f"{name} {_shown(settings.get(name))} there, {_shown(self.settings.get(name))} here"
            for name in names
            if settings.get(name) != self.settings.get(name)
        ]
        # Of data of another size all sums are others, too.
        if not found:
            found = [words for name, words in _WORDS.items() if not _close(self.sums.get(name), sums.get(name))]
        return found

    def to_dict(self) -> dict[str, Any]:
        return {"settings": self.settings, "sums": self.sums}


def of_rows(rows: WholeRows) -> list[float]:
    """Sums that tell X; less work than a pass."""
    squares = (rows.squares_of(*ends) for ends in _parts(rows.n))
    head = rows.take(np.arange(min(HEAD, rows.n)))
    scores = np.empty(head.n)
    # With an intercept, so that -X is another X.
    head.scores(_uneven(rows.d) - 0.5, 1.0, scores)
    return [*of_parts(squares), *of_parts([scores * scores])]


def of_column(values: Array) -> list[float]:
    """Sums that tell numbers, none below 0, of which there is one per row."""
    return of_parts(values[begin:end] for begin, end in _parts(len(values)))


def of_labels(y: Array, classes: Array) -> list[float]:
    """Sums that tell labels of any kind."""
    return of_parts(np.searchsorted(classes, y[begin:end]) for begin, end in _parts(len(y)))


def of_parts(parts: Iterable[Array]) -> list[float]:
    """The two sums over numbers that come in parts; h_i is a factor of the part and one of the place in it."""
    plain, mixed = 0.0, 0.0
    places = _uneven(PART)
    with np.errstate(over="ignore"):
        for k, part in enumerate(parts):
            plain += float(part.sum(dtype=np.float64))
            mixed += (1.0 + (k * _STEP) % 1.0) * float((places[: len(part)] * part).sum())  # BLAS might wake threads
    return [float(np.nan_to_num(plain)), float(np.nan_to_num(mixed))]


def solver_name(solver: Any) -> str:
    """The solver with its settings; a function is the same one in the next process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(solver))


def _parts(n: int) -> Iterator[tuple[int, int]]:
    return ((begin, min(begin + PART, n)) for begin in range(0, n, PART))


def _uneven(count: int) -> Vector:
    """Numbers between 0 and 1 that no two places share."""
    return np.arange(1.0, count + 1.0) * _STEP % 1.0


def _close(here: list[float] | None, there: Any) -> bool:
    if here is None or there is None:
        return here is there
    if not isinstance(there, list) or not all(isinstance(number, (int, float)) for number in there):
        return False
    return len(here) == len(there) and bool(np.allclose(here, there, rtol=CLOSE, atol=0.0))


def _shown(value: Any) -> str:
    text = f"{value:,}" if type(value) is int else str(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
