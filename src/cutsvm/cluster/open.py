"""open_parts: what users have, as `Parts` on an executor.

Rows of the parts are counted (without reading them where that is known), then cut into grains and chunks, and read once
for the facts. Everything that a fit computes follows from the grains, so that it does not depend on the parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from cutsvm._utils.errors import ClusterError, DataError
from cutsvm.cluster.collections.arrays import split_arrays
from cutsvm.cluster.collections.base import Collection
from cutsvm.cluster.collections.kinds import as_collection, kind_of_collection
from cutsvm.cluster.facts import DrawSettings, find_facts
from cutsvm.cluster.grains import LayoutSettings
from cutsvm.cluster.local import Local
from cutsvm.cluster.parts import Parts
from cutsvm.cluster.plan import chunks_of
from cutsvm.cluster.protocol import Executor, Traffic
from cutsvm.cluster.rows import RowForm, Targets
from cutsvm.cluster.sizes import Heads, head_of_part

__all__ = ["OpenSettings", "is_collection", "open_collection", "open_parts", "split_arrays"]


@dataclass(frozen=True)
class OpenSettings:
    """How a collection is read.

    hold: whether workers keep the rows between rounds; "auto": if they fit `memory_share` of the workers' memory.
    room: number of rows that the client may copy during a fit; None: any number.
    """

    layout: LayoutSettings = field(default_factory=LayoutSettings)
    draw: DrawSettings = field(default_factory=DrawSettings)
    hold: bool | Literal["auto"] = "auto"
    memory_share: float = 0.4
    room: int | None = None
    most_query_bytes: int = 1 << 30


def is_collection(X: Any) -> bool:
    """Whether X is a collection of parts; libraries that were not imported are not imported for this."""
    return isinstance(X, Collection | Parts) or kind_of_collection(X) is not None


def open_parts(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    qid: Any = None,
    executor: Executor | None = None,
    targets: Targets = "classes",
    settings: OpenSettings | None = None,
    watch: Callable[[Executor, Traffic], None] | None = None,
) -> Parts:
    """The rows of a collection or of arrays as parts on an executor, with their facts; parts are what they are.

    watch: is given the executor, and its traffic before the first round of these parts.
    """
    if isinstance(X, Parts):
        if watch is not None:
            watch(X.executor, X.before)
        return X
    own = X if isinstance(X, Collection) else as_collection(X, y, sample_weight, qid, executor, targets)
    if watch is not None:
        watch(own.executor, replace(own.executor.traffic))
    return open_collection(own, targets, settings or OpenSettings())


def open_collection(collection: Collection, targets: Targets, settings: OpenSettings) -> Parts:
    """The parts of a collection, cut into grains, with their facts."""
    before = replace(collection.executor.traffic)
    heads = Heads.known(collection, targets)
    if heads is None:
        heads = _count(collection, targets)
    parts = _open(collection, heads, targets, settings)
    if parts is None:  # rows are sparse, and the collection did not say so
        parts = _open(collection, _count(collection, targets), targets, settings)
    assert parts is not None
    return replace(parts, before=before)


def _count(collection: Collection, targets: Targets) -> Heads:
    """One round that counts rows and entries; none for arrays of this process."""
    options: dict[str, Any] = {"opener": collection.opener, "queries": targets == "levels"}
    if collection.here:
        parts = zip(collection.column.values, collection.names, strict=True)
        return Heads.of([head_of_part(value, name, **options) for value, name in parts], collection.names)
    column, found = collection.column.map(head_of_part, collection.names, **options), []
    try:
        for head in collection.executor.collect(column, doing="count", reads=True):
            found.append(head)
    except (DataError, ClusterError):  # these say where
        raise
    except Exception as error:  # of what makes the part; elements come in order
        raise ClusterError(f"{collection.names[len(found)]}: {type(error).__name__}: {error}") from error
    return Heads.of(found, collection.names)


def _open(collection: Collection, heads: Heads, targets: Targets, settings: OpenSettings) -> Parts | None:
    executor = collection.executor
    if heads.n == 0:
        raise DataError("the collection has no rows")
    form = RowForm(
        heads.d,
        heads.narrow,
        heads.sparse,
        targets,
        heads.weighted,
        heads.queried,
        heads.feature_names,
    )
    layout = heads.layout(targets, settings.layout, settings.most_query_bytes)
    hold = _holds(collection, heads, settings)
    chunks = chunks_of(collection, layout, heads.sizes, form, hold=hold)
    facts = find_facts(executor, chunks, layout, form, heads.row_bytes, settings.draw)
    if facts is None:
        return None
    return Parts(executor, chunks, layout, facts, settings.room, len(collection.names), hold)


def _holds(collection: Collection, heads: Heads, settings: OpenSettings) -> bool:
    if settings.hold != "auto":
        return settings.hold
    if isinstance(collection.executor, Local) or collection.here:
        return collection.here
    if collection.executor.name == "spark":  # what does not fit the memory is on the disks of its executors
        return True
    columns = 1 + heads.weighted + heads.queried
    need = heads.n * (heads.row_bytes + columns * np.dtype(np.float64).itemsize)
    return need <= settings.memory_share * collection.executor.resources.memory
