"""What the compiled kernels take and give. They check lengths; the arrays are read and written in place."""

from typing import Any

from cutsvm._utils.types import Array, Ints, Vector

LOOKS: int
KEPT: int
OUTSIDE: int
POINTS: int

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
def cut_shards(bounds: Ints) -> Ints: ...
def dense_add_pieces(
    X: Array, old: Vector, fresh: Vector, edges: Ints, partial: Vector, travel: Vector, threads: int
) -> int: ...
def sparse_add_pieces(
    values: Array,
    columns: Array,
    pointers: Array,
    d: int,
    old: Vector,
    fresh: Vector,
    edges: Ints,
    partial: Vector,
    travel: Vector,
    threads: int,
) -> int: ...
def dense_compensated_scores(X: Array, w: Vector, b: float, out: Vector, rest: Vector, threads: int) -> None: ...
def sparse_compensated_scores(
    values: Array, columns: Array, pointers: Array, w: Vector, b: float, out: Vector, rest: Vector, threads: int
) -> None: ...
def dense_row_hashes(X: Array, out: Array, threads: int) -> None: ...
def sparse_row_hashes(values: Array, columns: Array, pointers: Array, out: Array, threads: int) -> None: ...
def column_ranges(X: Array, low: Vector, high: Vector, threads: int) -> None: ...
def dense_squares(X: Array, out: Vector, threads: int) -> None: ...
def sparse_squares(values: Array, columns: Array, pointers: Array, out: Vector, threads: int) -> None: ...
def count_nonzeros(X: Array, counts: Ints, threads: int) -> None: ...
def compress(X: Array, pointers: Array, values: Array, columns: Array, threads: int) -> None: ...
def dense_take(X: Array, which: Ints, out: Array, threads: int) -> None: ...
def sparse_take(
    values: Array,
    columns: Array,
    pointers: Array,
    which: Ints,
    to_pointers: Array,
    to_values: Array,
    to_columns: Array,
    threads: int,
) -> None: ...
def all_finite(values: Array, threads: int) -> bool: ...
def valid_csr(columns: Array, pointers: Array, d: int, threads: int) -> tuple[bool, bool]: ...
def blend(from_: Vector, to: Vector, k: float, out: Vector, threads: int) -> None: ...

# mapped_files.hpp
class MappedFiles:
    """Files mapped for reading. After a page of one of them was lost (SIGBUS), it reads as zeros and `lost` is true."""

    def __init__(self) -> None: ...
    def map(self, descriptor: int, size: int) -> Array: ...
    @property
    def lost(self) -> bool: ...

# many.hpp
def dense_scores_many(X: Array, W: Vector, b: Vector, out: Vector, threads: int) -> None: ...
def sparse_scores_many(
    values: Array, columns: Array, pointers: Array, W: Vector, b: Vector, out: Vector, threads: int
) -> None: ...
def dense_accumulate_choices(
    X: Array,
    y: Array,
    s: Vector,
    old: Array,
    fresh: Array,
    bounds: Ints,
    sums: Vector,
    moved: Vector,
    classes: int,
    threads: int,
) -> int: ...
def sparse_accumulate_choices(
    values: Array,
    columns: Array,
    pointers: Array,
    d: int,
    y: Array,
    s: Vector,
    old: Array,
    fresh: Array,
    bounds: Ints,
    sums: Vector,
    moved: Vector,
    classes: int,
    threads: int,
) -> int: ...
def dense_group_sums(X: Array, s: Vector, group: Array, sums: Vector, threads: int) -> int: ...
def sparse_group_sums(
    values: Array, columns: Array, pointers: Array, s: Vector, group: Array, sums: Vector, threads: int
) -> int: ...
def group_edges(n: int, groups: int, d: int) -> Ints: ...
def dense_add_groups(
    X: Array, s: Vector, group: Array, groups: int, edges: Ints, partial: Vector, threads: int
) -> int: ...
def sparse_add_groups(
    values: Array,
    columns: Array,
    pointers: Array,
    s: Vector,
    group: Array,
    groups: int,
    edges: Ints,
    partial: Vector,
    threads: int,
) -> int: ...

# multiclass.hpp
def multi_value(f: Vector, y: Array, s: Vector, threads: int) -> float: ...
def multi_choose(
    f: Vector, y: Array, s: Vector, bounds: Ints, choice: Array, offsets: Vector, pulls: Vector, threads: int
) -> None: ...
def multi_look(f: Vector, to: Vector, y: Array, s: Vector, ks: Vector, out: Vector, threads: int) -> None: ...
def multi_crossing(
    f: Vector,
    to: Vector,
    y: Array,
    s: Vector,
    low: float,
    high: float,
    slope: float,
    curvature: float,
    level: float,
    threads: int,
) -> float: ...
def multi_sift(f: Vector, y: Array, s: Vector, band: float, group: Array, threads: int) -> Ints: ...
def multi_strays(f: Vector, y: Array, s: Vector, group: Array, threads: int) -> Ints: ...

# pairwise.hpp
class PairMemory:
    def __init__(self) -> None: ...

def pair_slopes(
    y: Array,
    s: Vector,
    starts: Ints,
    levels: Ints,
    f: Vector,
    margin: float,
    g: Vector,
    weights: Vector,
    losses: Vector,
    memory: PairMemory,
    threads: int,
) -> None: ...

