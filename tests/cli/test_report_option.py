"""`cutsvm train --report`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support.cli import Run, blobs, write_svmlight

pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the plots: they take a second or two, and tests/display/report/ checks them."""
    from cutsvm.display.report.markup import Markup

    monkeypatch.setattr("cutsvm.display.report.pictures._svg", lambda picture: Markup("<svg></svg>"))


@pytest.mark.parametrize("task", ["classify", "rank", "roc", "ordinal", "kernel"])
def test_every_task(run: Run, binary: Path, task: str) -> None:
    target = binary.parent / "r.html"
    code, out, err = run("train", "--task", task, "--report", target, binary)
    assert code == 0 and f"report: {target}" in err and "model:" in out
    page = target.read_text(encoding="utf-8")
    assert f"cutsvm train --task {task} --report {target} {binary}" in page
    assert "Measured on the training rows" in page and "<svg" in page
    assert "binary.svm.model" in page and "120" in page


def test_features_are_named_by_index(run: Run, tmp_path: Path) -> None:
    X, y = blobs([-1, 1], width=2)
    for first in (0, 1):
        data = write_svmlight(tmp_path / f"from{first}.svm", X, y, first)
        assert run("train", "--report", tmp_path / "r.html", data).code == 0
        page = (tmp_path / "r.html").read_text(encoding="utf-8")
        for index in (first, first + 1):
            assert f'<th scope="row">{index}</th><td class="number">' in page


def test_json_and_quiet(run: Run, binary: Path) -> None:
    target = binary.parent / "r.html"
    code, out, err = run("train", "--json", "-q", "--report", target, binary)
    assert (code, err) == (0, "") and json.loads(out)["report"] == str(target)
    assert "report" not in json.loads(run("train", "--json", "-q", binary).out)


def test_file_names_are_escaped(run: Run, tmp_path: Path) -> None:
    data = write_svmlight(tmp_path / "<script>'&.svm", *blobs([1, 2, 5]))
    assert run("train", "--report", tmp_path / "<b>.html", data).code == 0
    page = (tmp_path / "<b>.html").read_text(encoding="utf-8")
    assert "<script" not in page and "<b>" not in page and "&lt;script&gt;" in page


def test_old_report_is_overwritten(run: Run, binary: Path) -> None:
    target = binary.parent / "r.html"
    target.write_text("old")
    assert run("train", "--report", target, binary).code == 0
    assert "old" != target.read_text(encoding="utf-8")
    assert sorted(path.name for path in binary.parent.iterdir()) == ["binary.svm", "binary.svm.model", "r.html"]


def test_unwritable_report(run: Run, binary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import cutsvm.io.files
    import cutsvm.io.models.model_file  # it has the real one

    def full(path: object, pieces: object) -> None:
        raise OSError(28, "No space left on device", str(path))

    target = binary.parent / "r.html"
    monkeypatch.setattr(cutsvm.io.files, "write_atomically", full)
    code, _, err = run("train", "--report", target, binary)
    assert code == 1 and f"no report was written: {target}: No space left on device" in err
    assert (binary.parent / "binary.svm.model").exists() and not target.exists()


def test_without_matplotlib(run: Run, binary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    code, _, err = run("train", "--report", binary.parent / "r.html", binary)
    assert code == 2 and "--report needs matplotlib: pip install 'cutsvm[plot]'" in err


def test_report_of_a_store(run: Run, tmp_path: Path) -> None:
    data = write_svmlight(tmp_path / "d.svm", *blobs([-1, 1], rows=400))
    target = tmp_path / "r.html"
    code, _, err = run("train", "--memory", "1GB", "--report", target, data)
    assert code == 0, err
    page = target.read_text(encoding="utf-8")
    assert "400" in page and ("stayed on disk" in page or "Confusion matrix" in page)


def test_report_of_a_table(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    X, y = blobs([-1, 1])
    names = np.array(["spam", "ham"])[(y > 0).astype(int)]
    lines = ["kind,a<b,c", *(f"{name},{row[0]},{row[1]}" for name, row in zip(names, X, strict=True))]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    code, _, err = run("train", "--label", "kind", "--report", tmp_path / "r.html", tmp_path / "t.csv")
    assert code == 0, err
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "a&lt;b" in page and "a<b" not in page and "ham" in page
