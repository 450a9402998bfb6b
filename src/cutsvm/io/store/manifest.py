"""The manifest of a store: its contents in JSON, every field checked when it is read.

    STORE/manifest.json               {"format": "cutsvm-store", "version": 1, "data": "data-1f..", ..., "sha256": ...}
    STORE/data-1f.../block-000000.bin the rows, block by block
    STORE/data-1f.../y.bin ...        one number per row each: labels, weights, queries, squares of the rows
    STORE/data-1f.../feature_names.json ...  lists of texts

A dense block holds its rows in C order. A CSR block holds its row pointers and its columns, both int32 and padded to a
multiple of 64 bytes, and then its values. All numbers are little-endian. The manifest names the current data folder
and is replaced atomically, so that a store changes as a whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cutsvm._utils.errors import DataError
from cutsvm.io.files import parse_json
from cutsvm.io.preprocessing import Preprocessing

NAME = "manifest.json"
FORMAT, VERSION = "cutsvm-store", 1
ALIGN = 64
_MAX_COUNT = 1 << 48  # rows, features, entries: sums of such numbers still fit 64 bits
_MAX_BYTES = 1 << 30  # bytes of a manifest
_VALUES = ("<f4", "<f8")
_COLUMNS = {"y": ("<f8", "<i8"), "weights": ("<f8",), "qid": ("<i8",), "squares": ("<f8",)}
_TEXTS = ("feature_names", "label_names", "qid_names")


@dataclass(frozen=True)
class Block:
    """A block of rows, and the checksum (CRC-32) of its file."""

    rows: int
    entries: int
    crc32: int


@dataclass(frozen=True)
class Part:
    """A column of one number per row, or a list of texts: its type, length in bytes and checksum."""

    dtype: str
    size: int
    crc32: int


@dataclass(frozen=True)
class Manifest:
    """The contents of a store."""

    data: str  # the folder
    layout: Literal["dense", "csr"]
    dtype: str
    rows: int
    features: int
    entries: int
    zero_based: bool | None  # None: the source had no indices
    spread: float  # the largest feature over the smallest, by largest absolute values
    source: str
    made_by: str  # version of cutsvm
    blocks: list[Block] = field(repr=False)
    parts: dict[str, Part] = field(repr=False)
    preprocessing: dict[str, Any] | None = field(default=None, repr=False)  # of the columns of a table

    def block_name(self, number: int) -> str:
        return f"{self.data}/block-{number:06d}.bin"

    def part_name(self, name: str) -> str:
        return f"{self.data}/{name}.{'json' if name in _TEXTS else 'bin'}"

    def sections(self, block: Block) -> list[tuple[int, str, int]]:
        """(offset, dtype, count) of each array in the file of a block: values, or row pointers, columns and values."""
        if self.layout == "dense":
            return [(0, self.dtype, block.rows * self.features)]
        return csr_sections(block, self.dtype)

    def block_size(self, block: Block) -> int:
        """Bytes of the file of a block."""
        offset, kind, count = self.sections(block)[-1]
        return offset + count * np.dtype(kind).itemsize

    @property
    def size(self) -> int:
        """Bytes of the rows."""
        return sum(map(self.block_size, self.blocks))

    def to_json(self) -> bytes:
        fields = {"format": FORMAT, "version": VERSION, **asdict(self)}
        fields["blocks"] = [[block.rows, block.entries, block.crc32] for block in self.blocks]
        fields["sha256"] = _digest(fields)
        return (json.dumps(fields, allow_nan=False, indent=1) + "\n").encode("ascii")


def csr_sections(block: Block, dtype: str) -> list[tuple[int, str, int]]:
    columns = 4 * (block.rows + 1)
    columns += -columns % ALIGN
    values = columns + 4 * block.entries + -4 * block.entries % ALIGN
    return [(0, "<i4", block.rows + 1), (columns, "<i4", block.entries), (values, dtype, block.entries)]


def is_store_entry(name: str) -> bool:
    """Whether `convert` writes entries of this name inside a store, besides the manifest."""
    return is_data_folder(name) or re.fullmatch(r"\.cutsvm-[0-9a-f]{16}\.tmp", name) is not None


def is_data_folder(name: str) -> bool:
    return re.fullmatch(r"data-[0-9a-f]{16}", name) is not None


def is_store(path: str | os.PathLike[str]) -> bool:
    """Whether the path is a folder with a manifest of cutsvm, or the rest of an incomplete conversion."""
    folder = Path(path)
    if not folder.is_dir():
        return False
    names = set(os.listdir(folder))
    if NAME not in names:
        return bool(names) and all(map(is_store_entry, names))
    with open(folder / NAME, "rb") as stream:  # other programs have manifests of this name
        return f'"{FORMAT}"'.encode() in stream.read(200) and all(map(is_store_entry, names - {NAME}))


def read_manifest(path: str | os.PathLike[str]) -> Manifest:
    """The manifest of the store at `path`, its fields checked for consistency."""
    file = Path(path) / NAME
    if not file.exists():
        if is_store(path):
            raise DataError(f"{os.fspath(path)}: incomplete: run convert again")
        raise DataError(f"{os.fspath(path)}: not a store: it has no {NAME}")
    with open(file, "rb") as stream:
        # Of its own size: a buffer of the largest size would be asked for first, and may be refused.
        text = stream.read(min(_MAX_BYTES, os.fstat(stream.fileno()).st_size))
    try:
        fields = parse_json(text)
    except ValueError as error:
        raise DataError(f"{file}: not valid JSON: {error}") from None
    if not isinstance(fields, dict):
        raise DataError(f"{file}: expected a JSON object")
    if fields.get("format") != FORMAT:
        raise DataError(f"{file}: not the manifest of a store: its format is {fields.get('format')!r}")
    version = fields.get("version")
    if type(version) is int and version > VERSION:
        raise DataError(f"{file}: made by a newer cutsvm (format {version}, this one reads {VERSION})")
    if version != VERSION:
        raise DataError(f"{file}: expected version {VERSION}, found {version!r}")
    stated = fields.pop("sha256", None)
    if stated != _digest(fields):
        raise DataError(f"{file}: damaged: the checksum does not match; run convert again")
    try:
        return _checked(fields)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{file}: damaged: {error}; run convert again") from None


def _digest(fields: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode("ascii")).hexdigest()


def _checked(fields: dict[str, Any]) -> Manifest:
    """The manifest; ValueError names the field that is wrong."""
    fields.setdefault("preprocessing", None)  # stores of earlier versions have none
    known = {own.name: fields[own.name] for own in dataclass_fields(Manifest)}
    if known["preprocessing"] is not None:
        Preprocessing.from_dict(known["preprocessing"])
    for name, kind in {"data": str, "source": str, "made_by": str, "blocks": list, "parts": dict}.items():
        if type(known[name]) is not kind:
            raise ValueError(f"{name} is of another type than {kind.__name__}")
    if known["zero_based"] is not None and type(known["zero_based"]) is not bool:
        raise ValueError("zero_based is of another type than bool")
    rows, features, entries = (_whole(known, name) for name in ("rows", "features", "entries"))
    layout, spread = _one_of("layout", known["layout"], ("dense", "csr")), known["spread"]
    _one_of("dtype", known["dtype"], _VALUES)
    if type(spread) not in (int, float) or not 1.0 <= spread <= sys.float_info.max:
        raise ValueError(f"spread is {spread!r}, expected a finite number, 1 or more")
    blocks = [_block(numbers) for numbers in known["blocks"]]
    if sum(block.rows for block in blocks) != rows or sum(block.entries for block in blocks) != entries:
        raise ValueError("rows or entries are not the sums over the blocks")
    if layout == "dense" and any(block.entries != block.rows * features for block in blocks):
        raise ValueError("a dense block has not rows x features entries")
    if layout == "csr" and (features >= 2**31 or any(block.entries >= 2**31 for block in blocks)):
        raise ValueError("a CSR block is larger than 32 bits can count")
    parts = {name: _part(name, part, rows) for name, part in known["parts"].items()}
    if "y" not in parts or "squares" not in parts:
        raise ValueError("labels or squares are missing")
    if not is_data_folder(known["data"]):
        raise ValueError("data is not the name of a data folder")
    return Manifest(**{**known, "spread": float(spread), "blocks": blocks, "parts": parts})


def _part(name: str, given: Any, rows: int) -> Part:
    if name not in _COLUMNS and name not in _TEXTS:
        raise ValueError(f"{name!r} is not a part of a store")
    part = Part(given["dtype"], _whole(given, "size"), _whole(given, "crc32"))
    if name in _COLUMNS:
        _one_of(f"dtype of {name}", part.dtype, _COLUMNS[name])
        if part.size != 8 * rows:
            raise ValueError(f"{name} has {part.size} bytes, expected {8 * rows}")
    return part


def _block(numbers: Any) -> Block:
    if not isinstance(numbers, list) or len(numbers) != 3 or not all(_is_whole(number) for number in numbers):
        raise ValueError("a block is not rows, entries and checksum")
    return Block(*numbers)


def _is_whole(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MAX_COUNT


def _whole(fields: Mapping[str, Any], name: str) -> int:
    value = fields[name]
    if not _is_whole(value):
        raise ValueError(f"{name} is {value!r}, expected a whole number")
    return int(value)


def _one_of(name: str, value: Any, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}, expected one of {', '.join(choices)}")
    return str(value)
