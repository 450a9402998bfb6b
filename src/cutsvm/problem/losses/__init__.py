"""Convex losses of the scores f = X w + b: they know labels and weights, and nothing of X."""

from __future__ import annotations

from typing import Protocol, TypeVar

from cutsvm._native import core
from cutsvm._utils.types import Array, Ints, Vector
from cutsvm.problem.line_search.breakpoints import LineValues
from cutsvm.problem.losses.hinge import Hinge
from cutsvm.problem.losses.multiclass import CrammerSinger
from cutsvm.problem.losses.multinomial import Multinomial
from cutsvm.problem.losses.pairwise import PairLine, PairLoss, Pairwise
from cutsvm.problem.losses.squared_pairwise import SquaredPairwise
from cutsvm.problem.losses.tail import TailMean
from cutsvm.problem.losses.tube import Tube
from cutsvm.problem.planes import Heights
from cutsvm.problem.point import LossSupports

__all__ = [
    "BreakpointLine",
    "CrammerSinger",
    "Curvatures",
    "DualLoss",
    "GroupedLoss",
    "Hinge",
    "Line",
    "LineValues",
    "Loss",
    "MarginLoss",
    "Multinomial",
    "PairLine",
    "PairLoss",
    "Pairwise",
    "PiecewiseLoss",
    "RowLoss",
    "SmoothLoss",
    "SquaredPairwise",
    "TailMean",
    "Tube",
]


class Line(Protocol):
    """The loss along a line of scores f + k t: convex and piecewise linear in k."""

    n: int
    exact: bool  # whether `minimise` is

    def evaluate(self, ks: Vector) -> LineValues:
        """The loss at up to `core.LINE_POINTS` points, in increasing order, from one sweep."""

    def minimise(self, tilt: float, curvature: float, guess: float) -> float:
        """A k in [0, 100] that minimises loss + tilt k + curvature k^2 / 2, exactly or nearly."""


class BreakpointLine(Line, Protocol):
    """One whose breakpoints are few enough, a few for each row, to find the one at the minimum."""

    def crossing(self, low: float, high: float, slope: float, curvature: float, level: float) -> float:
        """The smallest k in (low, high] where slope + curvature k + (slope gained since low) reaches level."""


class Loss(Protocol):
    """A convex function of the scores, bound to labels and weights; never negative."""

    n: int
    weight: float  # of all rows: the sum of s_i

    @property
    def total(self) -> float:
        """The loss at zero scores."""

    @property
    def score_bound(self) -> float:
        """At the best intercept some row has a score that is no larger."""

    @property
    def offset_unit(self) -> float:
        """The offset of a plane changes by at most this where the slope of a row changes by 1."""

    @property
    def supports(self) -> LossSupports: ...

    def value(self, scores: Vector) -> float:
        """The loss of the scores."""

    def precise(self, scores: Vector, rest: Vector, error: float = 0.0) -> float:
        """The loss of scores + rest, to the last digits even of rows on the margin.

        With an error: no less than the loss of any scores that differ from these by it at most.
        """

    def change(self, value: float, shift: float) -> float:
        """How much the loss, which is `value`, changes at most if no score changes by more than `shift`.

        With several scores for each row, or pairs of rows: if no difference of two scores does.
        """

    def line(self, scores: Vector, to: Vector | None = None) -> Line:
        """The loss along the line from `scores` towards `to` (at k = 1), or with k added to all scores."""


class RowLoss(Loss, Protocol):
    """A loss with one score, and so one slope, for each row."""

    def slopes(self, scores: Vector, bounds: Ints, out: Vector, *, balanced: bool) -> Heights:
        """out = slopes g at the scores; returns the offsets of the ranges between bounds: loss = offset + g . scores.

        balanced: they sum to 0, if the scores are those of the best intercept.
        """

    def best_shift(self, scores: Vector) -> float:
        """argmin over k of the loss of scores + k, in the middle where that is a plateau."""


