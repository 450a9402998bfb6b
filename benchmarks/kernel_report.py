"""Tables and picture of `kernel.py`.

The distance of an answer is (F - lower) / F, with F as `kernel_judge.py` computes it and the best lower bound that is
known for the problem: of all our certificates, and of the dual's value at everybody's feasible coefficients. A solver
of ours reaches a gap when it proves it; a peer when its distance is within it, proved or not, with whichever of its
settings was fastest. Nobody knows beforehand which that is, so this favours the peers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from matplotlib.lines import Line2D

import plots
from kernel_data import PICTURE
from provenance import measured_on

RESULTS = Path(__file__).resolve().parent / "results"
IMAGES = RESULTS.parents[1] / "docs" / "images"
GAPS = (1e-2, 1e-3)
MANY_ROWS = 30_000
AIM_MANY, AIM_FEW = 0.7, 1.0  # ratios above these are listed: for many rows, and for fewer
OURS = "cutsvm "
Row = dict[str, Any]
Key = tuple[Any, ...]


def problem_of(row: Row) -> Key:
    return tuple(row[name] for name in ("set", "n", "setting", "C", "gamma", "intercept"))


def given(value: Any) -> bool:
    return isinstance(value, float) and not math.isnan(value)


def lower_bound(rows: Iterable[Row]) -> float:
    """The best lower bound of the answers to one problem; 0 is always one."""
    known = (row[name] for row in rows for name in ("claimed_lower", "dual"))
    return max((value for value in known if given(value)), default=0.0)


def distance(row: Row, lower: float) -> float:
    return (row["objective"] - lower) / row["objective"] if given(row["objective"]) else math.inf


def reached(row: Row, gap: float, lower: float) -> bool:
    if row["status"] != "ok":
        return False
    if row["solver"].startswith(OURS):
        return row["proved"] is True and given(row["claimed_gap"]) and row["claimed_gap"] <= gap
    return distance(row, lower) <= gap


def fastest(rows: Iterable[Row], solver: str, gap: float, lower: float) -> Row | None:
    good = [row for row in rows if row["solver"] == solver and reached(row, gap, lower)]
    return min(good, key=lambda row: row["seconds"], default=None)


def cell(rows: list[Row], solver: str, gap: float, lower: float) -> str:
    """Seconds to a gap; or the limit that was not enough, the distance that was reached, or the failure."""
    if best := fastest(rows, solver, gap, lower):
        return f"{best['seconds']:.3g}"
    mine = [row for row in rows if row["solver"] == solver]
    close = min((distance(row, lower) for row in mine if row["status"] == "ok"), default=math.inf)
    limits = [row["limit"] for row in mine if row["status"] == "limit"]
    if limits:
        return f"> {max(limits):.0f}"
    return f"not ({close:.0e})" if close < math.inf else "fails" if mine else ""


def groups(rows: Iterable[Row]) -> dict[Key, list[Row]]:
    found: dict[Key, list[Row]] = {}
    for row in rows:
        found.setdefault(problem_of(row), []).append(row)
    return found


def solvers_of(rows: Iterable[Row]) -> list[str]:
    """Ours first, then in the order of the runs."""
    names = dict.fromkeys(row["solver"] for row in rows)
    return sorted(names, key=lambda name: not name.startswith(OURS))


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(line)} |" for line in lines), ""]


def gap_table(rows: list[Row], ours: str) -> tuple[list[str], list[tuple[float, int, str]]]:
    """Seconds to each gap, and all ratios with the rows and the name of their line."""
    solvers = solvers_of(rows)
    lines, ratios = [], []
    for key, mine in groups(rows).items():
        name, n, setting, C, gamma, _ = key
        lower = lower_bound(mine)
        for gap in GAPS:
            own = fastest(mine, ours, gap, lower)
            peers = [fastest(mine, solver, gap, lower) for solver in solvers if not solver.startswith(OURS)]
            best = min((row["seconds"] for row in peers if row), default=None)
            ratio = own["seconds"] / best if own and best else None
            line = f"{name}, {n:,} rows, {setting}, {gap:g}"
            if ratio is not None:
                ratios.append((ratio, n, line))
            cells = [cell(mine, solver, gap, lower) for solver in solvers]
            shown = "" if ratio is None else f"{ratio:.2f}"
            lines.append([name, f"{n:,}", setting, f"{C:g}", f"{gamma:g}", f"{gap:g}", *cells, shown])
    return table(["set", "rows", "setting", "C", "gamma", "gap", *solvers, "ratio"], lines), ratios


def fit_table(rows: list[Row]) -> list[str]:
    """The fastest of each solver's fits with each tolerance: distance, support, test error."""
    lines = []
    for key, mine in groups(rows).items():
        lower = lower_bound(mine)
        for solver in solvers_of(mine):
            for tol in sorted({row["tol"] for row in mine if row["solver"] == solver}, reverse=True):
                fits = [row for row in mine if (row["solver"], row["tol"]) == (solver, tol)]
                row = min(fits, key=lambda row: (row["status"] != "ok", row["seconds"] or 0.0))
                error = f"{row['test_error']:.2%}" if given(row["test_error"]) else ""
                done = row["status"] == "ok"
                found = [row["status"], "", "", ""]
                if done:
                    found = [f"{row['seconds']:.3g}", f"{distance(row, lower):.1e}", f"{row['support']:,}", error]
                where = [key[0], f"{key[1]:,}", key[2], "yes" if key[5] else "no"]
                lines.append([*where, solver, f"{tol:g}", *found])
    return table("set,rows,setting,intercept,solver,tol,seconds,distance,support,test error".split(","), lines)


