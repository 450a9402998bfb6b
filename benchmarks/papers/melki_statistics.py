"""Whether a figure of the paper, which has one shuffle of the rows, may be one of ours; differences of settings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats


class Against(NamedTuple):
    """A figure of the paper among the results of our shuffles."""

    mean: float
    deviation: float  # standard deviation over the shuffles
    low: float
    high: float
    n: int
    below: int  # shuffles with a result below the figure
    above: int
    p: float  # of a new shuffle as far from the mean as the figure, two-sided, by Student's t; NaN for one shuffle

    @property
    def p_rank(self) -> float:
        """The same by ranks, without an assumption on the distribution."""
        nearer = self.n - max(self.below, self.above)
        return min(1.0, 2.0 * (nearer + 1) / (self.n + 1))


def against(figure: float, found: list[float]) -> Against:
    values = np.array(found)
    n, mean = len(values), float(values.mean())
    deviation = float(values.std(ddof=1)) if n > 1 else np.nan
    p = np.nan
    if n > 1:
        error = max(deviation, 1e-9) * np.sqrt(1.0 + 1.0 / n)
        p = 2.0 * float(stats.t.sf(abs(figure - mean) / error, n - 1))
    rounded = np.round(values, 2)  # as the paper prints them
    below, above = int((rounded < figure).sum()), int((rounded > figure).sum())
    return Against(mean, deviation, float(values.min()), float(values.max()), n, below, above, p)


def combined(ps: list[float]) -> float:
    """Fisher's: the probability of p-values as small as these, if all the figures are of our distributions."""
    known = [p for p in ps if not np.isnan(p)]
    return float(stats.combine_pvalues(known).pvalue) if known else np.nan


class Paired(NamedTuple):
    """Differences of two settings over the same shuffles."""

    mean: float
    error: float  # standard error
    p: float  # of the paired t-test, two-sided
    n: int


def paired(one: list[float], two: list[float]) -> Paired:
    """One minus two."""
    differences = np.array(one) - np.array(two)
    n = len(differences)
    error = float(differences.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan
    p = np.nan
    if n > 1:
        p = 1.0 if not differences.any() else float(stats.ttest_1samp(differences, 0.0).pvalue)
    return Paired(float(differences.mean()) if n else np.nan, error, p, n)


def sign_test(wins: int, n: int) -> float:
    """The probability, two-sided, of a split as uneven as this one between two equals."""
    return float(stats.binomtest(wins, n).pvalue)


def chance(p: float) -> str:
    """A p-value as tables print it."""
    if np.isnan(p):
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"
