"""`cutsvm` alone, completion of shells, class weights of text labels."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import pytest

from cutsvm import load_model
from tests.support.cli import Run


def test_alone_it_shows_help_with_examples(run: Run) -> None:
    code, out, err = run()
    assert (code, err) == (0, "") and out == run("--help").out
    assert "cutsvm train -c 10 train.svm" in out and len(out.splitlines()) < 40


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion(run: Run, shell: str) -> None:
    code, out, err = run("completion", shell)
    assert (code, err) == (0, "")
    assert all(word in out for word in ("predict", "--multi-class", "crammer_singer"))


def test_completion_in_bash(run: Run, tmp_path: Path) -> None:
    """The words that bash offers."""
    script, data = tmp_path / "cutsvm.bash", tmp_path / "train.svm"
    script.write_text(run("completion", "bash").out)
    data.write_text("")
    offered = {}
    for words in (["cutsvm", "pre"], ["cutsvm", "train", "--task", "ran"], ["cutsvm", "train", f"{tmp_path}/tr"]):
        typed = " ".join(f"'{word}'" for word in words)
        asked = (
            f"source {script}; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _shtab_cutsvm; echo ${{COMPREPLY[@]}}"
        )
        done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=False)
        offered[words[-1]] = done.stdout.split()
    assert offered == {"pre": ["predict"], "ran": ["rank"], f"{tmp_path}/tr": [str(data)]}


def test_completion_without_shtab(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    code, out, err = run("completion", "bash")
    assert (code, out) == (1, "") and "pip install 'cutsvm[completion]'" in err


def test_class_weights_of_text_labels(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.csv"
    path.write_text("y,a\n" + "yes,1\nno,2\nyes,1.5\nno,1.2\n1,7\n1,8\n")
    assert run("train", "-q", "-wyes", 2, "-w1", 3, path, tmp_path / "m").code == 0
    assert load_model(tmp_path / "m").estimator.class_weight == {"yes": 2.0, "1": 3.0}
    code, _, err = run("train", "-q", "-wYes", 2, path, tmp_path / "m")
    assert code == 2 and "-wYes: there is no class 'Yes'; the data have '1', 'no', 'yes'" in err
