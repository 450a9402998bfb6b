"""One fit of `cluster.py` in a process of its own: what to do as JSON in the first argument, what came out as JSON.

engine      "memory": one process, no cluster; "local", "dask", "ray", "spark": ours there; "LinearSVC": Spark's own
source      "memory": all rows in this process; "files": read in every round; "held": kept by the workers
folder      of Parquet files, with the label in the column `label`
stub        in place of ours: a few rounds that read all files, then a fit of the first one alone
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import warnings
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

LABEL = "label"


def files_of(folder: str) -> list[str]:
    return sorted(str(file) for file in Path(folder).glob("*.parquet"))


def read_part(file: str) -> tuple[np.ndarray, np.ndarray]:
    """X, float32 and C-ordered, and y of a file."""
    import pyarrow.parquet as pq

    table = pq.read_table(file, use_threads=False)
    y = table.column(LABEL).to_numpy().astype(np.float64)
    names = [name for name in table.column_names if name != LABEL]
    X = np.empty((table.num_rows, len(names)), dtype=np.float32)
    for place, name in enumerate(names):
        X[:, place] = table.column(name).to_numpy()
    return X, y


def read_all(folder: str) -> tuple[np.ndarray, np.ndarray]:
    """X and y of all files, with each value in memory once."""
    import pyarrow.parquet as pq

    files = files_of(folder)
    rows = [pq.read_metadata(file).num_rows for file in files]
    X, y, first = None, np.empty(sum(rows)), 0
    for file, many in zip(files, rows, strict=True):
        part, labels = read_part(file)
        X = np.empty((len(y), part.shape[1]), dtype=np.float32) if X is None else X
        X[first : first + many], y[first : first + many] = part, labels
        first += many
    return X, y


def dask_arrays(client: Any, folder: str) -> tuple[Any, Any]:
    """Arrays of a block per file, that the workers have read and hold."""
    import dask
    import dask.array as da
    import distributed
    import pyarrow.parquet as pq

    Xs, ys = [], []
    for file in files_of(folder):
        found = pq.read_metadata(file)
        part = dask.delayed(read_part, nout=2)(file)
        Xs.append(da.from_delayed(part[0], (found.num_rows, found.num_columns - 1), np.float32))
        ys.append(da.from_delayed(part[1], (found.num_rows,), np.float64))
    X, y = client.persist([da.concatenate(Xs), da.concatenate(ys)])
    distributed.wait([X, y])
    return X, y


def connected(spec: dict[str, Any]) -> Any:
    """The executor of the engine."""
    from cutsvm.cluster import connect

    if spec["engine"] == "local":
        return connect(engine="local", n_jobs=spec["workers"])
    if spec["engine"] == "ray":
        return connect(engine="ray", num_cpus=spec["workers"], include_dashboard=False, log_to_driver=False)
    if spec["engine"] == "spark":
        return connect(spark_session(spec), engine="spark")
    return connect(spec["address"])


def spark_session(spec: dict[str, Any]) -> Any:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{spec['workers']}]").appName("cutsvm")
    settings = {"spark.driver.memory": spec.get("spark_memory", "6g"), "spark.ui.enabled": "false"}
    settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    settings |= {"spark.pyspark.python": sys.executable, "spark.pyspark.driver.python": sys.executable}
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def digest(model: Any) -> str:
    """A hash of the answer and of its certificate, to the last bit."""
    found = hashlib.sha256()
    for values in (model.coef_, model.intercept_, model.lower_bound_, model.objective_):
        found.update(np.ascontiguousarray(values, dtype=np.float64).tobytes())
    return found.hexdigest()


def answer(model: Any, seconds: float, load: float = 0.0) -> dict[str, Any]:
    """What is known of a model of ours; `cluster_` says what the fit has cost."""
    cost = dict(model.cluster_) if hasattr(model, "cluster_") else {}
    method = cost.get("method") or ""
    planned = cost.get("planned", {})
    plan = {"planned_rounds": planned.get("rounds", ""), "planned_bytes": planned.get("received", "")}
    plan |= {"most_rounds": planned.get("most_rounds", ""), "most_bytes": planned.get("most_received", "")}
    plan["reason"] = cost.get("reason", "")
    return {
        "seconds": round(seconds, 3), "load_seconds": round(load, 3), "objective": float(model.objective_),
        "lower": float(model.lower_bound_), "gap": float(model.gap_), "iterations": int(model.n_iter_),
        "passes": float(model.history_[-1]["passes"]), "digest": digest(model), "method": str(method),
        "rounds": cost.get("rounds", ""), "reads": cost.get("reads", ""), "bytes": cost.get("received", ""), **plan,
    }  # fmt: skip


def fit_ours(spec: dict[str, Any]) -> dict[str, Any]:
    """Our estimator on what the engine has; the seconds are those of `fit`."""
    import cutsvm

    options: dict[str, Any] = {"C": spec["C"], "tol": spec["tol"], "solver": spec.get("solver", "auto"), "n_jobs": -1}
    model = cutsvm.LinearSVC(**options, memory_limit=spec.get("memory"))
    began = time.perf_counter()
    if spec["source"] == "memory":
        X, y = read_all(spec["folder"])
        load, began = time.perf_counter() - began, time.perf_counter()
        return answer(model.fit(X, y), time.perf_counter() - began, load)
    with connected(spec) as executor:
        if spec["source"] == "held":
            import distributed

            with distributed.Client(spec["address"]) as client:
                X, y = dask_arrays(client, spec["folder"])
                load, began = time.perf_counter() - began, time.perf_counter()
                return answer(model.fit(X, y), time.perf_counter() - began, load)
        rows = cutsvm.cluster.parquet(f"{spec['folder']}/*.parquet", label=LABEL, executor=executor)
        load, began = time.perf_counter() - began, time.perf_counter()
        return answer(model.fit(rows), time.perf_counter() - began, load)


def fit_stub(spec: dict[str, Any]) -> dict[str, Any]:
    """Rounds that read all files, as a fit would, and a small fit; only to try the benchmark itself."""
    import cutsvm

    began = time.perf_counter()
    files, rounds, received = files_of(spec["folder"]), 4, 0
    if spec["engine"] == "dask":
        import distributed

        with distributed.Client(spec["address"]) as client:
            for _ in range(rounds):
                time.sleep(spec.get("pause", 0.0))
                sums = client.gather(client.map(lambda file: read_part(file)[0].sum(axis=0), files, pure=False))
                received += sum(int(part.nbytes) for part in sums)
    else:
        for _ in range(rounds):
            received += sum(int(read_part(file)[0].sum(axis=0).nbytes) for file in files)
    X, y = read_part(files[0])
    model = cutsvm.LinearSVC(C=spec["C"], tol=spec["tol"]).fit(X[:20_000], y[:20_000])
    cost = {"method": "stub", "rounds": rounds, "reads": rounds, "bytes": received, "planned_rounds": rounds}
    found = {**answer(model, time.perf_counter() - began), **cost, "planned_bytes": received, "reason": "a stub"}
    return found if spec["engine"] in ("memory", "dask") else {**found, "stub": True}


def fit_peer(spec: dict[str, Any]) -> dict[str, Any]:
    """Spark's LinearSVC: mean hinge loss + regParam |w|^2 / 2, which is F / (C n); the intercept is free."""
    from pyspark.ml.classification import LinearSVC
    from pyspark.ml.feature import VectorAssembler

    session = spark_session(spec)
    began = time.perf_counter()
    frame = session.read.parquet(spec["folder"])
    names = [name for name in frame.columns if name != LABEL]
    made = VectorAssembler(inputCols=names, outputCol="features").transform(frame)
    frame = made.selectExpr(f"cast(({LABEL} + 1) / 2 as double) as {LABEL}", "features")  # 0 and 1
    if spec["source"] == "held":
        frame = frame.cache()
        frame.count()
    load, began = time.perf_counter() - began, time.perf_counter()
    svm = LinearSVC(standardization=False, regParam=1.0 / spec["Cn"], maxIter=spec.get("most", 100), tol=1e-6)
    model = svm.setLabelCol(LABEL).fit(frame)
    seconds = time.perf_counter() - began
    found = {"w": model.coefficients.toArray().tolist(), "b": float(model.intercept)}
    found |= {"seconds": round(seconds, 3), "load_seconds": round(load, 3), "method": "OWLQN"}
    found["iterations"] = int(model.summary().totalIterations)
    session.stop()
    return found


