"""Searches along a line of scores, for the step mu that takes F down."""

from __future__ import annotations

from typing import Protocol, cast

from cutsvm.problem.line_search.approximate import GCA, GCA2, TCA, Curve
from cutsvm.problem.line_search.breakpoints import best_intercept, exact, lowest
from cutsvm.problem.line_search.tangents import by_tangents
from cutsvm.problem.losses import BreakpointLine, Line, PairLine

__all__ = [
    "GCA",
    "GCA2",
    "SEARCHES",
    "TCA",
    "Curve",
    "Exact",
    "Search",
    "best_intercept",
    "by_tangents",
    "exact",
    "lowest",
]


class Search(Protocol):
    """Made anew for each run of a solver: what one search has found, the next may begin with."""

    def __call__(self, line: Line, tilt: float, curvature: float, base: float = 0.0) -> float:
        """A k in [0, 100] where f(k) = loss(f + k t) + base + tilt k + curvature k^2 / 2 is low; f(k) <= f(0).

        With base = |w|^2 / (2 C) at k = 0, f is F / C.
        """


class Exact:
    """The exact search, or where kinks are too many to count one as good; each begins where the last one ended."""

    def __init__(self) -> None:
        self.last = 1.0

    def __call__(self, line: Line, tilt: float, curvature: float, base: float = 0.0) -> float:
        if hasattr(line, "crossing"):  # isinstance of a protocol takes as long as a sweep over few rows
            self.last = exact(cast("BreakpointLine", line), tilt, curvature, self.last)
            return self.last
        few = cast("PairLine", line).sample()
        guess = by_tangents(few, tilt, curvature, self.last) if few else 0.0
        k = by_tangents(line, tilt, curvature, guess or self.last)
        self.last = k or self.last
        return k


SEARCHES: dict[str, type[Search]] = {"exact": Exact, "gca": GCA, "gca2": GCA2, "tca": TCA}
