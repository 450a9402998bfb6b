"""The files that a user names: paths, folders, globs, addresses such as s3://bucket/key, and standard input."""

from __future__ import annotations

import glob
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from cutsvm._utils.errors import DataError
from cutsvm.io.files import SourceFile
from cutsvm.io.formats.arrow_values import arrow
from cutsvm.io.settings import read_settings
from cutsvm.io.store.manifest import NAME, is_store

STDIN = "-"
# Formats by the suffix of the file; files with other suffixes are read as svmlight text.
_SUFFIXES = {f".{kind}": kind for kind in ("npy", "npz", "csv", "parquet", "arrow")}
_SUFFIXES |= {".tsv": "csv", ".feather": "arrow", ".pq": "parquet"}
# Files of a folder that are read as svmlight text; Spark calls them part-00000.
_TEXTS = (".svm", ".svmlight", ".libsvm", ".txt", ".dat", ".data", ".t", ".tr", ".train", ".test")
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\x93NUMPY": "npy", b"PK\x03\x04": "npz"}
FORMATS = ("svmlight", "npy", "npz", "csv", "parquet", "arrow", "store")


@dataclass(frozen=True, eq=False)
class Input:
    """A file to read. keys: what the names of its folders state, as year=2024; held: a file that is open already."""

    path: str
    filesystem: Any = None  # of fsspec; None: a local file
    keys: dict[str, str] = field(default_factory=dict)
    held: SourceFile | None = None
    shown: str | None = None

    @property
    def name(self) -> str:
        return self.shown or self.path

    @property
    def local(self) -> bool:
        return self.filesystem is None

    @property
    def size(self) -> int | None:
        """Bytes, if they are known."""
        if self.filesystem is not None:
            return int(self.filesystem.size(self.path) or 0)
        if self.path == STDIN and self.held is None:
            return None
        return os.path.getsize(self.path) if self.held is None else self.held.version.size

    @property
    def can_be_read_again(self) -> bool:
        """Whether it is a file, and no pipe."""
        return not self.local or self.held is not None or os.path.isfile(self.path)

    @contextmanager
    def open(self) -> Iterator[io.BufferedReader]:
        """The bytes, as a stream."""
        if self.path == STDIN:
            yield _stdin()  # it stays open
        elif self.filesystem is None:
            with open(self.path, "rb") as stream:
                yield stream
        else:
            with io.BufferedReader(self.filesystem.open(self.path, "rb")) as remote:
                yield remote

    def arrow_file(self) -> Any:
        """The file as pyarrow opens it."""
        fs = arrow(self.name, "pyarrow.fs")
        return fs.PyFileSystem(fs.FSSpecHandler(self.filesystem)).open_input_file(self.path)


