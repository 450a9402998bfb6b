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
    that is for values of some rows, where there is none for all. fixed: buffers of BLAS, for each thread. small: what
    few rows take does not count: it cannot be told from the interpreter's own.
    """

    copies: float = 5.0
    row: int = 200
    steps: int = 6
    least_rows: int = 16
    panel: float = 0.6
    fixed: int = 48_000_000
    small: int = 16 << 20


def bytes_for_matrix(X: Any, epochs: int, settings: KernelMemory | None = None) -> int:
    """The limit under which all kernel values of the rows X are kept."""
    use, n = KernelMemory() if settings is None else settings, int(X.shape[0])
    return 4 * n * n + use.fixed + _besides(X, epochs, use.copies, use)


def _besides(X: Any, epochs: int, copies: float, use: KernelMemory) -> int:
    """What copies of the rows and numbers for each row take."""
    n = int(X.shape[0])
    size = 12 * int(X.nnz) + 8 * n if is_sparse(X) else 8 * n * int(X.shape[1])
    return int(copies * size) + (use.row + 8 * use.steps * epochs) * n


def bytes_for_values(
    memory_limit: str | int, X: Any, options: FitOptions, settings: KernelMemory | None = None, *, given: bool = False
) -> tuple[int, FitOptions]:
    """Bytes that kernel values may take, and the options with the bytes for values of some rows at a time.

    given: X is a matrix of kernel values, of which there are no copies. Raises ValueError if the limit does not hold
    the rows.
    """
    use, n = KernelMemory() if settings is None else settings, int(X.shape[0])
    limit = memory.allowance(memory_limit, memory.MemorySettings().step)
    need = _besides(X, options.epochs, 0.0 if given else use.copies, use)
    least = need + use.fixed + 8 * use.least_rows * n
    if limit.size < (least if need > use.small else 1):
        raise limit.error(least, "a kernel machine has its rows in memory")
    left = max(limit.size - need - use.fixed, min(limit.size, use.small))
    panel = left - 4 * n * n if 4 * n * n <= left else int(use.panel * left)
    return left, replace(options, panel_bytes=max(panel, use.small // 4))
