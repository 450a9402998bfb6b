"""`memory_limit`: the peak of private memory of every solver, loss, intercept and task on a store ten times the limit.

    python benchmarks/memory_limit.py [--folder /where/there/is/room] [--only STORES] [--cases WORDS] [--report-only]
    python benchmarks/memory_limit.py --added --out FOLDER ...

Limits are of the whole process ("200MB total"). With --added they are what a fit may add to it, and the ratio is of the
peak less what the process holds before the fit.

Stores are made one after the other, block by block, and removed again. Each fit has a process of its own; this one
reads RssAnon (/proc/PID/statm) every two milliseconds until the fit ends. The base of the interpreter and its libraries
is part of it. A peak that is shorter than that might be missed. So the system enforces the limit, too: once libraries
are loaded the fit may map as much private memory (RLIMIT_DATA) as is left under the limit, and `spare` beyond, which is
for what is mapped and not touched: stacks of threads, buffers of libraries. A fit that asks for more than that, for
however short a time, ends in a MemoryError; it is then repeated without, and the last column says so.

It writes results/memory_limit.csv, results/memory_limit.md, and the table in docs/larger-than-memory.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).resolve().parent
PAGE = "docs/larger-than-memory.md"
FIELDS = ("store", "rows", "features", "gigabytes", "case", "limit_mb", "peak_mb", "ratio", "enforced", "end", "gap",
          "iterations", "seconds", "commit")  # fmt: skip
EVERY = 0.002  # seconds between two looks
SPARE = 24_000_000  # see above
BLOCK_BYTES = 1 << 26

Batch = tuple[Any, ...]


class Kind(NamedTuple):
    """A store: its rows, features, limit in MB, cases, and what makes some of its rows."""

    rows: int
    features: int
    limit: int
    cases: dict[str, str]
    batch: Callable[[np.random.Generator, int, int, float], Batch]
    about: str


# Batches of rows: of a generator, the number of rows and of features, and the share of the store that is written.


def overlapping(rng: np.random.Generator, many: int, d: int, _: float, dtype: Any = np.float32) -> Batch:
    """Normal rows, a plane between two classes that overlap."""
    X = rng.standard_normal((many, d), dtype=np.float32)
    return X.astype(dtype, copy=False), np.where(X[:, 0] - X[:, 1] + rng.standard_normal(many) > 0.2, 1.0, -1.0)


def double(rng: np.random.Generator, many: int, d: int, share: float) -> Batch:
    return overlapping(rng, many, d, share, np.float64)


def weighted(rng: np.random.Generator, many: int, d: int, share: float) -> Batch:
    """Weights from 1e-6 to 1e6, and some of 0."""
    weights = 10.0 ** rng.uniform(-6.0, 6.0, many) * (rng.random(many) < 0.99)
    return (*overlapping(rng, many, d, share), weights)


def separable(rng: np.random.Generator, many: int, d: int, _: float) -> Batch:
    X = rng.standard_normal((many, d), dtype=np.float32)
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    X[:, 0] += y.astype(np.float32)
    return X, y


def ties(rng: np.random.Generator, many: int, d: int, share: float) -> Batch:
    """Eight different rows, again and again, the labels sorted by class: nearly all breakpoints tie at any w."""
    X = np.zeros((many, d), dtype=np.float32)
    X[:, :3] = rng.integers(0, 2, (many, 3))
    return X, np.full(many, 1.0 if share < 0.5 else -1.0)


def equal(rng: np.random.Generator, many: int, d: int, share: float) -> Batch:
    """All rows are the same, and all scores always are."""
    return np.ones((many, d), dtype=np.float32), np.where(rng.random(many) < 0.5, 1.0, -1.0)


def classes(count: int) -> Callable[..., Batch]:
    def batch(rng: np.random.Generator, many: int, d: int, _: float) -> Batch:
        X = rng.standard_normal((many, d), dtype=np.float32)
        scores = X[:, :count] + rng.standard_normal((many, count), dtype=np.float32)
        return X, scores.argmax(axis=1)

    return batch


def sorted_classes(rng: np.random.Generator, many: int, d: int, share: float) -> Batch:
    """Eight different rows, the labels sorted by class."""
    return ties(rng, many, d, share)[0], np.full(many, int(4 * share))


def sparse(rng: np.random.Generator, many: int, d: int, _: float, filled: int = 60) -> Batch:
    from scipy.sparse import csr_matrix

    width = d // filled  # one value in each of `filled` equal ranges of columns
    columns = rng.integers(0, width, (many, filled), dtype=np.int32) + np.arange(filled, dtype=np.int32) * width
    values = rng.standard_normal((many, filled), dtype=np.float32)
    y = np.where(values[:, 0] + 0.5 * rng.standard_normal(many) > 0.0, 1.0, -1.0)
    pointers = np.arange(0, many * filled + 1, filled)
    return csr_matrix((values.ravel(), columns.ravel(), pointers), shape=(many, d)), y


def queries(levels: int, each: int = 100, spread: float = 0.0) -> Callable[..., Batch]:
    """Queries of `each` rows, and weights that differ by this many powers of ten."""

    def batch(rng: np.random.Generator, many: int, d: int, share: float) -> Batch:
        X = rng.standard_normal((many, d), dtype=np.float32)
        y = np.digitize(X[:, 0] + rng.standard_normal(many), np.linspace(-1.5, 1.5, levels - 1))
        begin = round(share * 1e9)
        weights = 10.0 ** rng.uniform(-spread / 2, spread / 2, many)
        return X, y.astype(np.float64), weights, begin + np.arange(many) // each

    return batch


SOLVERS = {
    "auto": '"auto"',
    "ocas": '"ocas"',
    "ocas, gca": 'OCAS(line_search="gca")',
    "ocas, gca2": 'OCAS(line_search="gca2")',
    "ocas, tca": 'OCAS(line_search="tca")',
    "ocas, 64 shards": "OCAS(shards=64)",
    "ocas, buckets": "OCAS(buckets=16, bucketing=soon)",
    "cpa": '"cpa"',
    "cpa, buckets": "CPA(buckets=16, bucketing=soon)",
    "accpm I1": 'ACCPM(formulation="I1", buckets=1)',
    "accpm I1, buckets": 'ACCPM(formulation="I1", settings=ACCPMSettings(buckets=soon))',
    "accpm I2": 'ACCPM(formulation="I2", buckets=1)',
    "accpm I2, buckets": 'ACCPM(formulation="I2", settings=ACCPMSettings(buckets=soon))',
    "sifting": '"sifting"',
    "dcd": '"dcd"',
}
INTERCEPTS = {"free": "", "regularized": ', intercept="regularized"', "none": ", fit_intercept=False"}


def linear(names: str, intercepts: str = "free", more: str = "", words: str = "") -> dict[str, str]:
    """Cases of `LinearSVC`: these solvers with these intercepts."""
    chosen = SOLVERS if names == "all" else {name: SOLVERS[name] for name in names.split("; ")}
    return {
        f"{name}, {intercept} intercept{words}": f"LinearSVC(solver={solver}{INTERCEPTS[intercept]}{more}, **fixed)"
        for name, solver in chosen.items()
        for intercept in intercepts.split()
    }


def pairs(kind: str) -> dict[str, str]:
    return {f"{kind}, {name}": f"{kind}(solver={SOLVERS[name]}, **fixed)" for name in ("auto", "ocas", "cpa")}


ALL = "free regularized none"
FEW = "auto; ocas; cpa; accpm I1"
BUCKETS = "ocas, buckets; accpm I1, buckets"
MULTI = "auto; ocas; ocas, tca; ocas, 64 shards; cpa; sifting"
E = {
    "accpm E, free intercept": 'LinearSVC(solver=ACCPM(formulation="E", buckets=1), **fixed)',
    "accpm E, buckets, free intercept": "LinearSVC(solver=ACCPM(formulation='E', settings=ACCPMSettings("
    "buckets=soon)), **fixed)",
}
OTHER = {
    "ocas, free intercept, one thread": 'LinearSVC(solver="ocas", **fixed | {"n_jobs": 1})',
    "auto, free intercept, class_weight": 'LinearSVC(class_weight="balanced", **fixed)',
    "auto, free intercept, checkpoint": 'LinearSVC(checkpoint=beside("one.checkpoint"), **fixed)',
    "ocas, free intercept, checkpoint": 'LinearSVC(solver="ocas", checkpoint=beside("two.checkpoint"), **fixed)',
    "ocas, free intercept, warm start": 'Twice(LinearSVC(solver="ocas", warm_start=True, **fixed))',
    "auto, free intercept, warm start": "Twice(LinearSVC(warm_start=True, **fixed))",
    "path over three C, auto": "Path(linear_path, **fixed)",
    "path over three C, ocas": 'Path(linear_path, solver="ocas", **fixed)',
    "cutsvm train --memory": "Command()",
}
OVR = dict(more=', multi_class="ovr"', words=", one-vs-rest")

KINDS = {
    "thin": Kind(26_000_000, 20, 200, linear("all"), overlapping, "two classes that overlap"),
    "two classes": Kind(6_400_000, 80, 200, linear("all", "regularized none") | OTHER, overlapping, "they overlap"),
    "4 classes": Kind(6_400_000, 80, 200, linear(MULTI, ALL) | linear("auto; ocas", **OVR), classes(4), "they overlap"),
    "weighted": Kind(
        6_400_000, 80, 200, linear(FEW + "; " + BUCKETS) | linear("auto; ocas", "regularized none"), weighted,
        "two classes, weights from 1e-6 to 1e6 and 0",
    ),
    "ranking": Kind(
        480_000, 1_600, 300, pairs("RankingSVM") | {"path over three C": "Path(ranking_path, **fixed)"}, queries(5),
        "queries of 100 rows",
    ),
    "ordinal": Kind(480_000, 1_600, 300, pairs("OrdinalSVC"), queries(20), "20 levels"),
    "ordinal, weighted": Kind(
        190_000, 4_000, 300, pairs("OrdinalSVC"), queries(5, spread=12.0), "weights from 1e-6 to 1e6"
    ),
    "roc": Kind(480_000, 1_600, 300, pairs("ROCAreaSVC"), queries(2), "two classes"),
    "text": Kind(6_300_000, 60_000, 300, linear("auto; ocas; cpa"), sparse, "CSR, 60 values a row"),
    "sparse": Kind(4_200_000, 3_000, 200, linear(FEW), sparse, "CSR, 60 values a row"),
    "wide": Kind(2_000_000, 250, 200, linear(FEW + "; accpm I2, buckets"), overlapping, "two classes that overlap"),
    "20 classes": Kind(2_600_000, 250, 260, linear("auto; ocas; sifting"), classes(20), "they overlap"),
    "ties": Kind(6_400_000, 80, 200, linear(FEW + "; ocas, 64 shards; " + BUCKETS), ties, "eight different rows"),
    "ties, 4 classes": Kind(6_400_000, 80, 200, linear("auto; ocas; cpa"), sorted_classes, "eight different rows"),
    "equal": Kind(26_000_000, 20, 200, linear(FEW), equal, "all rows the same"),
    "separable": Kind(6_400_000, 80, 200, E | linear("auto"), separable, "two classes apart"),
    "float64": Kind(3_200_000, 80, 200, linear(FEW + "; " + BUCKETS), double, "two classes that overlap, float64"),
    "thinnest": Kind(20_000_000, 4, 200, linear(FEW + "; " + BUCKETS), overlapping, "two classes, 1.6 times the limit"),
    "roc, thin": Kind(26_000_000, 20, 200, pairs("ROCAreaSVC"), overlapping, "two classes that overlap"),
}  # fmt: skip


def make(kind: Kind, store: Path, scale: float) -> int:
    """The store; returns the bytes of its rows."""
    import cutsvm

    rows = int(scale * kind.rows)
    many = max(1000, BLOCK_BYTES // (8 * min(kind.features, 120)))

    def batches() -> Iterator[Batch]:
        for number, start in enumerate(range(0, rows, many)):
            rng = np.random.default_rng([3, number])
            yield kind.batch(rng, min(many, rows - start), kind.features, start / rows)

    cutsvm.convert(batches(), store)
    return int(cutsvm.open_dataset(store).store.manifest.size)


# The process that is watched


class Twice:
    """A fit, and another one from where it ended."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, store: str) -> Any:
        self.model.fit(store)
        self.model.C *= 2.0
        return self.model.fit(store)


