"""Checks of a fit against the exact optimum."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from flint import arb, fmpq

from .exact import Part
from .fits import Fitted
from .problems import Problem
from .programs import exact, float_of, lower_end, precision, upper_end

OBJECTIVE = 1e-6  # objective_ may differ from F at the answer by this share,
UNDERSTATED = 1e-10  # but not be below it by more than this, which is less than any tol
GAP = 1e-12  # gap_ is (objective_ - lower_bound_) / objective_ to this


@dataclass
class Finding:
    """One promise that was broken; size: by how much, as a share of the optimum."""

    kind: str
    size: float
    words: str


@dataclass
class Verdict:
    """What was found of one model."""

    status: str
    findings: list[Finding] = field(default_factory=list)
    true_gap: float = math.nan

    def add(self, kind: str, size: float, words: str) -> None:
        self.findings.append(Finding(kind, size, words))


def next_below(value: float) -> fmpq:
    """One unit in the last place less, exactly."""
    return exact(math.nextafter(value, -math.inf))


def relative(difference: fmpq, scale: fmpq) -> float:
    if scale == 0:
        return math.inf if difference != 0 else 0.0
    ratio = difference / scale
    return float_of(ratio) if abs(ratio) < fmpq(10) ** 300 else math.inf


def judge(problem: Problem, fitted: Fitted, parts: list[Part], *, trust_labels: bool = True) -> Verdict:
    """All checks of one fitted model."""
    model = fitted.model
    verdict = Verdict(model.status_.name)
    low = sum((part.optimum.low for part in parts), fmpq(0))
    high = sum((part.optimum.high for part in parts), fmpq(0))
    numbers = {name: float(getattr(model, name)) for name in ("objective_", "lower_bound_", "gap_")}
    for name, value in numbers.items():
        if not math.isfinite(value):
            verdict.add(f"{name} not finite", math.inf, f"{name} = {value}")
    if verdict.findings:
        return verdict
    objective, lower, gap = numbers.values()
    with precision(2000):
        F = sum((part.objective(model) for part in parts), arb(0))
        F_low, F_high = lower_end(F), upper_end(F)
    true_gap = relative(F_high - low, F_high)
    verdict.true_gap = true_gap
    if next_below(lower) > high:
        verdict.add("bound", relative(exact(lower) - high, high), f"lower_bound_ {lower!r} > F* {float_text(high)}")
    off = relative(exact(objective) - F_high, F_high)
    if off < -UNDERSTATED:
        verdict.add("objective understated", -off, f"objective_ {objective!r}, F at the answer {float_text(F_low)}")
    elif abs(off) > OBJECTIVE and problem.kind != "kernel":  # there it is raised by a bound of its rounding errors
        verdict.add("objective", abs(off), f"objective_ {objective!r}, F at the answer {float_text(F_low)}")
    expected = 0.0 if objective <= 0.0 else (objective - lower) / objective
    if abs(gap - expected) > GAP or gap < 0.0:
        verdict.add("gap_", abs(gap - expected), f"gap_ {gap!r}, from objective_ and lower_bound_ {expected!r}")
    if model.converged_ and true_gap > problem.tol * (1 + 1e-9):
        verdict.add("converged", true_gap, f"converged_ ({model.status_.name}) at a true gap of {true_gap:.3g}")
    if model.converged_ and gap > problem.tol:
        verdict.add("converged gap_", gap, f"converged_ ({model.status_.name}) with gap_ {gap:.3g}")
    _judge_history(verdict, model, {part.label: part.optimum.high for part in parts})
    return verdict


def _judge_history(verdict: Verdict, model: Any, optima: dict[str, fmpq]) -> None:
    """The worst record of the history."""
    worst: tuple[float, str] | None = None
    for record in model.history_:
        high, lower = optima.get(record["label"]), float(record["lower"])
        if high is None:
            verdict.add("history label", math.inf, f"record of {record['label']!r}")
            return
        if not math.isfinite(lower) or next_below(lower) > high:
            size = relative(exact(lower) - high, high) if math.isfinite(lower) else math.inf
            if worst is None or size > worst[0]:
                worst = size, f"record {record['iteration']}: lower {lower!r} > F* {float_text(high)}"
    if worst is not None:
        verdict.add("bound in history", *worst)


def float_text(value: fmpq) -> str:
    try:
        return f"{float(Fraction(int(value.p), int(value.q)))!r}"
    except OverflowError:
        return "above 1.8e308"
