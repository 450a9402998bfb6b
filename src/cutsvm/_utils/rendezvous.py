"""Rendezvous: problems in threads of their own, for all of which something is done when all of them wait for it.

As many of them compute at a time as there are `turns`: one that waits hands its turn on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from threading import Condition, Semaphore
from typing import Any, Generic, NamedTuple, TypeVar

from cutsvm._utils.threads import ThreadPool

__all__ = ["Member", "Reads", "Rendezvous", "SharedReading"]

M = TypeVar("M")
Wish = TypeVar("Wish")


class Rendezvous(ABC, Generic[M, Wish]):
    """Members, and what those that wait wish for. `changed` guards all that their threads share."""

    def __init__(self, turns: int) -> None:
        self.turns = Semaphore(turns)
        self.changed = Condition()
        self._members: dict[M, None] = {}  # that have not ended, in the order in which they came
        self._waiting: dict[M, Wish] = {}

    @abstractmethod
    def _begin(self, wishes: Mapping[M, Wish]) -> None:
        """All members wait: what they wish for begins. Called with `changed` held."""

    def add(self, member: M) -> M:
        """One more, for which the others wait until it ends. All are added before any of them waits."""
        with self.changed:
            self._members[member] = None
        return member

    def wait_for_others(self, member: M, wish: Wish) -> None:
        """Waits until it begins."""
        with self.changed:
            self._members[member] = None  # again, if it was closed too early
            self._waiting[member] = wish
            self._begin_if_all_wait()
        self.wait_for(lambda: member not in self._waiting)

    def end(self, member: M) -> None:
        """The others do not wait for it any more."""
        with self.changed:
            self._members.pop(member, None)
            self._waiting.pop(member, None)
            self._begin_if_all_wait()
            self.changed.notify_all()

    def _begin_if_all_wait(self) -> None:
        if self._waiting and len(self._waiting) == len(self._members):
            wishes = {member: self._waiting[member] for member in self._members}
            self._waiting.clear()
            self._begin(wishes)
            self.changed.notify_all()

    def wait_for(self, ready: Callable[[], bool]) -> None:
        """Waits until that is so, which is asked again after each change."""

        def wait() -> None:
            with self.changed:
                self.changed.wait_for(ready)

        with self.changed:
            if ready():
                return
        self.hand_on(wait)

    def hand_on(self, wait: Callable[[], Any]) -> None:
        """Waits, while another problem has the turn."""
        self.turns.release()
        try:
            wait()
        finally:
            self.turns.acquire()


class Reads(NamedTuple):
    """Blocks that were read, blocks that problems have asked for, and how many blocks a pass has."""

    read: int
    requested: int
    blocks: int

    @property
    def passes(self) -> float:
        """Passes over the data that were made."""
        return self.read / self.blocks

    @property
    def requested_passes(self) -> float:
        """Passes that the problems would have made, each for itself."""
        return self.requested / self.blocks


class Member:
    """A problem that reads together with others. A context manager for its thread: it has a turn within, and is closed
    at the end.
    """

    shared: SharedReading[Any, Any]
    current: Any  # the pass that it takes part in, or None

    def __enter__(self: Own) -> Own:
        self.shared.turns.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        self.shared.turns.release()
        self.close()

    def close(self) -> None:
        """The others do not wait for this problem any more."""
        self.shared.end(self)


Own = TypeVar("Own", bound=Member)
Shared = TypeVar("Shared", bound="SharedReading[Any, Any]")


class SharedReading(Rendezvous[Own, Wish]):
    """A rendezvous for passes over blocks of data; as a context manager it ends the thread that reads.

    blocks: how many a pass has.
    """

    def __init__(self, turns: int, blocks: int) -> None:
        super().__init__(turns)
        self.n_blocks = blocks
        self._read = self._requested = 0
        self._thread = ThreadPool(1)

    def __enter__(self: Shared) -> Shared:
        return self

    def __exit__(self, *error: object) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

    @property
    def reads(self) -> Reads:
        """What was read so far."""
        return Reads(self._read, self._requested, self.n_blocks)

    def count_alone(self, blocks: int) -> None:
        """Counts blocks that are read for one problem alone."""
        with self.changed:
            self._read += blocks
            self._requested += blocks

    @abstractmethod
    def leave(self, member: Own, mine: Any) -> None:
        """The problem has had enough of the pass."""

    def end(self, member: Own) -> None:
        """The problem asks for nothing any more."""
        if member.current is not None:
            self.leave(member, member.current)
        super().end(member)
