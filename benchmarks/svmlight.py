"""How fast svmlight text is read: cutsvm on one and on all threads, beside scikit-learn and svmloader.

Makes a random file (40 features a row out of 10,000, six digits a value), reads it with each reader in turn,
checks that all find the same matrix, prints a table and writes it to `results/svmlight.csv`. Each reader runs
`--repeat` times and the best time counts; the file is in the page cache from the start.

    python benchmarks/svmlight.py --mb 500
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from cutsvm._utils import threads
from cutsvm.io import read_svmlight
from provenance import write_rows

RESULTS = Path(__file__).parent / "results" / "svmlight.csv"
FIELDS = ["reader", "threads", "file_mb", "seconds", "mb_per_second", "times_scikit_learn"]
ROWS, WIDTH, FEATURES = 20_000, 40, 10_000
GAP = FEATURES // WIDTH


def write_file(path: Path, megabytes: float) -> None:
    """Random rows until the file has its size."""
    rng = np.random.default_rng(0)
    size = 0
    with path.open("wb") as file:
        while size < megabytes * 1e6:
            # One index in each stretch of the range: sorted and distinct without a search.
            indices = np.arange(WIDTH) * GAP + rng.integers(1, GAP + 1, (ROWS, WIDTH))
            values = rng.normal(size=(ROWS, WIDTH))
            labels = np.where(rng.random(ROWS) < 0.5, 1, -1)
            row = "%d " + " ".join(["%d:%.6g"] * WIDTH) + "\n"
            cells = np.empty((ROWS, 2 * WIDTH))
            cells[:, 0::2], cells[:, 1::2] = indices, values
            pairs = zip(labels.tolist(), cells.tolist(), strict=True)
            text = "".join([row % (label, *line) for label, line in pairs]).encode()
            size += file.write(text)


def readers(path: str) -> dict[tuple[str, int], Callable[[], tuple]]:
    """Each reader by name and threads; all give (X, y)."""

    def ours(n_threads: int) -> tuple:
        data = read_svmlight(path, n_threads=n_threads, zero_based=False, n_features=FEATURES)
        return data.X, data.y

    def sklearn() -> tuple:
        return load_svmlight_file(path, zero_based=False, n_features=FEATURES)

    found = {("scikit-learn", 1): sklearn}
    if find_spec("svmloader"):
        import svmloader

        def peer() -> tuple:
            return svmloader.load_svmfile(path, ltype="d", zero_based=False, nfeatures=FEATURES)

        found["svmloader", 1] = peer
    for n_threads in sorted({1, threads.count(-1)}):
        found["cutsvm", n_threads] = lambda n_threads=n_threads: ours(n_threads)
    return found


def best_times(found: dict[tuple[str, int], Callable[[], tuple]], repeat: int) -> dict[tuple[str, int], float]:
    """Best time of each reader; rounds of all of them, so that a busy spell hits all alike."""
    best = dict.fromkeys(found, float("inf"))
    expected: tuple = ()
    for _ in range(repeat):
        for key, read in found.items():
            start = time.perf_counter()
            result = read()
            best[key] = min(best[key], time.perf_counter() - start)
            expected = expected or result
            if not same(result, expected):
                raise SystemExit(f"{key[0]} finds another matrix than scikit-learn")
    return best


def same(found: tuple, expected: tuple) -> bool:
    X, y = found
    X_expected, y_expected = expected
    return X.shape == X_expected.shape and (X != X_expected).nnz == 0 and np.array_equal(y, y_expected)


def measure(path: Path, repeat: int) -> list[dict[str, object]]:
    megabytes = path.stat().st_size / 1e6
    times = best_times(readers(str(path)), repeat)
    base = times["scikit-learn", 1]
    rows: list[dict[str, object]] = []
    for (name, n_threads), seconds in times.items():
        speed = megabytes / seconds
        figures = (f"{megabytes:.0f}", f"{seconds:.3f}", f"{speed:.0f}", f"{base / seconds:.1f}")
        rows.append(dict(zip(FIELDS, (name, n_threads, *figures), strict=True)))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mb", type=float, default=500, help="size of the file")
    parser.add_argument("--repeat", type=int, default=3, help="runs per reader, the best counts")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random.svm"
        write_file(path, options.mb)
        rows = measure(path, options.repeat)
    for line in [dict(zip(FIELDS, FIELDS, strict=True)), *rows]:
        print("  ".join(f"{line[field]!s:>18}" for field in FIELDS))
    RESULTS.parent.mkdir(exist_ok=True)
    write_rows(RESULTS, FIELDS, rows)


if __name__ == "__main__":
    main()
