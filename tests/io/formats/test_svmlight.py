"""The svmlight reader against its Python twin, scikit-learn's loader, and every kind of bad file."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from cutsvm._native import core
from cutsvm._utils.errors import DataError
from cutsvm.io import open_dataset, read_svmlight
from cutsvm.io.formats import svmlight
from cutsvm.io.formats import text as text_files
from tests.support.reference import svmlight as reference
from tests.support.strategies import examples

ReadWith = Callable[..., None]


def write(folder: Path, text: str | bytes, name: str = "data.svm") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def feed(text: bytes, *, n_threads: int = 1, single: bool = False, **options: int):
    """The reader's result for one block: arrays, and bad lines."""
    reader = (core.SvmlightReader32 if single else core.SvmlightReader64)(**options)
    bad = reader.feed(np.frombuffer(text, dtype=np.uint8), n_threads)
    return reader.take(), bad


def assert_same(text: bytes, *, min_index: int = 0, **options: int) -> None:
    """What the compiled reader finds in the text is what the twin finds."""
    expected = reference.parse(text, min_index=min_index)
    arrays, bad = feed(text, min_index=min_index, keep_bad=10_000, **options)
    labels, queries, indptr, indices, values = arrays
    assert bad == expected.bad
    assert labels.tobytes() == np.array(expected.labels).tobytes()
    assert ([] if queries is None else svmlight.query_ids(*queries).tolist()) == expected.queries
    assert np.diff(indptr).tolist() == [len(row) for row in expected.rows]
    assert indices.tolist() == [index for row in expected.rows for index, _ in row]
    assert values.tobytes() == np.array([value for row in expected.rows for _, value in row]).tobytes()


# ---- properties

numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-1000, max_value=1000).map(str),
    st.integers(-(10**25), 10**25).map(str),
    st.from_regex(r"[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?", fullmatch=True),
)
indices = st.one_of(st.integers(0, 50), st.integers(0, 2**63 - 1))
blanks = st.sampled_from([" ", "  ", "\t", " \t "])
# As bytes in latin-1: the texts are put together as such.
words = st.one_of(
    st.sampled_from("a b a:b qid:1 qid 7 07 +7 -7 - + -0 7.0 1e3 9223372036854775808 -9223372036854775809".split()),
    st.text(st.characters(exclude_characters=" \t\r\v\f\n#", exclude_categories=["Cs"]), min_size=1, max_size=40).map(
        lambda word: word.encode().decode("latin-1")
    ),
    st.sampled_from(["\xff", "\xfe", "\xc3", "a\xff", "a\0", "\0", "\xed\xb3\xbf"]),
)
queries = st.one_of(st.integers(-(2**63), 2**63 - 1).map(str), st.integers(0, 3).map(str), words)
odd_tokens = st.one_of(
    st.sampled_from(
        (
            "nan -inf Infinity 1e999 1,2 : 3: :3 a:1 -1:2 1.5:2 1:2:3 7 qid:3 qid: qid:x "
            "qid:99999999999999999999 9223372036854775808:1 5:nan 5:-1e400 "
            "+ - . e5 1e 1e+ 5:. 5:1e +7:1 --1 +-1 0:1 1:1 q 1_0 0x1p3"
        ).split()
    ),
    st.binary(min_size=1, max_size=40).map(lambda data: data.replace(b"\n", b"").decode("latin-1")),
)


@st.composite
def lines(draw: st.DrawFn, *, odd: bool) -> str:
    tokens = [draw(numbers)]
    tokens += [f"{draw(indices)}:{draw(numbers)}" for _ in range(draw(st.integers(0, 5)))]
    if draw(st.booleans()):
        tokens.insert(1, f"qid:{draw(queries)}")
    if odd and draw(st.booleans()):
        tokens.insert(draw(st.integers(0, len(tokens))), draw(odd_tokens))
    before, after = draw(st.sampled_from(["", " ", "\t"])), draw(st.sampled_from(["", " ", "\r"]))
    line = before + draw(blanks).join(tokens) + after
    return draw(st.sampled_from([line, line, line, line + "# a: b", "", " \r", "# 1 2:3"]))


texts = st.lists(lines(odd=True), max_size=8).map("\n".join).map(lambda text: text.encode("latin-1"))


