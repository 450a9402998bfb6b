"""The manifest of a store: its contents in JSON, every field checked when it is read.

    STORE/manifest.json               {"format": "cutsvm-store", "version": 2, "segments": [...], ..., "sha256": ...}
    STORE/data-1f.../block-000000.bin the rows, block by block; never changed
    STORE/data-1f.../y.bin ...        one number per row each: labels, weights, queries, squares and hashes of the rows
    STORE/data-1f.../feature_names.json ...  lists of texts
    STORE/data-2e.../block-000000.bin rows that were appended
    STORE/data-2e.../deleted.bin      one bit for each row of the blocks: whether it was deleted

A dense block holds its rows in C order. A CSR block holds its row pointers and its columns, both int32 and padded to a
multiple of 64 bytes, and then its values. All numbers are little-endian. The blocks of one data folder are a segment.
Deleted rows stay in their blocks until the store is compacted; columns of numbers have rows that are not deleted only.
The manifest names the files in use and is replaced atomically, so that a store changes as a whole or not at all. A
column may be longer than the manifest says: an append that was killed has left the rest.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from dataclasses import fields as dataclass_fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cutsvm._utils.errors import DataError
from cutsvm.io.files import parse_json
from cutsvm.io.preprocessing import Preprocessing

NAME = "manifest.json"
FORMAT, VERSION = "cutsvm-store", 2
ALIGN = 64
_MAX_COUNT = 1 << 48  # rows, features, entries: sums of such numbers still fit 64 bits
_MAX_BYTES = 1 << 30  # bytes of a manifest
_VALUES = ("<f4", "<f8")
COLUMNS = {"y": ("<f8", "<i8"), "weights": ("<f8",), "qid": ("<i8",), "squares": ("<f8",), "hashes": ("<u8",)}
TEXTS = ("feature_names", "label_names", "qid_names")
DELETED = "deleted"  # the part with the bits of deleted rows
_ACTIONS = ("convert", "append", "delete", "compact")


@dataclass(frozen=True)
class Block:
    """A block of rows, and the checksum (CRC-32) of its file; live: rows that are not deleted, and their entries."""

    rows: int
    entries: int
    crc32: int
    live: int
    live_entries: int


@dataclass(frozen=True)
class Segment:
    """The blocks of a data folder, which were written together."""

    data: str  # the folder
    blocks: list[Block] = field(repr=False)


@dataclass(frozen=True)
class PlacedBlock(Block):
    """A block with its file, and the number of its first row among those of all blocks."""

    file: str
    first: int


@dataclass(frozen=True)
class Part:
    """A column of one number per row, a list of texts, or bits: its type, length in bytes, checksum and file."""

    dtype: str
    size: int
    crc32: int
    file: str


@dataclass(frozen=True)
class Change:
    """What has made a version of a store: the action, the rows then, and its source or which rows, in words."""

    action: str
    rows: int
    what: str
    time: str  # ISO 8601, UTC; "" if it is not known


@dataclass(frozen=True)
class Manifest:
    """The contents of a store. rows and entries: those that are not deleted."""

    name: str  # the same for all versions of a store: that of its first data folder
    layout: Literal["dense", "csr"]
    dtype: str
    rows: int
    features: int
    entries: int
    zero_based: bool | None  # None: the source had no indices
    spread: float  # the largest feature over the smallest, by largest absolute values
    source: str
    made_by: str  # version of cutsvm
    segments: list[Segment] = field(repr=False)
    parts: dict[str, Part] = field(repr=False)
    history: list[Change] = field(repr=False)
    preprocessing: dict[str, Any] | None = field(default=None, repr=False)  # of the columns of a table

    @property
    def version(self) -> int:
        """The number of changes so far; the conversion is the first."""
        return len(self.history)

    @cached_property
    def blocks(self) -> list[PlacedBlock]:
        """The blocks that have rows which are not deleted."""
        found, first = [], 0
        for segment in self.segments:
            for number, block in enumerate(segment.blocks):
                if block.live:
                    file = block_file(segment.data, number)
                    found.append(PlacedBlock(**vars(block), file=file, first=first))
                first += block.rows
        return found

    @property
    def all_rows(self) -> int:
        """Rows of all blocks, the deleted ones too."""
        return sum(block.rows for segment in self.segments for block in segment.blocks)

    def files(self) -> set[str]:
        """All files in use."""
        used = {block_file(segment.data, number) for segment in self.segments for number in range(len(segment.blocks))}
        return used | {part.file for part in self.parts.values()}

    def block_name(self, number: int) -> str:
        return self.blocks[number].file

    def part_name(self, name: str) -> str:
        return self.parts[name].file

    def sections(self, block: Block) -> list[tuple[int, str, int]]:
        """(offset, dtype, count) of each array in the file of a block: values, or row pointers, columns and values."""
        if self.layout == "dense":
            return [(0, self.dtype, block.rows * self.features)]
        return csr_sections(block.rows, block.entries, self.dtype)

    def block_size(self, block: Block) -> int:
        """Bytes of the file of a block."""
        return _end(self.sections(block))

    @property
    def size(self) -> int:
        """Bytes of the rows that are not deleted."""
        if self.layout == "dense":
            return self.rows * self.features * np.dtype(self.dtype).itemsize
        return sum(_end(csr_sections(block.live, block.live_entries, self.dtype)) for block in self.blocks)

    @property
    def size_on_disk(self) -> int:
        """Bytes of all blocks."""
        return sum(self.block_size(block) for segment in self.segments for block in segment.blocks)

    def changed(self, change: Change, **fields: Any) -> Manifest:
        """The manifest of the next version."""
        return replace(self, **fields, rows=change.rows, history=[*self.history, change])

    def to_json(self) -> bytes:
        fields = {"format": FORMAT, "version": VERSION, **asdict(self)}
        fields["segments"] = [
            {"data": segment.data, "blocks": [list(vars(block).values()) for block in segment.blocks]}
            for segment in self.segments
        ]
        fields["sha256"] = _digest(fields)
        return (json.dumps(fields, allow_nan=False, indent=1) + "\n").encode("ascii")


def block_file(data: str, number: int) -> str:
    return f"{data}/block-{number:06d}.bin"


def part_file(data: str, name: str) -> str:
    return f"{data}/{name}.{'json' if name in TEXTS else 'bin'}"


def _end(sections: list[tuple[int, str, int]]) -> int:
    offset, kind, count = sections[-1]
    return offset + count * np.dtype(kind).itemsize


def csr_sections(rows: int, entries: int, dtype: str) -> list[tuple[int, str, int]]:
    """(offset, dtype, count) of the row pointers, the columns and the values of a CSR block."""
    columns = 4 * (rows + 1)
    columns += -columns % ALIGN
    values = columns + 4 * entries + -4 * entries % ALIGN
    return [(0, "<i4", rows + 1), (columns, "<i4", entries), (values, dtype, entries)]


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
    if version not in (1, VERSION):
        raise DataError(f"{file}: expected version {VERSION}, found {version!r}")
    stated = fields.pop("sha256", None)
    if stated != _digest(fields):
        raise DataError(f"{file}: damaged: the checksum does not match; run convert again")
    try:
        return _checked(_from_version_1(fields) if version == 1 else fields)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{file}: damaged: {error}; run convert again") from None


def _digest(fields: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode("ascii")).hexdigest()


def _from_version_1(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a manifest of version 1, which has one data folder and no deleted rows."""
    data, parts = fields["data"], fields["parts"]
    blocks = [[*numbers, *numbers[:2]] for numbers in fields["blocks"]]
    history = [{"action": "convert", "rows": fields["rows"], "what": fields["source"], "time": ""}]
    named = {name: {**part, "file": part_file(data, name)} for name, part in parts.items()}
    more = {"name": data, "segments": [{"data": data, "blocks": blocks}], "parts": named, "history": history}
    return {**fields, **more}


