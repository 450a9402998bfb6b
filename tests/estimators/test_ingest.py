"""ingest: arrays, frames, files and stores give every estimator the same rows, weights, queries and names."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import cutsvm
from cutsvm import KernelSVC, LinearSVC, LinearSVCCV, OrdinalSVC, RankingSVM, RankingSVMCV, ROCAreaSVC
from cutsvm.estimators._ingest import ingest

NAMES = ["age", "height", "weight"]
ESTIMATORS = {
    "LinearSVC": LinearSVC(),
    "LinearSVCCV": LinearSVCCV(Cs=2, cv=2),
    "RankingSVM": RankingSVM(),
    "RankingSVMCV": RankingSVMCV(Cs=2, cv=2),
    "ROCAreaSVC": ROCAreaSVC(),
    "OrdinalSVC": OrdinalSVC(),
    "KernelSVC": KernelSVC(),
}
FROM_DISK = ["LinearSVC", "RankingSVM", "ROCAreaSVC", "OrdinalSVC"]
RANKING = ["RankingSVM", "RankingSVMCV"]


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """The same rows as a frame, a file and a store, with weights, queries and names."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("sources")
    frame = pd.DataFrame(rng.normal(size=(120, 3)), columns=NAMES)
    y = (frame["age"] + 0.3 * rng.normal(size=120) > 0).astype(int).to_numpy()
    weights, qid = rng.uniform(0.5, 2.0, size=120), np.repeat(np.arange(6), 20)
    table = frame.assign(label=y, sample_weight=weights, qid=qid)
    table.to_parquet(folder / "rows.parquet")
    cutsvm.convert(folder / "rows.parquet", folder / "rows.store")
    return {
        "arrays": (frame, y, weights, qid),
        "file": (folder / "rows.parquet", None, None, None),
        "store": (folder / "rows.store", None, None, None),
    }


@pytest.mark.parametrize("source", ["arrays", "file", "store"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_same_data_from_every_source(name, source, sources):
    X, y, weights, qid = sources[source]
    frame, labels, all_weights, queries = sources["arrays"]
    estimator = ESTIMATORS[name]
    with ingest(estimator, X, y, weights, qid=qid) as data:
        assert not data.on_disk
        assert_array_equal(np.asarray(data.X), frame.to_numpy())
        assert_array_equal(data.y, labels)
        assert_array_equal(data.weights, all_weights)
        assert_array_equal(data.class_names, [] if name in RANKING else [0, 1])
        assert_array_equal(data.query_codes, queries if name in RANKING else [])
    assert estimator.n_features_in_ == 3
    assert list(estimator.feature_names_in_) == NAMES


@pytest.mark.parametrize("source", ["file", "store", "data set"])
@pytest.mark.parametrize("name", FROM_DISK)
def test_rows_stay_on_disk_under_a_limit(name, source, sources):
    frame, labels, all_weights, queries = sources["arrays"]
    estimator = type(ESTIMATORS[name])(memory_limit="4GB")
    X = cutsvm.open_dataset(sources["store"][0]) if source == "data set" else sources[source][0]
    with ingest(estimator, X) as data:
        assert data.on_disk
        scores = np.empty(120)
        data.rows.scores(np.array([1.0, 0.0, 0.0]), 0.0, scores)
        assert_array_equal(scores, frame["age"])
        assert_array_equal(data.y, labels)
        assert_array_equal(data.weights, all_weights)
        assert_array_equal(data.query_codes, queries if name in RANKING else [])
        folder = data.rows.store.path
        assert folder.exists()
    assert folder.exists() == (source != "file")  # the store of a file is temporary
    assert list(estimator.feature_names_in_) == NAMES


@pytest.mark.parametrize("name", ["RankingSVM", "ROCAreaSVC", "OrdinalSVC"])
def test_too_large_for_memory_stays_on_disk_without_a_limit(name, sources, monkeypatch):
    monkeypatch.setattr("cutsvm._utils.memory.total", lambda: 1_000_000_000_000)
    with ingest(ESTIMATORS[name], sources["store"][0]) as data:
        assert not data.on_disk
    monkeypatch.setattr("cutsvm.io.store.manifest.Manifest.size", 900_000_000_000)
    with ingest(ESTIMATORS[name], sources["store"][0]) as data:
        assert data.on_disk


@pytest.mark.parametrize("name", ESTIMATORS)
def test_names_of_an_earlier_fit_are_forgotten(name, sources):
    frame, y, _, _ = sources["arrays"]
    estimator = type(ESTIMATORS[name])()
    ingest(estimator, frame, y)
    assert hasattr(estimator, "feature_names_in_")
    ingest(estimator, frame.to_numpy(), y)
    assert not hasattr(estimator, "feature_names_in_")


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("limit", [None, "4GB"])
def test_a_data_set_has_its_own_labels(name, limit, sources):
    estimator = ESTIMATORS[name] if limit is None else type(ESTIMATORS[name])(memory_limit=limit)
    with pytest.raises(ValueError, match="a data set has its own labels: leave y out"):
        ingest(estimator, sources["file"][0], sources["arrays"][1])


def test_a_failed_check_removes_the_temporary_store(sources, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(3,\)"):
        ingest(LinearSVC(memory_limit="4GB"), sources["file"][0], sample_weight=np.ones(3))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["LinearSVCCV", "RankingSVMCV"])
def test_weights_of_a_file_count_in_the_scores_of_folds(name, sources):
    frame, y, weights, qid = sources["arrays"]
    queries = {"qid": qid} if name in RANKING else {}
    expected = type(ESTIMATORS[name])(Cs=2, cv=2).fit(frame, y, sample_weight=weights, **queries)
    model = type(ESTIMATORS[name])(Cs=2, cv=2).fit(sources["file"][0])
    assert_array_equal(model.scores_, expected.scores_)
    assert_array_equal(model.coef_, expected.coef_)
