"""The format of model files and checkpoints: a JSON header and raw arrays, checked when they are read.

    cutsvm-model 1 header=H total=T sha256=S      T: bytes of the file, S: of everything after this line
    {... "arrays": [{"name", "dtype", "shape", "offset", "length"}, ...]}     H bytes, padded with spaces
    the arrays, little-endian, each starting at a multiple of 64 bytes after the header

A file holds nothing to execute. No number in a header can make the reader allocate more than the file holds.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, BinaryIO, Literal

import numpy as np

from cutsvm._utils.types import Array
from cutsvm.io.files import parse_json

MAGIC = b"cutsvm-model"
VERSION = 1  # of either kind
_FIRST_LINE = re.compile(rb"cutsvm-[a-z]+ 1 header=(\d{1,18}) total=(\d{1,18}) sha256=([0-9a-f]{64})")
_MAX_FIRST_LINE = 160
_ALIGN = 64
_DTYPES = {"<f8": np.float64, "<f4": np.float32, "<i8": np.int64, "<i4": np.int32}
_CHUNK = 1 << 20
_MAX_LENGTH = 1 << 48  # of a dimension: an empty array could state any

Kind = Literal["model", "checkpoint"]


class ModelFileError(ValueError):
    """A model file or checkpoint that cannot be read, or a model that cannot be written in the requested format."""


class Expect:
    """Raises `ModelFileError` with the name of the file for a condition that does not hold."""

    def __init__(self, name: str) -> None:
        self.name = name

    def that(self, holds: bool, what: str) -> None:
        if not holds:
            raise ModelFileError(f"{self.name}: expected {what}")


def pack(header: Mapping[str, Any], arrays: Mapping[str, Array], kind: Kind = "model") -> list[bytes | memoryview]:
    """The bytes of a file in pieces, without copies of the arrays. `header` must not have a key "arrays"."""
    table: list[dict[str, Any]] = []
    pieces: list[bytes | memoryview] = []
    offset = 0
    for name, array in arrays.items():
        dtype = np.dtype(array.dtype).newbyteorder("<").str
        if dtype not in _DTYPES:
            raise TypeError(f"array {name!r} has dtype {array.dtype}; expected one of {sorted(_DTYPES)}")
        data = np.ascontiguousarray(array, dtype=dtype).reshape(-1).view(np.uint8).data
        entry = {"name": name, "dtype": dtype, "shape": list(array.shape)}
        table.append({**entry, "offset": offset, "length": len(data)})
        padding = -len(data) % _ALIGN
        pieces += [data, bytes(padding)]
        offset += len(data) + padding
    text = json.dumps({**header, "arrays": table}, allow_nan=False).encode("ascii")
    text += b" " * (-(len(text) + 1) % _ALIGN) + b"\n"
    digest = hashlib.sha256(text)
    for piece in pieces:
        digest.update(piece)
    return [_first_line(kind, len(text), len(text) + offset, digest.hexdigest()), text, *pieces]


def _first_line(kind: Kind, header: int, after: int, digest: str) -> bytes:
    """The first line; the total that it states includes its own length."""
    total = after
    while True:
        line = f"cutsvm-{kind} {VERSION} header={header} total={total} sha256={digest}\n".encode("ascii")
        if len(line) + after == total:
            return line
        total = len(line) + after


@cache
def package_version() -> str:
    """The installed version of cutsvm, "unknown" when run from a source tree."""
    try:
        return version("cutsvm")
    except PackageNotFoundError:
        return "unknown"


def read_bytes(stream: BinaryIO, limit: int | None = None) -> bytes:
    """The rest of a file or pipe, at most `limit` bytes; allocates only what is read."""
    chunks: list[bytes] = []
    left = math.inf if limit is None else limit
    while left > 0 and (chunk := stream.read(int(min(left, _CHUNK)))):
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)


def unpack(name: str, stream: BinaryIO, kind: Kind = "model") -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays of a file, its length and checksum verified."""
    line = stream.readline(_MAX_FIRST_LINE)
    header_length, total, digest = _parse_first_line(name, line, kind)
    status = os.fstat(stream.fileno())
    if stat.S_ISREG(status.st_mode):
        _check_length(name, status.st_size, total)
    body = read_bytes(stream, total - len(line) + 1)
    _check_length(name, len(line) + len(body), total)
    if hashlib.sha256(body).hexdigest() != digest:
        raise ModelFileError(f"{name}: damaged: the checksum does not match")
    if header_length > len(body):
        raise ModelFileError(f"{name}: the stated header is longer than the file")
    try:
        header = parse_json(body[:header_length])
    except ValueError as error:
        raise ModelFileError(f"{name}: the header is not valid JSON: {error}") from None
    if not isinstance(header, dict):
        raise ModelFileError(f"{name}: the header is not a JSON object")
    return header, _arrays(name, header.pop("arrays", None), memoryview(body)[header_length:])