@pytest.mark.slow
@given(texts, st.integers(1, 2), st.integers(1, 60), st.integers(0, 1))
def test_twin_agrees(text: bytes, n_threads: int, chunk_bytes: int, min_index: int) -> None:
    assert_same(text, n_threads=n_threads, chunk_bytes=chunk_bytes, min_index=min_index)


@given(st.binary(max_size=200), st.integers(1, 60))
def test_twin_agrees_on_any_bytes(text: bytes, chunk_bytes: int) -> None:
    assert_same(text, chunk_bytes=chunk_bytes)


@given(st.lists(queries, max_size=12), st.integers(1, 2), st.integers(1, 60), st.integers(0, 4))
def test_twin_agrees_on_queries(ids: list[str], n_threads: int, chunk_bytes: int, every: int) -> None:
    lines = [f"1 qid:{word} 1:{'x' if every and place % every == 0 else 1}" for place, word in enumerate(ids)]
    assert_same("\n".join(lines).encode("latin-1"), n_threads=n_threads, chunk_bytes=chunk_bytes)


@pytest.mark.slow
@given(texts, st.integers(1, 60))
def test_first_bad_line_does_not_depend_on_chunks(text: bytes, chunk_bytes: int) -> None:
    _, bad = feed(text, n_threads=2, chunk_bytes=chunk_bytes)
    assert bad == reference.parse(text).bad[:1]


@pytest.mark.slow
@examples(500)
@given(numbers)
@example("9007199254740993")
@example("9007199254740992.5")
@example("0.1e-22")
@example("123456789012345678e22")
@example("2.2250738585072011e-308")
@example("4.9e-324")
@example("2e-324")
@example("-1e-400")
@example("0." + "0" * 400 + "1")
@example("1" + "0" * 308)
@example("1e-99999999999999999999")
@example("0e99999999999999999999")
@example("1.7976931348623158e308")
@example("0.500000000000000166533453693773481063544750213623046875")
def test_numbers_are_those_of_python(number: str) -> None:
    arrays, bad = feed(f"1 1:{number}\n".encode())
    if np.isinf(float(number)):
        assert "expected a finite value" in bad[0][1]
    else:
        assert bad == []
        assert arrays[4].tobytes() == np.array([float(number)]).tobytes()


