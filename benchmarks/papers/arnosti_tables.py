"""The tables of arnosti.py, made from its CSV, with the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median
from typing import Any

from arnosti_printed import (
    AUTO,
    BEFORE,
    FEATURES,
    KNOWN,
    LABELS,
    MEASURES,
    ONE,
    OURS,
    PAPER,
    PAPERS_FEATURES,
    PARTS,
    RATIOS,
    SEARCH_SHARE,
    SORTING,
    STALLS,
)
from binary_report import markdown

Row = dict[str, Any]
GUARDS = (ONE, "ours, first_steps", "ours, every_zero")
TWO = ("covtype", "a9a", "ijcnn1")  # sets with two classes
KEYS = "experiment solver variant search set n d seed layout C Cn mean epsilon".split()


def fits(rows: list[Row], **wanted: Any) -> list[Row]:
    """One row per fit that ran, by the medians of its rounds; only those with the wanted values."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["iterations"] != "" and all(row[key] == value for key, value in wanted.items()):
            groups.setdefault(tuple(row[key] for key in KEYS), []).append(row)
    return [middle(group) for group in groups.values()]


def middle(group: list[Row]) -> Row:
    """The medians of the numbers, over the rounds that ended if any did."""
    ended = [row for row in group if row["ended"]] or group
    numbers = [key for key, value in ended[0].items() if isinstance(value, float)]
    return ended[0] | {key: median(row[key] for row in ended) for key in numbers}


def one(rows: list[Row], **wanted: Any) -> Row | None:
    """The fit with these values, if it ran."""
    return next(iter(fits(rows, **wanted)), None)


def count(row: Row | None) -> str:
    """Iterations, in brackets when the fit did not reach its epsilon."""
    return "" if row is None else bracket(row, f"{row['iterations']:.0f}")


def bracket(row: Row, text: str) -> str:
    return text if row["ended"] else f"({text})"


def over(row: Row | None, base: Row | None, key: str) -> str:
    """A ratio to the exact search; none where one of the two did not end, for then it says nothing."""
    if row is None or base is None or not row["ended"] or not base["ended"] or not base[key]:
        return ""
    if key != "iterations" and (row.get("cpu", "") == "") != (base.get("cpu", "") == ""):  # not the same clock
        return ""
    return f"{row[key] / base[key]:.2f}"


def share(row: Row) -> float:
    """The search in the whole time, in %."""
    return 100 * float(row["seconds_search"] / row["seconds"])


def share_text(row: Row | None) -> str:
    """The same. For msvmocas from its sorting alone to all that its clocks do not name."""
    if row is None:
        return ""
    if row["solver"] == OURS:
        return f"{share(row):.0f} %"
    return f"{share(row):.0f} to {share(row) + 100 * row['seconds_rest'] / row['seconds']:.0f} %"


def on_cpu(row: Row) -> Row:
    """The row with CPU seconds in place of those of the clock, where they were measured; the search keeps its share."""
    if row.get("cpu", "") == "":
        return row
    return row | {"seconds": row["cpu"], "seconds_search": row["cpu"] * share(row) / 100}


def percent(value: Any) -> str:
    return "" if value == "" else f"{100 * value:.2f}"


def label(row: Row) -> str:
    return LABELS[row["variant"]] if row["solver"] == OURS else str(row["solver"])


def kind(row: Row) -> str:
    return str(row["search"]) if row["solver"] == OURS else "sorting"


def ratios(rows: list[Row], name: str) -> list[str]:
    """Figures 2 and 3: each search beside the exact one."""
    mine = fits(rows, experiment=name)
    head = ["solver", "search", "seconds", "of these search", "iterations", "mu = 0"]
    for measure in ("time", "search time", "iterations"):
        head += [f"{measure} / exact", "paper"]
    lines = []
    known = any(row["cpu"] != "" for row in mine)  # else the clock's
    for row in map(on_cpu, mine):
        base = next((on_cpu(b) for b in mine if b["search"] == "exact" and b["variant"] == row["variant"]), None)
        printed = RATIOS[name].get(row["search"], ("",) * 4) if row["variant"] == PAPER else ("",) * 4
        seconds = (
            bracket(row, f"{row['seconds']:.1f}") if not known or row["cpu"] != "" or row["solver"] != OURS else ""
        )
        cells = [label(row), kind(row), seconds, share_text(row), count(row), f"{row['standstills']:.0f}"]
        for measure, value in zip(MEASURES, printed, strict=False):
            cells += [over(row, base, measure) if row["solver"] == OURS else "", value]
        lines.append(cells)
    text = f"The paper's exact search takes {SEARCH_SHARE[name]:.0f} % of its time."
    return [*markdown(head, lines), text, ""]


