"""Support vector machines on data of any size, with a proof of how good the answer is."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cutsvm import solvers
    from cutsvm._utils.errors import DataError
    from cutsvm.display.report import report
    from cutsvm.driver.records import Record, Status
    from cutsvm.estimators.kernel import KernelSVC
    from cutsvm.estimators.kernel_one_class import KernelOneClassSVM
    from cutsvm.estimators.kernel_regression import KernelSVR
    from cutsvm.estimators.linear import LinearSVC
    from cutsvm.estimators.model_selection import NestedResult, nested_cross_validate
    from cutsvm.estimators.one_class import LinearOneClassSVM
    from cutsvm.estimators.ordinal import OrdinalSVC, ROCAreaSVC
    from cutsvm.estimators.path import linear_path, ranking_path
    from cutsvm.estimators.path_cv import LinearSVCCV, LinearSVRCV, RankingSVMCV
    from cutsvm.estimators.ranking import RankingSVM
    from cutsvm.estimators.ranking_scorer import ranking_scorer
    from cutsvm.estimators.regression import LinearSVR, QuantileSVR
    from cutsvm.io.dataset import Dataset
    from cutsvm.io.models.model_file import SavedModel, load_model, save_model
    from cutsvm.io.models.skops_types import skops_types
    from cutsvm.io.open import open_dataset
    from cutsvm.io.store.convert import convert
    from cutsvm.problem.pair_accuracy import pair_accuracy
    from cutsvm.problem.ranking_measures import RankingScore, ranking_score

try:
    __version__ = version("cutsvm")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "unknown"

__all__ = [
    "DataError",
    "Dataset",
    "KernelOneClassSVM",
    "KernelSVC",
    "KernelSVR",
    "LinearOneClassSVM",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "LinearSVRCV",
    "NestedResult",
    "OrdinalSVC",
    "QuantileSVR",
    "ROCAreaSVC",
    "RankingSVM",
    "RankingSVMCV",
    "RankingScore",
    "Record",
    "SavedModel",
    "Status",
    "__version__",
    "convert",
    "linear_path",
    "load_model",
    "nested_cross_validate",
    "open_dataset",
    "pair_accuracy",
    "ranking_path",
    "ranking_score",
    "ranking_scorer",
    "report",
    "save_model",
    "skops_types",
    "solvers",
]

# Where each name lives. It is imported when it is first asked for: scikit-learn takes a second to import, in which
# the command line must already be able to answer Ctrl-C.
_HOMES = {
    "DataError": "cutsvm._utils.errors",
    "Dataset": "cutsvm.io.dataset",
    "KernelOneClassSVM": "cutsvm.estimators.kernel_one_class",
    "KernelSVC": "cutsvm.estimators.kernel",
    "KernelSVR": "cutsvm.estimators.kernel_regression",
    "LinearOneClassSVM": "cutsvm.estimators.one_class",
    "LinearSVC": "cutsvm.estimators.linear",
    "LinearSVCCV": "cutsvm.estimators.path_cv",
    "LinearSVR": "cutsvm.estimators.regression",
    "LinearSVRCV": "cutsvm.estimators.path_cv",
    "NestedResult": "cutsvm.estimators.model_selection",
    "OrdinalSVC": "cutsvm.estimators.ordinal",
    "QuantileSVR": "cutsvm.estimators.regression",
    "ROCAreaSVC": "cutsvm.estimators.ordinal",
    "RankingSVM": "cutsvm.estimators.ranking",
    "RankingSVMCV": "cutsvm.estimators.path_cv",
    "RankingScore": "cutsvm.problem.ranking_measures",
    "Record": "cutsvm.driver.records",
    "SavedModel": "cutsvm.io.models.model_file",
    "Status": "cutsvm.driver.records",
    "convert": "cutsvm.io.store.convert",
    "linear_path": "cutsvm.estimators.path",
    "load_model": "cutsvm.io.models.model_file",
    "nested_cross_validate": "cutsvm.estimators.model_selection",
    "open_dataset": "cutsvm.io.open",
    "pair_accuracy": "cutsvm.problem.pair_accuracy",
    "ranking_path": "cutsvm.estimators.path",
    "ranking_score": "cutsvm.problem.ranking_measures",
    "ranking_scorer": "cutsvm.estimators.ranking_scorer",
    "report": "cutsvm.display.report",
    "save_model": "cutsvm.io.models.model_file",
    "skops_types": "cutsvm.io.models.skops_types",
}


def __getattr__(name: str) -> Any:
    if name == "solvers":
        return import_module("cutsvm.solvers")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
