"""Several problems over the same chunks that share rounds: in a round each chunk is read once, for all of them.

Each problem runs in a thread of its own of the client, and has an executor of its own (`Problem`). A round begins when
every problem that has not ended waits for one, and one task for each chunk does what all of them want to know. Each
then gets its results, in their order and at its own pace, but the fastest waits for the slowest, so that few are in
memory. A problem gets the same bits as alone: the others decide only when it goes on.

A problem that leaves a round, ends or raises leaves the others to themselves. Some chunks only, or a round within a
round, are read for one problem alone. As many problems compute at a time as there are `turns`
(`cutsvm._utils.rendezvous`). `cutsvm.matrix.shared_reads` does the same for the passes over a store.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cutsvm._utils.rendezvous import Member, SharedReading
from cutsvm.cluster.grains import sum_of_grains
from cutsvm.cluster.protocol import Column, Executor, Resources, Step

__all__ = ["Problem", "SharedRounds", "for_all"]


class _Wish(NamedTuple):
    """What a problem waits for: a step on all chunks. hold: results stay with the workers. doing: what it is for."""

    step: Step
    hold: bool
    doing: str


@dataclass(eq=False)
class _Round:
    """results: those of each problem in the round that it has not taken yet. held: columns of results."""

    results: dict[Problem, deque[Any]]
    held: dict[Problem, Column] = field(default_factory=dict)
    error: BaseException | None = None
    done: bool = False


class SharedRounds(SharedReading["Problem", _Wish]):
    """The rounds of several problems on an executor; as a context manager it ends the thread that runs them.

    chunks: the column that they read. turns: problems that compute at a time. ahead: results that may wait for one.
    """

    def __init__(self, executor: Executor, chunks: Column, turns: int = 1, *, ahead: int = 4) -> None:
        super().__init__(turns, len(chunks))
        self.executor, self.chunks, self.ahead = executor, chunks, ahead

    def problem(self) -> Problem:
        """A problem more; rounds wait for it until it is closed. All of them are made before any is used."""
        return self.add(Problem(self))

    # For problems

    def takes(self, column: Column) -> bool:
        """Whether this is one step on all chunks."""
        own, steps = self.chunks, column.steps
        same = column.values is own.values and column.inputs is own.inputs and len(steps) == len(own.steps) + 1
        return same and steps[:-1] == own.steps and steps[-1].task is sum_of_grains

    def begin(self, problem: Problem, step: Step, *, hold: bool, doing: str = "") -> _Round:
        """Waits until a round begins."""
        self.wait_for_others(problem, _Wish(step, hold, doing))
        assert problem.current is not None
        return problem.current

    def take(self, problem: Problem, mine: _Round) -> Iterator[Any]:
        """The results of a problem."""
        own = mine.results[problem]
        while True:
            self.wait_for(lambda: bool(own) or mine.done)
            with self.changed:
                if not own:
                    break
                found = own.popleft()
                self.changed.notify_all()
            yield found
            del found
        if mine.error is not None:
            raise mine.error

    def take_held(self, problem: Problem, mine: _Round) -> Column:
        """The same, as a column of results that the workers have."""
        self.wait_for(lambda: mine.done)
        if mine.error is not None:
            raise mine.error
        return mine.held[problem]

    def leave(self, member: Problem, mine: _Round) -> None:
        """The problem has had enough of the round."""
        with self.changed:
            member.current = None
            mine.results.pop(member, None)
            self.changed.notify_all()

    def _begin(self, wishes: Mapping[Problem, _Wish]) -> None:
        begun = _Round({problem: deque() for problem, wish in wishes.items() if not wish.hold})
        for problem in wishes:
            problem.current = begun
        self._read += self.n_blocks
        self._requested += len(wishes) * self.n_blocks
        self._thread.submit(self._run, begun, wishes)

    def _run(self, mine: _Round, wishes: Mapping[Problem, _Wish]) -> None:
        """One round; this runs in the thread for rounds."""
        try:
            receivers = [problem for problem, wish in wishes.items() if not wish.hold]
            for results in self._results(mine, wishes):
                with self.changed:
                    self.changed.wait_for(lambda: all(len(own) < self.ahead for own in mine.results.values()))
                    for problem, found in zip(receivers, results, strict=True):
                        if problem in mine.results:
                            mine.results[problem].append(found)
                    self.changed.notify_all()
                    if not mine.results:
                        break
        except BaseException as error:  # each problem raises it in its own thread
            mine.error = error
        finally:
            with self.changed:
                mine.done = True
                self.changed.notify_all()

    def _results(self, mine: _Round, wishes: Mapping[Problem, _Wish]) -> Iterator[Sequence[Any]]:
        """For each chunk the results of all problems that do not hold theirs."""
        steps = [wish.step for wish in wishes.values()]
        column = self.chunks.map(for_all, steps[0].own, tasks=tuple(step.shared for step in steps))
        doing = ", ".join(sorted({wish.doing for wish in wishes.values() if wish.doing}))
        if not any(wish.hold for wish in wishes.values()):
            yield from self.executor.collect(column, doing=doing, reads=True)
            return
        column = self.executor.hold(column)
        self.executor.traffic.reads += 1
        for number, (problem, wish) in enumerate(wishes.items()):
            if wish.hold:
                mine.held[problem] = self.executor.hold(column.map(_pick_one, number=number))
        others = [number for number, wish in enumerate(wishes.values()) if not wish.hold]
        if others:
            yield from self.executor.collect(column.map(_pick, numbers=others), doing=doing)


@dataclass(eq=False)
class Problem(Member, Executor):
    """The executor of one problem; its traffic is what the problem would have had alone."""

    shared: SharedRounds
    current: _Round | None = None  # the round that it takes part in
    _doing: str = ""

    name = "shared"

    def __post_init__(self) -> None:
        vars(self)["name"] = self.shared.executor.name  # what runs the tasks

    @property
    def resources(self) -> Resources:
        return self.shared.executor.resources

    def hold(self, column: Column) -> Column:
        if not self._is_shared(column):
            return self.shared.executor.hold(column)
        mine = self.shared.begin(self, column.steps[-1], hold=True)
        try:
            return self.shared.take_held(self, mine)
        finally:
            self.shared.leave(self, mine)

    def collect(self, column: Column, *, doing: str = "", reads: bool = False) -> Iterator[Any]:
        self._doing = doing
        return super().collect(column, doing=doing, reads=reads)

    def _elements(self, column: Column) -> Iterator[Any]:
        return self._collect(column)  # groups are for the executor that runs the tasks

    def _collect(self, column: Column) -> Iterator[Any]:
        if not self._is_shared(column):
            yield from self.shared.executor.collect(column, doing=self._doing)
            return
        mine = self.shared.begin(self, column.steps[-1], hold=False, doing=self._doing)
        try:
            yield from self.shared.take(self, mine)
        finally:
            self.shared.leave(self, mine)

    def _is_shared(self, column: Column) -> bool:
        if self.current is None and self.shared.takes(column):
            return True
        if column.values is self.shared.chunks.values:
            self.shared.count_alone(len(column))
        return False


def for_all(chunk: Any, expected: Sequence[bytes], *, tasks: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    """What `sum_of_grains` finds with the arguments of each problem, from one reading of the chunk."""
    totals: list[Any] = []
    for grain in chunk.grains(expected):
        found = [_of_grain(grain, **task) for task in tasks]
        added = zip(tasks, totals, found, strict=True)
        totals = [task["add"](total, own) for task, total, own in added] if totals else found
    return tuple(totals)


def _of_grain(grain: Any, *, of_grain: Callable[..., Any], add: Callable[..., Any], **shared: Any) -> Any:
    return of_grain(grain, **shared)


def _pick(results: Sequence[Any], *, numbers: Sequence[int]) -> list[Any]:
    return [results[number] for number in numbers]


def _pick_one(results: Sequence[Any], *, number: int) -> Any:
    return results[number]