def test_many_doubles_are_those_of_python() -> None:
    rng = np.random.default_rng(0)
    doubles = rng.integers(0, 2**63, 50_000).view(np.float64)
    doubles = np.concatenate([doubles[np.isfinite(doubles)], rng.random(50_000), rng.normal(size=50_000) * 1e-4])
    text = "".join(f"{x!r}\n" for x in doubles.tolist()).encode()
    arrays, bad = feed(text)
    assert bad == []
    assert arrays[0].tobytes() == doubles.tobytes()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_sklearn_agrees(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = csr_matrix(rng.normal(size=(30, 12)) * (rng.random((30, 12)) < 0.4))
    y = rng.integers(0, 3, 30)
    qid = np.sort(rng.integers(0, 5, 30))
    path = tmp_path / "data.svm"
    with path.open("wb") as file:
        dump_svmlight_file(X, y, file, query_id=qid, zero_based=bool(seed % 2), comment="made: up")
    found = read_svmlight(path, n_features=12, zero_based=bool(seed % 2))
    X_theirs, y_theirs, qid_theirs = load_svmlight_file(
        str(path), n_features=12, query_id=True, zero_based=bool(seed % 2)
    )
    assert found.X.shape == X_theirs.shape
    assert (found.X != X_theirs).nnz == 0
    np.testing.assert_array_equal(found.y, y_theirs)
    np.testing.assert_array_equal(found.qid, qid_theirs)


# ---- forms of text


def test_plain_file(tmp_path: Path) -> None:
    text = "# made by hand\n+1 qid:4\t1:0.5  3:-2e-1 # a comment\r\n\n-1 qid:4 \r\n   2.5 qid:-9 2:+7"
    data = read_svmlight(write(tmp_path, text))
    np.testing.assert_array_equal(data.X.toarray(), [[0.5, 0, -0.2], [0, 0, 0], [0, 7, 0]])
    np.testing.assert_array_equal(data.y, [1, -1, 2.5])
    np.testing.assert_array_equal(data.qid, [4, 4, -9])
    assert data.X.has_canonical_format
    assert data.X.indices.dtype == np.int32
    assert data.qid.dtype == np.int64
    assert not data.zero_based
    assert data.feature_ids is None
    assert data.source == str(tmp_path / "data.svm")


def test_no_queries_is_none(tmp_path: Path) -> None:
    assert read_svmlight(write(tmp_path, "1 1:1\n")).qid is None


def assert_text(qid: np.ndarray, expected: list[str]) -> None:
    assert qid.dtype.kind == "U"
    assert qid.tolist() == expected


def test_one_text_query_makes_all_text(tmp_path: Path) -> None:
    text = "1 qid:007 1:1\n1 qid:7 1:1\n1 qid:q-1 1:1\n1 qid:+7\n1 qid:q-1#x\n1 qid:-0\n1 qid:a:b 1:1\n"
    data = read_svmlight(write(tmp_path, text))
    assert_text(data.qid, ["7", "7", "q-1", "7", "q-1", "0", "a:b"])
    assert data.X.nnz == 4


def test_integers_beyond_64_bits_are_text(tmp_path: Path) -> None:
    low, high = -(2**63), 2**63 - 1
    path = write(tmp_path, f"1 qid:{low}\n1 qid:{high}\n")
    assert read_svmlight(path).qid.tolist() == [low, high]
    path = write(tmp_path, f"1 qid:{low}\n1 qid:{high}\n1 qid:{high + 1}\n1 qid:0{high + 1}\n")
    assert_text(read_svmlight(path).qid, [str(low), str(high), str(high + 1), f"0{high + 1}"])


def test_queries_in_any_encoding_stay_distinct(tmp_path: Path) -> None:
    words = ["ä".encode(), "ä".encode("latin-1"), b"\xff", b"\xfe", "漢字".encode(), b"\xed\xb3\xbf", b"\x01"]
    qid = read_svmlight(write(tmp_path, b"".join(b"1 qid:%s 1:1\n" % word for word in words))).qid
    assert_text(qid, ["ä", "\udce4", "\udcff", "\udcfe", "漢字", "\udced\udcb3\udcbf", "\x01"])
    assert np.unique(qid).size == len(words)


@pytest.mark.parametrize("block_bytes", [1, 20, 1000])
def test_one_rule_for_queries_of_all_files(tmp_path: Path, read_with: ReadWith, block_bytes: int) -> None:
    read_with(text_bytes=block_bytes)
    first = write(tmp_path, "1 qid:01 1:1\n\n1 qid:2 1:1\n", "a.svm")
    second = write(tmp_path, "1 qid:b 1:1\n# gap\n1 qid:1 1:1\n1 qid:a 1:1\n1 qid:b 9000000000:1", "b.svm")
    third = write(tmp_path, "1 qid:a 1:1\n1 qid:2 1:1\n", "c.svm")
    assert_text(read_svmlight([first, second, third]).qid, ["1", "2", "b", "1", "a", "b", "a", "2"])
    assert read_svmlight(first).qid.dtype == np.int64


def test_query_of_a_bad_line_is_ignored(tmp_path: Path) -> None:
    path = write(tmp_path, "1 qid:1 1:1\n1 qid:a 1:x\n1 qid:2 1:1\n")
    raw = svmlight.load(path, keep_bad=5)
    assert (raw.n_bad, raw.qid.dtype, raw.qid.tolist()) == (1, np.int64, [1, 2])
    path = write(tmp_path, f"1 qid:1 1:1\n1 qid:{'a' * 99} 1:x\n1 qid:b 1:1\n1 qid:a 2\n1 qid:c\n")
    raw = svmlight.load(path, keep_bad=5)
    assert_text(raw.qid, ["1", "b", "c"])
    assert raw.qid.dtype == "U1"


def test_unsorted_indices_are_sorted(tmp_path: Path) -> None:
    data = read_svmlight(write(tmp_path, "1 3:3 1:1 2:2\n1 1:5 2:6\n"))
    assert data.X.indices.tolist() == [0, 1, 2, 0, 1]
    assert data.X.data.tolist() == [1, 2, 3, 5, 6]


def test_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    data = read_svmlight(write(tmp_path, b"\xef\xbb\xbf1 1:1\n"))
    assert data.y.tolist() == [1]


def test_labels_only(tmp_path: Path) -> None:
    data = read_svmlight(write(tmp_path, "1\n-1\n"))
    assert data.X.shape == (2, 0)


def test_float32(tmp_path: Path) -> None:
    path = write(tmp_path, "1 1:0.1 2:1e-50\n1 1:3e38\n")
    data = read_svmlight(path, dtype=np.float32)
    assert data.X.dtype == np.float32
    assert data.X.data.tolist() == [np.float32(0.1), 0.0, np.float32(3e38)]


def test_value_beyond_float32(tmp_path: Path) -> None:
    path = write(tmp_path, "1 1:1\n1 1:1e39\n")
    with pytest.raises(DataError, match=r"data.svm:2: expected a value within .* float32, found '1:1e39'"):
        read_svmlight(path, dtype=np.float32)


def test_result_does_not_depend_on_threads_or_chunks(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    X = csr_matrix(rng.normal(size=(500, 40)) * (rng.random((500, 40)) < 0.3))
    buffer = io.BytesIO()
    dump_svmlight_file(X, np.arange(500), buffer)
    text = buffer.getvalue().replace(b"\n", b"\n# gap: here\n\n")
    one, _ = feed(text, n_threads=1)
    for n_threads, chunk_bytes in [(2, 1), (2, 100), (2, 5000), (1, 777)]:
        other, bad = feed(text, n_threads=n_threads, chunk_bytes=chunk_bytes)
        assert bad == []
        for a, b in zip(one, other, strict=True):
            assert (a is None and b is None) or a.tobytes() == b.tobytes()


@pytest.mark.parametrize("block_bytes", [1, 2, 7, 30, 1000])
@pytest.mark.parametrize("packed", [False, True])
def test_block_borders(tmp_path: Path, read_with: ReadWith, block_bytes: int, packed: bool) -> None:
    text = "".join(f"{i} {i + 1}:{i}.5 {i + 2}:1\n\n" if i % 3 else f"{i}\n" for i in range(50)).encode()
    path = write(tmp_path, gzip.compress(text) if packed else text)
    whole = read_svmlight(path)
    read_with(text_bytes=block_bytes)
    data = read_svmlight(path)
    assert (data.X != whole.X).nnz == 0
    assert data.y.tolist() == list(range(50))
    broken = write(tmp_path, gzip.compress(text + b"\n1 x") if packed else text + b"\n1 x")
    line = text.count(b"\n") + 2
    with pytest.raises(DataError, match=f"data.svm:{line}: expected index:value, found 'x'$"):
        read_svmlight(broken)


# ---- bad lines

BAD_LINES = [
    ("abc 1:2", "expected a number as label, found 'abc'"),
    ("1;3 1:2", "expected a number as label, found '1;3'"),
    ("nan 1:2", "expected a finite label, found 'nan'"),
    ("-Inf 1:2", "expected a finite label, found '-Inf'"),
    ("1e999", "expected a finite label, found '1e999'"),
    ("1:2 3:4", "expected a label before the first index:value, found '1:2'"),
    ("1,3,7 1:2", "expected one label, found '1,3,7' (multi-label files are not supported)"),
    ("1 qid:3 1:2", "expected no 'qid:' as in the first sample, found 'qid:3'"),
    ("1 1:2 qid:3", "expected 'qid:' only right after the label, found 'qid:3' further on"),
    ("1 7", "expected index:value, found '7'"),
    ("1 1 :2", "expected index:value, found '1'"),
    ("1 a:2", "expected a whole number as index, found 'a:2'"),
    ("1 1.5:2", "expected a whole number as index, found '1.5:2'"),
    ("1 :2", "expected a whole number as index, found ':2'"),
    ("1 -4:2", "expected an index of 0 or more, found '-4:2'"),
    ("1 9223372036854775808:2", "expected an index below 2^63, found '9223372036854775808:2'"),
    ("1 5:", "expected a value after the colon, found '5:'"),
    ("1 5: 3", "expected a value after the colon, found '5:'"),
    ("1 5:x", "expected a number as value, found '5:x'"),
    ("1 5:1:2", "expected a number as value, found '5:1:2'"),
    ("1 5:1e", "expected a number as value, found '5:1e'"),
    ("1 5:NaN", "expected a finite value, found '5:NaN'"),
    ("1 5:inf", "expected a finite value, found '5:inf'"),
    ("1 5:-1e400", "expected a finite value, found '5:-1e400'"),
    ("1 7:1 7:2", "expected each index once, but index 7 appears twice"),
    ("1 7:1 3:1 7:2", "expected each index once, but index 7 appears twice"),
    ("1 7:\x01é\x7f", "expected a number as value, found '7:????'"),
    ("x" * 80, "expected a number as label, found '" + "x" * 27 + "...'"),
]


@pytest.mark.parametrize(("line", "message"), BAD_LINES)
def test_bad_line(tmp_path: Path, line: str, message: str) -> None:
    path = write(tmp_path, f"1 1:1\n\n# comment\n{line}\n1 x\n")
    with pytest.raises(DataError) as caught:
        read_svmlight(path)
    assert str(caught.value) == f"{path}:4: {message}"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 1:2", "expected 'qid:' after the label as in the first sample, found '1:2'"),
        ("1", "expected 'qid:' after the label as in the first sample, found the end of the line"),
        ("1 qid: 1:2", "expected an id after 'qid:', found 'qid:'"),
        ("1 qid:", "expected an id after 'qid:', found 'qid:'"),
        ("1 qid:#a 1:2", "expected an id after 'qid:', found 'qid:'"),
        ("1 1:2 qid:a", "expected 'qid:' after the label as in the first sample, found '1:2'"),
        ("1 qid:a qid:b", "expected 'qid:' only right after the label, found 'qid:b' further on"),
        ("1 qid:1 qid:2", "expected 'qid:' only right after the label, found 'qid:2' further on"),
    ],
)
def test_bad_query(tmp_path: Path, line: str, message: str) -> None:
    path = write(tmp_path, f"1 qid:1 1:1\n{line}\n")
    with pytest.raises(DataError) as caught:
        read_svmlight(path)
    assert str(caught.value) == f"{path}:2: {message}"


