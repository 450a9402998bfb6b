"""The model behind `tools/simulate_cluster.py`: what a fit on a cluster takes, from its sizes and some constants.

    rounds      results that the client waits for, once each
    reads       rounds in which every row is read
    received    bytes of results that come to the client
    sent        bytes of arguments: the client sends them once, workers pass them on to each other
    seconds     of a round: the engine's own, then the largest of scheduling, reading and computing, and network (their
                sum where the cores are shared), then what the client computes before the next round

Grains and chunks are those of `cutsvm.cluster.grains`, the sizes of samples and of near rows those of
`cutsvm.solvers.sifting`. Every number that is assumed is a field of `Engine`, `Cluster` or `Constants`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from cutsvm.cluster.costs import CostSettings, iterations_of_planes
from cutsvm.cluster.grains import Counts, LayoutSettings
from cutsvm.solvers.sifting.solver import SiftingSettings


@dataclass(frozen=True)
class Engine:
    """Seconds of a round, and of the scheduler for a task."""

    name: str
    round: float
    task: float


ENGINES = {
    engine.name: engine
    for engine in (
        Engine("local", 0.001, 0.0001),
        Engine("dask", 0.014, 0.0019),
        Engine("ray", 0.005, 0.0011),
        Engine("spark", 0.090, 0.020),
    )
}
# Bytes a second that a worker reads; rows that are held in its memory cost nothing but the kernel.
SOURCES = {"object store": 1e9, "disk": 2e9, "memory": math.inf}


@dataclass(frozen=True)
class Cluster:
    """Machines and network. shared_cores: scheduler, client and workers run on the same cores, one after the other."""

    workers: int = 20
    threads: int = 4  # of a worker
    engine: Engine = ENGINES["dask"]
    bandwidth: float = 1.25e9  # bytes a second of the client's network
    latency: float = 5e-4  # seconds, one way
    read: float = SOURCES["object store"]  # bytes a second of a worker
    client_memory: float = 48e9
    client_threads: int = 16
    worker_memory: float = 16e9
    shared_cores: bool = False


@dataclass(frozen=True)
class Data:
    """n rows of d features; nnz: values of a sparse row, None: dense. Cn: C n. sizes: rows of the parts are known."""

    n: int
    d: int
    nnz: float | None = None
    value_bytes: int = 4
    Cn: float = 1e4
    sizes: bool = True

    @property
    def values(self) -> float:
        """Of one row."""
        return float(self.d if self.nnz is None else self.nnz)

    @property
    def row_bytes(self) -> float:
        """In memory: values, and 32-bit columns of a sparse row."""
        return self.values * self.value_bytes if self.nnz is None else self.values * (self.value_bytes + 4) + 8.0

    @property
    def counts(self) -> Counts:
        settings = LayoutSettings()
        wide = settings.is_wide(self.d, sparse=self.nnz is not None)
        return Counts.of(self.n, self.row_bytes, settings, wide=wide)

    @property
    def name(self) -> str:
        return f"d = {short(self.d)}" + ("" if self.nnz is None else f", {short(self.nnz)} values a row")


@dataclass(frozen=True)
class Constants:
    """What the methods are assumed to take; measured on one machine, or taken from a prototype."""

    value: float = 0.8e-9  # seconds of a kernel for a value, on one thread
    check: float = 0.6e-9  # seconds of the fingerprint for a value: rows are compared whenever they are read
    decode: float = 10e-9  # seconds to decode a value of a Parquet file, on one thread
    keep: float = 12e-9  # seconds to cut a value out of a part and to keep it, once
    row_extra: float = 24.0  # bytes of a row on the client besides its values: label, weight, number
    facts: float = 256.0  # bytes of a chunk besides lowest and highest values
    fingerprint: float = 16.0  # bytes of a grain
    tree_from: float = 64e6  # bytes of sums to the client from which workers add them up first
    tree_width: int = CostSettings().width
    groups: int = 2
    base: float = 0.25e9  # bytes of a process with its libraries
    room: float = 0.9  # of the client's memory
    most_reads: int = 4
    advances: int = 1
    violators: float = CostSettings().violators  # of the near rows: those that follow in an advance
    sample_passes: float = 30.0  # over the sample and the near rows, by the client
    near_passes: float = 200.0
    sift_kernels: float = 3.0  # kernels over all values in a round: scores, sums of groups, rows that are taken
    points: int = 16
    shards: int = 32
    kept: int = 4  # planes of a shard that join the bundle in a round
    planes_share: float = 0.5  # of the client's memory
    batch_kernels: float = 10.0
    wide: int = 10_000  # features from which sparse rows are for dual descent
    dual_rounds: int = 30
    dual_parts: int = 64
    dual_kernels: float = 20.0
    sifting: SiftingSettings = field(default_factory=SiftingSettings)


@dataclass(frozen=True)
class Round:
    """received, sent: bytes. kernels: of all values. client: seconds of the client afterwards."""

    name: str
    read: bool
    received: float
    sent: float = 0.0
    kernels: float = 1.0
    client: float = 0.0


@dataclass(frozen=True)
class Plan:
    """A method with its rounds. limit: why it cannot be used; empty: it can. memory: of the client, at most."""

    method: str
    reason: str
    rounds: tuple[Round, ...]
    memory: float
    limit: str = ""

    @property
    def reads(self) -> int:
        return sum(step.read for step in self.rounds)

    @property
    def received(self) -> float:
        return sum(step.received for step in self.rounds)

    @property
    def sent(self) -> float:
        return sum(step.sent for step in self.rounds)


def sums_received(chunks: int, each: float, constants: Constants) -> float:
    """Bytes to the client of sums of `each` bytes from all chunks: of the last level of the tree, if workers add."""
    while chunks * each > constants.tree_from and chunks > constants.tree_width:
        chunks = -(-chunks // constants.tree_width)
    return chunks * each


def first_rounds(data: Data, sample: float, constants: Constants) -> Iterator[Round]:
    """Sizes if they are unknown; then facts, fingerprints and the sample."""
    counts = data.counts
    if not data.sizes:
        yield Round("sizes", True, 8.0 * counts.chunks, kernels=0.0)
    own = constants.facts + (0.0 if data.nnz is not None else 16.0 * data.d)  # lowest and highest values
    received = counts.chunks * own + constants.fingerprint * counts.grains + sample * data.row_bytes
    yield Round("facts and sample", True, received, kernels=1.0)


def sifting(data: Data, cluster: Cluster, constants: Constants) -> Plan:
    """A sample, the rows near its margin, and rounds that look at all rows at the solution of these."""
    settings, size, counts = constants.sifting, data.d + 1, data.counts
    own = data.row_bytes + constants.row_extra
    room = (constants.room * cluster.client_memory - constants.base) / own
    sample = min(float(data.n), (data.n * math.sqrt(size)) ** (2 / 3), settings.sample_room * room)
    share = min(settings.widest, settings.spread * math.sqrt(size / sample))
    kept = min(float(data.n), settings.first_room * room)
    most = kept / data.n
    second = constants.value / cluster.client_threads * data.values  # of the client for a row
    point = 8.0 * size + constants.fingerprint * counts.grains
    totals = sums_received(counts.chunks, 8.0 * constants.groups * size, constants)
    rounds = list(first_rounds(data, sample, constants))
    rounds[-1] = replace(rounds[-1], client=constants.sample_passes * sample * second)
    limit, thinned = "", 0
    while share > most and not limit:
        thinned += 1
        work = constants.near_passes * kept * second
        rounds.append(
            Round("thinned band", True, kept * data.row_bytes + totals, point, constants.sift_kernels, client=work)
        )
        closer = settings.spread * math.sqrt(size / kept)
        share = max(min(settings.least_share, most), closer * share) if closer <= settings.helps else most
        if closer > settings.helps:
            limit = f"client memory: room for {short(kept)} near rows, too few for {short(size)} coordinates"
        elif thinned > constants.most_reads:
            limit = "client memory: more than 4 reads until the near rows fit"
    near = min(share, most) * data.n
    work = constants.near_passes * near * second
    rounds.append(Round("sift", True, near * data.row_bytes + totals, point, constants.sift_kernels, client=work))
    for _ in range(constants.advances):
        some = constants.violators * near
        rounds.append(Round("advance", True, some * data.row_bytes + totals, point, constants.sift_kernels))
    least = max(settings.least_rows, settings.least_rows_per_feature * size)
    if data.n < least:
        limit = f"fewer than {short(least)} rows: few rows cannot represent all"
    elif not limit and sum(step.read for step in rounds) > constants.most_reads + (not data.sizes):
        limit = f"more than {constants.most_reads} reads"
    memory = constants.base + max(sample, near * (1.0 + constants.violators), kept * (thinned > 0)) * own
    reason = f"{short(near)} near rows ({100 * near / data.n:.2g} %) fit the client"
    return Plan("sifting", reason, tuple(rounds), memory, limit)


def iterations(Cn: float) -> int:
    """Of cutting planes with 32 shards to a gap of 1e-3: 8, 14 and 20 at C n = 1e2, 1e4 and 1e6."""
    return iterations_of_planes(Cn, CostSettings().tol)


def batched(data: Data, cluster: Cluster, constants: Constants) -> Plan:
    """Cutting planes: one round per iteration, values and planes at some points of a line."""
    plane, shards = 8.0 * (data.d + 1), constants.shards
    power = min(0.5, max(0.1, 0.28 + 0.08 * (math.log10(max(data.Cn, 1e-9)) - 4.0)))  # as choose_shards has it
    most, number = constants.planes_share * cluster.client_memory, iterations(data.Cn)
    while shards > 1 and number * shards * constants.kept * plane > most:
        shards //= 2
        number = math.ceil(iterations(data.Cn) * (constants.shards / shards) ** power)
    planes = number * shards * constants.kept * plane
    received = shards * constants.points * plane
    sent = constants.points * plane + constants.fingerprint * data.counts.grains
    step = Round("tangents", True, received, sent, constants.batch_kernels)
    limit = "" if planes <= most else f"client memory: {number} planes of {short(plane)} B are too many"
    reason = f"{shards} shards, {constants.points} points a round"
    memory = constants.base + planes + 2.0 * received
    return Plan("batched", reason, (*first_rounds(data, 0.0, constants), *([step] * number)), memory, limit)


def dual(data: Data, cluster: Cluster, constants: Constants) -> Plan:
    """Dual descent within parts of the rows: a plane of each part in a round."""
    plane, parts = 8.0 * (data.d + 1), min(constants.dual_parts, data.counts.chunks)
    most = constants.planes_share * cluster.client_memory
    while parts > 1 and constants.dual_rounds * parts * plane > most:
        parts //= 2
    planes = constants.dual_rounds * parts * plane
    limit = "" if planes <= most else f"client memory: {constants.dual_rounds} planes of {short(plane)} B are too many"
    sent = plane + constants.fingerprint * data.counts.grains
    step = Round("dual descent", True, parts * plane, sent, constants.dual_kernels)
    rounds = (*first_rounds(data, 0.0, constants), *([step] * constants.dual_rounds))
    return Plan("dual", f"{parts} parts with a plane each", rounds, constants.base + planes, limit)


METHODS = {"sifting": sifting, "batched": batched, "dual": dual}


def choose(data: Data, cluster: Cluster, constants: Constants) -> Plan:
    """Sifting if the near rows fit, else dual descent for wide sparse rows, else cutting planes; and why."""
    first = sifting(data, cluster, constants)
    if not first.limit:
        return first
    wide = data.nnz is not None and data.d >= constants.wide
    plan = (dual if wide else batched)(data, cluster, constants)
    return replace(plan, reason=f"no sifting ({first.limit}); {plan.reason}")


@dataclass(frozen=True)
class Cost:
    """Seconds of a plan by what they are spent on, and what limits it."""

    plan: Plan
    scheduling: float
    working: float
    network: float
    client: float
    seconds: float
    worker_memory: float
    tasks: int
    limits: tuple[str, ...]


def cost(data: Data, cluster: Cluster, plan: Plan, constants: Constants) -> Cost:
    """What a plan takes on a cluster."""
    counts = data.counts
    busy = min(cluster.threads, -(-counts.chunks // cluster.workers))  # threads of a worker that have something to do
    waves = -(-counts.chunks // (cluster.workers * busy))
    values = data.n * data.values / counts.chunks  # of a chunk
    held = math.isinf(cluster.read)
    reading = 0.0 if held else data.n * data.row_bytes / counts.chunks / (cluster.read / busy)
    hops = max(1, math.ceil(math.log2(cluster.workers + 1)))  # arguments go from worker to worker
    totals = dict.fromkeys(("scheduling", "working", "network", "client", "seconds"), 0.0)
    for step in plan.rounds:
        first = constants.keep if step is plan.rounds[0] else 0.0
        kernels = step.kernels * constants.value + (first if held else constants.check + constants.decode)
        found = {
            "scheduling": counts.chunks * cluster.engine.task,
            "working": waves * (reading + values * kernels) if step.read else 0.0,
            "network": (step.received + hops * step.sent) / cluster.bandwidth,
        }
        together = sum(found.values()) if cluster.shared_cores else max(found.values())
        found["client"] = step.client
        found["seconds"] = cluster.engine.round + 2.0 * cluster.latency + together + step.client
        found["scheduling"] += cluster.engine.round
        totals = {name: total + found[name] for name, total in totals.items()}
    grain = counts.rows * data.row_bytes
    own = constants.base + cluster.threads * (2.0 * grain + max(step.received for step in plan.rounds) / counts.chunks)
    own += data.n * data.row_bytes / cluster.workers if held else 0.0
    limits = [plan.limit] if plan.limit else []
    if plan.memory > cluster.client_memory:
        limits.append(f"client memory: {short(plan.memory)} B")
    if own > cluster.worker_memory:
        limits.append(f"worker memory: {short(own)} B")
    if counts.chunks < cluster.workers * cluster.threads:
        limits.append(f"{counts.chunks} chunks: more threads do not help")
    largest = max(("scheduling", "working", "network", "client"), key=lambda name: totals[name])
    if largest != "working":
        limits.append({"scheduling": "the scheduler", "network": "the network", "client": "the client"}[largest])
    return Cost(plan, **totals, worker_memory=own, tasks=counts.chunks * len(plan.rounds), limits=tuple(limits))


def simulate(data: Data, cluster: Cluster, constants: Constants | None = None, method: str = "auto") -> Cost:
    """The cost of a fit by the method that is chosen, or by the one that is named."""
    constants = constants or Constants()
    plan = choose(data, cluster, constants) if method == "auto" else METHODS[method](data, cluster, constants)
    return cost(data, cluster, plan, constants)


def largest(cluster: Cluster, constants: Constants, d: int, nnz: float | None = None) -> float:
    """The most rows, up to 1e15, for which sifting is chosen; 0: it never is."""
    found = [n for k in range(16, 61) if not sifting(Data(n := round(10 ** (k / 4)), d, nnz), cluster, constants).limit]
    return float(max(found, default=0))


def short(number: float) -> str:
    """1e9, 2.5e7, 320: three digits at most."""
    if number == 0 or 0.01 <= abs(number) < 1e4:
        return f"{number:.3g}" if abs(number) < 999.5 else f"{number:.0f}"
    text = f"{number:.1e}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")
    return text.replace(".0e", "e")
