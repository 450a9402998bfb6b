"""solver="auto": which algorithm for which data, and why.

The rules, and what they are made from (`benchmarks/results/binary.md`; seconds to a certified gap of 1e-3, two cores,
at C n = 1e2, 1e4, 1e6; n rows, d features; -: not within three times the time of auto, or not measured):

    set         n        d       ocas                sifting             dcd
    covtype     581,012  54      0.16   0.25   0.28  0.087  0.16   0.21  0.13   0.36   -
    kdd04_bio   145,751  74      0.11   0.13   0.18  0.047  0.07   0.13  0.12   0.18   -
    ijcnn1      49,990   22      0.023  0.051  0.059 0.02   0.034  0.038 0.011  0.021  0.45
    a9a         32,561   123     0.026  0.079  0.21  0.024  0.15   0.48  0.009  0.047  -
    w8a         49,749   300     0.032  0.12   0.76  0.048  0.34   1.28  0.024  0.081  -
    mnist       60,000   784     0.19   0.5    2.7   0.12   0.52   4.3   0.12   0.81   -
    arxiv       250,000  59,366  0.21   0.31   2.6   0.22   0.31   2.7   0.16   0.2    2

0. Text, which is sparse rows with more features than rows: coordinate descent at any C. arxiv, 10,000 of its rows, C n
   = 1e5, 1e6, 1e7: dcd 0.13, 0.18, 0.28 s; ocas 5.1 s, and not in 8 s. 1,000 rows at 1e4: 0.03 and 2.3 s. Not so with
   dense rows: their features go together, and dcd takes up to 40 times as long as ocas (2,000 x 2,500 of rank 50).
   Else few rows: ocas. All are quick, and with one shard it is the one whose answer is the same, to the last digits,
   for a row of weight k and for k such rows.
1. Many rows for each feature, and many rows: sifting around ocas. A sample tells nearly all, few rows are near the
   margin, and passes over the data are what costs.
2. Otherwise coordinate descent, as long as C is small enough for it: one step moves alpha_i by about 1 / |x_i|^2 on its
   way to C s_i, so that its epochs grow with C s |x|^2. That is 4.3 for a9a at C n = 1e4, 17 for mnist, 4 for arxiv at
   1e6, 40 and more for the others there.
3. Otherwise sifting again if there are many rows for each feature, though not so many in all (ijcnn1, mnist at 1e4);
   and more of them where C |x|^2 is so large that most rows are near the margin (mnist and w8a at 1e6).
4. Otherwise ocas.

Several classes in one problem (Crammer and Singer) have no coordinate descent here: rule 1 with K features for each,
else ocas (`benchmarks/results/multiclass.md`). Pairs: ocas that cuts at its best point. An evaluation takes a sort, and
there the search has made it already; iterations are about as many as with the paper's 0.1, or fewer (bank32nh, two
levels, C = 1e4, gap 1e-3: 18 for 36, and 28 evaluations for 97). With few rows that point is a kink, where round-off
would choose the plane.

Rows on disk, of two classes or more: sifting wherever few rows can stand for all (`sifting.pays`), since a pass reads
the disk; else ocas.

Dense data that are mostly zeros are swept as sparse by 2 and 4, which read them often.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cutsvm._utils.types import Vector
from cutsvm.driver.path import prepare, scout
from cutsvm.driver.run import Iterate, Solver
from cutsvm.matrix import DenseRows, SparseRows, StoreRows
from cutsvm.problem.losses import CrammerSinger, Hinge, Pairwise
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.planes import Bundle
from cutsvm.solvers.dcd import DCD
from cutsvm.solvers.ocas import OCAS
from cutsvm.solvers.sifting.solver import Sifting, pays
from cutsvm.solvers.sifting.working_set import can_sift

SHORT = 4_000  # rows up to which it does not matter
WIDE, DENSE = 1_000, 0.05  # features from which rows may be text, and the most of them that a row of text has
LONG = 100_000  # rows from which sifting pays,
THIN = 300  # if there are so many of them for each feature;
# The same where coordinate descent would be slow: so many rows, and so many for each feature up to HARD, or beyond it.
MEDIUM, THINNER, HARD, THINNEST = 40_000, 70, 100.0, 1000
EASY = 8.0  # the mean of C s_i times the mean of |x_i|^2 up to which coordinate descent is quick


@dataclass(frozen=True)
class Auto:
    """Chooses among OCAS with and without sifting and DCD."""

    def prepare(self, oracle: Oracle, Cs: Sequence[float]) -> list[float]:
        """The way of the solver for the hardest C."""
        return prepare(choose(oracle, max(Cs))[0], oracle, Cs)

    def scout(self, oracle: Oracle, aim: float) -> Iterator[None]:
        """The same solver's."""
        assert oracle.trail is not None
        return scout(choose(oracle, max(oracle.trail.Cs))[0], oracle, aim)

    def __call__(
        self, oracle: Oracle, C: float, bundle: Bundle | None = None, *, start: Vector | None = None, aim: float = 0.0
    ) -> Iterator[Iterate]:
        solver, note = choose(oracle, C)
        if not isinstance(solver, Sifting) and isinstance(oracle.rows, DenseRows):
            oracle.rows = oracle.rows.fast()
        for iterate in solver(oracle, C, bundle, start=start, aim=aim):
            yield replace(iterate, note=note)