@pytest.mark.parametrize("word", ["a\0", "\0", "a\0b"])
def test_zero_byte_in_a_query(tmp_path: Path, word: str) -> None:
    # NumPy would take "a\0" for "a". A file that has zeros near its start is not read at all.
    path = write(tmp_path, "1 qid:a 1:1\n" * 400 + f"1 qid:{word} 1:1\n")
    found = word.replace("\0", "?")
    with pytest.raises(DataError) as caught:
        read_svmlight(path)
    assert str(caught.value) == f"{path}:401: expected an id without zero bytes after 'qid:', found 'qid:{found}'"


def test_first_bad_line_of_many_threads(tmp_path: Path) -> None:
    lines = [f"{i} 1:1" for i in range(1000)]
    lines[700] = "1 x"
    lines[300] = "1 y"
    _, bad = feed("\n".join(lines).encode(), n_threads=2, chunk_bytes=50)
    assert bad == [(301, "expected index:value, found 'y'")]


def test_data_error_is_a_value_error() -> None:
    assert issubclass(DataError, ValueError)


# ---- files


PACKERS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda text: pytest.importorskip("zstandard").ZstdCompressor().compress(text),
}
TEXT = "".join(f"{i % 2} {i + 1}:{i / 7!r}\n" for i in range(2000)).encode()