def _parse_first_line(name: str, line: bytes, kind: Kind) -> tuple[int, int, str]:
    """(header bytes, total bytes, checksum)"""
    magic = f"cutsvm-{kind} ".encode("ascii")
    if not line.startswith(magic):
        raise ModelFileError(f"{name}: not a cutsvm {kind}")
    version = line[len(magic) :].split(b" ", 1)[0]
    if version.isdigit() and int(version) > VERSION:
        raise ModelFileError(f"{name}: written by a newer cutsvm (format {int(version)}, this one reads {VERSION})")
    match = _FIRST_LINE.fullmatch(line.removesuffix(b"\n"))
    if match is None or not line.endswith(b"\n"):
        raise ModelFileError(f"{name}: the first line is truncated or damaged")
    return int(match[1]), int(match[2]), match[3].decode("ascii")


def _check_length(name: str, found: int, stated: int) -> None:
    if found < stated:
        raise ModelFileError(f"{name}: truncated: {found} of {stated} bytes")
    if found > stated:
        raise ModelFileError(f"{name}: has bytes after its end (expected {stated} in all)")


def _arrays(name: str, table: Any, data: memoryview) -> dict[str, Array]:
    """The arrays, which must fill the file in order, as `pack` writes them."""
    if not isinstance(table, list):
        raise ModelFileError(f"{name}: the header has no list of arrays")
    arrays: dict[str, Array] = {}
    offset = 0
    for entry in table:
        key, dtype, shape, length = _entry(name, entry, offset)
        if key in arrays or offset + length > len(data):
            raise ModelFileError(f"{name}: array {key!r} appears twice or extends beyond the end of the file")
        stored = np.frombuffer(data[offset : offset + length], dtype=dtype)
        arrays[key] = stored.astype(_DTYPES[dtype]).reshape(shape)
        offset += length + -length % _ALIGN
    if offset != len(data):
        raise ModelFileError(f"{name}: the arrays fill {offset} bytes, the file has {len(data)}")
    return arrays


def _entry(name: str, entry: Any, offset: int) -> tuple[str, str, tuple[int, ...], int]:
    """One row of the array table, checked: (name, dtype, shape, length in bytes)."""
    if not isinstance(entry, dict):
        raise ModelFileError(f"{name}: an entry of the array table is not an object")
    key, dtype, shape = entry.get("name"), entry.get("dtype"), entry.get("shape")
    if not isinstance(key, str) or not isinstance(dtype, str) or dtype not in _DTYPES:
        raise ModelFileError(f"{name}: array {key!r} has dtype {dtype!r}; expected one of {sorted(_DTYPES)}")
    if not isinstance(shape, list) or len(shape) > 2 or not all(type(n) is int and 0 <= n < _MAX_LENGTH for n in shape):
        raise ModelFileError(f"{name}: array {key!r} has no valid shape")
    length = math.prod(shape) * np.dtype(dtype).itemsize
    if type(entry.get("length")) is not int or entry["length"] != length:
        raise ModelFileError(f"{name}: the length of array {key!r} does not match its shape")
    if type(entry.get("offset")) is not int or entry["offset"] != offset:
        raise ModelFileError(f"{name}: array {key!r} has a wrong offset")
    return key, dtype, tuple(shape), length