def summary(ratios: list[tuple[float, int, str]]) -> list[str]:
    if not ratios:
        return ["No line has a time of ours and one of a peer that gets as close.", ""]
    worst = max(ratios)
    many, few = [r for r in ratios if r[1] >= MANY_ROWS], [r for r in ratios if r[1] < MANY_ROWS]
    lines = [f"{len(ratios)} ratios: median {median(r[0] for r in ratios):.2f}, worst {worst[0]:.2f} ({worst[2]}).", ""]
    for part, aim, what in ((many, AIM_MANY, f"{MANY_ROWS:,} rows and more"), (few, AIM_FEW, "fewer rows")):
        above = sorted((r for r in part if r[0] > aim), reverse=True)
        if part:
            lines += [f"Above {aim:g}, {what}: {len(above)} of {len(part)}.", ""]
            lines += [*(f"- {ratio:.2f}: {line}" for ratio, _, line in above), *([""] if above else [])]
    return lines


def contradictions(rows: Iterable[Row]) -> list[str]:
    """Lower bounds of ours above somebody's F."""
    found = []
    for key, mine in groups(rows).items():
        claimed = max((row["claimed_lower"] for row in mine if given(row["claimed_lower"])), default=0.0)
        below = [row for row in mine if given(row["objective"]) and row["objective"] < claimed * (1 - 1e-9)]
        found += [f"- {key}: bound {claimed!r}, but {row['solver']} has {row['objective']!r}" for row in below]
    return found


def picture(rows: list[Row], path: Path, gap: float = GAPS[-1]) -> None:
    """Seconds against rows, for every solver that reaches the gap."""
    mine = [row for row in rows if row["set"] == PICTURE and row["setting"] == "central"]
    by_problem = groups(mine)
    figure, axes = plots.panels(1, 1, 5.5, 3.2)
    axis, seconds, handles = axes[0][0], [], []
    for place, solver in enumerate(solvers_of(mine)):
        points = []
        for key, group in sorted(by_problem.items(), key=lambda item: item[0][1]):
            if not key[5] and any(row["intercept"] for row in mine if row["solver"] == solver):
                continue  # a solver that has an intercept is shown with it
            if best := fastest(group, solver, gap, lower_bound(group)):
                points.append((key[1], best["seconds"]))
        if points:
            style = {"color": plots.SERIES[place % len(plots.SERIES)], "marker": plots.MARKERS[place % 8]}
            axis.plot(*zip(*points, strict=True), **style)
            handles.append(Line2D([], [], label=solver, **style))
            seconds += [point[1] for point in points]
    if not seconds:
        return
    axis.set_xscale("log")
    plots.plain_ticks(axis.xaxis)
    plots.log_seconds(axis, min(seconds), max(seconds))
    axis.set_xlabel(f"rows of {PICTURE}")
    axis.set_ylabel(f"seconds to a relative gap of {gap:g}")
    plots.legend_on_top(figure, handles, 3)
    plots.save(figure, path)


def latest(rows: list[Row]) -> list[Row]:
    """Of fits that are stored for several commits, the last."""
    names = ("set", "n", "C", "gamma", "intercept", "solver", "variant", "tol", "threads")
    return list({tuple(row[name] for name in names): row for row in rows}.values())


def make(out: Path, rows: list[Row], ours: str, notes: list[str]) -> None:
    """Write kernel.md and kernel.png."""
    rows = latest(rows)
    two, many = [row for row in rows if row["classes"] == 2], [row for row in rows if row["classes"] > 2]
    with_b, without_b = [row for row in two if row["intercept"]], [row for row in two if not row["intercept"]]
    text = ["# Kernel machines: time to a relative gap", "", f"Measured on {measured_on(rows)}.", *notes, ""]
    versions = dict.fromkeys(f"{row['solver']} {row['version']}" for row in rows if not row["solver"].startswith(OURS))
    text += [f"Peers: {', '.join(versions)}. Threads: {', '.join({str(row['threads']) for row in rows})}.", ""]
    text += [
        f"`ratio`: seconds of {ours} over those of the fastest peer that gets as close. `not (d)`: its closest",
        "",
    ]
    text[-2:] = [text[-2] + " answer has the distance d. `> s`: no answer in s seconds.", ""]
    ratios: list[tuple[float, int, str]] = []
    for title, part in (("Two classes", with_b), ("Two classes, no intercept", without_b), ("More classes", many)):
        if part:
            lines, found = gap_table(part, ours)
            text += [f"## {title}", "", *lines]
            ratios += found
    text += ["## All tolerances", "", *fit_table(rows), "## Summary", "", *summary(ratios)]
    if wrong := contradictions(rows):
        text += ["## Contradictions", "", *wrong, ""]
    (out / "kernel.md").write_text("\n".join(text).rstrip() + "\n")
    picture(rows, IMAGES / "kernel.png" if out == RESULTS else out / "kernel.png")
    print(*summary(ratios), *wrong, f"Written: {out / 'kernel.md'}", sep="\n")
