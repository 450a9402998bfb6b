"""Searches along a line of scores, for the step mu that takes F down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cutsvm.problem.line_search.approximate import GCA, GCA2, SETTINGS, TCA, ArnostiSettings, Curve
from cutsvm.problem.line_search.breakpoints import Exact, exact, lowest
from cutsvm.problem.line_search.tangents import by_tangents

if TYPE_CHECKING:
    from cutsvm.problem.losses import Line

__all__ = [
    "GCA",
    "GCA2",
    "SEARCHES",
    "TCA",
    "ArnostiSettings",
    "Curve",
    "Exact",
    "Search",
    "by_tangents",
    "exact",
    "lowest",
    "new_search",
]


class Search(Protocol):
    """One is made for each run of a solver: a search may begin with what the last one has found."""

    def __call__(self, line: Line, tilt: float, curvature: float, base: float = 0.0) -> float:
        """A k in [0, 100] where f(k) = loss(f + k t) + base + tilt k + curvature k^2 / 2 is low.

        f(k) <= f(0) unless the search was told not to be safe. With base = |w|^2 / (2 C) at k = 0, f is F / C.
        """


APPROXIMATE: dict[str, type[GCA] | type[GCA2] | type[TCA]] = {"gca": GCA, "gca2": GCA2, "tca": TCA}
SEARCHES: dict[str, type[Search]] = {"exact": Exact, "gca": GCA, "gca2": GCA2, "tca": TCA}


def new_search(
    name: str, settings: ArnostiSettings = SETTINGS, *, safe: bool = True, first_step: float = 1.0
) -> Search:
    """The search of this name; settings, safe and first_step are for the approximate ones."""
    if name in APPROXIMATE:
        return APPROXIMATE[name](settings, safe=safe, first_step=first_step)
    return SEARCHES[name]()
