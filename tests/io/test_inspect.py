"""`cutsvm check` on good, unusual and broken files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file

from cutsvm.io.inspect import inspect_file


def write(folder: Path, text: str | bytes, name: str = "data.svm") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_report_of_a_good_file(tmp_path: Path) -> None:
    path = write(tmp_path, "1 1:0.5 3:-2\n-1 3:4\n-1\n1 3:-2 1:0.5\n2 1:0\n")
    report = inspect_file(path)
    assert report.source == str(path)
    assert (report.rows, report.features, report.features_seen, report.largest_index) == (5, 3, 2, 3)
    assert not report.zero_based
    assert report.base_reason == "index 0 does not occur"
    assert report.nonzeros == 5
    assert report.density == 0.5
    assert report.value_range == (-2, 4)
    assert report.n_classes == 3
    assert report.classes == ((-1, 2), (1, 2), (2, 1))
    assert report.queries is None
    assert report.zero_rows == 2
    assert report.duplicate_rows == 1
    assert report.scale_ratio == 8
    assert report.n_bad_lines == 0
    assert report.bad_lines == ()
    assert report.hints == ()


def test_text_and_dict(tmp_path: Path) -> None:
    report = inspect_file(write(tmp_path, "1 qid:1 0:1\n2 qid:2 1:3\n1 qid:2 x\n"))
    text = str(report)
    assert text.startswith(str(tmp_path / "data.svm"))
    assert "index base   0 (index 0 occurs)" in text
    assert "queries      2" in text
    assert "1 bad line:" in text
    assert "data.svm:3: expected index:value, found 'x'" in text
    assert json.loads(json.dumps(report.to_dict()))["rows"] == 2


def test_bad_lines_are_listed_and_the_rest_is_reported(tmp_path: Path, read_with: Callable[..., None]) -> None:
    read_with(text_bytes=64)
    lines = [f"1 {i + 1}:x" if i % 2 else f"{i % 4} 1:{i}" for i in range(100)]
    path = write(tmp_path, "\n".join(lines))
    report = inspect_file(path)
    assert (report.rows, report.n_bad_lines) == (50, 50)
    assert len(report.bad_lines) == 20
    assert report.bad_lines[0] == f"{path}:2: expected a number as value, found '2:x'"
    assert report.bad_lines[-1] == f"{path}:40: expected a number as value, found '40:x'"
    assert str(report).endswith("... and 30 more")


def test_bad_lines_of_several_files(tmp_path: Path) -> None:
    first = write(tmp_path, "1 1:1\n1 0:2\n", "a")
    second = write(tmp_path, gzip.compress(b"\nnan\n2 2:2"), "b")
    report = inspect_file([first, second], zero_based=False)
    assert [line.split(": ")[0] for line in report.bad_lines] == [f"{first}:2", f"{second}:2"]
    assert (report.rows, report.base_reason) == (2, "as given")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("3 1:1\n3 2:1\n", "all labels are 3"),
        ("1 1:1e-3\n2 2:1e4\n", "differ in size by a factor of 1e+07"),
        ("".join(f"{i / 7} 1:{i}\n" for i in range(30)), "look continuous"),
        ("# nothing\n", "no samples"),
        ("1 1:1\n2 4000000000:1\n", "the columns will be the 2 features seen"),
        ("1 qid:1 1:1\n2 qid:2 1:2\n", "nothing to rank"),
        ("1 qid:a 1:1\n2 qid:b 1:2\n", "nothing to rank"),
        ("1 1:1\n" * 5 + "2 1:1\n", "most rows are duplicates"),
    ],
)
def test_hints(tmp_path: Path, text: str, hint: str) -> None:
    report = inspect_file(write(tmp_path, text))
    assert any(hint in found for found in report.hints)
    assert hint in str(report)


def test_empty_file_is_reported(tmp_path: Path) -> None:
    report = inspect_file(write(tmp_path, ""))
    assert (report.rows, report.features, report.largest_index) == (0, 0, None)
    assert (report.value_range, report.scale_ratio) == (None, None)
    assert "rows         0" in str(report)


def test_many_classes_are_abbreviated(tmp_path: Path) -> None:
    report = inspect_file(write(tmp_path, "".join(f"{i % 25} 1:{i}\n" for i in range(200))))
    assert (report.n_classes, len(report.classes)) == (25, 20)
    assert not report.continuous_labels
    assert "... and 5 more" in str(report)


def test_rows_that_differ_only_in_query_or_label_are_no_duplicates(tmp_path: Path) -> None:
    report = inspect_file(write(tmp_path, "1 qid:1 1:1\n1 qid:2 1:1\n2 qid:1 1:1\n1 qid:1 1:1 2:0\n"))
    assert report.duplicate_rows == 1


def test_queries_that_are_text(tmp_path: Path) -> None:
    text = "1 qid:1 1:1\n1 qid:{0} 1:1\n2 qid:1 1:1\n1 qid:{0} 1:1 2:0\n2 qid:{1} 2:1\n2 qid:9 x\n"
    numbers = inspect_file(write(tmp_path, text.format(2, 3)))
    words = inspect_file(write(tmp_path, text.format("a", "\udcff").encode("utf-8", "surrogateescape")))
    assert (words.queries, words.duplicate_rows, words.n_bad_lines) == (3, 1, 1)
    assert words == numbers
    assert str(words) == str(numbers)
    assert json.loads(json.dumps(words.to_dict()))["queries"] == 3


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_counts_are_those_of_numpy(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (60, 3)) * (rng.random((60, 3)) < 0.7)
    y = rng.integers(0, 2, 60)
    path = tmp_path / "data.svm"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    report = inspect_file(path)
    assert report.duplicate_rows == 60 - len(np.unique(np.column_stack([X, y]), axis=0))
    assert report.zero_rows == np.count_nonzero(~X.any(axis=1))
    assert report.nonzeros == np.count_nonzero(X)
    assert dict(report.classes) == dict(zip(*np.unique(y, return_counts=True), strict=True))


def test_result_does_not_depend_on_blocks(tmp_path: Path, read_with: Callable[..., None]) -> None:
    path = write(tmp_path, "".join(f"{i % 2} {i % 5 + 1}:{i % 3} 9:1\n" for i in range(40)))
    whole = inspect_file(path)
    read_with(slice_rows=7)
    assert inspect_file(path) == whole
