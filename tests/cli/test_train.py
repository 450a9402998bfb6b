"""`cutsvm train`: options, results, exit codes."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cutsvm import LinearSVC, load_model
from cutsvm.io import files
from cutsvm.solvers import CPA, OCAS, Sifting
from tests.support.cli import Run, blobs, write_svmlight


def test_writes_the_model_beside_the_data(run: Run, binary: Path) -> None:
    code, out, err = run("train", "--n-jobs", 1, binary)
    assert code == 0
    certificate, model = out.splitlines()
    assert certificate.startswith("certified: within 0.") and "tol 1e-03" in certificate
    assert model == f"model: {binary}.model"
    assert "120 rows, 5 features (counted from 1), 600 nonzeros, 2 classes" in err
    saved = load_model(f"{binary}.model")
    X, y = blobs([-1, 1])
    expected = LinearSVC().fit(X, y.astype(int))
    np.testing.assert_allclose(saved.estimator.coef_, expected.coef_, rtol=1e-12)
    np.testing.assert_array_equal(saved.estimator.classes_, [-1, 1])
    assert saved.estimator.classes_.dtype == np.int64
    assert saved.zero_based is False


def test_quiet_and_json(run: Run, binary: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    assert run("train", "-q", "--n-jobs", 1, binary, model) == (0, "", "")
    code, out, err = run("train", "-q", "--json", "--n-jobs", 1, binary, model)
    assert (code, err) == (0, "")
    facts = json.loads(out)
    assert out.count("\n") == 1
    assert facts["model"] == str(model)
    assert facts["data"] == [str(binary)]
    assert (facts["rows"], facts["features"], facts["nonzeros"], facts["classes"]) == (120, 5, 600, [-1, 1])
    assert facts["converged"] is True and facts["gap"] <= facts["tol"] == 1e-3
    assert facts["lower_bound"] <= facts["objective"]
    assert facts["status"] and facts["n_iter"] >= 1 and facts["seconds"] > 0
    assert isinstance(facts["passes"], int) and facts["passes"] >= 1


@pytest.mark.parametrize("option", [("--line-search", "gca"), ("--shards", 4)], ids=str)
def test_model_of_configured_sifting_predicts(run: Run, binary: Path, tmp_path: Path, option: tuple[str, Any]) -> None:
    model = tmp_path / "m"
    assert run("train", "-q", "--n-jobs", 1, "--solver", "sifting", *option, binary, model)[0] == 0
    assert run("predict", "-q", binary, model, tmp_path / "out") == (0, "", "")
    assert len((tmp_path / "out").read_text().split()) == 120


def test_json_keeps_stdout_clean_without_quiet(run: Run, binary: Path) -> None:
    code, out, err = run("train", "--json", "--n-jobs", 1, binary)
    assert code == 0
    json.loads(out)
    assert "rows" in err


class SeenError(Exception):
    """Raised in place of a fit, with the estimator."""


@pytest.fixture
def built(run: Run, binary: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """built("-c", 3) -> the parameters of the estimator that would be fitted"""

    def stop(self: LinearSVC, *_: object) -> None:
        raise SeenError(self)

    monkeypatch.setattr(LinearSVC, "fit", stop)

    def call(*words: object) -> dict[str, Any]:
        with pytest.raises(SeenError) as caught:
            run("train", *words, binary)
        return dict(caught.value.args[0].get_params())

    return call


@pytest.mark.parametrize(
    ("words", "params"),
    [
        (
            [],
            {
                "C": 1.0,
                "tol": 1e-3,
                "solver": "auto",
                "intercept": "free",
                "fit_intercept": True,
                "n_jobs": -1,
            },
        ),
        (["-c", 3], {"C": 3.0}),
        (["-c3"], {"C": 3.0}),
        (["-e", "1e-5"], {"tol": 1e-5}),
        (["-B"], {"intercept": "regularized", "fit_intercept": True}),
        (["-B", 1], {"intercept": "regularized", "fit_intercept": True}),
        (["-B1"], {"intercept": "regularized", "fit_intercept": True}),
        (["-B", -1], {"fit_intercept": False}),
        (["-B-1"], {"fit_intercept": False}),
        (["-B", "-w1", 2], {"intercept": "regularized", "class_weight": {1: 2.0}}),
        (["-w1", 5, "-w-1", "0.5"], {"class_weight": {1: 5.0, -1: 0.5}}),
        (["-w+1", 5], {"class_weight": {1: 5.0}}),
        (["--solver", "cpa"], {"solver": "cpa"}),
        (["--solver", "cpa", "--shards", 4], {"solver": CPA(shards=4)}),
        (["--shards", 4], {"solver": OCAS(shards=4)}),
        (["--solver", "ocas", "--shards", "auto"], {"solver": OCAS(shards="auto")}),
        (["--line-search", "exact"], {"solver": OCAS()}),
        (["--line-search", "tca"], {"solver": OCAS(line_search="tca")}),
        (["--line-search", "gca2", "--shards", 4], {"solver": OCAS(line_search="gca2", shards=4)}),
        (["--solver", "sifting", "--line-search", "gca"], {"solver": Sifting(inner=OCAS(line_search="gca"))}),
        (["--max-time", 2.5, "--n-jobs", 2], {"max_time": 2.5, "n_jobs": 2}),
        (["--memory", "2GB", "--checkpoint", "f"], {"memory_limit": "2GB total", "checkpoint": "f"}),
    ],
)
def test_options_are_passed_to_the_estimator(built: Any, words: list[object], params: dict[str, Any]) -> None:
    found = built(*words)
    assert {key: found[key] for key in params} == params


def test_options_between_the_files(run: Run, binary: Path, tmp_path: Path) -> None:
    code, out, _ = run("train", binary, "-c", 2, "--n-jobs", 1, tmp_path / "m")
    assert code == 0 and out.endswith(f"model: {tmp_path / 'm'}\n")


def test_file_name_with_a_leading_dash(run: Run, binary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(binary.parent)
    os.rename(binary, "-w1.svm")
    assert run("train", "-q", "--n-jobs", 1, "--", "-w1.svm", "m").code == 0


def test_three_classes_with_weights(run: Run, three: Path) -> None:
    code, out, _ = run("train", "-w5", 3, "--n-jobs", 1, three)
    assert code == 0 and "certified" in out
    saved = load_model(f"{three}.model").estimator
    assert saved.coef_.shape == (3, 5)
    assert saved.class_weight == {5: 3.0}
    np.testing.assert_array_equal(saved.classes_, [1, 2, 5])


def test_several_files_are_concatenated(run: Run, tmp_path: Path) -> None:
    X, y = blobs([-1, 1])
    parts = [write_svmlight(tmp_path / f"p{k}", X[k::3], y[k::3]) for k in range(3)]
    whole = write_svmlight(
        tmp_path / "all", np.vstack([X[k::3] for k in range(3)]), np.hstack([y[k::3] for k in range(3)])
    )
    assert run("train", parts[0], "--also", parts[1], "--also", parts[2], "-q", "--n-jobs", 1).code == 0
    assert run("train", whole, "-q", "--n-jobs", 1).code == 0
    a, b = (load_model(f"{path}.model").estimator for path in (parts[0], whole))
    np.testing.assert_array_equal(a.coef_, b.coef_)


@pytest.mark.parametrize(
    ("first", "option", "zero_based", "width"),
    [
        (0, "auto", True, 5),
        (1, "auto", False, 5),
        (1, "1", True, 6),
        (1, "0", False, 5),
    ],
)
def test_index_base_is_saved(run: Run, tmp_path: Path, first: int, option: str, zero_based: bool, width: int) -> None:
    path = write_svmlight(tmp_path / "d", *blobs([-1, 1]), first=first)
    assert run("train", "-q", "--zero-based", option, "--n-jobs", 1, path).code == 0
    saved = load_model(f"{path}.model")
    assert (saved.zero_based, saved.estimator.n_features_in_) == (zero_based, width)


def test_huge_feature_ids_are_compacted(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "d"
    path.write_text("1 3:1 9000000000000:1\n-1 4:1\n" * 10)
    assert run("train", "-q", "--n-jobs", 1, path).code == 0
    saved = load_model(f"{path}.model")
    assert saved.feature_ids is not None and saved.feature_ids.tolist() == [3, 4, 9000000000000]
    assert run("predict", path, f"{path}.model").out == "Accuracy = 100% (20/20)\n"
    code, _, err = run("train", "--format", "liblinear", path)
    assert code == 2 and "line per feature" in err


def test_liblinear_format(run: Run, binary: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    assert run("train", "--format", "liblinear", "--n-jobs", 1, binary, model).code == 0
    assert model.read_text().startswith("solver_type L2R_L1LOSS_SVC_DUAL\nnr_class 2\nlabel 1 -1\nnr_feature 5\n")
    assert run("train", "-q", "--n-jobs", 1, binary).code == 0
    assert run("predict", binary, model).out == run("predict", binary, f"{binary}.model").out


@pytest.mark.parametrize(("labels", "first", "says"), [([0.5, 1.5], 1, "integer labels"), ([-1, 1], 0, "from 1")])
def test_liblinear_format_is_refused_before_training(
    run: Run, tmp_path: Path, labels: list[float], first: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LinearSVC, "fit", None)
    path = write_svmlight(tmp_path / "d", *blobs(labels), first=first)
    code, out, err = run("train", "--format", "liblinear", path)
    assert (code, out) == (2, "") and says in err and len(err.splitlines()) == 1


def test_cross_validation(run: Run, binary: Path) -> None:
    code, out, err = run("train", "-v", 4, "--n-jobs", 1, binary)
    assert code == 0
    assert out.startswith("Cross Validation Accuracy = ") and out.endswith("%\n")
    assert "fold 4 of 4" in err
    assert os.listdir(binary.parent) == ["binary.svm"]
    quiet = run("train", "-v", 4, "-q", "--n-jobs", 1, binary)
    assert (quiet.out, quiet.err) == (out, "")
    facts = json.loads(run("train", "-v", 4, "-q", "--json", "--n-jobs", 1, binary).out)
    assert f"{100 * facts['cross_validation_accuracy']:g}%" in out
    assert facts["folds"] == 4 and len(facts["gaps"]) == 4


def test_unconverged_fit_warns_and_exits_with_0(run: Run, binary: Path) -> None:
    code, out, err = run("train", "-e", 1e-9, "--max-time", 1e-9, "--n-jobs", 1, binary)
    assert code == 0
    assert out.startswith("not converged: gap ") and "model: " in out
    assert "warning: not converged (the time limit was reached)" in err and "larger --max-time" in err
    facts = json.loads(run("train", "-q", "--json", "--max-time", 1e-9, "--n-jobs", 1, binary).out)
    assert facts["converged"] is False and facts["gap"] > 1e-3


def test_badly_scaled_features_are_named(run: Run, tmp_path: Path) -> None:
    X, y = blobs([-1, 1])
    X[:, 0] *= 1e6
    path = write_svmlight(tmp_path / "d", X, y)
    assert "scale the features" in run("train", "--max-time", 1e-9, "--n-jobs", 1, path).err


def test_ctrl_c_writes_the_best_model(run: Run, binary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cutsvm.display.callbacks import ProgressBar

    def interrupt(self: ProgressBar, record: Any) -> None:
        if record.iteration == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(ProgressBar, "__call__", interrupt)
    code, out, err = run("train", "-e", 1e-9, "--n-jobs", 1, binary)
    assert code == 0
    assert "interrupted; the best model so far is kept" in err
    assert out.endswith(f"model: {binary}.model\n")
    assert not load_model(f"{binary}.model").estimator.converged_


def test_ctrl_c_while_reading_or_validating_writes_nothing(
    run: Run, binary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cutsvm.driver.records import Status

    original = LinearSVC.fit

    def fit(self: LinearSVC, X: Any, y: Any = None) -> LinearSVC:
        original(self, X, y)
        self.status_ = Status.INTERRUPTED
        return self

    monkeypatch.setattr(LinearSVC, "fit", fit)
    code, out, err = run("train", "-v", 3, "--n-jobs", 1, binary)
    assert (code, out) == (1, "") and "interrupted" in err and "fold 1" not in err

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cutsvm.cli.data.open_dataset", stop)
    assert run("train", binary).code == 1


def test_full_disk_saves_the_model_elsewhere(
    run: Run, binary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spare = tmp_path / "spare"
    spare.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spare))
    replace = os.replace

    def full(source: Any, target: Any) -> None:
        if spare not in Path(target).parents:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(source, target)

    monkeypatch.setattr(files.os, "replace", full)
    code, out, err = run("train", "--n-jobs", 1, binary)
    (folder,) = spare.iterdir()
    (kept,) = folder.iterdir()
    # Nobody else can have foreseen the name, put a link in its place, or read the model.
    assert (stat.S_IMODE(folder.stat().st_mode), stat.S_IMODE(kept.stat().st_mode)) == (0o700, 0o600)
    assert str(os.getpid()) not in str(kept.relative_to(spare))
    assert code == 1
    assert f"cannot write the model to {binary}.model: No space left on device; it is in {kept}" in err
    assert f"model: {kept}" in out
    assert load_model(kept).estimator.converged_
    assert sorted(os.listdir(tmp_path)) == ["binary.svm", "spare"]


def test_full_disk_everywhere(run: Run, binary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    spare = tmp_path / "spare"
    spare.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spare))
    monkeypatch.setattr(files.os, "fsync", full)
    code, out, err = run("train", "-q", "--n-jobs", 1, binary)
    assert (code, out, os.listdir(spare)) == (1, "", [])
    assert err == f"cutsvm: cannot write the model to {binary}.model: No space left on device\n"


def test_other_warnings_are_one_line(run: Run, binary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    original = LinearSVC.fit

    def fit(self: LinearSVC, X: Any, y: Any = None) -> LinearSVC:
        warnings.warn("look\nout", UserWarning, stacklevel=2)
        return original(self, X, y)

    monkeypatch.setattr(LinearSVC, "fit", fit)
    assert "cutsvm: warning: look out\n" in run("train", "--n-jobs", 1, binary).err
    assert run("train", "-q", "--n-jobs", 1, binary).err == ""


def test_more_than_two_classes(run: Run, three: Path) -> None:
    code, out, err = run("train", "--n-jobs", 1, three)
    assert code == 0 and "certified" in out and "against the rest" not in err
    for solver in ("dcd", "accpm"):
        code, out, err = run("train", "--n-jobs", 1, "--multi-class", "ovr", "--solver", solver, three)
        assert code == 0 and "certified" in out
        code, out, err = run("train", "--solver", solver, three)
        assert (code, out) == (2, "") and f"--solver {solver} takes two classes at a time, here are 3: add" in err
