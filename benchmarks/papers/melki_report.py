"""The tables and pictures of melki.py, made from its CSV, with the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import paper
import plots
from binary_report import markdown
from melki_statistics import Paired, against, chance, combined, paired
from paper import publish

Row = dict[str, Any]
TEXT = set("experiment set solver C_times order step iterates intercept folds choices message".split())
SOLVERS = {"min_norm": "MN-SVM", "isda": "NN-ISDA", "sgd": "NL-SGD"}
# Table II: accuracy in %; table III: seconds. In the order of SOLVERS.
PAPER = {
    "iris": ((96.67, 94.00, 96.00), (3.57, 0.27, 0.18)),
    "glass": ((69.29, 67.82, 69.17), (11.94, 1.01, 0.5)),
    "wine": ((96.60, 96.60, 97.17), (4.84, 0.43, 0.47)),
    "tae": ((52.95, 52.31, 56.95), (8.85, 0.44, 0.30)),
    "sonar": ((87.57, 89.48, 89.49), (3.03, 0.98, 0.74)),
    "dermatology": ((98.36, 98.36, 97.38), (11.68, 2.47, 1.69)),
    "heart": ((83.33, 83.33, 84.81), (6.45, 0.91, 0.61)),
    "optdigits": ((99.31, 99.29, 98.88), (787.85, 528.04, 340.70)),
    "usps": ((98.21, 98.05, 96.93), (7777.82, 5245.55, 4193.36)),
    "reuters_lasvm": ((98.05, 98.08, 97.28), (1657.04, 1368.02, 758.05)),
}
SMALL, MEDIUM = list(PAPER)[:7], list(PAPER)[7:]
# The last rows of tables II and III as they are printed, Prokaryotic and Eukaryotic included.
PRINTED = {
    "small": ((83.88, 83.34, 83.35), (49.33, 7.37, 6.16)),
    "medium": ((98.52, 98.47, 97.69), (3407.57, 2380.54, 1764.04)),
}
READINGS = {"sum": "lambda = 1/(C m)", "mean": "lambda = 1/C"}
STEPS = {"1/m": "1/(λm)", "1/t": "1/(λt)"}
INTERCEPTS = {"none": "K", "regularized": "K + 1"}
SETTINGS = [("cyclic", "1/m"), ("cyclic", "1/t"), ("random", "1/m"), ("random", "1/t")]
EPOCHS = {1: 4, 2: 6, 5: 1, 20: 0}  # their places among colours and markers
PAPERS = plots.SERIES[2]
SHARES = (0.0, 0.25, 0.5, 0.75)  # of the updates that are averaged


def read(path: Path) -> list[Row]:
    return paper.read(path, TEXT)


def of(rows: list[Row], experiment: str, **more: Any) -> list[Row]:
    """The rows of an experiment that have these values, by their shuffles."""
    found = [row for row in rows if row["experiment"] == experiment and all(row[k] == v for k, v in more.items())]
    return sorted(found, key=lambda row: row["seed"] or 0)


def there(rows: list[Row], experiment: str) -> list[str]:
    """The sets with results of an experiment, in the paper's order."""
    sets = {row["set"] for row in of(rows, experiment)}
    return [name for name in PAPER if name in sets]


def reading(rows: list[Row], name: str, C_times: str, what: str = "accuracy", **more: Any) -> list[float]:
    """NL-SGD of tables II and III on each shuffle; cyclic, with the step 1 / (lambda m) of the box, unless told."""
    asked = {"order": "cyclic", "step": "1/m", "iterates": "after"} | more
    found = of(rows, "readings", set=name, C_times=C_times, **asked)
    return [(100 if what == "accuracy" else 1) * row[what] for row in found if row[what] != ""]


def of_l2(rows: list[Row], name: str, solver: str, intercept: str, what: str = "accuracy") -> list[float]:
    found = of(rows, "l2", set=name, solver=solver, intercept=intercept)
    return [(100 if what == "accuracy" else 1) * row[what] for row in found if row[what] != ""]


