"""The reduced problem: our interior point method, compiled and with LAPACK, beside quadratic programming libraries.

Runs OCAS on synthetic data of several shapes and C, keeps reduced problems from the middle and the end of each run,
and solves them again with every solver to the same relative gap (1e-4 of the objective), from a cold start.
Every answer is judged by one function: its weights are made feasible, and the gap between the primal and the dual value
that follow from them is computed here. Writes results/reduced.csv and results/reduced.md.

    python benchmarks/reduced.py [--repeat 3] [--limit 20]
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from scipy import sparse

from cutsvm._utils.threads import one_blas_thread
from cutsvm.matrix import as_rows
from cutsvm.problem.losses import Hinge
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Intercept
from cutsvm.qp.problem import ReducedProblem
from cutsvm.solvers import OCAS
from cutsvm.solvers.protocol import new_context

RESULTS = Path(__file__).parent / "results"
GAP = 1e-4


@dataclass(frozen=True)
class Case:
    """One reduced problem: max C o.x - C^2 |A'x|^2/2, x >= 0, sums over shards <= 1."""

    name: str
    A: np.ndarray
    o: np.ndarray
    shard: np.ndarray
    C: float

    @cached_property
    def tol(self) -> float:
        """GAP as an absolute tolerance."""
        return GAP * ReducedProblem(self.A, self.o, self.shard, 0).solve(self.C, 0.0).value

    def gap(self, x: np.ndarray) -> float:
        """Relative gap of the answer that the weights x stand for, once they are feasible."""
        x = np.maximum(x, 0.0)
        x = x / np.maximum(1.0, np.bincount(self.shard, weights=x))[self.shard]
        w = -self.C * (x @ self.A)
        heights = self.A @ w + self.o
        tops = np.zeros(self.shard.max() + 1)
        np.maximum.at(tops, self.shard, heights)
        primal = 0.5 * w @ w + self.C * tops.sum()
        return float((primal - (self.C * self.o @ x - 0.5 * w @ w)) / primal)


def cases() -> list[Case]:
    """Reduced problems of runs on data that overlap: narrow and wide, few and many planes, easy and hard C."""
    found = []
    for n, d, shards in ((20_000, 20, 1), (20_000, 20, 64), (20_000, 200, 1), (20_000, 200, 16), (5_000, 3_000, 1)):
        rng = np.random.default_rng(d + shards)
        X = rng.normal(size=(n, d)) * rng.uniform(0.1, 1.0, size=d)
        y = np.where(X @ rng.normal(size=d) + rng.normal(size=n) * np.sqrt(d) / 3 > 0, 1.0, -1.0)
        for Cn in (1e2, 1e6):
            found += _record(f"d={d} shards={shards} Cn={Cn:g}", X, y, Cn / n, shards)
    return found


