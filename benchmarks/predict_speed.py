"""Rows a second of predictions from a store, Parquet, CSV and svmlight, beside reading the same rows and nothing else.

    python benchmarks/predict_speed.py --rows 1e6 --folder /where/there/is/room

Two classes, 40 features. Reading: every batch is made as a model gets it, and thrown away. In Python:
`model.predict(path)`. On the command line: `cutsvm predict DATA MODEL OUT`, labels compared, to text and to Parquet,
timed without the start of the process; its peak private memory (RssAnon) is seen from outside. The system has the files
in its cache; the best of three runs. It writes results/predict_speed.csv and .md.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import cutsvm
from cutsvm.cli import main as main_of_cutsvm
from cutsvm.estimators._predict import columns_of
from provenance import commit, measured_on, write_rows
from tests.robust.memory_peak import watch

RESULTS = Path(__file__).parent / "results"
FIELDS = ("source", "rows", "features", "megabytes", "what", "seconds", "rows_a_second", "peak_megabytes", "cores")
RUNS = 3
BLOCK = 100_000


def write_files(folder: Path, rows: int, features: int) -> dict[str, Path]:
    """The same rows as a store, Parquet, CSV and svmlight; a tenth of them as text."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    paths = {"store": folder / "rows.store", "Parquet": folder / "rows.parquet"}
    paths |= {"CSV": folder / "rows.csv", "svmlight": folder / "rows.svm"}
    names = [f"f{k}" for k in range(features)]

    def blocks() -> Any:
        for number in range(0, rows, BLOCK):
            rng = np.random.default_rng(number)
            X = rng.standard_normal((min(BLOCK, rows - number), features), dtype=np.float32)
            yield X, np.where(X[:, 0] + X[:, 1] > 0.2 * rng.standard_normal(len(X)), 1, -1)

    cutsvm.convert(blocks(), paths["store"])
    schema = pa.schema([("y", pa.int64()), *((name, pa.float32()) for name in names)])
    few = rows // 10
    with (
        pa.parquet.ParquetWriter(paths["Parquet"], schema) as parquet,
        pa.csv.CSVWriter(paths["CSV"], schema) as csv,
        paths["svmlight"].open("w") as svmlight,
    ):
        written = 0
        for X, y in blocks():
            table = pa.table([pa.array(y), *(pa.array(column) for column in X.T.copy())], schema=schema)
            parquet.write_table(table)
            part = min(len(y), few - written)
            if part > 0:
                csv.write_table(table.slice(0, part))
                for label, row in zip(y[:part].tolist(), X[:part].tolist(), strict=True):
                    pairs = " ".join(f"{k}:{value:.6g}" for k, value in enumerate(row, start=1))
                    svmlight.write(f"{label} {pairs}\n")
                written += part
    return paths


def best(call: Callable[[], Any]) -> float:
    """The least seconds of some calls."""
    found = []
    for _ in range(RUNS):
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return min(found)


def read(model: Any, path: Path) -> None:
    for batch in columns_of(model).open(path):
        assert batch.X.shape[0]


def command(folder: Path, path: Path, suffix: str) -> tuple[float, int]:
    """The least seconds of the command line in this process, and its private memory in a process of its own."""
    words = ["predict", str(path), str(folder / "m.model"), str(folder / f"out.{suffix}")]

    def run() -> None:
        with redirect_stdout(io.StringIO()):
            assert main_of_cutsvm(words) == 0

    found = watch([sys.executable, "-m", "cutsvm.cli", *words])
    assert found.returncode == 0, found.output
    return best(run), found.private


def size_of(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--features", type=int, default=40)
    parser.add_argument("--folder", type=Path, help="where the files go; by default the folder for temporary files")
    parser.add_argument("--note", default="", help="a sentence about the machine, for the report")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    rows, results = int(options.rows), []
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="predict-") as temporary:
        folder = Path(temporary)
        paths = write_files(folder, rows, options.features)
        data = cutsvm.open_dataset(paths["svmlight"])
        model = cutsvm.LinearSVC(n_jobs=-1).fit(data.with_labels(data.y.astype(int)))
        model.feature_names_in_ = np.array([f"f{k}" for k in range(options.features)], dtype=object)
        cutsvm.save_model(model, folder / "m.model")
        for source, path in paths.items():
            many = rows if source in ("store", "Parquet") else rows // 10
            facts = {"source": source, "rows": many, "features": options.features, "cores": os.cpu_count()}
            facts["megabytes"] = round(size_of(path) / 1e6, 1)
            for what, call in (("read", lambda: read(model, path)), ("predict in Python", lambda: model.predict(path))):  # noqa: B023
                results.append(facts | {"what": what, "seconds": best(call)})
            for suffix in ("txt", "parquet"):
                seconds, peak = command(folder, path, suffix)
                what = f"cutsvm predict, OUT.{suffix}"
                results.append(facts | {"what": what, "seconds": seconds, "peak_megabytes": round(peak / 1e6)})
            for row in results[-4:]:
                row["rows_a_second"] = round(row["rows"] / row["seconds"])
                row["seconds"] = round(row["seconds"], 3)
                print(row, flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    write_rows(options.out / "predict_speed.csv", FIELDS, results)
    (options.out / "predict_speed.md").write_text(
        "\n".join(report(results, options.note and f" {options.note}")) + "\n"
    )


def report(results: list[dict[str, Any]], note: str) -> list[str]:
    named = [row | {"commit": commit()} for row in results]
    width, cores = results[-1]["features"], results[-1]["cores"]
    text = [
        "# Predictions beside reading",
        "",
        f"Two classes, {width} features, {cores} cores; files in the cache of the system, the best of {RUNS} runs,",
        f"cutsvm {measured_on(named)}. `read`: the batches that a model gets are made and thrown away. The command",
        "line compares with the labels, and is timed without the start of the process; peak: its private memory",
        f"(RssAnon), seen from outside.{note}",
        "",
        "| source | rows | MB | what | seconds | rows a second | peak, MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in results:
        peak = row.get("peak_megabytes", "")
        cells = (row["source"], f"{row['rows']:,}", row["megabytes"], row["what"], f"{row['seconds']:.2f}")
        text.append(f"| {' | '.join(map(str, cells))} | {row['rows_a_second']:,} | {peak} |")
    return text


if __name__ == "__main__":
    main()
