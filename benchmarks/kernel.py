"""Kernel machines with an RBF kernel: time to a relative gap, cutsvm and its peers in one run.

    python benchmarks/kernel.py                                       # everything: many hours on two cores
    python benchmarks/kernel.py --sets a9a,covtype --peers "sklearn SVC"
    python benchmarks/kernel.py --quick                               # 2,000 rows: under two minutes
    python benchmarks/kernel.py --report-only

Each fit has a process of its own and a limit of time. Our solvers run to every gap, until it is proved. A peer runs
with its default tolerance in all the ways in which it can be run (layouts, precisions, caches), then with other
tolerances in the fastest way. Fits that are stored already for this commit are skipped, unless with --again or if they
failed. See kernel_report.py for what is made of them.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from pathlib import Path
from typing import Any

import data
import kernel_data
import kernel_report
from binary import numbers, words
from kernel_data import Problem, Rows
from kernel_peers import PEERS, Ours, Peer, Setting, run
from peers import CORES
from provenance import commit, write_rows

FIELDS = [
    *"set n d classes setting C gamma intercept solver version variant tol threads".split(),
    *"limit status seconds rounds support objective dual test_error".split(),
    *"claimed_objective claimed_lower claimed_gap proved message".split(),
]
KEY = "set n C gamma intercept solver variant tol threads commit".split()
NUMBERS = {"n", "d", "classes", "threads", "rounds", "support"}
REALS = set("C gamma tol limit seconds objective dual test_error".split())
REALS |= {"claimed_objective", "claimed_lower", "claimed_gap"}
FULL_ROWS = 30_000  # rows up to which --most-seconds holds; beyond, it grows with the rows
VARIANT_PATIENCE = 3.0  # another way to run a peer gets this many times the seconds of the fastest, and at least
VARIANT_SECONDS = 5.0
LEAST_SECONDS = 8.0  # of a peer's fit, whatever ours has taken
SMALL_ROWS = 10_000  # rows up to which peers run with their tightest tolerance in any case
QUICK = {"sets": ["covtype", "a9a", "usps-10"], "rows": 2_000, "seconds": 5.0}
Row = dict[str, Any]


class Store:
    """The stored rows, written after every fit."""

    def __init__(self, path: Path, again: bool) -> None:
        self.path, self.again = path, again
        self.rows: list[Row] = read(path) if path.exists() else []
        self.fresh: set[tuple[Any, ...]] = set()

    def find(self, row: Row) -> Row | None:
        """The stored row of the same fit."""
        wanted = self.key(row)
        if self.again and wanted not in self.fresh:
            return None
        alike = (stored for stored in self.rows if self.key(stored) == wanted and stored["status"] != "error")
        return next(alike, None)

    def add(self, row: Row) -> None:
        wanted = self.key(row)
        self.rows = [stored for stored in self.rows if self.key(stored) != wanted] + [row]
        self.fresh.add(wanted)
        write_rows(self.path, FIELDS, self.rows)

    @staticmethod
    def key(row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in KEY)


def read(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        return [{name: parsed(name, text) for name, text in row.items()} for row in csv.DictReader(file)]


def parsed(name: str, text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    if not text or name not in NUMBERS | REALS:
        return text
    return int(text) if name in NUMBERS else float(text)


class Benchmark:
    """All fits of one problem."""

    def __init__(self, problem: Problem, rows: Rows, store: Store, options: Any) -> None:
        self.problem, self.rows, self.store, self.options = problem, rows, store, options
        self.limit = options.most_seconds * max(1.0, rows.n / FULL_ROWS)
        self.many = len(rows.classes) > 2

    def run(self, solvers: list[Ours], peers: list[Peer]) -> None:
        # Only where a peer without intercept is run do ours solve that problem as well.
        without = not self.many and any(False in peer.intercepts for peer in peers)
        for solver in solvers:
            for intercept in solver.intercepts:
                if intercept or without or solver.intercepts == (False,):
                    self.descend(solver, intercept)
        self.limit = min(self.limit, self.patience())
        for peer in peers:
            if peer.many_classes or not self.many:
                self.climb(peer)

    def patience(self) -> float:
        """Seconds that peers get: a multiple of what our first solver has taken, if it got there."""
        name = f"cutsvm {self.options.solver[0]}" if self.options.solver else ""
        mine = (self.problem.set, self.rows.n, self.problem.setting, name)
        fits = [row for row in self.store.rows if (row["set"], row["n"], row["setting"], row["solver"]) == mine]
        taken = [row["seconds"] for row in fits if row["status"] == "ok"]
        return max(LEAST_SECONDS, self.options.patience * max(taken)) if taken else self.limit

    def descend(self, solver: Ours, intercept: bool) -> None:
        """Run one of ours from gap to gap, until one is not proved in time."""
        setting = solver.variants(self.rows)[0] | {"intercept": intercept}
        if self.hopeless(solver):
            return
        for gap in sorted(self.options.gaps, reverse=True):
            if self.fit(solver, setting | {"tol": gap})["status"] != "ok":
                break

    def climb(self, peer: Peer) -> None:
        """Run a peer in its ways with its default tolerance, and the fastest way with the other tolerances."""
        if self.hopeless(peer):
            return
        best: Row = {}
        variants = [setting | {"intercept": peer.intercepts[0]} for setting in peer.variants(self.rows)]
        chosen = variants[0]
        for setting in variants[: self.options.variants]:
            patience = VARIANT_PATIENCE * best["seconds"] if best else self.limit
            row = self.fit(peer, setting | {"tol": peer.first_tol}, max(VARIANT_SECONDS, patience))
            if row["status"] == "ok" and (not best or row["seconds"] < best["seconds"]):
                best, chosen = row, setting
            elif not best and row["status"] == "limit":
                break  # the other ways are hardly that much faster
        loosest, *middle = peer.other_tols
        if not best and max(self.options.gaps) < max(kernel_report.GAPS):
            return  # nor will a looser tolerance get there in time
        self.fit(peer, chosen | {"tol": loosest})
        if self.options.quick or not best:
            return
        for tol in middle:
            self.fit(peer, chosen | {"tol": tol})
        if self.rows.n <= SMALL_ROWS or self.distance(best) > min(self.options.gaps):
            self.fit(peer, chosen | {"tol": peer.tight_tol})

    def distance(self, row: Row) -> float:
        """The distance of an answer from the best lower bound so far."""
        problem = kernel_report.problem_of(row)
        alike = [stored for stored in self.store.rows if kernel_report.problem_of(stored) == problem]
        return kernel_report.distance(row, kernel_report.lower_bound(alike))

    def hopeless(self, peer: Peer) -> bool:
        """Whether the solver had no answer in time for fewer of these rows."""
        same = [
            row
            for row in self.store.rows
            if (row["set"], row["setting"], row["solver"]) == (self.problem.set, self.problem.setting, peer.name)
            and row["n"] < self.rows.n
            and row["commit"] == commit()
        ]
        if not same:
            return False
        largest = max(row["n"] for row in same)
        return all(row["status"] == "limit" for row in same if row["n"] == largest)

    def fit(self, peer: Peer, setting: Setting, limit: float | None = None) -> Row:
        """One fit, or the stored one."""
        p, limit = self.problem, min(limit or self.limit, self.limit)
        variant = {key: value for key, value in setting.items() if key not in ("tol", "intercept")}
        row: Row = dict.fromkeys([*FIELDS, "commit"], "")
        row |= {"set": p.set, "n": self.rows.n, "d": int(self.rows.X.shape[1]), "classes": len(self.rows.classes)}
        row |= {"setting": p.setting, "C": p.C, "gamma": p.gamma, "intercept": setting["intercept"]}
        row |= {"solver": peer.name, "version": peer.version(), "variant": json.dumps(variant), "tol": setting["tol"]}
        row |= {"threads": self.options.threads, "commit": commit(), "limit": limit}
        if stored := self.store.find(row):
            return stored
        row |= run(peer, self.rows, p, setting, limit, self.options)
        self.store.add(row)
        far = f"{self.distance(row):8.1e}" if row["objective"] != "" else "       -"
        where = f"{p.set} {self.rows.n} {p.setting} {peer.name} tol {setting['tol']:g} {variant}"
        print(f"{row['status']:6} {row['seconds'] or 0.0:9.3f} s  distance {far}  {where} {row['message']}", flush=True)
        return row


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--sets", type=words, help=f"comma-separated; default: {','.join(kernel_data.SOURCES)}")
    add("--rows", type=numbers, help="only problems with these numbers of rows")
    add("--settings", type=words, default=list(kernel_data.FACTORS), help="which values of C")
    add("--solver", type=words, default=["exact", "sgd"], help="solvers of cutsvm; the first is compared")
    add("--peers", type=words, default=list(PEERS), help="comma-separated; an empty text for none")
    add("--gaps", type=numbers, default=list(kernel_report.GAPS), help="relative gaps")
    add("--most-seconds", type=float, default=120.0, help="limit of a fit of up to 30,000 rows; grows beyond with rows")
    add("--patience", type=float, default=10.0, help="a peer's fit is cut off after this multiple of our time")
    add("--most-memory", type=float, default=14.0, help="GB that a fit may have")
    add("--threads", type=int, default=CORES)
    add("--variants", type=int, help="ways to run each peer, at most; default: all")
    add("--repeat", type=int, default=1, help="times that a fit of under 10 seconds is run; the median counts")
    add("--data", type=Path, default=data.DEFAULT_FOLDER, help="folder of the .npz files")
    add("--out", type=Path, help="folder of the results; default: benchmarks/results, with --quick a temporary one")
    add("--again", action="store_true", help="run fits again that are stored for this commit")
    add("--quick", action="store_true", help="2,000 rows of three sets, one way to run each peer")
    add("--report-only", action="store_true", help="make tables and picture from the CSV that is there")
    return parser


def prepare(options: argparse.Namespace) -> None:
    """Defaults that depend on other options."""
    if options.quick:
        options.most_seconds, options.variants = min(options.most_seconds, QUICK["seconds"]), 1
    options.sets = options.sets or (QUICK["sets"] if options.quick else list(kernel_data.SOURCES))
    usual = Path(tempfile.mkdtemp(prefix="cutsvm-kernel-")) if options.quick else kernel_report.RESULTS
    options.out = options.out or usual
    options.out.mkdir(parents=True, exist_ok=True)


def solve_all(options: argparse.Namespace, store: Store) -> list[str]:
    """All fits; what was skipped comes back."""
    names, missing = kernel_data.available(options.sets, options.data)
    unknown = [name for name in options.peers if name not in PEERS]
    absent = [name for name in options.peers if name in PEERS and not PEERS[name].installed()]
    peers = [PEERS[name] for name in options.peers if name not in unknown + absent]
    notes = [f"Skipped, no file: {', '.join(missing)}."] if missing else []
    notes += [f"Skipped, not installed: {', '.join(unknown + absent)}."] if unknown + absent else []
    print(*notes, sep="\n")
    for problem in kernel_data.problems(names, options.data, QUICK["rows"] if options.quick else None):
        if (options.rows and problem.rows not in options.rows) or problem.setting not in options.settings:
            continue
        rows = kernel_data.load(problem.set, problem.rows, options.data)
        Benchmark(problem, rows, store, options).run([Ours(name) for name in options.solver], peers)
    return notes


def main() -> None:
    options = parser().parse_args()
    prepare(options)
    store = Store(options.out / "kernel.csv", options.again)
    notes = [] if options.report_only else solve_all(options, store)
    kernel_report.make(options.out, store.rows, f"cutsvm {options.solver[0] if options.solver else 'exact'}", notes)


if __name__ == "__main__":
    main()
