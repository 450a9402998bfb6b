"""Every command of `cutsvm` with closed or full streams, folders that cannot be written, full disks, little memory.

    python tests/robust/faults.py [--quick] [streams] [disk] [rights] [memory]

    streams   standard input, output and error closed, full (/dev/full), or read by nobody
    disk      files are written to a file system of a few kB, and to one that is read-only (needs root, for mount)
    rights    another user, who may read but not write, or not even read (needs root)
    memory    `ulimit -v` from the least that Python needs up to what the command takes

What must hold: exit code 0, 1 or 2, no traceback, no signal, and whatever file was there before is there still, as it
was or complete and new.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

PROGRAM = [sys.executable, "-m", "cutsvm.cli"]
PARTS = ("streams", "disk", "rights", "memory")
NOBODY = 65534
PATIENCE = 600  # seconds for a command that takes two, on a machine with other work


class Bench:
    """A folder with data, models and stores, and the commands on them; `out`: where new files go."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 5)).round(3)
        y = np.where(X[:, 0] + 0.5 * rng.normal(size=300) > 0.0, 1, -1)
        lines = [f"{label} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(x)) for x, label in zip(X, y, strict=True)]
        self.data = folder / "rows.svm"
        self.data.write_text("\n".join(lines) + "\n")
        ranked = [line.replace(" ", f" qid:{k // 10} ", 1) for k, line in enumerate(lines)]
        self.ranked = folder / "ranked.svm"
        self.ranked.write_text("\n".join(ranked) + "\n")
        self.store, self.model, self.kernel = folder / "rows.store", folder / "linear.model", folder / "kernel.model"
        for words in (
            ["convert", "-q", self.data, self.store],
            ["train", "-q", self.data, self.model],
            ["train", "-q", "--task", "kernel", self.data, self.kernel],
        ):
            subprocess.run([*PROGRAM, *map(str, words)], check=True, capture_output=True)

    def commands(self, out: Path) -> dict[str, list[str]]:
        """Words of each command; files that it writes are in `out`."""
        data, model = str(self.data), str(self.model)
        found: dict[str, list[Any]] = {
            "train": ["train", data, out / "a.model"],
            "train --json": ["train", "--json", data, out / "a.model"],
            "train --checkpoint": ["train", "-e", "1e-9", "--checkpoint", out / "state", data, out / "a.model"],
            "train --report": ["train", "--report", out / "a.html", data, out / "a.model"],
            "train --memory": ["train", "--memory", "1GB", "--solver", "ocas", self.store, out / "a.model"],
            "train kernel": ["train", "--task", "kernel", data, out / "a.model"],
            "train rank": ["train", "--task", "rank", self.ranked, out / "a.model"],
            "train -v": ["train", "-v", "3", data],
            "predict": ["predict", data, model, out / "predictions"],
            "predict -": ["predict", data, model, "-"],
            "predict kernel": ["predict", data, self.kernel, out / "predictions"],
            "path": ["path", data, "--Cs", "1e-3:1:3"],
            "path -v": ["path", data, "--Cs", "1e-3:1:3", "-v", "3", "--plot", out / "path.png"],
            "convert": ["convert", data, out / "a.store"],
            "check": ["check", data],
            "info model": ["info", model],
            "info store": ["info", self.store],
            "demo": ["demo"],
            "help": ["--help"],
            "version": ["--version"],
            "nothing": [],
        }
        return {name: list(map(str, words)) for name, words in found.items()}


QUICK = ("train", "predict -", "convert", "check", "version")
WRITES = ("a.model", "a.html", "predictions", "path.png", "state", "a.store")


class Trouble:
    """What went wrong, and how much was tried."""

    def __init__(self) -> None:
        self.tried, self.found = 0, list[str]()

    def judge(self, what: str, code: int, errors: str) -> None:
        self.tried += 1
        bad = [word for word in ("Traceback", "Exception ignored", "Error:", "Fatal", "terminate") if word in errors]
        if code not in (0, 1, 2) or bad:
            self.found.append(f"{what}: exit {code}: {errors.strip()[-1500:]}")

    def say(self, what: str) -> None:
        self.found.append(what)


def run(words: list[str], **more: Any) -> tuple[int, str]:
    more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    try:
        done = subprocess.run([*PROGRAM, *words], check=False, timeout=PATIENCE, **more)
    except subprocess.TimeoutExpired:
        return -1, f"no end within {PATIENCE} s"
    return done.returncode, (done.stderr or b"").decode(errors="replace")


def streams(bench: Bench, commands: list[str], trouble: Trouble) -> None:
    out = bench.folder / "out"
    out.mkdir(exist_ok=True)
    errors = bench.folder / "errors"
    forms = {
        "closed stdin": "<&-",
        "closed stdout": ">&- 2>ERRORS",
        "closed stderr": "2>&-",
        "all closed": "<&- >&- 2>&-",
        "full stdout": ">/dev/full 2>ERRORS",
        "full stderr": "2>/dev/full",
        "head": "2>ERRORS | head -1 >/dev/null",
        "reader gone": "2>ERRORS | true",
        "stderr's reader gone": "2>&1 >/dev/null | true",
    }
    for name in commands:
        words = " ".join(f"'{word}'" for word in [*PROGRAM, *bench.commands(out)[name]])
        for form, redirections in forms.items():
            errors.write_text("")
            shell = f"set -o pipefail; {words} {redirections.replace('ERRORS', str(errors))}"
            try:
                done = subprocess.run(["bash", "-c", shell], capture_output=True, check=False, timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                trouble.judge(f"{name}, {form}", -1, f"no end within {PATIENCE} s")
                continue
            told = done.stderr.decode(errors="replace") + errors.read_text()
            # A shell says 128 + the number of a signal.
            trouble.judge(f"{name}, {form}", -1 if done.returncode > 128 else done.returncode, told)


@contextlib.contextmanager
def mounted(where: Path, size: str) -> Iterator[Path]:
    """A file system of its own in memory."""
    where.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(where)], check=True)
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", str(where)], check=True)


