"""Reading data from files, and stores of rows on disk."""

from cutsvm.io.dataset import Dataset, open_dataset
from cutsvm.io.formats.svmlight import read_svmlight

__all__ = ["Dataset", "open_dataset", "read_svmlight"]
