"""Sums over the rows of a collection: one round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from cutsvm._utils.errors import DataError
from cutsvm.cluster.collections.base import Collection, Opener
from cutsvm.cluster.collections.kinds import as_collection
from cutsvm.cluster.grains import Grain, RowBlock
from cutsvm.cluster.parts import Parts
from cutsvm.cluster.rows import Targets, checked_blocks

__all__ = ["RowColumns", "sums_of_parts"]


@dataclass(frozen=True)
class RowColumns:
    """What rows have: d features, of a table the columns with these names; and what y is."""

    d: int
    feature_names: tuple[str, ...] | None
    targets: Targets


def sums_of_parts(
    X: Any,
    y: Any,
    sample_weight: Any,
    qid: Any,
    rows: RowColumns,
    task: Callable[[RowBlock], Any],
    add: Callable[[Any, Any], Any],
) -> Iterator[Any]:
    """task(rows) added up over each part that has rows, in order."""
    if isinstance(X, Parts):
        return X.each(_of_grain, add, task=task)
    own = X
    if not isinstance(X, Collection):
        own = as_collection(X, y, sample_weight, qid, None, rows.targets, rows.feature_names)
    parts = own.column.map(_of_part, own.names, opener=own.opener, rows=rows, task=task, add=add)
    return _alike(own.executor.collect(parts), own.names)


def _alike(parts: Iterator[Any], names: Sequence[str]) -> Iterator[Any]:
    """The sums of the parts that have rows; DataError if only some of these have weights, or queries."""
    first: tuple[str, tuple[bool, bool]] | None = None
    for part, name in zip(parts, names, strict=True):
        if part is None:
            continue
        found, has = part
        first = first or (name, has)
        for what, own, other in zip(("weights", "queries"), has, first[1], strict=True):
            if own != other:
                raise DataError(f"{name if other else first[0]}: there are no {what}, which other parts have")
        yield found


def _of_part(
    value: Any,
    name: str,
    *,
    opener: Opener,
    rows: RowColumns,
    task: Callable[[RowBlock], Any],
    add: Callable[[Any, Any], Any],
) -> Any:
    blocks = checked_blocks(opener(value, name), name, rows.targets, rows.d, rows.feature_names)
    found, has = [], (False, False)
    for block in blocks:
        found.append(task(block))
        has = (block.weights is not None, block.qid is not None)
    return (reduce(add, found), has) if found else None


def _of_grain(grain: Grain, *, task: Callable[[RowBlock], Any]) -> Any:
    return task(grain.block)
