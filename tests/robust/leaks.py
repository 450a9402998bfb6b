"""Thousands of small fits of each estimator: resident memory must not grow.

    python tests/robust/leaks.py [--fits 5000] [--warm-up 4000] [NAME ...]

Each case runs in a process of its own. After the warm-up, in which caches fill and the allocator takes its arenas (with
stores two more of 1 MB in the first 2,000 fits), memory is returned to the system (malloc_trim) and measured; again
after all fits. The growth must be below 1 MB.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

MOST = 1_000_000  # bytes


def _classes(n: int, d: int, classes: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, (X @ rng.normal(size=(d, classes)) + 0.5 * rng.normal(size=(n, classes))).argmax(axis=1)


def linear(classes: int = 2, **settings: Any) -> Callable[[], object]:
    from cutsvm import LinearSVC

    X, y = _classes(40, 3, classes)
    most = 4 if settings.get("solver") == "accpm" else 20
    return lambda: LinearSVC(C=0.1, max_iter=most, **settings).fit(X, y).predict(X)


def sparse() -> Callable[[], object]:
    from scipy.sparse import csr_matrix

    from cutsvm import LinearSVC

    X, y = _classes(40, 3, 2)
    X = csr_matrix(X)
    return lambda: LinearSVC(C=0.1, max_iter=20).fit(X, y).predict(X)


def on_disk(solver: str) -> Callable[[], object]:
    import tempfile

    from cutsvm import LinearSVC, convert

    X, y = _classes(60, 3, 2)
    folder = tempfile.TemporaryDirectory(prefix="cutsvm-leaks-")
    convert((X, y), f"{folder.name}/store")
    model = LinearSVC(C=0.1, solver=solver, max_iter=5, memory_limit="2GB")
    return lambda folder=folder: model.fit(f"{folder.name}/store")


def chooser() -> Callable[[], object]:
    from cutsvm import LinearSVCCV

    X, y = _classes(40, 3, 2)
    return lambda: LinearSVCCV(Cs=[0.01, 0.1], cv=2, max_iter=20).fit(X, y).predict(X)


def ranking(name: str, **settings: Any) -> Callable[[], object]:
    import cutsvm

    X, y = _classes(40, 3, 3)
    qid = np.repeat(np.arange(8), 5)
    kind = getattr(cutsvm, name)
    return lambda: kind(max_iter=20, **settings).fit(X, y, qid=qid).predict(X)


def pairs(name: str, classes: int) -> Callable[[], object]:
    import cutsvm

    X, y = _classes(40, 3, classes)
    kind = getattr(cutsvm, name)
    return lambda: kind(C=1.0, max_iter=20).fit(X, y).predict(X)


def kernel(**settings: Any) -> Callable[[], object]:
    from cutsvm import KernelSVC

    X, y = _classes(30, 3, 3)
    return lambda: KernelSVC(C=1.0, random_state=0, **settings).fit(X, y).predict(X)


def one_problem(name: str) -> Callable[[], object]:
    import cutsvm

    X, y = _classes(30, 3, 3)
    return lambda: getattr(cutsvm, name)(gamma=0.5).fit(X, y.astype(float)).predict(X)


CASES: dict[str, Callable[[], Callable[[], object]]] = {
    **{f"LinearSVC, {name}": (lambda name=name: linear(solver=name)) for name in ("ocas", "cpa", "dcd", "accpm")},
    "LinearSVC, sifting": lambda: linear(solver="sifting"),
    "LinearSVC, auto": lambda: linear(),
    "LinearSVC, two threads": lambda: linear(n_jobs=2),
    "LinearSVC, regularized": lambda: linear(intercept="regularized"),
    "LinearSVC, warm_start": lambda: linear(warm_start=True),
    "LinearSVC, CSR": sparse,
    "LinearSVC, Crammer-Singer": lambda: linear(3),
    "LinearSVC, Crammer-Singer, cpa": lambda: linear(3, solver="cpa"),
    **{
        f"LinearSVC, ovr, {name}": (lambda name=name: linear(3, solver=name, multi_class="ovr"))
        for name in ("ocas", "cpa", "dcd", "accpm")
    },
    "LinearSVC, store": lambda: on_disk("ocas"),
    "LinearSVC, store, accpm": lambda: on_disk("accpm"),
    "LinearSVCCV": chooser,
    "RankingSVM": lambda: ranking("RankingSVM"),
    "RankingSVM, cpa": lambda: ranking("RankingSVM", solver="cpa"),
    "RankingSVMCV": lambda: ranking("RankingSVMCV", Cs=[0.1, 1.0], cv=2),
    "ROCAreaSVC": lambda: pairs("ROCAreaSVC", 2),
    "OrdinalSVC": lambda: pairs("OrdinalSVC", 3),
    "KernelSVC, sgd": lambda: kernel(solver="sgd", epochs=2),
    "KernelSVC, isda": lambda: kernel(solver="isda"),
    "KernelSVC, min_norm": lambda: kernel(solver="min_norm"),
    "KernelSVC, linear": lambda: kernel(kernel="linear", epochs=2),
    "KernelSVR": lambda: one_problem("KernelSVR"),
    "KernelOneClassSVM": lambda: one_problem("KernelOneClassSVM"),
}


def resident() -> int:
    """Resident bytes of this process, once what is free has gone back to the system."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure(name: str, fits: int, warm_up: int) -> int:
    """Growth of one case in this process, in bytes."""
    warnings.simplefilter("ignore")
    fit = CASES[name]()
    for _ in range(warm_up):
        fit()
    before, began = resident(), time.perf_counter()
    for _ in range(fits):
        fit()
    growth = resident() - before
    print(f"{name}: {growth / 1e6:+.2f} MB after {fits:,} fits ({time.perf_counter() - began:.0f} s)", flush=True)
    return growth


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(CASES)}")
    parser.add_argument("--fits", type=int, default=5000)
    parser.add_argument("--warm-up", type=int, default=4000)
    parser.add_argument("--here", action="store_true", help="in this process")
    options = parser.parse_args()
    names = options.names or list(CASES)
    if options.here:
        return int(any([measure(name, options.fits, options.warm_up) >= MOST for name in names]))
    settings = ["--here", "--fits", str(options.fits), "--warm-up", str(options.warm_up)]
    codes = [subprocess.run([sys.executable, __file__, *settings, name], check=False).returncode for name in names]
    print(f"{len(codes)} cases, {sum(code != 0 for code in codes)} failed")
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())
