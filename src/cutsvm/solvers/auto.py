"""solver="auto": which algorithm for which data, and why.

The rules, and what they are made from (`benchmarks/binary.py`; seconds to a certified gap of 1e-3, two cores, at
C n = 1e2, 1e4, 1e6; n rows, d features):

    set         n        d       ocas              sifting           dcd
    covtype     581,012  54      0.17  0.28  0.37  0.08  0.16  0.24  0.21  0.43  -
    kdd04_bio   145,751  74      0.07  0.11  0.18  0.03  0.05  0.09  0.09  0.14  3.4
    ijcnn1      49,990   22      0.02  0.05  0.05  0.04  0.05  0.07  0.01  0.02  0.44
    a9a         32,561   123     0.02  0.07  0.22  0.04  0.20  0.78  0.01  0.05  2.3
    w8a         49,749   300     0.03  0.11  0.79  0.08  0.40  2.1   0.02  0.08  2.9
    mnist       60,000   784     0.14  0.44  2.6   0.17  0.88  5.8   0.11  0.91  -
    arxiv       250,000  59,366  0.22  0.43  3.6   0.16  0.60  -     0.13  0.21  2.6

0. Few rows: ocas. All are quick, and with one shard it is the one whose answer is the same, to the last digits, for a
   row of weight k and for k such rows.
1. Many rows for each feature, and many rows: sifting around ocas. A sample tells nearly all, few rows are near the
   margin, and passes over the data are what costs.
2. Otherwise coordinate descent, as long as C is small enough for it: one step moves alpha_i by about 1 / |x_i|^2 on its
   way to C s_i, so that its epochs grow with C s |x|^2. That is 4.3 for a9a at C n = 1e4, 17 for mnist, 4 for arxiv at
   1e6, 40 and more for the others there.
3. Otherwise ocas.

Dense data that are mostly zeros are swept as sparse by 2 and 3, which read them often.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cutsvm.losses import Hinge
from cutsvm.planes import Bundle
from cutsvm.risk import Risk
from cutsvm.rows import DenseRows, SparseRows
from cutsvm.run import Iterate, Solver
from cutsvm.solvers.dcd import DCD
from cutsvm.solvers.ocas import OCAS
from cutsvm.solvers.sifting import Sifting
from cutsvm.types import Vector

SHORT = 4_000  # rows up to which it does not matter
LONG = 100_000  # rows from which sifting pays,
THIN = 300  # if there are so many of them for each feature
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
    if not isinstance(rows, (DenseRows, SparseRows)) or not isinstance(risk.loss, Hinge):
        return OCAS(), "ocas: it takes any data and any loss"
    if n < SHORT:
        return OCAS(), f"ocas: {n:,} rows are few"
    if n >= max(LONG, THIN * d):
        return Sifting(), f"sifting: {n:,} rows of only {d:,} features, so few rows decide"
    hard = C * risk.loss.total / n * mean_square(rows)
    if hard <= EASY:
        return DCD(), f"dcd: C |x|^2 is {hard:.2g} in the mean, so it takes few epochs"
    return OCAS(), f"ocas: C |x|^2 is {hard:.2g} in the mean, too much for dcd, and too few rows for sifting"


def mean_square(rows: DenseRows | SparseRows) -> float:
    """The mean of |x_i|^2, on some rows spread over all."""
    some = rows.take(np.unique(np.linspace(0, rows.n - 1, SAMPLE).astype(np.int64)))
    squares = np.empty(some.n)
    some.squares(squares)
    return float(squares.mean())
