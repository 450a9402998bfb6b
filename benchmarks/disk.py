"""Training from a store that is ten times as large as the memory it may use: reads, seconds, memory.

    python benchmarks/disk.py --folder /where/there/is/room

Two classes that overlap, 20,000,000 rows of 40 features (3.2 GB) unless told otherwise. It writes results/disk.md.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import cutsvm
from billion import BLOCK, RESULTS, direction, read_once, watched

NOISE = 0.5  # standard deviation of what is added to a score before its sign is the label
GAP = 1e-3


def blocks(rows: int, features: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    w = direction(features).astype(np.float32)
    for number, start in enumerate(range(0, rows, BLOCK)):
        rng = np.random.default_rng([2, number])
        many = min(BLOCK, rows - start)
        X = rng.standard_normal((many, features), dtype=np.float32)
        yield X, np.where(X @ w + NOISE * rng.standard_normal(many) > 0.2, 1.0, -1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=2e7)
    parser.add_argument("--features", type=int, default=40)
    parser.add_argument("--C", type=lambda text: [float(part) for part in text.split(",")], default=[1e2, 1e4, 1e6])
    parser.add_argument("--memory", default="300MB")
    parser.add_argument("--folder", type=Path, help="where the store goes; by default the folder for temporary files")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    rows = int(options.rows)
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="disk-") as temporary:
        store = Path(temporary) / "store"
        cutsvm.convert(blocks(rows, options.features), store)
        cold, size = read_once(store)
        text = [
            "# From disk",
            "",
            f"{rows:,} rows of {options.features} features ({size / 1e9:.2f} GB), two classes that overlap, no",
            f"intercept, limit {options.memory}, solver auto, gap {GAP:g}. Private memory is RssAnon, watched from",
            "outside. `reads`: passes over all rows; the sample that training begins with is not counted, `rows",
            f"visited` has it. Reading all blocks once takes {cold:.1f} s, cold. Seconds of a pass: of all that",
            "is not spent on the rows held, the sample included. The first fit reads the disk, the others what the",
            "system has kept of it.",
            "",
            "| C n | seconds | reads | rows visited / rows | seconds of a pass | gap | peak private memory |",
            "| --- | --- | --- | --- | --- | --- | --- |",
        ]
        for Cn in options.C:
            found, peak = watched([str(store), str(Cn / rows), str(GAP), options.memory])
            cells = [
                f"{Cn:.0e}",
                f"{found['seconds_fit']:.1f}",
                str(found["reads"]),
                f"{found['rows_read'] / rows:.2f}",
                f"{found['seconds_sift'] / found['reads']:.1f}",
                f"{found['gap']:.0e}",
                f"{peak:.0f} MB",
            ]
            text.append("| " + " | ".join(cells) + " |")
            print(text[-1], flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "disk.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