def fit_bounds(spec: dict[str, Any]) -> dict[str, Any]:
    """Many small problems on a Dask cluster, each beside its optimum in rational numbers; what was wrong with any."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    import dask.array as da
    import distributed
    from scipy import sparse

    import cutsvm
    from tests.hostile.checks import judge
    from tests.hostile.exact import parts
    from tests.hostile.fits import Fitted
    from tests.hostile.problems import problem
    from tests.hostile.programs import ReferenceFailedError

    wrong, done, refused, unknown = [], 0, 0, 0
    began = time.perf_counter()
    with distributed.Client(spec["address"]):
        for number in count():
            if done == spec["problems"]:
                break
            given = problem(spec["seed"], number, "binary")
            given.repeats = -(-spec["rows"] // len(given.X))
            rng = np.random.default_rng([spec["seed"], number, 2])
            order = rng.permutation(len(given.X) * given.repeats)
            X, y = np.repeat(given.X, given.repeats, axis=0)[order], given.column(given.y)[order]
            weights = given.column(given.weights)
            cuts = np.sort(rng.integers(0, len(X) + 1, rng.integers(0, 8)))
            chunks = tuple(np.diff([0, *cuts, len(X)]).tolist())  # some may be empty
            options: dict[str, Any] = {"C": given.C, "tol": given.tol, "max_time": 2.0}
            options |= {"fit_intercept": False} if given.intercept == "none" else {"intercept": given.intercept}
            model = cutsvm.LinearSVC(**options)
            rows = da.from_array(X, chunks=(chunks, (X.shape[1],)))
            rows = rows.map_blocks(sparse.csr_matrix) if given.layout.startswith("csr") else rows
            labels = da.from_array(y, chunks=(chunks,))
            own = None if weights is None else da.from_array(weights[order], chunks=(chunks,))
            try:
                if spec.get("stub"):
                    rows, labels, own = X, y, None if weights is None else weights[order]
                    distributed.get_client().submit(time.sleep, 0.2, pure=False).result()
                model.fit(rows, labels, sample_weight=own)
                optimum = parts(given, given.C, model)
            except ReferenceFailedError:
                unknown += 1
                continue
            except (ValueError, FloatingPointError) as error:
                refused += 1
                if not refuses(cutsvm.LinearSVC(**options), X, y, None if weights is None else weights[order]):
                    wrong.append(f"{number}: only refused on a cluster: {error}")
                continue
            done += 1
            verdict = judge(given, Fitted(model, given.C, ""), optimum)
            wrong += [f"{number}: {one.kind}: {one.words}" for one in verdict.findings]
    seconds = round(time.perf_counter() - began, 1)
    return {"problems": done, "refused": refused, "unknown": unknown, "wrong": wrong, "seconds": seconds}


def refuses(model: Any, X: Any, y: Any, weights: Any) -> bool:
    """Whether a fit in memory takes these numbers for too large or too small, too."""
    try:
        model.fit(X, y, sample_weight=weights)
    except (ValueError, FloatingPointError):
        return True
    return False


def main() -> None:
    spec = json.loads(sys.argv[1])
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if spec.get("task") == "bounds":
        run: Any = fit_bounds
    elif spec["engine"] == "LinearSVC":
        run = fit_peer
    else:
        run = fit_stub if spec.get("stub") else fit_ours
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = run(spec)
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
