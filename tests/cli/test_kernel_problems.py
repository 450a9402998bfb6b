"""`cutsvm train --task kernel-regress` and `kernel-oneclass`, with predict and info."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cutsvm import KernelOneClassSVM, KernelSVR, load_model, open_dataset
from tests.support.cli import Run

TASKS = {
    "kernel-regress": (["-c", 5, "-p", 0.2, "--gamma", 0.5], KernelSVR(5.0, epsilon=0.2, gamma=0.5)),
    "kernel-oneclass": (["--nu", 0.2, "--gamma", 0.5], KernelOneClassSVM(nu=0.2, gamma=0.5)),
}


@pytest.mark.parametrize("task", TASKS)
def test_same_model_as_the_estimator(run: Run, three: Path, tmp_path: Path, task: str) -> None:
    words, estimator = TASKS[task]
    code, out, _ = run("train", "--task", task, *words, three, tmp_path / "model")
    assert code == 0 and out.startswith("certified: within")
    rows: Any = open_dataset(three)
    known = estimator.fit(rows.X, rows.y)
    saved = load_model(tmp_path / "model")
    assert saved.task == task and saved.estimator.get_params() == known.get_params()
    np.testing.assert_array_equal(saved.estimator.predict(rows.X), known.predict(rows.X))
    assert run("predict", three, tmp_path / "model", tmp_path / "out").code == 0
    np.testing.assert_allclose(np.loadtxt(tmp_path / "out"), known.predict(rows.X), rtol=1e-12)
    code, out, _ = run("info", tmp_path / "model")
    assert code == 0 and f"{len(known.support_)} vectors" in out and f"kernel       {known.kernel}" in out


@pytest.mark.parametrize("task", TASKS)
def test_checkpoint(run: Run, three: Path, tmp_path: Path, task: str) -> None:
    """A command that rounding errors have ended goes on; the file is for the same command only."""
    words, _ = TASKS[task]
    own = ["--checkpoint", tmp_path / "ck", three, tmp_path / "model"]
    code, _, err = run("train", "--task", task, *words, "-e", 1e-17, *own)
    assert code == 0 and "rounding errors" in err and (tmp_path / "ck").exists()
    code, out, err = run("train", "--task", task, *words, "--kernel", "poly", *own)
    assert code == 2 and "a checkpoint of another fit: kernel rbf there, poly here" in err
    code, out, err = run("train", "--task", task, *words, *own)
    assert code == 0 and "going on from" in err and out.startswith("certified: within")
    assert not (tmp_path / "ck").exists()


@pytest.mark.parametrize(
    "words, message",
    [
        (["kernel-oneclass", "-c", 1], "-c applies to --task"),
        (["kernel-oneclass", "--nu", 2], "nu=2"),
        (
            ["kernel-regress", "--solver", "sgd"],
            "--solver sgd is not available for --task kernel-regress: expected auto",
        ),
        (["kernel-regress", "--epochs", 3], "--epochs applies to --task kernel, not to kernel-regress"),
        (["kernel-regress", "--kernel", "linear", "--coef0", 1], "--coef0 applies to --kernel poly and sigmoid"),
    ],
    ids=str,
)
def test_bad_usage(run: Run, three: Path, words: list[Any], message: str) -> None:
    code, out, err = run("train", "--task", *words, three)
    assert (code, out) == (2, "") and message in err
