"""How many files and frames of cutsvm one fit passes through."""

import os

import numpy as np

import cutsvm
from cutsvm import LinearSVC
from tests.support.calls import on_each_call

# The goal is 15 files and 12 frames; the number of files may only fall. (The fit that classifiers and regressors share
# is one of them.)
MOST_FILES, MOST_FRAMES = 22, 13


def files_and_frames(call):
    """The files of cutsvm that `call` executes code of, and the largest number of its frames on the stack."""
    package = os.path.dirname(cutsvm.__file__) + os.sep
    files, most = set(), 0

    def see(frame):
        nonlocal most
        if not frame.f_code.co_filename.startswith(package):
            return
        files.add(frame.f_code.co_filename.removeprefix(package))
        frames = 0
        while frame:
            frames += frame.f_code.co_filename.startswith(package)
            frame = frame.f_back
        most = max(most, frames)

    on_each_call(call, see)
    return files, most


def test_fit_of_a_dense_array():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = np.where(X[:, 0] + rng.normal(size=200) > 0, 1, -1)
    LinearSVC(C=1).fit(X, y)  # imports
    files, frames = files_and_frames(lambda: LinearSVC(C=1).fit(X, y))
    assert len(files) <= MOST_FILES, sorted(files)
    assert frames <= MOST_FRAMES
