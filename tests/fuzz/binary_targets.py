"""Binary data: .npy and .npz, Parquet, Arrow, stores."""

from __future__ import annotations

import io
import json
import os
import shutil
import zipfile
import zlib
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy import sparse

import cutsvm
from cutsvm._utils.errors import DataError
from cutsvm.cli.info import store_facts
from cutsvm.io.open import open_dataset
from cutsvm.io.store import manifest
from cutsvm.io.store.versions import remove_leftovers
from tests.fuzz.mutate import mutate_bytes, mutate_json, mutate_text
from tests.fuzz.target import Target, check_dataset, require, same_matrix

__all__ = ["Arrow", "Npy", "Npz", "Parquet", "Store"]

RNG = np.random.default_rng(0)
DENSE = RNG.normal(size=(6, 3))
LABELS = np.array([0, 1, 0, 1, 1, 0])


def npy_bytes(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


class Npy(Target):
    """.npy against NumPy."""

    name, suffix = "npy", ".npy"

    def make_seeds(self) -> list[bytes]:
        kinds = [DENSE, DENSE.astype("f4"), np.asfortranarray(DENSE), DENSE.astype(">f8"), (10 * DENSE).astype("i2")]
        kinds += [DENSE > 0, DENSE.astype(np.longdouble), np.arange(12, dtype=np.uint64).reshape(4, 3), np.ones((2, 1))]
        return [npy_bytes(array) for array in kinds]

    def make(self, random: Random) -> bytes:
        seed = random.choice(self.seeds)
        if random.random() < 0.4:  # the header as text, in its own length
            size = int.from_bytes(seed[8:10], "little")
            head = mutate_text(random, seed[10 : 10 + size], [])[:60000]
            return seed[:8] + len(head).to_bytes(2, "little") + head + seed[10 + size :]
        return mutate_bytes(random, seed, self.seeds)

    def read(self, data: bytes) -> None:
        label = 0 if len(data) % 2 else -1
        found = open_dataset(self.path, label=label)
        check_dataset(found)
        array = np.load(io.BytesIO(data), allow_pickle=False)
        require(array.ndim == 2, "a matrix")
        column = label % array.shape[1]
        same_matrix(found.X, np.delete(array, column, axis=1))
        same_matrix(found.y, array[:, column])


class Npz(Target):
    """.npz against NumPy and SciPy."""

    name, suffix = "npz", ".npz"

    def make_seeds(self) -> list[bytes]:
        matrix = sparse.random(6, 5, density=0.5, random_state=1, format="csr")
        csr = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": np.array(matrix.shape)}
        texts = np.array(["a", "bc", "a", "d", "d", "a"])
        many = [
            {"X": DENSE, "y": LABELS},
            {"X": DENSE.astype("f4"), "y": texts, "sample_weight": np.arange(6.0), "qid": LABELS},
            {"X": np.asfortranarray(DENSE), "y": LABELS.astype("f8"), "qid": texts},
            {**csr, "y": LABELS},
            {**csr, "indices": matrix.indices.astype(np.int64), "y": texts.astype("S")},
        ]
        self.members = [{name: npy_bytes(array) for name, array in parts.items()} for parts in many]
        return [zipped(parts, packed=packed) for parts in self.members for packed in (False, True)]

    def make(self, random: Random) -> bytes:
        if random.random() < 0.3:
            return mutate_bytes(random, random.choice(self.seeds), self.seeds)
        # A member is another one, with checksums that are right.
        parts = dict(random.choice(self.members))
        intact = set(parts.values())
        for _ in range(random.choice((1, 1, 2))):
            name = random.choice(list(parts))
            change = random.random()
            if change < 0.6:
                parts[name] = mutate_bytes(random, parts[name], list(parts.values()))
            elif change < 0.9 and parts[name] in intact:
                parts[name] = npy_bytes(other_array(random, parts[name]))
            else:
                del parts[name]
                if not parts:
                    break
        return zipped(parts, packed=random.random() < 0.5)

    def read(self, data: bytes) -> None:
        found = open_dataset(self.path)
        check_dataset(found)
        archive = np.load(io.BytesIO(data), allow_pickle=False)
        if "X" in archive.files:
            same_matrix(found.X, archive["X"])
        else:
            shape = tuple(archive["shape"].tolist())
            values = archive["data"]
            values = values.view(np.uint8) != 0 if values.dtype == bool else values
            with np.errstate(over="ignore"):
                parts = values.astype(found.X.dtype), archive["indices"].astype(np.int64), archive["indptr"]
            matrix = sparse.csr_matrix(parts, shape=shape)
            matrix.sum_duplicates()
            require(found.X.shape == shape and (found.X != matrix).nnz == 0, "the entries of SciPy's")
        y = archive["y"]
        if y.dtype.kind == "S":
            require(found.y.tolist() == [text.decode() for text in y.tolist()], "the labels")
        else:
            same_matrix(found.y, y)
        for name, column in (("sample_weight", found.weights), ("qid", found.qid)):
            require((name in archive.files) == (column is not None), f"{name} as it is there")


def zipped(parts: dict[str, bytes], *, packed: bool) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content)
    return stream.getvalue()


