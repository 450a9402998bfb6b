"""What a notebook shows of an estimator."""

import re

import numpy as np
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cutsvm import KernelSVC, LinearSVC, LinearSVCCV, LinearSVR, RankingSVM


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, (X[:, 0] + 0.5 * rng.normal(size=60) > 0).astype(int)


@pytest.mark.parametrize("estimator", [LinearSVC(), LinearSVR(), LinearSVCCV(Cs=3, cv=2), KernelSVC()], ids=repr)
def test_the_certificate_is_below_the_box(estimator, data):
    before = estimator._repr_html_()
    assert "cutsvm-certificate" not in before and type(estimator).__name__ in before
    estimator.fit(*data)
    shown = estimator._repr_html_()
    cells = dict(re.findall(r"<th[^>]*>([^<]*)</th><td[^>]*>([^<]*)</td>", shown[shown.index("cutsvm-certificate") :]))
    assert list(cells) == ["objective", "lower bound", "gap", "ended"]
    assert float(cells["objective"]) == pytest.approx(estimator.objective_, rel=1e-5)
    assert float(cells["lower bound"]) == pytest.approx(estimator.lower_bound_, rel=1e-5)
    assert cells["gap"].startswith(f"{estimator.gap_:.2g}: within") and cells["ended"] == estimator.status_.value
    assert estimator._repr_mimebundle_()["text/html"].endswith(shown[shown.index('<table class="cutsvm') :])


def test_text_where_text_is_wanted(data):
    model = LinearSVC().fit(*data)
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_") and list(model._repr_mimebundle_()) == ["text/plain"]


def test_models_without_a_proof(data):
    model = KernelSVC(solver="sgd", epochs=1, certify=False).fit(*data)
    assert ">nan<" in model._repr_html_()


def test_pipelines_show_their_own_box(data):
    shown = make_pipeline(StandardScaler(), LinearSVC()).fit(*data)._repr_html_()
    assert "LinearSVC" in shown and "cutsvm-certificate" not in shown


def test_rows_of_queries(data):
    X, y = data
    assert "cutsvm-certificate" in RankingSVM().fit(X, y, qid=np.repeat(np.arange(6), 10))._repr_html_()
