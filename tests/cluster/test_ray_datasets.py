"""Ray Datasets: fits, predictions and scores, where Ray is installed."""

from __future__ import annotations

import numpy as np
import pytest

from cutsvm import LinearSVC
from cutsvm._utils.errors import DataError
from cutsvm.cluster.grains import LayoutSettings
from cutsvm.cluster.local import Local
from cutsvm.cluster.open import OpenSettings, is_collection, open_parts
from tests.support.collections import add, facts_bits, rows_of
from tests.support.ray_and_spark import ray_session

pytest.importorskip("ray")
pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

N = 600
SMALL = OpenSettings(layout=LayoutSettings(fewest_rows=64, least=4))
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4))
Y, WEIGHTS = (X[:, 0] + 0.2 * RNG.normal(size=N) > 0).astype(int), RNG.random(N)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(label=Y, sample_weight=WEIGHTS)
CUTS = [(0, 100), (100, 100), (100, 130), (130, N)]


@pytest.fixture(scope="module")
def ray():
    with ray_session() as session:
        yield session


def dataset(ray, frame=FRAME):
    return ray.data.from_arrow([pa.Table.from_pandas(frame.iloc[a:b]) for a, b in CUTS])


@pytest.mark.parametrize("hold", [True, False])
def test_parts(ray, hold):
    expected = open_parts(X, Y, WEIGHTS, executor=Local(1), settings=SMALL)
    data = dataset(ray)
    assert is_collection(data)
    parts = open_parts(data, settings=OpenSettings(layout=SMALL.layout, hold=hold))
    assert facts_bits(parts.facts) == facts_bits(expected.facts)
    assert parts.facts.feature_names == ("a", "b", "c", "d")
    assert parts.fold(rows_of, add) == N


def test_tensors_and_pandas_blocks(ray):
    expected = open_parts(X, Y, executor=Local(1), settings=SMALL).facts
    tensors = ray.data.from_items([{"x": X[k], "label": int(Y[k])} for k in range(N)], override_num_blocks=3)
    assert open_parts(tensors, settings=SMALL).facts.fingerprints == expected.fingerprints
    frames = ray.data.from_pandas([FRAME.drop(columns="sample_weight").iloc[a:b] for a, b in CUTS])
    assert open_parts(frames, "label", settings=SMALL).facts.fingerprints == expected.fingerprints


def test_errors(ray):
    with pytest.raises(DataError, match="the Dataset: column 'city' holds text, expected numbers; leave it out"):
        open_parts(dataset(ray, FRAME.assign(city="x")))
    worse = FRAME.copy()
    worse.loc[140, "c"] = np.nan
    with pytest.raises(DataError, match=r"block \d: row 10, column 'c': expected a finite number, found nan"):
        open_parts(dataset(ray, worse), settings=SMALL)
    with pytest.raises(DataError, match="y: expected the name of a column of the Dataset, got ndarray"):
        open_parts(dataset(ray), Y)


def test_fit_predict_and_score(ray):
    data = dataset(ray)
    model = LinearSVC().fit(data)
    arrays = LinearSVC().fit(X, Y, WEIGHTS)
    assert model.objective_ == pytest.approx(arrays.objective_, rel=2e-3)
    found = model.predict(data)
    assert isinstance(found, ray.data.Dataset)
    rows = found.to_pandas()
    assert rows.columns.tolist() == [*FRAME.columns, "prediction"]
    np.testing.assert_array_equal(rows["a"], X[:, 0])  # the order is kept
    np.testing.assert_array_equal(rows["prediction"], model.predict(FRAME[list("abcd")]))
    scores = model.decision_function(data).to_pandas()["decision_function"]
    np.testing.assert_array_equal(scores, model.decision_function(FRAME[list("abcd")]))
    assert model.score(data) == pytest.approx(model.score(FRAME[list("abcd")], Y, WEIGHTS), rel=1e-14)
