"""`cutsvm path`: the table, the curve, the chosen C, invalid options."""

import json

import numpy as np
import pytest

from cutsvm import convert, linear_path, load_model
from cutsvm.cli.chart import bar_chart
from tests.support.cli import blobs, write_svmlight


def test_table_and_curve(run, binary):
    done = run("path", binary, "--Cs", "1e-3:10:5")
    assert done.code == 0
    rows = [line.split() for line in done.out.splitlines()[1:6]]
    assert [float(row[0]) for row in rows] == [0.001, 0.01, 0.1, 1.0, 10.0]
    assert all(float(row[1]) <= 1e-3 for row in rows)
    assert "|w|" in done.out and "5 C: every gap at most" in done.out and "best" not in done.out


def test_cross_validation_chooses_C_and_saves_the_model(run, binary, tmp_path):
    target = tmp_path / "best.model"
    done = run("path", binary, "--Cs", "0.01,0.1,1", "-v", 4, "--model", target)
    assert done.code == 0 and "accuracy" in done.out and "5 folds" not in done.out
    (marked,) = [line for line in done.out.splitlines() if line.startswith("*")]
    assert f"best: C = {float(marked.split()[1]):.6g}" in done.out
    assert load_model(target).estimator.C == pytest.approx(float(marked.split()[1]))


def test_json(run, three):
    X, y = blobs([1, 2, 5])
    done = run("path", three, "--Cs", "0.1,1", "-v", 3, "--json", "-B", "--scoring", "f1_macro")
    facts = json.loads(done.out)
    assert facts["Cs"] == [0.1, 1.0] and facts["C"] in facts["Cs"]
    assert np.shape(facts["scores"]) == np.shape(facts["fold_gaps"]) == (3, 2)
    same = linear_path(X, y, Cs=[0.1, 1.0], intercept="regularized")
    assert facts["objective"] == pytest.approx([model.objective_ for model in same], rel=2e-3)
    assert max(facts["gap"]) <= 1e-3 and all(facts["converged"])


def test_ranking(run, tmp_path):
    X, y = blobs([1, 2, 3])
    lines = write_svmlight(tmp_path / "plain.svm", X, y).read_text().splitlines()
    file = tmp_path / "rank.svm"
    file.write_text("".join(line.replace(" ", f" qid:{k // 12} ", 1) + "\n" for k, line in enumerate(lines)))
    done = run("path", "--task", "rank", file, "--Cs", "0.1,1,10", "-v", 5)
    assert done.code == 0 and "pairs in order" in done.out and "5 folds" in done.out


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["png", "svg"])
def test_picture(run, binary, tmp_path, ending):
    pytest.importorskip("matplotlib")
    target = tmp_path / f"path.{ending}"
    assert run("path", binary, "--Cs", "3", "-q", "--plot", target, *(["-v", "3"] if ending == "png" else [])).out == ""
    assert target.stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--Cs", "0"], "--Cs: expected LOW:HIGH:N, numbers above 0"),
        (["--Cs", "1:x:3"], "--Cs: expected LOW:HIGH:N, numbers above 0 as 0.1,1,10, or how many; got 'x'"),
        (["--Cs", "1:2:1"], "--Cs: expected LOW:HIGH:N with N at least 2"),
        (["--Cs", "2:1:3"], "--Cs: expected LOW below HIGH"),
        (["--Cs", "1,1"], "--Cs: expected each C once, in rising order"),
        (["--Cs", "1,nan"], "--Cs: expected LOW:HIGH:N"),
        (["--scoring", "f1"], "--scoring is the score of -v FOLDS"),
        (["-v", "3", "--scoring", "nonsense"], "scoring='nonsense': scikit-learn has no scorer of this name"),
        (["--model", "x"], "--model writes the model with the best C, which -v FOLDS finds"),
        (["--plot", "x.txt"], "--plot x.txt: expected a name that ends in .png, .svg or .pdf"),
        (["--plot", "nowhere/x.png"], "there is no folder"),
        (["--task", "roc"], "invalid choice"),
        (["-v", "1"], "expected a whole number, 2 or more"),
        (["-v", "300"], "n_splits=300"),
        (["--solver", "dcd", "--shards", "3"], "--shards applies to"),
    ],
    ids=str,
)
def test_invalid_options(run, binary, words, message):
    done = run("path", binary, *words)
    assert done.code == 2 and message in done.err and done.out == ""


