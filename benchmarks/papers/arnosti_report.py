"""The tables and pictures of arnosti.py, made from its CSV, with the paper's figures beside ours.

A figure of the paper's that is only in one of its pictures cannot be given; what its text says is quoted.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator

import plots
from binary_report import markdown
import paper
from paper import Picture, publish

Row = dict[str, Any]
OURS, SORTING = "cutsvm", "msvmocas"
TEXT = set("experiment solver variant search set layout mean status message".split())
MEASURES = ("seconds", "seconds_search", "iterations")
SETS = {"fig2": "covtype", "fig3": "mnist"}
# By search: time, search time and iterations over those of the exact search, as the text gives them; error in %.
RATIOS = {
    "fig2": {
        "exact": ("1", "1", "1", "35.92"),
        "gca2": ("about 0.61", "0.30 to 0.35", "below 1.10", "35.90"),
        "tca": ("about 0.61", "0.30 to 0.35", "below 1.10", "35.84"),
    },
    "fig3": {
        "exact": ("1", "1", "1", "5.57"),
        "gca2": ("about 0.86", "below 0.30", "1.02 to 1.03", "5.56"),
        "tca": ("about 0.86", "below 0.30", "1.02 to 1.03", "5.56"),
    },
}
# The same as numbers, for the picture.
BARS = {"fig2": (0.61, 0.325, 1.1), "fig3": (0.86, 0.3, 1.025)}
SEARCH_SHARE = {"fig2": 56.0, "fig3": 21.0}
# Features -> share of the search in %. Its text set is RCV1, ours is news20; "all" is in its section IV.A.
FEATURES = {
    "mnist-10": {784: 18.8, 473: 25.1, 337: 36.7, 139: 57.2},
    "news20": {62061: 7.8, 4373: 30.0, 2368: 31.9, 676: 42.5, 186: 56.4},
}
PAPERS_FEATURES = {784: 780, 62061: 47236}
# Section V: iterations, and those with a step of zero.
STANDSTILLS = {
    ("poker", "exact", False): ("1454", "1451"),
    ("poker", "gca2", False): ("235", ""),
    ("poker", "tca", False): ("234", ""),
    ("poker", "exact", True): ("231", ""),
    ("covtype-7", "exact", False): ("744", "490"),
    ("covtype-7", "gca2", False): ("686", ""),
    ("covtype-7", "tca", False): ("603", ""),
    ("covtype-7", "exact", True): ("569", ""),
}
# What the text says of iterations and errors, the latter in %.
KNOWN = {
    ("covtype-7", 1.0): ("", "35.92"),
    ("covtype-7", 100.0): ("744", ""),
    ("mnist-10", 1.0): ("", "5.57"),
    ("mnist-10-raw", 1.0): ("", "5.57"),
    ("poker", 1.0): ("1454", "50"),
}
PARTS = {
    "seconds_scores": "scores",
    "seconds_planes": "planes",
    "seconds_search": "line search",
    "seconds_qp": "reduced problem",
    "seconds_rest": "rest",
}


def read(path: Path) -> list[Row]:
    return paper.read(path, TEXT)


def fits(rows: list[Row], **wanted: Any) -> list[Row]:
    """One row per fit that ran, by the medians of its rounds; only those with the wanted values."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    keys = "experiment solver set n d C mean epsilon search shards guard".split()
    for row in rows:
        if row["iterations"] != "" and all(row[key] == value for key, value in wanted.items()):
            groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return [middle(group) for group in groups.values()]


def middle(group: list[Row]) -> Row:
    """The medians of the numbers, over the rounds that ended if any did."""
    ended = [row for row in group if row["ended"] == "True"] or group
    numbers = [key for key, value in ended[0].items() if isinstance(value, float)]
    return ended[0] | {key: median(row[key] for row in ended) for key in numbers}


def bracket(row: Row, text: str) -> str:
    """The text, in brackets when the fit did not reach its epsilon."""
    return text if row["ended"] == "True" else f"({text})"


