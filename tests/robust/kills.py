"""kill -9 at random moments of `cutsvm convert`, `append`, `delete`, `compact`, `train`, `predict`, and `save_model`.

    python tests/robust/kills.py [--kills 200] [--seed 0] [convert] [append] [delete] [compact] [resume] [model]
                                 [predict]

Each child is forked from this process, which has everything imported, and killed after a random time within that of a
whole run. What must hold afterwards:

    convert   a store that was there is there as it was, or the new one is, all of it read and compared; without one
              before, the folder is refused as incomplete, or absent. The next convert succeeds and cleans up.
    append, delete, compact
              the store opens in its old or its new version, all of it read and compared. The same change then succeeds,
              and leaves nothing of the one that was killed.
    resume    the same command ends, in the end, with a gap within tol, a bound no higher than an objective found by
              scikit-learn, and an objective no lower than what is proven without interruptions.
    model     the file is one of the two models that are being written in turns, whole.
    predict   the output, text or Parquet, is as it was before, or all there. The next run gives the same as one that
              was not killed, and no more than one temporary file is ever left behind.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import dump_svmlight_file
from sklearn.svm import LinearSVC as Peer

from cutsvm import DataError, LinearSVC, load_model, open_dataset, save_model
from cutsvm.cli import main as command
from cutsvm.driver.checkpoint_file import CheckpointSettings, configure

Counts = Counter[str]


@contextlib.contextmanager
def child(work: Callable[[], object]) -> Iterator[int]:
    """A forked process that does the work and ends; killed when the context is left."""
    pid = os.fork()
    if pid == 0:
        code = 1
        with contextlib.suppress(BaseException), open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
            code = int(work() or 0)
        os._exit(code)
    try:
        yield pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def finished(work: Callable[[], object]) -> float:
    """Runs the work in a child to its end; the seconds that it took."""
    began = time.perf_counter()
    with child(work) as pid:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return time.perf_counter() - began


def killed(work: Callable[[], object], within: float, rng: random.Random) -> None:
    with child(work):
        time.sleep(rng.random() * within)


def data(folder: Path, rows: int, seed: int) -> tuple[Path, np.ndarray, np.ndarray]:
    """Two overlapping classes as svmlight text."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 12)).round(3)
    y = np.where(X @ rng.normal(size=12) + 2.0 * rng.normal(size=rows) > 0.0, 1, -1)
    file = folder / f"{seed}.svm"
    dump_svmlight_file(X, y, str(file), zero_based=False)
    return file, X, y


def converts(kills: int, rng: random.Random, folder: Path) -> Counts:
    files = [data(folder, 15_000, seed) for seed in (1, 2)]
    store, counts = folder / "rows.store", Counts()

    def into(number: int) -> Callable[[], int]:
        return lambda: command(["convert", "-q", str(files[number][0]), str(store)])

    whole = min(finished(into(0)) for _ in range(5))
    for kill in range(kills):
        before = kill % 2 == 0  # with a store that is replaced, and without
        if before:
            assert into(0)() == 0
        else:
            shutil.rmtree(store, ignore_errors=True)
        killed(into(1), 1.1 * whole, rng)
        counts[_what_is_there(store, files, before=before)] += 1
        assert into(1)() == 0, "convert does not work after a kill"
        names = sorted(os.listdir(store))
        assert len([name for name in names if name.startswith("data-")]) == 1, names
        assert not [name for name in names if name.endswith(".tmp")], names
        counts["repaired"] += _same(store, files[1])
    return counts


def _what_is_there(store: Path, files: list[tuple[Path, np.ndarray, np.ndarray]], *, before: bool) -> str:
    try:
        found = [_same(store, file) for file in files]
    except (DataError, OSError) as error:
        if before:
            return f"LOST: {error}"
        return "none yet" if not store.exists() or "incomplete" in str(error) else f"UNCLEAR: {error}"
    return ("old" if found[0] and before else "new") if any(found) else "HALF"


def _same(store: Path, file: tuple[Path, np.ndarray, np.ndarray]) -> bool:
    found = open_dataset(store)
    X = found.X.toarray() if hasattr(found.X, "toarray") else found.X
    return X.shape == file[1].shape and np.allclose(X, file[1], atol=1e-6) and np.array_equal(found.y, file[2])


def changes(what: str) -> Callable[[int, random.Random, Path], Counts]:
    """Kills of one of the commands that change a store."""

    def run(kills: int, rng: random.Random, folder: Path) -> Counts:
        (first, X, y), (more, X2, y2) = (data(folder, rows, seed) for rows, seed in ((20_000, 1), (10_000, 2)))
        base, store, counts = folder / "base.store", folder / "rows.store", Counts()
        assert command(["convert", "-q", str(first), str(base)]) == 0
        if what == "compact":
            assert command(["append", "-q", str(base), str(more)]) == 0
            assert command(["delete", "-q", str(base), "--rows", "5:2000,7000"]) == 0
            X, y = (np.delete(np.concatenate(two), [*range(5, 2000), 7000], axis=0) for two in ((X, X2), (y, y2)))
        words = {"append": [str(more)], "delete": ["--rows", "100:3000,9000"], "compact": []}[what]
        gone = [*range(100, 3000), 9000]
        after = {
            "append": (np.vstack([X, X2]), np.concatenate([y, y2])),
            "delete": (np.delete(X, gone, axis=0), np.delete(y, gone)),
            "compact": (X, y),
        }[what]

        def change() -> int:
            return command([what, "-q", str(store), *words])

        def copied() -> None:
            shutil.rmtree(store, ignore_errors=True)
            shutil.copytree(base, store)

        def timed() -> float:
            copied()
            return finished(change)

        whole, version = min(timed() for _ in range(3)), open_dataset(base).version
        for _ in range(kills):
            copied()
            killed(change, 1.1 * whole, rng)
            try:
                number = open_dataset(store).version - version
                same = _same(store, (first, *(after if number else (X, y))))
            except (DataError, OSError) as error:
                counts[f"LOST: {error}"] += 1
                continue
            counts[("new" if number else "old") if same else "HALF"] += 1
            assert number or change() == 0, "the change does not work after a kill"
            counts["repaired" if _same(store, (first, *after)) else "WRONG"] += 1
            assert command(["delete", "-q", str(store), "--rows", "0"]) == 0
            used = {file.partition("/")[0] for file in open_dataset(store).store.manifest.files()}
            left = set(os.listdir(store)) - used - {"manifest.json"}
            assert len(left) <= 1, left  # the columns of the version before
        return counts

    return run


