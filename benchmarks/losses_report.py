"""The tables of losses.py, made from its CSV."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import binary_report
from binary_report import OURS, Best, Line, markdown, number, peers, problems, summary
from losses_data import LOSSES
from provenance import measured_on

Row = dict[str, Any]
GOALS = {"long": 0.5}  # our time over the best peer's: at most this, and at most 1 for other shapes
HEADER = [
    "# Every loss beside its peers",
    "",
    "Everybody minimises `|w|^2/2 + C sum_i loss(f_i, y_i)` with `f = X w`, the last column of X being 1. Seconds of",
    "training, and how far the answer is from the best lower bound. Ours: until the gap is proved (the whole `fit`). A",
    "peer: the fastest of its settings whose answer is that good, proved or not; in brackets the closest that it came.",
    "Everybody ran on the same number of cores: {cores}. A ratio below 1 is in our favour. Commit: {commits}.",
    "",
]
CHECK = [
    "## Do they all solve the same problem?",
    "",
    "The smallest gap of all runs of a solver, for each C; -: no answer in time. Whoever solves another problem would",
    "not come close at any C. `sklearn QuantileRegressor` and `statsmodels` have no such penalty and run without one:",
    "at a small C they do not solve this problem.",
    "",
]


class LossLine(Line):
    """One loss, set, C and gap."""

    def __init__(self, key: binary_report.Key, gap: float, rows: list[Row]) -> None:
        super().__init__(key, gap, rows)
        self.loss, self.shape = rows[0]["loss"], rows[0]["shape"]

    @property
    def goal(self) -> float:
        return GOALS.get(self.shape, 1.0)

    @property
    def name(self) -> str:
        return f"C n = {self.key[1]:.0e}, gap {self.gap:.0e}: {self.peer}"

    def cells(self, names: list[str]) -> list[str]:
        place = [self.key[0].partition(" ")[2], f"{self.key[1]:.0e}", f"{self.gap:.0e}"]
        found = [cell(self.found.get(name)) for name in names]
        return [*place, binary_report.cell(self.ours), *found, self.peer or "none", number(self.to_peer)]


def cell(found: Best | None) -> str:
    """Seconds and gap with the way in which they came about, or why there are none."""
    if found is None:
        return ""
    reason = next((row["message"].partition(": ")[2] for row in found.runs if row["message"]), "")
    if math.isinf(found.gap) and reason:
        return f"({reason})"
    variant = found.runs[0]["variant"]
    text = binary_report.cell(found)
    return f"{text}, {variant}" if variant and not math.isinf(found.gap) else text


def lines_of(rows: list[Row], gaps: list[float]) -> list[LossLine]:
    return [LossLine(key, gap, group) for key, group in problems(rows).items() for gap in gaps]


def overview(lines: list[LossLine]) -> list[str]:
    """Our ratio to the best peer, by loss and shape."""
    groups: dict[tuple[str, str], list[LossLine]] = defaultdict(list)
    for line in lines:
        groups[line.loss, line.shape].append(line)
    table = []
    for (loss, shape), mine in groups.items():
        known = [line for line in mine if not math.isnan(line.to_peer)]
        if not known:
            table.append([loss, shape, str(len(mine)), "no peer got there", "", "", "", ""])
            continue
        worst = max(known, key=lambda line: line.to_peer)
        counts = [sum(line.to_peer <= limit for line in known) for limit in (1.0, worst.goal)]
        shares = [f"{count} of {len(known)}" for count in counts]
        middle = number(median(line.to_peer for line in known))
        table.append([loss, shape, str(len(mine)), *shares, middle, number(worst.to_peer), worst.name])
    head = ["loss", "set", "lines", "as fast", "goal met", "median ratio", "worst", "where"]
    return markdown(head, table)


def lost(lines: list[LossLine]) -> list[str]:
    """The lines where a peer was faster, and those on long data where we took more than half of its time."""
    table = []
    for line in lines:
        if line.to_peer > line.goal:
            theirs = line.found[line.peer]
            what = [f"{line.key[1]:.0e}", f"{line.gap:.0e}", binary_report.cell(line.ours)]
            table.append([line.loss, line.shape, *what, f"{line.peer}: {cell(theirs)}", number(line.to_peer)])
    head = ["loss", "set", "C n", "gap", "cutsvm", "best peer", "ratio"]
    return markdown(head, table) if table else ["None.", ""]


def closest(rows: list[Row]) -> list[str]:
    """How close each solver came, by loss and shape: its smallest gap at each C."""
    names = [OURS, *peers(rows)]
    table = []
    for loss, shape in dict.fromkeys((row["loss"], row["shape"]) for row in rows):
        group = problems([row for row in rows if (row["loss"], row["shape"]) == (loss, shape)])
        cells = []
        for name in names:
            ran = [[row["gap"] for row in part if row["solver"] == name] for part in group.values()]
            gaps = [min((gap for gap in part if gap != ""), default=math.nan) for part in ran]
            cells.append(", ".join(number(gap, ".0e") or "-" for gap in gaps) if any(ran) else "")
        table.append([loss, shape, *cells])
    return markdown(["loss", "set", *names], table)


def references(rows: list[Row]) -> list[str]:
    """Where there was no bound that tight."""
    loose = dict.fromkeys((row["set"], row["Cn"]) for row in rows if row["reference"] != "lower bound")
    if not loose:
        return ["Every gap is to a lower bound within a tenth of the smallest gap of the best answer.", ""]
    text = "; ".join(f"{name}, C n = {Cn:.0e}" for name, Cn in loose)
    return [f"No lower bound was that tight, and the gap is to the best answer of all: {text}.", ""]


def tables(rows: list[Row], gaps: list[float]) -> list[str]:
    """The whole report as lines of markdown."""
    lines = lines_of(rows, gaps)
    cores = ", ".join(dict.fromkeys(f"{row['cores']:.0f}" for row in rows))
    text = [part.format(cores=cores, commits=measured_on(rows)) for part in HEADER]
    wrong = binary_report.contradictions(rows)
    text += [f"- **CONTRADICTION** {entry}" for entry in wrong] or ["No answer lies below the lower bound."]
    text += ["", *references(rows)]
    for shape in dict.fromkeys(line.shape for line in lines):
        mine = [line for line in lines if line.shape == shape]
        met = sum(line.to_peer <= line.goal for line in mine)
        many = sum(not math.isnan(line.to_peer) for line in mine)
        ratios = summary([line.to_peer for line in mine])
        text += [f"{shape}: {ratios}; at most {mine[0].goal:g} in {met} of {many}.", ""]
    text += [*overview(lines), "## Where we do not meet the goal", ""]
    text += ["At most 0.5 of the best peer's time on the long sets, at most 1 elsewhere.", "", *lost(lines)]
    for loss in dict.fromkeys(line.loss for line in lines):
        mine = [line for line in lines if line.loss == loss]
        names = peers([row for row in rows if row["loss"] == loss])
        head = ["set", "C n", "gap", "cutsvm", *names, "best peer", "ours / best peer"]
        text += [f"## {loss}: `{LOSSES[loss].formula}`", "", *markdown(head, [line.cells(names) for line in mine])]
    return [*text, *CHECK, *closest(rows)]


def make(path: Path, gaps: list[float]) -> None:
    """Write the tables beside the CSV."""
    rows = binary_report.read(path)
    text = tables(rows, sorted(gaps, reverse=True))
    path.with_suffix(".md").write_text("\n".join(text).rstrip() + "\n")
    print(f"Written: {path}, {path.with_suffix('.md').name}")
