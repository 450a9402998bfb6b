"""svmlight files as a source of rows, with or without labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cutsvm._native import core
from cutsvm._utils import threads
from cutsvm._utils.errors import DataError
from cutsvm.io.columns import Labels
from cutsvm.io.formats.svmlight import ZeroBased, query_ids
from cutsvm.io.formats.text import text_blocks
from cutsvm.io.paths import Input
from cutsvm.io.settings import read_settings
from cutsvm.io.store.batches import INT32_MAX, Batch, Source, too_wide


class SvmlightSource(Source):
    """svmlight files, read some lines at a time; columns are indices as written.

    labels: unless they are required, the lines of a file may begin with index:value or qid:; the first line decides.
    """

    any_index = False  # whether indices may be beyond the 32 bits of a store's columns

    def __init__(self, files: Sequence[Input | str], zero_based: ZeroBased, labels: Labels = "required") -> None:
        if zero_based not in (True, False, "auto"):
            raise ValueError(f"zero_based must be True, False or 'auto', got {zero_based!r}")
        self.files = [Input(file) if isinstance(file, str) else file for file in files]
        names = [file.name for file in self.files]
        self.name = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        self._given, self._labels = zero_based, labels
        self.zero_based = zero_based is True
        self._sizes = [file.size or 0 for file in self.files]

    def __iter__(self) -> Iterator[Batch]:
        before: Batch | None = None
        for number, file in enumerate(self.files):
            read = line = 0
            labelled: bool | None = True if self._labels == "required" else None
            for text in _split(text_blocks(file)):
                labelled = _has_labels(text) if labelled is None else labelled
                batch, lines = self._parse(file.name, text, line, labelled=labelled is not False)
                read += len(text)
                # The size of compressed text is unknown; the size of the file is a lower bound of it.
                done = sum(self._sizes[:number]) + min(read, self._sizes[number])
                self.share = min(1.0, done / sum(self._sizes)) if sum(self._sizes) else None
                if batch is not None and batch.X.shape[0]:
                    _check_same(file.name, line + 1, batch, before)
                    before = batch
                    yield batch
                line += lines

    @property
    def is_undecided(self) -> bool:
        """Whether index 0 has not occurred so far, and would change the columns."""
        return self._given == "auto" and not self.zero_based

    def _parse(self, path: str, text: NDArray[np.uint8], line: int, *, labelled: bool) -> tuple[Batch | None, int]:
        """The rows of some lines, and the number of lines."""
        least = 0 if self._given else 1  # "auto" is true: index 0 is allowed
        lines = int(np.count_nonzero(text == ord("\n")))
        reader = core.SvmlightReader64(min_index=least, keep_bad=0)
        reader.start_file()
        for number, problem in reader.feed(text if labelled else _labelled(path, text, line), threads.count(-1)):
            raise DataError(f"{path}:{line + number}: {problem}")
        if not reader.rows:
            return None, lines
        if self._given == "auto" and reader.min_index == 0:
            self.zero_based = True
        top = reader.max_index
        if top > INT32_MAX and not self.any_index:
            raise too_wide(self.name, top)
        y, queries, pointers, indices, values = reader.take()
        qid = None if queries is None else query_ids(*queries)
        base = 0 if self.zero_based else 1
        X = sparse.csr_matrix((values, indices, pointers), shape=(len(y), max(top + 1, base)))
        X.has_sorted_indices = X.has_canonical_format = True
        return Batch(X, y if labelled and self._labels != "none" else None, None, qid, base), lines


def _check_same(path: str, line: int, batch: Batch, before: Batch | None) -> None:
    """Raise unless both batches have queries and labels, or both have none."""
    if before is None:
        return
    if (batch.qid is None) != (before.qid is None):
        have = "have not" if before.qid is None else "have"
        raise DataError(f"{path}: from line {line} on: expected 'qid:' as the lines before {have} it")
    if (batch.y is None) != (before.y is None):
        have = "have none" if before.y is None else "have them"
        raise DataError(f"{path}: from line {line} on: expected labels as in the files before, which {have}")


def _has_labels(text: NDArray[np.uint8]) -> bool | None:
    """Whether the first line that is no comment begins with a label; None: there is no such line."""
    for line in text[: 1 << 16].tobytes().split(b"\n"):
        words = line.partition(b"#")[0].split()
        if words:
            return b":" not in words[0]
    return None


def _labelled(path: str, text: NDArray[np.uint8], line: int) -> NDArray[np.uint8]:
    """Lines without labels with the label 0 in front; an empty line could be a row of zeros, or no row."""
    plain = text.tobytes()
    empty = re.search(rb"^[ \t\r]*\n", plain, re.M)
    if empty is not None:
        place = line + plain.count(b"\n", 0, empty.start()) + 1
        raise DataError(f"{path}:{place}: expected index:value, found an empty line; a row of zeros is written as 1:0")
    return np.frombuffer(re.sub(rb"^(?=[^#\n])", b"0 ", plain, flags=re.M), dtype=np.uint8)


def _split(blocks: Iterable[NDArray[np.uint8]]) -> Iterator[NDArray[np.uint8]]:
    """Blocks of whole lines of at most `parsed_bytes`, unless a line is longer."""
    size = read_settings().parsed_bytes
    for block in blocks:
        start = 0
        while len(block) - start > size:
            last = np.flatnonzero(block[start : start + size] == ord("\n"))
            if not len(last):  # a longer line: the rest at once
                break
            stop = start + int(last[-1]) + 1
            yield block[start:stop]
            start = stop
        yield block[start:]
