"""`cutsvm predict`: several data files, what it writes and how, and what a kill leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from cutsvm import LinearOneClassSVM, LinearSVC, OrdinalSVC, load_model, save_model
from tests.robust.memory_peak import watch
from tests.support.cli import Run, blobs, write_svmlight

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc and files without names")


@pytest.fixture
def model(run: Run, binary: Path) -> Path:
    assert run("train", "-q", "--n-jobs", 1, binary).code == 0
    return Path(f"{binary}.model")


@pytest.fixture
def chances(run: Run, three: Path) -> Path:
    """A model of three classes that has probabilities."""
    assert run("train", "-q", "--n-jobs", 1, "--loss", "logistic", three).code == 0
    return Path(f"{three}.model")


def test_formats_of_the_output(run: Run, three: Path, chances: Path, tmp_path: Path) -> None:
    X, _ = blobs([1, 2, 5])
    estimator = load_model(chances).estimator
    text = tmp_path / "out.txt"
    measure = run("predict", three, chances, text).out
    labels = np.loadtxt(text)
    for name, words, read in (
        ("out.parquet", [], parquet.read_table),
        ("out.arrow", [], feather.read_table),
        ("out.feather", [], feather.read_table),
        ("out", ["--format", "parquet"], parquet.read_table),
        ("out2", ["--format", "arrow"], lambda path: pa.ipc.open_file(str(path)).read_all()),
    ):
        code, out, err = run("predict", "--scores", "-b", 1, *words, three, chances, tmp_path / name)
        assert (code, out, err) == (0, measure, "")
        table = read(tmp_path / name)
        classes = ("1", "2", "5")
        columns = ["prediction", *(f"score_{c}" for c in classes), *(f"probability_{c}" for c in classes)]
        assert table.column_names == columns
        np.testing.assert_array_equal(table["prediction"].to_numpy(), labels)
        scores = np.column_stack([table[f"score_{c}"].to_numpy() for c in classes])
        shares = np.column_stack([table[f"probability_{c}"].to_numpy() for c in classes])
        np.testing.assert_allclose(scores, estimator.decision_function(X), rtol=1e-12)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    run("predict", three, chances, tmp_path / "plain.parquet")
    assert parquet.read_table(tmp_path / "plain.parquet").column_names == ["prediction"]


def test_scores_of_two_classes(run: Run, binary: Path, model: Path, tmp_path: Path) -> None:
    run("predict", "--scores", binary, model, tmp_path / "out.txt")
    run("predict", "--scores", binary, model, tmp_path / "out.parquet")
    table = parquet.read_table(tmp_path / "out.parquet")
    assert table.column_names == ["prediction", "score"]
    np.testing.assert_array_equal(table["score"].to_numpy(), np.loadtxt(tmp_path / "out.txt"))
    assert table["prediction"].type == pa.int64()


def test_several_files(run: Run, binary: Path, model: Path, tmp_path: Path) -> None:
    X, y = blobs([-1, 1])
    parts = [write_svmlight(tmp_path / f"{k}.svm", X[k::3], y[k::3]) for k in range(3)]
    code, out, err = run("predict", *parts, model, tmp_path / "out")
    assert (code, err) == (0, "") and out == run("predict", binary, model).out
    expected = load_model(model).estimator.predict(np.vstack([X[k::3] for k in range(3)]))
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "out"), expected)
    facts = json.loads(run("predict", "--json", *parts, model).out)
    assert facts["data"] == [str(part) for part in parts] and facts["rows"] == 120


def test_which_word_is_the_model(run: Run, binary: Path, model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.model"
    other.write_bytes(model.read_bytes())
    for words, says in (
        ([binary], "expected DATA and MODEL"),
        ([binary, model, other], "are both model files"),
        ([binary, model, "out", "more"], "expected one OUT, and DATA first"),
        ([binary, binary, binary, tmp_path / "out"], "is a model file: expected DATA... MODEL [OUT]"),
        (["--keep", "id", binary, model], "--keep needs OUT"),
        (["--keep", "id,", binary, model, "-"], "expected the names of columns"),
        (["--memory", "3kB", binary, model], "expected at least"),
        (["--memory", "some", binary, model], "expected bytes"),
    ):
        code, out, err = run("predict", *words)
        assert (code, out) == (2, ""), words
        assert says in err and err.count("\n") == 1
    assert other.read_bytes() == model.read_bytes()


def test_small_memory_gives_the_same(run: Run, binary: Path, model: Path, tmp_path: Path) -> None:
    run("predict", "--scores", binary, model, tmp_path / "usual")
    assert run("predict", "--scores", "--memory", "32MiB", binary, model, tmp_path / "small").code == 0
    assert (tmp_path / "small").read_bytes() == (tmp_path / "usual").read_bytes()


def test_levels_in_their_own_order(run: Run, tmp_path: Path) -> None:
    """The error in levels counts in the order of the levels, which is not that of the numbers."""
    X, y = blobs([3, 1, 2])
    estimator = OrdinalSVC(levels=[3, 1, 2]).fit(X, y)
    save_model(estimator, tmp_path / "m")
    data = write_svmlight(tmp_path / "d", X, y)
    place = {3: 0, 1: 1, 2: 2}
    distance = [abs(place[int(a)] - place[int(b)]) for a, b in zip(estimator.predict(X), y, strict=True)]
    found = json.loads(run("predict", "--json", data, tmp_path / "m").out)
    assert found["mean_absolute_error"] == pytest.approx(np.mean(distance))


def test_inliers_need_no_labels(run: Run, tmp_path: Path) -> None:
    X, y = blobs([-1, 1])
    save_model(LinearOneClassSVM(nu=0.2).fit(X + 3.0), tmp_path / "m")
    code, out, err = run("predict", write_svmlight(tmp_path / "d", X + 3.0, y), tmp_path / "m")
    assert code == 0 and out.startswith("Inliers = ") and err == ""


@pytest.mark.parametrize("kind", ["text", "parquet", "arrow"])
def test_full_disk(kind: str, run: Run, binary: Path, model: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    code, out, err = run("predict", "--format", kind, binary, model, "/dev/full")
    assert (code, out) == (1, "")
    assert err == "cutsvm: cannot write the predictions to /dev/full: No space left on device\n"


def test_bad_rows_leave_the_old_file(run: Run, binary: Path, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("old")
    with binary.open("a") as stream:
        stream.write("1 2:three\n")
    code, _, err = run("predict", binary, model, out)
    assert code == 2 and err.startswith(f"cutsvm: {binary}:121: ")
    assert out.read_text() == "old"
    assert not list(tmp_path.glob(".cutsvm*"))


@linux
def test_a_kill_leaves_nothing(binary: Path, model: Path, tmp_path: Path) -> None:
    """The rows come through a pipe, so that the command is in the middle of its work when it is killed."""
    folder = tmp_path / "results"
    folder.mkdir()
    out, pipe = folder / "out", tmp_path / "rows.svm"
    out.write_text("old")
    os.mkfifo(pipe)
    words = [sys.executable, "-m", "cutsvm.cli", "predict", str(pipe), str(model), str(out)]
    deadline = time.monotonic() + 30.0
    with subprocess.Popen(words) as process:
        rows = None
        while rows is None and time.monotonic() < deadline and process.poll() is None:
            with suppress(OSError):  # nobody reads the pipe yet
                rows = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
            time.sleep(0.01)
        assert rows is not None
        os.set_blocking(rows, True)
        os.write(rows, b"1 1:0.5 2:0.25\n" * 40_000)
        opened = Path(f"/proc/{process.pid}/fd")
        while not any(str(folder) in os.readlink(link) for link in opened.iterdir() if os.path.lexists(link)):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        os.close(rows)
    assert out.read_text() == "old" and os.listdir(folder) == ["out"]


@linux
@pytest.mark.slow
def test_memory_is_bounded(tmp_path: Path) -> None:
    """A store of 100 MB and its predictions, with less than that in private memory besides the libraries."""
    from cutsvm import convert

    rng = np.random.default_rng(0)
    X = rng.standard_normal((250_000, 20), dtype=np.float32)
    small, large = tmp_path / "small.store", tmp_path / "large.store"
    convert((X[:5000], np.where(X[:5000, 0] > 0, 1, -1)), small)
    convert(((X, np.where(X[:, 0] > 0, 1, -1)) for _ in range(5)), large)
    save_model(LinearSVC().fit(X[:5000], np.where(X[:5000, 0] + X[:5000, 1] > 0, 1, -1)), tmp_path / "m")
    peaks = []
    for store in (small, large):
        words = [
            "-m",
            "cutsvm.cli",
            "predict",
            "--scores",
            str(store),
            str(tmp_path / "m"),
            str(tmp_path / "out.parquet"),
        ]
        peak = watch([sys.executable, *words])
        assert peak.returncode == 0, peak.output
        peaks.append(peak.private)
    assert peaks[1] - peaks[0] < 80_000_000
