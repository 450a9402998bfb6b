"""How many shards: as many as make the passes and the reduced problems together cheapest.

More shards make a tighter model of the risk and so fewer passes: roughly as P^-0.1 where C is small, P^-0.28 at
C n = 1e4 and P^-0.44 at C n = 1e6. They also make a larger reduced problem. The costs were measured on one machine, and
`benchmarks/shards.py` shows how near to the best number this comes; they do not depend on n_jobs, so that the answer
does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2, log10

from cutsvm.problem.oracle import Oracle

__all__ = ["ShardCosts", "choose_shards"]


@dataclass(frozen=True)
class ShardCosts:
    """Costs in seconds, and limits."""

    entry: float = 0.5e-9  # per stored value of X and iteration: scores, and the rows that planes are made of
    row: float = 20e-9  # per row and iteration: line search, slopes
    call: float = 1e-3  # per iteration, whatever its size: Python between the kernels, threads that wake up
    step: float = 3e-6  # per step of the interior-point method, whatever its size
    plane: float = 8e-8  # per plane in such a step
    flop: float = 3.5e-11  # per multiplication in its factorisations
    steps: int = 8  # of them per reduced problem
    few_rows: int = 4000  # up to which one shard is enough: a weight is then the same as repetition to the last digits
    rows_per_shard: int = 250  # at least
    most: int = 128
    memory: float = 1 / 4  # of the memory of X, which planes may take

    def reduced(self, planes: float, size: int) -> float:
        """Seconds of one reduced problem."""
        flops = planes * min(float(size) ** 2, planes**2 / 6.0)
        return self.steps * (self.step + self.plane * planes + self.flop * flops)


def choose_shards(oracle: Oracle, C: float, shards: int | str = "auto", buckets: int = 1) -> int:
    """The number asked for, or the power of two with the lowest estimate of passes x (sweeps + reduced problem)."""
    if buckets > 1 or shards != "auto":
        return 1 if buckets > 1 else int(shards)
    costs, matrix, size = ShardCosts(), oracle.matrix, oracle.size
    sweeps = costs.call + oracle.outputs * (costs.entry * matrix.entries + costs.row * matrix.n)
    decades = log10(max(C * oracle.loss.total, 1e-300)) - 4.0  # of C n above 1e4
    power = min(0.5, max(0.1, 0.28 + 0.08 * decades))
    hard = min(1.0, max(0.0, (1.0 + decades) / 3.0))
    best, lowest = 1, sweeps + costs.reduced(_planes(1, size, hard), size)
    number = 2
    while matrix.n >= costs.few_rows and number <= min(costs.most, matrix.n // costs.rows_per_shard):
        planes = _planes(number, size, hard)
        if planes * size > costs.memory * matrix.entries:
            break
        cost = number**-power * (sweeps + costs.reduced(planes, size))
        if cost < lowest:
            best, lowest = number, cost
        number *= 2
    return best


def _planes(shards: int, size: int, hard: float) -> float:
    """Planes that stay in the bundle: some per shard, and for a hard problem enough to determine w."""
    return 12.0 * shards + 0.2 * hard * size * (1.0 + log2(shards))
