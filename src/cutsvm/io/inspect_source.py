"""A description of the rows of any source, for `cutsvm check`; svmlight files have one of their own, with bad lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from cutsvm._utils.text import printable
from cutsvm._utils.types import Array
from cutsvm._utils.validation import spread_of_sizes
from cutsvm.io.inspect import are_continuous, hints, lines_of_rows, many
from cutsvm.io.store.batches import Batch, ReadAgain, Source, checked, is_sparse, value_type

_MAX_CLASSES = 20
_MAX_SHOWN = 30  # columns of a table


@dataclass(frozen=True)
class SourceReport:
    """A description of the rows of a source."""

    source: str
    rows: int
    features: int
    nonzeros: int
    density: float  # share of nonzeros in rows x features
    value_range: tuple[float, float] | None
    n_classes: int
    classes: tuple[tuple[Any, int], ...]  # the first labels in order, with how many rows each has
    continuous_labels: bool
    queries: int | None
    zero_rows: int
    scale_ratio: float | None  # largest over smallest of the columns' greatest absolute values above 0
    columns: tuple[dict[str, Any], ...]  # of a table: name, kind, missing values and, of texts, the number of values
    done: str  # to the columns of a table
    hints: tuple[str, ...]
    n_bad_lines: int = 0  # a bad value of a table is an error

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join([printable(self.source), *_lines(self), *(f"  hint: {hint}" for hint in self.hints)])


def inspect_source(source: Source) -> SourceReport:
    """Read all rows, some at a time, and report on them; DataError for the first bad one."""
    try:
        return _Scan(source).report()
    except ReadAgain:
        return _Scan(source).report()


@dataclass
class _Scan:
    source: Source
    rows: int = 0
    nonzeros: int = 0
    zero_rows: int = 0
    least: float = np.inf
    largest: float = -np.inf
    sizes: Array = field(default_factory=lambda: np.zeros(0))
    labels: Counter[Any] = field(default_factory=Counter)
    queries: set[Any] | None = None

    def report(self) -> SourceReport:
        for batch in self.source:
            if batch.X.shape[0]:
                self._add(checked(batch, value_type(None, batch.X.dtype), self.source, self.rows), batch.base)
        classes = sorted(self.labels.items())
        facts: dict[str, Any] = {
            "source": self.source.name,
            "rows": self.rows,
            "features": len(self.sizes),
            "nonzeros": self.nonzeros,
            "density": self.nonzeros / max(1, self.rows * len(self.sizes)),
            "value_range": (float(self.least), float(self.largest)) if self.least <= self.largest else None,
            "n_classes": len(classes),
            "classes": tuple(classes[:_MAX_CLASSES]),
            "continuous_labels": _continuous([label for label, _ in classes], self.rows),
            "queries": None if self.queries is None else len(self.queries),
            "zero_rows": self.zero_rows,
            "scale_ratio": spread_of_sizes(self.sizes) if (self.sizes > 0).any() else None,
            "columns": tuple(self._columns()),
            "done": self.source.summary(),
        }
        return SourceReport(**facts, hints=tuple(hints({**facts, "duplicate_rows": 0, "features_seen": 0})))

    def _add(self, batch: Batch, base: int) -> None:
        X = batch.X[:, base:] if base else batch.X
        values = X.data if is_sparse(X) else X
        filled = values != 0
        if is_sparse(X):
            plain = sparse.csr_matrix((filled.astype(np.int64), X.indices, X.indptr), shape=X.shape)
            own, per_row = np.asarray(abs(X).max(axis=0).todense()).ravel(), np.asarray(plain.sum(axis=1)).ravel()
        else:
            own, per_row = np.maximum(X.max(axis=0), -X.min(axis=0)), filled.sum(axis=1)
        wider = np.zeros(max(len(own), len(self.sizes)))
        wider[: len(self.sizes)] = self.sizes
        np.maximum(wider[: len(own)], own, out=wider[: len(own)])
        self.sizes = wider
        self.rows += X.shape[0]
        self.nonzeros += int(np.count_nonzero(filled))
        self.zero_rows += int(np.count_nonzero(per_row == 0))
        if values.size:
            self.least, self.largest = min(self.least, float(values.min())), max(self.largest, float(values.max()))
        if batch.y is not None:
            labels, counts = np.unique(batch.y, return_counts=True)
            self.labels.update(dict(zip(labels.tolist(), counts.tolist(), strict=True)))
        if batch.qid is not None:
            self.queries = (self.queries or set()) | set(np.unique(batch.qid).tolist())

    def _columns(self) -> Iterator[dict[str, Any]]:
        preprocessing, missing = self.source.preprocessing, self.source.missing()
        for column in () if preprocessing is None else preprocessing.columns:
            known = {"name": column.name, "kind": column.kind, "missing": missing.get(column.name, 0)}
            yield known | ({"values": len(column.categories)} if column.kind == "text" else {})


def _continuous(labels: list[Any], rows: int) -> bool:
    return bool(labels) and not isinstance(labels[0], str) and are_continuous(np.asarray(labels, dtype=float), rows)


def _lines(report: SourceReport) -> Iterator[str]:
    yield f"  rows         {report.rows:,}"
    yield f"  features     {report.features:,}"
    yield from lines_of_rows(vars(report))
    if report.scale_ratio is not None:
        yield f"  scale ratio  {report.scale_ratio:.3g} (largest to smallest feature)"
    if report.columns:
        yield f"  columns      {len(report.columns):,}"
    for column in report.columns[:_MAX_SHOWN]:
        values = f", {many(column['values'], 'different value')}" if "values" in column else ""
        missing = f", {column['missing']:,} missing" if column["missing"] else ""
        yield f"    {printable(column['name'])}: {column['kind']}{values}{missing}"
    if len(report.columns) > _MAX_SHOWN:
        yield f"    ... and {len(report.columns) - _MAX_SHOWN:,} more"
    if report.done:
        yield f"  as features  {printable(report.done)}"
