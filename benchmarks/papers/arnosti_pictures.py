"""The pictures of arnosti.py, made from its CSV, with the paper's figures beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator

import plots
from arnosti_printed import BARS, FEATURES, MEASURES, ONE, OURS, PAPER, PAPERS_FEATURES, PARTS, SETS, SORTING, STALLS
from arnosti_tables import Row, costs, fits, on_cpu, share
from paper import Picture


def picture_of_searches(rows: list[Row], path: Path) -> None:
    """Figures 2 and 3: bars of time, search time and iterations over the exact search's; diamonds are the paper's."""
    figure, grid = plots.panels(1, 2, width=4.2, height=2.6)
    styles = {"gca2": (plots.SERIES[1], ""), "tca": (plots.SERIES[2], "///"), "gca": (plots.SERIES[6], "...")}
    for name, axes in zip(SETS, grid[0], strict=True):
        mine = [on_cpu(row) for row in fits(rows, experiment=name) if row["variant"] == PAPER and row["ended"]]
        base = next((row for row in mine if row["search"] == "exact"), None)
        for i, (search, (colour, hatch)) in enumerate(styles.items()):
            row = next((row for row in mine if row["search"] == search), None)
            if base is None or row is None or (row["cpu"] == "") != (base["cpu"] == ""):  # not the same clock
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
    for (name, printed), axes in zip(FEATURES.items(), grid[0], strict=True):
        axes.plot([PAPERS_FEATURES.get(d, d) for d in printed], list(printed.values()), "D--", **style(0, "white"))
        for i, solver in ((1, OURS), (2, SORTING)):
            variant = ONE if solver == OURS else ""
            found = sorted(
                fits(rows, experiment="fig4", set=name, solver=solver, variant=variant), key=lambda row: row["d"]
            )
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
        axes.set_xticks(list(printed), [f"{d}" for d in printed])
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
    found = fits(rows, experiment="fig5", variant=PAPER)
    foot = [0.0] * len(found)
    for i, (key, name) in enumerate(PARTS.items()):
        heights = [row[key] for row in found]
        axes.bar(range(len(found)), heights, 0.7, foot, color=plots.SERIES[-1 - i], label=name, zorder=2)
        foot = [low + height for low, height in zip(foot, heights, strict=True)]
    stars = ["" if row["ended"] else "*" for row in found]
    axes.set_xticks(range(len(found)), [f"{row['epsilon']:g}{star}" for row, star in zip(found, stars, strict=True)])
    axes.set(xlabel="epsilon", ylabel="seconds")
    axes.grid(axis="x", visible=False)
    axes.legend()
    plots.save(figure, path)


def picture_of_costs(rows: list[Row], path: Path) -> None:
    """Figure 6: iterations over those of the exact search, against C."""
    figure, [[axes]] = plots.panels(1, 1, width=5.6, height=2.6)
    found = [row for row in costs(rows) if row["ended"]]
    base = {row["C"]: row["iterations"] for row in found if row["search"] == "exact"}
    for i, search in ((1, "gca2"), (2, "tca")):
        mine = [row for row in found if row["search"] == search and row["C"] in base]
        heights = [row["iterations"] / base[row["C"]] for row in mine]
        axes.plot([row["C"] for row in mine], heights, plots.MARKERS[i] + "-", label=search, **style(i))
        printed = float(STALLS["covtype-7", search, PAPER][0]) / float(STALLS["covtype-7", "exact", PAPER][0])
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