def columns(rows: list[Row], name: str, what: str) -> list[list[float]]:
    """What the runs of tables II and III have come to: MN-SVM and NN-ISDA with K and K + 1, NL-SGD in both readings."""
    dual = [of_l2(rows, name, solver, own, what) for solver in ("min_norm", "isda") for own in INTERCEPTS]
    return dual + [reading(rows, name, own, what) for own in READINGS]


def with_averages(rows: list[Row], what: str, form: Callable[[list[float]], str], form_of_mean: str) -> list[list[str]]:
    """The cells of tables II and III: the paper's figure before each pair of ours; averages in the last rows."""
    place = 0 if what == "accuracy" else 1
    digits = ".2f"
    lines = []
    for name, figures in PAPER.items():
        cells, ours = [name.removesuffix("_lasvm")], columns(rows, name, what)
        for k, figure in enumerate(figures[place]):
            cells += [f"{figure:{digits}}", form(ours[2 * k]), form(ours[2 * k + 1])]
        lines.append(cells)
    for kind, names in (("small", SMALL), ("medium", MEDIUM)):
        cells = [f"average of the {len(names)} {kind} ones"]
        means = [[np.mean(found) if found else np.nan for found in columns(rows, name, what)] for name in names]
        for k in range(3):
            mine = [float(np.mean([row[2 * k + own] for row in means])) for own in range(2)]
            cells.append(f"{np.mean([PAPER[name][place][k] for name in names]):{digits}}")
            cells += ["" if np.isnan(value) else f"{value:{form_of_mean}}" for value in mine]
        lines.append(cells)
    for kind, figures in PRINTED.items():
        own = [cell for figure in figures[place] for cell in (f"{figure:{digits}}", "", "")]
        lines.append([f"as printed, {kind}", *own])
    return lines


HEAD = ["MN-SVM, paper", "K", "K + 1", "NN-ISDA, paper", "K", "K + 1", "NL-SGD, paper", *READINGS.values()]


def accuracies(rows: list[Row]) -> list[str]:
    """Table II: means over the shuffles, and the standard deviation of several."""

    def form(found: list[float]) -> str:
        if not found:
            return ""
        return f"{np.mean(found):.2f}" + (f" ({np.std(found, ddof=1):.1f})" if len(found) > 1 else "")

    lines = with_averages(rows, "accuracy", form, ".2f")
    for line, name in zip(lines, PAPER, strict=False):
        peer = [row for row in of(rows, "peer", set=name) if row["accuracy"] != ""]
        line.append(f"{100 * peer[0]['accuracy']:.2f}" if peer else "")
    return markdown(["set", *HEAD, "SVC"], [[*line, ""][: len(HEAD) + 2] for line in lines])


def seconds(rows: list[Row]) -> list[str]:
    """Table III: CPU seconds, the medians over the shuffles."""
    lines = with_averages(rows, "cpu", lambda found: f"{np.median(found):.2f}" if found else "", ".2f")
    for line, name in zip(lines, PAPER, strict=False):
        for row in of(rows, "peer", set=name)[:1]:
            mine = reading(rows, name, "mean", "cpu")
            if row["cpu"] != "" and mine:
                line += [f"{row['cpu']:.1f}" + ("" if row["ended"] else " *"), f"{row['cpu'] / np.median(mine):.0f}"]
        memory = [row["memory"] for row in of(rows, "readings", set=name) if row["memory"] != ""]
        line += [""] * (len(HEAD) + 3 - len(line))
        line.append(f"{max(memory) / 1e9:.2f}" if memory else "")
    width = len(HEAD) + 4
    return markdown(
        ["CPU seconds", *HEAD, "SVC", "SVC / NL-SGD", "peak memory, GB"], [(line + [""] * 3)[:width] for line in lines]
    )


