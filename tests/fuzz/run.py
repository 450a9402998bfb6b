"""Runs fuzzing targets: `python -m tests.fuzz.run --target npz --inputs 10000 --seed 0`; without a target all of them.

Inputs are made from a seed corpus by mutation; input k of a seed is always the same. They are run in a child process,
one after the other, each under a limit of ten seconds; if the child dies, the input that it was at is kept, and another
child goes on behind it. Findings are crashes, hangs, exceptions that are not the package's clear errors, and wrong
acceptances; each is kept in the folder of findings with its input. The exit code is 1 if there is one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from random import Random
from typing import Any

HANG = 10.0  # seconds of the processor for one input,
STUCK = 300.0  # and seconds by the clock, of which a busy machine may take many for itself
BATCH = 100_000  # inputs of one child
MEMORY = 8 << 30  # bytes of address space of a child: a length in a file must not take the machine down
SHARED = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else Path(tempfile.gettempdir())


def targets() -> dict[str, Any]:
    from tests.fuzz import binary_targets, model_targets, text_targets

    modules = (text_targets, binary_targets, model_targets)
    kinds = [getattr(module, name) for module in modules for name in module.__all__]
    return {kind.name: kind for kind in kinds}


def make_input(target: Any, seed: int, number: int) -> bytes:
    data: bytes = target.make(Random(f"{seed}:{target.name}:{number}"))
    return data


def run_one(target: Any, data: bytes) -> tuple[bool | None, str]:
    """Accepted or refused; None and the traceback for a finding."""
    try:
        return target.check(data), ""
    except Exception:  # whatever it is, it is a finding
        return None, traceback.format_exc()


def run_child(name: str, seed: int, start: int, stop: int, folder: Path, findings: Path) -> None:
    """A batch in this process; `folder/progress` has the number of the input at work, and the counts so far."""
    import logging

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    target = targets()[name](folder)
    counts = {"accepted": 0, "refused": 0, "findings": 0}
    with open(folder / "progress", "wb", buffering=0) as progress:
        for number in range(start, stop):
            data = make_input(target, seed, number)
            os.pwrite(progress.fileno(), json.dumps({"at": number, **counts}).encode().ljust(120), 0)
            signal.setitimer(signal.ITIMER_PROF, HANG)
            signal.setitimer(signal.ITIMER_REAL, STUCK)
            accepted, trace = run_one(target, data)
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
            if accepted is None:
                keep(findings, name, number, data, trace)
            counts["findings" if accepted is None else "accepted" if accepted else "refused"] += 1
        os.pwrite(progress.fileno(), json.dumps({"at": stop, **counts}).encode().ljust(120), 0)


def keep(findings: Path, name: str, number: int, data: bytes, trace: str) -> None:
    findings.mkdir(parents=True, exist_ok=True)
    (findings / f"{name}-{number}.bin").write_bytes(data)
    (findings / f"{name}-{number}.txt").write_text(trace, errors="backslashreplace")


def run_target(name: str, inputs: int, seed: int, findings: Path, first: int = 0) -> dict[str, int]:
    """All inputs, in children; the counts."""
    total = {"accepted": 0, "refused": 0, "findings": 0, "crashes": 0, "hangs": 0}
    at, end = first, first + inputs
    folder = Path(tempfile.mkdtemp(prefix=f"cutsvm-fuzz-{name}-", dir=SHARED))
    try:
        while at < end:
            stop = min(end, at + BATCH)
            words = [name, str(seed), str(at), str(stop), str(folder), str(findings)]
            child = subprocess.run([sys.executable, "-m", "tests.fuzz.run", "--child", *words], check=False)
            state = json.loads((folder / "progress").read_bytes())
            for key in ("accepted", "refused", "findings"):
                total[key] += state[key]
            if child.returncode == 0:
                at = stop
                continue
            if child.returncode > 0:
                raise SystemExit(f"{name}: the child failed with exit code {child.returncode}")
            kind = "hangs" if -child.returncode in (signal.SIGPROF, signal.SIGALRM) else "crashes"
            total[kind] += 1
            data = make_input(targets()[name](folder), seed, state["at"])
            keep(findings, name, state["at"], data, f"{kind}: signal {-child.returncode}\n")
            at = state["at"] + 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return total


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        name, seed, start, stop, folder, findings = sys.argv[2:]
        run_child(name, int(seed), int(start), int(stop), Path(folder), Path(findings))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", action="append", choices=sorted(targets()), help="(default: all)")
    parser.add_argument("--inputs", type=int, default=10_000, help="of each target (default: 10,000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first input (default: 0)")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"), help="folder for what is found")
    options = parser.parse_args()
    bad = 0
    for name in options.target or sorted(targets()):
        began = time.perf_counter()
        counts = run_target(name, options.inputs, options.seed, options.findings, options.first)
        bad += counts["findings"] + counts["crashes"] + counts["hangs"]
        words = ", ".join(f"{count:,} {what}" for what, count in counts.items())
        print(f"{name}: {options.inputs:,} inputs: {words}; {time.perf_counter() - began:.0f} s", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