def is_address(path: str) -> bool:
    """Whether the path is an address for fsspec, as s3://bucket/key."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*(::|://)", path) is not None


def find(path: str) -> list[Input]:
    """The files that a path names: itself, those of a folder and its folders, or those that match a glob."""
    if path == STDIN:
        return [Input(STDIN, shown="standard input")]
    if is_address(path):
        return _remote(path)
    if os.path.isdir(path) and not _may_be_store(path):
        return _in_folder(path)
    if glob.has_magic(path) and not os.path.exists(path):
        found = sorted(glob.glob(path, recursive=True))
        if not found:
            raise FileNotFoundError(2, "No such file or directory", path)
        return with_keys([file for match in found for file in find(match)])
    os.stat(path)  # a missing file is the same error for every format
    return [Input(path)]


def _may_be_store(path: str) -> bool:
    """Whether a folder is a store, complete or not, or a damaged one."""
    return is_store(path) or os.path.exists(os.path.join(path, NAME))


def _in_folder(folder: str) -> list[Input]:
    found = []
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        found += [os.path.join(where, name) for name in sorted(files) if not name.startswith((".", "_"))]
    tables = [path for path in found if _suffix(path) in _SUFFIXES]
    texts = [path for path in found if _suffix(path) in _TEXTS or Path(path).name.startswith("part-")]
    if not tables and not texts:
        raise DataError(f"{folder}: not a store: it has no {NAME}; nor has it files of data")
    return [Input(path, keys=_keys(path, folder)) for path in sorted(tables or texts)]


def _remote(address: str) -> list[Input]:
    core = arrow(address, "fsspec.core")
    try:
        filesystem, path = core.url_to_fs(address)
        if glob.has_magic(path):
            paths = sorted(filesystem.glob(path))
        elif filesystem.isdir(path):
            paths = sorted(filesystem.find(path))
        else:
            paths = [path] if filesystem.exists(path) else []
    except (ValueError, ImportError) as error:  # an unknown protocol, or its library is not installed
        raise DataError(f"{address}: {error}") from None
    if not paths:
        raise FileNotFoundError(2, "No such file or directory", address)
    protocol = address.partition("://")[0]
    hidden = [path for path in paths if Path(path).name.startswith((".", "_"))]
    left = [path for path in paths if path not in hidden] or paths
    return with_keys([Input(path, filesystem, shown=f"{protocol}://{path.lstrip('/')}") for path in left])


def _keys(path: str, folder: str) -> dict[str, str]:
    """What the names of the folders below this one state: year=2024/month=1/part-0.parquet."""
    parts = [part.partition("=") for part in Path(os.path.relpath(path, folder)).parts[:-1]]
    return {unquote(key): unquote(value) for key, equals, value in parts if equals and key}


def with_keys(files: list[Input]) -> list[Input]:
    """Several files with what the names of their folders state, below the last one that all are in."""
    if len(files) < 2 or any(file.keys or file.path == STDIN for file in files):
        return files
    paths = [os.path.abspath(file.path) for file in files]
    folder = os.path.commonpath([os.path.dirname(path) for path in paths])
    return [replace(file, keys=_keys(path, folder)) for file, path in zip(files, paths, strict=True)]


def to_local(file: Input) -> Input:
    """A local file with the same bytes, for what is not read once and in order; it is removed when it is closed."""
    if file.local and (file.held is not None or os.path.isfile(file.path)):
        return file
    copy = tempfile.NamedTemporaryFile(prefix="cutsvm-", delete=False)
    try:
        with file.open() as stream, copy:
            shutil.copyfileobj(stream, copy, read_settings().batch_bytes)
        held = SourceFile(copy.name)
    finally:
        os.unlink(copy.name)
    held.path = file.name
    return Input(file.path, keys=file.keys, held=held, shown=file.name)


def common_format(files: Sequence[Input], name: str) -> str:
    """The format by the names of the files; DataError if they differ."""
    kinds = [_format_by_name(file) for file in files]
    for file, kind in zip(files, kinds, strict=True):
        if kind != kinds[0]:
            raise DataError(
                f"{name}: files of several formats: {files[0].name} is read as {kinds[0]}, {file.name} as {kind}; "
                "format= states one for all"
            )
    return kinds[0]


def _format_by_name(file: Input) -> str:
    if file.local and os.path.isdir(file.path):
        return "store"
    if file.path == STDIN:
        return _peeked()
    return _SUFFIXES.get(_suffix(file.path), "svmlight")


def _peeked() -> str:
    """The format of standard input by its first bytes; text is svmlight unless the user says that it is CSV."""
    head = _stdin().peek(8)
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), "svmlight")


def _stdin() -> io.BufferedReader:
    stream = sys.stdin.buffer
    if not isinstance(stream, io.BufferedReader):
        raise DataError("standard input: it is no stream of bytes")
    return stream


def _suffix(path: str) -> str:
    """The suffix, without that of a compression: .csv of data.csv.gz."""
    file = Path(path.lower())
    return (file.with_suffix("") if file.suffix in _COMPRESSED else file).suffix


def format_of(path: str | os.PathLike[str]) -> str:
    """The format by the name of a file, a folder of files, a glob or an address."""
    name = os.fspath(path)
    if os.path.isdir(name) and _may_be_store(name):
        return "store"
    return common_format(find(name), name)
