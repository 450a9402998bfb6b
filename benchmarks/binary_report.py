"""The table and the picture of binary.py, made from its CSV."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

import plots

OURS, RIVAL = "cutsvm", "svmocas"
TEXT = {"set", "solver", "variant", "setting", "phase", "status", "message", "stopped"}
HEADER = [
    "# Time to a relative gap, two classes",
    "",
    "Seconds of training, and how far the answer is from our lower bound. Ours: until the gap is proved",
    "(the whole `fit`). A peer: the fastest of its settings whose answer is that good, proved or not; in",
    "brackets the closest that it came. `svmocas, proved`: its run with `-r` at the gap. A ratio below 1",
    "is in our favour.",
    "",
]
Row = dict[str, Any]
Key = tuple[str, float]


class Best(NamedTuple):
    """The fastest way in which a solver reached a gap, or the closest that it came."""

    reached: bool
    seconds: float
    gap: float
    how: str


def reached(row: Row, gap: float) -> bool:
    """Whether the answer is as good as `gap`, by our lower bound: a peer's measure."""
    return row["gap"] != "" and row["solver"] != OURS and row["gap"] <= gap


def proved(row: Row, gap: float) -> bool:
    """Whether a solver with a certificate was asked for `gap`, says that it got there, and is right.

    Ours must stand by the common objective and the run's own bound. A peer is believed unless it is far off:
    our bound is itself up to a tenth of the smallest gap away from the optimum.
    """
    if row["gap"] == "" or row["target"] != gap or row["stopped"] not in (True, "True"):
        return False
    return row["claimed_gap"] <= 1.001 * gap + 1e-9 if row["solver"] == OURS else row["gap"] <= 1.2 * gap


def read(path: Path) -> list[Row]:
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return [{k: v if k in TEXT or v == "" else float(v) for k, v in row.items()} for row in rows]


def problems(rows: list[Row]) -> dict[Key, list[Row]]:
    """The rows of each data set and C."""
    found = defaultdict(list)
    for row in rows:
        found[row["set"], row["Cn"]].append(row)
    return dict(found)


def best(rows: list[Row], gap: float, test: Any) -> Best | None:
    """The fastest setting that passes `test`, by the median of its timed runs; else the nearest try."""
    runs = defaultdict(list)
    for row in rows:
        if row["phase"] != "bound":
            runs[row["variant"], row["setting"]].append(row)
    good: dict[str, list[Best]] = {"timed": [], "search": []}
    for (variant, setting), group in runs.items():
        timed = [row for row in group if row["phase"] == "timed"]
        group = timed or group
        passed = [row for row in group if test(row, gap)]
        if 2 * len(passed) > len(group):
            found = Best(
                True,
                median(row["seconds"] for row in group),
                max(row["gap"] for row in passed),
                f"{variant} {setting}",
            )
            good["timed" if timed else "search"].append(found)
    if fastest := good["timed"] or good["search"]:
        return min(fastest, key=lambda found: found.seconds)
    tries = [row for row in rows if row["gap"] != "" and row["phase"] != "bound"]
    if tries:
        near = min(tries, key=lambda row: row["gap"])
        return Best(False, near["seconds"], near["gap"], f"{near['variant']} {near['setting']}")
    failed = any(row["status"] == "error" for row in rows)
    return Best(False, rows[0]["limit"], math.inf, "failed" if failed else "") if rows else None


def compare(rows: list[Row], gap: float, solvers: list[str]) -> dict[str, Best]:
    """Each solver's best at one gap: ours with proof, the peers' by the common measure."""
    found = {}
    for solver in solvers:
        own = [row for row in rows if row["solver"] == solver]
        if solver == OURS and own:
            own = [row for row in own if row["variant"] == own[0]["variant"]]
        result = best(own, gap, proved if solver == OURS else reached)
        if result is not None:
            found[solver] = result
    return found


def ratio(ours: Best | None, other: Best | None) -> float:
    """Our time over another's; nan when either did not get there."""
    if ours is None or other is None or not (ours.reached and other.reached):
        return math.nan
    return ours.seconds / other.seconds


def line(key: Key, rows: list[Row], gap: float, solvers: list[str]) -> tuple[list[str], dict[str, float]]:
    """One line of the table, and its ratios."""
    found = compare(rows, gap, solvers)
    ours = found.get(OURS)
    peers = {name: b for name, b in found.items() if name != OURS and b.reached}
    winner = min(peers, key=lambda name: peers[name].seconds, default=None)
    rival = best([row for row in rows if row["solver"] == RIVAL], gap, proved)
    ratios = {"rival": ratio(ours, rival), "best": ratio(ours, peers.get(winner))}
    cells = [key[0], f"{key[1]:.0e}", f"{gap:.0e}", *(cell(found.get(name)) for name in solvers)]
    cells += [cell(rival) if rival else "", number(ratios["rival"]), winner or "none", number(ratios["best"])]
    return cells, ratios


def cell(found: Best | None) -> str:
    """Seconds and true gap; in brackets when the gap was not reached."""
    if found is None:
        return ""
    if math.isinf(found.gap):
        return "(failed)" if found.how else f"(over {found.seconds:.0f} s)"
    text = f"{found.seconds:.3g} s, {found.gap:.0e}"
    return text if found.reached else f"({text})"


def number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}"