def errors(rows: list[Row], name: str) -> list[str]:
    """The error rates at the settings of figures 2 and 3."""
    lines = []
    for row in fits(rows, experiment=name):
        printed = RATIOS[name].get(row["search"], ("",) * 4)[3] if row["variant"] == PAPER else ""
        gap = bracket(row, f"{row['gap']:.1e}")
        lines.append([label(row), kind(row), gap, percent(row["error"]), percent(row["test_error"]), printed])
    return markdown(["solver", "search", "gap", "training error, %", "test error, %", "paper, %"], lines)


def by_features(rows: list[Row]) -> list[str]:
    """Figure 4."""
    lines = []
    for name, printed in FEATURES.items():
        for d, value in printed.items():
            wanted = {"experiment": "fig4", "set": name, "d": float(d)}
            cells = [name, str(d), "" if d not in PAPERS_FEATURES else str(PAPERS_FEATURES[d]), f"{value:.1f} %"]
            for more in ({"variant": PAPER}, {"variant": ONE}, {"solver": SORTING}):
                row = one(rows, **wanted, **more)
                cells += ["" if row is None else bracket(row, f"{row['seconds']:.1f}"), count(row), share_text(row)]
            lines.append(cells)
    head = ["set", "features", "paper's", "paper: search"]
    for name in ("the paper's algorithm", "ours, one shard", "msvmocas"):
        head += [f"{name}: s", "iterations", "search"]
    return markdown(head, lines)


def by_epsilon(rows: list[Row]) -> list[str]:
    """Figure 5."""
    lines = []
    for row in fits(rows, experiment="fig5"):
        times = [f"{row[key]:.1f}" for key in PARTS]
        cells = [label(row), f"{row['epsilon']:g}", count(row), f"{row['seconds']:.1f}", *times]
        lines.append([*cells, f"{1000 * row['seconds_qp'] / row['iterations']:.1f}"])
    head = ["solver", "epsilon", "iterations", "seconds", *PARTS.values(), "reduced problem, ms an iteration"]
    return markdown(head, lines)


def by_cost(rows: list[Row]) -> list[str]:
    """Figure 6."""
    found = costs(rows)
    printed = {100.0: ("744", "0.92", "0.81")}
    lines = []
    for C in dict.fromkeys(row["C"] for row in found):
        mine = {row["search"]: row for row in found if row["C"] == C}
        exact = mine.get("exact")
        cells = [f"{C:g}", count(exact), f"{exact['standstills']:.0f}" if exact else ""]
        cells += [over(mine.get(search), exact, "iterations") for search in ("gca2", "tca")]
        lines.append([*cells, *printed.get(C, ("", "", ""))])
    head = ["C", "the paper's algorithm: exact", "mu = 0", "gca2 / exact", "tca / exact"]
    return markdown([*head, "in the paper: exact", "gca2 / exact", "tca / exact"], lines)


def costs(rows: list[Row]) -> list[Row]:
    """The paper's algorithm on the part of covtype, at every C."""
    found = fits(rows, experiment="fig6", variant=PAPER)
    return found + fits(rows, experiment="stalls", set="covtype-7", variant=PAPER)


def by_stall(rows: list[Row]) -> list[str]:
    """Section V."""
    lines = []
    for row in fits(rows, experiment="stalls"):
        printed = STALLS.get((row["set"], row["search"], row["variant"]), ("", ""))
        run = "" if row["longest"] == "" else f"{row['longest']:.0f}"
        cells = [row["set"], f"{row['n']:.0f}", f"{row['C']:g}", label(row), kind(row), count(row)]
        lines.append([*cells, f"{row['standstills']:.0f}", run, f"{row['gap']:.1e}", percent(row["error"]), *printed])
    head = ["set", "n", "C", "solver", "search", "iterations", "mu = 0", "longest run", "gap", "error, %"]
    return markdown([*head, "paper: iterations", "paper: mu = 0"], lines)


