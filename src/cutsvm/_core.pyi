"""What the compiled kernels take and give. They check lengths; the arrays are read and written in place."""

from typing import Any

from cutsvm.types import Array, Ints, Vector

LOOKS: int

def cpu_level() -> int: ...
def max_threads() -> int: ...

# sweep.hpp
def dense_scores(X: Array, w: Vector, b: float, out: Vector, threads: int) -> None: ...
def dense_accumulate(
    X: Array, old: Vector, fresh: Vector, bounds: Ints, sums: Vector, moved: Vector, threads: int
) -> int: ...
def sparse_scores(
    values: Array, columns: Array, pointers: Array, w: Vector, b: float, out: Vector, threads: int
) -> None: ...
def sparse_accumulate(
    values: Array,
    columns: Array,
    pointers: Array,
    d: int,
    old: Vector,
    fresh: Vector,
    bounds: Ints,
    sums: Vector,
    moved: Vector,
    threads: int,
) -> int: ...
def blend(from_: Vector, to: Vector, k: float, out: Vector, threads: int) -> None: ...

# hinge.hpp
def hinge_value(f: Vector, a: Vector, threads: int) -> float: ...
def hinge_balance(f: Vector, a: Vector, threads: int) -> tuple[float, float, float]: ...
def hinge_slopes(
    f: Vector,
    a: Vector,
    tied_positive: float,
    tied_negative: float,
    bounds: Ints,
    g: Vector,
    offsets: Vector,
    threads: int,
) -> None: ...
def hinge_look(f: Vector, to: Vector, a: Vector, ks: Vector, out: Vector, threads: int) -> None: ...
def hinge_crossing(
    f: Vector,
    to: Vector,
    a: Vector,
    low: float,
    high: float,
    slope: float,
    curvature: float,
    level: float,
    threads: int,
) -> float: ...

# reduced.hpp
def reduced(
    slopes: Vector,
    offsets: Vector,
    shard: Ints,
    n_free: int,
    gram: Vector,
    C: float,
    tol: float,
    warm: Vector,
    rules: dict[str, float],
    w: Vector,
    weights: Vector,
) -> tuple[float, float, float, int]: ...

# svmlight.hpp
class _SvmlightReader:
    def __init__(self, *, min_index: int = 0, keep_bad: int = 0, chunk_bytes: int = 1048576) -> None: ...
    def start_file(self) -> None: ...
    def feed(self, text: Array, n_threads: int) -> list[tuple[int, str]]: ...
    def take(self) -> tuple[Vector, Ints | None, Ints, Any, Any]: ...
    @property
    def rows(self) -> int: ...
    @property
    def min_index(self) -> int: ...
    @property
    def max_index(self) -> int: ...
    @property
    def n_bad(self) -> int: ...

class SvmlightReader32(_SvmlightReader): ...
class SvmlightReader64(_SvmlightReader): ...
