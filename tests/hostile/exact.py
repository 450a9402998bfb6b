"""The programs that the estimators' problems are, and F at their answers, from the very floats of the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq

from .problems import Problem
from .programs import (
    TIGHT,
    Enclosure,
    Program,
    ReferenceFailedError,
    dot,
    enclose,
    exact,
    feasible,
    lower_end,
    merged,
    methods,
    precision,
    upper_end,
)


@dataclass(frozen=True)
class Part:
    """One optimisation problem of a fit: its optimum, and its F at an answer of the fit, as a ball."""

    label: str
    optimum: Enclosure
    objective: Callable[[Any], arb]


def parts(problem: Problem, C: float, model: Any = None) -> list[Part]:
    """All optimisation problems of a fit; the label is that of the fit's history."""
    rows = [[exact(float(v)) for v in x] for x in problem.X]
    weights = np.ones(len(rows)) if problem.weights is None else problem.weights
    costs = [exact(C) * exact(float(s)) * problem.repeats for s in weights]
    if problem.kind == "binary":
        return [_two_classes(problem, rows, problem.y == max(problem.y), costs, "", 0)]
    if problem.kind == "ovr":
        classes = sorted(set(problem.y[weights > 0].tolist()))
        if len(classes) == 2:  # of the rows with weight: one problem
            return [_two_classes(problem, rows, problem.y == classes[1], costs, "", 0)]
        return [_two_classes(problem, rows, problem.y == k, costs, str(k), m) for m, k in enumerate(classes)]
    if problem.kind == "joint":
        return [_joint(problem, rows, costs)]
    if problem.kind == "kernel":
        return _kernel(problem, C, model)
    return [_pairs(problem, rows, weights, C)]


def _with_intercept(problem: Problem, row: list[fmpq], sign: int) -> list[fmpq]:
    signed = [v * sign for v in row]
    return signed if problem.intercept == "none" else [*signed, fmpq(sign)]


def _linear(program: Program, label: str, point: Callable[[Any], list[Any]]) -> Part:
    return Part(label, enclose(program), lambda model: program.objective(point(model)))


def _two_classes(problem: Problem, rows: Any, positive: Any, costs: Any, label: str, place: int) -> Part:
    pieces = [[_with_intercept(problem, row, 1 if p else -1)] for row, p in zip(rows, positive, strict=True)]
    program = merged(pieces, costs, free=int(problem.intercept == "free"))

    def point(model: Any) -> list[fmpq]:
        w = [exact(float(v)) for v in model.coef_[place]]
        return w if problem.intercept == "none" else [*w, exact(float(model.intercept_[place]))]

    return _linear(program, label, point)


def _joint(problem: Problem, rows: Any, costs: Any) -> Part:
    classes = sorted({int(k) for k, c in zip(problem.y, costs, strict=True) if c != 0})
    place = {k: m for m, k in enumerate(classes)}
    d, K = len(rows[0]), len(classes)
    size = K * d + (0 if problem.intercept == "none" else K)
    pieces = []
    for row, label in zip(rows, problem.y, strict=True):
        own = place.get(int(label), 0)
        row_pieces = []
        for other in range(K):
            if other == own:
                continue
            piece = [fmpq(0)] * size
            piece[own * d : (own + 1) * d] = row
            piece[other * d : (other + 1) * d] = [-v for v in row]
            if problem.intercept != "none":
                piece[K * d + own], piece[K * d + other] = fmpq(1), fmpq(-1)
            row_pieces.append(piece)
        pieces.append(row_pieces)
    program = merged(pieces, costs, free=K if problem.intercept == "free" else 0)

    def point(model: Any) -> list[fmpq]:
        w = [exact(float(v)) for v in np.asarray(model.coef_).ravel()]
        return w if problem.intercept == "none" else w + [exact(float(b)) for b in model.intercept_]

    return _linear(program, "", point)


def _pairs(problem: Problem, rows: Any, weights: Any, C: float) -> Part:
    s = [exact(float(v)) for v in weights]
    pieces, products = [], []
    for i, j in ((i, j) for i in range(len(rows)) for j in range(len(rows))):
        if problem.qid is not None and problem.qid[i] != problem.qid[j]:
            continue
        if problem.y[i] > problem.y[j] and s[i] * s[j] != 0:
            pieces.append([[a - b for a, b in zip(rows[i], rows[j], strict=True)]])
            products.append(s[i] * s[j])
    total = sum(products, fmpq(0))
    program = merged(pieces, [exact(C) * product / total for product in products] if total != 0 else [])
    return _linear(program, "", lambda model: [exact(float(v)) for v in model.coef_[0]])


