"""The tables and the picture of binary.py and multiclass.py, made from their CSVs."""

from __future__ import annotations

import csv
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

import plots

OURS = "cutsvm"
RIVALS = ("svmocas", "msvmocas")  # the peers with a certificate, one for two classes and one for more
CLOSE = 1.3  # our first solver is near enough to the fastest of ours up to this ratio
TEXT = {"set", "solver", "variant", "setting", "phase", "status", "message", "stopped", "note", "commit"}
TEXT |= {"loss", "shape", "reference"}  # of losses.py
# Fields that older files do not have.
LATER = {"passes", "visits", "pass_seconds", "note", "error", "claimed_objective"}
HEADER = [
    "Seconds of training, and how far the answer is from our lower bound. Ours: until the gap is proved",
    "(the whole `fit`). A peer: the fastest of its settings whose answer is that good, proved or not; in",
    "brackets the closest that it came. `{0}, proved`: its run with `-r` at the gap. A ratio below 1",
    "is in our favour.",
    "",
]
LIMIT = [
    "Seconds to prove the gap. `{0} / best own`: the time of {0} over that of our fastest solver that proved the gap,",
    "{0} included, so never below 1. The columns after it are about {0}: what it chose, full passes over the data,",
    "rows visited in all over n, the time of one pass (scores of all rows, all cores, in the layout that was faster),",
    "and its seconds in such passes: beside `passes`, how far it is from what the memory allows.",
]
WORK = ["chose", "passes", "visits / n", "one pass", "time / one pass"]
Row = dict[str, Any]
Key = tuple[str, float]
Section = Callable[["list[Line]", list[str]], list[str]]  # what a section says of all lines and the peers


class Best(NamedTuple):
    """The fastest way in which a solver reached a gap, or the closest that it came, and the runs that tell so."""

    reached: bool
    seconds: float
    gap: float
    runs: list[Row]

    def typical(self, field: str) -> float:
        """The median of a field over the runs; nan when no run has it."""
        known = [row[field] for row in self.runs if row[field] != ""]
        return median(known) if known else math.nan


def reached(row: Row, gap: float) -> bool:
    """Whether the answer is as good as `gap`, by our lower bound: a peer's measure."""
    return row["gap"] != "" and row["solver"] != OURS and bool(row["gap"] <= gap)


def proved(row: Row, gap: float) -> bool:
    """Whether a solver with a certificate was asked for `gap`, says that it got there, and is right.

    Ours must stand by the common objective and the run's own bound. A peer is believed unless it is far off:
    our bound is itself up to a tenth of the smallest gap away from the optimum.
    """
    if row["gap"] == "" or row["target"] != gap or row["stopped"] not in (True, "True"):
        return False
    return bool(row["claimed_gap"] <= 1.001 * gap + 1e-9 if row["solver"] == OURS else row["gap"] <= 1.2 * gap)


def read(path: Path) -> list[Row]:
    with path.open() as file:
        rows = list(csv.DictReader(file))
    blank: Row = dict.fromkeys(LATER, "")
    return [blank | {k: v if k in TEXT or v == "" else float(v) for k, v in row.items()} for row in rows]


def problems(rows: list[Row]) -> dict[Key, list[Row]]:
    """The rows of each data set and C."""
    found = defaultdict(list)
    for row in rows:
        found[row["set"], row["Cn"]].append(row)
    return dict(found)


def by(name: str, rows: list[Row]) -> list[Row]:
    """The runs of a peer, or of one of our own solvers."""
    return [row for row in rows if name == row["variant" if row["solver"] == OURS else "solver"]]


def own_solvers(rows: list[Row]) -> list[str]:
    """Our own solvers, the one that is compared first."""
    return list(dict.fromkeys(row["variant"] for row in rows if row["solver"] == OURS))


def peers(rows: list[Row]) -> list[str]:
    """The peers that ran, those that have a colour first."""
    ran = dict.fromkeys(row["solver"] for row in rows if row["solver"] != OURS)
    return [*(name for name in plots.COLOURS if name in ran), *(name for name in ran if name not in plots.COLOURS)]


