"""A fit that may be killed: what it knows is written to a file from time to time, and the same fit resumes from it.

For each problem (one-vs-rest has several) the file has the best w, the last record of its history with both bounds, and
for the one that is running the planes, the places where the shards are cut, and the dual vector if the solver has one.
Planes and bounds hold for one problem only: a file of other data or parameters is refused
(`cutsvm.driver.fingerprint`). Of an earlier version of the same store the best w is taken, and the planes that still
hold (`cutsvm.driver.warm_start`).
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cutsvm._utils.types import Array, Vector
from cutsvm.driver.checkpoint_file import CheckpointFile, configure, settings
from cutsvm.driver.fingerprint import Fingerprint
from cutsvm.driver.shard_traits import Kind, ShardTraits, Traits, traits_of
from cutsvm.driver.warm_start import Kept, KeptProblem, take_up
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.planes import OVERFLOW, Planes
from cutsvm.solvers.protocol import FitContext, Iterate

if TYPE_CHECKING:
    from cutsvm.driver.records import Record

_RUNNING = ("slopes", "offsets", "errors", "shard", "weights", "bounds", "dual")
_logger = logging.getLogger("cutsvm.checkpoint")


@contextmanager
def kept_files() -> Iterator[None]:
    """Files of fits that converge within this context stay: fits of later versions of their store take them up."""
    before = configure(replace(settings(), keep=True))
    try:
        yield
    finally:
        configure(before)


@dataclass(frozen=True, eq=False)
class State:
    """How far a problem is: the best w, and the last line of its history."""

    w: Vector
    risk: float  # R(w)
    record: Mapping[str, Any]
    satisfied: bool = False


class Part:
    """One problem of a fit: where it goes on, and what it leaves behind."""

    def __init__(
        self, file: Checkpoint, label: str, context: FitContext, state: State | None, traits: Traits | None = None
    ) -> None:
        self.file, self.label, self.context, self.state, self._traits = file, label, context, state, traits
        self._bounds: Array = np.empty(0)
        self._shards: list[ShardTraits] = []

    @property
    def traits(self) -> dict[str, Any] | None:
        """What tells the rows of each shard, for a file that a later version of the store may take up."""
        if self._traits is None:
            return None
        if not np.array_equal(self._bounds, self.context.oracle.bounds):
            self._bounds = self.context.oracle.bounds
            self._shards = self._traits.shards(self._bounds)
        return {"kind": self._traits.kind, "shards": self._shards}

    def keep(self, iterate: Iterate, record: Record) -> None:
        """Remembers an iterate that is new, and writes it if it is time."""
        if not (iterate.w.any() or iterate.lower > 0.0 or len(self.context.bundle)):
            return  # a sample's iterations: of all rows nothing is known yet
        self.state = State(iterate.w, iterate.risk, record.to_dict(), bool(iterate.satisfied))
        self.file.keep(self)

    def arrays(self) -> dict[str, Array]:
        """What a problem that is running needs besides w."""
        bundle, found = self.context.bundle, {}
        # Slopes beyond OVERFLOW, which end a fit, are not kept.
        if len(bundle) and max(self.context.Cs) * bundle.largest < OVERFLOW:
            found = {"slopes": bundle.slopes, "offsets": bundle.offsets, "errors": bundle.errors, "shard": bundle.shard}
            found["weights"] = bundle.weights
            kept = bundle.heaviest()  # others would not fit into memory when they are read
            if len(kept) < len(bundle):
                found = {name: values[kept] for name, values in found.items()}
            found["bounds"] = self.context.oracle.bounds
        if self.context.dual is not None:
            found["dual"] = self.context.dual
        return found


class Checkpoint(CheckpointFile):
    """The file of a fit. If it is there, the fit goes on from it."""

    def __init__(self, path: str | os.PathLike[str], fingerprint: Fingerprint) -> None:
        super().__init__(path, fingerprint)
        self._states: dict[str, State] = {}
        self._running: Part | None = None
        self._found: tuple[str, dict[str, Array]] = "", {}  # what is in the file of the problem that was running
        self._earlier: tuple[Kind, list[ShardTraits]] | None = (
            None  # rows of the file, if those are of an earlier version
        )
        self._read()

    def part(self, label: str, context: FitContext, C: float) -> Part:
        """The problem of this label. What the file has of it goes into the context: w, planes, shards, dual vector."""
        state = self._states.get(label)
        traits = None if self.fingerprint.store is None else traits_of(context.oracle)
        if self._earlier is not None:
            self._take_up(label, context, C, traits)
            return Part(self, label, context, None, traits)
        if state is not None:
            oracle = context.oracle
            if state.w.shape != (oracle.size,):
                raise self.damaged(f"w has the shape {state.w.shape}, expected {(oracle.size,)}")
            arrays = self._found[1] if self._found[0] == label else {}
            self._check(arrays, oracle, C, oracle.matrix.n)
            if "bounds" in arrays:
                context.replace_oracle(oracle.with_bounds(arrays["bounds"]))
            planes = Planes(
                arrays.get("slopes", np.empty((0, oracle.size))),
                arrays.get("offsets", np.empty(0)),
                arrays.get("errors", np.empty((0, 3))),
            )
            shard, weights = arrays.get("shard", np.empty(0, dtype=np.int64)), arrays.get("weights", np.empty(0))
            context.bundle.resume(planes, shard, weights, (float(state.record["lower"]), C))
            context.dual = arrays.get("dual", context.dual)
            if state.w.any():  # at 0 a solver may know better where to begin
                context.start = state.w
            if self._found[0] == label:
                self._found = "", {}
        return Part(self, label, context, state, traits)

    def _take_up(self, label: str, context: FitContext, C: float, traits: Traits | None) -> None:
        """Puts what a file of an earlier version of the store has of a problem into the context, if it holds."""
        state, oracle = self._states.get(label), context.oracle
        if self._earlier is not None and self._found[0] == label and "slopes" in self._found[1]:
            kind, shards = self._earlier
            arrays = self._found[1]
            self._check(arrays, oracle, C, sum(shard.rows for shard in shards))
            if len(arrays["bounds"]) != len(shards) + 1:
                raise self.damaged("the shards are not those of the planes")
            planes = Planes(arrays["slopes"], arrays["offsets"], arrays["errors"])
            of_shards = Kept(planes, arrays["shard"], arrays["weights"])
            take_up(context, KeptProblem(kind, shards, of_shards, []), traits, "checkpoint of an earlier version")
        elif state is not None:
            context.reused = "checkpoint of an earlier version: no planes, it begins at the last w"
            _logger.info("%s", context.reused)
        if state is not None and state.w.shape == (oracle.size,) and state.w.any():
            context.first_trial = state.w

    def keep(self, part: Part) -> None:
        """Takes over what a problem knows; writes the file if it is time."""
        assert part.state is not None
        self._states[part.label], self._running = part.state, part
        if self.is_due:
            self._write()

    def close(self, *, converged: bool) -> None:
        """After the fit: nothing stale is left of one that got there; what another one knows is kept."""
        if converged and not settings().keep:
            self.remove()
        elif self._running is not None:
            self._write()

    def _write(self) -> None:
        assert self._running is not None
        problems = [
            {
                "label": label,
                "record": {key: _plain(value) for key, value in state.record.items()},
                "satisfied": state.satisfied,
                "risk": float(state.risk),
            }
            for label, state in self._states.items()
        ]
        arrays = {f"w{k}": state.w for k, state in enumerate(self._states.values())} | self._running.arrays()
        header = {
            "problems": problems,
            "running": self._running.label,
            "store": self.fingerprint.store,
            "traits": self._running.traits,
        }
        self.save(header, arrays)

    def _read(self) -> None:
        """Takes up the file, and says so; raises ValueError if it is damaged or of another fit."""
        found = self.load()
        if found is None:
            return
        header, arrays, other = found
        earlier = bool(other) and self.fingerprint.is_earlier_version(header)
        if other and not earlier:
            raise self.other_fit(other)
        try:
            if earlier:
                traits = header["traits"] or {"kind": [], "shards": []}
                self._earlier = tuple(traits["kind"]), [ShardTraits.from_json(shard) for shard in traits["shards"]]
            self._states = dict(_states(header["problems"], arrays))
            running = header["running"]
            if not isinstance(running, str | None):
                raise ValueError("what was running has no name")
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise self.damaged(str(error)) from None
        if not self._states:
            return
        if isinstance(running, str):
            self._found = running, {key: arrays[key] for key in _RUNNING if key in arrays}
        last = running if running in self._states else list(self._states)[-1]
        record = self._states[last].record
        spent = sum(state.record["seconds"] for state in self._states.values())
        _logger.info(
            "%s",
            f"going on from {self.name}{', of an earlier version of the store' * earlier}: "
            f"{f'class {last} against the rest, ' if last else ''}"
            f"iteration {record['iteration']}, gap {record['gap']:.1e}, after {spent:.3g} s",
        )

    def _check(self, arrays: Mapping[str, Array], oracle: Oracle, C: float, n: int) -> None:
        """The arrays of a problem with n rows fit it and each other."""
        dual = arrays.get("dual")
        if dual is not None and not (dual.dtype == np.float64 and dual.shape == (n,) and np.isfinite(dual).all()):
            raise self.damaged("the dual vector does not fit the rows")
        if "slopes" not in arrays:
            if arrays.keys() - {"dual"}:
                raise self.damaged("the planes are not complete")
            return
        m, bounds = len(arrays["slopes"]), arrays.get("bounds", np.empty(0))
        fits = (
            arrays["slopes"].shape == (m, oracle.size)
            and all(name in arrays and arrays[name].shape == (m,) for name in ("offsets", "shard", "weights"))
            and "errors" in arrays
            and arrays["errors"].shape == (m, 3)
            and bool((arrays["errors"] >= 0.0).all())
            and bounds.ndim == 1
            and bounds.dtype == arrays["shard"].dtype == np.int64
            and len(bounds) > 1
            and bounds[0] == 0
            and bounds[-1] == n
            and bool((np.diff(bounds) >= 0).all())
            and 0 <= arrays["shard"].min(initial=0) <= arrays["shard"].max(initial=0) < len(bounds) - 1
            and all(np.isfinite(arrays[name]).all() for name in ("slopes", "offsets", "errors", "weights"))
            and all(arrays[name].dtype == np.float64 for name in ("slopes", "offsets", "errors", "weights"))
            and C * float(np.abs(arrays["slopes"]).max(initial=0.0)) < OVERFLOW
            and C * float(np.abs(arrays["offsets"]).max(initial=0.0)) < settings().max_number
        )
        if not fits:
            raise self.damaged("the planes do not fit the rows")


def _plain(value: Any) -> Any:
    """A field of a record as JSON holds it."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    return float(value) if math.isfinite(value) else None


def _states(problems: Any, arrays: Mapping[str, Array]) -> Iterator[tuple[str, State]]:
    for k, problem in enumerate(problems):
        w, record = arrays[f"w{k}"], problem["record"]
        most = settings().max_number
        numbers = {key: value for key, value in record.items() if type(value) in (int, float) and abs(value) < most}
        lower = numbers.setdefault("lower", 0.0)  # no objective is below
        for key in ("iteration", "seconds", "primal", "planes"):
            if key not in numbers:
                raise ValueError(f"{key} is missing")
        primal = numbers["primal"]
        numbers["gap"] = (primal - lower) / primal if primal > 0.0 else 0.0
        if (
            w.dtype != np.float64
            or w.ndim != 1
            or not (np.abs(w) < settings().max_weight).all()
            or not isinstance(problem["label"], str)
        ):
            raise ValueError("w is not a vector of numbers")
        note, risk = record.get("note"), problem["risk"]
        if type(risk) is not float or not 0.0 <= risk < most:
            raise ValueError("the risk is not a number")
        state = State(
            w, risk, {**numbers, "note": note if isinstance(note, str) else ""}, problem.get("satisfied") is True
        )
        yield problem["label"], state
