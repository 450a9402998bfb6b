"""solver="auto": which algorithm for which data, and why. `docs/solvers.md` has the measurements behind the rules.

0. Text, which is sparse rows with more features than rows: coordinate descent at any C. Not so with dense rows: their
   features are correlated, and dcd takes up to 40 times as long as ocas.
   Else few rows: ocas. All are quick, and with one shard it is the one whose answer is the same, to the last digits,
   for a row of weight k and for k such rows.
1. Many rows for each feature, and many rows: sifting around ocas. A sample determines nearly all, few rows are near the
   margin, and passes over the data are the cost.
2. Otherwise coordinate descent, as long as C is small enough for it: one step moves alpha_i by about 1 / |x_i|^2 on its
   way to C s_i, so that its epochs grow with C s |x|^2.
3. Otherwise sifting again if there are many rows for each feature, though fewer in all; and more of them where
   C |x|^2 is so large that most rows are near the margin.
4. Otherwise ocas.

Several classes in one problem (Crammer and Singer) have no coordinate descent here: rule 1 with K features for each,
else ocas. Pairs: ocas that cuts at its best point. An evaluation takes a sort, and there the line search has made it
already. With few rows that point is a breakpoint, where round-off would choose the plane.

Losses with second derivatives: newton where these are a matrix of few features; else coordinate descent for text and
where C is small, and newton with conjugate gradients. That one for pairs, which have no dual variables by row.

Rows in parts, on other machines: sifting where few rows can represent all and the client has room for those near the
margin, since it takes four readings of the data; else batched cutting planes. But sparse rows of very many features,
unless each has hundreds of rows: local dual descent, where a round returns two planes of a shard and not one for each
of many points.

Rows on disk, of two classes or more: sifting wherever few rows can represent all (`Sifting.pays`), since a pass reads
the disk; else ocas.

Dense data that are mostly zeros are stored as sparse by 2 and 4, which read them often.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from cutsvm.matrix import RowsInMemory
from cutsvm.problem.losses import PiecewiseLoss
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Intercept
from cutsvm.solvers.accpm.solver import ACCPM
from cutsvm.solvers.cpa import CPA
from cutsvm.solvers.dcd import DCD
from cutsvm.solvers.line_batches import Batched
from cutsvm.solvers.local_dual import LocalDual
from cutsvm.solvers.newton import Newton
from cutsvm.solvers.ocas import OCAS
from cutsvm.solvers.protocol import FitContext, Iterate, PathOrder, Solver, SolverBase
from cutsvm.solvers.sifting.solver import Sifting

__all__ = ["Auto", "AutoSettings", "resolve"]


@dataclass(frozen=True)
class AutoSettings:
    """Where the rules change.

    few_rows: up to which the choice does not matter.
    text_features, text_density: features from which rows may be text, and the largest share of non-zeros of text.
    wide_features: the same where rows are in parts, and there may be more of them than features.
    sifting_rows, sifting_ratio: sifting pays from this number of rows on, if each feature has this number of them;
    medium_rows, medium_ratio, hard_ratio: the same where coordinate descent would be slow, up to `hard` and beyond it.
    easy_smooth: the same as `easy` for losses with second derivatives, whose dual variables have no corners to go to.
    easy, hard: the mean of C s_i times the mean of |x_i|^2 up to which coordinate descent is quick, and slow. With a
        regularised intercept, which is the weight of a feature that is 1, the second mean is taken to be 1 at least.
    """

    few_rows: int = 4_000
    text_features: int = 1_000
    text_density: float = 0.05
    wide_features: int = 1 << 13
    sifting_rows: int = 100_000
    sifting_ratio: int = 300
    medium_rows: int = 40_000
    medium_ratio: int = 70
    hard_ratio: int = 1000
    easy: float = 8.0
    easy_smooth: float = 100.0
    hard: float = 100.0


@dataclass(frozen=True)
class Auto(SolverBase):
    """Chooses among OCAS with and without sifting and DCD; seed: of the one chosen, None is its own."""

    settings: AutoSettings = field(default=AutoSettings(), repr=False)
    sifting: Sifting = field(default=Sifting(), repr=False)
    seed: int | None = None

    @property
    def requires(self) -> frozenset[str]:
        return frozenset()

    def seeded(self, seed: int) -> Auto:
        return replace(self, seed=seed)

    def order_path(self, oracle: Oracle, Cs: Sequence[float]) -> PathOrder:
        """The order of the solver for the hardest C."""
        return self.choose(oracle, max(Cs))[0].order_path(oracle, Cs)

    def presolve(self, context: FitContext) -> Iterator[None]:
        """The same solver's."""
        return self.choose(context.oracle, max(context.Cs))[0].presolve(context)

    def __call__(self, context: FitContext, C: float) -> Iterator[Iterate]:
        solver, note = self.choose(context.oracle, C)
        if not isinstance(solver, Sifting):
            fast = context.oracle.with_fast_matrix()
            if fast is not context.oracle:
                context.replace_oracle(fast)
        context.note = note
        return solver(context, C)

    def choose(self, oracle: Oracle, C: float) -> tuple[Solver, str]:
        """The solver, and the reason in a few words."""
        solver, note = self._choose(oracle, C)
        return solver if self.seed is None else solver.seeded(self.seed), note

    def _choose(self, oracle: Oracle, C: float) -> tuple[Solver, str]:
        n, d, supports, rules = oracle.matrix.n, oracle.matrix.d, oracle.supports, self.settings
        if not supports.vectors:
            return self._choose_parted(oracle)
        if supports.smooth:
            return self._choose_smooth(oracle, C)
        if not supports.working_set and not supports.pairs:
            return OCAS(), "ocas: it takes any data and any loss"
        if supports.sparse and supports.dual and self.is_text(oracle):
            return DCD(), f"dcd: {n:,} sparse rows of {d:,} features"
        if n < rules.few_rows:
            return OCAS(), f"ocas: {n:,} rows are few"
        if supports.pairs:
            return OCAS(cut_at=0.0), "ocas: pairs; cuts at the best point, where the loss is known already"
        if supports.streaming:
            if self.sifting.pays(oracle):
                return self.sifting, f"sifting: {n:,} rows on disk, of which few are needed in memory"
            return OCAS(), f"ocas: {n:,} rows on disk are too few for sifting with {oracle.size:,} coordinates"
        if oracle.outputs > 1:
            return self._choose_multiclass(oracle)
        if n >= max(rules.sifting_rows, rules.sifting_ratio * d):
            return self.sifting, f"sifting: {n:,} rows of only {d:,} features, so few rows decide"
        return self._choose_by_hardness(oracle, C)

    def _choose_parted(self, oracle: Oracle) -> tuple[Solver, str]:
        """Rows in parts, of which a client sees sums."""
        n, size, supports = oracle.matrix.n, oracle.size, oracle.supports
        if supports.pairs:
            return Batched(), f"batched: pairs of {n:,} rows in parts"
        if supports.row_dual and self.is_wide(oracle):
            return LocalDual(), f"local_dual: {n:,} sparse rows of {oracle.matrix.d:,} features in parts"
        if supports.smooth:
            return Batched(), f"batched: a smooth loss, {n:,} rows in parts"
        if not self.sifting.pays(oracle):
            return Batched(), f"batched: {n:,} rows in parts are too few for sifting with {size:,} coordinates"
        share, room = self.sifting.share(oracle), self.sifting.room(oracle)
        if share <= room:
            many = round(share * n)
            return self.sifting, f"sifting: {n:,} rows in parts, of which about {many:,} come to the client"
        most = round(room * n)
        return Batched(), f"batched: {round(share * n):,} rows near the margin, and the client has room for {most:,}"

    def _choose_smooth(self, oracle: Oracle, C: float) -> tuple[Solver, str]:
        """Losses with second derivatives."""
        n, d, supports, rules = oracle.matrix.n, oracle.matrix.d, oracle.supports, self.settings
        newton = Newton()
        if not supports.scores and not newton.has_matrix(oracle):
            return OCAS(), f"ocas: {n:,} rows on disk of {d:,} features, too many for second derivatives"
        if not newton.has_matrix(oracle) and supports.dual:
            if supports.sparse and self.is_text(oracle):
                return DCD(), f"dcd: {n:,} sparse rows of {d:,} features"
            hard = C * oracle.loss.weight / n * cast("RowsInMemory", oracle.matrix).mean_square
            if hard <= rules.easy_smooth:
                return DCD(), f"dcd: C |x|^2 is {hard:.2g} on average, so it takes few epochs"
        return newton, f"newton: a smooth loss, {n:,} rows of {d:,} features"

    def _choose_by_hardness(self, oracle: Oracle, C: float) -> tuple[Solver, str]:
        n, d, rules = oracle.matrix.n, oracle.matrix.d, self.settings
        unit = cast("PiecewiseLoss", oracle.loss).unit  # of the scores: 1 for the margin of two classes
        square = cast("RowsInMemory", oracle.matrix).mean_square
        if oracle.intercept is Intercept.REGULARIZED:
            square = max(1.0, square)  # b is the weight of a feature that is 1
        hard = C * oracle.loss.weight / n * square / unit
        if hard <= rules.easy:
            return DCD(), f"dcd: C |x|^2 is {hard:.2g} on average, so it takes few epochs"
        if n >= max(rules.medium_rows, (rules.medium_ratio if hard <= rules.hard else rules.hard_ratio) * d):
            return (
                self.sifting,
                f"sifting: {n:,} rows of only {d:,} features, and C |x|^2 is {hard:.2g}, too much for dcd",
            )
        return OCAS(), f"ocas: C |x|^2 is {hard:.2g} on average, too much for dcd, and too few rows for sifting"

    def is_text(self, oracle: Oracle) -> bool:
        """Whether there are more features than rows, and few in each row."""
        matrix = oracle.matrix
        return matrix.d >= max(self.settings.text_features, matrix.n) and self._has_few_entries(oracle)

    def is_wide(self, oracle: Oracle) -> bool:
        """Whether sparse rows have too many features for planes at many points, and too few rows for sifting."""
        matrix, rules = oracle.matrix, self.settings
        wide = matrix.d >= rules.wide_features and matrix.n < rules.sifting_ratio * matrix.d
        return wide and oracle.supports.sparse and self._has_few_entries(oracle)

    def _has_few_entries(self, oracle: Oracle) -> bool:
        matrix = oracle.matrix
        return bool(matrix.entries <= self.settings.text_density * matrix.n * matrix.d)

    def _choose_multiclass(self, oracle: Oracle) -> tuple[Solver, str]:
        """The same for several classes in one problem, which coordinate descent does not do."""
        n, size, classes, rules = oracle.matrix.n, oracle.size, oracle.outputs, self.settings
        if n >= max(rules.sifting_rows, rules.sifting_ratio * size):
            return self.sifting, f"sifting: {n:,} rows, {size:,} coordinates of {classes} classes, so few rows decide"
        return OCAS(), f"ocas: {n:,} rows are too few for sifting with {size:,} coordinates of {classes} classes"


REGISTRY = {
    "auto": Auto,
    "ocas": OCAS,
    "cpa": CPA,
    "dcd": DCD,
    "sifting": Sifting,
    "accpm": ACCPM,
    "newton": Newton,
    "batched": Batched,
    "local_dual": LocalDual,
}


def resolve(solver: str | Solver) -> Solver:
    """The solver of that name with its default settings; a configured solver is what it is."""
    if not isinstance(solver, str):
        if isinstance(solver, Solver) and not isinstance(solver, type):
            return solver
        raise TypeError(
            f"solver: a name or a solver object (a class of its own derives from `SolverBase`) expected, got {solver!r}"
        )
    if solver in REGISTRY:
        fresh: Solver = REGISTRY[solver]()
        return fresh
    names = ", ".join(map(repr, REGISTRY))
    raise ValueError(f"solver={solver!r}: expected one of {names}, or a solver object")