def rival_of(rows: list[Row]) -> str:
    """The peer with a certificate that ran; the one for two classes when none did."""
    return next((name for name in RIVALS if by(name, rows)), RIVALS[0])


def best(rows: list[Row], gap: float, test: Callable[[Row, float], bool]) -> Best | None:
    """The fastest setting that passes `test`, by the median of its timed runs; else the nearest try."""
    runs = defaultdict(list)
    for row in rows:
        if row["phase"] != "bound":
            runs[row["variant"], row["setting"]].append(row)
    good: dict[str, list[Best]] = {"timed": [], "search": []}
    for group in runs.values():
        timed = [row for row in group if row["phase"] == "timed"]
        group = timed or group
        passed = [row for row in group if test(row, gap)]
        if 2 * len(passed) > len(group):
            seconds = median(row["seconds"] for row in group)
            found = Best(True, seconds, max(row["gap"] for row in passed), group)
            good["timed" if timed else "search"].append(found)
    if fastest := good["timed"] or good["search"]:
        return min(fastest, key=lambda found: found.seconds)
    tries = [row for row in rows if row["gap"] != "" and row["phase"] != "bound"]
    if tries:
        near = min(tries, key=lambda row: row["gap"])
        return Best(False, near["seconds"], near["gap"], [near])
    return Best(False, rows[0]["limit"], math.inf, rows) if rows else None


def compare(rows: list[Row], gap: float) -> dict[str, Best]:
    """Each solver's best at one gap: ours with proof, the peers' by the common measure."""
    found = {name: best(by(name, rows), gap, proved) for name in own_solvers(rows)}
    found |= {name: best(by(name, rows), gap, reached) for name in peers(rows)}
    return {name: result for name, result in found.items() if result is not None}


def quickest(found: dict[str, Best], names: Iterable[str]) -> str:
    """Which of them got there first; "" when none did."""
    there = [name for name in names if name in found and found[name].reached]
    return min(there, key=lambda name: found[name].seconds, default="")


def ratio(ours: Best | None, other: Best | None) -> float:
    """Our time over another's; inf when only the other got there, nan when it did not."""
    if other is None or not other.reached:
        return math.nan
    return ours.seconds / other.seconds if ours is not None and ours.reached else math.inf


class Line:
    """All that the tables say about one problem and gap."""

    def __init__(self, key: Key, gap: float, rows: list[Row]) -> None:
        self.key, self.gap = key, gap
        self.found = compare(rows, gap)
        own = own_solvers(rows)
        self.ours = self.found.get(own[0])
        self.peer, self.own = quickest(self.found, peers(rows)), quickest(self.found, own)
        self.rival_name = rival_of(rows)
        self.rival = best(by(self.rival_name, rows), gap, proved)
        self.to_rival = ratio(self.ours, self.rival)
        self.to_peer = ratio(self.ours, self.found.get(self.peer))
        self.to_own = ratio(self.ours, self.found.get(self.own))

    @property
    def name(self) -> str:
        return f"{self.key[0]}, C n = {self.key[1]:.0e}, gap {self.gap:.0e}"

    def head(self) -> list[str]:
        return [self.key[0], f"{self.key[1]:.0e}", f"{self.gap:.0e}"]

    def against_peers(self, names: list[str]) -> list[str]:
        cells = [*self.head(), cell(self.ours), *(cell(self.found.get(name)) for name in names)]
        cells += [cell(self.rival), number(self.to_rival)] if self.rival_name in names else []
        return [*cells, self.peer or "none", number(self.to_peer)]

    def among_ours(self, names: list[str], one_pass: dict[tuple[str, str], float]) -> list[str]:
        cells = [*self.head(), *(cell(self.found.get(name)) for name in names), self.own or "none"]
        cells.append(number(self.to_own))
        if self.ours is None or not self.ours.reached:
            return [*cells, *[""] * len(WORK)]
        run = self.ours.runs[0]
        limit = one_pass.get((self.key[0], layout(run)), math.nan)
        cells += [chosen(run["note"]), number(self.ours.typical("passes"), ".0f")]
        cells.append(number(self.ours.typical("visits") / run["n"], ".1f"))
        return [*cells, number(1e3 * limit, ".3g", " ms"), number(self.ours.seconds / limit, ".0f")]