def _checked(fields: dict[str, Any]) -> Manifest:
    """The manifest; ValueError names the field that is wrong."""
    fields.setdefault("preprocessing", None)  # stores of earlier versions have none
    known = {own.name: fields[own.name] for own in dataclass_fields(Manifest)}
    if known["preprocessing"] is not None:
        Preprocessing.from_dict(known["preprocessing"])
    for name, kind in {
        "name": str,
        "source": str,
        "made_by": str,
        "segments": list,
        "parts": dict,
        "history": list,
    }.items():
        if type(known[name]) is not kind:
            raise ValueError(f"{name} is of another type than {kind.__name__}")
    if known["zero_based"] is not None and type(known["zero_based"]) is not bool:
        raise ValueError("zero_based is of another type than bool")
    rows, features, entries = (_whole(known, name) for name in ("rows", "features", "entries"))
    layout, spread = _one_of("layout", known["layout"], ("dense", "csr")), known["spread"]
    _one_of("dtype", known["dtype"], _VALUES)
    if type(spread) not in (int, float) or not 1.0 <= spread <= sys.float_info.max:
        raise ValueError(f"spread is {spread!r}, expected a finite number, 1 or more")
    segments = [Segment(_folder(part["data"]), list(map(_block, part["blocks"]))) for part in known["segments"]]
    if len({segment.data for segment in segments}) < len(segments):
        raise ValueError("a data folder is named twice")
    blocks = [block for segment in segments for block in segment.blocks]
    if sum(block.live for block in blocks) != rows or sum(block.live_entries for block in blocks) != entries:
        raise ValueError("rows or entries are not the sums over the blocks")
    if layout == "dense" and any(
        block.entries != block.rows * features or block.live_entries != block.live * features for block in blocks
    ):
        raise ValueError("a dense block has not rows x features entries")
    if layout == "csr" and (features >= 2**31 or any(block.entries >= 2**31 for block in blocks)):
        raise ValueError("a CSR block is larger than 32 bits can count")
    parts = {name: _part(name, part, rows) for name, part in known["parts"].items()}
    if "y" not in parts or "squares" not in parts:
        raise ValueError("labels or squares are missing")
    if any(block.live < block.rows for block in blocks) and DELETED not in parts:
        raise ValueError("it does not say which rows are deleted")
    history = [_change(change) for change in known["history"]]
    if not history or history[-1].rows != rows:
        raise ValueError("the history does not end with the rows that there are")
    known |= {"spread": float(spread), "segments": segments, "parts": parts, "history": history}
    return Manifest(**known)


