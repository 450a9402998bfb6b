"""Fits on more than one machine: cost, bits, killed workers, a slow network, files that no worker can hold.

    python benchmarks/cluster.py long                  # covtype 20 times: ours and Spark's LinearSVC, by C n
    python benchmarks/cluster.py bits                  # the same bits on all engines, for all workers and parts
    python benchmarks/cluster.py kills                 # 20 fits, a worker killed every 2 seconds
    python benchmarks/cluster.py bounds                # 200 problems with known optimum, workers killed
    python benchmarks/cluster.py namespaces            # 10 ms and 100 Mb/s between client and workers; needs root
    python benchmarks/cluster.py files                 # 1e8 x 10 from Parquet files, workers of 1 GB
    python benchmarks/cluster.py report                # results/cluster.md from all of them

Every fit has a process of its own; private memory (RssAnon) of the client and of each worker is read from outside every
five milliseconds. Files go to a folder of their own in --scratch and are removed. Each command writes
results/cluster_NAME.csv and exits with 1 if what it is to show does not hold. `--stub` tries the benchmark itself
without our fits on a cluster, into a temporary folder.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import cluster_data
import cluster_network
from cluster_engines import Killer, dask_cluster, watched
from cluster_fit import files_of
from provenance import commit, measured_on, write_rows

HERE = Path(__file__).resolve().parent
DATA = HERE.parent / ".." / "shared" / "data"
FIELDS = {
    "long": "engine source workers n d Cn method reads rounds bytes planned_rounds most_rounds planned_bytes "
    "most_bytes client_mb worker_mb seconds load_seconds objective lower gap distance iterations passes reason end",
    "bits": "engine source workers parts n d rounds seconds digest same end",
    "kills": "fit killed restarts n d seconds undisturbed rounds same end",
    "bounds": "problems refused unknown killed restarts seconds wrong end",
    "namespaces": "link trip_ms megabits n d Cn method rounds planned_rounds most_rounds bytes planned_bytes "
    "most_bytes interface_received interface_sent seconds seconds_near same end",
    "files": "n d files gigabytes workers limit_mb method reads rounds bytes client_mb worker_mb seconds objective "
    "lower gap reason end",
}
Row = dict[str, Any]


def run(spec: Row, options: argparse.Namespace, prefix: list[str] | None = None, **others: Any) -> Row:
    """One fit in a process of its own."""
    own = {"tol": 1e-3, "memory": options.memory, **spec}
    if options.stub:
        own["stub"] = True
    words = [*(prefix or []), sys.executable, str(HERE / "cluster_fit.py"), json.dumps(own)]
    return watched(words, options.most_seconds, log=options.log, **others)


def stored(options: argparse.Namespace, name: str) -> list[Row]:
    file = options.out / f"cluster_{name}.csv"
    if not file.exists():
        return []
    with file.open() as stream:
        return list(csv.DictReader(stream))


def store(options: argparse.Namespace, name: str, rows: list[Row], key: tuple[str, ...] = ()) -> None:
    """Writes the rows; those that are stored already stay unless one of the new ones has the same key."""
    fields = FIELDS[name].split()
    fresh = {tuple(str(row.get(part, "")) for part in key) for row in rows}
    old = [row for row in stored(options, name) if key and tuple(row[part] for part in key) not in fresh]
    kept = [{field: row.get(field, "") for field in (*fields, "commit")} for row in (*old, *rows)]
    write_rows(
        options.out / f"cluster_{name}.csv", fields, [{**row, "commit": row["commit"] or commit()} for row in kept]
    )


@contextmanager
def scratch(options: argparse.Namespace) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cluster-", dir=options.scratch) as folder:
        yield Path(folder)


# long


def long(options: argparse.Namespace) -> bool:
    """covtype repeated, by C n: every engine and source, and Spark's LinearSVC with its distance from our bound."""
    with scratch(options) as folder:
        X, y = cluster_data.covtype(options.data, options.rows)
        cluster_data.write_repeated(folder / "data", X, y, options.repeat)
        n, d = options.repeat * len(y), X.shape[1]
        del X, y
        for Cn in options.Cn:
            lower, rows = 0.0, []
            for case in options.cases:
                engine, _, source = case.partition(":")
                spec = {"engine": engine, "source": source, "folder": str(folder / "data"), "workers": options.workers}
                spec |= {"C": Cn / n, "Cn": Cn, "most": options.spark_iterations}
                row = {"engine": engine, "source": source, "workers": options.workers, "n": n, "d": d, "Cn": Cn}
                row |= _long_fit(spec, options, folder)
                lower = max(lower, float(row.get("lower") or 0.0))
                if "w" in row and row["end"] == "fitted":
                    row["objective"] = cluster_data.objective(spec["folder"], np.array(row["w"]), row["b"], Cn / n)
                rows.append(row)
                for known in rows:
                    if lower and known.get("objective"):
                        known["distance"] = (float(known["objective"]) - lower) / lower
                store(options, "long", rows, ("engine", "source", "workers", "n", "Cn"))
                print(_line(row), flush=True)
    return all(row["end"] == "fitted" for row in stored(options, "long"))


