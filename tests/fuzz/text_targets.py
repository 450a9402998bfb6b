"""Targets that are text: svmlight, plain and compressed, CSV, LIBLINEAR models."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import re
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import zstandard

from cutsvm._utils.errors import DataError
from cutsvm.io.dataset import Dataset
from cutsvm.io.formats.svmlight import read_svmlight
from cutsvm.io.models.model_file import load_model
from cutsvm.io.models.model_format import ModelFileError
from cutsvm.io.open import SvmlightSource, open_dataset
from tests.fuzz.mutate import mutate_bytes, mutate_text
from tests.fuzz.target import Target, check_dataset, require
from tests.support.reference import svmlight as reference

__all__ = ["Compressed", "Csv", "Liblinear", "Svmlight"]

SVMLIGHT_SEEDS = [
    b"+1 1:0.5 3:-2e-1 # c: d\r\n\n-1 2:1 \n2.5 7:+7",
    b"1 qid:4 3:0.5 1:-2e-1\n-1 qid:4\n0 qid:-9 4000000000:7 5:.5\n",
    b"1 qid:a:b 0:1\n2 qid:c 1:12345678901234567890e-10 2:1.\n3 qid:7 2147483647:1e22\n",
    b"# head\n" + b"".join(b"%d %d:%d.25 %d:1e-%d\n" % (i % 3, i + 1, i, i + 5, i) for i in range(8)),
    b"1 1:0.000000000000000000012345678901234567 2:1e-320 3:9007199254740993\n-1 9:-0\n",
]


class Svmlight(Target):
    """svmlight text against the parser in plain Python."""

    name, suffix, text = "svmlight", ".svm", True

    def make_seeds(self) -> list[bytes]:
        return SVMLIGHT_SEEDS

    def read(self, data: bytes) -> None:
        self.compare(data)

    def compare(self, text: bytes | None) -> None:
        """Reads the file, which holds this text; None: which is damaged, and has to be refused."""
        expected = None if text is None else _reference(text)
        try:
            found = read_svmlight(self.path, n_threads=1)
        except DataError:
            require(expected is None, "what the reference parser accepts")
            raise
        require(expected is not None, "a refusal, as by the reference parser")
        assert expected is not None
        check_dataset(found)
        require(_rows(found) == expected.rows, "the entries of the reference parser")
        require(found.y.tolist() == expected.labels, "the labels of the reference parser")
        queries = [] if found.qid is None else found.qid.tolist()
        require(queries == expected.queries, "the queries of the reference parser")
        if len(text or b"") % 4 == 0:
            self.compare_batches(expected)

    def compare_batches(self, expected: reference.Samples) -> None:
        """The way of `convert`: some lines at a time."""
        try:
            batches = list(SvmlightSource([str(self.path)], "auto"))
        except DataError:
            require(any(index >= 2**31 for row in expected.rows for index, _ in row), "the same some lines at a time")
            return
        rows = [
            [(int(j), float(v)) for j, v in zip(row.indices, row.data, strict=True)]
            for batch in batches
            for row in batch.X
        ]
        require(rows == expected.rows, "the same entries some lines at a time")


def _reference(text: bytes) -> reference.Samples | None:
    if text.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in text[:4096]:
        return None
    samples = reference.parse(text.removeprefix(b"\xef\xbb\xbf"))
    return samples if samples.labels and not samples.bad else None


def _rows(data: Dataset) -> list[list[tuple[int, float]]]:
    """(index as written, value) of each row."""
    X = data.X
    shift = 0 if data.zero_based else 1
    indices = X.indices + np.int64(shift) if data.feature_ids is None else data.feature_ids[X.indices]
    pairs = list(zip(indices.tolist(), X.data.tolist(), strict=True))
    return [pairs[a:b] for a, b in pairwise(X.indptr)]


_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_PACK = {
    "gzip": lambda text: gzip.compress(text, mtime=0),
    "bzip2": bz2.compress,
    "xz": lambda text: lzma.compress(text, preset=0),
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
}
_UNPACK_ERRORS = (OSError, EOFError, ValueError, zstandard.ZstdError, lzma.LZMAError, gzip.zlib.error)


class Compressed(Svmlight):
    """The same, packed: what is damaged is refused, what is not is read as its text."""

    name, suffix, text = "svmlight-compressed", ".svm.gz", False

    def make_seeds(self) -> list[bytes]:
        return [pack(text) for pack in _PACK.values() for text in SVMLIGHT_SEEDS]

    def make(self, random: Random) -> bytes:
        if random.random() < 0.3:
            text = mutate_text(random, random.choice(SVMLIGHT_SEEDS), SVMLIGHT_SEEDS)
            return random.choice(list(_PACK.values()))(text)
        if random.random() < 0.1:
            return b"".join(random.choices(self.seeds, k=2))
        return super().make(random)

    def read(self, data: bytes) -> None:
        kind = next((name for magic, name in _MAGIC.items() if data.startswith(magic)), None)
        text: bytes | None = data
        try:
            if kind is not None:
                text = _unpacked(kind, data)
        except _UNPACK_ERRORS:
            text = None
        self.compare(text)


def _unpacked(kind: str, data: bytes) -> bytes:
    if kind == "gzip":
        return gzip.decompress(data)
    if kind == "bzip2":
        return bz2.decompress(data)
    if kind == "xz":
        return lzma.LZMAFile(io.BytesIO(data)).read()
    whole, rest = b"", data
    while rest:
        frame = zstandard.ZstdDecompressor().decompressobj()
        whole += frame.decompress(rest)
        if not frame.eof:
            raise EOFError
        rest = frame.unused_data
    return whole


class Csv(Target):
    """CSV against Python's own reader."""

    name, suffix, text = "csv", ".csv", True

    def make_seeds(self) -> list[bytes]:
        return [
            b"a,b,label\n1,2.5,0\n-3e2,4,1\n0,0.1,0\n",
            b"label;a;b;sample_weight\nred;1;2;0.5\nblue;3;4;1\n",
            b'"a"\tb\tlabel\tqid\r\n1\t2\t1.5\t3\r\n4\t5\t2\t3\r\n',
            b"\xef\xbb\xbfy,x\n1,2\n0,3\n",
            b"label,a\n" + b"".join(b"%d,%d.5\n" % (i % 2, i) for i in range(20)),
        ]

    def read(self, data: bytes) -> None:
        if len(data) % 2:  # any table, whose texts and missing values are not compared
            check_dataset(open_dataset(self.path))
            return
        found = open_dataset(self.path, categorical="refuse", missing="refuse")
        check_dataset(found)
        text = data.decode("utf-8-sig", errors="replace")
        first = re.split("[\r\n]", text, maxsplit=1)[0]
        delimiter = max("\t,;", key=first.count)
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
        names = [name.strip() for name in rows[0]]
        if all(map(_is_number, names)):
            names = [f"f{k}" for k in range(len(names))]
        else:
            rows = rows[1:]
        places = [names.index(name) for name in found.feature_names or []]
        X = [[float(row[place]) for place in places] for row in rows]
        require(found.X.shape == (len(rows), len(places)), "as many rows and columns")
        require(np.array_equal(found.X, np.array(X).reshape(found.X.shape).astype(found.X.dtype)), "the same numbers")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class Liblinear(Target):
    """LIBLINEAR's text models against a reader that splits at blanks."""

    name, suffix, text = "liblinear", ".model", True
    refusals = (ModelFileError,)

    def make_seeds(self) -> list[bytes]:
        head = b"solver_type %s\nnr_class %d\nlabel %s\nnr_feature 3\nbias %s\nw\n"
        return [
            head % (b"L2R_L1LOSS_SVC_DUAL", 2, b"1 -1", b"1") + b"0.25 \n-1.5 \n0 \n0.125 \n",
            head % (b"MCSVM_CS", 3, b"3 1 2", b"-1") + b"1 2 3 \n4 5 6 \n1e-5 0 -7 \n",
            head % (b"MCSVM_CS", 2, b"5 4", b"2") + b"1 2 \n4 5 \n1e-5 0 \n0.5 1 \n",
            head % (b"L2R_LR", 2, b"-1 1", b"-1") + b"1e300 -2 3\n",
            b"solver_type L2R_L2LOSS_SVR\nnr_class 2\nnr_feature 3\nbias 0.5\nw\n0.25 \n-1.5 \n0 \n0.125 \n",
            b"solver_type ONECLASS_SVM\nnr_class 2\nnr_feature 3\nbias -1\nrho 0.75\nw\n0.25 \n-1.5 \n0 \n",
        ]

    def make(self, random: Random) -> bytes:
        seed = random.choice(self.seeds)
        return (mutate_text if random.random() < 0.7 else mutate_bytes)(random, seed, self.seeds)

    def read(self, data: bytes) -> None:
        model = load_model(self.path)
        estimator = model.estimator
        words = dict(
            line.strip().split(None, 1) for line in data.partition(b"\nw")[0].split(b"\n") if b" " in line.strip()
        )
        numbers = np.array(
            [float(word) for word in re.split(rb"(?m)^[ \t\r\v\f]*w(?:[ \t].*)?$", data, maxsplit=1)[1].split()]
        )
        features, bias = int(words[b"nr_feature"]), float(words[b"bias"])
        if b"label" not in words:
            self.read_one_row(estimator, numbers, features, bias, float(words.get(b"rho", b"0")))
            return
        labels = [int(label) for label in words[b"label"].split()]
        weights = numbers.reshape(features + (bias >= 0), -1).T
        require(estimator.classes_.tolist() == sorted(labels), "the labels of the file")
        require(estimator.coef_.shape == (1 if len(labels) == 2 else len(labels), features), "weights for all features")
        require(np.isfinite(estimator.coef_).all() and np.isfinite(estimator.intercept_).all(), "finite weights")
        probe = np.linspace(-1.0, 1.0, 2 * features).reshape(2, features)
        scores = probe @ weights[:, :features].T + (bias * weights[:, -1] if bias >= 0 else 0.0)
        if not np.isfinite(scores).all() or np.abs(numbers).max(initial=0.0) > 1e150:
            return
        if scores.shape[1] == 1:
            scores = np.hstack([scores, -scores])
        best = np.sort(scores, axis=1)
        clear = best[:, -1] - best[:, -2] > 1e-6 * (1.0 + np.abs(scores).max(axis=1))
        predicted = estimator.predict(probe) if features else np.array(labels)[scores.argmax(axis=1)]
        require((predicted == np.array(labels)[scores.argmax(axis=1)])[clear].all(), "the predictions of the weights")

    def read_one_row(self, estimator: Any, numbers: Any, features: int, bias: float, rho: float) -> None:
        """A regressor or a one-class model: one row of weights, whose scores are predictions or decide."""
        weights = np.atleast_2d(estimator.coef_)
        require(len(numbers) == features + (bias >= 0), "one weight for every feature")
        require(weights.shape == (1, features) and not hasattr(estimator, "classes_"), "one row of weights")
        require(bool(np.array_equal(weights[0], numbers[:features])), "the weights of the file")
        require(bool(np.isfinite(estimator.intercept_).all()), "a finite intercept")
        expected = (bias * numbers[-1] if bias >= 0 else 0.0) - rho
        require(bool(np.isclose(estimator.intercept_[0], expected, rtol=1e-12)), "the intercept of the file")
