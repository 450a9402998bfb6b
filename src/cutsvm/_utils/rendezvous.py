"""Rendezvous: problems in threads of their own, for all of which something is done when all of them wait for it.

As many of them compute at a time as there are `turns`: one that waits hands its turn on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from threading import Condition, Semaphore
from typing import Any, Generic, TypeVar

__all__ = ["Rendezvous"]

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
