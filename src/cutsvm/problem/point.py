"""What solvers and oracles exchange: points, tangents, and what an oracle can do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import NamedTuple

from cutsvm._utils.types import Vector
from cutsvm.problem.planes import Planes

__all__ = ["Intercept", "LossSupports", "Point", "Supports", "Tangent"]


class Intercept(Enum):
    """How b is treated: there is none, it is regularised with w, or it is free."""

    NONE = "none"
    REGULARIZED = "regularized"
    FREE = "free"


@dataclass(frozen=True, eq=False)
class Point:
    """w with the scores of all rows.

    exact: the scores come from a pass at this very w, not from a combination of the scores of other points.
    """

    w: Vector
    scores: Vector
    exact: bool = False


class Tangent(NamedTuple):
    """A point, R there, and the planes that touch R there."""

    w: Vector
    value: float
    planes: Planes


@dataclass(frozen=True)
class LossSupports:
    """What a loss can do besides value, slopes and lines.

    dual:   it has one dual variable per row (coordinate descent)
    margin: it has one signed distance from the margin per row (`MarginLoss`: buckets)
    groups: its rows can be grouped by the linear piece of their loss (`GroupedLoss`: working sets)
    pairs:  it is a sum over pairs of rows: an evaluation takes a sort
    smooth: its slope is continuous, and it has second derivatives (`SmoothLoss`: Newton's method)
    batch:  number of points that a kernel evaluates in one pass
    """

    dual: bool = False
    margin: bool = False
    groups: bool = False
    pairs: bool = False
    smooth: bool = False
    batch: int = 1


@dataclass(frozen=True)
class Supports:
    """What an oracle can do. Solvers ask for this, and never for the type of the data or of the loss.

    dual:        the loss has one dual variable per row, and rows can be read one at a time (coordinate descent)
    margin:      the loss is a hinge with one signed distance from the margin per row (buckets)
    working_set: rows can be grouped by the linear piece of their loss, and a group replaced by its mean
    streaming:   the rows are on disk and are read block by block
    scores:      there is memory for the scores of all rows
    vectors:     numbers of all rows, as their scores at a point, can be kept at all: in memory or in files
    pairs:       the loss is a sum over pairs of rows: an evaluation takes a sort
    smooth:      the loss has a continuous slope, and second derivatives (Newton's method)
    sparse:      the rows are stored as CSR
    batch:       number of points that `tangents` evaluates in one pass
    row_dual:    the loss has one dual variable per row, wherever the rows are
    """

    dual: bool
    margin: bool
    working_set: bool
    streaming: bool
    scores: bool
    vectors: bool
    pairs: bool
    smooth: bool
    sparse: bool
    batch: int
    row_dual: bool = False

    @property
    def names(self) -> frozenset[str]:
        """The fields that hold."""
        return frozenset(name for name, holds in asdict(self).items() if holds)
