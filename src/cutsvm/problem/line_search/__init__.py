"""Searches along a line of scores, for the step mu that takes F down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cutsvm.problem.line_search.approximate import GCA, GCA2, TCA, Curve
from cutsvm.problem.line_search.breakpoints import Exact, exact, lowest
from cutsvm.problem.line_search.intercept import best_intercept
from cutsvm.problem.line_search.tangents import by_tangents

if TYPE_CHECKING:
    from cutsvm.problem.losses import Line

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
    """One is made for each run of a solver: a search may begin with what the last one has found."""

    def __call__(self, line: Line, tilt: float, curvature: float, base: float = 0.0) -> float:
        """A k in [0, 100] where f(k) = loss(f + k t) + base + tilt k + curvature k^2 / 2 is low; f(k) <= f(0).

        With base = |w|^2 / (2 C) at k = 0, f is F / C.
        """


SEARCHES: dict[str, type[Search]] = {"exact": Exact, "gca": GCA, "gca2": GCA2, "tca": TCA}
