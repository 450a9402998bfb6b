"""Collections of parts in tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from cutsvm.cluster.parts import Drawn, Facts


def facts_bits(facts: Facts) -> list[Any]:
    """All that facts say, as values that compare equal only if all bits are the same."""
    labels, magnitudes = facts.labels, facts.magnitudes
    numbers = [facts.n, facts.d, facts.entries, facts.sparse, facts.weighted, magnitudes.terms]
    floats = [facts.weight, facts.squares, labels.low, labels.high, magnitudes.norm]
    arrays = [labels.counts, labels.weights, labels.sums, magnitudes.low, magnitudes.high]
    return [
        numbers,
        [value.hex() for value in floats],
        [None if own is None else own.tobytes() for own in arrays],
        labels.labels.tolist(),
        [_drawn_bits(drawn) for drawn in (facts.sample, facts.measured)],
        [list(own) for own in facts.fingerprints],
    ]


def _drawn_bits(drawn: Drawn) -> list[Any]:
    block = drawn.block
    X = block.X.toarray() if sparse.issparse(block.X) else np.ascontiguousarray(block.X)
    columns = [None if own is None else own.tolist() for own in (block.y, block.weights, block.qid)]
    return [drawn.numbers.tolist(), X.tobytes(), columns]


def rows_of(grain: Any) -> int:
    """A task: the number of rows of a grain."""
    return int(grain.n)


def add(*counts: int) -> int:
    return sum(counts)
