"""Runs random hostile problems: `python -m tests.hostile.run --problems 20000 --seed 0 --jobs 2`.

Each problem is fitted in several ways in a child process, so that a crash or an endless loop is seen; every fit is held
against the optimum in extended precision. Prints a table per kind of problem, intercept and solver, and for each kind
of violation the worst ones: `--problem NUMBER` (and the same `--seed`, `--kind`) repeats one.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import multiprocessing as mp
import os
import re
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from .checks import Verdict, judge
from .exact import parts
from .fits import Fit, fits, noted_warnings, perform
from .problems import KINDS, Problem, problem
from .programs import ReferenceFailedError

LIMIT = 15.0  # seconds of processor time for a fit, which is asked to stop at its next iteration after 3
REFERENCE_LIMIT = 120.0  # and for its reference
TINY = 1e-12  # violations of a bound below this share are listed apart


@dataclass
class FitResult:
    """The result of one fit."""

    number: int
    fit: str
    cell: str
    traits: list[str]
    statuses: list[str] = field(default_factory=list)
    findings: list[tuple[str, float, str]] = field(default_factory=list)
    error: str = ""
    seconds: float = 0.0
    reference_failed: bool = False


def attempt(
    given: Problem, fit: Fit, references: dict[Any, Any], fitted_now: Callable[[], None] = lambda: None
) -> FitResult:
    """One fit and its checks; `fitted_now` is called in between."""
    out = FitResult(given.number, str(fit), cell(given, fit), given.traits)
    began = time.process_time()
    models = []
    with noted_warnings() as warned:
        try:
            models += perform(given, fit)
        except (
            ValueError,
            ArithmeticError,
            MemoryError,
            RuntimeError,
            AssertionError,
            LookupError,
            TypeError,
        ) as error:
            out.error = f"{type(error).__name__}: {error}"
    out.seconds = time.process_time() - began
    fitted_now()
    out.findings += [("warning", 0.0, words) for words in set(warned)]
    if out.error and not out.error.startswith(("ValueError", "FloatingPointError")):
        out.findings.append(("exception", 1.0, out.error))
    for fitted in models:
        if given.kind == "kernel":
            given.params["solver"] = fit.solver
        key = (fitted.C, getattr(fitted.model, "gamma_", None), given.params.get("solver"))
        try:
            if key not in references:
                references[key] = parts(given, fitted.C, fitted.model)
        except ReferenceFailedError:
            out.reference_failed = True
            continue
        verdict: Verdict = judge(given, fitted, references[key])
        out.statuses.append(verdict.status)
        label = f"{fitted.name}: " if fitted.name else ""
        out.findings += [(one.kind, one.size, label + one.words) for one in verdict.findings]
    return out


def cell(given: Problem, fit: Fit) -> str:
    """The line of the table."""
    intercept = given.intercept if given.kind in ("binary", "joint", "ovr") else "-"
    kind = given.kind if given.kind != "kernel" else f"kernel {given.params['kernel']}"
    solver = (
        fit.solver if fit.variant in ("plain", "store", "warm start", "checkpoint") else f"{fit.solver} {fit.variant}"
    )
    return f"{kind} | {intercept} | {solver}"


def work(pipe: Connection, stacks: str, seed: int, count: int, kind: str | None) -> None:
    """Child: fits what it is sent, (problem, first fit), and says before each fit which it is.

    A crash, and SIGUSR1, leave the stack in the file `stacks`.
    """
    file = open(stacks, "w")
    faulthandler.enable(file)
    faulthandler.register(signal.SIGUSR1, file)
    while (task := pipe.recv()) is not None:
        number, skip = task
        given = problem(seed, number, kind)
        references: dict[Any, Any] = {}
        for place, fit in enumerate(fits(given, count)):
            if place < skip:
                continue
            pipe.send(("begin", number, place))
            pipe.send(("end", number, attempt(given, fit, references, partial(pipe.send, ("fitted", number, None)))))
        pipe.send(("done", number, None))


class Worker:
    """A child process and what it is doing."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.start()

    def start(self) -> None:
        self.pipe, child = mp.Pipe()
        _, self.stacks = tempfile.mkstemp(prefix="hostile-stacks-")
        settings = (self.args.seed, self.args.fits, self.args.kind)
        self.process = mp.Process(target=work, args=(child, self.stacks, *settings), daemon=True)
        self.process.start()
        child.close()
        self.task: tuple[int, int] | None = None
        self.started(self.args.limit)

    def started(self, limit: float) -> None:
        """Something begins that has so many seconds."""
        self.limit, self.from_cpu, self.since = limit, self._cpu(), time.perf_counter()

    def _cpu(self) -> float:
        """Seconds of processor time of the child."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def late(self) -> bool:
        return self._cpu() - self.from_cpu > self.limit or time.perf_counter() - self.since > 20 * self.limit

    def give(self, number: int, skip: int = 0) -> None:
        self.task = (number, skip)
        self.started(self.args.limit)
        self.pipe.send(self.task)

    def stack(self) -> str:
        """Where it is, from the innermost frame on."""
        if self.process.is_alive():
            os.kill(self.process.pid or 0, signal.SIGUSR1)
            time.sleep(0.5)
        frames = re.findall(r'File "([^"]*)", line (\d+) in (\w+)', Path(self.stacks).read_text())
        return " < ".join(f"{Path(file).name}:{line} {name}" for file, line, name in frames[:5])

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()
        Path(self.stacks).unlink(missing_ok=True)


class Campaign:
    """Hands out problems, collects results, replaces workers that crash or hang."""

    def __init__(self, args: argparse.Namespace, numbers: list[int]) -> None:
        self.args, self.left = args, numbers[::-1]
        self.results: list[FitResult] = []
        self.began = self.told = time.perf_counter()

    def run(self) -> list[FitResult]:
        workers = [Worker(self.args) for _ in range(self.args.jobs)]
        for worker in workers:
            self._next(worker)
        while any(worker.task for worker in workers):
            ready = wait([worker.pipe for worker in workers if worker.task], timeout=0.5)
            for worker in workers:
                if worker.task and worker.pipe in ready:
                    self._receive(worker)
                elif worker.task and worker.late():
                    what = "hang" if worker.limit == self.args.limit else "reference too slow"
                    self._lost(worker, f"{what}: no end within {worker.limit:g} s")
            self._tell()
        for worker in workers:
            worker.end()
        return self.results

    def _add(self, out: FitResult) -> None:
        self.results.append(out)
        if self.args.json:
            with open(self.args.json, "a") as file:
                file.write(json.dumps(vars(out)) + "\n")

    def _next(self, worker: Worker) -> None:
        worker.task = None
        if self.left:
            worker.give(self.left.pop())

    def _receive(self, worker: Worker) -> None:
        try:
            what, number, more = worker.pipe.recv()
        except EOFError:
            worker.process.join()
            self._lost(worker, f"crash: exit code {worker.process.exitcode}")
            return
        if what == "begin":
            worker.task = (number, more)
            worker.started(self.args.limit)
        elif what == "fitted":
            worker.started(REFERENCE_LIMIT)
        elif what == "end":
            if more.seconds > self.args.limit:
                more.findings.append(("hang", more.seconds, f"{more.seconds:.1f} s"))
            self._add(more)
        else:
            self._next(worker)

    def _lost(self, worker: Worker, words: str) -> None:
        assert worker.task is not None
        number, place = worker.task
        given = problem(self.args.seed, number, self.args.kind)
        fit = fits(given, self.args.fits)[place]
        out = FitResult(number, str(fit), cell(given, fit), given.traits)
        out.findings.append((words.split(":")[0], 1.0, f"{words} {worker.stack()}"))
        self._add(out)
        worker.end()
        worker.start()
        worker.give(number, place + 1)

    def _tell(self) -> None:
        now = time.perf_counter()
        if now - self.told > 30.0:
            self.told = now
            bad = sum(bool(out.findings) for out in self.results)
            done = f"{len(self.results)} fits, {bad} with findings, {len(self.left)} problems left"
            print(f"{now - self.began:.0f} s: {done}", file=sys.stderr, flush=True)


def kind_of(finding: tuple[str, float, str]) -> str:
    kind, size, _ = finding
    return f"{kind} (last digits)" if kind.startswith("bound") and size <= TINY else kind


def without_numbers(text: str) -> str:
    return re.sub(r"\d[\d.,e+-]*", "#", text)[:160]


def report(results: list[FitResult], args: argparse.Namespace) -> str:
    lines: list[str] = []
    fits_of: dict[str, list[FitResult]] = defaultdict(list)
    for out in results:
        fits_of[out.cell].append(out)
    lines.append(f"{len({out.number for out in results})} problems, {len(results)} fits, seed {args.seed}")
    lines.append(f"reference failed: {sum(out.reference_failed for out in results)} fits")
    lines.append("")
    lines.append("| kind | intercept | solver | fits | statuses | refused | violations |")
    lines.append("|---|---|---|---|---|---|---|")
    for name in sorted(fits_of):
        own = fits_of[name]
        statuses = Counter(status for out in own for status in out.statuses)
        found = Counter(kind for out in own for kind in {kind_of(one) for one in out.findings})
        shown = ", ".join(f"{key} {value}" for key, value in statuses.most_common())
        wrong = ", ".join(f"**{key}** {value}" for key, value in found.most_common())
        lines.append(f"| {name} | {len(own)} | {shown} | {sum(bool(out.error) for out in own)} | {wrong} |")
    lines += ["", "errors:"]
    errors = defaultdict(list)
    for out in results:
        if out.error:
            errors[without_numbers(out.error)].append(out)
    for words, own in sorted(errors.items(), key=lambda item: -len(item[1])):
        lines.append(f"  {len(own)} x {words}   e.g. --problem {own[0].number} --fit '{own[0].fit}'")
    by_kind: dict[str, list[tuple[float, FitResult, str]]] = defaultdict(list)
    for out in results:
        for one in out.findings:
            by_kind[kind_of(one)].append((one[1], out, one[2]))
    for kind, own in sorted(by_kind.items()):
        lines += ["", f"{kind}: {len({(out.number, out.fit) for _, out, _ in own})} fits; the worst:"]
        for size, out, words in sorted(own, key=lambda item: -item[0])[: args.show]:
            lines.append(
                f"  {size:.2e} --problem {out.number} [{out.cell}] {out.fit}: {words} [{', '.join(out.traits)}]"
            )
    return "\n".join(lines)


def one(args: argparse.Namespace) -> None:
    """One problem, in this process, with its numbers."""
    given = problem(args.seed, args.problem, args.kind)
    print(given.repro, given, sep="\n")
    if args.data:
        print(
            f"X = {given.X.tolist()}\ny = {given.y.tolist()}\nqid = {given.qid}\n"
            f"sample_weight = {None if given.weights is None else given.weights.tolist()}"
        )
    references: dict[Any, Any] = {}
    for fit in fits(given, args.fits):
        if args.fit and args.fit not in str(fit):
            continue
        out = attempt(given, fit, references)
        print(f"{fit}: {', '.join(out.statuses)} {out.error} ({out.seconds:.2f} s)")
        for kind, size, words in out.findings:
            print(f"    {kind} {size:.2e}: {words}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=1000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the number of the first one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="child processes")
    parser.add_argument("--fits", type=int, default=3, help="solvers for each problem")
    parser.add_argument("--kind", choices=sorted(KINDS), help="only this kind of problem")
    parser.add_argument("--show", type=int, default=8, help="violations shown for each kind")
    parser.add_argument("--problem", type=int, help="only this problem, in this process")
    parser.add_argument("--fit", default="", help="with --problem: only the fits with this in their name")
    parser.add_argument("--data", action="store_true", help="with --problem: print the numbers")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of processor time for a fit")
    parser.add_argument("--json", help="add each result to this file, a line of JSON")
    parser.add_argument("--report", help="only print the report of such a file")
    args = parser.parse_args()
    if args.report:
        with open(args.report) as lines:
            print(report([FitResult(**json.loads(line)) for line in lines], args))
        return
    if args.problem is not None:
        one(args)
        return
    results = Campaign(args, list(range(args.first, args.first + args.problems))).run()
    print(report(results, args))
    sys.exit(any(finding for out in results for finding in out.findings))


if __name__ == "__main__":
    main()