class SeveralC:
    """A path over three values of C."""

    def __init__(self, path: Callable[..., Any], **params: Any) -> None:
        self.path, self.params = path, params

    def fit(self, store: str) -> Any:
        C = self.params.pop("C")
        return self.path(store, Cs=[0.1 * C, C, 10.0 * C], **self.params)[-1]


class Command:
    """The command line."""

    def fit(self, store: str) -> Any:
        from cutsvm.cli import main

        limit = os.environ["LIMIT"]
        words = ["train", "--memory", limit, "-c", os.environ["C"], "--max-time", "6", store, f"{store}.model"]
        try:
            main(words)
        except SystemExit as end:
            if end.code not in (0, None, 3):
                raise RuntimeError(f"exit code {end.code}") from None
        return None


def work(options: argparse.Namespace) -> None:
    """In the process that is watched: one fit."""
    import cutsvm
    from cutsvm._utils import memory
    from cutsvm.solvers import ACCPM, CPA, OCAS
    from cutsvm.solvers.accpm.solver import ACCPMSettings
    from cutsvm.solvers.bucketing.buckets import BucketSettings

    warnings.simplefilter("ignore")
    soon = BucketSettings(K=1)  # so that rows go into buckets within few iterations
    store, limit = options.work, int(1e6 * options.limit)
    rows = int(np.load(f"{store}.rows.npy"))
    pairwise = "SVM(" in options.case or "ROC" in options.case or "Ordinal" in options.case or "ranking" in options.case
    C = 100.0 if pairwise else 1e3 / rows
    os.environ |= {"LIMIT": str(limit), "C": str(C)}
    given = limit if options.added else f"{limit} total"
    fixed: dict[str, Any] = {"C": C, "memory_limit": given, "max_iter": options.iterations, "n_jobs": 2, "tol": 1e-6}
    if "auto" in options.name or "sifting" in options.name:  # many of its iterations are on few rows
        fixed |= {"max_iter": 300, "max_time": 10.0, "tol": 1e-3}
    names: dict[str, Any] = {**vars(cutsvm.solvers), "ACCPM": ACCPM, "CPA": CPA, "OCAS": OCAS, "soon": soon}
    names |= {"ACCPMSettings": ACCPMSettings, "fixed": fixed, "Twice": Twice, "Path": SeveralC, "Command": Command}
    names |= {name: getattr(cutsvm, name) for name in cutsvm.__all__}
    names |= {"beside": lambda name: f"{store}.{name}"}
    model = eval(options.case, names)
    if options.enforce:
        few = np.random.default_rng(0).normal(size=(50, 2))
        cutsvm.LinearSVC(solver="accpm", max_iter=5).fit(few, few[:, 0] > 0.0)  # LAPACK takes its buffers
        with open("/proc/self/status") as lines:
            data = next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmData:"))
        most = data + (limit if options.added else limit - memory.private()) + SPARE
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    began, found = time.perf_counter(), {"before_mb": memory.private() / 1e6}
    try:
        fitted = model.fit(store)
        found["end"] = "fitted"
        if fitted is not None:
            found |= {"gap": float(fitted.gap_), "iterations": int(fitted.n_iter_)}
    except MemoryError:
        if os.environ.get("SHOW"):
            raise
        found["end"] = "MemoryError"
    except Exception as error:  # what a fit refuses is a result
        found["end"] = f"{type(error).__name__}: {error}"
    print(json.dumps({**found, "seconds": time.perf_counter() - began}), flush=True)