# tangents.hpp
def dense_hinge_tangents(
    X: Array, a: Vector, W: Vector, b: Vector, edges: Ints, partial: Vector, heights: Vector, threads: int
) -> None: ...
def sparse_hinge_tangents(
    values: Array,
    columns: Array,
    pointers: Array,
    a: Vector,
    W: Vector,
    b: Vector,
    edges: Ints,
    partial: Vector,
    heights: Vector,
    threads: int,
) -> None: ...

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
def hinge_sift(f: Vector, a: Vector, band: float, group: Array, threads: int) -> Ints: ...
def hinge_strays(f: Vector, a: Vector, group: Array, threads: int) -> Ints: ...
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
class InteriorPointSettings:
    max_steps: int
    fraction_to_boundary: float
    min_centrality: float
    centrality_decrease: float
    backtracking: float
    max_backtracks: int
    min_step_length: float
    max_mu_ratio: float
    recentering_mu_ratio: float
    stalled_step_length: float
    rounding_error: float
    compensated_rounding_error: float
    regularization: float
    max_projections: int
    min_initial_weight: float
    initial_slack: float
    min_initial_slack: float

def solve_reduced(
    settings: InteriorPointSettings,
    slopes: Vector,
    offsets: Vector,
    shard: Ints,
    n_free: int,
    intercept_bound: float,
    gram: Vector,
    C: float,
    tol: float,
    warm_start: Vector,
    w: Vector,
    weights: Vector,
) -> tuple[float, float, float, int]: ...

# svmlight.hpp
class _SvmlightReader:
    def __init__(self, *, min_index: int = 0, keep_bad: int = 0, chunk_bytes: int = 1048576) -> None: ...
    def start_file(self) -> None: ...
    def feed(self, text: Array, n_threads: int) -> list[tuple[int, str]]: ...
    def take(self) -> tuple[Vector, tuple[Ints, Ints, list[bytes]] | None, Ints, Any, Any]: ...
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

# dcd.hpp
def dense_descend(
    X: Array,
    a: Vector,
    q: Vector,
    C: float,
    unit: float,
    above: float,
    below: float,
    alpha: Vector,
    order: Array,
    w: Vector,
    run: int,
    seed: int,
    threads: int,
) -> tuple[float, float, float, int]: ...
def sparse_descend(
    values: Array,
    columns: Array,
    pointers: Array,
    a: Vector,
    q: Vector,
    C: float,
    unit: float,
    above: float,
    below: float,
    alpha: Vector,
    order: Array,
    w: Vector,
    run: int,
    seed: int,
    threads: int,
) -> tuple[float, float, float, int]: ...

# machines.hpp, kernel_sgd.hpp, l2_dual.hpp, one_vs_one.hpp
VERSIONS: int

def kernel_sgd(
    values: Array,
    row_place: Array,
    column_place: Array,
    rows: Array,
    a: Vector,
    first: Ints,
    scale: Vector,
    tail: Vector,
    epochs: int,
    margin: Vector,
    begin: Ints,
    end: Ints,
    slot: Array,
    columns: Array,
    beta: Vector,
    mean: Vector,
    used: Ints,
    threads: int,
) -> None: ...
def machine_scores(
    values: Array, rows: Array, first: Ints, columns: Array, coef: Vector, used: Ints, out: Vector, threads: int
) -> None: ...
def pair_decisions(scores: Vector, low: Array, high: Array, out: Vector) -> None: ...
def count_hits(
    values: Array,
    rows: Array,
    labels: Array,
    first: Ints,
    columns: Array,
    coef: Vector,
    used: Ints,
    low: Array,
    high: Array,
    classes: int,
    hits: Ints,
    threads: int,
) -> None: ...
def kernel_l2(
    values: Array,
    rows: Array,
    a: Vector,
    first: Ints,
    Cs: Vector,
    method: str,
    tol: float,
    budget: int,
    seconds: float,
    alpha: Vector,
    seen: Vector,
    threads: int,
) -> None: ...
def dense_linear_sgd(
    X: Array,
    rows: Array,
    a: Vector,
    scale: Vector,
    tail: Vector,
    margin: float,
    begin: int,
    end: int,
    theta: Vector,
    beta: Vector,
    mean: Vector,
) -> None: ...
def sparse_linear_sgd(
    values: Array,
    columns: Array,
    pointers: Array,
    rows: Array,
    a: Vector,
    scale: Vector,
    tail: Vector,
    margin: float,
    begin: int,
    end: int,
    theta: Vector,
    beta: Vector,
    mean: Vector,
) -> None: ...
def dense_linear_ascent(
    X: Array, rows: Array, a: Vector, C: float, begin: int, end: int, w: Vector, alpha: Vector
) -> None: ...
def sparse_linear_ascent(
    values: Array,
    columns: Array,
    pointers: Array,
    rows: Array,
    a: Vector,
    C: float,
    begin: int,
    end: int,
    w: Vector,
    alpha: Vector,
) -> None: ...
def dense_pair_distances(X: Vector, left: Ints, Z: Vector, right: Ints, out: Vector) -> None: ...
def sparse_pair_distances(
    values: Vector,
    columns: Array,
    pointers: Array,
    left: Ints,
    other_values: Vector,
    other_columns: Array,
    other_pointers: Array,
    right: Ints,
    d: int,
    out: Vector,
) -> None: ...