def contradictions(rows: list[Row]) -> list[str]:
    """Answers below our lower bound, or svmocas's bound above our objective: neither can be."""
    found = []
    for key, group in problems(rows).items():
        lower = max((row["lower"] for row in group if row["lower"] != ""), default=0.0)
        values = [row["objective"] for row in group if row["objective"] != ""]
        rival = [row["claimed_lower"] for row in group if row["solver"] == RIVAL and row["claimed_lower"] != ""]
        if values and min(values) < lower * (1 - 1e-9):
            found.append(f"{key}: an objective of {min(values):.9g} is below the bound {lower:.9g}")
        if values and rival and max(rival) > min(values) * (1 + 1e-6) + 1e-6:
            found.append(f"{key}: svmocas's bound {max(rival):.9g} is above the objective {min(values):.9g}")
    return found


def table(rows: list[Row], gaps: list[float], notes: list[str]) -> str:
    """The whole report as markdown."""
    solvers = [name for name in plots.COLOURS if any(row["solver"] == name for row in rows)]
    head = [
        "set",
        "C n",
        "gap",
        *solvers,
        "svmocas, proved",
        "ours / svmocas",
        "best peer",
        "ours / best peer",
    ]
    lines, rival, top = [], [], []
    for key, group in problems(rows).items():
        for gap in gaps:
            cells, ratios = line(key, group, gap, solvers)
            lines.append("| " + " | ".join(cells) + " |")
            rival.append(ratios["rival"])
            top.append(ratios["best"])
    wrong = contradictions(rows)
    text = [
        *HEADER,
        *notes,
        *(f"- **CONTRADICTION** {entry}" for entry in wrong),
        "" if wrong else "No answer lies below our bound, and no bound of svmocas above an answer.",
        "",
        f"Against svmocas, both proved: {summary(rival)}.",
        f"Against the best peer of each line: {summary(top)}.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *lines,
    ]
    return "\n".join(text) + "\n"


def summary(ratios: list[float]) -> str:
    """How many comparisons, won, median and worst."""
    known = [value for value in ratios if not math.isnan(value)]
    if not known:
        return "nothing to compare"
    won = sum(value < 1 for value in known)
    span = f"median ratio {median(known):.2f}, best {min(known):.2f}, worst {max(known):.2f}"
    return f"faster in {won} of {len(known)}; {span}"


def panel(axes: Axes, rows: list[Row], gaps: list[float], solvers: list[str]) -> None:
    """Seconds against gap, one line per solver; a cross above the rest: not reached."""
    found = {gap: compare(rows, gap, solvers) for gap in gaps}
    times = [b.seconds for all_of in found.values() for b in all_of.values() if b.reached]
    top = 2.5 * max(times, default=1.0)
    for place, solver in enumerate(solvers):
        style = look(solver)
        points = [(i, found[gap].get(solver)) for i, gap in enumerate(gaps)]
        hits = [(i, b.seconds) for i, b in points if b and b.reached]
        axes.plot([i for i, _ in hits], [s for _, s in hits], **style)
        shift = 0.07 * (place - len(solvers) / 2)
        for i, b in points:
            if b and not b.reached:
                axes.plot(i + shift, top, "x", color=style["color"], markersize=4, clip_on=False)
    plots.log_seconds(axes, min(times, default=0.1), top)
    axes.set_xticks(range(len(gaps)), [f"{gap:.0e}".replace("e-0", "e-") for gap in gaps])
    axes.set_xlim(-0.35, len(gaps) - 0.65)


def look(solver: str) -> dict[str, Any]:
    """Line and marker of a solver: ours heavy; filled markers have a certificate."""
    place = list(plots.COLOURS).index(solver)
    colour = plots.COLOURS[solver]
    proof = solver in (OURS, RIVAL)
    return {
        "color": colour,
        "marker": plots.MARKERS[place],
        "markerfacecolor": colour if proof else "white",
        "linewidth": 2.2 if solver == OURS else 1.1,
        "zorder": 5 if solver == OURS else 3,
    }


def picture(rows: list[Row], gaps: list[float], path: Path) -> None:
    """A panel per data set (down) and C (across)."""
    solvers = [name for name in plots.COLOURS if any(row["solver"] == name for row in rows)]
    groups = problems(rows)
    sets, costs = list(dict.fromkeys(key[0] for key in groups)), sorted({key[1] for key in groups})
    figure, grid = plots.panels(len(sets), len(costs))
    for name, line_of in zip(sets, grid, strict=True):
        for Cn, axes in zip(costs, line_of, strict=True):
            panel(axes, groups.get((name, Cn), []), gaps, solvers)
            axes.set_title(f"{name},  C n = {Cn:.0e}".replace("e+0", "e"))
        line_of[0].set_ylabel("seconds")
    for axes in grid[-1]:
        axes.set_xlabel("relative gap to our lower bound")
    handles = [Line2D([], [], label=name, **look(name)) for name in solvers]
    handles.append(Line2D([], [], color="#777777", marker="x", linestyle="", label="not reached"))
    plots.legend_on_top(figure, handles, min(4, 2 * len(costs)))
    plots.save(figure, path)


def make(path: Path, notes: list[str]) -> None:
    """Write binary.md and binary.png beside the CSV, for the gaps that we were asked for in it."""
    rows = read(path)
    asked = {row["target"] for row in rows if row["solver"] == OURS and row["phase"] == "search"}
    gaps = sorted(asked, reverse=True)
    path.with_suffix(".md").write_text(table(rows, gaps, notes))
    picture(rows, gaps, path.with_suffix(".png"))
    print(f"Written: {path}, {path.with_suffix('.md').name}, {path.with_suffix('.png').name}")
