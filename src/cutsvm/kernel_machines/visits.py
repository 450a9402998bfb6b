"""The order in which stochastic gradient steps visit the rows of problems.

cyclic    all rows in one order, again and again (Melki and Kecman 2016, section III)
random    i uniformly at random from [m] for each step, with replacement (their Algorithms A and B)

Rows are drawn from all rows; each problem takes those draws that are its own, which are uniform among them. So all
problems share one sequence of rows, and kernel values can be computed for a block of that sequence at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cutsvm._utils.types import Ints, Vector
from cutsvm.kernel_machines.gram import blocks
from cutsvm.kernel_machines.one_vs_one import Problems


@dataclass(frozen=True, eq=False)
class Visits:
    """The steps of all problems: `epochs` cycles over the rows of `problems`, in their order.

    places: of these rows among those of the problems that are solved. With replacement, a row is there once for each
    of its visits, and there is one cycle.
    """

    problems: Problems
    epochs: int
    places: Ints

    def by_row(self, values: Vector, n_rows: int) -> Vector:
        """For the rows of the problems that are solved, the sums of the values of their visits."""
        sums: Vector = np.bincount(self.places, weights=values, minlength=n_rows).astype(np.float64)
        return sums

    def blocks(self, sequence: Ints, positions: list[Ints], size: int) -> Iterator[tuple[int, Ints, Ints]]:
        """(epoch, rows of a block of the sequence, the steps of each problem that are done after it).

        positions: of each problem's visits in the sequence.
        """
        for epoch in range(self.epochs):
            for block in blocks(len(sequence), size):
                until = np.array([np.searchsorted(own, block.stop) for own in positions], dtype=np.int64)
                rows = sequence[block]
                first = np.sort(np.unique(rows, return_index=True)[1])  # a row that is drawn twice is there once
                yield epoch, rows[first], until + epoch * self.problems.sizes


def cyclic(problems: Problems, epochs: int) -> Visits:
    return Visits(problems, epochs, np.arange(len(problems.rows)))


def cyclic_positions(problems: Problems, order: Ints) -> list[Ints]:
    """Where the rows of each problem are in the order that all problems share."""
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    return [position[problems.rows[part]] for part in problems.parts]


def random(problems: Problems, epochs: int, n_rows: int, seed: int) -> tuple[Visits, Ints, list[Ints]]:
    """epochs m visits for each problem of m rows, the sequence of rows that they are from, and their positions there.

    The visits of a problem do not depend on the other problems.
    """
    generator, sequence = np.random.default_rng(seed), np.empty(0, dtype=np.int64)
    place, places, positions = np.full(n_rows, -1, dtype=np.int64), list[Ints](), list[Ints]()
    for part, size in zip(problems.parts, problems.sizes, strict=True):
        own, needed = problems.rows[part], epochs * int(size)
        place[own] = np.arange(part.start, part.stop)
        while len(found := np.flatnonzero(place[sequence] >= 0)) < needed:
            sequence = np.concatenate([sequence, generator.integers(n_rows, size=n_rows)])
        positions.append(found[:needed])
        places.append(place[sequence[positions[-1]]])
        place[own] = -1
    every = np.concatenate(places)
    drawn = replace(problems, rows=problems.rows[every], a=problems.a[every], first=epochs * problems.first)
    return Visits(drawn, 1, every), sequence, positions
