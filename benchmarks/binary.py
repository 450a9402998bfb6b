"""Time to a given accuracy on two-class sets: cutsvm and its peers in one run.

    python benchmarks/binary.py [--sets covtype,a9a] [--C 1e2,1e4,1e6] [--gaps 1e-2,1e-3,1e-4]

Every problem goes in three steps. First cutsvm runs to a tenth of the smallest gap: its lower bound is the
measure for all. Then each of our solvers goes from gap to gap, and each peer climbs its ladders of settings, once,
until the smallest gap is reached. Then the settings that were fastest to a gap are run again, round by round, ours
and the peers' in turn; the medians count.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import binary_report
import data
from peers import OWN, PEERS, TWO_CLASS, Answer, Peer, Setting, Verdict, Worker, judge, layouts
from provenance import write_rows

OURS = "cutsvm"
OWN_PATIENCE = 3.0  # our other solvers get this many times the first one's seconds at a gap, and at least 1 s
CLAIMS = "stopped iterations passes visits pass_seconds note".split()
FIELDS = [
    *"set n d Cn C solver variant setting target phase round status limit seconds objective lower gap error".split(),
    *("claimed_objective", "claimed_lower", "claimed_gap", *CLAIMS, "message"),
]
Row = dict[str, Any]


def numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def words(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def costs(text: str) -> list[float | str]:
    return [part if part == "n" else float(part) for part in words(text)]


def parser(about: str) -> argparse.ArgumentParser:
    """The options that the scripts have in common, with the defaults of the two-class one."""
    parser = argparse.ArgumentParser(description=about)
    add = parser.add_argument
    add("--sets", type=words, default=list(data.REAL), help="comma-separated; NAME:ROWS takes a random subset")
    add("--C", type=costs, default=[1e2, 1e4, 1e6], help="values of C times n; n means C = 1")
    add("--gaps", type=numbers, default=[1e-2, 1e-3, 1e-4], help="relative gaps")
    add("--repeat", type=int, default=3, help="timed rounds")
    add("--time-limit", type=float, default=60.0, help="seconds per fit")
    add(
        "--patience",
        type=float,
        default=10.0,
        help="a peer gets this many times our slowest time with the first solver (at least 3 s)",
    )
    add("--repeat-limit", type=float, default=10.0, help="a fit longer than this is run once only")
    add("--solver", type=words, default=list(OWN), help="solvers of cutsvm; the first one is compared")
    add("--peers", type=words, default=list(TWO_CLASS))
    add("--data", type=Path, default=data.DEFAULT_FOLDER, help="folder of the .npz files")
    add("--out", type=Path, default=Path(__file__).parent / "results", help="folder of the results")
    add("--name", default="binary", help="name of the results' files")
    add("--report-only", action="store_true", help="make table and picture from the CSV that is there")
    return parser


class Problem:
    """One data set and one C: runs the solvers and keeps a row for each run."""

    kinds: Mapping[str, type[Peer]] = PEERS
    fields: Sequence[str] = FIELDS

    def __init__(self, dataset: data.DataSet, Cn: float, workers: dict[str, Worker], options: Any) -> None:
        self.data, self.Cn, self.C = dataset, Cn, Cn / dataset.n
        self.workers, self.options = workers, options
        self.gaps = sorted(options.gaps, reverse=True)
        self.limit = options.time_limit
        self.lower = 0.0
        self.pace: dict[float, float] = {}  # seconds of our first solver to each gap
        self.rows: list[Row] = []

    def run(self) -> list[Row]:
        self.measure()
        for name in self.workers:
            if name != OURS:
                self.climb(name)
        self.set_reference()
        jobs = self.chosen()
        for turn in range(1, self.options.repeat + 1):
            for solver, variant, setting in jobs:
                self.fit(solver, variant, setting, "timed", turn)
        self.set_reference()
        return self.rows

    def set_reference(self) -> None:
        """All answers so far beside the last bound, which is the best."""
        for row in self.rows:
            row |= self.measured(row["objective"])

    def measure(self) -> None:
        """Run ourselves: once tightly for the lower bound, then once per gap; everybody's limits follow."""
        compared, *others = self.options.solver
        self.fit(OURS, compared, self.own(compared, self.gaps[-1] / 10), "bound")
        self.descend(compared)
        ours = [row for row in self.rows if row["phase"] == "search" and row["status"] != "error"]
        self.pace = {row["target"]: row["seconds"] for row in ours}
        for solver in others:
            self.descend(solver)
        slowest = max(self.pace.values(), default=self.limit)
        self.limit = min(self.limit, max(3.0, self.options.patience * slowest))

    def own(self, solver: str, gap: float) -> Setting:
        return {"layout": layouts(self.data)[0], "solver": solver, "tol": gap}

    def descend(self, solver: str) -> None:
        """Run one of ours from gap to gap, until one is not proved in time."""
        for gap in self.gaps:
            limit = max(1.0, OWN_PATIENCE * self.pace.get(gap, self.limit))
            row = self.fit(OURS, solver, self.own(solver, gap), "search", limit=min(self.limit, limit))
            if not binary_report.proved(row, gap):
                break

    def climb(self, name: str) -> None:
        """Try a peer's settings from loose to tight, until the smallest gap is reached with a margin.

        The margin is for solvers whose answer differs from run to run.
        """
        peer = self.kinds[name]()
        for variant, ladder in peer.ladders(self.data, self.gaps).items():
            self.ascend(peer, variant, ladder)

    def ascend(self, peer: Peer, variant: str, ladder: list[Setting]) -> None:
        """Try the settings of one ladder."""
        last: Row = {"objective": None, "seconds": 0.0}
        work = [peer.effort(setting) for setting in ladder]
        for i, setting in enumerate(ladder):
            if i and work[i] and last["seconds"] * work[i] / work[i - 1] > self.limit:
                break
            row = self.fit(peer.name, variant, setting, "search")
            done = row["status"] != "ok" or row["gap"] <= 0.5 * self.gaps[-1]
            if done or (row["objective"] == last["objective"] and peer.ends(setting)):
                break
            last = row

    def chosen(self) -> list[tuple[str, str, Setting]]:
        """The runs worth repeating: by solver and gap the fastest setting that reached it, and close ones.

        Not those of ours that are far behind the first.
        """
        jobs: dict[str, tuple[str, str, Setting]] = {}
        names = [*self.options.solver, *(name for name in self.workers if name != OURS)]
        tried = [row for row in self.rows if row["phase"] == "search"]
        for gap, name in product(self.gaps, names):
            bar = self.bar(name, gap)
            for test in (binary_report.reached, binary_report.proved):
                good = [row for row in binary_report.by(name, tried) if test(row, gap)]
                best = min((row["seconds"] for row in good), default=0.0)
                for row in (row for row in good if row["seconds"] <= min(1.3 * best, bar)):
                    for setting in self.twins(json.loads(row["setting"])):
                        jobs[f"{name} {row['variant']} {setting}"] = (row["solver"], row["variant"], setting)
        return list(jobs.values())

    def bar(self, name: str, gap: float) -> float:
        """Seconds above which a solver's run to a gap is not repeated."""
        bar: float = self.options.repeat_limit
        return min(bar, OWN_PATIENCE * self.pace.get(gap, bar)) if name in self.options.solver else bar

    def twins(self, setting: Setting) -> list[Setting]:
        """The setting in every layout that the data may have: the same answer, perhaps faster."""
        if "layout" not in setting:
            return [setting]
        return [setting | {"layout": layout} for layout in layouts(self.data)]

    def fit(
        self, solver: str, variant: str, setting: Setting, phase: str, turn: int = 0, limit: float | None = None
    ) -> Row:
        """One run. Its limit, unless told: ours the time limit, a peer's what our times leave it."""
        limit = limit or (self.options.time_limit if solver == OURS else self.limit)
        answer = self.workers[solver].fit(self.C, setting, limit)
        if solver == OURS:
            self.lower = max(self.lower, answer.claims.get("lower", 0.0))
        row = self.row(answer) | {"solver": solver, "variant": variant, "phase": phase, "round": turn}
        row["limit"] = limit
        row["setting"] = json.dumps(setting)
        row["target"] = setting.get("tol" if solver == OURS else "r", "") if self.kinds[solver].certified else ""
        self.rows.append(row)
        show = f"{row['gap']:9.1e}" if row["gap"] != "" else "        -"
        what = f"{self.data.name} {self.Cn:g} {solver} [{variant}] {setting}"
        print(
            f"{phase:7}{answer.status:6}{answer.seconds:9.3f} s  gap {show}  {what} {answer.message}",
            flush=True,
        )
        return row

    def row(self, answer: Answer) -> Row:
        """What one run gave, by the common measure."""
        row: Row = dict.fromkeys(self.fields, "")
        n, d = self.data.X.shape
        row |= {"set": self.data.name, "n": n, "d": d, "Cn": self.Cn, "C": self.C}
        row |= {"status": answer.status, "seconds": answer.seconds, "message": answer.message}
        if answer.w is None:
            return row
        value, row["error"] = self.judge(answer)
        claimed = answer.claims.get("lower", "")
        row |= self.measured(value)
        row |= {key: answer.claims.get(key, "") for key in CLAIMS}
        row["claimed_objective"] = answer.claims.get("primal", "")
        if claimed != "":
            row |= {"claimed_lower": claimed, "claimed_gap": (value - claimed) / value}
        return row

    def judge(self, answer: Answer) -> Verdict:
        assert answer.w is not None
        return judge(self.data, answer.w, answer.b, self.C)

    def measured(self, value: Any) -> Row:
        """An objective, if there is one, beside our best lower bound."""
        return {} if value == "" else {"objective": value, "lower": self.lower, "gap": (value - self.lower) / value}


