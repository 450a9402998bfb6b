"""Write the measured figures of README and docs from the stored results.

    python benchmarks/figures.py             # fill in README.md and the pages of docs/
    python benchmarks/figures.py --check     # only say which of them are not what the results say

A figure within a sentence stands between `<!-- =NAME -->` and `<!-- / -->`, a table between `<!-- NAME -->` and
`<!-- end -->`. Every CSV in `results/` names the commit that was measured; for those from before that was written down
it is the commit that stored them. The pages of the papers are filled by the scripts in `papers/`.
"""

from __future__ import annotations

import argparse
import csv
import math
import textwrap
from collections.abc import Iterable
from pathlib import Path
from statistics import median

import binary_report
import kernel
import kernel_report
import losses_report
import ranking_report
from binary_report import Line, markdown, problems
from pages import with_figures, with_table
from provenance import measured_on

RESULTS, ROOT = Path(__file__).resolve().parent / "results", Path(__file__).resolve().parents[1]
PAGES = [
    "README.md",
    "docs/solvers.md",
    "docs/alternatives.md",
    "docs/path.md",
    "docs/larger-than-memory.md",
    "docs/cluster.md",
    "docs/kernel-machines.md",
]
Rows = list[dict[str, str]]


def stored(name: str) -> Rows:
    with (RESULTS / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def seconds(value: float) -> str:
    """Two digits: 0.37, 1.4, 16."""
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def power(value: float) -> str:
    """1e2, 6e5"""
    return f"{value:.0e}".replace("e+0", "e")


def lines(name: str, gap: float) -> dict[tuple[str, float], Line]:
    """One line for each set and C of a CSV of `binary.py` or its like, at one gap."""
    found = problems(binary_report.read(RESULTS / f"{name}.csv"))
    return {key: Line(key, gap, rows) for key, rows in found.items()}


def time_of(found: binary_report.Best | None) -> str:
    """Seconds, or the seconds in which it did not get there."""
    if found is None:
        return ""
    return seconds(found.seconds) if found.reached else f"not in {seconds(max(row['limit'] for row in found.runs))}"


def path_figures() -> dict[str, str]:
    covtype = next(row for row in stored("path_sets") if row["set"] == "covtype")
    found = {f"path.{key}": seconds(float(covtype[key])) for key in ("path", "alone", "slowest", "liblinear")}
    found["path.passes"] = str(sum(int(row["passes"]) for row in stored("path") if row["set"] == "covtype"))
    for row in stored("path_cv"):
        found[f"path.cv.{row['set']}"] = f"{float(row['ours']) / float(row['theirs']):.2f}"
    return found


def faster_figures() -> dict[str, str]:
    """How many lines the picture of `front.py` has; on how many the best peer is slower, and by whom the others go."""
    found = [line for gap in (1e-2, 1e-3, 1e-4) for line in lines("binary", gap).values()]
    compared = [line for line in found if not math.isnan(line.to_peer)]
    lost = [line for line in compared if line.to_peer > 1.0]
    return {
        "faster.lines": str(len(found)),
        "faster.compared": str(len(compared)),
        "faster.won": str(len(compared) - len(lost)),
        "faster.lost": str(len(lost)),
        "faster.lost-to-sgd": str(sum("SGD" in (line.peer or "") for line in lost)),
        "faster.worst": f"{max(line.to_peer for line in compared):.1f}",
    }


def covtype_table() -> list[str]:
    names = ("svmocas", "LIBLINEAR", "snapml")
    table = []
    for (name, Cn), line in sorted(lines("binary", 1e-3).items()):
        if name != "covtype":
            continue
        assert line.ours is not None
        passes = line.ours.typical("passes")
        ours = f"**{seconds(line.ours.seconds)}** ({passes:.0f} pass{'es' if passes != 1 else ''} over the data)"
        others = [time_of(line.rival), *(time_of(line.found.get(name)) for name in names[1:])]
        table.append([power(Cn), ours, *others])
    return markdown(["C n", "cutsvm", "svmocas (proved)", "LIBLINEAR", "snapml"], table)


def classes_table() -> list[str]:
    table = []
    for (name, Cn), line in sorted(lines("multiclass", 1e-2).items()):
        if name == "covtype-7":
            others = [time_of(line.found.get(peer)) for peer in ("msvmocas", "LIBLINEAR")]
            table.append([power(Cn), f"**{time_of(line.ours)}**", *others])
    return markdown(["C n", "cutsvm", "msvmocas", "LIBLINEAR -s 4"], table)


def ranking_table() -> list[str]:
    """Some sets at C = 10,000 and a gap of 1e-3, beside dlib and explicit pairs."""
    shown = {"letor_mq2008": "MQ2008", "mslr_sample": "MSLR sample"}
    shown |= {"bank32nh-10": "bank32nh", "one-1e5-10": "synthetic"}
    found = problems(ranking_report.read(RESULTS / "ranking.csv"))
    table = []
    for name, label in shown.items():
        group = found[name, 1e4]
        line, first = Line((name, 1e4), 1e-3, group), group[0]
        queries = f" in {first['queries']:,.0f} queries" if first["queries"] > 1 else ""
        pairs = f"{first['pairs']:.1e}".replace("e+0", "e")
        explicit = line.found.get("sklearn LinearSVC")
        tried = explicit is not None and (explicit.reached or explicit.gap < math.inf)
        cells = [f"{first['n']:,.0f}{queries}", f"{first['levels']:.0f}", pairs, f"**{time_of(line.ours)}**"]
        table.append([label, *cells, time_of(line.found.get("dlib")), time_of(explicit) if tried else "too many"])
    return markdown(["", "rows", "levels", "pairs", "cutsvm", "dlib", "explicit pairs"], table)


def ranking_figures() -> dict[str, str]:
    """Our time over dlib's by sets, with and without the making of its vectors; and the slowest line at C = 100."""
    found = problems(ranking_report.read(RESULTS / "ranking.csv"))
    bare: dict[str, list[tuple[float, float, float]]] = {}
    small: list[tuple[float, float]] = []
    shortest = math.inf
    for key, group in found.items():
        for gap in (1e-2, 1e-3):
            line = Line(key, gap, group)
            ours, theirs = line.ours, line.found.get("dlib")
            if ours is None or not ours.reached:
                continue
            shortest = min(shortest, ours.seconds)
            if theirs is not None and theirs.reached:
                bare.setdefault(key[0], []).append((ours.seconds, theirs.seconds, theirs.typical("making")))
                if key[1] == 100.0:
                    small.append((ours.seconds / theirs.seconds, theirs.seconds))
    sums = [[sum(column) for column in zip(*times, strict=True)] for times in bare.values()]
    whole, alone = [a / (b + c) for a, b, c in sums], [a / b for a, b, _ in sums]
    slower = [theirs for ratio, theirs in small if ratio > 1.0]
    return {
        "ranking.sets": str(len(sums)),
        "ranking.faster": str(sum(ratio < 1.0 for ratio in whole)),
        "ranking.whole": f"{min(whole):.2f} to {max(whole):.2f} of its time, median {median(whole):.2f}",
        "ranking.faster-alone": str(sum(ratio < 1.0 for ratio in alone)),
        "ranking.slower": f"{1e3 * min(slower):.1g} to {1e3 * max(slower):.2g} ms",
        "ranking.times": f"{max(ratio for ratio, _ in small):.0f}",
        "ranking.shortest": f"{1e3 * shortest:.1g} ms",
    }


def solvers_table() -> list[str]:
    """Our own solvers at a gap of 1e-3, for every set and C."""
    found = lines("binary", 1e-3)
    table = []
    for name in dict.fromkeys(key[0] for key in found):
        mine = [line for key, line in sorted(found.items()) if key[0] == name]
        first = next(row for row in stored("binary") if row["set"] == name)
        own = [", ".join(_proved(line.found.get(solver)) for line in mine) for solver in ("ocas", "sifting", "dcd")]
        table.append([name, f"{int(first['n']):,}", f"{int(first['d']):,}", *own])
    return markdown(["set", "rows", "features", "ocas", "sifting", "dcd"], table)


def _proved(found: binary_report.Best | None) -> str:
    return seconds(found.seconds) if found is not None and found.reached else "-"


def losses_table() -> list[str]:
    """Every loss on three shapes of data: our time over that of the best peer, and every line where we are behind."""
    path = RESULTS / "losses.csv"
    if not path.exists():
        return ["Not measured yet.", ""]
    rows = binary_report.read(path)
    found = losses_report.lines_of(rows, [1e-2, 1e-3, 1e-4])
    behind = ["The lines where a peer was faster, or on long data took less than twice our time:", ""]
    return [f"Commit: {measured_on(rows)}.", "", *losses_report.overview(found), *behind, *losses_report.lost(found)]


def parquet_table() -> list[str]:
    """A folder of Parquet files to predictions: `tables.py`."""
    rows = stored("tables")
    reading = float(rows[0]["seconds"])
    shown = [
        [
            row["step"],
            seconds(float(row["seconds"])),
            f"{float(row['seconds']) / reading:.0f}",
            row["peak_mb"],
            row["result"],
        ]
        for row in rows
        if float(row["seconds"])
    ]
    return markdown(["", "seconds", "times reading the files", "peak, MB", ""], shown)


def cluster_table() -> list[str]:
    """covtype 20 times on a cluster, beside one process and Spark's own LinearSVC: `cluster.py long`."""
    names = {"memory": "one process, in memory", "local": "threads", "dask": "Dask"}
    sources = {"memory": "", "files": ", from files in every round", "held": ", rows held by the workers"}
    rows = [row for row in stored("cluster_long") if row["end"] == "fitted"]
    alone = [row for row in rows if row["engine"] == "memory"]
    first = {row["Cn"]: float(row["seconds"]) for row in alone}

    def named(row: dict[str, str]) -> str:
        if row["engine"] == "LinearSVC":
            return f"Spark's `LinearSVC`, stopped after {row['iterations']} iterations"
        return names[row["engine"]] + sources[row["source"]]

    shown = [
        [
            power(float(row["Cn"])),
            named(row),
            f"{float(row['seconds']) / first[row['Cn']]:.1f}",
            row["reads"],
            row["rounds"],
            f"{float(row['bytes']) / 1e6:.0f}" if row["bytes"] else "",
            f"{float(row['client_mb']):.0f}",
            f"{float(row['worker_mb']):.0f}" if float(row["worker_mb"] or 0.0) else "",
            f"{float(row['distance']):.1e}" if row["distance"] else "",
        ]
        for row in rows
    ]
    n, d = int(rows[0]["n"]), rows[0]["d"]
    loading = [f"{float(row['load_seconds']) / float(row['seconds']):.1f}" for row in alone]
    text = (
        f"covtype repeated to {n:,} rows of {d} features, to a gap of 1e-3. Client, scheduler and two workers share "
        "the two cores of one machine, so that the table has what a cluster adds, not what it gains. The time in "
        f"memory is without reading the files, which takes {', '.join(loading)} times as long again. Distances are "
        f"from our lower bound. Commit {measured_on(rows)}."
    )
    head = ["C n", "", "time / in memory", "readings", "rounds", "MB to the client", "client, MB", "worker, MB"]
    return [*textwrap.wrap(text, 140), "", *markdown([*head, "distance"], shown)]


def mnist_figures() -> dict[str, str]:
    """60,000 digits by kernel machines: `papers/melki.py`."""
    with (RESULTS.parent / "papers" / "results" / "melki.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["experiment"] == "mnist"]
    found: dict[str, str] = {}
    for row in rows:
        name = "svc" if row["solver"] == "SVC" else f"{float(row['epochs']):.0f}"
        if row["solver"] in ("SVC", "sgd"):
            found[f"mnist.{name}.seconds"] = f"{float(row['seconds']):.0f}"
            found[f"mnist.{name}.error"] = f"{100.0 * (1.0 - float(row['accuracy'])):.3g}"
    return found


def kernel_rows() -> list[kernel_report.Row]:
    return kernel_report.latest(kernel.read(RESULTS / "kernel.csv"))


def kernel_table() -> list[str]:
    """Two classes with an intercept, at the central C: seconds to 1e-3 of ours and of each peer."""
    rows = [row for row in kernel_rows() if row["setting"] == "central" and row["intercept"] and row["classes"] == 2]
    solvers = [name for name in kernel_report.solvers_of(rows) if name != "cutsvm sgd"]
    lines = []
    for (name, n, _, C, gamma, _), mine in kernel_report.groups(rows).items():
        lower = kernel_report.lower_bound(mine)
        cells = [kernel_report.cell(mine, solver, 1e-3, lower) for solver in solvers]
        lines.append([name, f"{n:,}", f"{C:g}, {gamma:g}", f"**{cells[0]}**", *cells[1:]])
    head = ["set", "rows", "C, gamma", *("`KernelSVC`" if name == "cutsvm exact" else name for name in solvers)]
    text = (
        "Seconds until the gap of 1e-3 is proved, RBF kernel, two cores; of the others the fastest of their settings "
        f"whose answer is that close, proved or not. Commit {measured_on(rows)}. All lines:"
    )
    return [*textwrap.wrap(text, 130), "[kernel.md](../benchmarks/results/kernel.md).", "", *markdown(head, lines)]


def kernel_figures() -> dict[str, str]:
    """60,000 digits of ten classes by the exact solver, and the ratios to the best peer."""
    rows = kernel_rows()
    many = [row for row in rows if row["set"] == "mnist-10" and row["n"] == 60_000 and row["solver"] == "cutsvm exact"]
    found = {}
    if done := [row for row in many if row["status"] == "ok" and row["tol"] == 1e-3]:
        found["digits.seconds"], found["digits.error"] = (
            seconds(done[0]["seconds"]),
            f"{100 * done[0]['test_error']:.2f}",
        )
    two = [row for row in rows if row["classes"] == 2 and row["intercept"]]
    ratios = [ratio for ratio, n, _ in kernel_report.gap_table(two, "cutsvm exact")[1] if n >= kernel_report.MANY_ROWS]
    if ratios:
        low, middle, high = min(ratios), median(ratios), max(ratios)
        found["kernel.ratios"] = f"{low:.2f} to {high:.2f}, median {middle:.2f}"
        found["kernel.lines"] = str(len(ratios))
    return found


def billion_figures() -> dict[str, str]:
    """The billion rows by our default solver."""
    row = next(
        row for row in stored("billion") if float(row["rows"]) == 1e9 and row.get("solver", "default") == "default"
    )
    return {
        "billion.gigabytes": f"{float(row['gigabytes']):.0f}",
        "billion.limit": row["limit"].replace("MB", " MB"),
        "billion.minutes": f"{float(row['seconds_fit']) / 60:.0f}",
        "billion.gap": f"{float(row['gap']):.0e}".replace("e-0", "e-"),
        "billion.reads": row["reads"],
        "billion.memory": f"{float(row['peak_megabytes']):.0f}",
        "billion.accuracy": f"{100.0 * float(row['accuracy']):.4f}",
    }


def svmlight_figures() -> dict[str, str]:
    return {"svmlight.ratio": f"{max(float(row['times_scikit_learn']) for row in stored('svmlight')):.0f}"}


def commits() -> dict[str, str]:
    """`commit.NAME` for every stored result."""
    return {f"commit.{path.stem}": measured_on(stored(path.stem)) for path in sorted(RESULTS.glob("*.csv"))}


def filled(page: Path) -> str:
    """The text of a page with its figures and tables."""
    tables = {
        "covtype-table": covtype_table,
        "classes-table": classes_table,
        "ranking-table": ranking_table,
        "solvers-table": solvers_table,
        "losses-table": losses_table,
        "parquet-table": parquet_table,
        "cluster-table": cluster_table,
        "kernel-table": kernel_table,
    }
    text = page.read_text()
    figures: dict[str, str] = {}
    for make in (
        path_figures,
        faster_figures,
        ranking_figures,
        mnist_figures,
        kernel_figures,
        billion_figures,
        svmlight_figures,
        commits,
    ):
        figures |= make()
    for name, table in tables.items():
        if f"<!-- {name} -->" in text:
            text = with_table(text, name, table())
    return with_figures(text, figures)


def outdated(pages: Iterable[Path]) -> list[str]:
    """The pages that say something else than the results."""
    return [str(page) for page in pages if page.read_text() != filled(page)]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is out of date")
    pages = [ROOT / name for name in PAGES]
    if options.parse_args().check:
        wrong = outdated(pages)
        print("\n".join(wrong) or "All figures are those of the results.")
        raise SystemExit(1 if wrong else 0)
    for page in pages:
        page.write_text(filled(page))


if __name__ == "__main__":
    main()
