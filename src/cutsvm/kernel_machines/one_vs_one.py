"""One machine for each pair of classes: the problems that they are trained on, and how they vote."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from cutsvm._native import core
from cutsvm._utils.types import Array, Ints, Vector


@dataclass(frozen=True, eq=False)
class Problems:
    """Two-class problems on rows of one data set, one after another.

    Problem p decides between the classes low[p] < high[p]; its rows are rows[first[p]:first[p + 1]], in the order in
    which they are visited. a is the weight of a row, with the sign of its class: + for the higher one. With mean_loss
    C weighs the mean of a problem's losses, and a is the weight divided by `counts`; else C weighs their sum. counts:
    the sum of each problem's sample weights, its number of rows if there are none.
    """

    rows: Array  # int32
    a: Vector
    first: Ints
    low: Array  # int32
    high: Array
    mean_loss: bool = False
    counts: Vector | None = None

    def __len__(self) -> int:
        return len(self.low)

    @property
    def sizes(self) -> Ints:
        return np.diff(self.first)

    @property
    def scale(self) -> Vector:
        """1 / (C lambda) of each problem: F is lambda times |w|^2 / 2 + C sum_i |a_i| loss_i."""
        if self.mean_loss:
            return np.ones(len(self))
        return self.sizes.astype(np.float64) if self.counts is None else self.counts

    def of(self, p: int) -> slice:
        """Where problem p's rows are."""
        return slice(int(self.first[p]), int(self.first[p + 1]))

    @property
    def parts(self) -> list[slice]:
        """Where the rows of each problem are."""
        return [self.of(p) for p in range(len(self))]

    def part(self, which: slice) -> Problems:
        """A run of problems, with the places of their rows unchanged."""
        first = self.first[which.start : which.stop + 1]
        counts = None if self.counts is None else self.counts[which]
        return replace(self, first=first, low=self.low[which], high=self.high[which], counts=counts)

    def some(self, which: Ints) -> tuple[Problems, Ints]:
        """Some of the problems, and where their rows are among all."""
        places = np.concatenate([np.arange(self.first[p], self.first[p + 1]) for p in which])
        first = np.concatenate([[0], np.cumsum(self.sizes[which])])
        own = (self.rows[places], self.a[places], first, self.low[which], self.high[which])
        return Problems(*own, self.mean_loss, None if self.counts is None else self.counts[which]), places

    def weights(self, X: Any, p: int, alpha: Vector) -> Vector:
        """w = sum_i alpha_i y_i x_i of problem p; alpha: of the rows of all problems."""
        part = self.of(p)
        return np.asarray(X[self.rows[part]].T @ np.copysign(alpha[part], self.a[part]), dtype=np.float64)

    def by_row(self) -> tuple[Problems, Ints]:
        """The same with the rows of each problem in rising order, and where they were: two runs of kernel values."""
        places = np.concatenate([part.start + np.argsort(self.rows[part], kind="stable") for part in self.parts])
        return replace(self, rows=self.rows[places], a=self.a[places]), places


def pairwise(
    labels: Ints, weights: Vector, order: Ints, *, mean_loss: bool = False, sample_weight: Vector | None = None
) -> Problems:
    """The problems of all pairs of classes among the rows `order`, each in that order.

    labels: 0, 1, .. for all rows. Classes without a row in `order` have no problem. sample_weight: what of the weights
    counts rows.
    """
    own = labels[order]
    places = {int(k): np.flatnonzero(own == k) for k in np.unique(own)}
    pairs = list(combinations(places, 2))
    parts = [order[np.sort(np.concatenate([places[low], places[high]]))] for low, high in pairs]
    counts = None if sample_weight is None else np.array([sample_weight[part].sum() for part in parts])
    numbers = [len(part) for part in parts] if counts is None else counts
    signed = [
        np.where(labels[part] == high, weights[part], -weights[part]) / (number if mean_loss else 1)
        for part, (_, high), number in zip(parts, pairs, numbers, strict=True)
    ]
    first = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    low, high = np.array(pairs, dtype=np.int32).reshape(-1, 2).T.copy()
    return Problems(np.concatenate(parts).astype(np.int32), np.concatenate(signed), first, low, high, mean_loss, counts)


def largest_pair(labels: Ints) -> int:
    """The number of rows of the two largest classes; labels: 0, 1, .."""
    return int(np.sort(np.bincount(labels))[-2:].sum())


def sort_by_class(labels: Ints, random: Any) -> tuple[Ints, Ints, Ints]:
    """The rows sorted by class, their labels, and a random order of the sorted rows.

    A pair of classes then reads two contiguous ranges of kernel values.
    """
    by_class = np.argsort(labels, kind="stable")
    place = np.empty_like(by_class)
    place[by_class] = np.arange(len(labels))
    return by_class, labels[by_class], place[random.permutation(len(labels))]


