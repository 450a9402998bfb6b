"""Tasks: each has its estimator, measure, options and path, and no other module compares their names."""

import ast
from importlib import import_module

import pytest

import cutsvm
from cutsvm.cli.parser import parse
from cutsvm.io.models.model_format import ModelFileError
from cutsvm.io.models.tasks import TASKS, load, task_of
from tests.support.imports import modules


@pytest.mark.parametrize("task", TASKS.values(), ids=str)
def test_estimator_and_task_find_each_other(task):
    estimator = task.make_estimator(**task.parameters)
    assert type(estimator) is getattr(cutsvm, task.estimator_name)
    assert ("cost" in task.options) == hasattr(estimator, "C")
    owners = [kind for kind in type(estimator).__mro__ if "loss" in vars(kind).get("__annotations__", {})]
    assert bool(owners) == ("loss" in task.options)
    assert task.losses == (tuple(import_module(owners[0].__module__).LOSSES) if owners else ())
    assert task_of(estimator) is task
    assert task.measure.uses_labels == (not task.predicts_scores)
    assert hasattr(estimator, task.score_method)
    assert all(load(name) for name in (task.path, task.cv_estimator) if name is not None)


@pytest.mark.parametrize("task", TASKS.values(), ids=str)
def test_options_and_solvers_of_a_task_are_known(task):
    options = parse(["train", "--task", task.name, "data.svm"])
    assert options.task is task
    assert task.options <= set(vars(options))
    for solver in task.solvers:
        assert parse(["train", "--task", task.name, "--solver", solver, "data.svm"]).solver == solver


def test_estimators_with_cross_validation_have_the_task_of_their_base():
    assert task_of(cutsvm.LinearSVCCV()) is TASKS["classify"]
    assert task_of(cutsvm.LinearSVRCV()) is TASKS["regress"]
    assert task_of(cutsvm.RankingSVMCV()) is TASKS["rank"]
    with pytest.raises(ModelFileError, match="dict cannot be written; expected one of LinearSVC, LinearSVR"):
        task_of({})


def test_no_module_compares_names_of_tasks():
    names = {"classify", "regress", "oneclass", "rank", "roc", "ordinal"}  # others are names of parameters, too
    for module, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare):
                constants = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
                assert not names & constants, f"{module}:{node.lineno}: compare Task objects or their attributes"
