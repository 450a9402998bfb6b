"""Predictions and scores of collections: those of arrays, in their order, and computed when they are asked for."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse

from cutsvm import LinearSVC, LinearSVR, OrdinalSVC, RankingSVM, load_model, save_model
from cutsvm.cluster import parquet
from cutsvm.cluster.open import open_parts, split_arrays

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

N = 600
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4))
CODES = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=N), [-0.5, 0.5])
Y = np.array(["low", "middle", "high"])[CODES]
TARGETS = X @ [1.0, -2.0, 0.5, 0.0] + RNG.normal(size=N)
WEIGHTS = RNG.random(N)
FRAME = pd.DataFrame(X, columns=list("abcd"))


@pytest.fixture(scope="module")
def classifier():
    return LinearSVC(loss="logistic").fit(X, Y)


@pytest.fixture(scope="module")
def named():
    return LinearSVC().fit(FRAME, Y)


@pytest.fixture(scope="module")
def regressor():
    return LinearSVR().fit(X, TARGETS)


METHODS = ["predict", "decision_function", "predict_proba", "predict_log_proba"]


@pytest.mark.parametrize("method", METHODS)
def test_arrays(classifier, method):
    expected = getattr(classifier, method)(X)
    reads = []
    for chunks in ((70, 2), ((1, 0, N - 1), -1)):
        lazy = da.from_array(X, chunks=chunks).map_blocks(lambda block: reads.append(1) or block, meta=X[:0])
        found = getattr(classifier, method)(lazy)
        assert isinstance(found, da.Array) and not reads
        assert found.dtype == expected.dtype and found.shape == expected.shape
        assert found.chunks[0] == lazy.chunks[0]
        np.testing.assert_array_equal(found.compute(scheduler="synchronous"), expected)
        reads.clear()


def test_arrays_whose_sizes_are_not_known(classifier):
    lazy = da.from_array(X, chunks=(100, -1))
    found = classifier.predict(lazy[lazy[:, 0] > 0])
    assert np.isnan(found.shape[0])
    np.testing.assert_array_equal(found.compute(scheduler="synchronous"), classifier.predict(X[X[:, 0] > 0]))


def test_sparse_blocks(classifier):
    lazy = da.from_array(X, chunks=(100, -1)).map_blocks(sparse.csc_matrix)
    found = classifier.decision_function(lazy).compute(scheduler="synchronous")
    np.testing.assert_allclose(found, classifier.decision_function(X), rtol=1e-12)


@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_frames(named, method):
    frame = dd.from_pandas(FRAME.assign(city="x")[["d", "city", "b", "a", "c"]].set_index(np.arange(N) * 2), 5)
    found = getattr(named, method)(frame)
    expected = getattr(named, method)(FRAME)
    values = found.compute(scheduler="synchronous")
    if method == "predict":
        assert isinstance(found, dd.Series) and found.name == values.name == "prediction"
        assert found.dtype == values.dtype
    else:
        assert found.columns.tolist() == ["high", "low", "middle"]
    np.testing.assert_array_equal(values.to_numpy(), expected)
    assert values.index.tolist() == list(range(0, 2 * N, 2))
    assert found.divisions == frame.divisions


def test_regression_and_delayed_parts(regressor):
    parts = [dask.delayed(X[:100]), dask.delayed((X[100:], TARGETS[100:]))]
    found = regressor.predict(parts)
    values = dask.compute(*found, scheduler="synchronous")
    np.testing.assert_array_equal(np.concatenate(values), regressor.predict(X))
    series = regressor.predict(dd.from_pandas(FRAME, 3))
    assert series.dtype == np.float64
    np.testing.assert_array_equal(series.compute(scheduler="synchronous"), regressor.predict(X))


def test_parquet_parts_and_arrays(tmp_path, named):
    for k in range(3):
        FRAME.assign(label=Y).iloc[200 * k : 200 * k + 200].to_parquet(tmp_path / f"{k}.parquet", index=False)
    files = parquet(tmp_path)
    np.testing.assert_array_equal(named.predict(files), named.predict(FRAME))
    assert named.score(files) == named.score(FRAME, Y)
    parts = open_parts(split_arrays(X, Y, parts=4))
    np.testing.assert_array_equal(named.predict(parts), named.predict(FRAME))
    assert named.score(parts) == named.score(FRAME, Y)


def test_score(classifier, named, regressor):
    lazy, weights = da.from_array(X, chunks=(90, -1)), da.from_array(WEIGHTS, chunks=-1)
    assert classifier.score(lazy, da.from_array(Y, chunks=90)) == classifier.score(X, Y)
    assert classifier.score(lazy, Y, weights) == pytest.approx(classifier.score(X, Y, WEIGHTS), rel=1e-14)
    frame = dd.from_pandas(FRAME.assign(label=Y, w=WEIGHTS, t=TARGETS), 5)
    assert named.score(frame) == named.score(FRAME, Y)
    assert named.score(frame, "label", "w") == pytest.approx(named.score(FRAME, Y, WEIGHTS), rel=1e-14)
    assert named.score(frame, frame["label"]) == named.score(FRAME, Y)
    expected = regressor.score(X, TARGETS, WEIGHTS)
    assert regressor.score(lazy, TARGETS, WEIGHTS) == pytest.approx(expected, rel=1e-12)
    assert regressor.score(frame[list("abcdt")], "t") == pytest.approx(regressor.score(X, TARGETS), rel=1e-12)


def test_scores_of_pairs():
    qid = np.arange(N) // 20
    ranking = RankingSVM().fit(X, CODES, qid=qid)
    lazy = da.from_array(X, chunks=(90, -1))
    expected = ranking.score(X, CODES, qid=qid)
    assert ranking.score(lazy, CODES, qid=qid) == expected
    frame = dd.from_pandas(FRAME.assign(level=CODES, q=qid), 7)
    assert ranking.score(frame, "level", qid="q") == expected
    ordinal = OrdinalSVC().fit(X, CODES)
    assert ordinal.score(lazy, CODES) == ordinal.score(X, CODES)
    np.testing.assert_array_equal(ordinal.predict(lazy).compute(scheduler="synchronous"), ordinal.predict(X))


def test_errors(classifier, named):
    with pytest.raises(ValueError, match="X has 3 features, but the model is expecting 4"):
        classifier.predict(da.from_array(X[:, :3]))
    with pytest.raises(ValueError, match="X has no column 'c', which the model was trained with"):
        named.predict(dd.from_pandas(FRAME[["a", "b", "d"]], 2))
    with pytest.raises(ValueError, match="the model's labels are text and those of the source are numbers"):
        classifier.score(da.from_array(X), CODES)
    worse = np.array(X)
    worse[5, 1] = np.nan
    with pytest.raises(ValueError, match="part 0: row 5, column 1: expected a finite number, found nan"):
        classifier.score(da.from_array(worse), Y)
    with pytest.raises(ValueError, match="contains NaN: row 5 column 1"):
        classifier.predict(da.from_array(worse)).compute(scheduler="synchronous")


def test_models_from_files(tmp_path, classifier):
    save_model(classifier, tmp_path / "a.model")
    model, lazy = load_model(tmp_path / "a.model"), da.from_array(X, chunks=(100, -1))
    assert isinstance(model.predict(lazy), da.Array) and isinstance(model.decision_function(lazy), da.Array)
    np.testing.assert_array_equal(model.predict(lazy).compute(scheduler="synchronous"), classifier.predict(X))
    assert model.score(lazy, Y) == classifier.score(X, Y)


def test_fitted_models_stay_plain():
    model = LinearSVC().fit(da.from_array(X, chunks=(100, -1)), da.from_array(Y, chunks=100))
    again = pickle.loads(pickle.dumps(model))
    assert b"dask" not in pickle.dumps(model)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