def layout(row: Row) -> str:
    return str(json.loads(row["setting"]).get("layout", ""))


def one_passes(rows: list[Row]) -> dict[tuple[str, str], float]:
    """The time of one pass by data set and layout: the best of all that were taken."""
    found: dict[tuple[str, str], float] = {}
    for row in rows:
        if row["pass_seconds"] != "":
            key = (row["set"], layout(row))
            found[key] = min(row["pass_seconds"], found.get(key, math.inf))
    return found


def chosen(note: str) -> str:
    """What a note says was chosen, without the reasons."""
    first = (
        re.split(r"[:;,(]| because | since | as | for ", part.removeprefix("auto:"))[0] for part in note.split(" | ")
    )
    return ", then ".join(dict.fromkeys(part.strip()[:30] for part in first))


def cell(found: Best | None) -> str:
    """Seconds and true gap; in brackets when the gap was not reached."""
    if found is None:
        return ""
    if math.isinf(found.gap):
        failed = any(row["status"] == "error" for row in found.runs)
        return "(failed)" if failed else f"(over {found.seconds:.0f} s)"
    text = f"{found.seconds:.3g} s, {found.gap:.0e}"
    return text if found.reached else f"({text})"


def number(value: float, form: str = ".2f", unit: str = "") -> str:
    if math.isinf(value):
        return "not reached"
    return "" if math.isnan(value) else f"{value:{form}}{unit}"


def contradictions(rows: list[Row]) -> list[str]:
    """What cannot be: an answer below our bound, the rival's bound above an answer, a wrong objective of its own."""
    found, name = [], rival_of(rows)
    for key, group in problems(rows).items():
        lower = max((row["lower"] for row in group if row["lower"] != ""), default=0.0)
        values = [row["objective"] for row in group if row["objective"] != ""]
        rival = [row["claimed_lower"] for row in by(name, group) if row["claimed_lower"] != ""]
        said = [row for row in group if row["claimed_objective"] != ""]
        off = [abs(row["claimed_objective"] - row["objective"]) - 1e-6 for row in said]  # printed with six decimals
        if values and min(values) < lower * (1 - 1e-9):
            found.append(f"{key}: an objective of {min(values):.9g} is below the bound {lower:.9g}")
        if values and rival and max(rival) > min(values) * (1 + 1e-6) + 1e-6:
            found.append(f"{key}: {name}'s bound {max(rival):.9g} is above the objective {min(values):.9g}")
        if said and max(off) > 1e-4 * min(values):
            found.append(f"{key}: a solver's own objective is off by {max(off):.1e}")
    return found


def loose_bounds(rows: list[Row], gap: float) -> list[str]:
    """Problems whose lower bound is more than a tenth of `gap` below the best answer: there all gaps look larger."""
    found = []
    for key, group in problems(rows).items():
        gaps = [row["gap"] for row in group if row["gap"] != ""]
        if gaps and min(gaps) > 0.1 * gap:
            found.append(f"{key[0]}, C n = {key[1]:.0e} ({min(gaps):.0e})")
    return found


