"""Buckets of rows on disk, for `cutsvm.solvers.buckets`: each is a store of its own in a folder for the time being.

A dispatch reads the rows once, block by block, and writes each into its bucket: at most a few MB of rows are in memory.
So where the buckets begin has to be known before: a sample of the rows, taken once, says it. Only the sizes of the
buckets are less exact than in memory; the range of a bucket's v_i is that of its own rows. Sums over rows inside the
margin are made on the way.

Before the first dispatch parts are runs of the store's own rows. The rows' lengths are the one number per row that is
held in memory; labels and numbers are columns of the buckets.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from cutsvm.errors import DataError
from cutsvm.io.batches import Batch
from cutsvm.io.manifest import NAME
from cutsvm.io.store import Store
from cutsvm.io.store_writer import STRIP, StoreWriter
from cutsvm.losses import Hinge
from cutsvm.risk import Risk
from cutsvm.rows import DenseRows, SparseRows, StoreRows
from cutsvm.solvers.buckets import Buckets, distances, ranges
from cutsvm.solvers.parts import Part, StoredPart, label_sums
from cutsvm.timing import timed
from cutsvm.types import Array, Ints, Vector

PIECE = 4 << 20  # bytes of rows that are dispatched at a time
PENDING = 32 << 20  # bytes of rows that wait in all buckets together until a block is full, about
SAMPLE = 10_000  # rows, or as many as PIECE holds


def buckets_of(risk: Risk, **settings: Any) -> Buckets:
    """The buckets for the rows of a risk: in memory, or files."""
    return (BucketFiles if isinstance(risk.rows, StoreRows) else Buckets)(risk, **settings)


class BucketFiles(Buckets):
    """Buckets that are stores in a temporary folder, beside the rows' own store if it can be there."""

    rows: StoreRows

    def _run(self, begin: int, end: int) -> Part:
        loss = Hinge(self.loss.signed[begin:end], self.loss.threads)
        return StoredPart(self.risk, self.rows, loss, range(begin, end), begin=begin, end=end)

    def close(self) -> None:
        self.parts = []
        if "folder" in vars(self):
            self.folder.cleanup()

    @cached_property
    def folder(self) -> tempfile.TemporaryDirectory[str]:
        with suppress(OSError):
            return tempfile.TemporaryDirectory(prefix=".cutsvm-buckets-", dir=self.rows.store.path.parent)
        return tempfile.TemporaryDirectory(prefix="cutsvm-buckets-")

    @cached_property
    def _row_bytes(self) -> float:
        return max(1.0, self.rows.store.manifest.size / self.rows.n)

    @cached_property
    def _sample(self) -> tuple[Ints, DenseRows | SparseRows]:
        many = int(min(self.rows.n, SAMPLE, 1 + PIECE // self._row_bytes))
        numbers = np.linspace(0, self.rows.n - 1, many).astype(np.int64)
        return numbers, self.rows.take(numbers)

    def _filled(self, w: Vector) -> list[Part]:
        self.risk.count_visits()
        return self._written(w)

    @timed("sift")
    def _written(self, w: Vector) -> list[Part]:
        W, b = self.risk.parts(w)
        edges = self._edges(W, float(b))
        here = Path(self.folder.name)
        shutil.rmtree(here / "buckets", ignore_errors=True)  # of the last dispatch: room for those of this one
        block, strip = PENDING // (len(edges) + 1), int(PENDING / (len(edges) + 1) / self._row_bytes)
        writers = [
            _Bucket(here / "buckets" / f"{k:04d}", self.rows.d, block, min(STRIP, max(1, strip)))
            for k in range(len(edges) + 1)
        ]
        try:
            for numbers, rows in self._pieces():
                scores = np.empty(rows.n)
                rows.scores(W, float(b), scores)
                signed = self.loss.signed[numbers]
                v = distances(signed, scores, self.moves.lengths[numbers])
                which = np.searchsorted(edges, v, side="right")
                for k in np.unique(which):
                    own = np.flatnonzero(which == k)
                    keep = self.both_sides and k <= np.searchsorted(edges, 0.0)
                    writers[k].put(rows.take(own), signed[own], own + numbers.start, v[own], keep=bool(keep))
            return [writer.part(self.risk, self.loss.threads) for writer in writers if writer.rows]
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise DataError(
                f"{here}: {error.strerror}: no room for buckets, {self.rows.store.manifest.size:,} bytes in all; "
                "buckets=1 needs none"
            ) from error
        finally:
            for writer in writers:
                writer.close()

    def _edges(self, W: Vector, b: float) -> Vector:
        """Where buckets begin, but the first: by the quantiles of the sample, and at 0."""
        numbers, rows = self._sample
        scores = np.empty(rows.n)
        rows.scores(W, b, scores)
        v = np.sort(distances(self.loss.signed[numbers], scores, self.moves.lengths[numbers]))
        inside = int(np.searchsorted(v, 0.0))
        begins = [begin for begin, _ in ranges(inside, rows.n, self.count) if begin not in (0, inside)]
        return np.unique(np.append(v[begins], 0.0))

    def _pieces(self) -> Iterator[tuple[slice, DenseRows | SparseRows]]:
        """All rows, a few MB at a time."""
        many = int(1 + PIECE // self._row_bytes)
        for mine, rows in self.rows.blocks():
            for low, high in pairwise([*range(0, rows.n, many), rows.n]):
                yield slice(mine.start + low, mine.start + high), rows.part(low, high)


@dataclass
class _Source:
    """What a store wants to know of where its rows come from."""

    name: str
    feature_names: list[str] | None = None
    zero_based: bool | None = None

    def __iter__(self) -> Iterator[Batch]:
        return iter(())

    def done(self) -> float | None:
        return None


class _Bucket:
    """A bucket that is being filled."""

    def __init__(self, path: Path, d: int, block_bytes: int, strip: int) -> None:
        self.path, self.rows = path, 0
        self.low, self.high = np.inf, -np.inf
        self.totals: Vector | None = None
        self._data = path / f"data-{secrets.token_hex(8)}"
        self._data.mkdir(parents=True)
        self._writer = StoreWriter(
            self._data, _Source(os.fspath(path)), n_features=d, block_bytes=block_bytes, strip=strip, lasting=False
        )

    def put(self, rows: DenseRows | SparseRows, signed: Vector, numbers: Ints, v: Vector, *, keep: bool) -> None:
        """Adds rows; keep: and the sums of either label."""
        self._writer.add(Batch(_matrix(rows), signed, qid=numbers))
        self.rows += rows.n
        self.low, self.high = min(self.low, float(v.min())), max(self.high, float(v.max()))
        if keep:
            sums = label_sums(rows, signed)
            self.totals = sums if self.totals is None else self.totals + sums

    def part(self, whole: Risk, threads: int) -> Part:
        """The bucket, full and closed, as a part of the rows."""
        (self.path / NAME).write_bytes(self._writer.finish().to_json())
        store = Store(self.path)
        numbers: Array | None = store.qid
        assert numbers is not None
        part = StoredPart(whole, StoreRows(store, threads), Hinge(store.y, threads), numbers)
        part.low, part.high, part.totals = self.low, self.high, self.totals
        return part

    def close(self) -> None:
        self._writer.close()


def _matrix(rows: DenseRows | SparseRows) -> Any:
    if isinstance(rows, DenseRows):
        return rows.X
    matrix = sparse.csr_matrix(rows.arrays, shape=(rows.n, rows.d))
    matrix.has_canonical_format = True
    return matrix
