"""A store is complete, or is reported as incomplete or damaged."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import cutsvm
from cutsvm import DataError
from cutsvm.io import open_dataset
from cutsvm.io.store import manifest
from cutsvm.io.store.store import Store

N, D = 9000, 4
BLOCK = 4096 * 8 * D


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    rng = np.random.default_rng(1)
    folder = tmp_path_factory.mktemp("made")
    X, y = rng.normal(size=(N, D)), np.arange(N) % 2
    return cutsvm.convert((X, y), folder / "store", block_bytes=BLOCK), X, y


@pytest.fixture
def store(made, tmp_path):
    """A copy to be damaged."""
    path = tmp_path / "store"
    shutil.copytree(made[0].store.path, path)
    return path


def sparse_store(path):
    from scipy import sparse

    return cutsvm.convert((sparse.eye(20, 6, format="csr"), np.arange(20) % 2), path)


def read_all(path):
    data = open_dataset(path)
    return data.X, data.y, data.store.squares


def test_opened_again(made, store):
    _, X, y = made
    data = open_dataset(store)
    assert (data.shape, data.entries, data.qid, data.weights, data.feature_names) == ((N, D), N * D, None, None, None)
    assert "9,000 rows" in repr(data) and not data.loaded
    assert_array_equal(data.X, X)
    assert_array_equal(data.y, y)
    assert data.loaded and data.spread == pytest.approx(np.abs(X).max(axis=0).max() / np.abs(X).max(axis=0).min())
    with pytest.raises(AttributeError, match="colour"):
        _ = data.colour
    assert_array_equal(data.with_labels(1 - y).y, 1 - y)
    with pytest.raises(DataError, match="4 features, expected n_features=9"):
        open_dataset(store, n_features=9)
    with pytest.raises(ValueError, match="a store has its own"):
        open_dataset(store, label="y")


def block_file(path, number=1):
    return Path(path) / Store(path).manifest.block_name(number)


DAMAGE = {
    "missing block": (lambda path: block_file(path).unlink(), "block-000001.bin: missing; run convert again"),
    "truncated block": (lambda path: os.truncate(block_file(path), 100), "truncated: 100 bytes, expected"),
    "long block": (lambda path: os.truncate(block_file(path), 10**6), "too long: 1000000 bytes"),
    "other block": (lambda path: _flip(block_file(path)), "block-000001.bin: damaged: the checksum does not match"),
    "other labels": (lambda path: _flip(_part(path, "y")), "y.bin: damaged: the checksum does not match"),
    "missing labels": (lambda path: _part(path, "y").unlink(), "y.bin: missing"),
    "other squares": (lambda path: _flip(_part(path, "squares")), "squares.bin: damaged"),
    "no manifest": (lambda path: (path / manifest.NAME).unlink(), "incomplete: run convert again"),
    "other manifest": (lambda path: _flip(path / manifest.NAME, 300), "manifest.json: "),
    "empty manifest": (lambda path: (path / manifest.NAME).write_bytes(b""), "not valid JSON"),
    "list": (lambda path: (path / manifest.NAME).write_bytes(b"[1]"), "expected a JSON object"),
    "deep": (lambda path: (path / manifest.NAME).write_bytes(b"[" * 100_000), "manifest.json"),
    "no store": (lambda path: (path / manifest.NAME).write_bytes(b"{}"), "not the manifest of a store"),
}


def _flip(file, at=5):
    content = bytearray(file.read_bytes())
    content[at] ^= 1
    file.write_bytes(content)


def _part(path, name):
    return Path(path) / Store(path).manifest.part_name(name)


@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_parts_are_named(case, store):
    spoil, says = DAMAGE[case]
    spoil(store)
    with pytest.raises(DataError) as error:
        read_all(store)
    assert says in str(error.value) and str(store) in str(error.value)


def _segments(*blocks):
    return [{"data": "data-0123456789abcdef", "blocks": list(blocks)}]


HOSTILE = {
    "newer": ({"version": 3}, "made by a newer cutsvm (format 3, this one reads 2)"),
    "no version": ({"version": "x"}, "expected version 2, found 'x'"),
    "rows": ({"rows": 5}, "not the sums over the blocks"),
    "negative": ({"rows": -1}, "rows is -1, expected a whole number"),
    "truth": ({"features": True}, "features is True"),
    "huge": ({"segments": _segments([2**60, 1, 1, 1, 1])}, "a block is not rows, entries, checksum"),
    "three": ({"segments": _segments([1, 1, 1])}, "a block is not rows, entries, checksum"),
    "many": (
        {"rows": 2**40, "entries": 2**42, "segments": _segments([2**40, 2**42, 0, 2**40, 2**42])},
        "y has 72000 bytes",
    ),
    "more": ({"segments": _segments([3, 12, 0, 4, 12])}, "fewer rows"),
    "entries": ({"segments": _segments([3, 12, 0, 3, 8])}, "without deleted rows has other entries"),
    "deleted": ({"rows": 2, "entries": 8, "segments": _segments([3, 12, 0, 2, 8])}, "72000 bytes"),
    "twice": ({"segments": 2 * _segments([3, 12, 0, 3, 12])}, "named twice"),
    "escape": ({"segments": [{"data": "../..", "blocks": []}]}, "not the name of a data folder"),
    "history": ({"history": []}, "the history does not end"),
    "change": ({"history": [{"action": "x", "rows": N, "what": "", "time": ""}]}, "action is 'x'"),
    "words": ({"history": [{"action": "convert", "rows": N, "what": 1, "time": ""}]}, "in words"),
    "columns": ({"preprocessing": 1}, "preprocessing: expected an object"),
    "dtype": ({"dtype": "O"}, "dtype is 'O'"),
    "layout": ({"layout": "csr"}, "truncated|too long|damaged"),
    "parts": ({"parts": {}}, "labels or squares are missing"),
    "part": ({"parts": {"evil": {}}}, "'evil' is not a part of a store"),
    "blocks": ({"segments": 7}, "segments is of another type than list"),
    "source": ({"source": None}, "source is of another type"),
    "spread": ({"spread": "x"}, "damaged"),
    "base": ({"zero_based": 1}, "zero_based"),
}


def _forge(path, changes):
    fields = json.loads((path / manifest.NAME).read_bytes())
    fields.update(changes)
    fields.pop("sha256")
    fields["sha256"] = manifest._digest(fields)
    (path / manifest.NAME).write_text(json.dumps(fields))


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_manifests(case, store):
    changes, says = HOSTILE[case]
    _forge(store, changes)
    with pytest.raises(DataError) as error:
        read_all(store)
    assert any(word in str(error.value) for word in says.split("|"))


def test_hostile_columns(tmp_path):
    """A CSR block whose checksum is right and whose columns are not."""
    path = sparse_store(tmp_path / "store").store.path
    file = block_file(path, 0)
    content = bytearray(file.read_bytes())
    content[-8 * 6 - 64 : -8 * 6] = np.full(16, 10**6, dtype="<i4").tobytes()
    file.write_bytes(content)
    import zlib

    name = file.parent.name
    _forge(path, {"segments": [{"data": name, "blocks": [[20, 6, zlib.crc32(content), 20, 6]]}]})
    with pytest.raises(DataError, match="not valid CSR"):
        read_all(path)


def test_other_folders_are_not_overwritten(made, tmp_path):
    _, X, y = made
    cases = {"photos": {"a.jpg": "x"}, "app": {"manifest.json": '{"name": "app"}'}, "mixed": {"data-1": "x"}}
    for name, files in cases.items():
        folder = tmp_path / name
        folder.mkdir()
        for file, content in files.items():
            (folder / file).write_text(content)
        with pytest.raises(DataError, match="a folder that is not a store; it is left alone"):
            cutsvm.convert((X, y), folder)
        assert {file.name: file.read_text() for file in folder.iterdir()} == files
        with pytest.raises(DataError, match=r"not a store|not the manifest"):
            open_dataset(folder)
    (tmp_path / "empty").mkdir()
    assert cutsvm.convert((X, y), tmp_path / "empty").shape == (N, D)


def test_store_is_replaced_atomically(store):
    def broken():
        yield np.ones((5000, 2)), np.arange(5000) % 2
        raise RuntimeError("the source broke off")

    before = sorted(store.rglob("*"))
    with pytest.raises(RuntimeError, match="broke off"):
        cutsvm.convert(broken(), store, block_bytes=1)
    assert sorted(store.rglob("*")) == before
    assert open_dataset(store).shape == (N, D)
    cutsvm.convert((np.ones((3, 2)), [1, 2, 3]), store)
    assert open_dataset(store).shape == (3, 2)
    assert len(list(store.iterdir())) == 2


def test_concurrent_converts(made, store):
    _, X, y = made

    def blocks():
        yield X, y
        with pytest.raises(DataError, match="another process is changing this store"):
            cutsvm.convert((X, y), store)

    cutsvm.convert(blocks(), store)
    assert open_dataset(store).shape == (N, D)


class FullDisk:
    """A file on a disk with so many bytes left."""

    left = 0

    def __init__(self, file):
        self._file = file

    def write(self, data):
        size = len(data)
        if size > FullDisk.left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        FullDisk.left -= size
        return self._file.write(data)

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._file.close()


@pytest.mark.parametrize("left", [0, 200_000, 400_000])
@pytest.mark.parametrize("fresh", [False, True])
def test_full_disk(made, store, tmp_path, monkeypatch, left, fresh):
    _, X, y = made
    target = tmp_path / "new" if fresh else store
    monkeypatch.setattr("cutsvm.io.store.writer.open", lambda *a: FullDisk(open(*a)), raising=False)
    FullDisk.left = left
    with pytest.raises(DataError, match="No space left on device") as error:
        cutsvm.convert((X, y), target, block_bytes=BLOCK)
    assert str(target) in str(error.value)
    assert ("is as it was" in str(error.value)) == (not fresh)
    assert target.exists() != fresh
    assert_array_equal(open_dataset(store).X, X)


def test_full_disk_on_a_real_device(made, tmp_path):
    """On a file system of 256 kB, where one may be mounted."""
    _, X, y = made
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(disk)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no right to mount")
    try:
        old = cutsvm.convert((X[:100], y[:100]), disk / "store")
        with pytest.raises(DataError, match="No space left on device: after"):
            cutsvm.convert((X, y), disk / "store", block_bytes=BLOCK)
        assert_array_equal(open_dataset(disk / "store").X, X[:100])
        assert os.listdir(disk) == ["store"] and len(os.listdir(disk / "store")) == 2
        del old
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


SLOW = """
import sys, time
import numpy as np
import cutsvm

def blocks():
    for number in range(1000):
        print(number, flush=True)
        yield np.full((4096, 4), float(number)), np.arange(4096) % 2
        time.sleep(0.01)

cutsvm.convert(blocks(), sys.argv[1], block_bytes=1 << 17)
"""


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 7, 30])
@pytest.mark.parametrize("fresh", [False, True])
def test_killed(store, tmp_path, after, fresh):
    """kill -9 while blocks are written: the old store is as it was, a new one says that it is incomplete."""
    target = tmp_path / "new" if fresh else store
    child = subprocess.Popen([sys.executable, "-c", SLOW, str(target)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    for _ in range(after):
        child.stdout.readline()
    time.sleep(0.003 * after)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    if fresh:
        with pytest.raises(DataError, match="incomplete: run convert again"):
            open_dataset(target)
    else:
        assert open_dataset(target).X.shape == (N, D)
    assert any(entry.name.startswith("data-") for entry in target.iterdir())
    data = cutsvm.convert((np.ones((2, 3)), [0, 1]), target)  # and what was left behind goes
    assert data.X.shape == (2, 3) and len(list(target.iterdir())) == 2