def _long_fit(spec: Row, options: argparse.Namespace, folder: Path) -> Row:
    if spec["engine"] != "dask":
        return run(spec, options)
    memory = options.held_memory if spec["source"] == "held" else options.worker_memory
    with dask_cluster(options.workers, memory=memory, scratch=folder) as cluster:
        return run({**spec, "address": cluster.address}, options, workers=cluster.workers)


def _line(row: Row) -> str:
    numbers = [f"{name} {row[name]}" for name in ("rounds", "bytes", "client_mb", "worker_mb", "seconds", "objective", "lower", "distance") if row.get(name) not in (None, "")]  # fmt: skip  # noqa: E501
    return f"C n = {row['Cn']:g}  {row['engine']}:{row['source']}  {', '.join(numbers)}  {row['end']}"


# bits


def bits(options: argparse.Namespace) -> bool:
    """One problem on every engine, for several numbers of workers and of parts."""
    X, y = cluster_data.two_classes(options.rows or 300_000, 20, 1)
    rows: list[Row] = []
    with scratch(options) as folder:
        for parts in options.parts:
            cluster_data.write_cut(folder / str(parts), X, y, parts)

        def one(engine: str, source: str, workers: int, parts: int, **own: Any) -> None:
            spec = {"engine": engine, "source": source, "workers": workers, "folder": str(folder / str(parts))}
            pids = own.pop("pids", None)
            found = run({**spec, "C": 1e4 / len(y), "Cn": 1e4, "tol": 1e-5, **own}, options, workers=pids)
            about = {"engine": engine, "source": source, "workers": workers, "parts": parts}
            rows.append({**about, "n": len(y), "d": X.shape[1], **found})
            rows[-1]["same"] = found.get("digest") == rows[0].get("digest") is not None
            print(f"{engine}:{source} {workers} workers, {parts} parts: {found.get('digest', '')[:16]} {found['end']}")
            store(options, "bits", rows)

        for parts in options.parts:
            one("local", "files", 2, parts)
        for workers in options.all_workers:
            with dask_cluster(workers, memory="2GB", scratch=folder) as cluster:
                for parts in options.parts:
                    for source in ("files", "held"):
                        one("dask", source, workers, parts, address=cluster.address, pids=cluster.workers)
        for engine in options.engines:
            for parts in options.parts:
                one(engine, "files", 2, parts)
    return all(row["same"] for row in rows)


# kills and bounds


def kills(options: argparse.Namespace) -> bool:
    """Fits while workers are killed: each ends, without an error, with the bits of one that was not disturbed."""
    rows: list[Row] = []
    with scratch(options) as folder:
        X, y = cluster_data.covtype(options.data, options.rows)
        cluster_data.write_repeated(folder / "data", X, y, options.repeat)
        n, d = options.repeat * len(y), X.shape[1]
        del X, y
        spec = {"engine": "dask", "source": "files", "folder": str(folder / "data"), "workers": options.workers}
        spec |= {"C": 1e4 / n, "Cn": 1e4, "pause": 1.5}
        with dask_cluster(options.workers, memory=options.worker_memory, scratch=folder) as cluster:
            spec["address"] = cluster.address
            first = run(spec, options, workers=cluster.workers)
            print(f"undisturbed: {first.get('seconds')} s, {first['end']}", flush=True)
            for number in range(options.fits):
                with Killer(cluster.workers, options.every, number) as killer:
                    found = run(spec, options, workers=cluster.workers)
                same = found.get("digest") == first.get("digest") is not None
                row = {"fit": number, "killed": killer.killed, "n": n, "d": d, "undisturbed": first.get("seconds")}
                rows.append({**row, **found, "same": same, "restarts": cluster.restarts})
                print(f"{number}: {killer.killed} killed, {found.get('seconds')} s, {found['end']}, same bits: {same}")
                store(options, "kills", rows)
                sys.stdout.flush()
    return all(row["same"] and row["killed"] for row in rows)