def _old_files(bench: Bench, out: Path) -> dict[str, bytes]:
    """A model and predictions that are there before; and what they are."""
    shutil.copy(bench.model, out / "a.model")
    (out / "predictions").write_bytes(b"old\n")
    return {name: (out / name).read_bytes() for name in ("a.model", "predictions")}


def _check_old(what: str, out: Path, old: dict[str, bytes], code: int, trouble: Trouble) -> None:
    for name, content in old.items():
        file = out / name
        now = file.read_bytes() if file.exists() else None
        if now is None:
            trouble.say(f"{what}: LOST {name}")
        elif now != content and (code != 0 or len(now) < min(len(content), 100)):
            trouble.say(f"{what}: {name} was changed by a command that failed (exit {code})")
    left = [name for name in os.listdir(out) if name.startswith(".cutsvm-")]
    if left:
        trouble.say(f"{what}: left behind: {left}")


def disk(bench: Bench, commands: list[str], trouble: Trouble) -> None:
    for name in commands:
        if not any(word.endswith(WRITES) for word in bench.commands(Path("/x"))[name]):
            continue
        for free in (0, 4, 12):  # kB that are left
            with mounted(bench.folder / "small", "64k") as out:
                old = _old_files(bench, out)
                _fill(out, free)
                code, errors = run(bench.commands(out)[name])
                what = f"{name}, {free} kB left"
                trouble.judge(what, code, errors)
                _check_old(what, out, old, code, trouble)
        with mounted(bench.folder / "small", "1m") as out:
            old = _old_files(bench, out)
            subprocess.run(["mount", "-o", "remount,ro", str(out)], check=True)
            code, errors = run(bench.commands(out)[name])
            trouble.judge(f"{name}, read-only", code, errors)
            _check_old(f"{name}, read-only", out, old, code, trouble)


def _fill(out: Path, free: int) -> None:
    """A file that leaves so many kB."""
    state = os.statvfs(out)
    with contextlib.suppress(OSError):
        (out / "ballast").write_bytes(b"x" * (state.f_bavail * state.f_bsize - 1024 * free))


def _without_privileges() -> None:
    """The user root, for whom permissions count as for anyone: files of others may not be written, or read."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (1, 2, 3):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER
        if libc.prctl(24, capability, 0, 0, 0) != 0:  # PR_CAPBSET_DROP
            raise OSError(ctypes.get_errno(), "PR_CAPBSET_DROP")


def rights(bench: Bench, commands: list[str], trouble: Trouble) -> None:
    out = bench.folder / "of another user"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    old = _old_files(bench, out)
    for path in (out, *out.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    for name in commands:
        code, errors = run(bench.commands(out)[name], preexec_fn=_without_privileges)
        trouble.judge(f"{name}, folder of another user", code, errors)
        _check_old(f"{name}, folder of another user", out, old, code, trouble)
    for file in (bench.data, bench.ranked, bench.model, bench.kernel, bench.store / "manifest.json"):
        file.chmod(0o600)
        os.chown(file, NOBODY, NOBODY)
    for name in commands:
        code, errors = run(bench.commands(out)[name], preexec_fn=_without_privileges)
        trouble.judge(f"{name}, files of another user", code, errors)
        _check_old(f"{name}, files of another user", out, old, code, trouble)
    for file in (bench.data, bench.ranked, bench.model, bench.kernel, bench.store / "manifest.json"):
        os.chown(file, 0, 0)
        file.chmod(0o644)


def _limit_memory(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def memory(bench: Bench, commands: list[str], trouble: Trouble) -> None:
    out = bench.folder / "out"
    out.mkdir(exist_ok=True)
    for name in commands:
        for megabytes in (150, 350, 550, 640, 660, 700, 750, 900, 1100, 1400, 2000, 3000):
            limit = megabytes << 20
            code, errors = run(bench.commands(out)[name], preexec_fn=partial(_limit_memory, limit))
            trouble.judge(f"{name}, ulimit -v {megabytes} MB", code, errors)
            if code == 0:
                break


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--quick", action="store_true", help="a few commands")
    options = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory(prefix="cutsvm-faults-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        bench = Bench(folder)
        commands = list(QUICK if options.quick else bench.commands(folder))
        for part in options.parts or PARTS:
            if part in ("disk", "rights") and os.geteuid() != 0:
                print(f"{part}: skipped, needs root")
                continue
            trouble = Trouble()
            globals()[part](bench, commands, trouble)
            print(
                f"{part}: {trouble.tried} runs, {len(trouble.found)} with trouble", *trouble.found, sep="\n", flush=True
            )
            failed |= bool(trouble.found)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
