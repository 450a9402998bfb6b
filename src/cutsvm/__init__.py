"""Support vector machines on data of any size, with a proof of how good the answer is."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cutsvm import solvers
    from cutsvm.errors import DataError
    from cutsvm.io.convert import convert
    from cutsvm.io.dataset import Dataset, open_dataset
    from cutsvm.io.model_file import load_model, save_model
    from cutsvm.kernel import KernelSVC
    from cutsvm.linear import LinearSVC
    from cutsvm.linear_cv import LinearSVCCV
    from cutsvm.model_selection import NestedResult, nested_cross_validate
    from cutsvm.path import linear_path, ranking_path
    from cutsvm.ranking import OrdinalSVC, RankingSVM, ROCAreaSVC
    from cutsvm.ranking_cv import RankingSVMCV
    from cutsvm.reporting import report
    from cutsvm.run import Record, Status

__version__ = version("cutsvm")

__all__ = [
    "DataError",
    "Dataset",
    "KernelSVC",
    "LinearSVC",
    "LinearSVCCV",
    "NestedResult",
    "OrdinalSVC",
    "ROCAreaSVC",
    "RankingSVM",
    "RankingSVMCV",
    "Record",
    "Status",
    "__version__",
    "convert",
    "linear_path",
    "load_model",
    "nested_cross_validate",
    "open_dataset",
    "ranking_path",
    "report",
    "save_model",
    "solvers",
]

# Where each name lives. It is imported when it is first asked for: scikit-learn takes a second to import, in which
# the command line must already be able to answer Ctrl-C.
_HOMES = {
    "DataError": "cutsvm.errors",
    "Dataset": "cutsvm.io.dataset",
    "KernelSVC": "cutsvm.kernel",
    "LinearSVC": "cutsvm.linear",
    "LinearSVCCV": "cutsvm.linear_cv",
    "NestedResult": "cutsvm.model_selection",
    "OrdinalSVC": "cutsvm.ranking",
    "ROCAreaSVC": "cutsvm.ranking",
    "RankingSVM": "cutsvm.ranking",
    "RankingSVMCV": "cutsvm.ranking_cv",
    "Record": "cutsvm.run",
    "Status": "cutsvm.run",
    "convert": "cutsvm.io.convert",
    "linear_path": "cutsvm.path",
    "load_model": "cutsvm.io.model_file",
    "nested_cross_validate": "cutsvm.model_selection",
    "open_dataset": "cutsvm.io.dataset",
    "ranking_path": "cutsvm.path",
    "report": "cutsvm.reporting",
    "save_model": "cutsvm.io.model_file",
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