def other_array(random: Random, content: bytes) -> np.ndarray:
    """The array with another value, shape or type."""
    array = np.load(io.BytesIO(content))
    change = random.randrange(4)
    if change == 0 and array.dtype.kind in "iuf" and array.size:
        flat = array.reshape(-1).copy()
        edges = [-1, 0, 1, 5, 6, 7, 2**31 - 1, -(2**31)] + ([np.nan, np.inf, 1e308] if array.dtype.kind == "f" else [])
        with np.errstate(over="ignore"):
            flat[random.randrange(flat.size)] = random.choice(edges)
        return flat.reshape(array.shape)
    if change == 1:
        kinds = ["f8", "f4", "f2", ">f8", "i8", "i4", "i1", "u8", ">i4", "?", "c16", "U5", "S5", "M8[s]", "g"]
        with np.errstate(all="ignore"):
            try:
                return array.astype(random.choice(kinds))
            except (ValueError, TypeError, UnicodeError):
                return array
    if change == 2:
        return array[: random.randrange(len(array) + 1)] if array.ndim else array
    return array.reshape(random.choice([(-1,), (1, -1), (-1, 1), (1, 1, -1)]))


TABLES = [
    pa.table({"label": [0, 1, 0, 1], "a": [1.0, 2.0, 3.0, 4.0], "b": pa.array([1, 2, 3, 4], pa.int8())}),
    pa.table({"label": ["x", "yy", "x", "zzz"], "a": [1.0, 2.0, 3.0, 4.0], "sample_weight": [1.0, 0.0, 0.5, 2.0]}),
    pa.table({"y": pa.array(["x", "y", "x"]).dictionary_encode(), "a": pa.array([1.5, 2.5, 3.5], pa.float32())}),
    pa.table({"class": [True, False, True], "qid": [1, 1, 2], "a": pa.array([1, 2, None or 3], pa.decimal128(5, 2))}),
    pa.table({"label": pa.array(["p", "q"], pa.large_string()), "a": pa.array([0.5, 0.25], pa.float16())}),
    pa.table(
        {
            "label": [0, 1, 1],
            "city": ["Rome", None, "Oslo"],
            "kind": pa.array(["u", "v", "u"]).dictionary_encode(),
            "day": pa.array([1, None, 3], pa.date32()),
            "at": pa.array([1, 2, 3], pa.timestamp("ms")),
            "a": [1.0, None, float("nan")],
        }
    ),
]


class Table(Target):
    """Tables against pyarrow, which reads the same bytes from memory."""

    def load(self, data: bytes) -> pa.Table:
        raise NotImplementedError

    def read(self, data: bytes) -> None:
        found = open_dataset(self.path)
        check_dataset(found)
        table = self.load(data)
        table.validate(full=True)
        require(table.num_rows == len(found.y), "all rows")
        if len(set(table.column_names)) < table.num_columns:
            return
        for place, name in enumerate(found.feature_names or []):
            if name not in table.column_names:
                self._check_category(name, table, found.X[:, [place]])
                continue
            column = table[name]
            if pa.types.is_decimal(column.type):
                column = column.cast(pa.float64())
            if pa.types.is_temporal(column.type) or column.null_count or pc.any(_is_nan(column)).as_py():
                continue  # days and means are compared with scikit-learn's elsewhere
            values = column.to_numpy()
            with np.errstate(over="ignore"):
                require(np.array_equal(found.X[:, place], values.astype(found.X.dtype)), f"the values of {name!r:.40}")

    @staticmethod
    def _check_category(name: str, table: pa.Table, X: Any) -> None:
        """A column such as city=Rome has 1 where the text is Rome."""
        where = next((known for known in table.column_names if name.startswith(f"{known}=")), None)
        require(where is not None, f"a column for {name!r:.40}")
        texts = table[where].cast(pa.string()).to_pylist()
        expected = np.array([text == name[len(str(where)) + 1 :] for text in texts], dtype=float)
        dense = X.toarray() if hasattr(X, "toarray") else X
        require(np.array_equal(dense[:, 0], expected), f"the rows of {name!r:.40}")