# The process that watches


def watch(words: list[str], most_seconds: float) -> tuple[dict[str, Any], int]:
    """What the process says, and the most private memory that it was seen with."""
    page, peak = os.sysconf("SC_PAGE_SIZE"), 0
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.perf_counter() + most_seconds
    with open(f"/proc/{process.pid}/statm", "rb", buffering=0) as statm:
        while process.poll() is None:
            try:
                numbers = os.pread(statm.fileno(), 200, 0).split()
            except OSError:
                break
            if len(numbers) > 2:
                peak = max(peak, page * (int(numbers[1]) - int(numbers[2])))
            if time.perf_counter() > deadline:
                process.kill()
                break
            time.sleep(EVERY)
    out, err = process.communicate()
    try:
        return json.loads(out.splitlines()[-1]), peak
    except (IndexError, ValueError):
        return {"end": f"exit code {process.returncode}: {err.strip().splitlines()[-1:]}"}, peak


def measure(store: Path, name: str, case: str, limit: int, options: argparse.Namespace) -> dict[str, Any]:
    words = [
        sys.executable,
        str(Path(__file__).resolve()),
        "--work",
        str(store),
        "--name",
        name,
        "--case",
        case,
        "--limit",
        str(limit),
    ]
    words += ["--iterations", str(options.iterations), *(["--added"] if options.added else [])]
    found, peak = watch([*words, "--enforce"], options.seconds)
    enforced = "kept" if found["end"] == "fitted" else "-"
    if found["end"] == "MemoryError" or (found["end"].startswith(("exit", "OSError", "Runtime")) and not options.quick):
        found, peak = watch(words, options.seconds)
        enforced = "asked for more"
    counts = peak / 1e6 - (found.get("before_mb", 0.0) if options.added else 0.0)
    return {**found, "limit_mb": limit, "peak_mb": round(peak / 1e6, 1), "ratio": round(counts / limit, 3),
            "enforced": enforced, "seconds": round(found.get("seconds", 0.0), 1)}  # fmt: skip