def over(row: Row, base: Row | None, key: str) -> str:
    """A ratio to the exact search; none where one of the two did not end, for then it says nothing."""
    if base is None or row["ended"] != "True" or base["ended"] != "True" or not base[key]:
        return ""
    return f"{row[key] / base[key]:.2f}"


def share(row: Row) -> float:
    """The search in the whole time, in %."""
    return 100 * float(row["seconds_search"] / row["seconds"])


def share_text(row: Row) -> str:
    """The same. For msvmocas from its sorting alone to all that its clocks do not name."""
    if row["solver"] == OURS:
        return f"{share(row):.0f} %"
    return f"{share(row):.0f} to {share(row) + 100 * row['seconds_rest'] / row['seconds']:.0f} %"


def percent(value: Any) -> str:
    return "" if value == "" else f"{100 * value:.2f}"


def ratios(rows: list[Row], name: str) -> list[str]:
    """Figures 2 and 3: each search beside the exact one."""
    mine = fits(rows, experiment=name)
    head = ["solver", "search", "seconds", "of these search", "iterations", "mu = 0"]
    for measure in ("time", "search time", "iterations"):
        head += [f"{measure} / exact", "paper"]
    lines = []
    for row in mine:
        base = next((b for b in mine if b["search"] == "exact" and like(b, row)), None)
        paper = RATIOS[name].get(row["search"], ("",) * 4) if like_paper(row) else ("",) * 4
        cells = [label(row), row["search"] if row["solver"] == OURS else "sorting"]
        cells += [bracket(row, f"{row['seconds']:.2f}"), share_text(row)]
        cells += [f"{row['iterations']:.0f}", f"{row['standstills']:.0f}"]
        for measure, printed in zip(MEASURES, paper, strict=False):
            cells += [over(row, base, measure) if row["solver"] == OURS else "", printed]
        lines.append(cells)
    text = f"The paper's exact search takes {SEARCH_SHARE[name]:.0f} % of its time."
    return [*markdown(head, lines), text, ""]


def errors(rows: list[Row], name: str) -> list[str]:
    """The error rates at the settings of figures 2 and 3."""
    lines = []
    for row in fits(rows, experiment=name):
        paper = RATIOS[name].get(row["search"], ("",) * 4)[3] if like_paper(row) else ""
        kind = row["search"] if row["solver"] == OURS else "sorting"
        gap = bracket(row, f"{row['gap']:.1e}")
        lines.append([label(row), kind, gap, percent(row["error"]), percent(row["test_error"]), paper])
    return markdown(["solver", "search", "gap", "training error, %", "test error, %", "paper, %"], lines)


def like(one: Row, other: Row) -> bool:
    return all(one[key] == other[key] for key in ("solver", "shards", "guard"))


def like_paper(row: Row) -> bool:
    """Whether this is the paper's algorithm."""
    return bool(row["solver"] == OURS and row["shards"] == "1" and row["guard"] != "True")


def label(row: Row) -> str:
    if row["solver"] != OURS:
        return str(row["solver"])
    return f"{OURS}, {'one shard' if row['shards'] == '1' else 'shards auto'}"


def by_features(rows: list[Row]) -> list[str]:
    """Figure 4."""
    lines = []
    for name, paper in FEATURES.items():
        for d, printed in paper.items():
            found = fits(rows, experiment="fig4", set=name, d=float(d))
            ours = next((row for row in found if row["solver"] == OURS), None)
            theirs = next((row for row in found if row["solver"] == SORTING), None)
            cells = [name, str(d), "" if d not in PAPERS_FEATURES else str(PAPERS_FEATURES[d]), f"{printed:.1f} %"]
            for row in (ours, theirs):
                cells += [bracket(row, f"{row['seconds']:.2f}"), share_text(row)] if row else ["", ""]
            lines.append(cells)
    head = ["set", "features", "paper's", "paper: search", "ours, s", "ours: search", "msvmocas, s", "msvmocas: search"]
    return markdown(head, lines)