class DualLoss(RowLoss, Protocol):
    """A loss with one dual variable for each row; see core/row_losses.hpp, where `rows` is from."""

    @property
    def rows(self) -> core.RowLoss: ...

    @property
    def row_weights(self) -> Vector:
        """s_i, with two classes y_i s_i."""

    def dual_heights(self, g: Vector, bounds: Ints) -> Heights:
        """The largest offsets for which offset + g . f is nowhere above the loss, by ranges between bounds."""

    def take(self, rows: Ints, factors: Vector | None = None) -> DualLoss:
        """The loss of these rows alone, their weights times factors."""


class Curvatures(Protocol):
    """The second derivatives of a loss in the scores of each row."""

    diagonal: Vector  # in each score by itself

    def mixed(self, first: int, second: int) -> Vector:
        """Of each row, in two of its scores that are not the same, with the opposite sign: at least 0."""

    def product(self, change: Vector) -> Vector:
        """How the slopes change, to first order, with the scores; it may be written over `change`."""


class SmoothLoss(Loss, Protocol):
    """A loss with a continuous slope, and a second derivative almost everywhere."""

    def curvatures(self, scores: Vector) -> Curvatures:
        """The second derivatives at these scores."""

    def take(self, rows: Ints, factors: Vector | None = None) -> SmoothLoss:
        """The loss of these rows alone, their weights times factors."""


Own = TypeVar("Own", bound="GroupedLoss")


class GroupedLoss(Loss, Protocol):
    """A loss whose rows can be grouped by how surely they keep their slope; `cutsvm.solvers.sifting.working_set`
    says what for.

    Rows of one group have one label, and one linear function for their loss as long as they stay in it.
    """

    labels: int
    groups: int
    steepest: float  # the largest slope of a row, as a multiple of its weight

    @property
    def row_weights(self) -> Vector:
        """s_i, some of them with the sign of their label."""

    def distances(self, scores: Vector, rows: Ints) -> Vector:
        """How far each of these rows is from a change of its slope."""

    def sift(self, scores: Vector, band: float, group: Array) -> Ints:
        """group[i] = the row's group, or below 0; returns the rows within `band` of a change, which are KEPT."""

    def violators(self, scores: Vector, group: Array) -> Ints:
        """The rows that are in another group now."""

    def marks(self, scores: Vector, rows: Ints) -> Array:
        """For each of these rows a number: where the loss has a dual vector, 1.0 inside the margin and else 0.0."""

    def label_mask(self, label: int) -> Array:
        """Which rows have this label, and weight."""

    def label_totals(self) -> Vector:
        """The weight of each label's rows."""

    def part(self: Own, rows: slice) -> Own:
        """The loss of a run of rows, read where they are."""

    def take(self: Own, rows: Ints, factors: Vector | None = None) -> Own:
        """The loss of these rows alone, their weights times factors."""

    def target_sums(self, group: Array) -> Vector:
        """The sum of s_i t_i over each group, t_i the rows' targets; 0 where rows have none."""

    def of_groups(self: Own, groups: Ints, weights: Vector, targets: Vector) -> Own:
        """The loss of one row per group with this weight, and this target where rows have one."""

    def joined(self: Own, parts: list[Own]) -> Own:
        """The loss of all parts' rows, one after the other."""


class PiecewiseLoss(Protocol):
    """A sum over rows and over their hinges b of max(0, a_ib (t_ib - f_i)).

    steepness: the sum over rows of their largest |a_ib|. unit: how far scores usually are from breakpoints.
    """

    n: int
    steepness: float

    @property
    def unit(self) -> float: ...

    @property
    def lightest(self) -> float:
        """The smallest |a_ib| above 0; infinite if there is none."""

    def line(self, scores: Vector, to: Vector | None = None) -> BreakpointLine: ...

    def breakpoints(self, rows: slice, scores: Vector) -> tuple[Vector, Vector]:
        """The shifts t_ib - f_i that take rows to their breakpoints, and a_ib."""


MarginOwn = TypeVar("MarginOwn", bound="MarginLoss")


class MarginLoss(PiecewiseLoss, GroupedLoss, DualLoss, Protocol):
    """sum_i s_i max(0, 1 - y_i f_i) of two classes; `signed` is y_i s_i."""

    signed: Vector

    def of_signed(self: MarginOwn, signed: Vector) -> MarginOwn:
        """The loss of other rows, given their y_i s_i."""
