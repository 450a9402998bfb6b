"""Text files, plain or compressed, as blocks of whole lines."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from cutsvm._utils.errors import DataError
from cutsvm.io.files import Version
from cutsvm.io.paths import STDIN, Input
from cutsvm.io.settings import read_settings

_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd"}


def text_blocks(source: Input | str) -> Iterator[NDArray[np.uint8]]:
    """Blocks of whole lines of the file; only the last may lack its newline. A block is valid until the next.

    The file is read and not mapped: a mapped file that another process truncates raises SIGBUS.
    """
    source = Input(source) if isinstance(source, str) else source
    path = source.name
    with source.open() as file:
        version = Version(path, file.fileno() if source.local and source.path != STDIN else None)
        head = file.peek(6)[:6]
        kind = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)
        if kind is None and version.size is not None:
            blocks = _plain_blocks(file, version.size)
        elif kind is None:
            blocks = _streamed_blocks(_pieces(file))
        else:
            blocks = _decompressed_blocks(path, kind, file)
        for number, block in enumerate(blocks):
            yield _check_text(path, block) if number == 0 else block
        version.check()


def _check_text(path: str, block: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The first block of a file without its byte order mark; raises `DataError` if it is not text."""
    head = block[:4096].tobytes()
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{path}: expected svmlight text in ASCII or UTF-8, found UTF-16")
    if b"\0" in head:
        raise DataError(f"{path}: expected svmlight text, found binary data")
    return block[3:] if head.startswith(b"\xef\xbb\xbf") else block


def _plain_blocks(file: IO[bytes], size: int) -> Iterator[NDArray[np.uint8]]:
    """The first `size` bytes of a plain file, in one buffer that all blocks share."""
    buffer = np.empty(min(read_settings().text_bytes, size), dtype=np.uint8)
    filled, left = 0, size
    while left:
        if filled == len(buffer):  # a line is longer than the buffer
            buffer = np.concatenate([buffer, np.empty(min(len(buffer), left), dtype=np.uint8)])
        read = file.readinto(buffer[filled : filled + left].data)  # type: ignore[attr-defined]
        if not read:
            break
        filled, left = filled + read, left - read
        end = filled if not left else _last_newline(buffer, filled)
        if end:
            yield buffer[:end]
            buffer[: filled - end] = buffer[end:filled].copy()
            filled -= end


def _last_newline(buffer: NDArray[np.uint8], size: int) -> int:
    """The index after the last newline in the first `size` bytes; 0 if there is none."""
    window = 1 << 12
    while True:
        start = max(0, size - window)
        found = buffer[start:size].tobytes().rfind(b"\n")
        if found >= 0 or not start:
            return start + found + 1 if found >= 0 else 0
        window *= 16


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(read_settings().text_bytes):
        yield piece


def _streamed_blocks(pieces: Iterable[bytes]) -> Iterator[NDArray[np.uint8]]:
    """Pieces of text, joined and split at newlines."""
    waiting: list[bytes] = []
    size, block_bytes = 0, read_settings().text_bytes
    for piece in pieces:
        size += len(piece)
        end = piece.rfind(b"\n") + 1
        if size < block_bytes or end == 0:
            waiting.append(piece)
            continue
        yield np.frombuffer(b"".join([*waiting, memoryview(piece)[:end]]), dtype=np.uint8)
        waiting = [piece[end:]]
        size = len(piece) - end
    if size:
        yield np.frombuffer(b"".join(waiting), dtype=np.uint8)


def _decompressed_blocks(path: str, kind: str, file: IO[bytes]) -> Iterator[NDArray[np.uint8]]:
    openers: dict[str, Callable[[Any], Any]] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
    try:
        pieces = _zstd_pieces(path, file) if kind == "zstd" else _pieces(openers[kind](file))
        yield from _streamed_blocks(pieces)
    except EOFError:
        raise DataError(f"{path}: the {kind} data are cut short") from None
    except (OSError, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"{path}: the {kind} data are damaged ({error})") from None


def _zstd_pieces(path: str, file: IO[bytes]) -> Iterator[bytes]:
    """The text of the frames of a zstd file."""
    make, error = _zstd_decompressor(path)
    frame = None
    packed = b""
    try:
        while packed := packed or file.read(io.DEFAULT_BUFFER_SIZE):
            frame = frame or make()
            yield frame.decompress(packed)
            packed = frame.unused_data if frame.eof else b""
            frame = None if frame.eof else frame
    except error as problem:
        raise DataError(f"{path}: the zstd data are damaged ({problem})") from None
    if frame is not None:
        raise EOFError


def _zstd_decompressor(path: str) -> tuple[Callable[[], Any], type[Exception]]:
    """The class of decompressors and their error: Python's own from 3.14 on, or zstandard's."""
    try:
        module = import_module("compression.zstd")
        return module.ZstdDecompressor, module.ZstdError
    except ImportError:
        pass
    try:
        module = import_module("zstandard")
    except ImportError:
        message = f"{path}: reading zstd files needs the package zstandard: pip install cutsvm[zstd]"
        raise ImportError(message) from None
    return lambda: module.ZstdDecompressor().decompressobj(), module.ZstdError
