"""`cutsvm check`, `info`, `demo`, `--help`, `--version`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cutsvm import LinearSVC, __version__, save_model
from cutsvm.cli import demo
from cutsvm.cli.chart import gap_chart
from cutsvm.cli.messages import CommandError, certificate
from tests.support.cli import Run, blobs


def test_check(run: Run, binary: Path, tmp_path: Path) -> None:
    code, out, err = run("check", binary)
    assert (code, err) == (0, "") and "120" in out
    assert json.loads(run("check", "--json", binary).out)["rows"] == 120
    bad = tmp_path / "bad"
    bad.write_text("1 1:1\nx 1:1\n-1 2:2\n")
    code, out, _ = run("check", bad)
    assert code == 2 and f"{bad}:2: " in out
    code, out, _ = run("check", "--json", bad)
    assert code == 2 and json.loads(out)["n_bad_lines"] == 1
    bad.write_text("")
    assert run("check", bad).code == 2


def test_text_query_ids(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_text("1 qid:cats 1:1\n-1 qid:cats 1:-1\n1 qid:3 1:2\n")
    code, out, err = run("check", data)
    assert (code, err) == (0, "") and "queries      2\n" in out
    assert run("train", "-q", "--n-jobs", 1, data).code == 0


def test_info_of_our_model(run: Run, binary: Path) -> None:
    run("train", "-c", 2, "-w1", 3, "-B", "--n-jobs", 1, binary)
    code, out, err = run("info", f"{binary}.model")
    assert (code, err) == (0, "")
    table = dict(line.split("  ", 1) for line in out.splitlines())
    table = {key.strip(): value.strip() for key, value in table.items()}
    assert table["classes"] == "-1, 1"
    assert table["features"] == "5, counted from 1"
    assert table["C"] == "2" and table["class weight"] == "{1: 3.0}"
    assert table["intercept"].endswith("(regularised)")
    assert table["certificate"].startswith("within 0.")
    assert __version__ in table["format"]
    facts = json.loads(run("info", "--json", f"{binary}.model").out)
    assert facts["classes"] == [-1, 1] and facts["features"] == 5 and facts["converged"] is True
    assert facts["zero_based"] is False and facts["C"] == 2.0


def test_info_of_other_models(run: Run, binary: Path, tmp_path: Path) -> None:
    run("train", "-B", -1, "--format", "liblinear", "--n-jobs", 1, binary)
    out = run("info", f"{binary}.model").out
    assert "liblinear" in out and "none" in out and "certificate" not in out
    pandas = pytest.importorskip("pandas")
    X, y = blobs([0, 1, 2])
    frame = pandas.DataFrame(X, columns=["a", "b", "c\x1b[31m", "d", "e"])
    save_model(LinearSVC(max_iter=10**4).fit(frame, y.astype(int)), tmp_path / "m")
    out = run("info", tmp_path / "m").out
    assert "'a', 'b', 'c\\x1b[31m'" in out and "not trained from a file" in out
    assert json.loads(run("info", "--json", tmp_path / "m").out)["feature_names"][0] == "a"


def test_help_and_version(run: Run) -> None:
    assert run("--version") == (0, f"cutsvm {__version__}\n", "")
    for words in (
        ["--help"],
        ["train", "--help"],
        ["predict", "-h"],
        ["check", "-h"],
        ["info", "-h"],
        ["demo", "-h"],
    ):
        code, out, err = run(*words)
        assert (code, err) == (0, "") and out.startswith("usage: cutsvm")
    assert "examples:" in run("train", "--help").out


@pytest.mark.parametrize("compare", [True, False])
def test_demo(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compare: bool) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("demo", "--rows", 500, *([] if compare else ["--no-compare"]))
    assert code == 0
    assert "certified: within 0." in out and "<= best possible <=" in out
    assert ("scikit-learn LinearSVC" in out) == compare
    assert "Picture: cutsvm-demo.png" in out
    assert (tmp_path / "cutsvm-demo.png").read_bytes().startswith(b"\x89PNG")


def test_demo_without_matplotlib_or_write_access(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    history = [{"seconds": 0.1, "primal": 2.0, "lower": 1.0, "gap": 0.5, "tol": 1e-3}]
    with pytest.raises(CommandError, match="cannot write"):
        demo.draw(history, str(tmp_path / "none" / "x.png"))
    monkeypatch.setattr(demo.importlib.util, "find_spec", lambda _: None)
    assert "pip install" in demo.draw(history, "x.png")


def test_demo_data_are_reproducible() -> None:
    (X, y), (again, _) = demo.make_data(1000), demo.make_data(1000)
    np.testing.assert_array_equal(X, again)
    assert X.dtype == np.float32 and set(y.tolist()) == {-1, 1}


def test_chart() -> None:
    history = [{"seconds": k / 10, "gap": 10.0**-k, "tol": 1e-3} for k in range(4)]
    lines = gap_chart(history, width=30, height=6)
    assert lines[0].startswith("  1e+00 |█") and lines[-1].endswith("0.30 s")
    assert all(len(line) <= 39 for line in lines)
    heights = [sum(line[9 + column] != " " for line in lines[:6]) for column in range(30)]
    assert heights == sorted(heights, reverse=True) and heights[0] == 6 and heights[-1] == 0
    plain = gap_chart(history, width=30, height=6, encoding="ascii")
    assert "".join(plain).isascii() and "#" in plain[0]
    assert gap_chart([{"seconds": 0.0, "gap": 0.0, "tol": 1.0}], encoding=None)


def test_certificate_message() -> None:
    assert certificate(8e-4, 1e-3) == "within 0.08 % of the best possible objective (gap 8.0e-04, tol 1e-03)"
    assert certificate(0.5, 1e-3).startswith("within 100 %")
    assert certificate(0.26, None) == "within 35 % of the best possible objective (gap 2.6e-01)"
    assert "nothing is proven yet" in certificate(1.0, 1e-3)
    assert "nothing is proven yet" in certificate(float("nan"), 1e-3)
