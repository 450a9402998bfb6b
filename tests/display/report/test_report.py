"""The report of every kind of model: contents, well-formed HTML, no external resources, no scripts."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import cutsvm
from cutsvm import KernelSVC, LinearSVC, LinearSVCCV, OrdinalSVC, RankingSVM, RankingSVMCV, ROCAreaSVC, report
from cutsvm.display.report import reproduce
from cutsvm.display.report.context import Origin, build_context
from cutsvm.display.report.markup import Markup, table, tag, text
from cutsvm.display.report.measures import measure

pytest.importorskip("matplotlib")

EMPTY = {"meta", "link", "br", "hr", "img", "input"}
EVIL = "<script>alert('x')</script>&\"$x_1$\n\x07_b"


class Page(HTMLParser):
    """Fails on tags that do not match; keeps tags, ids, attributes and words."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._see(tag, attrs)
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._see(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    def _see(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.append((tag, name, value or ""))
            if name == "id":
                self.ids.append(value or "")

    @property
    def said(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


def checked(page: str) -> Page:
    """The page, checked to be well-formed, to load nothing and to run nothing."""
    assert page.startswith("<!DOCTYPE html>") and page.rstrip().endswith("</html>")
    parsed = Page(page)
    assert len(parsed.ids) == len(set(parsed.ids))
    assert not re.search(r"https?://", page)
    assert not parsed.tags & {"script", "iframe", "object", "embed", "form", "base"}
    for tag_name, name, value in parsed.attributes:
        assert not name.startswith("on"), (tag_name, name)
        if name in ("src", "href", "xlink:href"):
            assert value.startswith(("#", "data:")), value
        for target in re.findall(r"url\(#([^)]+)\)", value) + ([value[1:]] if value[:1] == "#" else []):
            assert target in parsed.ids, target
    assert "@import" not in page and "@font-face" not in page
    return parsed


@pytest.fixture(scope="module")
def rows() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    return X, X @ [1.0, -2.0, 0.5, 0.0] + 0.5 * rng.normal(size=300)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the plots, which take a second or two, by empty ones."""
    monkeypatch.setattr("cutsvm.display.report.pictures._svg", lambda picture: Markup("<svg></svg>"))


def pictures(parsed: Page) -> list[str]:
    return [name.removeprefix("picture-") for name in parsed.ids if name.startswith("picture-")]


@pytest.mark.slow
def test_two_classes(rows: Any, tmp_path: Path) -> None:
    X, score = rows
    y = np.where(score > 0, "good", "bad")
    model = LinearSVC(C=0.5, solver="ocas").fit(X, y)
    file = tmp_path / "r.html"
    page = report(model, X, y, file=file)
    assert file.read_text(encoding="utf-8") == page
    parsed = checked(page)
    percent = float(f"{100 * model.gap_ / (1 - model.gap_):.2g}")
    assert f"Within {percent:g} % of the best possible objective" in parsed.said
    assert f"{model.objective_:.6g}" in parsed.said and f"{model.lower_bound_:.6g}" in parsed.said
    assert pictures(parsed) == ["seconds", "passes", "time", "margins", "roc", "weights"]
    right = int(np.sum(model.predict(X) == y))
    assert f"({right:,} of 300 rows)" in parsed.said
    assert f"bad ({np.sum(y == 'bad')} rows), good" in parsed.said
    assert "LinearSVC(C=0.5, solver='ocas').fit(X, y)" in parsed.said
    assert cutsvm.__version__ in parsed.said
    assert "x1" in parsed.said


@pytest.mark.usefixtures("quick")
def test_without_rows(rows: Any) -> None:
    X, score = rows
    model = LinearSVC().fit(X, score > 0)
    parsed = checked(report(model))
    assert "nothing was measured" in parsed.said
    assert pictures(parsed)[-1] == "weights" and "margins" not in pictures(parsed)
    parsed = checked(report(model, X))
    assert "nothing was measured" in parsed.said and "300" in parsed.said


@pytest.mark.usefixtures("quick")
def test_callbacks_are_not_in_the_report(rows: Any) -> None:
    X, score = rows
    model = LinearSVC(callbacks=[lambda record: None]).fit(X, score > 0)
    page = report(model)
    assert "callbacks" not in checked(page).said and " at 0x" not in page


@pytest.mark.slow
def test_three_classes(rows: Any) -> None:
    X, score = rows
    y = np.digitize(score, [-1.0, 1.0])
    parsed = checked(report(LinearSVC(multi_class="ovr").fit(X, y), sparse.csr_matrix(X), y))
    assert "Confusion matrix" in parsed.said and "roc" not in pictures(parsed)
    assert {"margins", "weights"} <= set(pictures(parsed))
    assert "nonzeros" in parsed.said


@pytest.mark.usefixtures("quick")
def test_many_classes() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(200) % 20
    X = np.eye(20)[y] + 0.4 * rng.normal(size=(200, 20))
    parsed = checked(report(LinearSVC(C=0.1).fit(X, y), X, np.roll(y, 1)))
    assert "The most frequent errors" in parsed.said and "and 4 more" in parsed.said
    assert "4 more columns are not shown" in parsed.said


@pytest.mark.slow
def test_ranking(rows: Any) -> None:
    X, score = rows
    y, qid = np.digitize(score, [-1.0, 1.0]), np.repeat(np.arange(10), 30)
    model = RankingSVM(C=10.0).fit(X, y, qid=qid)
    parsed = checked(report(model, X, y, qid=qid))
    assert f"{100 * model.score(X, y, qid=qid):.5g} %" in parsed.said and "pairs in order" in parsed.said
    for name, metric in (("NDCG@10", "ndcg@10"), ("MAP", "map")):
        value = model.score(X, y, qid=qid, metric=metric)
        assert name in parsed.said and f"{value:.5g} (mean of 10 queries)" in parsed.said
    assert "fit(X, y, qid=qid)" in parsed.said and "10, 0 of them with one level" in parsed.said
    assert "margins" in pictures(parsed) and "Confusion matrix" not in parsed.said
    parsed = checked(report(model, X[:5], np.ones(5)))
    assert "the rows make no pair" in parsed.said


@pytest.mark.usefixtures("quick")
def test_area_under_the_curve(rows: Any) -> None:
    X, score = rows
    y = score > 1.0
    model = ROCAreaSVC(C=10.0).fit(X, y)
    parsed = checked(report(model, X, y))
    from sklearn.metrics import roc_auc_score

    assert f"{100 * roc_auc_score(y, model.decision_function(X)):.5g} %" in parsed.said
    assert "roc" in pictures(parsed)


@pytest.mark.usefixtures("quick")
def test_levels(rows: Any) -> None:
    X, score = rows
    y = np.array(["low", "mid", "top"])[np.digitize(score, [-1.0, 1.0])]
    model = OrdinalSVC(C=10.0, levels=["low", "mid", "top"]).fit(X, y)
    parsed = checked(report(model, X, y))
    assert "mean absolute error" in parsed.said and f"{100 * model.score(X, y):.5g} %" in parsed.said
    assert "low" in parsed.said and "roc" not in pictures(parsed)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_kernels(rows: Any, kernel: str) -> None:
    X, score = rows
    for y in (score > 0, np.digitize(score, [-1.0, 1.0])):
        model = KernelSVC(kernel=kernel, random_state=0).fit(X, y)
        parsed = checked(report(model, X, y))
        assert "support vectors" in parsed.said and "tol" in parsed.said
        assert ("weights" in pictures(parsed)) == (kernel == "linear")


@pytest.mark.usefixtures("quick")
def test_report_without_a_certificate(rows: Any) -> None:
    X, score = rows
    model = KernelSVC(solver="sgd", certify=False, random_state=0).fit(X, score > 0)
    parsed = checked(report(model, X, score > 0))
    assert "Nothing is proven" in parsed.said and "nan" not in parsed.said


@pytest.mark.usefixtures("quick")
def test_not_converged(rows: Any) -> None:
    from sklearn.exceptions import ConvergenceWarning

    X, score = rows
    with pytest.warns(ConvergenceWarning):
        model = LinearSVC(C=100.0, solver="ocas", max_iter=8).fit(X, score > 0)
    parsed = checked(report(model))
    assert "Stopped early: the limit on iterations was reached" in parsed.said


@pytest.mark.slow
def test_a_chosen_C(rows: Any) -> None:
    X, score = rows
    model = LinearSVCCV([0.01, 0.1, 1.0], cv=3).fit(X, score > 0)
    parsed = checked(report(model, X, score > 0))
    assert "path" in pictures(parsed) and f"{model.C_:.4g}, chosen" in parsed.said
    assert "score in 3 folds" in parsed.said and "LinearSVCCV(Cs=[0.01, 0.1, 1.0], cv=3)" in parsed.said
    with pytest.raises(ValueError, match="refit=False"):
        report(LinearSVCCV([0.1], cv=3, refit=False).fit(X, score > 0))


@pytest.mark.usefixtures("quick")
def test_a_chosen_C_of_ranking(rows: Any) -> None:
    X, score = rows
    ranks = RankingSVMCV([0.1, 1.0], cv=2).fit(X, np.digitize(score, [0.0]), qid=np.repeat(np.arange(10), 30))
    assert "path" in pictures(checked(report(ranks)))


@pytest.mark.usefixtures("quick")
def test_a_model_from_a_file(rows: Any, tmp_path: Path) -> None:
    X, score = rows
    y = (score > 0).astype(int)
    cutsvm.save_model(LinearSVC().fit(X, y), tmp_path / "m")
    parsed = checked(report(cutsvm.load_model(tmp_path / "m").estimator, X, y))
    assert pictures(parsed) == ["margins", "roc", "weights"] and "of the best possible" in parsed.said
    cutsvm.save_model(LinearSVC().fit(X, y), tmp_path / "m", format="liblinear")
    parsed = checked(report(cutsvm.load_model(tmp_path / "m").estimator, X, y))
    assert "Nothing is proven" in parsed.said


@pytest.mark.slow
def test_names_are_escaped(rows: Any) -> None:
    pd = pytest.importorskip("pandas")
    X, score = rows
    frame = pd.DataFrame(X, columns=[EVIL, "$a$", "_hidden", "日本"])
    y = np.where(score > 0, EVIL, "b&amp;")
    model = LinearSVC(class_weight={EVIL: 2.0}).fit(frame, y)
    page = report(model, frame, y, source=f"../{EVIL}/{EVIL}.svm")
    parsed = checked(page)
    assert "<script" not in page.lower() and "\x07" not in page
    assert "alert('x')" in parsed.said and "b&amp;" in parsed.said and "日本" in parsed.said
    three = np.where(score > 1, "</svg><b>", y)
    checked(report(LinearSVC().fit(frame, three), frame, three))
    levels = np.where(score > 0, 2, 1)
    command = f"cutsvm train '{EVIL}'"
    context = build_context(OrdinalSVC().fit(X, levels), origin=Origin(command=command))
    assert context.origin.command == command


@pytest.mark.usefixtures("quick")
def test_from_files(rows: Any, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    X, score = rows
    lines = ["label,first,second", *(f"{s > 0:d},{a},{b}" for (a, b, *_), s in zip(X.tolist(), score, strict=True))]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines))
    model = LinearSVC().fit(path)
    parsed = checked(report(model, path))
    assert "first" in parsed.said and "LinearSVC: rows.csv" in parsed.said
    turned = tmp_path / "turned.csv"
    turned.write_text("\n".join(",".join(np.array(line.split(","))[[2, 0, 1]]) for line in lines))
    same = [measure(build_context(model, source)).confusion.counts.tolist() for source in (path, turned)]
    assert same[0] == same[1]
    turned.write_text(turned.read_text().replace("first", "third"))
    with pytest.raises(ValueError, match="there is no column 'first'"):
        report(model, turned)


@pytest.mark.usefixtures("quick")
def test_invalid_arguments(rows: Any, tmp_path: Path) -> None:
    X, score = rows
    model = LinearSVC().fit(X, score > 0)
    with pytest.raises(ValueError, match="y without X"):
        report(model, y=score)
    with pytest.raises(ValueError, match="expected one label for each of the 300 rows"):
        report(model, X, score[:5] > 0)
    with pytest.raises(ValueError, match="the classes of the model are numbers, and y has text"):
        report(model, X, np.where(score > 0, "a", "b"))
    with pytest.raises(ValueError, match="feature_names has 2 names"):
        report(model, feature_names=["a", "b"])
    with pytest.raises(ValueError, match="not fitted"):
        report(LinearSVC())
    with pytest.raises(ValueError, match="an estimator of cutsvm"):
        report(object())
    old = tmp_path / "r.html"
    old.write_text("old")
    with pytest.raises(ValueError, match="2 names"):
        report(model, feature_names=["a", "b"], file=old)
    assert old.read_text() == "old"


@pytest.mark.usefixtures("quick")
def test_rows_of_unknown_classes(rows: Any) -> None:
    X, score = rows
    y = (score > 0).astype(int)
    model = LinearSVC().fit(X, y)
    other = np.where(score > 1, 7, y)
    parsed = checked(report(model, X, other))
    assert f"{np.sum(other == 7)} rows, counted as errors" in parsed.said
    parsed = checked(report(model, X, np.full(300, 7)))
    assert "(0 of 300 rows)" in parsed.said and "roc" not in pictures(parsed)
    parsed = checked(report(model, X, np.zeros(300)))
    assert "roc" not in pictures(parsed)


@pytest.mark.usefixtures("quick")
def test_no_weights_and_one_pass() -> None:
    X = np.zeros((10, 2))
    model = LinearSVC().fit(X, np.arange(10) % 2)
    parsed = checked(report(model, X, np.arange(10) % 2))
    assert "All weights are 0" in parsed.said


def test_reproducing_call_runs(rows: Any) -> None:
    from sklearn.model_selection import GroupKFold

    X, score = rows
    y = (score > 0).astype(int)
    solver = cutsvm.solvers.OCAS(line_search="tca")
    models = [
        LinearSVC(np.float64(0.5), solver=solver, class_weight={np.int64(1): 2.0}, verbose=0),
        LinearSVCCV(np.array([0.1, 1.0]), cv=3, solver=cutsvm.solvers.Sifting(inner=solver)),
        KernelSVC(solver=cutsvm.kernel_machines.SGD(), certify=False, random_state=0),
        LinearSVCCV([0.1], cv=GroupKFold(2)),
    ]
    for model in models:
        if not isinstance(model.get_params().get("cv"), GroupKFold):
            model.fit(X, y)
        else:
            model.fit(X, y, groups=np.arange(300) % 2)
        words = reproduce.call(build_context(model))
        made = words.replace(".fit(X, y)", "")
        names: dict[str, Any] = {}
        exec(made, names)
        assert str(names["model"].get_params()) == str(
            {name: reproduce.plain(value) for name, value in model.get_params().items()}
        )


def test_markup() -> None:
    assert tag("a", "<", Markup("<b></b>"), 5, href="\"'", aria_label=None) == '<a href="&quot;&#x27;">&lt;<b></b>5</a>'
    assert text("a\n\x00") == "a\n\\x00"
    assert "<td>&amp;</td>" in table([("a", "&")])


@pytest.mark.usefixtures("quick")
def test_pipelines_and_searches(rows: Any) -> None:
    """The model is the last step; it is measured on what the steps before it make of the rows."""
    import pandas as pd
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, score = rows
    X, y = pd.DataFrame(100.0 * X, columns=[f"feature {k}" for k in range(X.shape[1])]), score > 0.0
    pipeline = make_pipeline(StandardScaler(), LinearSVC())
    search = GridSearchCV(pipeline, {"linearsvc__C": [0.01, 1.0]}, cv=2).fit(X, y)
    page = report(search, X, y)
    parsed = checked(page)
    assert f"{100 * search.score(X, y):.4g} %" in parsed.said and "feature 1" in parsed.said
    assert (
        "chosen by GridSearchCV" in parsed.said
        and f"linearsvc__C = {search.best_params_['linearsvc__C']}" in parsed.said
    )
    assert "steps before it" in parsed.said and "StandardScaler()" in parsed.said and "LinearSVC" in parsed.said
    assert f"{search.best_estimator_[-1].objective_:.6g}" in parsed.said
    assert f"{100 * search.score(X, y):.4g} %" in Page(report(search.best_estimator_, X, y)).said
    assert "nothing was measured" in Page(report(search)).said
    with pytest.raises(ValueError, match="the first step of the pipeline reads no data sets"):
        report(search, "rows.svm")
    with pytest.raises(ValueError, match="or a pipeline or search that ends in one, got StandardScaler"):
        report(make_pipeline(StandardScaler()).fit(X), X, y)