def write(rows: list[Row], path: Path, fields: Sequence[str] = FIELDS) -> None:
    """All runs, one line each."""
    write_rows(path, fields, rows)


def solve_all(options: argparse.Namespace, notes: list[str]) -> list[Row]:
    """Run every problem; the CSV is rewritten after each, so that an interrupted run keeps what it has."""
    names, missing = data.available(options.sets, options.data)
    absent = [name for name in options.peers if not PEERS[name].installed()]
    notes += [f"Skipped, no file: {', '.join(missing)}."] if missing else []
    notes += [f"Skipped, not installed: {', '.join(absent)}."] if absent else []
    print(*notes, sep="\n")
    rows: list[Row] = []
    for name in names:
        dataset = data.load(name, options.data)
        solvers = [OURS, *(peer for peer in options.peers if peer not in absent)]
        workers = {peer: Worker(peer, name, options.data) for peer in solvers}
        try:
            for cost in options.C:
                Cn = float(dataset.n if cost == "n" else cost)
                rows += Problem(dataset, Cn, workers, options).run()
                write(rows, options.out / f"{options.name}.csv")
        finally:
            for worker in workers.values():
                worker.stop()
    return rows


def main() -> None:
    compare(parser(__doc__.split("\n")[0]).parse_args(), "Time to a relative gap, two classes")


def compare(options: argparse.Namespace, title: str, more: binary_report.Section | None = None) -> None:
    """Run what is asked for, and report on it, with one section more if there is one."""
    options.out.mkdir(parents=True, exist_ok=True)
    notes: list[str] = []
    if not options.report_only:
        solve_all(options, notes)
    binary_report.make(options.out / f"{options.name}.csv", notes, title, more)


if __name__ == "__main__":
    main()
