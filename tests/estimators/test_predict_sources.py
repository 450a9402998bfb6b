"""predict, decision_function, predict_proba and score on stores, files and iterators: as in memory, to the last bit."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import cutsvm
from cutsvm import (
    KernelSVC,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    OrdinalSVC,
    QuantileSVR,
    RankingSVM,
    ROCAreaSVC,
    convert,
    load_model,
    open_dataset,
    save_model,
)
from cutsvm._utils.errors import DataError
from cutsvm.estimators._predict import _read_ahead, _stacked
from cutsvm.io.settings import ReadSettings, use_read_settings
from tests.robust.memory_peak import watch
from tests.support.cli import write_svmlight

RNG = np.random.default_rng(0)
ROWS = 700
X = RNG.normal(size=(ROWS, 4))
LEVELS = np.digitize(X @ [1.0, -1.0, 0.5, 0.0] + 0.5 * RNG.normal(size=ROWS), [-1.0, 0.5])
WEIGHTS = RNG.uniform(0.5, 2.0, ROWS)
QUERIES = np.arange(ROWS) // 25
NUMBERS = X @ [2.0, 0.0, 1.0, -1.0] + RNG.normal(size=ROWS) + 100.0
TEXTS = np.where(LEVELS > 0, "yes", "no")
SMALL = ReadSettings(text_bytes=4096, parsed_bytes=4096, batch_bytes=4096, table_rows=90, csv_bytes=4096)

# Estimators, and the labels that they are trained with.
MODELS: dict[str, tuple[Any, Any]] = {
    "two classes": (LinearSVC(), TEXTS),
    "three classes": (LinearSVC(loss="logistic"), LEVELS),
    "chosen C": (LinearSVCCV(Cs=2, cv=2), LEVELS),
    "regression": (LinearSVR(), NUMBERS),
    "quantile": (QuantileSVR(quantile=0.8), NUMBERS),
    "one class": (LinearOneClassSVM(nu=0.1), LEVELS),
    "ranking": (RankingSVM(), LEVELS),
    "roc": (ROCAreaSVC(), (LEVELS > 0).astype(int)),
    "levels": (OrdinalSVC(), LEVELS),
    "kernel": (KernelSVC(random_state=0), LEVELS),
    "linear kernel": (KernelSVC(kernel="linear", random_state=0), LEVELS),
}
METHODS = ("predict", "decision_function", "predict_proba", "predict_log_proba", "score_samples")


@pytest.fixture(scope="module")
def fitted() -> dict[str, tuple[Any, Any]]:
    models = {}
    for name, (estimator, y) in MODELS.items():
        if name == "ranking":
            estimator.fit(X, y, qid=QUERIES)
        else:
            estimator.fit(X, y)
        models[name] = estimator, y
    return models


@pytest.fixture(autouse=True)
def small_pieces() -> Any:
    with use_read_settings(SMALL):
        yield


@pytest.mark.parametrize("name", list(MODELS))
def test_a_store_gives_the_bits_of_arrays(name: str, fitted: Any, tmp_path: Path) -> None:
    model, y = fitted[name]
    convert((X, y), tmp_path / "a.store", block_bytes=4096, weight=WEIGHTS, qid=QUERIES)
    store = tmp_path / "a.store"
    assert len(open_dataset(store).store.manifest.blocks) > 1
    for method in METHODS:
        if hasattr(model, method):
            found, expected = getattr(model, method)(store), getattr(model, method)(X)
            assert found.dtype == expected.dtype and found.shape == expected.shape
            if (
                name == "kernel" and found.dtype.kind == "f"
            ):  # products of matrices are rounded by where rows are in them
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
            else:
                np.testing.assert_array_equal(found, expected)
    if name == "one class":
        return
    queries = {"qid": QUERIES} if name == "ranking" else {}
    assert model.score(store) == pytest.approx(model.score(X, y, **queries, sample_weight=WEIGHTS), rel=1e-12)
    ones = np.ones(ROWS)
    assert model.score(store, sample_weight=ones) == pytest.approx(model.score(X, y, **queries), rel=1e-12)


def sources(folder: Path) -> dict[str, Any]:
    """The same rows in many forms, with labels -1 and 1."""
    y = np.where(LEVELS > 0, 1, -1)
    write_svmlight(folder / "rows.svm", X, y)
    np.savez(folder / "rows.npz", X=X, y=y)
    return {
        "svmlight": folder / "rows.svm",
        "npz": folder / "rows.npz",
        "pairs": ((X[start : start + 200], y[start : start + 200]) for start in range(0, ROWS, 200)),
        "sparse pairs": ((sparse.csr_matrix(X[start::2]), y[start::2]) for start in (0, 1)),
        "data set": open_dataset(folder / "rows.svm"),
    }


@pytest.mark.parametrize("kind", ["svmlight", "npz", "pairs", "data set"])
def test_every_kind_of_source(kind: str, tmp_path: Path) -> None:
    y = np.where(LEVELS > 0, 1, -1)
    model = LinearSVC().fit(X, y)
    # Entries of a sparse row are added in another order.
    same = sparse.csr_matrix(X) if kind in ("svmlight", "data set") else X
    np.testing.assert_array_equal(model.decision_function(sources(tmp_path)[kind]), model.decision_function(same))
    np.testing.assert_array_equal(model.predict(sources(tmp_path)[kind]), model.predict(X))
    assert model.score(sources(tmp_path)[kind]) == model.score(X, y)


def test_the_base_of_indices_is_remembered(tmp_path: Path) -> None:
    """A file in which index 0 does not occur, for a model whose indices count from 0."""
    y = np.where(LEVELS > 0, 1, -1)
    model = LinearSVC().fit(write_svmlight(tmp_path / "train.svm", X, y, first=0))
    without = X.copy()
    without[:, 0] = 0.0
    test = write_svmlight(tmp_path / "test.svm", without, y, first=0)
    expected = model.decision_function(sparse.csr_matrix(without))
    np.testing.assert_array_equal(model.decision_function(test), expected)
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert loaded.zero_based is True
    np.testing.assert_array_equal(loaded.decision_function(test), expected)
    # A store of that file counts from 1, as far as it knows.
    convert(test, tmp_path / "test.store")
    np.testing.assert_array_equal(loaded.decision_function(tmp_path / "test.store"), expected)
    # Index 0 in the last line decides about the first, if the model does not know.
    array_model = LinearSVC().fit(X, y)
    late = without.copy()
    late[-1, 0] = 1.0
    last = write_svmlight(tmp_path / "late.svm", late, y, first=0)
    expected = array_model.decision_function(sparse.csr_matrix(late))
    np.testing.assert_array_equal(array_model.decision_function(last), expected)


def test_features_that_the_model_does_not_know_are_left_out(tmp_path: Path) -> None:
    y = np.where(LEVELS > 0, 1, -1)
    model = LinearSVC().fit(write_svmlight(tmp_path / "train.svm", X, y))
    wide = write_svmlight(tmp_path / "wide.svm", np.hstack([X, np.ones((ROWS, 2))]), y)
    narrow = write_svmlight(tmp_path / "narrow.svm", X[:, :2], y)
    np.testing.assert_array_equal(model.decision_function(wide), model.decision_function(sparse.csr_matrix(X)))
    none = np.hstack([X[:, :2], np.zeros((ROWS, 2))])
    np.testing.assert_array_equal(model.decision_function(narrow), model.decision_function(sparse.csr_matrix(none)))


def test_indices_beyond_32_bits(tmp_path: Path) -> None:
    far = 2**40
    (tmp_path / "train.svm").write_text(f"1 3:1 {far}:2\n-1 3:-1 {far}:-1\n" * 20)
    model = LinearSVC().fit(str(tmp_path / "train.svm"))
    (tmp_path / "test.svm").write_text(f"1 3:1 7:5 {far}:2\n-1 3:-1 {far + 1}:7\n")
    expected = model.decision_function(sparse.csr_matrix(np.array([[1.0, 2.0], [-1.0, 0.0]])))
    np.testing.assert_array_equal(model.decision_function(tmp_path / "test.svm"), expected)
    save_model(model, tmp_path / "m")
    np.testing.assert_array_equal(load_model(tmp_path / "m").decision_function(tmp_path / "test.svm"), expected)


def test_labels_of_a_source_are_its_own(tmp_path: Path) -> None:
    y = np.where(LEVELS > 0, 1, -1)
    model = LinearSVC().fit(X, y)
    store = tmp_path / "a.store"
    convert((X, TEXTS), store, block_bytes=4096)
    with pytest.raises(ValueError, match="leave y out"):
        model.score(store, y)
    with pytest.raises(ValueError, match="labels are numbers and those of the source are text"):
        model.score(store)
    with pytest.raises(ValueError, match="labels of the source are text"):
        LinearSVR().fit(X, y).score(store)
    with pytest.raises(ValueError, match="sample_weight has 3 numbers"):
        LinearSVC().fit(X, TEXTS).score(store, sample_weight=[1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="leave qid out"):
        convert((X, y), tmp_path / "q.store", qid=QUERIES)
        RankingSVM().fit(X, y).score(tmp_path / "q.store", qid=QUERIES)


def test_another_number_of_columns_is_refused(tmp_path: Path) -> None:
    model = LinearSVC().fit(X, TEXTS)
    convert((X[:, :3], TEXTS), tmp_path / "a.store")
    with pytest.raises(DataError, match="3 columns, expected the 4 that the model was trained with"):
        model.predict(tmp_path / "a.store")


def test_no_rows_and_no_fit(tmp_path: Path) -> None:
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        LinearSVC().predict(tmp_path)
    with pytest.raises(DataError, match="no rows"):
        LinearSVC().fit(X, TEXTS).predict(iter([]))


def test_r2_of_targets_that_are_all_the_same() -> None:
    model = LinearSVR().fit(X, NUMBERS)
    assert model.score(iter([(X, np.full(ROWS, 3.0))])) == model.score(X, np.full(ROWS, 3.0)) == 0.0


def test_a_block_is_read_while_another_is_used() -> None:
    """The reader is one item ahead, in another thread, and its error comes in its turn."""
    made: list[tuple[int, int]] = []

    def items() -> Any:
        for number in range(3):
            made.append((number, threading.get_ident()))
            yield number
        raise DataError("row 3")

    found = []
    with pytest.raises(DataError, match="row 3"):
        for item in _read_ahead(items()):
            found.append(item)
    assert found == [0, 1, 2]
    assert all(thread != threading.get_ident() for _, thread in made)


def test_iterators_run_in_the_thread_of_the_caller() -> None:
    threads = set()

    def parts() -> Any:
        for _ in range(3):
            threads.add(threading.get_ident())
            yield X, TEXTS

    assert LinearSVC().fit(X, TEXTS).predict(parts()).shape == (3 * ROWS,)
    assert threads == {threading.get_ident()}


def test_results_grow_in_place() -> None:
    parts = [np.arange(start, start + 7.0).reshape(7, 1) for start in range(0, 700, 7)]
    np.testing.assert_array_equal(_stacked(iter(parts)), np.arange(700.0).reshape(-1, 1), strict=True)


def test_a_damaged_block_is_named(tmp_path: Path) -> None:
    convert((X, TEXTS), tmp_path / "a.store", block_bytes=4096)
    model = LinearSVC().fit(X, TEXTS)
    block = sorted(tmp_path.glob("a.store/*/block-*.bin"))[-1]
    data = bytearray(block.read_bytes())
    data[40] ^= 1
    block.write_bytes(bytes(data))
    with pytest.raises(DataError, match=f"{block.name}: damaged"):
        model.predict(tmp_path / "a.store")


PREDICT = """
import sys
import numpy as np
from cutsvm import LinearSVC
from cutsvm._utils import memory
model = LinearSVC(n_jobs=2).fit(np.random.default_rng(0).normal(size=(5000, 20)), np.arange(5000) % 3)
model.predict(iter([np.zeros((100_000, 20), dtype=np.float32)]))  # libraries and threads are there then
print(memory.private(), flush=True)
model.predict(sys.argv[1]), model.score(sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RssAnon is Linux's")
def test_memory_does_not_grow_with_the_store(tmp_path: Path) -> None:
    """120 MB of rows: besides 12 MB of predictions, the numbers of a block or two."""
    rng, y = np.random.default_rng(0), np.arange(300_000) % 3
    parts = ((rng.standard_normal((300_000, 20), dtype=np.float32), y) for _ in range(5))
    convert(parts, tmp_path / "a.store")
    peak = watch([sys.executable, "-c", PREDICT, str(tmp_path / "a.store")])
    assert peak.returncode == 0, peak.output
    assert peak.private - int(peak.output) < 90_000_000
    assert cutsvm.open_dataset(tmp_path / "a.store").store.manifest.size > 115_000_000