def _record(name: str, X: np.ndarray, y: np.ndarray, C: float, shards: int) -> list[Case]:
    oracle = Oracle(as_rows(X), Hinge(y), intercept=Intercept.NONE)
    solver = OCAS(shards=shards)
    context = new_context(solver, oracle, [C])
    bundle = context.bundle
    kept: list[Case] = []
    for step, iterate in enumerate(solver(context, C)):
        if iterate.gap < 1e-4 or step > 150:
            break
        kept.append(Case(name, bundle.slopes.copy(), bundle.offsets.copy(), bundle.shard.copy(), C))
    return [
        Case(f"{name} {where} ({len(case.o)} planes)", case.A, case.o, case.shard, C)
        for where, case in (("middle", kept[len(kept) // 2]), ("end", kept[-1]))
    ]


def _ours(case: Case) -> ReducedProblem:
    gram = case.A @ case.A.T if len(case.o) <= case.A.shape[1] else None
    return ReducedProblem(case.A, case.o, case.shard, 0, gram)


def by_cutsvm(case: Case) -> np.ndarray:
    return _ours(case).compiled(case.C, case.tol).weights


def by_cutsvm_lapack(case: Case) -> np.ndarray:
    return _ours(case).lapack(case.C, case.tol).weights


def _dual(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """H, member: min x.Hx/2 - o.x, x >= 0, member.T x <= 1, scaled so that H is C A A'."""
    member = (case.shard[:, None] == np.unique(case.shard)[None, :]).astype(float)
    return case.C * case.A @ case.A.T, -case.o, member


def by_quadprog(case: Case) -> np.ndarray:
    import quadprog

    H, q, member = _dual(case)
    m = len(q)
    H = H + 1e-10 * np.trace(H) / m * np.eye(m)  # it wants a positive definite matrix
    sides = np.concatenate([np.zeros(m), -np.ones(member.shape[1])])
    return quadprog.solve_qp(H, -q, np.hstack([np.eye(m), -member]), sides)[0]


def by_daqp(case: Case) -> np.ndarray:
    import daqp

    H, q, member = _dual(case)
    m, p = member.shape
    upper = np.concatenate([np.full(m, 1.0), np.ones(p)])
    lower = np.concatenate([np.zeros(m), np.full(p, -1e30)])
    H = H + 1e-10 * np.trace(H) / m * np.eye(m)
    return daqp.solve(H, q, np.ascontiguousarray(member.T), upper, lower, np.zeros(m + p, dtype=np.int32))[0]


def by_piqp(case: Case) -> np.ndarray:
    import piqp

    H, q, member = _dual(case)
    m, p = member.shape
    solver = piqp.DenseSolver()
    solver.settings.eps_rel, solver.settings.eps_abs = 1e-6, 1e-9
    solver.setup(H, q, None, None, member.T, np.full(p, -1e30), np.ones(p), np.zeros(m), np.full(m, 1e30))
    solver.solve()
    return np.asarray(solver.result.x)


def by_piqp_primal(case: Case) -> np.ndarray:
    """The primal with w and one xi per shard: smaller where there are many planes and few features."""
    import piqp

    m, d = case.A.shape
    p = case.shard.max() + 1
    root = np.sqrt(case.C)  # w = root v: the objective is |v|^2/2 + sum of xi
    P = np.zeros((d + p, d + p))
    P[np.arange(d), np.arange(d)] = 1.0
    c = np.concatenate([np.zeros(d), np.ones(p)])
    member = (case.shard[:, None] == np.arange(p)[None, :]).astype(float)
    G = np.hstack([root * case.A, -member])
    low = np.concatenate([np.full(d, -1e30), np.zeros(p)])
    solver = piqp.DenseSolver()
    solver.settings.eps_rel, solver.settings.eps_abs = 1e-6, 1e-9
    solver.setup(P, c, None, None, G, np.full(m, -1e30), -case.o, low, np.full(d + p, 1e30))
    solver.solve()
    return np.asarray(solver.result.z_u)


def by_clarabel(case: Case) -> np.ndarray:
    """The primal again, with sparse algebra."""
    import clarabel

    m, d = case.A.shape
    p = case.shard.max() + 1
    P = sparse.block_diag([sparse.eye(d), sparse.csc_matrix((p, p))], format="csc")
    c = np.concatenate([np.zeros(d), np.ones(p)])
    member = sparse.csc_matrix((np.ones(m), (np.arange(m), case.shard)), shape=(m, p))
    G = sparse.vstack(
        [
            sparse.hstack([np.sqrt(case.C) * case.A, -member]),
            sparse.hstack([sparse.csc_matrix((p, d)), -sparse.eye(p)]),
        ],
        format="csc",
    )
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_feas = 1e-6
    cone = [clarabel.NonnegativeConeT(m + p)]
    solution = clarabel.DefaultSolver(P, c, G, np.concatenate([-case.o, np.zeros(p)]), cone, settings).solve()
    return np.array(solution.z)[:m]


SOLVERS: dict[str, Callable[[Case], np.ndarray]] = {
    "cutsvm": by_cutsvm,
    "cutsvm, LAPACK": by_cutsvm_lapack,
    "quadprog": by_quadprog,
    "daqp": by_daqp,
    "piqp": by_piqp,
    "piqp, primal": by_piqp_primal,
    "clarabel, primal": by_clarabel,
}


def measure(case: Case, solve: Callable[[Case], np.ndarray], repeat: int) -> tuple[float, float]:
    """Median seconds, and the gap reached."""
    assert case.tol > 0.0  # known before the clock starts
    seconds, gap = [], np.nan
    for _ in range(repeat):
        began = perf_counter()
        x = solve(case)
        seconds.append(perf_counter() - began)
        gap = case.gap(x)
        if seconds[-1] > 2.0:
            break
    return median(seconds), gap


def milliseconds(seconds: float) -> str:
    """Two digits."""
    return np.format_float_positional(1e3 * seconds, precision=2, fractional=False, trim="-") + " ms"


def table(rows: list[dict[str, object]]) -> str:
    names = list(SOLVERS)
    lines = ["| reduced problem | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for problem in dict.fromkeys(row["problem"] for row in rows):
        cells = []
        for name in names:
            row = next((r for r in rows if r["problem"] == problem and r["solver"] == name), None)
            cells.append(row["cell"] if row else "-")
        lines.append(f"| {problem} | " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--limit", type=float, default=20.0, help="seconds after which a solver is left out")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    tired: set[str] = set()
    with one_blas_thread():
        problems = cases()
        for solve in SOLVERS.values():  # imports are not timed
            with suppress(Exception):
                solve(problems[0])
        for case in problems:
            for name, solve in SOLVERS.items():
                if name in tired:
                    continue
                try:
                    seconds, gap = measure(case, solve, options.repeat)
                except Exception as error:  # a library that gives up is a result too
                    rows.append({"problem": case.name, "solver": name, "cell": f"failed: {error}"[:40]})
                    continue
                good = gap <= 2 * GAP
                cell = milliseconds(seconds) if good else f"({milliseconds(seconds)}, gap {gap:.0e})"
                rows.append({"problem": case.name, "solver": name, "seconds": seconds, "gap": gap, "cell": cell})
                print(f"{case.name:45s} {name:18s} {cell}", flush=True)
                if seconds > options.limit:
                    tired.add(name)
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "reduced.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["problem", "solver", "seconds", "gap"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    (RESULTS / "reduced.md").write_text(table(rows))


if __name__ == "__main__":
    main()