def resumes(kills: int, rng: random.Random, folder: Path) -> Counts:
    file, X, y = data(folder, 1500, 3)
    C, tol = 0.05, 1e-6
    peer = Peer(C=C, loss="hinge", dual=True, tol=1e-7, max_iter=10**5, intercept_scaling=1.0).fit(X, y)
    margins = y * peer.decision_function(X)
    optimum = 0.5 * (peer.coef_ @ peer.coef_.T).item() + 0.5 * peer.intercept_.item() ** 2
    optimum += C * float(np.maximum(0.0, 1.0 - margins).sum())
    proven = LinearSVC(C=C, tol=1e-7, intercept="regularized", solver="ocas").fit(X, y).lower_bound_
    counts, target, state = Counts(), folder / "model", folder / "state"

    def train() -> int:
        configure(CheckpointSettings(0.0, 0.0, 1e9))  # written at every iteration
        words = ["train", "-B", "-c", str(C), "-e", str(tol), "--solver", "cpa", "--shards", "1", "--n-jobs", "1"]
        return command([*words, "--checkpoint", str(state), str(file), str(target)])

    whole = min(finished(train) for _ in range(5))
    target.unlink()
    for _ in range(kills):
        for _ in range(rng.randint(1, 3)):
            killed(train, 1.05 * whole, rng)
        counts["with a checkpoint" if state.exists() else "without"] += 1
        finished(train)
        assert target.exists(), "the fit does not end after a kill"
        model = load_model(target).estimator
        good = model.converged_ and model.gap_ <= tol
        good &= model.lower_bound_ <= optimum * (1.0 + 1e-9) and model.objective_ >= proven * (1.0 - 1e-9)
        good &= model.objective_ <= optimum * (1.0 + 2.0 * tol)
        counts["right" if good else "WRONG"] += 1
        counts["checkpoints left"] += state.exists()
        counts["temporary files left"] += len(list(folder.glob(".cutsvm-*")))
        target.unlink()
        state.unlink(missing_ok=True)
    return counts


def models(kills: int, rng: random.Random, folder: Path) -> Counts:
    g = np.random.default_rng(0)
    X, y = g.normal(size=(200, 30_000)).astype(np.float32), np.arange(200) % 2
    made = [LinearSVC(C=C).fit(X, y) for C in (1e-6, 1e-5)]
    target, counts = folder / "some.model", Counts()
    save_model(made[0], target)

    def turns() -> None:
        while True:
            for model in made:
                save_model(model, target)

    for _ in range(kills):
        killed(turns, 0.1, rng)
        found = load_model(target).estimator.coef_
        same = [np.array_equal(found, model.coef_) for model in made]
        counts["whole" if any(same) else "HALF"] += 1
    counts["temporary files left"] = len(list(folder.glob(".cutsvm-*")))
    return counts


def predictions(kills: int, rng: random.Random, folder: Path) -> Counts:
    file, X, y = data(folder, 20_000, 3)
    save_model(LinearSVC().fit(X, y), folder / "some.model", zero_based=False)
    results, counts = folder / "results", Counts()
    results.mkdir()
    targets = [results / "out.txt", results / "out.parquet"]
    words = [["predict", "-q", "--n-jobs", "1", str(file), str(folder / "some.model"), str(out)] for out in targets]
    seconds = [finished(partial(command, own)) for own in words]
    whole = [out.read_bytes() for out in targets]
    for kill in range(kills):
        which = kill % len(targets)
        before = b"as it was" if kill % 4 < 2 else None
        targets[which].unlink()
        if before is not None:
            targets[which].write_bytes(before)
        killed(partial(command, words[which]), 1.2 * seconds[which], rng)
        found = targets[which].read_bytes() if targets[which].exists() else None
        kinds = {before: "old", whole[which]: "new"}
        counts[kinds.get(found, "HALF")] += 1
        finished(partial(command, words[which]))
        counts["OTHER AFTERWARDS"] += targets[which].read_bytes() != whole[which]
    counts = Counts({key: many for key, many in counts.items() if many})
    left = len(list(results.glob(".cutsvm-*")))
    return counts + Counts({"LEFT BEHIND": left} if left > 1 else {"left behind": left})


PARTS = {
    "convert": converts,
    **{what: changes(what) for what in ("append", "delete", "compact")},
    "resume": resumes,
    "model": models,
    "predict": predictions,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    failed = False
    for name in options.parts or PARTS:
        with tempfile.TemporaryDirectory(prefix="cutsvm-kills-") as folder:
            counts = PARTS[name](options.kills, random.Random(options.seed), Path(folder))
        print(f"{name}, {options.kills} kills: {dict(counts)}", flush=True)
        failed |= any(key.isupper() or key.split(":")[0].isupper() for key in counts)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