def kernel_value(params: dict[str, Any], gamma: float, x: list[fmpq], z: list[fmpq]) -> arb:
    """K(x, z) as a ball."""
    if params["kernel"] == "rbf":
        distance = sum(((a - b) ** 2 for a, b in zip(x, z, strict=True)), fmpq(0))
        return (-arb(exact(gamma) * distance)).exp()
    product = sum((a * b for a, b in zip(x, z, strict=True)), fmpq(0))
    if params["kernel"] == "linear":
        return arb(product)
    return arb((exact(gamma) * product + exact(params["coef0"])) ** params["degree"])


@dataclass(frozen=True)
class KernelProgram:
    """|w|^2 / (2 C m) + 1/m sum_i s_i loss(1 - y_i f(x_i)) in the feature space of a kernel.

    A regularised intercept b adds b^2 to |w|^2. That is K + 1 in place of K, and b = sum_i beta_i.
    """

    problem: Problem
    gamma: float
    rows: list[int]
    signs: list[int]
    weights: list[fmpq]
    C: fmpq
    squared: bool  # the loss is max(0, z)^2 / 2
    free: bool  # f has an intercept, which is not penalised
    regularised: bool = False  # f has an intercept, which is

    def gram(self) -> list[list[arb]]:
        """The values of the kernel in whose feature space the intercept, if it is regularised, is a coordinate."""
        return [[v + 1 for v in line] for line in self.values()] if self.regularised else self.values()

    def values(self) -> list[list[arb]]:
        if self.problem.params["kernel"] == "precomputed":
            return [[arb(exact(float(self.problem.X[i, j]))) for j in self.rows] for i in self.rows]
        points = [[exact(float(v)) for v in self.problem.X[i]] for i in self.rows]
        return [[kernel_value(self.problem.params, self.gamma, x, z) for z in points] for x in points]

    def objective(self, beta: list[Any], intercept: Any) -> arb:
        """F at f = intercept + sum_i beta_i K(x_i, .)."""
        beta = [arb(b) for b in beta]
        scores = [dot(line, beta) for line in self.values()]
        norm = sum((b * f for b, f in zip(beta, scores, strict=True)), arb(0))
        return self._value(norm, scores, arb(intercept))

    def objective_of_weights(self, w: list[Any], intercept: Any) -> arb:
        """F at f(x) = w.x + intercept, for the linear kernel: the weights that a model predicts with are rounded."""
        weights = [arb(v) for v in w]
        scores = [dot([arb(exact(float(v))) for v in self.problem.X[i]], weights) for i in self.rows]
        return self._value(dot(weights, weights), scores, arb(intercept))

    def _value(self, norm: arb, scores: list[arb], intercept: arb) -> arb:
        """F at f = intercept + scores, with |w|^2 = norm."""
        total = (norm + intercept * intercept) / 2 if self.regularised else norm / 2
        for f, sign, s in zip(scores, self.signs, self.weights, strict=True):
            miss = (1 - sign * (f + intercept)).max(arb(0))
            total += arb(self.C * s) * (miss * miss / 2 if self.squared else miss)
        return total / (arb(self.C) * len(self.rows))

    def dual(self, alpha: list[arb], free_bound: arb) -> arb:
        """A bound of F from below; with a free intercept what is missing to sum y alpha = 0 costs up to free_bound."""
        gram = self.gram()
        beta = [a * sign for a, sign in zip(alpha, self.signs, strict=True)]
        total = sum(alpha, arb(0))
        total -= sum((b * dot(line, beta) for b, line in zip(beta, gram, strict=True)), arb(0)) / 2
        if self.squared:
            for a, s in zip(alpha, self.weights, strict=True):
                total -= a * a / (2 * arb(self.C * s))
        if self.free:
            total -= abs(sum(beta, arb(0))) * free_bound
        return total / (arb(self.C) * len(self.rows))

    def linear(self) -> Program:
        """The same in coordinates of the feature space, found by an incomplete Cholesky factorisation with pivots."""
        gram = [[v.mid() for v in line] for line in self.gram()]
        n = len(gram)
        factors: list[list[arb]] = [[] for _ in range(n)]
        left = [gram[i][i] for i in range(n)]
        largest = max((float(v.log()) if v > 0 else -1e9) for v in left) if n else 0.0
        limit = arb(largest).exp() * arb(2) ** (-ctx.prec // 2)
        for _ in range(n):
            pivot = max(range(n), key=lambda i: left[i])
            if left[pivot] <= limit:
                break
            root = left[pivot].sqrt().mid()
            base = list(factors[pivot])
            for i in range(n):
                value = (gram[i][pivot] - sum((a * b for a, b in zip(factors[i], base, strict=True)), arb(0))) / root
                factors[i].append(value.mid())
                left[i] = (left[i] - value * value).mid()
        cost = [self.C * s for s in self.weights]
        pieces = []
        for i in range(n):
            extra = [arb(0)] * (n if self.squared else 0)
            if self.squared:
                extra[i] = (1 / arb(cost[i]).sqrt()).mid() * self.signs[i]
            row = [v * self.signs[i] for v in factors[i]] + [v * self.signs[i] for v in extra]
            row += [arb(self.signs[i])] if self.free else []
            pieces.append([row if row else [arb(0)]])
        if self.squared:  # alpha_i = C s_i xi_i and sum C s_i xi_i^2 <= C S: no limit is reached
            total = sum(cost, fmpq(0))
            cost = [2 * total] * n
        return Program(pieces, cost, int(self.free))

    def enclose(self) -> Enclosure:
        low, high = fmpq(0), None
        for method, bits in methods(self.linear()):
            with precision(bits):
                program = self.linear()
                u, found = method(program)
                alpha = [own[0] for own in feasible(program, found)]
                beta = [a * sign for a, sign in zip(alpha, self.signs, strict=True)]
                bound = program.free_bound() if self.free else arb(0)
                b = u[-1].mid() if self.free else sum(beta, arb(0)) if self.regularised else 0
                F, D = self.objective(beta, b), self.dual(alpha, bound)
                if not (F.is_finite() and D.is_finite()):
                    continue
                above, below = upper_end(F), lower_end(D)
            high = above if high is None else min(high, above)
            low = max(low, below)
            if high - low <= exact(TIGHT) * high:
                return Enclosure(low, high)
        raise ReferenceFailedError("kernel")


def _kernel(problem: Problem, C: float, model: Any) -> list[Part]:
    """One problem per pair of classes; all are under one label."""
    classes = sorted(set(problem.y.tolist()))
    class_weight = problem.params.get("class_weight") or {}
    squared = problem.params["solver"] in ("isda", "min_norm")
    intercept, exactly = problem.intercept != "none", problem.params["solver"] in ("auto", "exact")
    kinds = squared, intercept and exactly, intercept and not exactly
    programs = []
    for low, high in combinations(classes, 2):
        rows = [i for i, k in enumerate(problem.y) if k in (low, high)]
        signs = [1 if problem.y[i] == high else -1 for i in rows]
        weights = [exact(float(class_weight.get(int(problem.y[i]), 1.0))) for i in rows]
        programs.append(KernelProgram(problem, float(model.gamma_), rows, signs, weights, exact(C), *kinds))
    total = Enclosure(fmpq(0), fmpq(0))
    for program in programs:
        total += program.enclose()
    return [Part("", total, partial(_kernel_objective, programs, classes))]


def _kernel_objective(programs: list[KernelProgram], classes: list[int], model: Any) -> arb:
    total = arb(0)
    place = {int(i): m for m, i in enumerate(model.support_)}
    for p, (program, (low, high)) in enumerate(zip(programs, combinations(range(len(classes)), 2), strict=True)):
        intercept = exact(float(model.intercept_[p]))
        if hasattr(model, "coef_"):
            total += program.objective_of_weights([exact(float(v)) for v in model.coef_[p]], intercept)
            continue
        beta = []
        for i, sign in zip(program.rows, program.signs, strict=True):
            line = low if sign > 0 else high - 1  # of the coefficients of a row: one for each other class
            beta.append(exact(float(model.dual_coef_[line, place[i]])) if i in place else fmpq(0))
        total += program.objective(beta, intercept)
    return total
