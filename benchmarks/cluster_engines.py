"""Real clusters on this machine for `cluster.py`: Dask's processes, workers that are killed, memory seen from outside.

Private memory is RssAnon: resident pages less those of files, from /proc/PID/statm, read every few milliseconds.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
EVERY = 0.005  # seconds between two looks at the memory
AGAIN = 0.2  # seconds between two looks at which processes there are
Pids = Callable[[], list[int]]


def children(pid: int) -> list[int]:
    """The processes that a process has started and that run."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    except OSError:  # it has ended meanwhile
        pass
    return found


def descendants(pid: int) -> list[int]:
    own = children(pid)
    return own + [later for child in own for later in descendants(child)]


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def private_memory(pid: int) -> int:
    """Bytes of RssAnon; 0 if the process has ended."""
    try:
        numbers = Path(f"/proc/{pid}/statm").read_bytes().split()
        return os.sysconf("SC_PAGE_SIZE") * (int(numbers[1]) - int(numbers[2]))
    except (OSError, IndexError):
        return 0


@dataclass
class DaskCluster:
    """A scheduler and workers with nannies, which start a worker again that has ended.

    A nanny gives up if its worker ends before it has begun. So their process is started again if it ends: on a real
    cluster the resource manager does that. `restarts` counts it.
    """

    address: str
    start: Callable[[], subprocess.Popen[bytes]]
    restarts: int = 0
    _ending: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.nannies = self.start()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ending.wait(0.2):
            if self.nannies.poll() is not None:
                self.restarts += 1
                self.nannies = self.start()

    def close(self) -> None:
        self._ending.set()
        self._thread.join()
        _ended(self.nannies)

    def workers(self) -> list[int]:
        """The worker processes that run now."""
        return [pid for pid in children(self.nannies.pid) if "spawn_main" in command_line(pid)]


def _ended(process: subprocess.Popen[Any]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        for pid in descendants(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.kill()
        process.wait()


# By default a task that was on three workers as they died is given up.
FAULTS = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1000"}


@contextmanager
def dask_cluster(
    workers: int,
    *,
    threads: int = 1,
    memory: str = "auto",
    host: str = "127.0.0.1",
    prefix: Sequence[str] = (),
    scratch: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[DaskCluster]:
    """Started for this block; `prefix` is a command that runs another one, such as one in a network namespace."""
    with tempfile.TemporaryDirectory(prefix="cluster-dask-", dir=scratch) as folder:
        file, log = Path(folder) / "scheduler.json", (Path(folder) / "log").open("wb")
        dask = [*prefix, sys.executable, "-m", "dask"]
        own: dict[str, Any] = {"stdout": log, "stderr": log, "env": {**os.environ, **FAULTS, **(environment or {})}}
        words = [*dask, "scheduler", "--host", host, "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
        scheduler = subprocess.Popen(words, **own)
        try:
            _wait(lambda: file.exists() and file.stat().st_size > 0, 60.0, "the scheduler")
            address = str(json.loads(file.read_text())["address"])
            words = [*dask, "worker", address, "--nworkers", str(workers), "--nthreads", str(threads), "--no-dashboard"]
            words += ["--memory-limit", memory, "--local-directory", folder, "--host", host]
            cluster = DaskCluster(address, lambda: subprocess.Popen(words, **own))
            try:
                _wait(lambda: Path(log.name).read_bytes().count(b"Registered to:") >= workers, 180.0, "the workers")
                yield cluster
            finally:
                cluster.close()
        finally:
            _ended(scheduler)
            log.close()


def _wait(ready: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise SystemExit(f"{what}: not there after {seconds:g} s")
        time.sleep(0.05)


@dataclass
class Killer:
    """Kills one of the workers, drawn at random, at equal intervals, from its beginning to its end."""

    workers: Pids
    every: float = 2.0
    seed: int = 0
    killed: int = 0
    _ending: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Killer:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ending.set()
        assert self._thread is not None
        self._thread.join()

    def _run(self) -> None:
        draw = random.Random(self.seed)
        while not self._ending.wait(self.every):
            there = sorted(self.workers())
            if there:
                try:
                    os.kill(draw.choice(there), signal.SIGKILL)
                    self.killed += 1
                except ProcessLookupError:
                    pass


def watched(
    words: Sequence[str], most_seconds: float, workers: Pids | None = None, log: Path | None = None
) -> dict[str, Any]:
    """What a process says in the last line of its output (JSON), with the peaks of its memory and of its workers'.

    workers: their numbers; by default those that the process has started. `end` is "fitted", or what went wrong.
    """
    peaks = {"client_mb": 0.0, "worker_mb": 0.0}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(list(words), stdout=out, stderr=err, start_new_session=True)
        began, asked, pids, hung = time.monotonic(), 0.0, [], False
        while process.poll() is None:
            now = time.monotonic()
            if now - asked > AGAIN:
                asked, pids = now, (workers or (lambda: descendants(process.pid)))()
            peaks["client_mb"] = max(peaks["client_mb"], private_memory(process.pid) / 1e6)
            peaks["worker_mb"] = max([peaks["worker_mb"], *(private_memory(pid) / 1e6 for pid in pids)])
            if now - began > most_seconds:
                hung = True
                for pid in [*descendants(process.pid), process.pid]:
                    os.kill(pid, signal.SIGKILL)
                process.wait()
                break
            time.sleep(EVERY)
        out.seek(0)
        err.seek(0)
        said, wrong = out.read().decode().splitlines(), err.read().decode(errors="replace")
    if log is not None:
        log.write_text(wrong)
    rounded = {name: round(value, 1) for name, value in peaks.items()}
    if hung:
        return {"end": f"no answer after {most_seconds:g} s", **rounded}
    try:
        return {"end": "fitted", **json.loads(said[-1]), **rounded}
    except (IndexError, ValueError):
        last = wrong.strip().splitlines()[-1:] or [""]
        return {"end": f"exit code {process.returncode}: {last[0]}", **rounded}
