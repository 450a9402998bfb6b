"""Support vector machines on data of any size, with a proof of how good the answer is."""

from importlib.metadata import version

from cutsvm import solvers
from cutsvm.errors import DataError
from cutsvm.io.dataset import Dataset, open_dataset
from cutsvm.io.model_file import load_model, save_model
from cutsvm.linear import LinearSVC
from cutsvm.run import Record, Status

__version__ = version("cutsvm")

__all__ = [
    "DataError",
    "Dataset",
    "LinearSVC",
    "Record",
    "Status",
    "__version__",
    "load_model",
    "open_dataset",
    "save_model",
    "solvers",
]