@pytest.mark.parametrize("suffix", [*PACKERS, "txt"])
@pytest.mark.parametrize("kind", PACKERS)
def test_compressed(tmp_path: Path, kind: str, suffix: str) -> None:
    plain = read_svmlight(write(tmp_path, TEXT))
    packed = read_svmlight(write(tmp_path, PACKERS[kind](TEXT), f"data.{suffix}"))
    assert (plain.X != packed.X).nnz == 0
    np.testing.assert_array_equal(plain.y, packed.y)


@pytest.mark.parametrize("kind", PACKERS)
def test_several_compressed_streams_in_one_file(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, PACKERS[kind](TEXT[:101]) + PACKERS[kind](TEXT[101:]))
    np.testing.assert_array_equal(read_svmlight(path).y, read_svmlight(write(tmp_path, TEXT, "plain")).y)


@pytest.mark.parametrize("kind", PACKERS)
@pytest.mark.parametrize("kept", [0.3, 0.99])
def test_truncated_compressed_file(tmp_path: Path, kind: str, kept: float) -> None:
    packed = PACKERS[kind](TEXT)
    path = write(tmp_path, packed[: int(len(packed) * kept)])
    with pytest.raises(DataError, match=r"data.svm: the \w+ data are cut short$"):
        read_svmlight(path)


