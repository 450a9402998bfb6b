"""Input that was not thought of: refused with a clear word, or fitted as it is meant, and never changed."""

from __future__ import annotations

import numpy as np
import pytest

from cutsvm import LinearSVC, LinearSVR, load_model, save_model
from cutsvm._utils.errors import DataError
from cutsvm.cluster import parquet

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

N = 300
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = (X[:, 0] + 0.3 * RNG.normal(size=N) > 0.0).astype(int)
WEIGHTS = RNG.random(N)
FRAME = pd.DataFrame(X, columns=list("abc")).assign(t=Y, w=WEIGHTS)
BLOCKS = da.from_array(X, chunks=(100, 3))
LABELS = da.from_array(Y, chunks=100)


def bounds(*data):
    model = LinearSVC(C=0.1).fit(*data)
    return model.lower_bound_, model.objective_


def test_labels_in_a_column_keep_their_shape():
    y = Y[:, None].copy()
    assert bounds([dask.delayed((X, y))]) == bounds([(X, Y)])
    assert bounds([(X, y)]) == bounds([(X, Y)])
    assert y.shape == (N, 1)


def test_frames_whose_columns_have_numbers_as_names():
    plain = pd.DataFrame(X)
    frame, y = dd.from_pandas(plain, npartitions=3), dd.from_pandas(pd.Series(Y), npartitions=3)
    assert bounds(frame, y) == bounds([(X, Y)]) == bounds([dask.delayed(plain.assign(t=Y))], "t")
    model = LinearSVC(C=0.1).fit(frame, y)
    assert list(model.feature_names_in_) == ["0", "1", "2"]
    np.testing.assert_array_equal(model.predict(frame).compute(), model.predict(BLOCKS).compute())
    assert model.score(frame, y) == model.score(BLOCKS, LABELS)
    assert list(plain.columns) == [0, 1, 2]


@pytest.mark.parametrize(
    "data, message",
    [
        (
            (dd.from_pandas(FRAME[["a", "b"]], npartitions=3), LABELS),
            "y: expected the name of a column or a Dask Series",
        ),
        ((BLOCKS, "t"), "y: expected an array with an entry for each row of X, got 't'"),
        ((BLOCKS, LABELS, 1.0), "sample_weight: expected an array with an entry for each row of X, got 1.0"),
        ((BLOCKS[:, :0], LABELS), "X has no columns"),
        (([dask.delayed((X[:, :0], Y))],), r"part 0: expected a matrix, rows x features, found the shape \(300, 0\)"),
        (([dask.delayed((X, Y))], None, "w"), "part 0: the part is arrays, which have no column 'w'"),
        (([(X, Y)], None, "w"), "sample_weight='w': the parts are arrays"),
    ],
)
def test_refused(data, message):
    with pytest.raises(ValueError, match=message):
        LinearSVC().fit(*data)


def test_parquet_columns_that_fit_names(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "rows.parquet"
    FRAME.to_parquet(path, index=False)
    expected = bounds([(X, Y, WEIGHTS)])
    assert bounds(parquet(path), "t", "w") == bounds(parquet(path, label="t"), None, "w") == expected
    model = LinearSVC(C=0.1).fit(parquet(path), "t", "w")
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert model.score(parquet(path), "t", "w") == model.score(parquet(path, label="t", weight="w"))
    with pytest.raises(ValueError, match="y='t', and the files are said to have label='a': name it once"):
        model.fit(parquet(path, label="a"), "t")
    with pytest.raises(ValueError, match="columns='ab': expected a list of names"):
        parquet(path, columns="ab")
    with pytest.raises(DataError, match=r"rows\.parquet: there is no column of features"):
        model.fit(parquet(path, label="t", exclude=["a", "b", "c", "w"]))


def test_predictions_and_scores_that_are_refused():
    model = LinearSVC(C=0.1).fit(X, Y)
    with pytest.raises(ValueError, match="X has 1 dimensions"):
        model.predict(BLOCKS[0])
    for fitted in (model, LinearSVR(C=0.1).fit(X, Y)):
        with pytest.raises(ValueError, match="sample_weight is zero for every row"):
            fitted.score(BLOCKS, LABELS, np.zeros(N))


@pytest.mark.parametrize("C", [1e-6, 1e-4])
def test_classes_of_one_weight_and_a_small_C(C):
    """All rows are within the margin, and R has no slope in b but for rounding: planes still prove a bound."""
    model = LinearSVC(C=C, class_weight="balanced", solver="batched").fit([(X[:201], Y[:201])])
    alone = LinearSVC(C=C, class_weight="balanced", tol=1e-5).fit(X[:201], Y[:201])
    assert model.gap_ <= 1e-3
    assert model.lower_bound_ <= alone.objective_ and alone.lower_bound_ <= model.objective_


def test_a_model_of_vectors_in_a_parquet_file_can_be_stored(tmp_path):
    pa, files = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "vectors.parquet"
    files.write_table(pa.table({"v": pa.array(list(X)), "t": Y}), path)
    model = LinearSVC(C=0.1).fit(parquet(path, label="t"))
    assert not hasattr(model, "feature_names_in_") and model.n_features_in_ == 3
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(parquet(path, label="t")), model.predict(X))
    assert again.score(parquet(path, label="t")) == model.score(X, Y)


def test_masked_values_and_columns_that_appear_twice():
    with pytest.raises(DataError, match="part 0: some values are masked"):
        LinearSVC().fit(da.ma.masked_greater(BLOCKS, 1.0), LABELS)
    frame = pd.DataFrame(X, columns=["a", "b", "a"])
    with pytest.raises(DataError, match="the column 'a' appears twice"):
        LinearSVC().fit(dd.from_pandas(frame, npartitions=2), dd.from_pandas(pd.Series(Y), npartitions=2))


def test_scores_of_parts_of_which_some_have_weights():
    model, parts = LinearSVC(C=0.1).fit(X, Y), [(X[:50], Y[:50]), (X[50:], Y[50:], WEIGHTS[50:])]
    for order, name in ((parts, "part 0"), (parts[::-1], "part 1")):
        with pytest.raises(DataError, match=f"{name}: there are no weights, which other parts have"):
            model.score([dask.delayed(part) for part in order])
