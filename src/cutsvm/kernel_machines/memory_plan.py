"""How much of `memory_limit` a kernel machine may use for kernel values: its rows are in memory, in several copies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from cutsvm._utils import memory
from cutsvm.kernel_machines.context import FitOptions
from cutsvm.kernel_machines.gram import is_sparse


@dataclass(frozen=True)
class KernelMemory:
    """What a fit takes besides kernel values; sizes are in bytes.

    copies: of the rows, in float64: by class, less their means, in more digits. row: numbers for each row. steps:
    numbers for each step of an epoch. least_rows: whose values are computed together. panel: the share of the memory
    that is for values of some rows, where there is none for all. small: what does not count.
    """

    copies: float = 5.0
    row: int = 200
    steps: int = 6
    least_rows: int = 16
    panel: float = 0.6
    small: int = 16 << 20


def bytes_for_values(
    memory_limit: str | int, X: Any, options: FitOptions, settings: KernelMemory | None = None, *, given: bool = False
) -> tuple[int, FitOptions]:
    """Bytes that kernel values may take, and the options with the bytes for values of some rows at a time.

    given: X is a matrix of kernel values, of which there are no copies. Raises ValueError if the limit does not hold
    the rows.
    """
    use, n = KernelMemory() if settings is None else settings, int(X.shape[0])
    limit = memory.allowance(memory_limit, memory.MemorySettings().step)
    size = 12 * int(X.nnz) + 8 * n if is_sparse(X) else 8 * n * int(X.shape[1])
    copies = 0.0 if given else use.copies
    # What is small is not counted: it cannot be told from the interpreter's own.
    need = max(0, int(copies * size) + use.row * n + 8 * use.steps * options.epochs * n - use.small)
    least = need + max(0, 8 * use.least_rows * n - use.small)
    if limit.size < max(1, least):
        raise limit.error(max(use.small, least), "a kernel machine has its rows in memory")
    left = limit.size - need
    panel = left - 4 * n * n if 4 * n * n <= left else int(use.panel * left)
    return left, replace(options, panel_bytes=max(panel, use.small // 4))