def by_epsilon(rows: list[Row]) -> list[str]:
    """Figure 5."""
    lines = []
    for row in fits(rows, experiment="fig5"):
        times = [f"{row[key]:.2f}" for key in PARTS]
        cells = [f"{row['epsilon']:g}", bracket(row, f"{row['iterations']:.0f}"), f"{row['seconds']:.2f}", *times]
        lines.append([*cells, f"{1000 * row['seconds_qp'] / row['iterations']:.2f}"])
    return markdown(["epsilon", "iterations", "seconds", *PARTS.values(), "reduced problem, ms an iteration"], lines)


def by_cost(rows: list[Row]) -> list[str]:
    """Figure 6."""
    found = fits(rows, experiment="fig6")
    paper = {100.0: ("744", "0.92", "0.81")}
    lines = []
    for C in dict.fromkeys(row["C"] for row in found):
        mine = {row["search"]: row for row in found if row["C"] == C}
        exact = mine.get("exact")
        cells = [f"{C:g}"]
        cells += [bracket(exact, f"{exact['iterations']:.0f}"), f"{exact['standstills']:.0f}"] if exact else ["", ""]
        cells += [over(mine[s], exact, "iterations") if s in mine else "" for s in ("gca2", "tca")]
        lines.append([*cells, *paper.get(C, ("", "", ""))])
    head = ["C", "exact: iterations", "mu = 0", "gca2 / exact", "tca / exact"]
    return markdown([*head, "paper: exact", "gca2 / exact", "tca / exact"], lines)


def by_guard(rows: list[Row]) -> list[str]:
    """Section V."""
    lines = []
    for row in fits(rows, experiment="stalls"):
        guard = row["guard"] == "True"
        ours = row["solver"] == OURS
        printed = STANDSTILLS.get((row["set"], row["search"], guard), ("", "")) if ours else ("", "")
        run = "" if row["longest"] == "" else f"{row['longest']:.0f}"
        cells = [row["set"], f"{row['n']:.0f}", f"{row['C']:g}", row["search"] if ours else SORTING]
        cells += [("yes" if guard else "no") if ours else "", bracket(row, f"{row['iterations']:.0f}")]
        lines.append([*cells, f"{row['standstills']:.0f}", run, f"{row['gap']:.1e}", percent(row["error"]), *printed])
    head = ["set", "n", "C", "search", "guard", "iterations", "mu = 0", "longest run", "gap", "error, %"]
    return markdown([*head, "paper: iterations", "paper: mu = 0"], lines)


def by_reading(rows: list[Row]) -> list[str]:
    """Iterations and errors with C on the sum of the losses and on their mean, beside the paper's."""
    lines = []
    for (name, C), (iterations, error) in KNOWN.items():
        cells = [name, f"{C:g}", iterations, error]
        on_sum = [row for row in fits(rows, set=name, C=C, mean="False", search="exact", solver=OURS) if main(row)]
        on_mean = fits(rows, set=name, C=C, mean="True", search="exact", solver=OURS)
        for found in (on_sum, on_mean):
            cells += [bracket(found[0], f"{found[0]['iterations']:.0f}"), wrong(found[0])] if found else ["", ""]
        lines.append(cells)
    head = ["set", "C", "paper: iterations", "paper: error, %", "sum: iterations", "sum: error, %"]
    return markdown([*head, "mean: iterations", "mean: error, %"], lines)


def main(row: Row) -> bool:
    """Whether the paper's algorithm ran at one of its settings that have a figure of their own."""
    return like_paper(row) and row["experiment"] in ("fig2", "fig3", "stalls")


def wrong(row: Row) -> str:
    """The training error, and after it that on test rows."""
    return percent(row["error"]) + (f" (test {percent(row['test_error'])})" if row["test_error"] != "" else "")


