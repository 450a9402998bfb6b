"""The README's picture: how many times faster than the best of the other solvers, in every line of binary.py.

    python benchmarks/front.py          # from results/binary.csv into docs/images/faster.png

A point is one C and one gap. Ours ends with a proof; the others' seconds are of the fastest of their settings whose
answer is that good, as measured afterwards. At the right edge: no other solver got there.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

import plots
from binary_report import Line, problems, read

HERE = Path(__file__).resolve().parent
COSTS = {1e2: "#56B4E9", 1e4: "#0072B2", 1e6: "#000000"}
MARKERS = {1e-2: "o", 1e-3: "s", 1e-4: "D"}
EDGE = 60.0  # where the lines stand that no other solver reached


def points(axes: Axes, place: int, lines: list[Line]) -> None:
    """The lines of one set; a little apart by C."""
    for line in lines:
        shift = 0.2 * (1 - list(COSTS).index(line.key[1]))
        times = EDGE if math.isnan(line.to_peer) else 1.0 / line.to_peer
        look = {"color": COSTS[line.key[1]], "markersize": 5.0, "markeredgecolor": "white", "markeredgewidth": 0.6}
        axes.plot(times, place + shift, MARKERS[line.gap], **look, clip_on=False, zorder=3)


def draw(path: Path, image: Path) -> None:
    """The picture of all sets, the one with most rows on top."""
    rows = read(path)
    size = {row["set"]: (row["n"], row["d"]) for row in rows}
    lines = [Line(key, gap, group) for key, group in problems(rows).items() for gap in MARKERS]
    sets = sorted(size, key=lambda name: size[name])
    figure, [[axes]] = plots.panels(1, 1, width=6.2, height=3.3)
    for place, name in enumerate(sets):
        points(axes, place, [line for line in lines if line.key[0] == name and line.key[1] in COSTS])
    axes.axvline(1.0, color="#444444", linewidth=1.2, zorder=2)
    axes.axvspan(0.3, 1.0, color="#f3f3f3", zorder=0)
    axes.set(xscale="log", xlim=(0.3, EDGE), ylim=(-0.6, len(sets) - 0.4))
    axes.set_xticks([0.5, 1, 2, 5, 10, 20, EDGE], ["0.5", "1", "2", "5", "10", "20", "none\ngot there"])
    axes.minorticks_off()
    axes.set_yticks(range(len(sets)), [f"{name}\n{size[name][0]:,.0f} x {size[name][1]:,.0f}" for name in sets])
    axes.tick_params(length=0)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("times as fast as the best of six other solvers")
    handles = []  # column by column
    for (C, colour), (gap, marker) in zip(COSTS.items(), MARKERS.items(), strict=True):
        label = f"C n = {C:.0e}".replace("e+0", "e")
        handles.append(Line2D([], [], color=colour, marker="o", linestyle="", label=label))
        handles.append(Line2D([], [], color="#777777", marker=marker, linestyle="", label=f"gap {gap:g}"))
    plots.legend_on_top(figure, handles, 3)
    plots.save(figure, image)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=HERE / "results" / "binary.csv", help="of binary.py")
    parser.add_argument("--image", type=Path, default=HERE.parent / "docs" / "images" / "faster.png")
    options = parser.parse_args()
    draw(options.results, options.image)
    print(f"Written: {options.image}")
