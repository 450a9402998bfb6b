"""What a fit on a cluster will take, said before it starts, and what it has taken.

Of the rows the first reading has found how many there are, how large they are and what the client has room for. From
that follow the method, its rounds, and what they bring to the client. Rows near the margin and cutting planes are
estimates; so is the plan. Where rounds may follow that depend on the first solution, as in sifting, it is a range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from cutsvm._utils.memory import MemorySettings, bytes_of_planes, format_bytes
from cutsvm.cluster.costs import (
    RoundCost,
    band_rounds,
    draw_rounds,
    iterations_of_planes,
    plane_rounds,
    sums_received,
    violator_rounds,
)
from cutsvm.cluster.parts import Parts
from cutsvm.cluster.protocol import Traffic
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.parted import PartedOracle
from cutsvm.solvers.auto import REGISTRY, Auto
from cutsvm.solvers.cutting_planes import ShardCosts, choose_shards
from cutsvm.solvers.line_batches import Batched
from cutsvm.solvers.local_dual import LocalDual
from cutsvm.solvers.protocol import Solver
from cutsvm.solvers.sifting.solver import Sifting

__all__ = ["ClusterFigures", "ClusterPlan", "plan_cluster"]


@dataclass(frozen=True)
class ClusterPlan:
    """Of one problem: the method and why, its rounds, and bytes of memory that the client takes for it.

    rounds: those to come, without those before the solver starts; None: not known before. more: those that may follow.
    """

    method: str
    reason: str
    rounds: tuple[RoundCost, ...] | None = None
    memory: float = 0.0
    more: tuple[RoundCost, ...] = ()

    @property
    def why(self) -> str:
        """The method, and the reason if one was chosen."""
        return self.reason or f"{self.method}, as asked for"


def plan_cluster(solver: Solver, oracle: Oracle, Cs: Sequence[float], tol: float) -> ClusterPlan | None:
    """The plan of a fit to rows in parts; None for others."""
    if not isinstance(oracle, PartedOracle):
        return None
    reason = ""
    if isinstance(solver, Auto):
        solver, reason = solver.choose(oracle, max(Cs))
    method = next((name for name, kind in REGISTRY.items() if kind is type(solver)), type(solver).__name__)
    if len(Cs) > 1:  # rounds serve several C, as far as these go on
        return ClusterPlan(method, reason)
    if isinstance(solver, Sifting) and solver.pays(oracle):
        return _sifting(solver, oracle, reason)
    if isinstance(solver, Batched | Sifting):
        own = solver if isinstance(solver, Batched) else Batched()
        return _batched(own, oracle, Cs[0], tol, reason)
    if isinstance(solver, LocalDual):
        return _local_dual(solver, oracle, Cs[0], tol, reason)
    return ClusterPlan(method, reason)


def _sifting(solver: Sifting, oracle: PartedOracle, reason: str) -> ClusterPlan:
    parts, size = oracle.matrix.parts, oracle.size
    near = [float(share * oracle.matrix.n) for share in solver.shares(oracle)]
    groups = 8.0 * max(2, oracle.outputs**2) * (oracle.matrix.d + 1)
    sums = groups * len(parts.chunks)  # the client adds them up
    least = solver.least_of_each(oracle)
    rare = [float(min(least, parts.facts.labels.count(y))) for y in oracle.rare_labels(least)]
    own = _row_bytes(parts)
    rounds = (*draw_rounds(rare, own), *band_rounds(near, own, sums))
    more = violator_rounds(near[-1], own, oracle.matrix.room)
    working_set = near[-1] + sum(own.rows for own in more)
    rows = max(float(parts.facts.sample.block.n), working_set, *(own.rows for own in rounds))
    memory = rows * _row_memory(parts, oracle.outputs) + bytes_of_planes(ShardCosts().most, size)
    return ClusterPlan("sifting", reason, rounds, memory, more)


def _batched(solver: Batched, oracle: PartedOracle, C: float, tol: float, reason: str) -> ClusterPlan:
    parts, size, smooth = oracle.matrix.parts, oracle.size, oracle.supports.smooth
    number = iterations_of_planes(C * oracle.loss.weight, tol, smooth=smooth)
    shards = choose_shards(oracle, C, solver.shards)
    result = 8.0 * solver.most_points(oracle) * (size + 5)
    sums = sums_received(len(parts.chunks), result, oracle.settings.sums_here, shards)
    sample = parts.facts.sample.block.n * _row_memory(parts, oracle.outputs)
    planes = bytes_of_planes(min(2 * number, 12) * shards, size)
    return ClusterPlan("batched", reason, plane_rounds(number, sums), max(sample, 2.0 * sums) + planes)


def _local_dual(solver: LocalDual, oracle: PartedOracle, C: float, tol: float, reason: str) -> ClusterPlan:
    """Two planes of each shard a round; about as many rounds as batched cutting planes take where these are few."""
    parts, size = oracle.matrix.parts, oracle.size
    number = iterations_of_planes(C * oracle.loss.weight, tol)
    shards = min(solver.order_path(oracle, [C]).shards, len(parts.chunks))
    sums = sums_received(len(parts.chunks), 16.0 * (size + 5), oracle.settings.sums_here, shards)
    sample = parts.facts.sample.block.n * _row_memory(parts, oracle.outputs)
    planes = bytes_of_planes(min(2 * number, 12) * shards, size)
    return ClusterPlan("local_dual", reason, plane_rounds(number, sums), max(sample, 2.0 * sums) + planes)


def _row_bytes(parts: Parts) -> float:
    """Of the values of a row as they travel."""
    facts = parts.facts
    value = facts.sample.block.X.dtype.itemsize + (4 if facts.sparse else 0)
    return float(value * facts.entries / facts.n)


def _row_memory(parts: Parts, outputs: int) -> float:
    """Of a row that the client works with."""
    return MemorySettings().held_row(_row_bytes(parts), outputs, sparse=parts.facts.sparse)


@dataclass(frozen=True)
class ClusterFigures:
    """What a fit to rows in parts has taken, with the plans of its problems. It can be pickled.

    before: the executor's traffic when the collection was opened; planned_at: when the solver of a problem started;
    after: when it ended.
    """

    facts: dict[str, Any]
    plan: ClusterPlan
    before: Traffic
    planned_at: Traffic
    after: Traffic

    @classmethod
    def begun(cls, plan: ClusterPlan, oracle: Oracle) -> ClusterFigures:
        """At the start of a solver."""
        assert isinstance(oracle, PartedOracle)
        parts = oracle.matrix.parts
        resources, now = parts.executor.resources, replace(parts.executor.traffic)
        facts = {
            "engine": parts.executor.name,
            "workers": resources.workers,
            "threads": resources.threads,
            "chunks": len(parts.chunks),
            "grains": len(parts.layout.edges) - 1,
            "parts": parts.given,
            "held": parts.held,
        }
        return cls(facts, plan, parts.before, now, now)

    def ended(self, oracle: Oracle) -> ClusterFigures:
        """The same when the solver has ended."""
        assert isinstance(oracle, PartedOracle)
        return replace(self, after=replace(oracle.matrix.parts.executor.traffic))

    def describe(self, oracle: Oracle) -> str:
        """The plan in one line."""
        own = self.facts
        known = own["workers"] > 0 and own["engine"] != "local"
        workers = f"{_many(own['workers'], 'worker')}, " if known else ""
        where = "held by the workers" if own["held"] else "read again in each round"
        size = f"{oracle.matrix.n:,} rows of {_many(oracle.matrix.d, 'feature')}"
        rows = f"{size} in {_many(own['parts'], 'part')}, {where}"
        engine = f"{own['engine']}, {workers}{_many(own['threads'], 'thread')}"
        return f"plan: {engine}; {rows}; {self.plan.why}; {self._to_come}"

    @property
    def _to_come(self) -> str:
        planned, done = self.summary([self])["planned"], _difference(self.planned_at, self.before)
        if planned["reads"] is None:
            return f"{_many(done['reads'], 'reading')} of all rows so far, and how many follow is not known before"
        least, most = (format_bytes(planned[name]) for name in ("received", "most_received"))
        received = least if least == most else f"between {least} and {most}"
        return (
            f"about {_range(planned, 'reads', 'reading')} of all rows in {_range(planned, 'rounds', 'round')}, "
            f"{done['reads']} done; {received} to the client, "
            f"{format_bytes(planned['client_memory'] or 0)} of its memory"
        )

    @staticmethod
    def summary(problems: Sequence[ClusterFigures]) -> dict[str, Any]:
        """`cluster_` of an estimator whose fit has solved these problems, one after the other."""
        first, last = problems[0], problems[-1]
        spent = _difference(last.after, first.before)
        opened = _difference(first.planned_at, first.before)
        plans = [own.plan for own in problems]
        least, most = _planned(opened, plans), _planned(opened, plans, most=True)
        planned: dict[str, Any] = {**least, **{f"most_{name}": value for name, value in most.items()}}
        planned["client_memory"] = round(max(plan.memory for plan in plans)) or None
        return {
            **first.facts,
            "method": first.plan.method,
            "reason": first.plan.reason,
            **{name: spent[name] for name in ("reads", "rounds", "received")},
            "planned": planned,
        }


def _planned(opened: dict[str, int], plans: Sequence[ClusterPlan], *, most: bool = False) -> dict[str, int | None]:
    """Readings, rounds and bytes with those that opened the collection. most: with the rounds that may follow."""
    if any(plan.rounds is None for plan in plans):
        return dict.fromkeys(opened)
    rounds = [own for plan in plans for own in (*(plan.rounds or ()), *(plan.more if most else ()))]
    return {
        "reads": opened["reads"] + sum(own.reads for own in rounds),
        "rounds": opened["rounds"] + len(rounds),
        "received": opened["received"] + round(sum(own.received for own in rounds)),
    }


def _difference(after: Traffic, before: Traffic) -> dict[str, int]:
    now, then = asdict(after), asdict(before)
    return {name: now[name] - then[name] for name in ("reads", "rounds", "received")}


def _range(planned: dict[str, Any], name: str, noun: str) -> str:
    least, most = planned[name], planned[f"most_{name}"]
    return _many(least, noun) if least == most else f"{least:,} to {_many(most, noun)}"


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