def chances(rows: list[Row]) -> list[Row]:
    """Covtype at C = 100 with the exact search, by its rows and how they are stored."""
    found = fits(rows, experiment="stalls", set="covtype-7", variant=PAPER, search="exact")
    return found + fits(rows, experiment="layout")


def by_layout(rows: list[Row]) -> list[str]:
    """The same fit with other rows and stored otherwise."""
    lines = []
    for row in chances(rows):
        lines.append([f"{row['seed']:.0f}", row["layout"] or "csr", count(row), f"{row['standstills']:.0f}"])
    return markdown(["subset", "stored", "iterations", "mu = 0"], lines)


def by_reading(rows: list[Row]) -> list[str]:
    """Iterations and errors with C on the sum of the losses and on their mean, beside the paper's."""
    lines = []
    for (name, C), printed in KNOWN.items():
        cells = [name, f"{C:g}", *printed]
        wanted = {"set": name, "C": C, "search": "exact"}
        for solver, variant in ((OURS, PAPER), (SORTING, "")):
            places = [row for row in rows if row["experiment"] in ("fig2", "fig3", "stalls", "reading")]
            for mean in ("False", "True"):
                row = one(places, **wanted, solver=solver, variant=variant, mean=mean)
                cells += [count(row), "" if row is None else wrong(row)]
        lines.append(cells)
    head = ["set", "C", "paper: iterations", "paper: error, %"]
    for name in ("ours", "msvmocas"):
        head += [f"{name}, sum: iterations", "error, %", f"{name}, mean: iterations", "error, %"]
    return markdown(head, lines)


def wrong(row: Row) -> str:
    """The training error, and after it that on test rows."""
    return percent(row["error"]) + (f" (test {percent(row['test_error'])})" if row["test_error"] != "" else "")


def spread(found: Iterable[Row]) -> str:
    """Least, median and most iterations of some fits, those that did not end as the most."""
    counts = sorted(row["iterations"] if row["ended"] else float("inf") for row in found)
    if not counts:
        return ""
    values = [counts[0], median(counts), counts[-1]] if len(counts) > 1 else counts
    return " / ".join("-" if value == float("inf") else f"{value:.0f}" for value in values)


def by_setting(rows: list[Row]) -> list[str]:
    """Section V's guards and searches on subsets of poker."""
    printed = {
        (search, variant): STALLS[name, search, variant][0] for name, search, variant in STALLS if name == "poker"
    }
    lines = []
    wanted = {"experiment": "guards", "set": "poker", "n": 3000.0, "Cn": 25010.0}
    for key in dict.fromkeys((row["search"], row["variant"]) for row in fits(rows, **wanted)):
        found = fits(rows, **wanted, search=key[0], variant=key[1])
        reached = sum(row["ended"] for row in found)
        lines.append([label(found[0]), key[0], spread(found), f"{reached} of {len(found)}", printed.get(key, "")])
    return markdown(
        ["solver", "search", "iterations: least / median / most", "reached", "in the paper, all rows"], lines
    )


def by_guard(rows: list[Row]) -> list[str]:
    """The guards with the exact search on every set."""
    variants = (BEFORE, *GUARDS)
    lines = []
    found = fits(rows, experiment="guards", search="exact")
    for name, n, Cn in dict.fromkeys((row["set"], row["n"], row["Cn"]) for row in found):
        here = [row for row in found if (row["set"], row["n"], row["Cn"]) == (name, n, Cn)]
        cells = [name, f"{n:.0f}", f"{Cn:g}", str(len({row["seed"] for row in here}))]
        lines.append([*cells, *(spread(row for row in here if row["variant"] == variant) for variant in variants)])
    return markdown(["set", "n", "C n", "subsets", *(LABELS[variant] for variant in variants)], lines)


def by_two_classes(rows: list[Row]) -> list[str]:
    """The paper's future work."""
    lines = []
    found = [on_cpu(row) for row in fits(rows, experiment="binary")]
    for name, C, variant in dict.fromkeys((row["set"], row["C"], row["variant"]) for row in found):
        wanted = {"set": name, "C": C, "variant": variant}
        exact, gca2, tca = (one(found, search=search, **wanted) for search in ("exact", "gca2", "tca"))
        cells = [name, f"{C:g}", LABELS[variant], count(exact)]
        for key in ("iterations", "seconds"):
            cells += [over(gca2, exact, key), over(tca, exact, key)]
        lines.append(cells)
    head = ["set", "C", "solver", "exact: iterations"]
    for name in ("iterations", "time"):
        head += [f"{name}: gca2 / exact", "tca / exact"]
    return markdown(head, lines)