def _is_nan(column: Any) -> Any:
    return pc.is_nan(column) if pa.types.is_floating(column.type) else pa.array([False])


class Parquet(Table):
    name, suffix = "parquet", ".parquet"

    def make_seeds(self) -> list[bytes]:
        seeds = []
        options: list[dict[str, Any]] = [
            {"compression": "snappy"},
            {"compression": "none", "use_dictionary": False},
            {"compression": "zstd", "row_group_size": 2},
            {"compression": "none", "write_page_checksum": True, "data_page_version": "2.0"},
        ]
        for table in TABLES:
            for option in options:
                stream = io.BytesIO()
                pq.write_table(table, stream, **option)
                seeds.append(stream.getvalue())
        return seeds

    def load(self, data: bytes) -> pa.Table:
        return pq.ParquetFile(io.BytesIO(data)).read()


class Arrow(Table):
    name, suffix = "arrow", ".arrow"

    def make_seeds(self) -> list[bytes]:
        seeds = []
        for table in TABLES:
            for make in (pa.ipc.new_file, pa.ipc.new_stream):
                for codec in (None, "lz4", "zstd"):
                    stream = io.BytesIO()
                    with make(stream, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
                        writer.write_table(table, max_chunksize=2)
                    seeds.append(stream.getvalue())
        return seeds

    def load(self, data: bytes) -> pa.Table:
        try:
            return pa.ipc.open_file(io.BytesIO(data)).read_all()
        except pa.ArrowInvalid:
            return pa.ipc.open_stream(io.BytesIO(data)).read_all()


class Store(Target):
    """Stores. An input is the number of a seed, how, the name of a file, and its new content.

    "raw": the checksums stay, so that any change has to be refused. "forged": they are made to fit, so that the checks
    behind them are reached: what is accepted must be consistent. The manifest is changed as text or field by field.
    """

    name, suffix = "store", ""

    def make_seeds(self) -> list[bytes]:
        csr = sparse.random(9000, 6, density=0.3, random_state=1, format="csr")
        labels = np.arange(9000) % 3
        texts = np.array(["red", "green", "blue"])[labels]
        few = slice(0, 7)
        makers: list[Any] = [
            lambda path: cutsvm.convert((DENSE, LABELS), path),
            lambda path: cutsvm.convert(iter([(csr[few], texts[few], np.arange(7.0), labels[few])]), path),
            lambda path: cutsvm.convert(
                iter([(DENSE.astype("f4"), LABELS * 0.5, np.ones(6), LABELS.astype(str))]), path
            ),
            lambda path: cutsvm.convert((csr, labels), path, block_bytes=1 << 16),
            lambda path: cutsvm.convert((csr, labels), path, block_bytes=1 << 16).delete(np.arange(9000) % 7 == 2),
        ]
        self.stores, self.files, self.whole = [], [], []
        for number, make in enumerate(makers):
            path = self.folder / f"store-{number}"
            if path.exists():
                shutil.rmtree(path)
            make(path)
            remove_leftovers(path)
            self.stores.append(path)
            names = sorted(
                os.path.relpath(os.path.join(root, file), path) for root, _, files in os.walk(path) for file in files
            )
            self.files.append({self.plain(name): (path / name).read_bytes() for name in names})
            self.names = getattr(self, "names", {}) | {(number, self.plain(name)): name for name in names}
            self.whole.append(open_dataset(path))
        return [b""]

    @staticmethod
    def plain(name: str) -> str:
        """The name without the folder of the data, which is another one each time."""
        return name.rpartition("/")[2]

    def make(self, random: Random) -> bytes:
        number = random.choice((0, 1, 1, 2, 3, 4))
        files = self.files[number]
        name = manifest.NAME if random.random() < 0.4 else random.choice(sorted(files))
        how = random.choice(("raw", "forged", "forged"))
        content = files[name]
        if name == manifest.NAME and how == "forged":
            content = json.dumps(mutate_json(random, self.shared(json.loads(content)))).encode()
        elif name.endswith(".json"):
            content = mutate_text(random, content, [])
        else:
            content = mutate_bytes(random, content, list(files.values()))
        return f"{number} {how} {name}\n".encode() + content

    @staticmethod
    def shared(fields: dict[str, Any]) -> dict[str, Any]:
        """The manifest as it is in every run."""
        names = {segment["data"]: f"DATA{k}" for k, segment in enumerate(fields["segments"])}
        text = json.dumps(fields)
        for part in fields["parts"].values():  # deleted rows and the columns after that have a folder of their own
            names.setdefault(part["file"].partition("/")[0], "COLUMNS")
        for name, plain in names.items():
            text = text.replace(name, plain)
        shared: dict[str, Any] = json.loads(text)
        return shared

    def check(self, data: bytes) -> bool:
        head, _, content = data.partition(b"\n")
        number, how, plain = head.decode().split(" ")
        path = self.path = self.stores[int(number)]
        name = self.names[int(number), plain]
        originals = self.files[int(number)]
        folder = os.path.dirname(self.names[int(number), "y.bin"])
        try:
            if plain == manifest.NAME and how == "forged":
                fields = json.loads(originals[manifest.NAME])
                for k, segment in enumerate(fields["segments"]):
                    content = content.replace(f"DATA{k}".encode(), segment["data"].encode())
                self.forge(path, content.replace(b"COLUMNS", folder.encode()))
            else:
                (path / name).write_bytes(content)
                if how == "forged" and plain != manifest.NAME:
                    self.fit_checksum(path, plain, content, originals)
            return self.read_store(int(number), how)
        except DataError as error:
            require(os.fspath(path) in str(error), f"a clear message, not {error!r:.200}")
            return False
        finally:
            (path / name).write_bytes(originals[plain])
            (path / manifest.NAME).write_bytes(originals[manifest.NAME])

    @staticmethod
    def forge(path: Any, content: bytes) -> None:
        fields = json.loads(content)
        if isinstance(fields, dict):
            fields.pop("sha256", None)
            fields["sha256"] = manifest._digest(fields)
        (path / manifest.NAME).write_text(json.dumps(fields))

    def fit_checksum(self, path: Any, plain: str, content: bytes, originals: dict[str, bytes]) -> None:
        fields = json.loads(originals[manifest.NAME])
        if plain.startswith("block-"):
            fields["segments"][0]["blocks"][int(plain[6:12])][2] = zlib.crc32(content)
        else:
            part = fields["parts"][plain.partition(".")[0]]
            part.update(size=len(content), crc32=zlib.crc32(content))
        self.forge(path, json.dumps(fields).encode())

    def read_store(self, number: int, how: str) -> bool:
        found = open_dataset(self.path)
        if found.shape[0] * max(1, found.shape[1]) > 10**8 and not found.store.sparse:
            return True
        check_dataset(found)
        require(
            found.store.squares.shape == found.y.shape and found.store.labels.size, "labels and squares of all rows"
        )
        whole = found.X.astype(np.float64)
        squares = (
            np.asarray(whole.multiply(whole).sum(axis=1)).ravel() if found.store.sparse else (whole**2).sum(axis=1)
        )
        require(np.allclose(found.store.squares, squares, rtol=1e-6, atol=0.0), "the squares of the rows")
        store_facts(os.fspath(self.path))
        if how == "raw":
            whole = self.whole[number]
            same = (found.X != whole.X).nnz == 0 if found.store.sparse else np.array_equal(found.X, whole.X)
            require(
                same and np.array_equal(found.y, whole.y) and found.store.manifest == whole.store.manifest, "a refusal"
            )
        return True