def orders(rows: list[Row]) -> list[str]:
    """NL-SGD with each reading, order and step; and Algorithm B to the letter."""
    lines = []
    for name in there(rows, "readings"):
        cells = [name.removesuffix("_lasvm"), f"{PAPER[name][0][2]:.2f}"]
        for C_times in READINGS:
            for order, step in SETTINGS:
                found = reading(rows, name, C_times, order=order, step=step)
                cells.append(f"{np.mean(found):.2f}" if found else "")
            letter = reading(rows, name, C_times, order="random", step="1/m", iterates="before")
            cells.append(f"{np.mean(letter):.2f}" if letter else "")
        lines.append(cells)
    short = [f"{order}, 1/(λ{step[-1]})" for order, step in SETTINGS]
    head = [f"{'λ=1/(Cm)' if own == 'sum' else 'λ=1/C'}: {one}" for own in READINGS for one in (*short, "Algorithm B")]
    return markdown(["set", "paper", *head], lines)


def significance(rows: list[Row]) -> list[str]:
    """The paper's NL-SGD among our shuffles, with each reading and step."""
    lines, ps = [], {key: list[float]() for key in product(READINGS, STEPS)}
    for name in there(rows, "readings"):
        figure, cells = PAPER[name][0][2], [name.removesuffix("_lasvm")]
        cells += [str(len(reading(rows, name, "sum"))), f"{figure:.2f}"]
        for own, step in ps:
            found = reading(rows, name, own, step=step)
            if not found:
                cells.append("")
                continue
            seen = against(figure, found)
            ps[own, step].append(seen.p if name in SMALL else np.nan)
            ranks = f"; {seen.below} below, {seen.above} above" if name in SMALL else ""
            spread = f" ({seen.low:.1f} to {seen.high:.1f}){ranks}; p {chance(seen.p)}" if seen.n > 1 else ""
            cells.append(f"{seen.mean:.2f}{spread}")
        lines.append([*cells, nearer(rows, name)])
    lines.append(["the small ones together", "", "", *(f"p {chance(combined(one))}" for one in ps.values()), ""])
    head = [f"{READINGS[own]}, step {STEPS[step]}" for own, step in ps]
    return markdown(["set", "shuffles", "paper", *head, "nearer, step of the box"], lines)


def comparisons(rows: list[Row], name: str) -> list[Paired]:
    """lambda = 1/C less 1/(C m), random less cyclic, 1/(lambda t) less 1/(lambda m); the rest as in the paper."""
    step = "1/m" if reading(rows, name, "mean", order="random") else "1/t"  # the largest sets have only one of them
    asked = [
        ({"C_times": "mean"}, {"C_times": "sum"}),
        ({"order": "random", "step": step}, {"order": "cyclic", "step": step}),
        ({"step": "1/t"}, {"step": "1/m"}),
    ]
    found = []
    for one, two in asked:
        values = [
            reading(rows, name, **{"C_times": "mean"} | own)  # by their shuffles: the first ones are in both
            for own in (one, two)
        ]
        n = min(map(len, values))
        found.append(paired(values[0][:n], values[1][:n]))
    return found


def differences(rows: list[Row]) -> list[str]:
    """Settings against each other, over the same shuffles."""
    lines = []
    for name in there(rows, "readings"):
        cells = [name.removesuffix("_lasvm")]
        for found in comparisons(rows, name):
            spread = f" ± {found.error:.2f}; p {chance(found.p)}" if found.n > 1 else ""
            cells.append(f"{found.mean:+.2f}{spread}" if found.n else "")
        lines.append(cells)
    head = ["λ=1/C less λ=1/(Cm)", "random less cyclic order", "step 1/(λt) less 1/(λm)"]
    return markdown(["set", *head], lines)


def nearer(rows: list[Row], name: str) -> str:
    """The reading whose mean is nearer to the paper's figure."""
    figure = PAPER[name][0][2]
    away = {own: abs(float(np.mean(reading(rows, name, own))) - figure) for own in READINGS}
    return READINGS[min(away, key=lambda own: away[own])]


