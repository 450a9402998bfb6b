"""`cutsvm train --paper NAME`, and the options of solvers that it sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cutsvm import LinearSVC, load_model
from cutsvm.cli.papers import PAPERS
from cutsvm.kernel_machines import SGD
from cutsvm.solvers import ACCPM, CPA, OCAS
from tests.support.cli import Run


def trained(run: Run, path: Path, *words: object) -> Any:
    """The estimator of the model that the command writes."""
    code, _, err = run("train", *words, path)
    assert code == 0, err
    return load_model(f"{path}.model").estimator


def test_joachims(run: Run, binary: Path) -> None:
    model = trained(run, binary, "--paper", "joachims", "-c", 50)
    assert model.solver == CPA(exact=True, epsilon=1e-3, shards=1)
    assert model.C == pytest.approx(50 / 120) and not model.fit_intercept
    assert model.status_.name == "EPSILON"


def test_joachims_takes_its_epsilon(run: Run, binary: Path) -> None:
    loose = json.loads(run("train", "--json", "--paper", "joachims", "--epsilon", 0.1, binary).out)
    tight = json.loads(run("train", "--json", "--paper", "joachims", binary).out)
    assert loose["n_iter"] < tight["n_iter"] and loose["paper"] == "joachims"
    assert tight["objective"] - tight["lower_bound"] <= 1e-3 * 1.0 * 1.001  # C times epsilon


def test_joachims_for_pairs(run: Run, three: Path) -> None:
    model = trained(run, three, "--paper", "joachims", "--task", "ordinal", "-c", 10)
    assert model.C == 10 and model.solver.exact  # the mean over pairs is in both


def test_franc_sonnenburg(run: Run, binary: Path) -> None:
    model = trained(run, binary, "--paper", "franc-sonnenburg", "-c", 50)
    assert model.C == pytest.approx(50 / 120) and not model.fit_intercept
    assert model.solver.exact and model.solver.shards == 1 and model.solver.cut_at == 0.1
    assert model.objective_ - model.lower_bound_ <= model.solver.epsilon == pytest.approx(0.05)


@pytest.mark.parametrize("search", ["exact", "gca", "gca2", "tca"])
def test_arnosti(run: Run, three: Path, search: str) -> None:
    model = trained(run, three, "--paper", "arnosti", "--line-search", search)
    assert model.solver.line_search == search and not model.solver.safe and model.solver.shards == 1
    assert model.C == 1 and model.tol == 0.01 and model.gap_ <= 0.01 and not model.fit_intercept


def test_bialon(run: Run, binary: Path) -> None:
    model = trained(run, binary, "--paper", "bialon")
    assert model.solver.formulation == "I2" and model.solver.early_return and not model.solver.both_sides
    assert model.fit_intercept and model.intercept == "free" and model.C == 1
    assert model.status_.name == "EPSILON"


def test_melki_needs_no_task(run: Run, three: Path) -> None:
    model = trained(run, three, "--paper", "melki", "--gamma", 0.1)
    assert type(model).__name__ == "KernelSVC" and model.gamma == 0.1
    assert (
        model.solver == SGD(step="1/m", C_times="mean")
        and not model.intercept_.any()
        and (model.epochs, model.average) == (5, 0.5)
    )


def test_the_paper_is_named(run: Run, binary: Path) -> None:
    for name, paper in PAPERS.items():
        code, _, err = run("train", "--paper", name, binary)
        assert code == 0 and f"as in {paper.citation}: " in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--paper", "joachims", "--solver", "ocas"), "--paper joachims sets --solver: leave it out"),
        (("--paper", "joachims", "-e", "0.1"), "--paper joachims sets -e: leave it out"),
        (("--paper", "arnosti", "-B", "1"), "--paper arnosti sets -B: leave it out"),
        (("--paper", "arnosti", "--task", "rank"), "--paper arnosti is for --task classify, not for rank"),
        (("--paper", "bialon", "--exact"), "--paper bialon sets --exact: leave it out"),
        (("--paper", "joachims", "--cut-at", "0"), "--paper joachims sets --cut-at: leave it out"),
        (("--paper", "nobody"), "invalid choice: 'nobody'"),
        (("--solver", "dcd", "--epsilon", "1"), "--epsilon applies to --solver ocas, cpa and accpm, not to dcd"),
        (("--solver", "cpa", "--formulation", "E"), "--formulation applies to --solver accpm, not to cpa"),
        (("--cut-at", "7"), "cut_at=7: expected at most 1"),
        (("--solver", "accpm", "--buckets", "0"), "expected a whole number, 1 or more, got '0'"),
        (
            ("--task", "kernel", "--exact"),
            "--exact applies to --task classify, regress, quantile, oneclass, rank, roc and ordinal, not to kernel",
        ),
    ],
)
def test_refused(run: Run, binary: Path, words: tuple[str, ...], message: str) -> None:
    code, out, err = run("train", *words, binary)
    assert code == 2 and message in err and out == ""
    assert not Path(f"{binary}.model").exists()


def test_a_checkpoint_of_a_paper_is_resumed(run: Run, binary: Path, tmp_path: Path) -> None:
    """The stop test of ACCPM is part of its checkpoint."""
    words = ("train", "--paper", "bialon", "--checkpoint", tmp_path / "fit.ck", binary)
    code, _, err = run(*words, "--max-time", 0.03)
    assert code == 0 and (tmp_path / "fit.ck").exists()
    assert "larger --max-time" in err and "larger -e" not in err  # the paper sets -e
    code, out, _ = run(*words)
    assert code == 0 and "stop test" in out and not (tmp_path / "fit.ck").exists()


@pytest.mark.parametrize("solver", ["ocas", "cpa"])
def test_buckets_are_for_two_classes(run: Run, three: Path, solver: str) -> None:
    for words in ((), ("--task", "ordinal"), ("--task", "rank")):
        code, _, err = run("train", "--solver", solver, "--buckets", 3, *words, three)
        assert code == 2 and "buckets=3" in err


def test_two_classes_only(run: Run, three: Path) -> None:
    code, _, err = run("train", "--paper", "joachims", three)
    assert code == 2 and "--paper joachims takes two classes, here are 3" in err


def test_options_of_solvers(run: Run, binary: Path) -> None:
    words = ("--solver", "accpm", "--formulation", "I2", "--buckets", 4)
    assert trained(run, binary, *words).solver == ACCPM(formulation="I2", buckets=4)
    assert trained(run, binary, "--solver", "cpa", "--exact", "--epsilon", 0.01).solver == CPA(exact=True, epsilon=0.01)
    assert trained(run, binary, "--cut-at", 0.5, "--guard", "every_zero").solver == OCAS(cut_at=0.5, guard="every_zero")


def test_cross_validation_divides_by_the_rows_of_the_fold(
    run: Run, binary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs: list[float] = []
    fit = LinearSVC.fit

    def seen(self: LinearSVC, *args: Any, **kwargs: Any) -> LinearSVC:
        costs.append(self.C)
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(LinearSVC, "fit", seen)
    assert run("train", "--paper", "joachims", "-c", 96, "-v", 5, binary).code == 0
    assert np.allclose(costs, 1.0)  # 96 of the 120 rows are in each training part