@pytest.mark.parametrize("kind", PACKERS)
def test_damaged_compressed_file(tmp_path: Path, kind: str) -> None:
    packed = bytearray(PACKERS[kind](TEXT))
    packed[len(packed) // 2 : len(packed) // 2 + 60] = bytes(range(60))
    with pytest.raises(DataError) as caught:
        read_svmlight(write(tmp_path, bytes(packed)))
    assert str(caught.value).startswith(f"{tmp_path / 'data.svm'}:")
    assert "\n" not in str(caught.value)


def test_zstd_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, PACKERS["zst"](TEXT))

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(text_files, "import_module", missing)
    with pytest.raises(ImportError, match=r"data.svm: .* pip install cutsvm\[zstd\]"):
        read_svmlight(path)


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", gzip.compress(b"", mtime=0)])
def test_no_samples(tmp_path: Path, text: str | bytes) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DataError) as caught:
        read_svmlight(path)
    assert str(caught.value) == f"{path}: no samples"


def test_not_text(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data.svm: expected svmlight text, found binary data$"):
        read_svmlight(write(tmp_path, b"\x7fELF\0\1\2"))
    with pytest.raises(DataError, match=r"data.svm: .* found UTF-16$"):
        read_svmlight(write(tmp_path, "1 1:2\n".encode("utf-16")))
    with pytest.raises(DataError, match=r"data.svm:1: expected a number as label, found '\?\?"):
        read_svmlight(write(tmp_path, bytes(range(128, 256))))


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nothing\.svm"):
        read_svmlight(tmp_path / "nothing.svm")
    with pytest.raises(IsADirectoryError):
        read_svmlight(tmp_path)


def test_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(TEXT,))
    writer.start()
    data = read_svmlight(pipe)
    writer.join()
    assert data.y.size == 2000


def test_several_files_are_concatenated(tmp_path: Path) -> None:
    first = write(tmp_path, "1 1:1\n-1 4:2", "a.svm")
    second = write(tmp_path, gzip.compress(b"# c\n1 0:3\n"), "b.svm.gz")
    data = read_svmlight([first, second])
    assert data.zero_based
    np.testing.assert_array_equal(data.X.toarray(), [[0, 1, 0, 0, 0], [0, 0, 0, 0, 2], [3, 0, 0, 0, 0]])
    assert data.source == f"{first} and 1 more"


def test_bad_line_in_second_file(tmp_path: Path) -> None:
    first = write(tmp_path, "1 1:1\n-1 4:2\n", "a.svm")
    second = write(tmp_path, "1 1:3\n1 qid:2\n", "b.svm")
    with pytest.raises(DataError, match=r"b.svm:2: expected no 'qid:'"):
        read_svmlight([first, second])
    with pytest.raises(ValueError, match="at least one file"):
        read_svmlight([])


# ---- columns


@pytest.mark.parametrize(
    ("text", "zero_based", "base", "width"),
    [
        ("1 1:1\n1 3:1\n", "auto", False, 3),
        ("1 1:1\n1 0:1\n", "auto", True, 2),
        ("1 1:1\n1 3:1\n", True, True, 4),
        ("1 1:1\n1 3:1\n", False, False, 3),
        ("1\n", "auto", False, 0),
    ],
)
def test_base(tmp_path: Path, text: str, zero_based: bool | str, base: bool, width: int) -> None:
    data = read_svmlight(write(tmp_path, text), zero_based=zero_based)
    assert (data.zero_based, data.X.shape[1]) == (base, width)


def test_zero_in_one_based_file(tmp_path: Path) -> None:
    path = write(tmp_path, "1 1:1\n\n1 0:1 2:3\n")
    with pytest.raises(DataError) as caught:
        read_svmlight(path, zero_based=False)
    assert str(caught.value) == f"{path}:3: expected indices from 1 on (zero_based is false), found '0:1'"


def test_narrow_data_are_padded(tmp_path: Path) -> None:
    assert read_svmlight(write(tmp_path, "1 2:1\n"), n_features=9).X.shape == (1, 9)


def test_wide_data(tmp_path: Path) -> None:
    path = write(tmp_path, "1 2:1 5:1\n1 5:2 4000000000:3\n1 3:1\n")
    with pytest.raises(DataError, match=r"data.svm: index 5 and 1 more are beyond the 3 features; "):
        read_svmlight(path, n_features=3)
    data = read_svmlight(path, n_features=3, extra="ignore")
    np.testing.assert_array_equal(data.X.toarray(), [[0, 1, 0], [0, 0, 0], [0, 0, 1]])
    assert data.ignored == 2
    assert data.X.indices.dtype == np.int32