def cuts(rows: list[Row]) -> list[str]:
    """Stratified folds, and folds that are cut from the shuffled rows."""
    lines, ps = [], [list[float]() for _ in range(4)]
    for name in there(rows, "folds"):
        figure, cells = PAPER[name][0][2], [name, f"{PAPER[name][0][2]:.2f}"]
        for k, own in enumerate(READINGS):
            plain = [100 * row["accuracy"] for row in of(rows, "folds", set=name, C_times=own)]
            for j, found in enumerate((reading(rows, name, own), plain)):
                seen = against(figure, found)
                ps[2 * k + j].append(seen.p)
                cells.append(f"{seen.mean:.2f} ({seen.deviation:.1f}), p {chance(seen.p)}")
        lines.append(cells)
    lines.append(["together", "", *(f"p {chance(combined(one))}" for one in ps)])
    kinds = ("stratified", "plain")
    return markdown(["set", "paper", *(f"{READINGS[own]}, {kind}" for own in READINGS for kind in kinds)], lines)


def one(rows: list[Row], name: str, C_times: str, epochs: float, average: float) -> list[float]:
    """Accuracies in % of figures 6 and 7, by their shuffles."""
    found = of(rows, "configurations", set=name, C_times=C_times, epochs=epochs, average=average)
    return [100 * row["accuracy"] for row in found]


def all_epochs(rows: list[Row], name: str) -> list[float]:
    return sorted({row["epochs"] for row in of(rows, "configurations", set=name)})


def shares(rows: list[Row]) -> list[str]:
    """Figures 6 to 10 as a table: accuracy and CPU seconds by epochs and share averaged."""
    lines = []
    for name in PAPER:
        for epochs in all_epochs(rows, name):
            steps = {row["step"] for row in of(rows, "configurations", set=name)}
            cells = [name.removesuffix("_lasvm"), " ".join(STEPS[step] for step in sorted(steps)), f"{epochs:.0f}"]
            for own in READINGS:
                means = [one(rows, name, own, epochs, average) for average in SHARES]
                cells += [f"{np.mean(found):.2f}" if found else "" for found in means]
            timed = of(rows, "configurations", set=name, epochs=epochs, average=0.5)
            cpu = [row["cpu"] for row in timed if row["cpu"] != ""]
            lines.append([*cells, f"{np.median(cpu):.2f}" if cpu else ""])
    named = ["last", "25 %", "50 %", "75 %"]
    head = [f"{'λ=1/(Cm)' if own == 'sum' else 'λ=1/C'}: {share}" for own in READINGS for share in named]
    return markdown(["set", "step", "epochs", *head, "CPU s"], lines)


def best_of(rows: list[Row], name: str, C_times: str) -> list[float]:
    """The best accuracy of each shuffle over the epochs and shares of figure 6."""
    found = [one(rows, name, C_times, epochs, share) for epochs in (2, 5) for share in SHARES]
    return [max(values) for values in zip(*found, strict=True)]


def chosen_afterwards(rows: list[Row]) -> list[str]:
    """The best of figure 6's eight settings of each shuffle, beside the setting of table II on the same shuffles."""
    lines, ps = [], {own: list[float]() for own in READINGS}
    for name in there(rows, "configurations"):
        if name not in SMALL:
            continue
        cells = [name, f"{PAPER[name][0][2]:.2f}"]
        for own in READINGS:
            best = against(PAPER[name][0][2], best_of(rows, name, own))
            ps[own].append(best.p)
            cells += [f"{np.mean(one(rows, name, own, 5, 0.5)):.2f}"]
            cells += [f"{best.mean:.2f} ({best.low:.1f} to {best.high:.1f}); p {chance(best.p)}"]
        lines.append(cells)
    lines.append(["together", "", *(cell for own in READINGS for cell in ("", f"p {chance(combined(ps[own]))}"))])
    head = [f"{label}, {what}" for label in READINGS.values() for what in ("5 epochs, 50 %", "best of the eight")]
    return markdown(["set", "paper", *head], lines)