def bounds(options: argparse.Namespace) -> bool:
    """lower <= optimum <= primal on random problems whose optimum is enclosed in rational numbers."""
    with (
        scratch(options) as folder,
        dask_cluster(options.workers, memory="1GB", scratch=folder) as cluster,
        Killer(cluster.workers, options.every) as killer,
    ):
        spec = {"engine": "dask", "task": "bounds", "address": cluster.address, "seed": options.seed}
        found = run({**spec, "problems": options.problems, "rows": options.rows or 20_000}, options)
    wrong = found.get("wrong", [])
    row = {**found, "killed": killer.killed, "restarts": cluster.restarts, "wrong": len(wrong)}
    store(options, "bounds", [row])
    print("\n".join([json.dumps(row), *wrong]))
    return bool(found["end"] == "fitted" and found["problems"] == options.problems and not wrong)


# namespaces


def namespaces(options: argparse.Namespace) -> bool:
    """Scheduler and workers behind a slow link: rounds and bytes beside the plan, the bits those without it."""
    rows: list[Row] = []
    with scratch(options) as folder:
        X, y = cluster_data.covtype(options.data, options.rows)
        cluster_data.write_repeated(folder / "data", X, y, options.repeat)
        n, d = options.repeat * len(y), X.shape[1]
        del X, y
        near = {}
        base = {"engine": "dask", "source": "files", "folder": str(folder / "data"), "workers": options.workers}
        with dask_cluster(options.workers, memory=options.worker_memory, scratch=folder) as cluster:
            for Cn in options.Cn:
                spec = {**base, "C": Cn / n, "Cn": Cn, "address": cluster.address}
                near[Cn] = run(spec, options, workers=cluster.workers)
        with cluster_network.namespaces(options.delay, options.rate) as link:
            measured = cluster_network.measure(link)
            host, inside = cluster_network.ADDRESSES[cluster_network.WORKERS], cluster_network.WORKERS
            prefix = link.inside(inside, [])
            with dask_cluster(
                options.workers, memory=options.worker_memory, scratch=folder, host=host, prefix=prefix
            ) as cluster:
                for Cn in options.Cn:
                    received, sent = link.received(), link.sent()
                    spec = {**base, "C": Cn / n, "Cn": Cn, "address": cluster.address}
                    found = run(spec, options, link.inside(cluster_network.CLIENT, []), workers=cluster.workers)
                    row = {
                        "link": f"{link.kind} {link.delay:g} ms {link.rate:g} Mb/s",
                        **measured,
                        "n": n,
                        "d": d,
                        "Cn": Cn,
                    }
                    row |= {**found, "seconds_near": near[Cn].get("seconds")}
                    row |= {"interface_received": link.received() - received, "interface_sent": link.sent() - sent}
                    row["same"] = found.get("digest") == near[Cn].get("digest") is not None
                    rows.append(row)
                    print(json.dumps({name: row.get(name, "") for name in FIELDS["namespaces"].split()}), flush=True)
                    store(options, "namespaces", rows)
    return all(row["same"] for row in rows)


# files


def files(options: argparse.Namespace) -> bool:
    """Rows that all workers together cannot hold, from files, with workers that may not have more than a limit."""
    n, d = options.rows or 100_000_000, 10
    with scratch(options) as folder:
        began = time.perf_counter()
        size = cluster_data.write_synthetic(folder / "data", n, d, options.files)
        print(f"{n:,} x {d}, {size / 1e9:.2f} GB written in {time.perf_counter() - began:.0f} s", flush=True)
        spec = {"engine": "dask", "source": "files", "folder": str(folder / "data"), "C": 1e4 / n, "Cn": 1e4}
        with dask_cluster(options.workers, memory=f"{options.limit}MB", scratch=folder) as cluster:
            own = {**spec, "workers": options.workers, "address": cluster.address}
            found = run(own, options, workers=cluster.workers)
        row = {"n": n, "d": d, "files": len(files_of(spec["folder"])), "gigabytes": round(size / 1e9, 2), **found}
        row |= {"workers": options.workers, "limit_mb": options.limit}
        store(options, "files", [row], ("n", "d", "workers"))
        print(json.dumps({name: row.get(name, "") for name in FIELDS["files"].split()}))
    return bool(found["end"] == "fitted" and found["worker_mb"] <= options.limit)


# report


