"""Reading data from files, and stores of rows on disk."""

from cutsvm.io.dataset import Dataset
from cutsvm.io.formats.svmlight import read_svmlight
from cutsvm.io.open import open_dataset

__all__ = ["Dataset", "open_dataset", "read_svmlight"]