def choose(oracle: Oracle, C: float) -> tuple[Solver, str]:
    """The solver, and the reason in a few words."""
    rows, n, d = oracle.rows, oracle.rows.n, oracle.rows.d
    pairs = isinstance(oracle.loss, Pairwise)
    if not can_sift(oracle) and not pairs:
        return OCAS(), "ocas: it takes any data and any loss"
    if isinstance(rows, SparseRows) and isinstance(oracle.loss, Hinge) and is_text(rows):
        return DCD(), f"dcd: {n:,} sparse rows of {d:,} features"
    if n < SHORT:
        return OCAS(), f"ocas: {n:,} rows are few"
    if pairs:
        return OCAS(cut_at=0.0), "ocas: pairs; cuts at the best point, where the loss is known already"
    if isinstance(rows, StoreRows):
        if pays(oracle):
            return Sifting(), f"sifting: {n:,} rows on disk, of which few are needed in memory"
        return OCAS(), f"ocas: {n:,} rows on disk are too few for sifting with {oracle.size:,} coordinates"
    if isinstance(oracle.loss, CrammerSinger):
        return choose_many(oracle)
    if n >= max(LONG, THIN * d):
        return Sifting(), f"sifting: {n:,} rows of only {d:,} features, so few rows decide"
    assert isinstance(rows, (DenseRows, SparseRows))
    hard = C * oracle.loss.total / n * rows.mean_square
    if hard <= EASY:
        return DCD(), f"dcd: C |x|^2 is {hard:.2g} in the mean, so it takes few epochs"
    if n >= max(MEDIUM, (THINNER if hard <= HARD else THINNEST) * d):
        return Sifting(), f"sifting: {n:,} rows of only {d:,} features, and C |x|^2 is {hard:.2g}, too much for dcd"
    return OCAS(), f"ocas: C |x|^2 is {hard:.2g} in the mean, too much for dcd, and too few rows for sifting"


def is_text(rows: SparseRows) -> bool:
    """Whether there are more features than rows, and few in each row."""
    return bool(rows.d >= max(WIDE, rows.n) and rows.entries <= DENSE * rows.n * rows.d)


def choose_many(oracle: Oracle) -> tuple[Solver, str]:
    """The same for several classes together, which coordinate descent does not do."""
    n, size, classes = oracle.rows.n, oracle.size, oracle.outputs
    if n >= max(LONG, THIN * size):
        return Sifting(), f"sifting: {n:,} rows, {size:,} coordinates of {classes} classes, so few rows decide"
    return OCAS(), f"ocas: {n:,} rows are too few for sifting with {size:,} coordinates of {classes} classes"