# What the page of the documentation has places for.
TABLES: dict[str, Callable[[list[Row]], list[str]]] = {
    "fig2": lambda rows: ratios(rows, "fig2"),
    "fig3": lambda rows: ratios(rows, "fig3"),
    "errors-covtype": lambda rows: errors(rows, "fig2"),
    "errors-mnist": lambda rows: errors(rows, "fig3"),
    "fig4": by_features,
    "fig5": by_epsilon,
    "fig6": by_cost,
    "stalls": by_stall,
    "layout": by_layout,
    "reading": by_reading,
    "guards-poker": by_setting,
    "guards": by_guard,
    "binary": by_two_classes,
}
NEEDS = {"errors-covtype": "fig2", "errors-mnist": "fig3", "guards-poker": "guards"}


def figures(rows: list[Row]) -> dict[str, str]:
    """Figures within the sentences of the page, of the experiments that ran."""
    found: dict[str, str] = {}
    counts = [row["iterations"] for row in chances(rows) if row["ended"]]
    found |= {"layout-least": f"{min(counts, default=0):.0f}", "layout-most": f"{max(counts, default=0):.0f}"}
    for search, variant in (("gca2", PAPER), ("tca", PAPER), ("exact", "paper, first_steps"), ("exact", AUTO)):
        name = f"poker-{search}-{variant}".replace(", ", "-")
        found[name] = count(one(rows, experiment="stalls", set="poker", search=search, variant=variant))
    for search in ("gca2", "tca"):
        row = one(rows, experiment="stalls", set="covtype-7", search=search, variant=PAPER)
        found[f"covtype-{search}-paper"] = count(row)
    stalled = one(rows, experiment="stalls", set="poker", search="exact", variant=PAPER, solver=OURS)
    found["poker-exact-zeros"] = f"{stalled['standstills']:.0f}" if stalled else ""
    found["poker-exact-paper"] = f"{stalled['iterations']:.0f}" if stalled else ""
    wanted = {"experiment": "guards", "set": "poker", "n": 3000.0, "Cn": 25010.0, "search": "exact"}
    for name, variant in (("before", BEFORE), ("after", ONE)):
        found[f"guards-{name}"] = spread(fits(rows, **wanted, variant=variant)).replace("-", "not within 1,500")
    found |= {f"worst-{variant}".replace(", ", "-").replace(" ", "-"): worst(rows, variant) for variant in GUARDS}
    found |= {f"worst-two-{v}".replace(", ", "-").replace(" ", "-"): worst(rows, v, TWO) for v in (*GUARDS, BEFORE)}
    for key, name in (("iterations", "iterations"), ("seconds", "time")):
        for variant in (PAPER, AUTO):
            for search in ("gca2", "tca"):
                found[f"binary-{name}-{search}-{variant}"] = two_class_range(rows, key, search, variant)
    return found


def worst(rows: list[Row], variant: str, sets: tuple[str, ...] = ()) -> str:
    """By how much the median of a guard is above that of the best of our three, where it is most."""
    ratios = []
    all_fits = [row for row in fits(rows, experiment="guards", search="exact") if not sets or row["set"] in sets]
    for place in dict.fromkeys((row["set"], row["n"], row["Cn"]) for row in all_fits):
        here = [row for row in all_fits if (row["set"], row["n"], row["Cn"]) == place]
        counts = {v: [row["iterations"] for row in here if row["variant"] == v] for v in (*GUARDS, variant)}
        if all(counts.values()):
            ratios.append(median(counts[variant]) / min(median(counts[v]) for v in GUARDS))
    return f"{100 * (max(ratios) - 1):.0f} %" if ratios else ""


def two_class_range(rows: list[Row], key: str, search: str, variant: str) -> str:
    """The least and the largest ratio to the exact search with two classes."""
    values = []
    found = [on_cpu(row) for row in fits(rows, experiment="binary", variant=variant)]
    for row in fits(found, search=search):
        base = one(found, search="exact", set=row["set"], C=row["C"])
        if base and row["ended"] and base["ended"]:
            values.append(row[key] / base[key])
    return f"{min(values):.2f} to {max(values):.2f}" if values else ""