# What the page of the documentation has places for.
TABLES: dict[str, Callable[[list[Row]], list[str]]] = {
    "fig2": lambda rows: ratios(rows, "fig2"),
    "fig3": lambda rows: ratios(rows, "fig3"),
    "errors-covtype": lambda rows: errors(rows, "fig2"),
    "errors-mnist": lambda rows: errors(rows, "fig3"),
    "fig4": by_features,
    "fig5": by_epsilon,
    "fig6": by_cost,
    "stalls": by_guard,
    "reading": by_reading,
}


def picture_of_searches(rows: list[Row], path: Path) -> None:
    """Figures 2 and 3: bars of time, search time and iterations over the exact search's; diamonds are the paper's."""
    figure, grid = plots.panels(1, 2, width=4.2, height=2.6)
    styles = {"gca2": (plots.SERIES[1], ""), "tca": (plots.SERIES[2], "///"), "gca": (plots.SERIES[6], "...")}
    for name, axes in zip(SETS, grid[0], strict=True):
        mine = [row for row in fits(rows, experiment=name) if like_paper(row) and row["ended"] == "True"]
        base = next((row for row in mine if row["search"] == "exact"), None)
        for i, (search, (colour, hatch)) in enumerate(styles.items()):
            row = next((row for row in mine if row["search"] == search), None)
            if base is None or row is None:
                continue
            heights = [row[key] / base[key] for key in MEASURES]
            places = [x + 0.26 * (i - 1) for x in range(len(MEASURES))]
            axes.bar(places, heights, 0.24, color=colour, hatch=hatch, edgecolor="white", zorder=2)
        axes.plot(range(len(MEASURES)), BARS[name], "D", color="black", markerfacecolor="white", zorder=4)
        axes.axhline(1.0, color="black", linewidth=1)
        axes.set_xticks(range(len(MEASURES)), ["time", "search time", "iterations"])
        axes.grid(axis="x", visible=False)
        axes.set_title(SETS[name])
    grid[0][0].set_ylabel("over that of the exact search")
    handles: list[Any] = [Patch(facecolor=c, hatch=h, edgecolor="white", label=s) for s, (c, h) in styles.items()]
    handles.append(Line2D([], [], color="black", marker="D", markerfacecolor="white", linestyle="", label="the paper"))
    plots.legend_on_top(figure, handles, 4)
    plots.save(figure, path)


def picture_of_features(rows: list[Row], path: Path) -> None:
    """Figure 4: the share of the search against the number of features."""
    figure, grid = plots.panels(1, len(FEATURES), width=4.2, height=2.6)
    for (name, paper), axes in zip(FEATURES.items(), grid[0], strict=True):
        axes.plot([PAPERS_FEATURES.get(d, d) for d in paper], list(paper.values()), "D--", **style(0, "white"))
        for i, solver in ((1, OURS), (2, SORTING)):
            found = sorted(fits(rows, experiment="fig4", set=name, solver=solver), key=lambda row: row["d"])
            axes.plot([row["d"] for row in found], [share(row) for row in found], plots.MARKERS[i] + "-", **style(i))
            if solver == SORTING and found:
                tops = [share(row) + 100 * row["seconds_rest"] / row["seconds"] for row in found]
                axes.fill_between(
                    [row["d"] for row in found],
                    [share(row) for row in found],
                    tops,
                    alpha=0.15,
                    color=style(i)["color"],
                )
        axes.set(xscale="log", xlabel="features", ylim=(0, 100))
        axes.set_xticks(list(paper), [f"{d}" for d in paper])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_title(name if name != "news20" else "news20 (the paper: RCV1)")
    grid[0][0].set_ylabel("search in all of the time, %")
    handles: list[Any] = [Line2D([], [], marker="D", linestyle="--", label="the paper", **style(0, "white"))]
    handles.append(Line2D([], [], marker=plots.MARKERS[1], label="cutsvm, exact search", **style(1)))
    handles.append(Line2D([], [], marker=plots.MARKERS[2], label="msvmocas: sorting, shaded: at most", **style(2)))
    plots.legend_on_top(figure, handles, 3)
    plots.save(figure, path)