def markdown(head: list[str], lines: list[list[str]]) -> list[str]:
    """A table, and an empty line after it."""
    return [*("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *lines)), ""]


def table(rows: list[Row], gaps: list[float], notes: list[str], title: str, more: Section | None) -> str:
    """The whole report as markdown."""
    own, others = own_solvers(rows), peers(rows)
    first, certified = own[0], rival_of(rows)
    lines = [Line(key, gap, group) for key, group in problems(rows).items() for gap in gaps]
    wrong, loose, one_pass = contradictions(rows), loose_bounds(rows, gaps[-1]), one_passes(rows)
    place, rival = ["set", "C n", "gap"], [f"{certified}, proved", f"ours / {certified}"] if certified in others else []
    text = [
        f"# {title}",
        "",
        *(sentence.format(certified) for sentence in HEADER),
        *notes,
        *(f"- **CONTRADICTION** {entry}" for entry in wrong),
        *([] if wrong else [f"No answer lies below our bound, and no bound of {certified} above an answer."]),
        *([f"The bound is further away than a tenth of the smallest gap: {'; '.join(loose)}."] if loose else []),
        "",
        *([f"Against {certified}, both proved: {summary([line.to_rival for line in lines])}."] if rival else []),
        f"Against the best peer of each line: {summary([line.to_peer for line in lines])}.",
        *([nearness(first, lines)] if len(own) > 1 else []),
        "",
        *markdown(["set", "lines", "faster", "median ratio", "worst", "where"], by_set(lines)),
        f"## cutsvm ({first}) and the peers",
        "",
        *markdown(
            [*place, f"cutsvm, {first}", *others, *rival, "best peer", "ours / best peer"],
            [line.against_peers(others) for line in lines],
        ),
        *(more(lines, others) if more else []),
        "## Our own solvers, and the limit",
        "",
        *(sentence.format(first) for sentence in LIMIT),
        "",
        *markdown(
            [*place, *own, "best own", f"{first} / best own", *WORK],
            [line.among_ours(own, one_pass) for line in lines],
        ),
    ]
    return "\n".join(text).rstrip() + "\n"


def summary(ratios: list[float]) -> str:
    """How many comparisons, won, median and worst; where we alone fell short is counted, not averaged."""
    known = [value for value in ratios if math.isfinite(value)]
    short = sum(math.isinf(value) for value in ratios)
    tail = f"; {short} more that only we did not reach" if short else ""
    if not known:
        return f"nothing to compare{tail}"
    won = sum(value < 1 for value in known)
    span = f"median ratio {median(known):.2f}, best {min(known):.2f}, worst {max(known):.2f}"
    return f"faster in {won} of {len(known)}; {span}{tail}"


def nearness(first: str, lines: list[Line]) -> str:
    """How near our first solver is to the fastest of ours."""
    known = [line for line in lines if not math.isnan(line.to_own)]
    if not known:
        return f"None of our solvers, {first} included, proved a gap."
    near = sum(line.to_own <= CLOSE for line in known)
    worst = max(known, key=lambda line: line.to_own)
    text = f"{first} is within {CLOSE} of the fastest of our own solvers in {near} of {len(known)} lines; worst "
    return f"{text}{number(worst.to_own)} ({worst.name}: {worst.own})."


def by_set(lines: list[Line]) -> list[list[str]]:
    """Our ratio to the best peer, data set by data set."""
    cells = []
    for name in dict.fromkeys(line.key[0] for line in lines):
        mine = [line for line in lines if line.key[0] == name]
        known = [line for line in mine if not math.isnan(line.to_peer)]
        if not known:
            cells.append([name, str(len(mine)), "no peer got there", "", "", ""])
            continue
        worst = max(known, key=lambda line: line.to_peer)
        won = f"{sum(line.to_peer < 1 for line in known)} of {len(known)}"
        middle = number(median(line.to_peer for line in known))
        where = f"C n = {worst.key[1]:.0e}, gap {worst.gap:.0e}: {worst.peer}"
        cells.append([name, str(len(mine)), won, middle, number(worst.to_peer), where])
    return cells


def panel(axes: Axes, rows: list[Row], gaps: list[float], styles: dict[str, dict[str, Any]]) -> None:
    """Seconds against gap, one line per solver; a cross above the rest: not reached by our first, or a peer."""
    found = {gap: compare(rows, gap) for gap in gaps}
    times = [b.seconds for all_of in found.values() for b in all_of.values() if b.reached]
    top = 2.5 * max(times, default=1.0)
    crossed = [name for name, style in styles.items() if "linestyle" not in style]
    for solver, style in styles.items():
        points = [(i, found[gap].get(solver)) for i, gap in enumerate(gaps)]
        hits = [(i, b.seconds) for i, b in points if b and b.reached]
        axes.plot([i for i, _ in hits], [s for _, s in hits], **style)
        if solver not in crossed:
            continue
        shift = 0.07 * (crossed.index(solver) - len(crossed) / 2)
        for i, b in points:
            if b and not b.reached:
                axes.plot(i + shift, top, "x", color=style["color"], markersize=4, clip_on=False)
    plots.log_seconds(axes, min(times, default=0.1), top)
    axes.set_xticks(range(len(gaps)), [f"{gap:.0e}".replace("e-0", "e-") for gap in gaps])
    axes.set_xlim(-0.35, len(gaps) - 0.65)


def styles_of(rows: list[Row]) -> dict[str, dict[str, Any]]:
    """Line and marker of each solver: our first heavy, our others thin and broken; filled means a certificate."""
    first, *others = own_solvers(rows)
    styles: dict[str, dict[str, Any]] = {}
    certified = (OURS, rival_of(rows))
    for place, (name, colour) in enumerate(plots.COLOURS.items()):
        proof = name in certified
        style = {"color": colour, "marker": plots.MARKERS[place], "markerfacecolor": colour if proof else "white"}
        if name == OURS:
            styles[first] = style | {"linewidth": 2.2, "zorder": 5, "label": f"{OURS}, {first}"}
        elif by(name, rows):
            styles[name] = style | {"linewidth": 1.1, "zorder": 3, "label": name}
    for name, (line, marker) in zip(others, plots.BROKEN, strict=False):
        grey = {"color": "#777777", "linewidth": 1.1, "markersize": 3.0, "zorder": 2}
        styles[name] = grey | {"linestyle": line, "marker": marker, "label": f"{OURS}, {name}"}
    return styles


def picture(rows: list[Row], gaps: list[float], path: Path) -> None:
    """A panel per data set (down) and C (across)."""
    styles, groups = styles_of(rows), problems(rows)
    costs: dict[str, list[float]] = defaultdict(list)  # of each set its own: C n may be n
    for name, Cn in groups:
        costs[name].append(Cn)
    columns = max(len(values) for values in costs.values())
    figure, grid = plots.panels(len(costs), columns)
    for (name, values), line_of in zip(costs.items(), grid, strict=True):
        for axes in line_of[len(values) :]:
            axes.set_visible(False)
        for Cn, axes in zip(sorted(values), line_of, strict=False):
            panel(axes, groups[name, Cn], gaps, styles)
            axes.set_title(f"{name},  C n = {Cn:.0e}".replace("e+0", "e"))
        line_of[0].set_ylabel("seconds")
    for axes in grid[-1]:
        axes.set_xlabel("relative gap to our lower bound")
    handles = [Line2D([], [], **style) for style in styles.values()]
    handles.append(Line2D([], [], color="#777777", marker="x", linestyle="", label="not reached"))
    plots.legend_on_top(figure, handles, min(4, 2 * columns))
    plots.save(figure, path)


def make(path: Path, notes: list[str], title: str, more: Section | None = None) -> None:
    """Write the tables and the picture beside the CSV, for the gaps that we were asked for in it."""
    rows = read(path)
    asked = {row["target"] for row in rows if row["solver"] == OURS and row["phase"] == "search"}
    gaps = sorted(asked, reverse=True)
    path.with_suffix(".md").write_text(table(rows, gaps, notes, title, more))
    picture(rows, gaps, path.with_suffix(".png"))
    print(f"Written: {path}, {path.with_suffix('.md').name}, {path.with_suffix('.png').name}")
