"""Fits under `ulimit -v`: each must end in a MemoryError or in a model, never in a signal or another exception.

    python tests/robust/low_memory.py            all cases, a child process for each
    python tests/robust/low_memory.py CASE ...   these cases, in this process

A small fit on two threads comes first, so that libraries and threads are there. Then the limit on the address space
(RLIMIT_AS) is what the process has, and some MB more each time until a fit succeeds.
"""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
STEPS = (0.25, 0.5, 1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 130, 200, 300, 500)  # MB


def data(n: int, d: int, classes: int = 2) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, (X @ rng.normal(size=(d, classes)) + rng.normal(size=(n, classes))).argmax(axis=1)


def linear(n: int = 200_000, d: int = 10, classes: int = 2, **settings: Any) -> Callable[[], object]:
    from cutsvm import LinearSVC

    X, y = data(n, d, classes)
    return lambda: LinearSVC(C=0.01, **{"n_jobs": 2, "max_iter": 8, **settings}).fit(X, y).predict(X)


def ranking(**settings: Any) -> Callable[[], object]:
    from cutsvm import RankingSVM

    X, y = data(200_000, 5, 4)
    qid = np.arange(len(y)) // 50
    return lambda: RankingSVM(C=1.0, n_jobs=2, max_iter=4, **settings).fit(X, y, qid=qid)


def pairs(name: str) -> Callable[[], object]:
    import cutsvm

    X, y = data(200_000, 5, 2 if name == "ROCAreaSVC" else 5)
    return lambda: getattr(cutsvm, name)(C=1.0, n_jobs=2, max_iter=4).fit(X, y)


def kernel(solver: str) -> Callable[[], object]:
    from cutsvm import KernelSVC

    X, y = data(1200, 6, 3)
    return lambda: KernelSVC(C=1.0, solver=solver, n_jobs=2, random_state=0, epochs=2).fit(X, y).predict(X)


def chooser() -> Callable[[], object]:
    from cutsvm import LinearSVCCV

    X, y = data(60_000, 8)
    return lambda: LinearSVCCV(Cs=[1e-3, 1e-2], cv=3, n_jobs=2, max_iter=8).fit(X, y)


def text() -> Callable[[], object]:
    import os
    import tempfile

    from sklearn.datasets import dump_svmlight_file

    from cutsvm import open_dataset

    X, y = data(40_000, 10)
    handle, name = tempfile.mkstemp(suffix=".svm")
    os.close(handle)
    dump_svmlight_file(X, y, name)
    content = Path(name).read_bytes()
    Path(name).unlink()

    def read() -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.svm"
            path.write_bytes(content)
            return open_dataset(path).shape

    return read


CASES: dict[str, Callable[[], Callable[[], object]]] = {
    "ocas": lambda: linear(solver="ocas"),
    "ocas, regularized": lambda: linear(solver="ocas", intercept="regularized"),
    "cpa": lambda: linear(solver="cpa"),
    "accpm": lambda: linear(solver="accpm"),
    "sifting": lambda: linear(solver="sifting"),
    "dcd": lambda: linear(solver="dcd"),
    "auto": lambda: linear(),
    "one thread": lambda: linear(solver="ocas", n_jobs=1),
    "crammer_singer": lambda: linear(classes=5, solver="ocas"),
    "crammer_singer, sifting": lambda: linear(classes=5, solver="sifting"),
    "ovr": lambda: linear(classes=4, multi_class="ovr"),
    "LinearSVCCV": chooser,
    "RankingSVM": lambda: ranking(),
    "RankingSVM, cpa": lambda: ranking(solver="cpa"),
    "RankingSVM, squared hinge": lambda: ranking(loss="squared_hinge"),
    "ROCAreaSVC": lambda: pairs("ROCAreaSVC"),
    "OrdinalSVC": lambda: pairs("OrdinalSVC"),
    "KernelSVC, sgd": lambda: kernel("sgd"),
    "KernelSVC, isda": lambda: kernel("isda"),
    "KernelSVC, min_norm": lambda: kernel("min_norm"),
    "svmlight": text,
}


def warm_up() -> None:
    warnings.simplefilter("ignore")
    from cutsvm import KernelSVC, LinearSVC
    from cutsvm._utils import threads

    X, y = data(3000, 5, 3)
    threads.configure(threads.ThreadSettings(min_size=0))
    for multi_class in ("ovr", "crammer_singer"):
        LinearSVC(n_jobs=2, multi_class=multi_class).fit(X, y).predict(X)
    # OpenBLAS takes a buffer in the first call of LAPACK, and loops for ever if there is no memory for it.
    LinearSVC(solver="accpm", multi_class="ovr", max_iter=5).fit(X, y)
    KernelSVC(n_jobs=2, random_state=0).fit(X[:200], y[:200]).predict(X[:20])


def address_space() -> int:
    """VmSize of this process in bytes."""
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmSize:"))


def attempts(fit: Callable[[], object]) -> Iterator[str]:
    """How each fit ends, as the limit rises."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    for more in STEPS:
        gc.collect()
        resource.setrlimit(resource.RLIMIT_AS, (address_space() + int(more * 2**20), hard))
        try:
            fit()
            end = "fitted"
        except MemoryError:
            end = "MemoryError"
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        yield end
        if end == "fitted":
            return


def run(name: str) -> None:
    """One case: prints how many fits ended in a MemoryError before one succeeded."""
    fit = CASES[name]()
    ends = list(attempts(fit))
    assert ends[-1] == "fitted", ends
    print(f"{name}: {len(ends) - 1} x MemoryError, then fitted at +{STEPS[len(ends) - 1]} MB")


def main() -> int:
    failed = 0
    for name in CASES:
        done = subprocess.run([sys.executable, __file__, name], capture_output=True, text=True, check=False)
        print(done.stdout.strip() if done.returncode == 0 else f"{name}: exit {done.returncode}: {done.stderr[-2000:]}")
        failed += done.returncode != 0
    print(f"{len(CASES)} cases, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit(main())
    warm_up()
    for case in sys.argv[1:]:
        run(case)