def test_huge_indices_are_compacted(tmp_path: Path, read_with: ReadWith) -> None:
    read_with(slice_entries=2)
    big = 2**63 - 1
    path = write(tmp_path, f"1 7:1\n1 3:2 {big}:3\n-1 2147483648:4\n1 7:5 2147483648:6\n")
    data = read_svmlight(path)
    assert data.feature_ids.dtype == np.int64
    assert data.feature_ids.tolist() == [3, 7, 2147483648, big]
    assert data.X.indices.dtype == np.int32
    np.testing.assert_array_equal(data.X.toarray(), [[0, 1, 0, 0], [2, 0, 0, 3], [0, 0, 4, 0], [0, 5, 6, 0]])


def test_largest_int32_index_is_not_compacted(tmp_path: Path) -> None:
    data = read_svmlight(write(tmp_path, "1 1:1 2147483647:2\n"))
    assert data.feature_ids is None
    assert data.X.shape == (1, 2147483647)
    assert data.X.indices.tolist() == [0, 2147483646]


def test_wide_index_in_a_later_block(tmp_path: Path, read_with: ReadWith) -> None:
    read_with(text_bytes=8)
    data = read_svmlight(write(tmp_path, "1 5:1 6:2\n1 8:3\n1 9999999999:4\n1 5:5\n"))
    assert data.feature_ids.tolist() == [5, 6, 8, 9999999999]
    assert data.X.data.tolist() == [1, 2, 3, 4, 5]


def test_given_features(tmp_path: Path) -> None:
    path = write(tmp_path, "1 7:1 9999999999:2\n1 3:4\n")
    ids = np.array([3, 7, 12])
    with pytest.raises(DataError, match="index 9999999999 is beyond the 3 known features"):
        read_svmlight(path, feature_ids=ids)
    data = read_svmlight(path, feature_ids=ids, extra="ignore")
    np.testing.assert_array_equal(data.X.toarray(), [[0, 1, 0], [4, 0, 0]])
    assert (data.ignored, data.feature_ids.tolist()) == (1, [3, 7, 12])
    none = read_svmlight(path, feature_ids=np.empty(0, dtype=np.int64), extra="ignore")
    assert (none.X.shape, none.ignored) == ((2, 0), 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"zero_based": "maybe"}, "zero_based must be"),
        ({"extra": "drop"}, "extra must be"),
        ({"n_features": -1}, "n_features must be"),
        ({"n_features": 2**31}, "n_features must be"),
        ({"n_threads": 0}, "n_threads must be"),
        ({"dtype": np.int32}, "dtype must be float64 or float32, got int32"),
        ({"feature_ids": np.array([2, 1])}, "feature_ids must be"),
        ({"feature_ids": np.array([1.0])}, "feature_ids must be"),
        ({"feature_ids": np.array([1, 2]), "n_features": 3}, "n_features is 3 but there are 2 feature_ids"),
    ],
)
def test_bad_options(tmp_path: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_svmlight(write(tmp_path, "1 1:1\n"), **options)


def test_text_is_not_converted() -> None:
    with pytest.raises(TypeError):
        core.SvmlightReader64().feed(np.zeros(3), 1)


def test_second_take_is_empty() -> None:
    reader = core.SvmlightReader64()
    reader.feed(np.frombuffer(b"1 1:2\n", dtype=np.uint8), 1)
    assert reader.rows == 1
    assert reader.take()[0].tolist() == [1]
    assert reader.take()[0].tolist() == []


# ---- open_dataset


def test_open_dataset(tmp_path: Path) -> None:
    path = write(tmp_path, "1 1:1\n")
    for form in (None, "svmlight"):
        assert open_dataset(path, format=form, zero_based=True, n_features=5).X.shape == (1, 5)


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.csv", "x.CSV.gz", "x.parquet", "x.arrow", "x.feather", "."])
def test_format_follows_the_suffix(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError if name != "." else DataError, match=r"No such file|not a store"):
        open_dataset(tmp_path / name)


def test_open_dataset_options(tmp_path: Path) -> None:
    path = write(tmp_path, "1 1:1\n")
    with pytest.raises(ValueError, match="label= names a column"):
        open_dataset(path, label="y")
    with pytest.raises(ValueError, match="format must be one of"):
        open_dataset(path, format="word")