def joined(groups: list[Problems]) -> tuple[Problems, Ints]:
    """All problems of several groups, and where each group begins, and the end."""
    starts = np.concatenate([[0], np.cumsum([len(group.rows) for group in groups])])
    first = [group.first[:-1] + start for group, start in zip(groups, starts[:-1], strict=True)]
    every = Problems(
        np.concatenate([group.rows for group in groups]),
        np.concatenate([group.a for group in groups]),
        np.concatenate([*first, starts[-1:]]),
        np.concatenate([group.low for group in groups]),
        np.concatenate([group.high for group in groups]),
        groups[0].mean_loss,
    )
    return every, np.concatenate([[0], np.cumsum([len(group) for group in groups])])


@dataclass(frozen=True, eq=False)
class Machines:
    """What training makes of problems: f(x) = b + sum_k coef[k] K(x, x_k), in one version per value of C.

    The support of machine p are the `used[p]` entries of `columns` and `coef` from first[p] on; columns are rows.
    """

    first: Ints
    columns: Array  # int32
    coef: Vector  # (rows of all problems, versions)
    used: Ints
    intercept: Vector  # (machines, versions)

    @classmethod
    def of_alpha(cls, problems: Problems, alpha: Vector, intercept: Vector | None = None) -> Machines:
        """From one coefficient >= 0 for each row of each problem and version: those that are not 0 are the support."""
        columns, coef = np.zeros_like(problems.rows), np.zeros_like(alpha)
        used = np.zeros(len(problems), dtype=np.int64)
        signs = np.copysign(1.0, problems.a)
        for p, part in enumerate(problems.parts):
            kept = part.start + np.flatnonzero(alpha[part].any(axis=1))
            used[p] = len(kept)
            into = slice(part.start, part.start + len(kept))
            columns[into], coef[into] = problems.rows[kept], signs[kept, None] * alpha[kept]
        b = np.zeros((len(problems), alpha.shape[1])) if intercept is None else intercept
        return cls(problems.first, columns, coef, used, b)

    def part(self, which: slice) -> Machines:
        """A run of machines, with the places of their support unchanged."""
        own = (self.first[which.start : which.stop + 1], self.columns, self.coef, self.used[which])
        return Machines(*own, self.intercept[which])

    def hits(self, gram: Array, rows: Ints, labels: Ints, problems: Problems, classes: int, threads: int) -> Ints:
        """How many of the rows the machines' vote puts into their class, for each version."""
        hits = np.zeros(self.coef.shape[1], dtype=np.int64)
        core.count_hits(
            gram,
            rows.astype(np.int32),
            labels[rows].astype(np.int32),
            self.first,
            self.columns,
            self.coef,
            self.used,
            self.intercept,
            problems.low,
            problems.high,
            classes,
            hits,
            threads,
        )
        return hits


def pair_scores(kernel: Array, dual_coef: Vector, bounds: Ints) -> Vector:
    """The scores of all pairs of classes, one column each, from kernel values with the support.

    The support is sorted by class: that of class k has the columns bounds[k]:bounds[k + 1]. dual_coef has, for each
    of them, one coefficient for every other class, in the order of the classes.
    """
    classes = len(bounds) - 1
    pairs = list(combinations(range(classes), 2))
    scores = np.zeros((len(kernel), len(pairs)))
    for k in range(classes):
        part = slice(bounds[k], bounds[k + 1])
        mine = kernel[:, part] @ dual_coef[:, part].T.astype(kernel.dtype, copy=False)
        for p, (low, high) in enumerate(pairs):
            if k in (low, high):
                scores[:, p] += mine[:, (high if k == low else low) - (k == low)]
    return scores


def constant_scores(offset: float, dual: Vector, labels: Ints) -> Vector:
    """What a constant in all kernel values adds to the scores of each pair: that many times the sum of coefficients.

    dual: as `duals` makes it; labels: of its columns, rising.
    """
    support = np.flatnonzero(dual.any(axis=0))
    bounds = np.searchsorted(labels[support], np.arange(len(dual) + 2))
    own = np.ascontiguousarray(dual[:, support])
    scores: Vector = pair_scores(np.full((1, len(support)), offset), own, bounds)[0]
    return scores


def decisions(scores: Vector, low: Array, high: Array, classes: int) -> Vector:
    """Votes of each class, ties broken by the sums of the scores: see core/one_vs_one.hpp."""
    out = np.empty((len(scores), classes))
    core.pair_decisions(np.ascontiguousarray(scores), low, high, out)
    return out


def duals(problems: Problems, alpha: Vector, classes: int, n: int) -> Vector:
    """(classes - 1, n) signed coefficients from those >= 0 of all problems' rows: for each row one per other class."""
    dual = np.zeros((max(1, classes - 1), n))
    for p, part in enumerate(problems.parts):
        negative = np.signbit(problems.a[part])  # rows of the lower class: the other one is the higher
        other = np.where(negative, problems.high[p] - 1, problems.low[p])
        dual[other, problems.rows[part]] = np.where(negative, -alpha[part], alpha[part])
    return dual
