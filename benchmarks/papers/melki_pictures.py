"""The pictures of melki.py: table III, and figures 6 and 7."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.lines import Line2D

import plots
from melki_report import EPOCHS, PAPER, PAPERS, SHARES, SOLVERS, columns, of, one, reading
from paper import Picture

Row = dict[str, Any]


def picture_of_accuracies(rows: list[Row], path: Path) -> None:
    """Figures 1 and 2: NL-SGD of the paper, and the shuffles of both readings."""
    names = [name for name in PAPER if reading(rows, name, "sum")]
    few = (len(names) + 1) // 2
    figure, grid = plots.panels(2, few, width=1.5, height=1.7)
    for place, axes in enumerate([axes for row in grid for axes in row]):
        if place >= len(names):
            axes.set_visible(False)
            continue
        name = names[place]
        for k, own in enumerate(("sum", "mean")):
            mine = reading(rows, name, own)
            where = k + np.linspace(-0.25, 0.25, len(mine)) if len(mine) > 1 else [k]
            axes.plot(where, mine, color=plots.SERIES[(0, 1)[k]], marker=plots.MARKERS[k], linestyle="", markersize=3)
            axes.plot([k - 0.35, k + 0.35], [np.mean(mine)] * 2, color="black", linewidth=1.2)
        axes.axhline(PAPER[name][0][2], color=PAPERS, linewidth=1.2)
        axes.set_xlim(-0.6, 1.6)
        axes.set_xticks([0, 1], ["1/(Cm)", "1/C"])
        axes.set_title(name.removesuffix("_lasvm"))
        axes.grid(axis="x", visible=False)
    handles = [
        Line2D([], [], color=plots.SERIES[k], marker=plots.MARKERS[k], linestyle="", label=label)
        for k, label in enumerate(("shuffles, $\\lambda$ = 1/(C m)", "shuffles, $\\lambda$ = 1/C"))
    ]
    mean = Line2D([], [], color="black", label="their mean")
    plots.legend_on_top(figure, [*handles, mean, Line2D([], [], color=PAPERS, label="paper, table II")], 4)
    figure.supylabel("accuracy of NL-SGD, %", size=9)
    plots.save(figure, path)


def picture_of_times(rows: list[Row], path: Path) -> None:
    """Table III: the paper's CPU seconds and ours, and SVC's."""
    names = [name for name in PAPER if reading(rows, name, "mean", "cpu")]
    figure, [[axes]] = plots.panels(1, 1, width=7.6, height=2.8)
    width = 0.13
    for place, label in enumerate(SOLVERS.values()):
        colour = plots.SERIES[(3, 1, 0)[place]]
        printed = [PAPER[name][1][place] for name in names]
        found = [columns(rows, name, "cpu")[2 * place + 1] for name in names]
        ours = [float(np.median(own)) if own else np.nan for own in found]
        where = np.arange(len(names)) + width * (2 * place - 2.5)
        axes.bar(where, printed, width, facecolor="white", edgecolor=colour, label=f"{label}, paper", zorder=2)
        axes.bar(where + width, ours, width, facecolor=colour, edgecolor=colour, label=label, zorder=2)
    peers = {row["set"]: row for row in of(rows, "peer")}
    for place, name in enumerate(names):
        if name in peers:
            axes.plot([place - 0.45, place + 0.45], [peers[name]["cpu"]] * 2, color=plots.SERIES[2], zorder=3)
    axes.plot([], [], color=plots.SERIES[2], label="SVC in GridSearchCV")
    axes.set(yscale="log", ylabel="CPU seconds, nested 5 x 5 over 8 x 8")
    axes.set_xticks(range(len(names)), [name.removesuffix("_lasvm") for name in names])
    axes.grid(axis="x", visible=False)
    plots.plain_ticks(axes.yaxis)
    figure.legend(loc="outside upper center", ncols=4)
    plots.save(figure, path)


def picture_of_shares(rows: list[Row], path: Path) -> None:
    """Figures 6 and 7: accuracy by epochs and share averaged, lambda = 1/C."""
    names = [name for name in PAPER if of(rows, "configurations", set=name, C_times="mean")]
    few = (len(names) + 1) // 2
    figure, grid = plots.panels(2, few, width=1.75, height=1.6)
    for place, axes in enumerate([axes for row in grid for axes in row]):
        if place >= len(names):
            axes.set_visible(False)
            continue
        name = names[place]
        for epochs in sorted({row["epochs"] for row in of(rows, "configurations", set=name, C_times="mean")}):
            mine = [float(np.mean(one(rows, name, "mean", epochs, average))) for average in SHARES]
            colour, marker = plots.SERIES[EPOCHS[int(epochs)]], plots.MARKERS[EPOCHS[int(epochs)]]
            axes.plot(range(len(SHARES)), mine, color=colour, marker=marker)
        axes.axhline(PAPER[name][0][2], color=PAPERS, linewidth=1.2)
        axes.set_xlim(-0.3, len(SHARES) - 0.7)
        axes.set_xticks(range(len(SHARES)), ["last", "25 %", "50 %", "75 %"])
        axes.set_title(name.removesuffix("_lasvm"))
        axes.grid(axis="x", visible=False)
    seen = {int(row["epochs"]) for row in of(rows, "configurations")}
    handles = [
        Line2D([], [], color=plots.SERIES[k], marker=plots.MARKERS[k], label=f"{epochs} epoch{'s' * (epochs > 1)}")
        for epochs, k in EPOCHS.items()
        if epochs in seen
    ]
    plots.legend_on_top(figure, [*handles, Line2D([], [], color=PAPERS, label="paper, table II")], 5)
    figure.supylabel("accuracy, %", size=9)
    plots.save(figure, path)


PICTURES = {
    "table2": Picture("melki-accuracies.png", "Accuracy of NL-SGD over shuffles", picture_of_accuracies),
    "table3": Picture("melki-seconds.png", "CPU seconds of nested cross-validation", picture_of_times),
    "figures": Picture("melki-shares.png", "Accuracy by epochs and share averaged", picture_of_shares),
}