def _folder(name: Any) -> str:
    if type(name) is not str or not is_data_folder(name):
        raise ValueError(f"{name!r} is not the name of a data folder")
    return name


def _part(name: str, given: Any, rows: int) -> Part:
    if name not in (*COLUMNS, *TEXTS, DELETED):
        raise ValueError(f"{name!r} is not a part of a store")
    part = Part(given["dtype"], _whole(given, "size"), _whole(given, "crc32"), given["file"])
    if type(part.file) is not str or part.file != part_file(_folder(part.file.partition("/")[0]), name):
        raise ValueError(f"{part.file!r} is not a file of {name}")
    if name in COLUMNS:
        _one_of(f"dtype of {name}", part.dtype, COLUMNS[name])
        if part.size != 8 * rows:
            raise ValueError(f"{name} has {part.size} bytes, expected {8 * rows}")
    return part


def _block(numbers: Any) -> Block:
    if not isinstance(numbers, list) or len(numbers) != 5 or not all(_is_whole(number) for number in numbers):
        raise ValueError("a block is not rows, entries, checksum, and rows and entries that are not deleted")
    block = Block(*numbers)
    if not 0 < block.rows or block.live > block.rows or block.live_entries > block.entries:
        raise ValueError("a block has fewer rows than it should have")
    if block.live == block.rows and block.live_entries != block.entries:
        raise ValueError("a block without deleted rows has other entries")
    return block


def _change(given: Any) -> Change:
    change = Change(given["action"], _whole(given, "rows"), given["what"], given["time"])
    _one_of("action", change.action, _ACTIONS)
    if type(change.what) is not str or type(change.time) is not str:
        raise ValueError("a change is not described in words")
    return change


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
