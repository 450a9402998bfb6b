"""solver="auto": which algorithm for which data, and why.

The rules, and what they are made from (`benchmarks/results/binary.md`; seconds to a certified gap of 1e-3, two cores,
at C n = 1e2, 1e4, 1e6; n rows, d features; -: not within three times the time of auto, or not measured):

    set         n        d       ocas                sifting             dcd
    covtype     581,012  54      0.17   0.3    0.41  0.095  0.15   0.28  0.14   0.26   -
    kdd04_bio   145,751  74      0.083  0.14   0.2   0.039  0.074  0.11  0.18   0.22   -
    ijcnn1      49,990   22      0.025  0.053  0.064 0.018  0.025  0.033 0.013  0.025  0.5
    a9a         32,561   123     0.028  0.09   0.2   0.023  0.11   0.43  0.01   0.061  -
    w8a         49,749   300     0.035  0.13   0.96  0.033  0.2    1     0.025  0.084  -
    mnist       60,000   784     0.27   0.83   4.4   0.13   0.61   4.6   0.13   1      -
    arxiv       250,000  59,366  0.35   0.46   4.2   0.3    0.53   4.4   0.21   0.27   2.4

0. Few rows: ocas. All are quick, and with one shard it is the one whose answer is the same, to the last digits, for a
   row of weight k and for k such rows.
1. Many rows for each feature, and many rows: sifting around ocas. A sample tells nearly all, few rows are near the
   margin, and passes over the data are what costs.
2. Otherwise coordinate descent, as long as C is small enough for it: one step moves alpha_i by about 1 / |x_i|^2 on its
   way to C s_i, so that its epochs grow with C s |x|^2. That is 4.3 for a9a at C n = 1e4, 17 for mnist, 4 for arxiv at
   1e6, 40 and more for the others there.
3. Otherwise sifting again if there are many rows for each feature, though not so many in all (ijcnn1, mnist at 1e4);
   and more of them where C |x|^2 is so large that most rows are near the margin (mnist and w8a at 1e6).
4. Otherwise ocas.

Several classes in one problem (Crammer and Singer) have no coordinate descent here: rule 1 with K features for each,
else ocas (`benchmarks/results/multiclass.md`).

Rows on disk: sifting wherever it can be done at all, since a pass reads the disk; else ocas.

Dense data that are mostly zeros are swept as sparse by 2 and 4, which read them often.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cutsvm.losses import CrammerSinger
from cutsvm.planes import Bundle
from cutsvm.risk import Risk
from cutsvm.rows import DenseRows, SparseRows, StoreRows
from cutsvm.run import Iterate, Solver
from cutsvm.sifted import can_sift
from cutsvm.solvers.dcd import DCD
from cutsvm.solvers.ocas import OCAS
from cutsvm.solvers.sifting import Sifting, pays
from cutsvm.types import Vector

SHORT = 4_000  # rows up to which it does not matter
LONG = 100_000  # rows from which sifting pays,
THIN = 300  # if there are so many of them for each feature;
# The same where coordinate descent would be slow: so many rows, and so many for each feature up to HARD, or beyond it.
MEDIUM, THINNER, HARD, THINNEST = 40_000, 70, 100.0, 1000
EASY = 8.0  # the mean of C s_i times the mean of |x_i|^2 up to which coordinate descent is quick
SAMPLE = 1000  # rows that |x_i|^2 is measured on


@dataclass(frozen=True)
class Auto:
    """Chooses among OCAS with and without sifting and DCD."""

    def __call__(
        self, risk: Risk, C: float, bundle: Bundle | None = None, *, start: Vector | None = None, aim: float = 0.0
    ) -> Iterator[Iterate]:
        solver, note = choose(risk, C)
        if not isinstance(solver, Sifting) and isinstance(risk.rows, DenseRows):
            risk.rows = risk.rows.fast()
        for iterate in solver(risk, C, bundle, start=start, aim=aim):
            yield replace(iterate, note=note)


def choose(risk: Risk, C: float) -> tuple[Solver, str]:
    """The solver, and the reason in a few words."""
    rows, n, d = risk.rows, risk.rows.n, risk.rows.d
    if not can_sift(risk):
        return OCAS(), "ocas: it takes any data and any loss"
    if n < SHORT:
        return OCAS(), f"ocas: {n:,} rows are few"
    if isinstance(rows, StoreRows):
        if pays(risk):
            return Sifting(), f"sifting: {n:,} rows on disk, of which few are needed in memory"
        return OCAS(), f"ocas: {n:,} rows on disk are too few for sifting with {risk.size:,} coordinates"
    if isinstance(risk.loss, CrammerSinger):
        return choose_many(risk)
    if n >= max(LONG, THIN * d):
        return Sifting(), f"sifting: {n:,} rows of only {d:,} features, so few rows decide"
    assert isinstance(rows, (DenseRows, SparseRows))
    hard = C * risk.loss.total / n * mean_square(rows)
    if hard <= EASY:
        return DCD(), f"dcd: C |x|^2 is {hard:.2g} in the mean, so it takes few epochs"
    if n >= max(MEDIUM, (THINNER if hard <= HARD else THINNEST) * d):
        return Sifting(), f"sifting: {n:,} rows of only {d:,} features, and C |x|^2 is {hard:.2g}, too much for dcd"
    return OCAS(), f"ocas: C |x|^2 is {hard:.2g} in the mean, too much for dcd, and too few rows for sifting"


def choose_many(risk: Risk) -> tuple[Solver, str]:
    """The same for several classes together, which coordinate descent does not do."""
    n, size, classes = risk.rows.n, risk.size, risk.outputs
    if n >= max(LONG, THIN * size):
        return Sifting(), f"sifting: {n:,} rows, {size:,} coordinates of {classes} classes, so few rows decide"
    return OCAS(), f"ocas: {n:,} rows are too few for sifting with {size:,} coordinates of {classes} classes"


def mean_square(rows: DenseRows | SparseRows) -> float:
    """The mean of |x_i|^2, on some rows spread over all."""
    some = rows.take(np.unique(np.linspace(0, rows.n - 1, SAMPLE).astype(np.int64)))
    squares = np.empty(some.n)
    some.squares(squares)
    return float(squares.mean())
