"""A warning when `qid` seems to have been forgotten."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutsvm._utils import validation
from cutsvm._utils.types import Array
from cutsvm._utils.warn import warn


@dataclass(frozen=True)
class QueryHint:
    """When y looks like the relevance of rows of several queries.

    Relevance has few levels, whole numbers, each many times. One list of preferences has about as many levels as rows.
    """

    rows: int = 200  # at least
    levels: int = 10  # at most
    rows_per_level: int = 20  # at least
    sample: int = 10_000  # rows to look at: y may be on disk

    def applies(self, y: Array) -> bool:
        if len(y) < self.rows:
            return False
        levels = np.unique(y[:: -(-len(y) // self.sample)])
        few = len(levels) <= min(self.levels, len(y) // self.rows_per_level)
        return few and validation.whole_numbers(levels)


def warn_of_missing_queries(y: Array, hint: QueryHint | None = None) -> None:
    """Warns if y, given without queries, looks like the relevance of rows of several."""
    if (hint or QueryHint()).applies(y):
        # Without numbers of rows: a warning with the same text is shown once, also for the folds of a search.
        warn(
            "qid is missing, so that all rows are one query and are compared with each other; but y has a few levels "
            "for many rows, like the relevance of rows of several queries: give qid, one id for each row (in a file "
            "qid:ID after the label). If it is one query, say so with qid=np.zeros(len(y)), or take OrdinalSVC or "
            "ROCAreaSVC, which are for levels without queries"
        )
