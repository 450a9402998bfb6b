"""Several problems over one store that read it together: in a pass each block is read once, for all of them.

Each problem runs in a thread of its own and has a reader. A pass begins when every reader that has not ended waits for
one. Each of them then gets all blocks, in their order, at its own pace, but the fastest waits for the slowest, so that
three blocks at most are mapped. What a problem sees does not depend on the others, and so its result does not, either:
they decide only when it goes on.

A problem that leaves a pass, ends or raises leaves the others to themselves. Some blocks only, or a pass within a pass,
are read for one problem alone.

As many problems compute at a time as there are `turns` (`cutsvm._utils.rendezvous`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from cutsvm._utils.rendezvous import Member, SharedReading
from cutsvm._utils.types import Array
from cutsvm.io.store.store import Store
from cutsvm.matrix.arrays import DenseRows, SparseRows
from cutsvm.matrix.store import StoreRows, StoreSettings

__all__ = ["SharedReader", "SharedReads", "SharedRows"]

Arrays = tuple[Array, ...]


@dataclass(eq=False)
class _Pass:
    """Which block each of its readers has got to, and the blocks that are mapped or being read."""

    positions: dict[SharedReader, int]
    window: dict[int, Future[Arrays]] = field(default_factory=dict)


class SharedReads(SharedReading["SharedReader", None]):
    """The reads of one store for several problems; as a context manager it ends the thread that reads.

    turns: number of problems that compute at a time. ahead: blocks that the fastest may be ahead of the slowest.
    """

    def __init__(self, store: Store, turns: int = 1, *, ahead: int = 1) -> None:
        super().__init__(turns, len(store.edges) - 1)
        self.store, self.ahead = store, ahead

    def reader(self) -> SharedReader:
        """A reader more; passes wait for it until it is closed. All of them are made before any is used."""
        return self.add(SharedReader(self))

    # For readers

    def begin(self, reader: SharedReader) -> _Pass:
        """Waits until a pass begins."""
        self.wait_for_others(reader, None)
        assert reader.current is not None
        return reader.current

    def take(self, reader: SharedReader, mine: _Pass, block: int) -> Arrays:
        """A block of the pass; the reader does not use those before any more."""
        with self.changed:
            mine.positions[reader] = block
            self._forget(mine)
        self.wait_for(lambda: block <= min(mine.positions.values()) + self.ahead)
        with self.changed:
            for wanted in range(block, min(block + 2, self.n_blocks)):  # the next one is read while this one is used
                if wanted not in mine.window:
                    mine.window[wanted] = self._thread.submit(self.store.read, wanted)
                    self._read += 1
            self._requested += 1
            found = mine.window[block]
        if not found.done():
            self.hand_on(found.exception)
        return found.result()

    def leave(self, member: SharedReader, mine: _Pass) -> None:
        """The reader has had enough of the pass."""
        with self.changed:
            if member.current is mine:
                member.current = None
            if mine.positions.pop(member, None) is not None:
                self._forget(mine)

    def _begin(self, wishes: Mapping[SharedReader, None]) -> None:
        begun = _Pass(dict.fromkeys(wishes, 0))
        for reader in wishes:
            reader.current = begun

    def _forget(self, mine: _Pass) -> None:
        """Unmaps the blocks that all readers of the pass are done with."""
        slowest = min(mine.positions.values(), default=self.n_blocks)
        for block in [block for block in mine.window if block < slowest]:
            mine.window.pop(block).cancel()
        self.changed.notify_all()


class SharedReader(Member):
    """Passes for one problem."""

    shared: SharedReads

    def __init__(self, shared: SharedReads) -> None:
        self.shared = shared
        self.current: _Pass | None = None  # the pass that it takes part in

    def blocks(self) -> Iterator[tuple[int, Arrays]]:
        """One pass: the number and the arrays of each block."""
        mine = self.shared.begin(self)
        try:
            for block in range(self.shared.n_blocks):
                yield block, self.shared.take(self, mine, block)
        finally:
            self.shared.leave(self, mine)


class SharedRows(StoreRows):
    """The rows of a store for one of several problems: full passes are shared.

    reader: of this problem. rows: of the store, whose limits are those of each problem.
    """

    settings = StoreSettings(max_rows=1 << 16)  # several problems hold numbers of these at a time

    def __init__(self, rows: StoreRows, reader: SharedReader, threads: int) -> None:
        super().__init__(rows.store, threads, room=rows.room, temporary=rows.temporary)
        self.plane_memory, self.reader = rows.plane_memory, reader

    def _whole_blocks(self, order: Sequence[int]) -> Iterator[tuple[slice, DenseRows | SparseRows]]:
        if len(order) < len(self.edges) - 1 or self.reader.current is not None:
            self.reader.shared.count_alone(len(order))
            yield from super()._whole_blocks(order)
            return
        for block, arrays in self.reader.blocks():
            yield self._place(block), self._as_rows(arrays)
            self.store.check_intact()
