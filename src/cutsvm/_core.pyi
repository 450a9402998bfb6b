# Written by tools/make_stubs.py.
from typing import Annotated, Any, overload

import numpy
import numpy.typing
from numpy.typing import NDArray

def cpu_level() -> int: ...
def max_threads() -> int: ...

class Matrix:
    @overload
    def __init__(
        self,
        X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device="cpu", writable=False)],
        threads: int = 1,
    ) -> None: ...
    @overload
    def __init__(
        self,
        X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device="cpu", writable=False)],
        threads: int = 1,
    ) -> None: ...
    @overload
    def __init__(
        self,
        values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        pointers: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        d: int,
        threads: int = 1,
    ) -> None: ...
    @overload
    def __init__(
        self,
        values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        pointers: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        d: int,
        threads: int = 1,
    ) -> None: ...
    @overload
    def __init__(
        self,
        values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        pointers: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        d: int,
        threads: int = 1,
    ) -> None: ...
    @overload
    def __init__(
        self,
        values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        pointers: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        d: int,
        threads: int = 1,
    ) -> None: ...
    @overload
    def take_into(
        self,
        which: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
    ) -> None: ...
    @overload
    def take_into(
        self,
        which: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    ) -> None: ...
    @overload
    def take_into(
        self,
        which: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        pointers: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
        columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
    ) -> None: ...
    @overload
    def take_into(
        self,
        which: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        pointers: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
        columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None: ...
    @overload
    def take_into(
        self,
        which: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        pointers: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
    ) -> None: ...
    @overload
    def take_into(
        self,
        which: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        pointers: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None: ...
    @overload
    def compress(
        self,
        pointers: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
        columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
    ) -> None: ...
    @overload
    def compress(
        self,
        pointers: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
        columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None: ...
    @overload
    def compress(
        self,
        pointers: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
    ) -> None: ...
    @overload
    def compress(
        self,
        pointers: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None: ...
    @property
    def n(self) -> int: ...
    @property
    def d(self) -> int: ...
    @property
    def entries(self) -> int: ...
    @property
    def threads(self) -> int: ...
    def scores(
        self,
        w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        b: float,
        out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None: ...
    def compensated_scores(
        self,
        w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        b: float,
        out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        rest: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None: ...
    def accumulate(
        self,
        old: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        fresh: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        bounds: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        sums: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
        moved: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> int: ...
    def add_pieces(
        self,
        old: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        fresh: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        edges: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        partial: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
        travel: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> int: ...
    def gram_into(
        self,
        weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    ) -> None: ...
    def hashes(self, out: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu")]) -> None: ...
    def squares(self, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")]) -> None: ...
    def column_ranges(
        self,
        low: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        high: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None: ...
    def count_nonzeros(
        self, counts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")]
    ) -> None: ...
    def scores_many(
        self,
        W: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device="cpu", writable=False)],
        b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    ) -> None: ...
    def accumulate_choices(
        self,
        choices: tuple[
            Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
            Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
            Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
            Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
            int,
        ],
        bounds: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        sums: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
        moved: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> int: ...
    def group_sums(
        self,
        weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        group: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        sums: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    ) -> int: ...
    def add_groups(
        self,
        weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        group: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        groups: int,
        edges: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        partial: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    ) -> int: ...
    def tangents(
        self,
        signed: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        W: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device="cpu", writable=False)],
        b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        edges: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        partial: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
        heights: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    ) -> None: ...
    def prefix(
        self,
        signed: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        b: float,
        limit: float,
        slope: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        heights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> tuple[int, int]: ...
    def descend(
        self,
        descent: tuple[
            RowLoss,
            Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
            float,
            float,
            float,
            float,
            Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        ],
        order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
        w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        run: int,
        seed: int,
        threads: int,
    ) -> tuple[float, float, float, int]: ...
    def linear_sgd(
        self,
        rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        tail: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        margin: float,
        begin: int,
        end: int,
        theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        beta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        mean: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None: ...
    def linear_ascent(
        self,
        rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        C: float,
        begin: int,
        end: int,
        w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None: ...
    def pair_distances(
        self,
        left: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        Z: Matrix,
        right: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None: ...

class RowLoss:
    @overload
    def __init__(
        self,
        name: str,
        a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ) -> None: ...
    @overload
    def __init__(
        self,
        name: str,
        t: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        s: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        epsilon: float,
        below: float,
        above: float,
    ) -> None: ...
    @property
    def n(self) -> int: ...
    def value(
        self,
        f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        threads: int,
    ) -> float: ...
    def slopes(
        self,
        f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        bounds: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
        threads: int,
    ) -> None: ...
    def dual_heights(
        self,
        g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        bounds: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
        threads: int,
    ) -> None: ...
    def curvatures(
        self,
        f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        threads: int,
    ) -> None: ...
    def along(
        self,
        f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        to: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        k: float,
        threads: int,
    ) -> tuple[float, float, float]: ...
    def part(self, begin: int, end: int) -> RowLoss: ...
    def dual_value(
        self,
        alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        C: float,
        threads: int,
    ) -> float: ...
    def gaps(
        self,
        f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        C: float,
        out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        threads: int,
    ) -> None: ...
    def at_rest(
        self,
        f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        C: float,
        above: float,
        below: float,
        out: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order="C", device="cpu")],
        threads: int,
    ) -> None: ...
    def clip(
        self,
        alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        C: float,
        threads: int,
    ) -> None: ...
    def balance(
        self,
        f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        threads: int,
    ) -> tuple[float, float, float]: ...
    def shared_slopes(
        self,
        f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        tied_positive: float,
        tied_negative: float,
        bounds: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
        out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
        threads: int,
    ) -> None: ...
    def sift(
        self,
        f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        band: float,
        group: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
        threads: int,
    ) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...
    def violators(
        self,
        f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        group: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        threads: int,
    ) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...
    def evaluate(
        self,
        f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        to: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        ks: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
        threads: int,
    ) -> None: ...
    def crossing(
        self,
        f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        to: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        low: float,
        high: float,
        slope: float,
        curvature: float,
        level: float,
        threads: int,
    ) -> float: ...

@overload
def all_finite(
    values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    threads: int,
) -> bool: ...
@overload
def all_finite(
    values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    threads: int,
) -> bool: ...
@overload
def valid_csr(
    columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    pointers: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    d: int,
    threads: int,
) -> tuple[bool, bool]: ...
@overload
def valid_csr(
    columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    pointers: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    d: int,
    threads: int,
) -> tuple[bool, bool]: ...
def cut_shards(
    bounds: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...
def blend(
    from_: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    to: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    k: float,
    out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
def group_edges(n: int, groups: int, d: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

KEPT: int = -1

OUTSIDE: int = -2

LINE_POINTS: int = 8

POINTS: int = 16

def multi_value(
    f: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    s: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    threads: int,
) -> float: ...
def multi_choose(
    f: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    s: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    bounds: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    choice: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
    offsets: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    pulls: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None: ...
def multi_evaluate(
    f: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    to: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    s: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    ks: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> None: ...
def multi_crossing(
    f: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    to: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    s: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    low: float,
    high: float,
    slope: float,
    curvature: float,
    level: float,
    threads: int,
) -> float: ...
def multi_sift(
    f: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    s: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    band: float,
    group: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...
def multi_violators(
    f: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    s: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    group: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    threads: int,
) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...
def multinomial_value(
    f: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    s: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    threads: int,
) -> float: ...
def multinomial_slopes(
    f: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    s: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    g: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    threads: int,
) -> tuple[float, float, float]: ...
def multinomial_along(
    f: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    to: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
    y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    s: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    k: float,
    threads: int,
) -> tuple[float, float, float]: ...

class PairMemory:
    def __init__(self) -> None: ...

def pair_slopes(
    y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    s: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    levels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    margin: float,
    g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    memory: PairMemory,
    threads: int,
) -> None: ...
def pair_squares(
    y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    s: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    levels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    margin: float,
    g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    sums: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    memory: PairMemory,
    threads: int,
) -> None: ...
def pair_products(
    y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    s: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    levels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    margin: float,
    v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    product: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    diagonal: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    memory: PairMemory,
    threads: int,
) -> None: ...

class SvmlightReader64:
    def __init__(self, *, min_index: int = 0, keep_bad: int = 0, chunk_bytes: int = 1048576) -> None: ...
    def start_file(self) -> None: ...
    def feed(
        self,
        text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
        n_threads: int,
    ) -> list[tuple[int, str]]: ...
    def take(
        self,
    ) -> tuple[
        numpy.typing.NDArray[numpy.float64],
        tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], list[bytes]] | None,
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[Any],
        numpy.typing.NDArray[Any],
    ]: ...
    @property
    def rows(self) -> int: ...
    @property
    def min_index(self) -> int: ...
    @property
    def max_index(self) -> int: ...
    @property
    def n_bad(self) -> int: ...

class SvmlightReader32:
    def __init__(self, *, min_index: int = 0, keep_bad: int = 0, chunk_bytes: int = 1048576) -> None: ...
    def start_file(self) -> None: ...
    def feed(
        self,
        text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
        n_threads: int,
    ) -> list[tuple[int, str]]: ...
    def take(
        self,
    ) -> tuple[
        numpy.typing.NDArray[numpy.float64],
        tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], list[bytes]] | None,
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[Any],
        numpy.typing.NDArray[Any],
    ]: ...
    @property
    def rows(self) -> int: ...
    @property
    def min_index(self) -> int: ...
    @property
    def max_index(self) -> int: ...
    @property
    def n_bad(self) -> int: ...

class InteriorPointSettings:
    def __init__(self) -> None: ...
    @property
    def max_steps(self) -> int: ...
    @max_steps.setter
    def max_steps(self, arg: int, /) -> None: ...
    @property
    def fraction_to_boundary(self) -> float: ...
    @fraction_to_boundary.setter
    def fraction_to_boundary(self, arg: float, /) -> None: ...
    @property
    def min_centrality(self) -> float: ...
    @min_centrality.setter
    def min_centrality(self, arg: float, /) -> None: ...
    @property
    def centrality_decrease(self) -> float: ...
    @centrality_decrease.setter
    def centrality_decrease(self, arg: float, /) -> None: ...
    @property
    def backtracking(self) -> float: ...
    @backtracking.setter
    def backtracking(self, arg: float, /) -> None: ...
    @property
    def max_backtracks(self) -> int: ...
    @max_backtracks.setter
    def max_backtracks(self, arg: int, /) -> None: ...
    @property
    def min_step_length(self) -> float: ...
    @min_step_length.setter
    def min_step_length(self, arg: float, /) -> None: ...
    @property
    def max_mu_ratio(self) -> float: ...
    @max_mu_ratio.setter
    def max_mu_ratio(self, arg: float, /) -> None: ...
    @property
    def recentering_mu_ratio(self) -> float: ...
    @recentering_mu_ratio.setter
    def recentering_mu_ratio(self, arg: float, /) -> None: ...
    @property
    def stalled_step_length(self) -> float: ...
    @stalled_step_length.setter
    def stalled_step_length(self, arg: float, /) -> None: ...
    @property
    def rounding_error(self) -> float: ...
    @rounding_error.setter
    def rounding_error(self, arg: float, /) -> None: ...
    @property
    def compensated_rounding_error(self) -> float: ...
    @compensated_rounding_error.setter
    def compensated_rounding_error(self, arg: float, /) -> None: ...
    @property
    def regularization(self) -> float: ...
    @regularization.setter
    def regularization(self, arg: float, /) -> None: ...
    @property
    def max_projections(self) -> int: ...
    @max_projections.setter
    def max_projections(self, arg: int, /) -> None: ...
    @property
    def min_initial_weight(self) -> float: ...
    @min_initial_weight.setter
    def min_initial_weight(self, arg: float, /) -> None: ...
    @property
    def initial_slack(self) -> float: ...
    @initial_slack.setter
    def initial_slack(self, arg: float, /) -> None: ...
    @property
    def min_initial_slack(self) -> float: ...
    @min_initial_slack.setter
    def min_initial_slack(self, arg: float, /) -> None: ...

def solve_reduced(
    settings: InteriorPointSettings,
    slopes: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    shard: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    n_free: int,
    intercept_bound: float,
    gram: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device="cpu", writable=False)],
    C: float,
    tol: float,
    warm_start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
) -> tuple[float, float, float, int]: ...

VERSIONS: int = 8

def kernel_sgd(
    values: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device="cpu", writable=False)],
    row_place: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    column_place: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    first: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    tail: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    epochs: int,
    margin: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    end: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    slot: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
    columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
    beta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    mean: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    used: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
def machine_scores(
    values: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device="cpu", writable=False)],
    rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    first: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    coef: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    used: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    intercept: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu")],
    threads: int,
) -> None: ...
def pair_decisions(
    scores: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device="cpu", writable=False)],
    low: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    high: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
) -> None: ...
def count_hits(
    values: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device="cpu", writable=False)],
    rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    first: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    coef: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    used: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    intercept: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    low: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    high: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    classes: int,
    hits: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
    threads: int,
) -> None: ...
def kernel_l2(
    values: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device="cpu", writable=False)],
    rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    first: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    Cs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    method: str,
    tol: float,
    budget: int,
    seconds: float,
    alpha: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    seen: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu")],
    threads: int,
) -> None: ...

FEATURES: int = 128

SUM_ROWS: int = 64

TILE_COLUMNS: int = 256

LARGE_SET: int = 256

class KernelBlock32:
    def __init__(
        self,
        gemm: object,
        kernel: str,
        gamma: float,
        coef0: float,
        degree: int,
        offset: float,
        X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        squares: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        threads: int,
    ) -> None: ...
    def rows(
        self,
        which: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
    ) -> None: ...
    def matrix(
        self, out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")]
    ) -> None: ...
    def scores(
        self,
        coef: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        others: KernelBlock32,
        out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None: ...
    def own_scores(
        self,
        coef: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        first: int,
        last: int,
        out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None: ...

@overload
def solve_pairs(
    kernel: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device="cpu", writable=False)],
    rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    first: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    Cs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    free_intercept: bool,
    target: float,
    most_iterations: int,
    seconds: float,
    alpha: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    seen: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu")],
    scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    working_set: int,
    kept: float,
    inner_share: float,
    inner_steps: int,
    least_violation: float,
    threads: int,
) -> None: ...
@overload
def solve_pairs(
    kernel: KernelBlock32,
    rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    first: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    Cs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    free_intercept: bool,
    target: float,
    most_iterations: int,
    seconds: float,
    alpha: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    seen: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu")],
    scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    working_set: int,
    kept: float,
    inner_share: float,
    inner_steps: int,
    least_violation: float,
    threads: int,
) -> None: ...
@overload
def solve_pairs(
    kernel: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device="cpu", writable=False)],
    rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    first: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    Cs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    free_intercept: bool,
    target: float,
    most_iterations: int,
    seconds: float,
    alpha: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    seen: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu")],
    scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    working_set: int,
    kept: float,
    inner_share: float,
    inner_steps: int,
    least_violation: float,
    threads: int,
) -> None: ...
@overload
def solve_pairs(
    kernel: KernelBlock64,
    rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    first: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    Cs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    free_intercept: bool,
    target: float,
    most_iterations: int,
    seconds: float,
    alpha: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    seen: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order="C", device="cpu")],
    scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    working_set: int,
    kept: float,
    inner_share: float,
    inner_steps: int,
    least_violation: float,
    threads: int,
) -> None: ...