def style(place: int, face: str = "") -> dict[str, Any]:
    return {"color": plots.SERIES[place], "markerfacecolor": face or plots.SERIES[place]}


def curve(axes: Axes, rows: list[Row], x: str, y: str, place: int) -> None:
    """One field against another, the marker of a fit hollow where the time limit came first."""
    axes.plot([row[x] for row in rows], [row[y] for row in rows], color=plots.SERIES[place])
    for row in rows:
        axes.plot(row[x], row[y], plots.MARKERS[place], **style(place, "" if row["ended"] else "white"))


def picture_of_parts(rows: list[Row], path: Path) -> None:
    """Figure 5: where the time goes against epsilon, stacked; a star where the time limit came first."""
    figure, [[axes]] = plots.panels(1, 1, width=5.6, height=2.8)
    found = fits(rows, experiment="fig5")
    foot = [0.0] * len(found)
    for i, (key, name) in enumerate(PARTS.items()):
        heights = [row[key] for row in found]
        axes.bar(range(len(found)), heights, 0.7, foot, color=plots.SERIES[-1 - i], label=name, zorder=2)
        foot = [low + height for low, height in zip(foot, heights, strict=True)]
    stars = ["" if row["ended"] == "True" else "*" for row in found]
    axes.set_xticks(range(len(found)), [f"{row['epsilon']:g}{star}" for row, star in zip(found, stars, strict=True)])
    axes.set(xlabel="epsilon", ylabel="seconds")
    axes.grid(axis="x", visible=False)
    axes.legend()
    plots.save(figure, path)


def picture_of_costs(rows: list[Row], path: Path) -> None:
    """Figure 6: iterations over those of the exact search, against C."""
    figure, [[axes]] = plots.panels(1, 1, width=5.6, height=2.6)
    found = [row for row in fits(rows, experiment="fig6") if row["ended"] == "True"]
    base = {row["C"]: row["iterations"] for row in found if row["search"] == "exact"}
    for i, search in ((1, "gca2"), (2, "tca")):
        mine = [row for row in found if row["search"] == search and row["C"] in base]
        heights = [row["iterations"] / base[row["C"]] for row in mine]
        axes.plot([row["C"] for row in mine], heights, plots.MARKERS[i] + "-", label=search, **style(i))
        printed = float(STANDSTILLS["covtype-7", search, False][0]) / float(STANDSTILLS["covtype-7", "exact", False][0])
        axes.plot([100.0], [printed], plots.MARKERS[i], label=f"{search}, the paper", **style(i, "white"))
    axes.axhline(1.0, color="black", linewidth=1)
    axes.set(xscale="log", xlabel="the paper's C", ylabel="iterations / exact search's")
    plots.plain_ticks(axes.xaxis)
    axes.legend()
    plots.save(figure, path)


PICTURES = {
    "fig2": Picture("arnosti-searches.png", "Time, search and iterations over the exact search's", picture_of_searches),
    "fig4": Picture("arnosti-features.png", "Share of the search against the number of features", picture_of_features),
    "fig5": Picture("arnosti-epsilon.png", "Seconds by part against epsilon", picture_of_parts),
    "fig6": Picture("arnosti-cost.png", "Iterations over the exact search's against C", picture_of_costs),
}


def make(path: Path, docs: Path) -> None:
    """Tables beside the CSV and on the page of the documentation, pictures in its folder."""
    rows = read(path)
    there = {row["experiment"] for row in rows}
    needs = {"errors-covtype": "fig2", "errors-mnist": "fig3"}
    tables = {name: table(rows) for name, table in TABLES.items() if needs.get(name, name) in there}
    publish(path, docs, "Arnosti (2010)", tables, PICTURES, rows)
