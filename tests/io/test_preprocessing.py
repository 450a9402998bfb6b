"""Columns of tables become the numbers that scikit-learn's ColumnTransformer makes of them."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

import cutsvm
from cutsvm import DataError, LinearSVC, open_dataset
from cutsvm.io.columns import ColumnSpec
from cutsvm.io.open import as_source
from cutsvm.io.preprocessing import Preprocessing, TableColumn

pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")


@st.composite
def frames(draw):
    """A frame with numbers, whole numbers, a date and a column of texts, with missing values."""
    n, seed = draw(st.integers(2, 40)), draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    holes = draw(st.floats(0.0, 0.6))
    numbers = rng.normal(size=n) * 10.0 ** rng.integers(-3, 6) + rng.normal() * 100
    texts = np.array([f"t{k}" for k in range(draw(st.integers(1, 12)))])
    frame = pd.DataFrame(
        {
            "number": np.where(rng.random(n) < holes, np.nan, numbers),
            "whole": rng.integers(-5, 5, n),
            "day": pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 10**7, n), unit="s"),
            "text": pd.Series(rng.choice(texts, n), dtype=object).mask(rng.random(n) < holes),
        }
    )
    if frame["number"].isna().all():
        frame.loc[0, "number"] = 1.5
    frame.loc[1, "text"] = "t0"
    frame["day"] = frame["day"].mask(rng.random(n) < holes / 2)
    if frame["day"].isna().all():
        frame.loc[0, "day"] = pd.Timestamp("2024-02-03")
    return frame.assign(label=rng.integers(0, 2, n))


def as_numbers(frame):
    """The same with days since 1970 in place of the date."""
    days = (frame["day"] - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
    return frame.assign(day=days)


def transformer(missing, scale):
    steps = [SimpleImputer(strategy="mean" if missing == "mean" else "constant", fill_value=0.0)]
    steps += [] if scale == "none" else [StandardScaler() if scale == "standard" else MinMaxScaler()]
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(*steps), ["number", "whole", "day"]),
            ("texts", OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["text"]),
        ]
    )


def dense(X):
    return X.toarray() if hasattr(X, "toarray") else X


@settings(max_examples=12, deadline=None)
@given(frames(), frames(), st.sampled_from(["mean", "zero"]), st.sampled_from(["none", "standard", "minmax"]))
def test_same_as_column_transformer(train, new, missing, scale):
    known = sorted(set(train["text"].dropna()))
    theirs = transformer(missing, scale)
    expected = theirs.fit_transform(as_numbers(train).drop(columns="label"))
    # scikit-learn makes a column of missing texts too, which is the last one.
    width = 3 + len(known)
    data = open_dataset(train, missing=missing, scale=scale)
    assert data.feature_names == ["number", "whole", "day", *(f"text={word}" for word in known)]
    assert_allclose(dense(data.X), expected[:, :width], rtol=1e-12, atol=1e-12)
    spec = ColumnSpec(labels="optional", preprocessing=data.preprocessing)
    (batch,) = as_source(new.drop(columns="label"), spec)
    assert batch.y is None
    expected = theirs.transform(as_numbers(new).drop(columns="label"))
    assert_allclose(dense(batch.X), expected[:, :width], rtol=1e-11, atol=1e-11)


TABLE = pa.table(
    {
        "a": [1.0, None, 3.0, float("nan")],
        "city": ["Rome", None, "Oslo", "Rome"],
        "seen": [True, False, None, True],
        "label": ["yes", "no", "no", "yes"],
    }
)


def test_rules():
    data = open_dataset(TABLE)
    assert data.feature_names == ["a", "city=Oslo", "city=Rome", "seen"]
    expected = [[1, 0, 1, 1], [2, 0, 0, 0], [3, 1, 0, 2 / 3], [2, 0, 1, 1]]
    assert_allclose(dense(data.X), expected)
    assert data.y.tolist() == ["yes", "no", "no", "yes"]
    kept = data.preprocessing
    assert Preprocessing.from_dict(json.loads(json.dumps(kept.to_dict()))) == kept
    new = pa.table({"seen": [None], "city": ["Paris"], "a": pa.nulls(1), "more": ["x"]})
    source = as_source(new, ColumnSpec(labels="optional", preprocessing=kept))
    (batch,) = source
    assert_allclose(dense(batch.X), [[2, 0, 0, 2 / 3]])
    assert source.counts.unseen == {"city": 1} and source.counts.filled == {"a": 1, "seen": 1}
    assert_allclose(dense(kept.apply(new)), dense(batch.X))


def test_refusals():
    for options, says in [
        (
            {"missing": "refuse", "exclude": ["city"]},
            "row 1, column 'a': expected a value.*missing='mean' or 'zero'",
        ),
        ({"categorical": "refuse"}, r"column 'city' holds text, expected numbers; leave it out: exclude=\['city'\]"),
        ({"exclude": "city"}, "exclude='city': expected a list of names"),
        ({"missing": "median"}, "missing='median': expected one of 'mean', 'zero', 'refuse'"),
    ]:
        with pytest.raises(ValueError, match=says):
            open_dataset(TABLE, **options)
    kept = open_dataset(TABLE).preprocessing
    with pytest.raises(DataError, match="there is no column 'city', which the model was trained with"):
        as_source(TABLE.drop_columns(["city"]), ColumnSpec(preprocessing=kept))
    with pytest.raises(DataError, match="column 'a' holds string, expected numbers"):
        list(as_source(TABLE.set_column(0, "a", pa.array(list("wxyz"))), ColumnSpec(preprocessing=kept)))
    with pytest.raises(DataError, match=r"column 'a' holds list<.*exclude="):
        open_dataset(TABLE.set_column(0, "a", pa.array([[1]] * 4)))
    with pytest.raises(DataError, match="row 2, column 'label': expected a value, found none"):
        open_dataset(TABLE.set_column(3, "label", pa.array(["yes", "no", None, "no"])))


def test_too_many_categories(read_with):
    read_with(max_categories=3)
    table = pa.table({"id": list("abcd"), "label": [0, 1, 0, 1]})
    with pytest.raises(DataError, match=r"column 'id' has more than 3 different texts.*exclude=\['id'\]"):
        open_dataset(table)
    assert open_dataset(table.append_column("x", pa.array([1, 2, 3, 4])), exclude=["id"]).shape == (4, 1)


def test_sparse_if_that_is_smaller(tmp_path):
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "a": pa.array(rng.normal(size=500), mask=rng.random(500) < 0.1),
            "word": pa.array(rng.choice([f"w{k}" for k in range(40)], 500), mask=rng.random(500) < 0.1),
            "label": rng.integers(0, 2, 500),
        }
    )
    data, stored = open_dataset(table), cutsvm.convert(table, tmp_path / "store")
    assert data.preprocessing.sparse and hasattr(data.X, "indptr") and stored.store.sparse
    assert_array_equal(data.y, stored.y)
    assert (data.X != stored.X).nnz == 0 and data.X.nnz == 1000 - table["word"].null_count
    assert stored.preprocessing == data.preprocessing and stored.feature_names == data.feature_names
    (batch,) = as_source(stored, ColumnSpec(labels="none", preprocessing=data.preprocessing))
    assert batch.y is None and (batch.X != data.X).nnz == 0
    other = open_dataset(table, scale="standard").preprocessing
    with pytest.raises(DataError, match="were not made as in training"):
        as_source(stored, ColumnSpec(preprocessing=other))


def test_extreme_numbers():
    """Means of huge numbers do not overflow, infinities are named, and a column without values is 0."""
    table = pa.table({"a": [1e308, 1e308, None], "b": pa.nulls(3, pa.float64()), "label": [0, 1, 1]})
    data = open_dataset(table)
    assert_allclose(data.X, [[1e308, 0], [1e308, 0], [1e308, 0]])
    with pytest.raises(DataError, match="column 'a' has values that are too large to be scaled"):
        open_dataset(pa.table({"a": [-1e308, 1e308], "label": [0, 1]}), scale="standard")
    for more in ([1.0, None], [1.0, 2.0]):
        table = pa.table({"a": [float("inf"), *more], "label": [0, 1, 1]})
        with pytest.raises(DataError, match="row 0, column 'a': expected a finite number, found inf"):
            open_dataset(table)


def test_missing_value_in_a_later_batch(read_with, tmp_path):
    """A table of numbers is read once; again if a missing value turns up, and nothing is left of the first time."""
    read_with(table_rows=4)
    table = pa.table({"a": pa.array([1, 2, 3, 4, 5, 6, None, 8], pa.int16()), "label": [0, 1] * 4})
    stored = cutsvm.convert(table, tmp_path / "store")
    assert_allclose(stored.X[:, 0], [1, 2, 3, 4, 5, 6, 29 / 7, 8], rtol=1e-15)
    assert len(list((tmp_path / "store").iterdir())) == 2  # the manifest and one folder
    assert_allclose(open_dataset(table).X, stored.X)
    whole = open_dataset(table.slice(0, 6))
    assert whole.X.dtype == np.float32 and whole.preprocessing.columns[0].fill == 3.5


def test_means_do_not_depend_on_batches(read_with):
    rng = np.random.default_rng(0)
    values = pa.array(rng.normal(size=10_000) * 10.0 ** rng.integers(-9, 9, 10_000), mask=rng.random(10_000) < 0.1)
    table, found = pa.table({"a": values, "label": rng.integers(0, 2, 10_000)}), []
    for rows in (10_000, 4096, 777):
        read_with(table_rows=rows)
        found.append(open_dataset(table, scale="standard").preprocessing)
    assert found[0] == found[1] == found[2]
    numbers = values.drop_null().to_numpy()
    assert_allclose(found[0].columns[0].fill, numbers.mean(), rtol=1e-13)


def test_same_model_as_in_a_pipeline(tmp_path):
    """A store of preprocessed columns trains the model that scikit-learn's ColumnTransformer leads to."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "number": np.where(rng.random(400) < 0.1, np.nan, rng.normal(size=400)),
            "whole": rng.integers(0, 5, 400),
            "day": pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, 400), unit="D"),
            "text": rng.choice([f"t{k}" for k in range(30)], 400),
        }
    )
    y = np.where(frame["number"].fillna(0) + rng.normal(size=400) > 0, "yes", "no")
    theirs = LinearSVC(C=0.1, tol=1e-11).fit(transformer("mean", "standard").fit_transform(as_numbers(frame)), y)
    data = cutsvm.convert(frame.assign(label=y), tmp_path / "store", scale="standard")
    assert data.store.sparse
    ours = LinearSVC(C=0.1, tol=1e-11).fit(data)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-9)
    assert_allclose(ours.objective_, theirs.objective_, rtol=1e-10)


DAMAGE = [
    {"columns": 3},
    {"columns": [{"name": "a"}]},
    {"label": 1},
    {"sparse": "yes"},
    {"columns": [TableColumn("a").__dict__ | {"categories": [], "fill": float("nan")}]},
    {"columns": [TableColumn("a").__dict__ | {"categories": [], "scale": 0.0}]},
    {"columns": [TableColumn("a").__dict__ | {"categories": ["b", "a"], "kind": "text"}]},
    {"columns": [TableColumn("a").__dict__ | {"categories": [], "kind": "picture"}]},
]


@pytest.mark.parametrize("change", DAMAGE)
def test_damaged_preprocessing_is_refused(change):
    good = {"label": "y", "weight": None, "qid": None, "columns": [], "sparse": False}
    assert Preprocessing.from_dict(good).columns == ()
    with pytest.raises(ValueError, match="preprocessing"):
        Preprocessing.from_dict(good | change)
