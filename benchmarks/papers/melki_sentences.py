"""The figures within the sentences of docs/papers/melki.md, from the results of melki.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from melki_report import (
    INTERCEPTS,
    MEDIUM,
    PAPER,
    READINGS,
    SMALL,
    averaging,
    best_of,
    columns,
    comparisons,
    more_epochs,
    of,
    of_l2,
    one,
    reading,
)
from melki_statistics import against, chance, combined, paired, sign_test

Row = dict[str, Any]


def figures(rows: list[Row]) -> dict[str, str]:
    """All of them by name."""
    found = {"shuffles": f"{len(reading(rows, 'iris', 'sum'))}"}
    for own in READINGS:
        for step, label in (("1/m", "box"), ("1/t", "text")):
            ps = [against(PAPER[n][0][2], reading(rows, n, own, step=step)).p for n in SMALL]
            found[f"p_{own}_{label}"] = chance(combined(ps))
            found[f"within_{own}_{label}"] = f"{sum(p >= 0.05 for p in ps)}"
        plain = {n: [100 * row["accuracy"] for row in of(rows, "folds", set=n, C_times=own)] for n in SMALL}
        cut = [against(PAPER[n][0][2], plain[n]).p for n in SMALL]
        found[f"p_{own}_plain"] = chance(combined(cut))
        means = [float(np.mean(reading(rows, n, own)) - np.mean(plain[n])) for n in SMALL]
        found[f"cut_{own}"] = f"{min(means):+.2f} to {max(means):+.2f}"
    for name in PAPER:
        means = {own: float(np.mean(reading(rows, name, own))) for own in READINGS}
        for own, mean in means.items():
            found[f"{name}_{own}"] = f"{mean:.2f}"
            found[f"{name}_{own}_p"] = chance(against(PAPER[name][0][2], reading(rows, name, own)).p)
            found[f"{name}_{own}_away"] = f"{mean - PAPER[name][0][2]:+.2f}"
        found[f"{name}_p"] = chance(comparisons(rows, name)[0].p)
        found[f"{name}_apart"] = f"{comparisons(rows, name)[0].mean:+.2f}"
    away = {n: [abs(float(np.mean(reading(rows, n, own))) - PAPER[n][0][2]) for own in ("sum", "mean")] for n in PAPER}
    nearer = [n.removesuffix("_lasvm") for n in PAPER if away[n][1] < away[n][0]]
    found["nearer_mean"] = ", ".join(nearer)
    found["nearer_sum"] = ", ".join(n.removesuffix("_lasvm") for n in PAPER if away[n][1] >= away[n][0])
    found["nearer_count"] = f"{len(nearer)}"
    found["nearer_p"] = chance(sign_test(len(nearer), len(PAPER)))
    apart = [comparisons(rows, n)[0] for n in SMALL]
    told = [n for n, one in zip(SMALL, apart, strict=True) if one.p < 0.05]
    found["told_apart"] = ", ".join(told) if told else "none"
    found["apart_range"] = f"{min(one.mean for one in apart):+.2f} to {max(one.mean for one in apart):+.2f}"
    for k, label in enumerate(("order", "step"), start=1):
        own = [one for n in PAPER if (one := comparisons(rows, n)[k]).n]
        found[f"{label}_range"] = f"{min(one.mean for one in own):+.2f} to {max(one.mean for one in own):+.2f}"
        clear = [n.removesuffix("_lasvm") for n in PAPER if comparisons(rows, n)[k].p < 0.05]
        found[f"{label}_clear"] = ", ".join(clear) if clear else "none"
    return found | _choices(rows) | _machines(rows) | _figures(rows) | _times(rows)


def _choices(rows: list[Row]) -> dict[str, str]:
    """The C that the inner folds choose, over the small sets."""
    found = {}
    for own in READINGS:
        chosen = [
            float(one.split("/")[0])
            for n in SMALL
            for row in of(rows, "readings", set=n, C_times=own, order="cyclic", step="1/m")
            for one in row["choices"].split()
        ]
        found[f"chosen_{own}"] = f"{np.median(chosen):g}"
        found[f"largest_{own}"] = f"{100 * np.mean(np.array(chosen) == 1024.0):.0f}"
        found[f"smallest_{own}"] = f"{100 * np.mean(np.array(chosen) == 0.0625):.0f}"
    return found


def _machines(rows: list[Row]) -> dict[str, str]:
    """The L2 machines: with and without the intercept, and against each other."""
    found = {}
    for solver in ("isda", "min_norm"):
        plus, plain = (
            [value for n in SMALL for value in of_l2(rows, n, solver, own)] for own in ("regularized", "none")
        )
        apart = paired(plus, plain)
        found[f"plus_{solver}"] = f"{apart.mean:+.2f} ± {apart.error:.2f}"
        found[f"plus_{solver}_p"] = chance(apart.p)
        place = ("min_norm", "isda").index(solver)
        for own in INTERCEPTS:
            ps = [against(PAPER[n][0][place], of_l2(rows, n, solver, own)).p for n in SMALL]
            found[f"p_{solver}_{own}"] = chance(combined(ps))
            found[f"beyond_{solver}_{own}"] = f"{sum(p < 0.05 for p in ps)}"
    same = [
        abs(a - b)
        for n in PAPER
        for own in INTERCEPTS
        for a, b in zip(of_l2(rows, n, "isda", own), of_l2(rows, n, "min_norm", own), strict=False)
    ]
    differ = [
        a["choices"] == b["choices"]
        for n in PAPER
        for own in INTERCEPTS
        for a, b in zip(
            of(rows, "l2", set=n, solver="isda", intercept=own),
            of(rows, "l2", set=n, solver="min_norm", intercept=own),
            strict=False,
        )
        if abs(a["accuracy"] - b["accuracy"]) > 5e-5
    ]
    found["differ"], found["differ_choice"] = f"{len(differ)}", f"{differ.count(False)}"
    found["same_share"] = f"{100 * float(np.mean(np.array(same) < 0.005)):.0f}"
    found["same_most"] = f"{max(same):.2f}"
    for solver in ("isda", "min_norm"):
        (slow,) = of(rows, "l2", set="reuters_lasvm", solver=solver, intercept="none")
        found[f"reuters_{solver}_minutes"] = f"{slow['seconds'] / 60:.0f}"
    for name in MEDIUM:
        best = max(float(np.mean(value)) for value in columns(rows, name, "accuracy")[:4] if value)
        found[f"{name}_l2_ahead"] = f"{best - float(np.mean(reading(rows, name, 'mean'))):+.2f}"
    return found


def _figures(rows: list[Row]) -> dict[str, str]:
    """Figures 6 to 10."""
    found = {}
    for kind, names in (("small", SMALL), ("medium", MEDIUM)):
        for share in (0.25, 0.5, 0.75):
            apart = averaging(rows, names, share)
            if apart is not None:
                found[f"share{100 * share:.0f}_{kind}"] = f"{apart.mean:+.2f} ± {apart.error:.2f}"
                found[f"share{100 * share:.0f}_{kind}_p"] = chance(apart.p)
    for label, names, few, many in (("small", SMALL, 2, 5), ("medium", MEDIUM, 1, 2)):
        apart = more_epochs(rows, names, few, many)
        if apart is not None:
            found[f"epochs_{label}"] = f"{apart.mean:+.2f} ± {apart.error:.2f}"
            found[f"epochs_{label}_p"] = chance(apart.p)
    for own in READINGS:
        ps = [against(PAPER[n][0][2], best_of(rows, n, own)) for n in SMALL]
        found[f"best_{own}_p"] = chance(combined([seen.p for seen in ps]))
        gained = [np.mean(best_of(rows, n, own)) - np.mean(one_setting(rows, n, own)) for n in SMALL]
        found[f"best_{own}_heart"] = chance(ps[SMALL.index("heart")].p)
        found[f"best_{own}_gain"] = f"{min(gained):.1f} to {max(gained):.1f}"
    return found


def one_setting(rows: list[Row], name: str, C_times: str) -> list[float]:
    """5 epochs and the last 50 %, on the shuffles of figure 6."""
    return one(rows, name, C_times, 5, 0.5)


def _times(rows: list[Row]) -> dict[str, str]:
    """Table III."""
    found = {}
    cpu = {name: [float(np.median(own)) if own else np.nan for own in columns(rows, name, "cpu")] for name in PAPER}
    for kind, names in (("small", SMALL), ("medium", MEDIUM)):
        for place, solver in enumerate(("min_norm", "isda")):
            known = [cpu[name] for name in names if not np.isnan(cpu[name][2 * place + 1])]
            mean = np.mean(known, axis=0)
            found[f"{solver}_ratio_{kind}"] = f"{mean[2 * place + 1] / mean[5]:.1f}"
    ratios = [
        float(np.median(reading(rows, n, "mean", "cpu", order="random")) / np.median(reading(rows, n, "mean", "cpu")))
        for n in SMALL
    ]
    found["random_cpu"] = f"{min(ratios):.1f} to {max(ratios):.1f}"
    found["cpu_small"] = f"{min(cpu[n][5] for n in SMALL):.2f} to {max(cpu[n][5] for n in SMALL):.2f}"
    for name in MEDIUM:
        found[f"{name}_cpu"] = f"{cpu[name][5]:.0f}"
    peers = {row["set"]: row["cpu"] / cpu[row["set"]][5] for row in of(rows, "peer") if row["cpu"] != ""}
    small = [peers[n] for n in SMALL if n in peers]
    found["peer_small"] = f"{min(small):.0f} to {max(small):.0f}"
    for name in MEDIUM:
        found[f"{name}_peer"] = f"{peers[name]:.0f}" if name in peers else "?"
    return found
