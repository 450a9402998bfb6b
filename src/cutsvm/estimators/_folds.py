"""Folds of the rows of a store: which rows a fit is made of, and which it holds out, in one byte per row.

The folds of an int, of `KFold` and of `StratifiedKFold` are scikit-learn's to the row, without its arrays of row
numbers, which take 8 bytes for each row several times. Those of other splitters are asked for one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import check_random_state

from cutsvm._utils import validation
from cutsvm._utils.types import Array, Ints, Vector

__all__ = ["Folds", "folds_of"]

Allocate = Callable[[int, Any], Array]


@dataclass(frozen=True)
class FoldSettings:
    """most: number of folds, which are numbers of one byte."""

    most: int = 127


@dataclass(frozen=True, eq=False)
class Folds:
    """`codes` has for each row the fold that holds it out; the others train on it. Where that is not all there is to
    say of a fold, as rows may be in no part of it, `masks` has an array for each fold: 1 to train on, 2 held out."""

    many: int
    codes: Array | None = None
    masks: list[Array] = field(default_factory=list)

    def trains(self, fold: int, rows: slice) -> Array:
        """Which of the rows from start to stop the fold is trained on."""
        found: Array = self.codes[rows] != fold if self.codes is not None else self.masks[fold][rows] == 1
        return found

    def holds_out(self, fold: int, rows: slice) -> Array:
        """Which of them it holds out."""
        found: Array = self.codes[rows] == fold if self.codes is not None else self.masks[fold][rows] == 2
        return found

    def held_out(self, fold: int, n: int) -> int:
        """How many rows it holds out."""
        return sum(int(np.count_nonzero(self.holds_out(fold, part))) for part in validation.parts(n))


def folds_of(cv: Any, y: Array, classes: Array, groups: Any, allocate: Allocate) -> Folds:
    """The folds of a splitter, as `check_cv` returns it. classes: distinct y, where it has classes."""
    n = len(y)
    if type(cv) in (KFold, StratifiedKFold):
        if cv.n_splits > FoldSettings.most:
            raise ValueError(f"cv={cv.n_splits}: expected at most {FoldSettings.most} folds of rows on disk")
        if type(cv) is StratifiedKFold and len(classes):
            return Folds(cv.n_splits, _stratified(cv, y, classes, allocate))
        if type(cv) is KFold:
            return Folds(cv.n_splits, _of_rows(cv, n, allocate))
    return _given(cv.split(np.empty((n, 0)), y, groups), n, allocate)


def _given(splits: Iterable[tuple[Any, Any]], n: int, allocate: Allocate) -> Folds:
    """The folds of any splitter, one after the other."""
    masks: list[Array] = []
    for train, test in splits:
        own = allocate(n, np.int8)
        own[:] = 0
        own[np.asarray(train)] = 1
        if own[np.asarray(test)].any():
            raise ValueError(f"fold {len(masks) + 1}: a row is trained on and held out; out of core it is one or none")
        own[np.asarray(test)] = 2
        masks.append(own)
    return Folds(len(masks), masks=masks)


def _of_rows(cv: KFold, n: int, allocate: Allocate) -> Array:
    """Folds of consecutive rows; shuffled: of the places that a random permutation of the rows says."""
    if cv.n_splits > n:
        raise ValueError(f"cv={cv.n_splits}: there are only {n} rows")
    sizes = np.full(cv.n_splits, n // cv.n_splits)
    sizes[: n % cv.n_splits] += 1
    edges = np.concatenate([[0], np.cumsum(sizes)])
    codes = allocate(n, np.int8)
    if not cv.shuffle:
        for fold in range(cv.n_splits):
            codes[edges[fold] : edges[fold + 1]] = fold
        return codes
    # The same permutation as that of 64-bit numbers, which take twice the memory.
    order = allocate(n, np.int32 if n < 2**31 else np.int64)
    for part in validation.parts(n):
        order[part] = np.arange(part.start, min(part.stop, n))
    check_random_state(cv.random_state).shuffle(order)
    for fold in range(cv.n_splits):
        for part in validation.parts(int(sizes[fold])):
            codes[order[edges[fold] : edges[fold + 1]][part]] = fold
    return codes


def _stratified(cv: StratifiedKFold, y: Array, classes: Array, allocate: Allocate) -> Array:
    """Each class's rows are dealt to the folds, by its share of each n_splits-th row of the sorted labels."""
    counts, first = _counts(y, classes)
    order = np.argsort(first, kind="stable")  # scikit-learn has classes in the order of their first rows
    if cv.n_splits > counts.max():
        raise ValueError(f"n_splits={cv.n_splits} cannot be greater than the number of members in each class.")
    ends = np.cumsum(counts[order])
    shares = np.array([_every(ends, fold, cv.n_splits) for fold in range(cv.n_splits)])
    random, dealt = check_random_state(cv.random_state) if cv.shuffle else None, []
    for place in range(len(order)):
        own = np.repeat(np.arange(cv.n_splits, dtype=np.int8), shares[:, place])
        if random is not None:
            random.shuffle(own)
        dealt.append(own)
    codes, done = allocate(len(y), np.int8), np.zeros(len(order), dtype=np.int64)
    for part in validation.parts(len(y)):
        some, own = y[part], codes[part]
        for place, label in enumerate(classes[order]):
            mine = np.flatnonzero(some == label)
            own[mine] = dealt[place][done[place] : done[place] + len(mine)]
            done[place] += len(mine)
    return codes


def _every(ends: Ints, start: int, step: int) -> Ints:
    """How many of the places start, start + step, ... are in each of the runs that end so."""
    before = np.maximum(0, -((start - ends) // step))  # of the places below the end
    return np.diff(before, prepend=0)


def _counts(y: Array, classes: Array) -> tuple[Ints, Ints]:
    """The number of rows of each class, and its first row."""
    counts, first = np.zeros(len(classes), dtype=np.int64), np.full(len(classes), len(y), dtype=np.int64)
    for part in validation.parts(len(y)):
        some = y[part]
        for place, label in enumerate(classes):
            mine = some == label
            found = int(np.count_nonzero(mine))
            if found and not counts[place]:
                first[place] = part.start + int(np.argmax(mine))
            counts[place] += found
    return counts, first


def held_out_rows(folds: Folds, fold: int, n: int) -> Ints:
    """The numbers of the rows that a fold holds out."""
    parts = validation.parts(n)
    return np.concatenate([np.flatnonzero(folds.holds_out(fold, part)) + part.start for part in parts])


def split_weights(folds: Folds, fold: int, weights: Vector, out: Vector) -> Vector:
    """The weights of the rows that a fold is trained on, and 0 for the others, in `out`."""
    for part in validation.parts(len(weights)):
        np.multiply(weights[part], folds.trains(fold, part), out=out[part])
    return out