def commit() -> str:
    git = ["git", "-C", str(HERE)]
    found = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", ":/src"], capture_output=True)
    return found.stdout.strip() + "+" * (changed.returncode == 1) if found.returncode == 0 else "unknown"


def run(options: argparse.Namespace, file: Path) -> None:
    """All cases; each line is written when it is known, lines of the same name are replaced."""
    known = read(file) if file.exists() else []
    for name in options.only:
        kind = KINDS[name]
        cases = {case: text for case, text in kind.cases.items() if all(word in case for word in options.cases)}
        cases = {case: text for case, text in cases.items() if not any(word in case for word in options.without)}
        if options.missing:
            there = {row["case"] for row in known if row["store"] == name}
            cases = {case: text for case, text in cases.items() if case not in there}
        if not cases:
            continue
        with tempfile.TemporaryDirectory(dir=options.folder, prefix="memory-limit-") as folder:
            store = Path(folder) / "store"
            began = time.perf_counter()
            size = make(kind, store, options.scale)
            rows = int(options.scale * kind.rows)
            np.save(f"{store}.rows.npy", rows)
            print(f"{name}: {rows:,} x {kind.features}, {size / 1e9:.2f} GB in {time.perf_counter() - began:.0f} s")
            for case, text in cases.items():
                row = {"store": name, "rows": rows, "features": kind.features, "gigabytes": round(size / 1e9, 2)}
                row |= {"case": case, **measure(store, case, text, kind.limit, options), "commit": commit()}
                known = [old for old in known if (old["store"], old["case"]) != (name, case)] + [row]
                print(f"  {row['ratio']:.3f}  {row['peak_mb']:6.1f} MB  {row['enforced']:<14}  {row['seconds']:5.1f} s"
                      f"  {case}: {row['end']}", flush=True)  # fmt: skip
                with file.open("w", newline="") as stream:
                    writer = csv.DictWriter(stream, FIELDS, extrasaction="ignore")
                    writer.writeheader()
                    writer.writerows(known)


