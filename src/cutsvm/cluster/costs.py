"""What the rounds of a fit bring to the client, by rule: from sizes alone, before anything is computed.

Sums over all rows come from every chunk, unless they would be too large: then workers add them up first. Rows come one
by one, each with its label, weight and the like.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = [
    "CostSettings",
    "RoundCost",
    "band_rounds",
    "draw_rounds",
    "iterations_of_planes",
    "plane_rounds",
    "sums_received",
    "violator_rounds",
]


@dataclass(frozen=True)
class CostSettings:
    """What is assumed of a fit.

    row_extra: bytes of a row besides its values: label, weight, group.
    violators, most_violators: as a share of the rows near the margin, those that follow when all rows are looked at
        again, and those of two such rounds where C is large.
    base, decade: rounds of cutting planes to a gap of `tol`: base + decade log10(C n), and in proportion to the decades
        of the gap.
    smooth: times as many for a loss with second derivatives.
    width: results that workers add up at a time, and the number of sums that the client gets at most.
    """

    row_extra: int = 18
    violators: float = 0.05
    most_violators: float = 1.5
    base: float = 2.0
    decade: float = 3.0
    tol: float = 1e-3
    smooth: float = 0.5
    width: int = 16


@dataclass(frozen=True)
class RoundCost:
    """A round, the bytes that come to the client, and the rows among them."""

    name: str
    received: float
    rows: float = 0.0
    reads: bool = True


def sums_received(
    chunks: int, each: float, most: float, shards: int = 1, settings: CostSettings | None = None
) -> float:
    """Bytes of the sums that come to the client if each chunk makes some of `each` bytes.

    most: bytes up to which the client adds them up. shards: sums that are kept apart, each of some neighbouring chunks.
    """
    settings = settings or CostSettings()
    if chunks * each <= most:
        return chunks * each
    while chunks > settings.width:
        chunks = -(-chunks // settings.width)
    return max(chunks, shards) * each


def draw_rounds(rows: Sequence[float], row_bytes: float, settings: CostSettings | None = None) -> tuple[RoundCost, ...]:
    """One round that draws some rows of each of some classes; none if there are no such classes."""
    settings, many = settings or CostSettings(), float(sum(rows))
    return (RoundCost("draw rows", many * (row_bytes + settings.row_extra), many),) if rows else ()


def band_rounds(
    rows: Iterable[float], row_bytes: float, sums: float, settings: CostSettings | None = None
) -> tuple[RoundCost, ...]:
    """Sifting: the rows that come in each round that looks for those near the margin.

    row_bytes: of the values of a row. sums: of all groups, from all chunks.
    """
    own = row_bytes + (settings or CostSettings()).row_extra
    return tuple(RoundCost("sift", near * own + sums, near) for near in rows)


def violator_rounds(
    near: float, row_bytes: float, room: float | None = None, settings: CostSettings | None = None
) -> tuple[RoundCost, ...]:
    """Sifting: what may follow the rows near the margin, two rounds that look for violators. None follow where the
    first solution is within the gap, and few rows in one of them where C is small.

    room: rows that the client can hold; None: any number.
    """
    settings = settings or CostSettings()
    own = 0.5 * settings.most_violators * near
    if room is not None:
        own = min(own, 0.5 * max(0.0, room - near))
    return (RoundCost("advance", own * (row_bytes + settings.row_extra), own),) * 2


def iterations_of_planes(Cn: float, tol: float, *, smooth: bool = False, settings: CostSettings | None = None) -> int:
    """Rounds of batched cutting planes, about."""
    settings = settings or CostSettings()
    decades = math.log10(min(max(tol, 1e-16), 0.5)) / math.log10(settings.tol)
    many = (settings.base + settings.decade * math.log10(max(Cn, 1.0))) * decades
    return max(1, round(many * (settings.smooth if smooth else 1.0)))


def plane_rounds(number: int, sums: float) -> tuple[RoundCost, ...]:
    """Batched cutting planes: rounds that each bring sums of this size."""
    return (RoundCost("tangents", sums),) * number