class KernelDual32:
    def __init__(
        self,
        memory: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
        c: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        low: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        high: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        s: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        norm: float,
        row_of: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        free_intercept: bool,
        sizes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        source: object,
        threads: int,
    ) -> None: ...
    def run(
        self,
        target: float,
        most_iterations: int,
        seconds: float,
        working_set: int,
        kept: float,
        inner_share: float,
        inner_steps: int,
        least_violation: float,
    ) -> str: ...
    def restrict(
        self,
        variables: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        source: object,
    ) -> None: ...
    def optimality(self) -> tuple[float, float, float, float]: ...
    @property
    def s(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...
    @property
    def f(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...
    @property
    def norm(self) -> float: ...
    @property
    def moved(self) -> tuple[float, float, float]: ...
    @property
    def iterations(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def computed(self) -> int: ...
    @property
    def capacity(self) -> int: ...

class KernelBlock64:
    def __init__(
        self,
        gemm: object,
        kernel: str,
        gamma: float,
        coef0: float,
        degree: int,
        offset: float,
        X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)],
        squares: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        threads: int,
    ) -> None: ...
    def rows(
        self,
        which: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    ) -> None: ...
    def matrix(
        self, out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")]
    ) -> None: ...
    def scores(
        self,
        coef: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        others: KernelBlock64,
        out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None: ...
    def own_scores(
        self,
        coef: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        first: int,
        last: int,
        out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu")],
    ) -> None: ...

class KernelDual64:
    def __init__(
        self,
        memory: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
        c: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        low: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        high: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        s: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        norm: float,
        row_of: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        free_intercept: bool,
        sizes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        source: object,
        threads: int,
    ) -> None: ...
    def run(
        self,
        target: float,
        most_iterations: int,
        seconds: float,
        working_set: int,
        kept: float,
        inner_share: float,
        inner_steps: int,
        least_violation: float,
    ) -> str: ...
    def restrict(
        self,
        variables: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        source: object,
    ) -> None: ...
    def optimality(self) -> tuple[float, float, float, float]: ...
    @property
    def s(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...
    @property
    def f(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...
    @property
    def norm(self) -> float: ...
    @property
    def moved(self) -> tuple[float, float, float]: ...
    @property
    def iterations(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def computed(self) -> int: ...
    @property
    def capacity(self) -> int: ...

class MappedFiles:
    def __init__(self) -> None: ...
    def map(
        self, descriptor: int, size: int
    ) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,), writable=False)]: ...
    @property
    def lost(self) -> bool: ...