def over_pairs(pairs: list[tuple[list[float], list[float]]]) -> Paired | None:
    """Differences over all shuffles of several settings, one after another."""
    known = [pair for pair in pairs if pair[0] and len(pair[0]) == len(pair[1])]
    firsts, seconds = ([value for pair in known for value in pair[k]] for k in range(2))
    return paired(firsts, seconds) if firsts else None


def more_epochs(rows: list[Row], names: list[str], few: int, many: int) -> Paired | None:
    """Accuracy with many epochs minus that with few, over shuffles, readings and sets; last 50 %."""
    return over_pairs(
        [(one(rows, name, own, many, 0.5), one(rows, name, own, few, 0.5)) for name in names for own in READINGS]
    )


def averaging(rows: list[Row], names: list[str], share: float) -> Paired | None:
    """Accuracy of the mean over a share of the updates minus that of the last alpha; the paper's epochs."""
    return over_pairs(
        [
            (one(rows, name, own, epochs, share), one(rows, name, own, epochs, 0.0))
            for name in names
            for own in READINGS
            for epochs in ((2, 5) if name in SMALL else (1, 2))
        ]
    )


def claims(rows: list[Row]) -> list[str]:
    """What the paper says of figures 6 and 7, as differences over the same shuffles."""
    asked = [(f"{name}: five epochs surpass two", more_epochs(rows, [name], 2, 5)) for name in ("wine", "glass", "tae")]
    for name in MEDIUM:
        short = name.removesuffix("_lasvm")
        asked.append((f"{short}: one and two epochs differ little", more_epochs(rows, [name], 1, 2)))
    for kind, names in (("small", SMALL), ("medium", MEDIUM)):
        for share in (0.5, 0.75):
            words = f"{kind} sets: the mean of the last {100 * share:.0f} % is better than the last alpha"
            asked.append((words, averaging(rows, names, share)))
    lines = []
    for words, found in asked:
        if found is not None:
            few = found.n < 3
            spread = "" if few else f" ± {found.error:.2f}"
            lines.append([words, f"{found.mean:+.2f}{spread}", str(found.n), "" if few else chance(found.p)])
    return markdown(["the paper", "difference, points", "pairs", "p"], lines)


def many_digits(rows: list[Row]) -> list[str]:
    """60,000 rows of mnist."""
    lines = []
    for row in of(rows, "mnist"):
        cells = [row["solver"], f"{row['n']:,.0f}", f"{row['epochs']:.0f}" if row["epochs"] != "" else ""]
        cells.append(f"{100 * (1 - row['accuracy']):.2f}" if row["accuracy"] != "" else "")
        cells.append(f"{row['seconds']:.0f}" if row["seconds"] != "" else "")
        cells.append(f"{row['memory'] / 1e9:.2f}" if row["memory"] != "" else "")
        lines.append([*cells, row["message"]])
    return markdown(["solver", "rows", "epochs", "test error, %", "s to train", "peak memory, GB", ""], lines)


TABLES: dict[str, tuple[str, Callable[[list[Row]], list[str]]]] = {
    "table2": ("readings", accuracies),
    "table3": ("readings", seconds),
    "orders": ("readings", orders),
    "significance": ("readings", significance),
    "differences": ("readings", differences),
    "folds": ("folds", cuts),
    "figures": ("configurations", shares),
    "claims": ("configurations", claims),
    "best": ("configurations", chosen_afterwards),
    "mnist": ("mnist", many_digits),
}


def make(path: Path, docs: Path) -> None:
    """Tables beside the CSV and on the page of the documentation, the pictures in its folder."""
    import melki_pictures
    import melki_sentences

    rows = read(path)
    known = {row["experiment"] for row in rows}
    tables = {name: table(rows) for name, (needs, table) in TABLES.items() if needs in known}
    complete = all(set(SMALL) <= set(there(rows, name)) for name in ("readings", "l2", "folds", "configurations"))
    figures = melki_sentences.figures(rows) if complete else {}
    publish(path, docs, "Melki and Kecman (2016)", tables, melki_pictures.PICTURES, rows, figures)
