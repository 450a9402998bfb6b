"""How long Ctrl-C takes to end work of every kind, at several moments of it.

    python tests/hostile/ctrl_c.py [--only NAME] [--moments 0.5 2 5] [--limit 2]

Each kind of work runs in a process of its own, which is sent SIGINT so many seconds after the work has begun; the
seconds until the process has ended are shown, and what was kept. Work that ended by itself before the signal, or
failed, has shown nothing: it is marked. Ends with 1 if one took longer than the limit, or has shown nothing.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time

DATA = """
import warnings; warnings.simplefilter("ignore")
import numpy as np
from cutsvm import *
from cutsvm import solvers
rng = np.random.default_rng(0)
def two(n, d, noise=1.0):
    X = rng.normal(size=(n, d))
    return X, np.where(X @ rng.normal(size=d) + noise * rng.normal(size=n) > 0, 1, -1)
def many(n, d, K):
    y = rng.integers(0, K, n)
    return rng.normal(size=(n, d)) + rng.normal(size=(K, d))[y], y
"""

# data, work; `model` is what is kept
WORK = {
    "ocas": ("X, y = two(1_000_000, 20, 4.0)", 'model = LinearSVC(1e2, tol=1e-9, solver="ocas"); model.fit(X, y)'),
    "cpa": ("X, y = two(1_000_000, 20, 4.0)", 'model = LinearSVC(1.0, tol=1e-9, solver="cpa"); model.fit(X, y)'),
    "dcd": ("X, y = two(1_000_000, 20, 4.0)", 'model = LinearSVC(1.0, tol=1e-9, solver="dcd"); model.fit(X, y)'),
    "accpm": ("X, y = two(500_000, 20, 4.0)", 'model = LinearSVC(1.0, tol=1e-9, solver="accpm"); model.fit(X, y)'),
    "sifting": (
        "X, y = two(2_000_000, 20, 4.0)",
        'model = LinearSVC(1.0, tol=1e-9, solver="sifting"); model.fit(X, y)',
    ),
    "auto": ("X, y = two(2_000_000, 20, 4.0)", "model = LinearSVC(1.0, tol=1e-9); model.fit(X, y)"),
    "classes": ("X, y = many(300_000, 50, 40)", "model = LinearSVC(1.0, tol=1e-9); model.fit(X, y)"),
    "ovr": ("X, y = many(300_000, 50, 40)", 'model = LinearSVC(1.0, tol=1e-9, multi_class="ovr"); model.fit(X, y)'),
    "planes": ("X, y = two(3_000, 2_000, 4.0)", 'model = LinearSVC(1e4, tol=1e-9, solver="cpa"); model.fit(X, y)'),
    "ranking": ("X, y = two(1_000_000, 10, 4.0)", "model = RankingSVM(1e4, tol=1e-9); model.fit(X, X[:, 0] + y)"),
    "path": ("X, y = two(500_000, 20, 4.0)", "linear_path(X, y, Cs=np.logspace(-6, 2, 30), tol=1e-8)"),
    "cv": ("X, y = two(500_000, 20, 4.0)", "model = LinearSVCCV(20, tol=1e-8); model.fit(X, y)"),
    "cv, two threads": ("X, y = two(500_000, 20, 4.0)", "model = LinearSVCCV(20, tol=1e-8, n_jobs=2); model.fit(X, y)"),
    "search": (
        "X, y = two(500_000, 20, 4.0)\nfrom sklearn.model_selection import GridSearchCV",
        'GridSearchCV(LinearSVC(tol=1e-8, solver="ocas"), {"C": [1.0, 10.0, 100.0]}).fit(X, y)',
    ),
    "kernel": ("X, y = two(15_000, 200, 4.0)", "model = KernelSVC(1e3); model.fit(X, y)"),
    "kernel, streamed": ("X, y = two(40_000, 100, 4.0)", "model = KernelSVC(1.0); model.fit(X, y)"),
    "kernel, linear": ("X, y = two(200_000, 50, 4.0)", 'model = KernelSVC(10.0, kernel="linear"); model.fit(X, y)'),
    "kernel, isda": ("X, y = two(12_000, 50, 4.0)", 'model = KernelSVC(1e3, solver="isda"); model.fit(X, y)'),
    "kernel, min_norm": ("X, y = two(12_000, 50, 4.0)", 'model = KernelSVC(1e3, solver="min_norm"); model.fit(X, y)'),
    "kernel, predict": (
        "X, y = two(15_000, 100, 4.0); model = KernelSVC(certify=False).fit(X, y); X, y = two(400_000, 100)",
        "model.predict(X)",
    ),
    "nested": ("X, y = many(6_000, 20, 5)", "nested_cross_validate(X, y, random_state=0)"),
    "nested, isda": (
        "X, y = many(6_000, 20, 5)",
        'nested_cross_validate(X, y, random_state=0, estimator=KernelSVC(solver="isda", tol=1e-6))',
    ),
    "convert": ("X, y = two(3_000_000, 50)", 'convert((X, y), TARGET + "/store")'),
    "svmlight": (
        "import os\nline = ' '.join(f'{k}:{k / 7:.6f}' for k in range(1, 60))\n"
        "with open(TARGET + '/big.svm', 'w') as f:\n"
        "    for _ in range(40): f.write(f'1 {line}\\n-1 {line}\\n' * 20_000)",
        "open_dataset(TARGET + '/big.svm').X",
    ),
}

KEPT = """
model = globals().get("model")
print("BEGIN", flush=True)
try:
    {work}
    print("END", getattr(model, "status_", None), flush=True)
except KeyboardInterrupt:
    print("KeyboardInterrupt", flush=True)
if model is not None and hasattr(model, "gap_"):
    print("kept, gap", np.max(model.gap_), flush=True)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=[*WORK])
    parser.add_argument("--moments", nargs="*", type=float, default=[0.5, 2.0, 5.0])
    parser.add_argument("--limit", type=float, default=2.0)
    options = parser.parse_args()
    late = 0
    for name in options.only or WORK:
        for moment in options.moments:
            seconds, said = interrupted(*WORK[name], moment)
            mark = "NONE" if seconds is None else "LATE" if seconds > options.limit else "ok"
            late += mark != "ok"
            seconds = float("nan") if seconds is None else seconds
            print(
                f"{mark:4s}  {name:18s} after {moment:4.1f} s: ended in {seconds:5.2f} s; {' | '.join(said)}",
                flush=True,
            )
    return 1 if late else 0


def interrupted(data: str, work: str, moment: float) -> tuple[float | None, list[str]]:
    """Seconds from the signal to the end, None if it was over before or failed, and what the process said."""
    with tempfile.TemporaryDirectory() as folder:
        code = f"TARGET = {folder!r}\n{DATA}\n{data}\n" + KEPT.format(work=work)
        child = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert child.stdout is not None
        for line in child.stdout:
            if line.startswith("BEGIN"):
                break
        time.sleep(moment)
        began = time.perf_counter()
        sent = child.poll() is None
        if sent:
            os.kill(child.pid, signal.SIGINT)
        try:
            said, _ = child.communicate(timeout=90)
        except subprocess.TimeoutExpired:
            child.kill()
            said = (child.communicate()[0] or "") + "still running after 90 s"
        seconds = time.perf_counter() - began
        return seconds if sent and child.returncode == 0 else None, said.splitlines()[-2:]


if __name__ == "__main__":
    sys.exit(main())
