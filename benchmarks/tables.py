"""From a folder of Parquet files to predictions by the command line, under a limit on memory.

    python benchmarks/tables.py [--rows 2e7] [--files 20] [--folder /where/there/is/room] [--memory 500MB]

The files have a text column of 50 values, a date, numbers with missing values, an id, and a label that is text. Each
command runs in a process of its own; its private memory (RssAnon) is read from outside every two milliseconds. The
times stand beside that of reading the files once, all columns, with pyarrow. Then the store of one part of the rows is
compared with scikit-learn's ColumnTransformer and LinearSVC in memory. It writes results/tables.csv and .md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from memory_limit import watch
from provenance import commit, measured_on, write_rows

RESULTS = Path(__file__).resolve().parent / "results"
FIELDS = ("step", "seconds", "peak_mb", "result", "rows", "files", "gigabytes", "limit")
CITIES = [f"city-{number:02d}" for number in range(50)]
NUMBERS = [f"v{number}" for number in range(6)]
MISSING = {"city": 0.01, "age": 0.03, "income": 0.05}
LONGEST = 3600.0  # seconds of one command


def part(number: int, rows: int) -> pa.Table:
    """The rows of one file: two classes that overlap."""
    rng = np.random.default_rng([22, number])
    city, day = rng.integers(0, len(CITIES), rows), rng.integers(18_000, 20_000, rows)
    age, income = rng.normal(45.0, 15.0, rows), rng.lognormal(10.0, 0.5, rows).astype(np.float32)
    values = {name: rng.standard_normal(rows, dtype=np.float32) for name in NUMBERS}
    effect = np.random.default_rng(22).normal(0.0, 0.5, len(CITIES))
    score = effect[city] + 0.02 * (age - 45.0) + values["v0"] - 0.5 * values["v1"] + 1e-4 * (day - 19_000)
    label = score + rng.standard_normal(rows) > 0.0

    def masked(name: str, column: Any) -> pa.Array:
        return pa.array(column, mask=rng.random(rows) < MISSING[name])

    names = pa.DictionaryArray.from_arrays(masked("city", city.astype(np.int32)), pa.array(CITIES))
    columns = {
        "id": pa.array(np.arange(rows) + number * rows),
        "city": names.cast(pa.string()),
        "day": pa.array(day.astype(np.int32)).cast(pa.date32()),
        "age": masked("age", age),
        "income": masked("income", income),
        "member": pa.array(rng.random(rows) < 0.3),
        **{name: pa.array(column) for name, column in values.items()},
        "bought": pa.array(np.where(label, "yes", "no")),
    }
    return pa.table(columns)


def write(folder: Path, files: int, rows: int) -> None:
    folder.mkdir()
    for number in range(files):
        pq.write_table(part(number, rows), folder / f"part-{number:03d}.parquet")


def read_once(folder: Path) -> float:
    """Seconds to read all columns of all files, a batch at a time."""
    began = time.perf_counter()
    for _ in ds.dataset(folder).to_batches(batch_readahead=2, fragment_readahead=1):
        pass
    return time.perf_counter() - began


def command(*words: object) -> tuple[dict[str, Any], float, float]:
    """The JSON of a command, its seconds, and its peak private memory in MB."""
    began = time.perf_counter()
    found, peak = watch([sys.executable, "-m", "cutsvm.cli", *map(str, words), "--json"], LONGEST)
    if "end" in found:
        raise SystemExit(f"cutsvm {words[0]}: {found['end']}")
    return found, time.perf_counter() - began, peak / 1e6


def difference(file: Path, scratch: Path, rows: int) -> tuple[float, float]:
    """The largest difference of the weights from those of ColumnTransformer and LinearSVC in memory; their size."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

    import cutsvm

    table = pq.read_table(file).slice(0, rows)
    pq.write_table(table, scratch / "few.parquet")
    cutsvm.convert(scratch / "few.parquet", scratch / "few.store", label="bought", exclude=["id"], scale="standard")
    ours = cutsvm.LinearSVC(C=0.01).fit(cutsvm.open_dataset(scratch / "few.store"))
    frame = table.to_pandas()
    frame["day"] = (frame["day"].astype("datetime64[s]").astype("int64") // 86_400).astype(float)
    frame["member"] = frame["member"].astype(float)

    def number() -> Any:
        return make_pipeline(FunctionTransformer(lambda X: X.astype(float)), SimpleImputer(), StandardScaler())

    steps = [
        (name, OneHotEncoder(categories=[CITIES], handle_unknown="ignore") if name == "city" else number(), [name])
        for name in frame.columns
        if name not in ("id", "bought")
    ]
    X = ColumnTransformer(steps, sparse_threshold=1.0).fit_transform(frame)
    theirs = cutsvm.LinearSVC(C=0.01).fit(X, frame["bought"].to_numpy(dtype=str))
    return float(np.abs(ours.coef_ - theirs.coef_).max()), float(np.abs(theirs.coef_).max())


def measure(options: argparse.Namespace, scratch: Path) -> list[dict[str, Any]]:
    each = int(options.rows) // options.files
    folder, store, model, out = (scratch / name for name in ("data", "rows.store", "rows.model", "out.parquet"))
    write(folder, options.files, each)
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e9
    facts = {"rows": each * options.files, "files": options.files, "gigabytes": round(size, 3), "limit": options.memory}
    rows: list[dict[str, Any]] = []

    def add(step: str, seconds: float, peak: float | str, result: str) -> None:
        shown = round(peak, 1) if isinstance(peak, float) else peak
        rows.append({"step": step, "seconds": round(seconds, 2), "peak_mb": shown, "result": result, **facts})
        print(f"{step:<12} {seconds:8.1f} s  {shown} MB  {result}", flush=True)

    read_once(folder)
    add("read once", read_once(folder), "", "all columns, pyarrow, files in the page cache")
    found, seconds, peak = command(
        "convert", folder, store, "--label", "bought", "--exclude", "id", "--scale", "standard"
    )
    add("convert", seconds, peak, f"{found['rows']:,} rows, {found['features']} features, {found['entries']:,} values")
    Cs = f"1e2:1e6:{options.Cs}".split(":")
    grid = ",".join(f"{C / facts['rows']:.3g}" for C in np.geomspace(float(Cs[0]), float(Cs[1]), int(Cs[2])))
    found, seconds, peak = command("path", store, "--Cs", grid, "-v", 3, "--memory", options.memory)
    best = max(found["mean_scores"])
    add("path -v 3", seconds, peak, f"{options.Cs} C, best C {found['C']:.3g}, accuracy {best:.4f}")
    found, seconds, peak = command("train", store, model, "-c", found["C"], "--memory", options.memory)
    add("train", seconds, peak, f"gap {found['gap']:.1e}, {found['passes']:.1f} passes")
    found, seconds, peak = command("predict", folder, model, out, "--keep", "id")
    kept = pq.read_metadata(out)
    add("predict", seconds, peak, f"{found['rows']:,} rows, columns {', '.join(kept.schema.names)}")
    largest, whole = difference(folder / "part-000.parquet", scratch, min(each, options.part))
    text = f"largest difference of a weight {largest:.1e} of {whole:.3g}, {min(each, options.part):,} rows"
    add("scikit-learn", 0.0, "", text)
    return rows


def report(rows: list[dict[str, Any]]) -> str:
    first, reading = rows[0], rows[0]["seconds"]
    lines = [
        "# A folder of Parquet files",
        "",
        f"{int(first['rows']):,} rows in {first['files']} files ({first['gigabytes']} GB), a text column of 50 values,",
        f"a date, missing values in three columns, text labels; limit {first['limit']}. Peak private memory is",
        f"RssAnon, watched from outside. Commit {measured_on(rows)}.",
        "",
        "| step | seconds | times reading the files | peak, MB | result |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        ratio = f"{float(row['seconds']) / float(reading):.1f}" if float(row["seconds"]) else ""
        lines.append(f"| {row['step']} | {row['seconds']} | {ratio} | {row['peak_mb']} | {row['result']} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=2e7)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--part", type=int, default=200_000, help="rows that are compared with scikit-learn")
    parser.add_argument("--Cs", type=int, default=5)
    parser.add_argument("--memory", default="500MB")
    parser.add_argument("--folder", type=Path, help="for the files; by default the folder for temporary files")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="tables-") as scratch:
        rows = measure(options, Path(scratch))
    rows = [{**row, "commit": commit()} for row in rows]
    write_rows(options.out / "tables.csv", FIELDS, rows)
    (options.out / "tables.md").write_text(report(rows))


if __name__ == "__main__":
    main()