def report(options: argparse.Namespace) -> bool:
    """results/cluster.md: all that is stored."""
    titles = {
        "long": "covtype repeated, to a gap of 1e-3",
        "bits": "The same bits",
        "kills": "A worker killed every 2 seconds",
        "bounds": "lower <= optimum <= primal while workers are killed",
        "namespaces": "A slow link between client and workers",
        "files": "Parquet files, workers with a limit",
    }
    text = ["# Fits on a cluster", ""]
    for name, title in titles.items():
        rows = stored(options, name)
        if not rows:
            continue
        shown = [field for field in FIELDS[name].split() if any(row.get(field) for row in rows)]
        text += [f"## {title}", "", f"Commit {measured_on(rows)}.", ""]
        if name == "bits":
            text += [f"{len(rows)} fits, {len({row['digest'] for row in rows})} different answer.", ""]
        text += ["| " + " | ".join(shown) + " |", "|" + "---|" * len(shown)]
        text += ["| " + " | ".join(_cell(row.get(field, "")) for field in shown) + " |" for row in rows]
        text.append("")
    (options.out / "cluster.md").write_text("\n".join(text))
    return True


def _cell(value: str) -> str:
    """Four digits of a number that is not whole, 12 of a hash."""
    if len(value) == 64:
        return value[:12]
    try:
        number = float(value)
    except ValueError:
        return value
    return f"{int(number):,}" if number.is_integer() else f"{number:.4g}"


COMMANDS: dict[str, Callable[[argparse.Namespace], bool]] = {
    "long": long, "bits": bits, "kills": kills, "bounds": bounds, "namespaces": namespaces, "files": files,
    "report": report,
}  # fmt: skip
CASES = ["memory:memory", "local:files", "dask:held", "dask:files", "LinearSVC:files"]
USUAL = {  # by command: repeat, workers, memory of a worker that reads files again
    "long": (20, 2, "1GB"), "kills": (4, 3, "1GB"), "namespaces": (4, 2, "1GB"), "files": (1, 2, "1GB"),
}  # fmt: skip


def words_of(text: str) -> list[str]:
    return text.split(",")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("command", choices=tuple(COMMANDS))
    add("--data", type=Path, default=DATA, help="folder of covtype.npz")
    add("--scratch", type=Path, help="where files go; by default the folder for temporary files")
    add("--out", type=Path, default=HERE / "results")
    add("--rows", type=lambda text: int(float(text)), help="of the set that is repeated, or of the whole one")
    add("--repeat", type=int, help="how often covtype is repeated")
    add("--workers", type=int)
    add("--worker-memory", help="of a worker that reads files in every round, such as 1GB")
    add("--held-memory", default="6GB", help="of a worker that holds its rows")
    add("--memory", help="memory_limit of the client's estimator")
    add("--Cn", type=lambda text: [float(word) for word in words_of(text)], default=[1e2, 1e4, 1e6])
    add("--cases", type=words_of, default=CASES, help=f"of long, ENGINE:SOURCE; default {','.join(CASES)}; "
        "also LinearSVC:held, ray:files, spark:files")  # fmt: skip
    add("--engines", type=words_of, default=["ray", "spark"], help="of bits, besides local and dask")
    add("--all-workers", type=lambda text: list(map(int, words_of(text))), default=[1, 2, 3, 4, 8], help="of bits")
    add("--parts", type=lambda text: list(map(int, words_of(text))), default=[1, 3, 8, 64], help="of bits")
    add("--fits", type=int, default=20, help="of kills")
    add("--every", type=float, default=2.0, help="seconds between two kills")
    add("--problems", type=int, default=200, help="of bounds")
    add("--seed", type=int, default=23, help="of bounds")
    add("--delay", type=float, default=5.0, help="of namespaces: milliseconds, one way")
    add("--rate", type=float, default=100.0, help="of namespaces: megabits a second")
    add("--files", type=int, default=50, help="of files: how many")
    add("--limit", type=int, default=1000, help="of files: megabytes of a worker")
    add("--spark-iterations", type=int, default=100, help="of Spark's LinearSVC, at most")
    add("--most-seconds", type=float, default=3600.0, help="of one fit; then it counts as hanging")
    add("--log", type=Path, help="file for what the last fit has written to stderr")
    add("--stub", action="store_true", help="without our fits on a cluster")
    options = parser.parse_args()
    repeat, workers, memory = USUAL.get(options.command, (1, 3, "1GB"))
    options.repeat, options.workers = options.repeat or repeat, options.workers or workers
    options.worker_memory = options.worker_memory or memory
    if options.stub and options.out == HERE / "results":
        options.out = Path(tempfile.mkdtemp(prefix="cluster-stub-"))
        print(f"Results of the stub: {options.out}")
    options.out.mkdir(parents=True, exist_ok=True)
    if options.command == "namespaces" and subprocess.run(["id", "-u"], capture_output=True).stdout.strip() != b"0":
        raise SystemExit("namespaces: needs root")
    raise SystemExit(0 if COMMANDS[options.command](options) else 1)


if __name__ == "__main__":
    main()
