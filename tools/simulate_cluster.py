"""A model of a fit on a cluster: rounds, bytes and seconds, the method that is chosen, and what limits it.

    python -m tools.simulate_cluster                                # table, CSV and picture of many sizes
    python -m tools.simulate_cluster --n 1e9 --d 100 --workers 20   # one fit, round by round
    python -m tools.simulate_cluster --check benchmarks/results/cluster_long.csv --threads 1 --shared-cores \\
        --image docs/images/cluster-check.png       # measured runs on one machine beside the model: ratios and picture

`tools/cluster_model.py` has the model and what is counted; its numbers are options here (`--set task=0.002`). It writes
benchmarks/results/cluster_model.csv and, from that, docs/images/cluster-model.png and the tables of
docs/cluster-costs.md.
"""

from __future__ import annotations

import argparse
import csv
import math
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from tools.cluster_model import (
    ENGINES,
    METHODS,
    SOURCES,
    Cluster,
    Constants,
    Cost,
    Data,
    largest,
    short,
    simulate,
)

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "cluster-costs.md"
RESULT, PICTURE = ROOT / "benchmarks" / "results" / "cluster_model.csv", ROOT / "docs" / "images" / "cluster-model.png"
KINDS: Sequence[tuple[int, float | None]] = (
    (10, None),
    (100, None),
    (1000, None),
    (10_000, None),
    (100_000, 100.0),
    (1_000_000, 100.0),
)
FIELDS = """n d nnz workers engine source Cn method rounds reads tasks received sent seconds scheduling working network
client client_memory worker_memory reason limits""".split()
NUMBERS = "received sent seconds scheduling working network client client_memory worker_memory".split()


def record(data: Data, cluster: Cluster, found: Cost) -> dict[str, Any]:
    """A line of the CSV."""
    source = next((name for name, speed in SOURCES.items() if speed == cluster.read), short(cluster.read))
    row = {
        "n": data.n, "d": data.d, "nnz": "" if data.nnz is None else data.nnz, "workers": cluster.workers,
        "engine": cluster.engine.name, "source": source, "Cn": data.Cn, "method": found.plan.method,
        "rounds": len(found.plan.rounds), "reads": found.plan.reads, "tasks": found.tasks,
        "received": found.plan.received, "sent": found.plan.sent, "seconds": found.seconds,
        "scheduling": found.scheduling, "working": found.working, "network": found.network, "client": found.client,
        "client_memory": found.plan.memory, "worker_memory": found.worker_memory, "reason": found.plan.reason,
        "limits": "; ".join(found.limits),
    }  # fmt: skip
    return {name: f"{value:.6g}" if name in NUMBERS else value for name, value in row.items()}


def grid(cluster: Cluster, constants: Constants, Cn: float) -> Iterator[dict[str, Any]]:
    """All sizes, engines and numbers of workers of the picture and of the table."""
    for power in range(6, 13):
        for d, nnz in KINDS:
            data = Data(10**power, d, nnz, Cn=Cn)
            for engine in ("dask", "ray", "spark"):
                for workers in (1, 3, 10, 30, 100, 300, 1000):
                    own = replace(cluster, workers=workers, engine=ENGINES[engine])
                    yield record(data, own, simulate(data, own, constants))


def commit() -> str:
    git = ["git", "-C", str(ROOT)]
    found = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return found.stdout.strip() or "unknown"


def write(rows: Iterable[dict[str, Any]], path: Path) -> None:
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, [*FIELDS, "commit"])
        writer.writeheader()
        writer.writerows({**row, "commit": commit()} for row in rows)


def read(path: Path) -> list[dict[str, str]]:
    with path.open() as stream:
        return list(csv.DictReader(stream))


