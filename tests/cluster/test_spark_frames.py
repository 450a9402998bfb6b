"""Spark DataFrames: fits, predictions and scores, where Spark is installed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from cutsvm import LinearSVC
from cutsvm._utils.errors import DataError
from cutsvm.cluster.grains import LayoutSettings
from cutsvm.cluster.local import Local
from cutsvm.cluster.open import OpenSettings, is_collection, open_parts
from tests.support.collections import add, facts_bits, rows_of
from tests.support.ray_and_spark import spark_session

pytest.importorskip("pyspark")
pd = pytest.importorskip("pandas")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

N = 300
SMALL = OpenSettings(layout=LayoutSettings(fewest_rows=64, least=2))
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y, WEIGHTS = np.where(X[:, 0] + 0.2 * RNG.normal(size=N) > 0, "up", "down"), RNG.random(N)
FRAME = pd.DataFrame(X, columns=list("abc")).assign(label=Y, sample_weight=WEIGHTS)


@pytest.fixture(scope="module")
def spark():
    with spark_session() as session:
        yield session


@pytest.fixture(scope="module")
def frame(spark):
    return spark.createDataFrame(FRAME)


@pytest.mark.parametrize("hold", [True, False])
def test_parts(frame, hold):
    expected = open_parts(X, Y, WEIGHTS, executor=Local(1), settings=SMALL)
    assert is_collection(frame)
    parts = open_parts(frame, settings=OpenSettings(layout=SMALL.layout, hold=hold))
    assert facts_bits(parts.facts) == facts_bits(expected.facts)
    assert parts.facts.feature_names == ("a", "b", "c")
    assert parts.fold(rows_of, add) == N


def test_vectors(spark):
    from pyspark.ml.linalg import Vectors

    matrix = sparse.random(60, 20, 0.2, format="csr", random_state=0)
    rows = [(k, float(k % 2), Vectors.dense(row.toarray()[0])) for k, row in enumerate(matrix)]
    dense = open_parts(spark.createDataFrame(rows, ["id", "label", "features"]).coalesce(1), settings=SMALL).facts
    assert not dense.sparse and dense.d == 20
    expected = open_parts(matrix, np.arange(60) % 2, executor=Local(1), settings=SMALL).facts
    assert dense.fingerprints == expected.fingerprints
    for k, row in enumerate(matrix):
        if k % 3:
            rows[k] = (*rows[k][:2], Vectors.sparse(20, row.indices.tolist(), row.data.tolist()))
    data = spark.createDataFrame(rows, ["id", "label", "features"]).coalesce(1)
    mixed = open_parts(data, settings=SMALL).facts
    assert mixed.sparse and mixed.fingerprints == expected.fingerprints
    model = LinearSVC().fit(data)
    found = np.array([row.prediction for row in model.predict(data).select("prediction").collect()])
    np.testing.assert_array_equal(found, model.predict(matrix))


def test_errors(frame):
    from pyspark.sql import functions

    with pytest.raises(DataError, match="the DataFrame: column 'city' holds text, expected numbers; leave it out"):
        open_parts(frame.withColumn("city", functions.lit("x")))
    worse = frame.withColumn("b", functions.when(functions.col("a") > 1.0, None).otherwise(functions.col("b")))
    with pytest.raises(DataError, match=r"partition \d: row \d+, column 'b': expected a finite number, found nan"):
        open_parts(worse, settings=SMALL)


def test_fit_predict_and_score(frame):
    model = LinearSVC().fit(frame)
    arrays = LinearSVC().fit(X, Y, WEIGHTS)
    assert model.objective_ == pytest.approx(arrays.objective_, rel=2e-3)
    found = model.predict(frame)
    assert found.columns == [*FRAME.columns, "prediction"]
    rows = found.collect()
    np.testing.assert_array_equal([row.a for row in rows], X[:, 0])
    np.testing.assert_array_equal([row.prediction for row in rows], model.predict(FRAME[list("abc")]))
    scores = [row.decision_function for row in model.decision_function(frame).collect()]
    np.testing.assert_array_equal(scores, model.decision_function(FRAME[list("abc")]))
    assert model.score(frame) == pytest.approx(model.score(FRAME[list("abc")], Y, WEIGHTS), rel=1e-14)