def test_one_class_and_missing_file(run, tmp_path):
    X, _ = blobs([1, 2])
    done = run("path", write_svmlight(tmp_path / "one.svm", X, np.ones(len(X))))
    assert done.code == 2 and "all labels are 1" in done.err
    assert run("path", tmp_path / "missing.svm").code == 2


def test_max_time_is_reported(run, binary):
    done = run("path", binary, "--Cs", "3", "--max-time", "1e-9")
    assert done.code == 0 and "C are not at tol" in done.err


def test_bar_chart_in_ascii_and_of_one_value():
    lines = bar_chart([1.0, 2.0, float("nan")], ["a", "b", "c"], scale=str, mark=1, encoding="ascii")
    assert any("#" in line for line in lines) and "^ C = b" in "\n".join(lines)
    assert bar_chart([1.0], ["a"], scale=str)[-1].strip() == "a"


@pytest.fixture
def large(tmp_path):
    """A store whose rows come in several blocks, with a file of the same rows."""
    X, y = blobs([-1, 1])
    convert((X, y), tmp_path / "large.store", block_bytes=600)
    return tmp_path / "large.store", write_svmlight(tmp_path / "large.svm", X, y)


@pytest.mark.parametrize("source", [0, 1], ids=["store", "file"])
def test_memory_limit(run, large, tmp_path, source):
    words = ["path", "--Cs", "0.01,0.1,1", "-v", 3, "-e", "1e-6", "--json"]
    here, there = run(*words, large[1]), run(*words, "--memory", "2GB", large[source])
    assert here.code == there.code == 0
    before, after = json.loads(here.out), json.loads(there.out)
    assert after["C"] == before["C"] and after["rows"] == before["rows"]
    assert after["scores"] == before["scores"]  # the folds are the same ones
    assert after["objective"] == pytest.approx(before["objective"], rel=2e-6)
    assert 0 < after["passes"] < after["passes_requested"] and "passes" not in before
    target = tmp_path / "best.model"
    done = run(*words[:-1], "--memory", "2GB", "--model", target, large[source])
    assert "passes over the data for" in done.out and "of the fits'\n" in done.out
    assert load_model(target).estimator.classes_.tolist() == [-1, 1]


def test_memory_limit_without_folds(run, large):
    words = ["path", "--Cs", "0.01,1", "--json"]
    here, there = json.loads(run(*words, large[1]).out), json.loads(run(*words, "--memory", "2GB", large[0]).out)
    assert there["objective"] == pytest.approx(here["objective"], rel=2e-3)


@pytest.mark.parametrize("task", ["classify", "regress"])
def test_train_cross_validates_under_a_memory_limit(run, large, task):
    words = ["train", "--task", task, "-c", "0.1", "-v", 3, "-e", "1e-6"]
    both = run(*words, large[1]), run(*words, "--memory", "2GB", large[0])
    there = both[1]
    assert there.code == 0 and "passes over the data for" in there.err and "fold 3 of 3: " in there.err
    numbers = [[float(line.split("=")[1].split()[0].rstrip("%")) for line in done.out.splitlines()] for done in both]
    assert numbers[1] == pytest.approx(numbers[0], rel=1e-3)
    facts = json.loads(run(*words, "--memory", "2GB", "--json", large[0]).out)
    assert facts["passes"] < facts["passes_requested"] and len(facts["gaps"]) == 3


def test_ranking_says_why_not(run, tmp_path):
    path = tmp_path / "rank.svm"
    path.write_text("".join(f"{k % 3} qid:{k // 4} 1:{k % 5} 2:1\n" for k in range(40)))
    done = run("path", "--task", "rank", "-v", 2, "--memory", "2GB", path)
    assert done.code == 2 and "leave one of them out" in done.err
