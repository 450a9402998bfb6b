"""Two versions of cutsvm side by side: the same fits in turn, and the ratio of their times.

    python benchmarks/versions.py OLD_PYTHON NEW_PYTHON [--sets covtype,a9a,covtype-7,letor_mq2008] [--repeat 7]

OLD_PYTHON and NEW_PYTHON are interpreters of two environments with a version of cutsvm installed in each. Every fit is
run by both, one after the other, in an order that changes from round to round, each in a process that holds the data.
The ratio is the median over the rounds of new seconds / old seconds. Writes results/versions.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import data
import ranking_data

RESULTS = Path(__file__).resolve().parent / "results"
SETS = ["covtype", "kdd04_bio", "a9a", "arxiv", "covtype-7", "letor_mq2008"]


class Job(NamedTuple):
    """A fit: `LinearSVC` or `RankingSVM` with these parameters; Cn is C times the rows, or C itself of pairs."""

    set: str
    solver: str
    Cn: float
    params: dict[str, Any]

    @property
    def name(self) -> str:
        more = ", ".join(f"{key}={value}" for key, value in self.params.items())
        return f"{self.solver}" + (f" ({more})" if more else "")


def jobs_of(name: str) -> list[Job]:
    """What users call first, then every solver by its name, and both kinds of intercept."""
    if name in ranking_data.LETOR:
        return [Job(name, solver, C, {}) for C in (1.0, 100.0) for solver in ("auto", "ocas", "cpa")]
    if name in data.MULTI:
        jobs = [Job(name, "auto", Cn, {}) for Cn in (1.0, 1e4)]
        return [*jobs, Job(name, "ocas", 1e4, {}), Job(name, "auto", 1e4, {"multi_class": "ovr"})]
    jobs = [Job(name, "auto", Cn, {}) for Cn in (1e2, 1e4, 1e6)]
    jobs += [Job(name, "auto", Cn, {"intercept": "regularized"}) for Cn in (1e2, 1e4)]
    return jobs + [Job(name, solver, 1e4, {}) for solver in ("ocas", "sifting", "dcd")]


def serve(folder: Path) -> None:
    """The worker: reads a job per line, and answers with seconds, objective and lower bound."""
    import cutsvm

    warnings.simplefilter("ignore")
    loaded: dict[str, Any] = {}
    for line in sys.stdin:
        job, limit, threads = json.loads(line)
        job = Job(*job)
        ranks = job.set in ranking_data.LETOR
        if job.set not in loaded:
            loaded = {job.set: (ranking_data if ranks else data).load(job.set, folder)}
        found = loaded[job.set]
        given = {"solver": job.solver, "max_time": limit, "n_jobs": threads, **job.params}
        if ranks:
            model, args = cutsvm.RankingSVM(C=job.Cn, **given), (found.X, found.y, found.qid)
        else:
            model, args = cutsvm.LinearSVC(C=job.Cn / found.n, **given), (found.X, found.y)
        began = time.perf_counter()
        model.fit(*args)
        seconds = time.perf_counter() - began
        answer = (seconds, float(model.objective_), float(model.lower_bound_), model.converged_, model.n_iter_)
        print(json.dumps(answer), flush=True)


class Version:
    """One version of cutsvm, in a process of its own."""

    def __init__(self, python: str, folder: Path) -> None:
        command = [python, __file__, "--serve", "--data", os.fspath(folder)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def fit(self, job: Job, limit: float, threads: int) -> tuple[float, float, float, bool, int]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps([job, limit, threads]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args[0]}: the process ended")
        answer: tuple[float, float, float, bool, int] = tuple(json.loads(line))
        return answer


def compare(job: Job, versions: list[Version], options: argparse.Namespace) -> list[str]:
    """A line of the table: fits until `repeat` rounds are done, short ones several times a round."""
    first = [version.fit(job, options.time_limit, options.threads) for version in versions]  # also warms up
    again = max(1, min(50, int(0.3 / max(1e-4, min(answer[0] for answer in first)))))
    times: list[list[float]] = [[], []]
    for number in range(options.repeat):
        for which in (0, 1) if number % 2 else (1, 0):
            many = [versions[which].fit(job, options.time_limit, options.threads)[0] for _ in range(again)]
            times[which].append(median(many))
    ratio = median(new / old for old, new in zip(*times, strict=True))
    agree = abs(first[1][1] - first[0][1]) / first[0][1]
    cells = [job.set, job.name, f"{job.Cn:g}", f"{median(times[0]):.4g}", f"{median(times[1]):.4g}", f"{ratio:.3f}"]
    return [*cells, f"{agree:.0e}", "" if first[0][3] == first[1][3] else "only one converged"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("python", nargs="*", help="the two interpreters, old and new")
    add("--sets", type=lambda text: text.split(","), default=SETS)
    add("--repeat", type=int, default=7, help="rounds")
    add("--time-limit", type=float, default=20.0, help="seconds per fit")
    add("--threads", type=int, default=1)
    add("--names", type=lambda text: text.split(","), default=["old", "new"], help="of the versions, for the report")
    add("--data", type=Path, default=data.DEFAULT_FOLDER)
    add("--out", type=Path, default=RESULTS / "versions.md")
    add("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.data)
        return
    versions = [Version(python, options.data) for python in options.python]
    head = ["set", "solver", "C n", "old, s", "new, s", "new / old", "objectives differ by", ""]
    lines = [head, ["---"] * len(head)]
    for name in options.sets:
        for job in jobs_of(name):
            lines.append(compare(job, versions, options))
            print(" ".join(lines[-1]), flush=True)
    ratios = [float(line[5]) for line in lines[2:]]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    summary = f"Lines: {len(ratios)}; median ratio {median(ratios):.3f}, largest {max(ratios):.3f}."
    options.out.write_text(f"# {options.names[1]} beside {options.names[0]}\n\n{summary}\n\n{table}\n")
    print(summary)


if __name__ == "__main__":
    main()