def read(file: Path) -> list[dict[str, Any]]:
    with file.open() as stream:
        return [{**row, "ratio": float(row["ratio"])} for row in csv.DictReader(stream)]


def legal(row: dict[str, Any]) -> bool:
    return bool(row["end"] == "fitted")


def table(rows: list[dict[str, Any]]) -> list[str]:
    """The fits, worst first."""
    lines = ["| peak / limit | peak, MB | limit, MB | store | fit | enforced |", "|---|---|---|---|---|---|"]
    for row in sorted(filter(legal, rows), key=lambda row: -row["ratio"]):
        cells = [f"{row['ratio']:.2f}", f"{float(row['peak_mb']):.0f}", row["limit_mb"], row["store"], row["case"]]
        lines.append("| " + " | ".join([*map(str, cells), row["enforced"]]) + " |")
    return lines


def stores(rows: list[dict[str, Any]]) -> list[str]:
    """The largest ratio on each store."""
    lines = ["| store | rows x features | GB | limit, MB | fits | largest peak / limit |", "|---|---|---|---|---|---|"]
    for name in dict.fromkeys(row["store"] for row in rows):
        mine = [row for row in rows if row["store"] == name and legal(row)]
        if not mine:
            continue
        about = KINDS[name].about if name in KINDS else ""
        first = mine[0]
        cells = [f"{name}: {about}", f"{int(first['rows']):,} x {int(first['features']):,}", first["gigabytes"]]
        cells += [first["limit_mb"], len(mine), f"{max(row['ratio'] for row in mine):.2f}"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def report(options: argparse.Namespace, file: Path) -> None:
    rows = read(file)
    fitted = [row for row in rows if legal(row)]
    refused = [row for row in rows if not legal(row)]
    worst = max(row["ratio"] for row in fitted)
    kept = sum(row["enforced"] == "kept" for row in fitted)
    text = [
        "# Peak private memory over `memory_limit`",
        "",
        f"{len(fitted)} fits from stores of about ten times the limit; the largest peak is {worst:.2f} times it. Peaks",
        f"are RssAnon, read from outside every {1e3 * EVERY:.0f} ms. Enforced: {kept} of them were made while the",
        f"system itself allowed no more private memory than the limit and {SPARE / 1e6:.0f} MB for what is mapped and",
        "not touched. Fits end after three or four iterations, those of auto and sifting after ten seconds at most.",
        "",
        "Commits: " + ", ".join(sorted({row["commit"] for row in rows})) + ".",
        "",
        *stores(rows),
        "",
        *table(rows),
        "",
        "Not legal, and refused:",
        "",
        "| store | fit | peak / limit | error |",
        "|---|---|---|---|",
        *(f"| {row['store']} | {row['case']} | {row['ratio']:.2f} | {row['end']} |" for row in refused),
    ]
    (options.out / "memory_limit.md").write_text("\n".join(text) + "\n")
    page = HERE.parent / PAGE
    before, mark, rest = page.read_text().partition("<!-- memory limit -->\n")
    if mark and options.out == HERE / "results":
        _, end, after = rest.partition("<!-- end -->")
        page.write_text(before + mark + "\n".join(stores(rows)) + "\n" + end + after)
    print(f"{len(fitted)} fits, largest ratio {worst:.3f}; {len(refused)} refused")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--only", type=lambda text: text.split(";"), default=list(KINDS), help="stores, separated by ;")
    add("--cases", nargs="*", default=[], help="words that the name of a case has to have")
    add("--without", nargs="*", default=[], help="words that it must not have")
    add("--missing", action="store_true", help="only cases that the results do not have")
    add("--iterations", type=int, default=3)
    add("--seconds", type=float, default=300.0, help="after which a fit is ended, and that is an error")
    add("--scale", type=float, default=1.0, help="of the number of rows")
    add("--quick", action="store_true", help="no repetition of a fit that has failed")
    add("--folder", type=Path, help="where stores go; by default the folder for temporary files")
    add("--out", type=Path, default=HERE / "results")
    add("--report-only", action="store_true")
    add("--added", action="store_true", help="limits are of what a fit adds to what the process holds")
    add("--work", help=argparse.SUPPRESS)
    add("--name", default="", help=argparse.SUPPRESS)
    add("--case", help=argparse.SUPPRESS)
    add("--limit", type=float, help=argparse.SUPPRESS)
    add("--enforce", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work(options)
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "memory_limit.csv"
    if not options.report_only:
        run(options, file)
    report(options, file)


if __name__ == "__main__":
    main()