def clock(seconds: float) -> str:
    """12 s, 3.4 min, 5.6 h, 2.1 days"""
    for size, unit in ((86_400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.2g} {unit}" if seconds < 100.0 * size else f"{seconds / size:.0f} {unit}"
    return f"{seconds:.2g} s" if seconds < 100.0 else f"{seconds:.0f} s"


def kind(row: dict[str, Any]) -> str:
    return Data(1, int(row["d"]), float(row["nnz"]) if row["nnz"] else None).name


def table(rows: list[dict[str, Any]], engine: str = "dask") -> list[str]:
    """One line for a size, with a number of workers that suits it."""
    suits = {10**6: 1, 10**8: 10, 10**9: 30, 10**10: 100, 10**12: 1000}
    lines = [
        "| rows | features | workers | method | reads | rounds | to the client | client needs | time | limited by |"
    ]
    lines.append("|" + "---|" * 10)
    for row in rows:
        if row["engine"] == engine and suits.get(int(row["n"])) == int(row["workers"]):
            cells = [short(int(row["n"])), kind(row), row["workers"], row["method"], row["reads"], row["rounds"]]
            cells += [f"{float(row[name]) / 1e9:.2g} GB" for name in ("received", "client_memory")]
            cells += [clock(float(row["seconds"])), row["limits"] or "reading and computing"]
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def limits(cluster: Cluster, constants: Constants) -> list[str]:
    """The most rows for sifting, by features and by the client's memory."""
    sizes = (8e9, 48e9, 192e9)
    lines = [
        "| features | " + " | ".join(f"client with {size / 1e9:.0f} GB" for size in sizes) + " |",
        "|" + "---|" * 4,
    ]
    for d, nnz in KINDS:
        most = [largest(replace(cluster, client_memory=size), constants, d, nnz) for size in sizes]
        cells = ["more than 1e14" if many > 1e14 else short(many) if many else "none" for many in most]
        lines.append("| " + " | ".join([Data(1, d, nnz).name, *cells]) + " |")
    return lines


def filled(text: str, tables: dict[str, list[str]]) -> str:
    """The text with each table between `<!-- NAME -->` and `<!-- end -->`."""
    for name, lines in tables.items():
        before, mark, rest = text.partition(f"<!-- {name} -->\n")
        text = before + mark + "\n".join(["", *lines, "", ""]) + "".join(rest.partition("<!-- end -->")[1:])
    return text


def draw(rows: list[dict[str, Any]], image: Path, engine: str = "dask") -> None:
    """Seconds over workers, seconds over rows, and bytes to the client over rows."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    from cutsvm.display.plotting.style import INK, SERIES, style_axes

    markers = {"sifting": "o", "batched": "s", "dual": "^"}
    mine = [row for row in rows if row["engine"] == engine]
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11.5, 4.0), dpi=150, layout="constrained")

    def line(axes: Any, some: list[dict[str, Any]], x: str, y: str, colour: str, scale: float = 1.0) -> None:
        xs, ys = [float(row[x]) for row in some], [float(row[y]) / scale for row in some]
        axes.plot(xs, ys, color=colour, linewidth=1.6, zorder=3)
        for a, b, row in zip(xs, ys, some, strict=True):
            axes.plot(a, b, markers[row["method"]], color=colour, markersize=4.5, zorder=4)

    for power in (6, 8, 9, 10, 12):
        some = [row for row in mine if int(row["n"]) == 10**power and int(row["d"]) == 100]
        line(left, some, "workers", "seconds", INK)
        left.annotate(
            f"{short(10**power)} rows", (float(some[0]["workers"]), float(some[0]["seconds"])), (4, 5),
            textcoords="offset points", fontsize=8, color=INK,
        )  # fmt: skip
    kinds = list(dict.fromkeys(kind(row) for row in mine))
    for name, colour in zip(kinds, SERIES, strict=False):
        some = [row for row in mine if kind(row) == name and int(row["workers"]) == 100]
        line(middle, some, "n", "seconds", colour)
        line(right, some, "n", "received", colour, 1e9)
    left.set(xlabel="workers", ylabel="seconds", title="100 dense features")
    middle.set(xlabel="rows", ylabel="seconds", title="100 workers")
    right.set(xlabel="rows", ylabel="GB to the client", title="100 workers")
    for axes in (left, middle, right):
        axes.set(xscale="log", yscale="log")
        style_axes(axes)
        axes.title.set_fontsize(10)
    for axes in (left, middle):
        low, high = axes.get_ylim()
        for seconds, text in ((60.0, "minute"), (3600.0, "hour"), (86_400.0, "day")):
            if low < seconds < high:
                axes.axhline(seconds, color=INK, linewidth=0.8, linestyle=(0, (2, 3)), zorder=2)
                place = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center"}
                axes.annotate(text, (1.0, seconds), (3, 0), fontsize=8, color=INK, annotation_clip=False, **place)
    handles = [Line2D([], [], color=colour, label=name) for name, colour in zip(kinds, SERIES, strict=False)]
    names = {"sifting": "sifting", "batched": "cutting planes", "dual": "dual descent"}
    handles += [
        Line2D([], [], color=INK, marker=marker, linestyle="", label=names[key]) for key, marker in markers.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False, fontsize=8.5)
    figure.savefig(image)
    plt.close(figure)


def compared(path: Path, cluster: Cluster, constants: Constants) -> Iterator[dict[str, Any]]:
    """Of each measured run that the model has: its line of the CSV, and pairs (measured, modelled)."""
    for row in read(path):
        if row["engine"] not in ENGINES or row["method"] not in METHODS or not row["rounds"]:
            continue
        own = replace(cluster, workers=int(row["workers"]), engine=ENGINES[row["engine"]])
        if row.get("source") == "held":
            own = replace(own, read=SOURCES["memory"])
        nnz, Cn = row.get("nnz"), row.get("Cn")
        data = Data(int(row["n"]), int(row["d"]), float(nnz) if nnz else None, Cn=float(Cn) if Cn else 1e4)
        found = simulate(data, own, constants, row["method"])
        model = {"rounds": float(len(found.plan.rounds)), "bytes": found.plan.received, "seconds": found.seconds}
        yield {**row, "pairs": {name: (float(row[name]), value) for name, value in model.items()}}


def check(path: Path, cluster: Cluster, constants: Constants) -> list[str]:
    """Measured runs beside the model: ratios of rounds, bytes and seconds, measured over modelled."""
    lines = [f"{'engine':<7}{'workers':>8}{'n':>9}{'d':>7}  {'method':<9}{'rounds':>14}{'bytes':>22}{'seconds':>20}"]
    ratios: dict[str, list[float]] = {"rounds": [], "bytes": [], "seconds": []}
    for row in compared(path, cluster, constants):
        cells = f"{row['engine']:<7}{row['workers']:>8}{short(int(row['n'])):>9}{short(int(row['d'])):>7}  "
        cells += f"{row['method']:<9}"
        for name, width in (("rounds", 14), ("bytes", 22), ("seconds", 20)):
            measured, modelled = row["pairs"][name]
            ratios[name].append(measured / modelled)
            text = f"{short(measured)}/{short(modelled)} = {measured / modelled:.2f}"
            cells += f"{text:>{width}}"
        lines.append(cells)
    for name, values in ratios.items():
        if values:
            mean = math.exp(sum(math.log(max(value, 1e-12)) for value in values) / len(values))
            between = f"{min(values):.2f} to {max(values):.2f}"
            lines.append(f"{name}: {between}, geometric mean {mean:.2f}, {len(values)} runs")
    skipped = len(read(path)) - len(ratios["rounds"])
    return [*lines, f"left out, as the model has no such engine or method: {skipped} runs"] if skipped else lines


def draw_check(path: Path, cluster: Cluster, constants: Constants, image: Path) -> None:
    """Measured over modelled rounds, bytes and seconds, with the line where both are the same."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from cutsvm.display.plotting.style import INK, SERIES, style_axes

    rows = list(compared(path, cluster, constants))
    if not rows:
        raise SystemExit(f"{path}: no run of an engine and a method that the model has")
    figure, panels = plt.subplots(1, 3, figsize=(9.0, 3.3), dpi=150, layout="constrained")
    for axes, name in zip(panels, ("rounds", "bytes", "seconds"), strict=True):
        for engine, colour in zip(ENGINES, SERIES, strict=False):
            pairs = [row["pairs"][name] for row in rows if row["engine"] == engine]
            if pairs:
                measured, modelled = zip(*pairs, strict=True)
                axes.plot(modelled, measured, "o", color=colour, markersize=5, label=engine, zorder=3)
        ends = [value for row in rows for value in row["pairs"][name]]
        axes.plot([min(ends), max(ends)], [min(ends), max(ends)], color=INK, linewidth=1, linestyle=(0, (2, 3)))
        scale = "linear" if name == "rounds" else "log"
        axes.set(xscale=scale, yscale=scale, xlabel="model", ylabel="measured", title=name)
        style_axes(axes)
    panels[0].legend(frameon=False, fontsize=8.5)
    figure.savefig(image)
    plt.close(figure)


def changed(text: Sequence[str], cluster: Cluster, constants: Constants) -> tuple[Cluster, Constants]:
    """The fields that were named by NAME=NUMBER: of the cluster, of its engine, or of the constants."""
    for item in text:
        name, _, number = item.partition("=")
        value = float(number)
        for place in (cluster, cluster.engine, constants):
            own = {part.name: place.__dict__[part.name] for part in fields(place)}
            if name in own and isinstance(own[name], int | float):
                typed = type(own[name])(value)
                if place is cluster:
                    cluster = replace(cluster, **{name: typed})
                elif place is constants:
                    constants = replace(constants, **{name: typed})
                else:
                    engine = replace(cluster.engine, **{name: typed})
                    ENGINES[engine.name], cluster = engine, replace(cluster, engine=engine)
                break
        else:
            raise SystemExit(f"--set {item}: no such number; see Cluster, Engine and Constants")
    return cluster, constants


def one(data: Data, cluster: Cluster, constants: Constants, method: str) -> list[str]:
    """A fit, round by round."""
    found = simulate(data, cluster, constants, method)
    plan, counts = found.plan, data.counts
    lines = [
        f"{short(data.n)} rows, {data.name}: {short(data.n * data.row_bytes)} B, {counts.grains:,} grains, "
        f"{counts.chunks:,} chunks; {cluster.workers} workers, {cluster.engine.name}",
        f"{plan.method}: {plan.reason}",
        f"{plan.reads} reads, {len(plan.rounds)} rounds, {found.tasks:,} tasks, {short(plan.received)} B to the client,"
        f" {short(plan.sent)} B from it; memory: client {short(plan.memory)} B, worker {short(found.worker_memory)} B",
        f"{clock(found.seconds)}: scheduling {clock(found.scheduling)}, workers {clock(found.working)}, "
        f"network {clock(found.network)}, client {clock(found.client)}",
        f"limits: {'; '.join(found.limits) or 'none'}",
    ]
    for name in dict.fromkeys(step.name for step in plan.rounds):
        same = [step for step in plan.rounds if step.name == name]
        lines.append(
            f"  {len(same)} x {name}: {short(same[0].received)} B to the client, {short(same[0].sent)} B from it"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--n", type=float, help="one fit of N rows")
    add("--d", type=float, default=100)
    add("--nnz", type=float, help="values of a sparse row; default: dense")
    add("--Cn", type=float, default=1e4, help="C n")
    add("--method", choices=("auto", *METHODS), default="auto")
    add("--unknown-sizes", action="store_true", help="rows of the parts are not known: one more round")
    add("--workers", type=int, default=20)
    add("--threads", type=int, default=4, help="of a worker")
    add("--engine", choices=tuple(ENGINES), default="dask")
    add("--source", choices=tuple(SOURCES), default="object store", help="where a worker reads the rows")
    add("--client-memory", type=float, default=48e9)
    add("--shared-cores", action="store_true", help="scheduler, client and workers on the same cores")
    add("--set", nargs="*", default=[], metavar="NAME=NUMBER", help="a field of Cluster, Engine or Constants")
    add(
        "--check",
        type=Path,
        metavar="CSV",
        help="of measured runs: engine, workers, n, d, method, rounds, bytes, seconds",
    )
    add("--out", type=Path, default=RESULT)
    add("--image", type=Path, default=PICTURE, help="the picture; with --check none by default")
    add("--draw-only", action="store_true", help="table and picture from the CSV")
    options = parser.parse_args()
    cluster = Cluster(
        options.workers, options.threads, ENGINES[options.engine], read=SOURCES[options.source],
        client_memory=options.client_memory, shared_cores=options.shared_cores,
    )  # fmt: skip
    cluster, constants = changed(options.set, cluster, Constants())
    if options.check:
        print("\n".join(check(options.check, cluster, constants)))
        if options.image != PICTURE:
            draw_check(options.check, cluster, constants, options.image)
        return
    if options.n:
        data = Data(int(options.n), int(options.d), options.nnz, Cn=options.Cn, sizes=not options.unknown_sizes)
        print("\n".join(one(data, cluster, constants, options.method)))
        return
    if not options.draw_only:
        write(grid(cluster, constants, options.Cn), options.out)
    rows: list[dict[str, Any]] = list(read(options.out))
    print("\n".join(table(rows)))
    print("\n".join(["", *limits(cluster, constants)]))
    if options.out == RESULT:
        tables = {"cluster-model": table(rows), "cluster-limits": limits(cluster, constants)}
        tables["cluster-model"] += ["", f"Commit {rows[0]['commit']}."]
        PAGE.write_text(filled(PAGE.read_text(), tables))
    draw(rows, options.image)


if __name__ == "__main__":
    main()
