"""Files that are damaged, crafted, or change while they are read end in an error with a place, never in a crash."""

import json
import os
import pickle
import signal
import subprocess
import sys
import zipfile
import zlib

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import cutsvm
from cutsvm import DataError, KernelSVC, LinearSVC
from cutsvm.cli import main
from cutsvm.display.callbacks import ProgressBar
from cutsvm.io import open_dataset
from cutsvm.io.columns import ColumnSpec
from cutsvm.io.files import _MAX_DEPTH, parse_json
from cutsvm.io.formats.npy import NpySource
from cutsvm.io.formats.text import text_blocks
from cutsvm.io.models import model_format
from cutsvm.io.store import manifest
from cutsvm.io.store.store import Store
from cutsvm.matrix import StoreRows

N, D = 40, 4


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, D))
    return X, np.where(X[:, 0] > 0, 1, -1)


# ---- CSR


def csr_parts(**changes):
    """A CSR matrix as .npz has it, 3 x 4, with some of its parts replaced."""
    parts = {"data": np.ones(3), "indices": np.array([0, 1, 3]), "indptr": np.array([0, 1, 2, 3]), "shape": [3, 4]}
    return {**parts, "y": np.array([0, 1, 0]), **changes}


BAD_CSR = {
    "column beyond": {"indices": np.array([0, 1, 4])},
    "column far beyond": {"indices": np.array([0, 1, 2**40])},
    "column below": {"indices": np.array([0, -1, 3])},
    "unsigned column": {"indices": np.array([0, 1, 2**64 - 1], dtype=np.uint64)},
    "pointers fall": {"indptr": np.array([0, 2, 1, 3])},
    "pointers beyond": {"indptr": np.array([0, 1, 2, 9])},
    "pointers start": {"indptr": np.array([1, 1, 2, 3])},
    "too few pointers": {"indptr": np.array([0, 3])},
    "no pointers": {"indptr": np.array([], dtype=np.int64)},
    "pointers of another type": {"indptr": np.array([0.0, 1.0, 2.0, 3.0])},
    "columns of another type": {"indices": np.array(["a", "b", "c"])},
    "matrix of columns": {"indices": np.zeros((1, 3), dtype=int)},
    "lengths differ": {"data": np.ones(2)},
    "text as values": {"data": np.array(["a", "b", "c"])},
    "complex values": {"data": np.ones(3, dtype=complex)},
    "shape": {"shape": [3]},
    "negative shape": {"shape": [3, -4]},
    "shape as numbers": {"shape": [3.0, 4.0]},
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "compressed"])
@pytest.mark.parametrize("case", BAD_CSR)
def test_invalid_csr_parts_raise(case, packed, tmp_path):
    path = tmp_path / "bad.npz"
    (np.savez_compressed if packed else np.savez)(path, **csr_parts(**BAD_CSR[case]))
    with pytest.raises(DataError, match=r"bad.npz"):
        open_dataset(path)
    with pytest.raises(DataError, match=r"bad.npz"):
        cutsvm.convert(path, tmp_path / "store")


def test_values_that_no_row_uses_are_there(tmp_path):
    """The arrays of a CSR matrix may be longer than its rows say, but not shorter than they say themselves."""
    arrays = {"data": np.arange(1.0, 6.0), "indices": np.arange(5) % 4, "indptr": np.array([0, 1, 3])}
    arrays |= {"shape": np.array([2, 4]), "y": np.array([1, 2])}
    path = tmp_path / "long.npz"
    np.savez(path, **arrays)
    assert open_dataset(path).X.nnz == 3
    with zipfile.ZipFile(path) as whole:
        members = {name: whole.read(name) for name in whole.namelist()}
    for cut in (1, 10):
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content[:-cut] if name == "data.npy" else content)
        with pytest.raises(DataError, match=r"long.npz: data is cut short"):
            open_dataset(path)


def test_archive_with_a_prefix(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, **csr_parts())
    assert open_dataset(path).shape == (3, 4)
    path.write_bytes(b"x" + path.read_bytes())
    with pytest.raises(DataError, match=r"a.npz: not a .npz file"):
        open_dataset(path)


def test_commands_refuse_column_indices_outside_the_shape(rows, tmp_path, capsys):
    X, y = rows
    good, bad, model = (str(tmp_path / name) for name in ("good.npz", "bad.npz", "a.model"))
    whole = sparse.csr_matrix(X)
    parts = {"data": whole.data, "indptr": whole.indptr, "shape": whole.shape, "y": y}
    np.savez(good, indices=whole.indices, **parts)
    np.savez(bad, indices=whole.indices + 10**7, **parts)
    assert main(["train", "-q", "--task", "kernel", good, model]) == 0
    for words in (["train", "--task", "kernel", bad], ["predict", bad, model], ["convert", bad, str(tmp_path / "s")]):
        capsys.readouterr()
        assert main(words) == 2
        assert "column index outside 0..3" in capsys.readouterr().err


def lawless(kind, X):
    """A sparse matrix of SciPy's with an index outside its shape."""
    matrix = sparse.csr_matrix(X).asformat(kind)
    (matrix.row if kind == "coo" else matrix.indices)[-1] = 10**8
    return matrix


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo"])
def test_sparse_matrices_in_memory_are_checked_before_any_kernel(kind, rows):
    X, y = rows
    for estimator in (LinearSVC(), KernelSVC(), KernelSVC(kernel="linear")):
        with pytest.raises(ValueError, match="outside"):
            estimator.fit(lawless(kind, X), y)
        with pytest.raises(ValueError, match="outside"):
            estimator.fit(X, y).predict(lawless(kind, X))
    with pytest.raises(DataError, match="outside"):
        cutsvm.convert((lawless(kind, X), y), "unused")


# ---- tables


@pytest.fixture
def arrow_file(tmp_path):
    table = pa.table({"label": ["b", "a", "b"], "x": [1.0, 2.0, 3.0]})
    path = tmp_path / "a.arrow"
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    return path


def test_arrow_offsets_are_validated(arrow_file):
    """Arrow trusts the offsets of texts: this one leads 2^30 bytes away."""
    content = arrow_file.read_bytes()
    offsets = np.array([0, 1, 2, 3], dtype="<i4").tobytes()
    assert content.count(offsets) == 1
    arrow_file.write_bytes(content.replace(offsets, np.array([0, 1, 2**30, 3], dtype="<i4").tobytes()))
    with pytest.raises(DataError, match=r"a.arrow"):
        open_dataset(arrow_file)


def test_arrow_dictionary_codes_are_validated(tmp_path):
    codes = pa.array([0, 1, 7], type=pa.int32())
    label = pa.DictionaryArray.from_arrays(codes, pa.array(["a", "b"]), safe=False)
    table = pa.table({"label": label, "x": [1.0, 2.0, 3.0]})
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(DataError, match=r"a.arrow"):
        open_dataset(tmp_path / "a.arrow")


def test_arrow_file_that_is_cut_off(arrow_file):
    content = arrow_file.read_bytes()
    for size in range(0, len(content), 16):
        arrow_file.write_bytes(content[:size])
        with pytest.raises(DataError, match=r"a.arrow"):
            open_dataset(arrow_file)


@pytest.mark.parametrize("label", [pa.array([[1], [2]]), pa.array([b"a", b"b"]), pa.array([1, 2], pa.timestamp("s"))])
def test_labels_of_a_table_are_numbers_or_text(label, tmp_path):
    table = pa.table({"label": label, "x": [1.0, 2.0]})
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(DataError, match="expected numbers or text"):
        open_dataset(tmp_path / "a.arrow")


@pytest.mark.parametrize(
    "head", ["\n\na,label\n", '"' + "x" * 200_000 + '",label\n', 'a,label,"\n'], ids=["empty", "long", "open"]
)
def test_first_line_of_a_csv_file(head, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(head + "1,2\n")
    with pytest.raises(DataError, match=r"a.csv:1: expected the names of the columns"):
        open_dataset(path)


# ---- .npy


def npy(descr="'<f8'", shape="(2, 3)", data=bytes(48)):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


BAD_NPY = {
    "empty": b"",
    "no magic": b"x" * 100,
    "cut short": npy(data=bytes(40)),
    "huge": npy(shape="(10**3, 4)"),
    "larger than any memory": npy(shape="(4000000000000, 4)"),
    "negative": npy(shape="(-1, 3)"),
    "three dimensions": npy(shape="(2, 1, 3)"),
    "objects": npy(descr="'|O'"),
    "complex": npy(descr="'<c16'"),
    "record": npy(descr="[('a', '<f8')]"),
    "no dtype": npy(descr="'<zz'"),
    "empty texts": npy(descr="'<U0'"),
    "no literal": npy(shape="(2, 3"),
    "nested": npy(shape="(" * 500 + ")" * 500),
    "control characters": npy(descr="'\x00\x0c'"),
}


@pytest.mark.parametrize("case", BAD_NPY)
def test_damaged_npy_files(case, tmp_path):
    path = tmp_path / "a.npy"
    path.write_bytes(BAD_NPY[case])
    with pytest.raises(DataError, match=r"a.npy"):
        open_dataset(path, label=-1)


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", ["<f8", ">f4", "<i2", "|b1"])
def test_npy_is_read_as_numpy_does(order, dtype, tmp_path, read_with):
    read_with(batch_bytes=100)
    X = np.array(np.random.default_rng(0).integers(0, 2, size=(50, 3)), dtype=dtype, order=order)
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "y.npy", np.arange(50))
    data = open_dataset(tmp_path / "a.npy", label=str(tmp_path / "y.npy"))
    assert_array_equal(data.X, X)
    assert_array_equal(data.y, np.arange(50))
    data = open_dataset(tmp_path / "a.npy", label=1)
    assert_array_equal(data.X, X[:, [0, 2]])
    assert_array_equal(data.y, X[:, 1])


def test_labels_beyond_64_bits(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, X=np.eye(2), y=np.array([1, 2**63], dtype=np.uint64))
    with pytest.raises(DataError, match=r"row 1: labels up to 2\^63 - 1 expected"):
        open_dataset(path)
    np.savez(path, X=np.eye(2), y=np.array([0, 1]), qid=np.array([1.0, np.inf]))
    with pytest.raises(DataError, match="row 1: expected a whole number as query, found inf"):
        open_dataset(path)


# ---- files that change while they are read


def test_svmlight_file_that_is_truncated_while_it_is_read(tmp_path, read_with):
    read_with(text_bytes=1000)
    path = tmp_path / "a.svm"
    path.write_text("1 1:0.5\n" * 1000)
    blocks = text_blocks(str(path))
    next(blocks)
    os.truncate(path, 3000)
    with pytest.raises(DataError, match="truncated while it was read: 3000 bytes, at first 8000"):
        for _ in blocks:
            pass


def test_svmlight_file_that_is_written_to_while_it_is_read(tmp_path, read_with):
    read_with(text_bytes=1000)
    path = tmp_path / "a.svm"
    path.write_text("1 1:0.5\n" * 1000)
    blocks = text_blocks(str(path))
    next(blocks)
    path.write_text("0 2:0.7\n" * 1000)
    os.utime(path, ns=(0, 0))
    with pytest.raises(DataError, match="changed while it was read"):
        for _ in blocks:
            pass


def test_npy_file_that_is_truncated_while_it_is_read(tmp_path, read_with):
    read_with(batch_bytes=1000)
    path = tmp_path / "a.npy"
    np.save(path, np.ones((1000, 4)))
    batches = iter(NpySource(str(path), ColumnSpec(0)))
    next(batches)
    os.truncate(path, 3000)
    with pytest.raises(DataError, match="truncated while it was read: 3000 bytes"):
        for _ in batches:
            pass


def make_store(path, *, kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 6))
    X = sparse.csr_matrix(X) if kind == "csr" else X
    return cutsvm.convert((X, rng.integers(0, 2, 40_000)), path, block_bytes=4096 * 50).store


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_store_block_that_is_truncated_while_it_is_mapped(kind, tmp_path):
    store = make_store(tmp_path / "store", kind=kind)
    rows = StoreRows(store)
    with pytest.raises(DataError, match=r"block-000000.bin: truncated while it was read: 5000 bytes, expected"):
        for place, part in rows.blocks():
            if place.start == 0:
                os.truncate(store.path / store.manifest.block_name(0), 5000)
            scores = np.empty(part.n)
            part.scores(np.ones(6), 0.0, scores)  # would be a SIGBUS
            assert np.isfinite(scores).all()


@pytest.mark.slow
@pytest.mark.parametrize("what", ["block", "y", "squares"])
@pytest.mark.parametrize("solver", ["ocas", "sifting", "accpm"])
def test_training_from_a_store_that_is_truncated(what, solver, tmp_path):
    store = make_store(tmp_path / "store", kind="csr")

    def truncate(record):
        if record.iteration == 2:
            name = store.manifest.block_name(3) if what == "block" else store.manifest.part_name(what)
            os.truncate(store.path / name, 4096)

    tol = 1e-3 if solver == "accpm" else 1e-6
    model = LinearSVC(solver=solver, tol=tol, memory_limit="2GB", callbacks=[truncate])
    # Of labels and squares everything may have been read by then; a wrong model is what must not be.
    try:
        model.fit(store.path)
    except DataError as error:
        assert "truncated" in str(error)
    else:
        assert what != "block" and model.gap_ <= 1.1 * tol


@pytest.mark.slow
def test_truncation_during_cutsvm_train_is_a_message(tmp_path):
    """A process whose store is cut while it trains ends with exit code 2 and one line."""
    store = make_store(tmp_path / "store", kind="dense")
    blocks = [str(store.path / store.manifest.block_name(k)) for k in range(4)]
    words = ["train", "-e", "1e-12", "--memory", "2GB", str(tmp_path / "store"), str(tmp_path / "a.model")]
    script = (
        "import os, sys, cutsvm.display.callbacks as callbacks; from cutsvm.cli import main\n"
        "def cut(self, record):\n"
        "    if record.iteration == 3: [os.truncate(name, 9) for name in sys.argv[1:]]\n"
        "callbacks.ProgressBar.__call__ = cut\n"
        f"sys.exit(main({words!r}))\n"
    )
    done = subprocess.run([sys.executable, "-c", script, *blocks], capture_output=True, text=True, check=False)
    assert done.returncode == 2, (done.returncode, done.stderr)
    assert "truncated" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_other_bus_errors_end_the_process(tmp_path):
    """The handler is for our mappings only: elsewhere the signal does what it did before."""
    make_store(tmp_path / "store", kind="dense")
    script = (
        "import mmap, os, signal, sys; from cutsvm.io.store.store import Store\n"
        "store = Store(sys.argv[1]); store.read(0)\n"
        "if sys.argv[2] == 'sent': os.kill(os.getpid(), signal.SIGBUS)\n"
        "file = open(sys.argv[1] + '/x', 'w+b'); file.truncate(8192); page = mmap.mmap(file.fileno(), 8192)\n"
        "file.truncate(0); page[5000]\n"
    )
    for how in ("sent", "fault"):
        command = [sys.executable, "-c", script, str(tmp_path / "store"), how]
        assert subprocess.run(command, capture_output=True, check=False).returncode == -signal.SIGBUS


def test_a_store_can_be_pickled(tmp_path):
    store = make_store(tmp_path / "store", kind="dense")
    store.read(0)
    twin = pickle.loads(pickle.dumps(store))
    assert_array_equal(twin.read(0)[0], store.read(0)[0])


# ---- what is inside a store


def forge(path, changes):
    """The manifest with other fields, and a checksum that is right."""
    fields = json.loads((path / manifest.NAME).read_bytes())
    fields.update(changes)
    fields.pop("sha256")
    fields["sha256"] = manifest._digest(fields)
    (path / manifest.NAME).write_text(json.dumps(fields))


def rewrite_block(store, number, change):
    """Changes a block's values in place, with a checksum that is right."""
    manifest_ = store.manifest
    file = store.path / manifest_.block_name(number)
    content = np.fromfile(file, dtype=np.uint8)
    at, kind, count = manifest_.sections(manifest_.blocks[number])[-1]
    change(content[at : at + count * np.dtype(kind).itemsize].view(kind))
    content.tofile(file)
    segments = json.loads((store.path / manifest.NAME).read_bytes())["segments"]
    segments[0]["blocks"][number][2] = zlib.crc32(content)
    forge(store.path, {"segments": segments})


@pytest.mark.parametrize("limit", [None, "2GB"])
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_nan_inside_a_store_is_named_with_its_place(kind, limit, tmp_path):
    store = make_store(tmp_path / "store", kind=kind)
    first = int(store.edges[2])

    def spoil(values):
        values[6 * 10 + 4] = np.nan

    rewrite_block(store, 2, spoil)
    place = f"block-000002.bin: row {first + 10}, column 4: expected a finite number, found nan"
    with pytest.raises(DataError, match=place):
        LinearSVC(memory_limit=limit).fit(store.path)


@pytest.mark.parametrize(("name", "value"), [("y", np.nan), ("squares", np.nan), ("weights", -1.0)])
def test_columns_of_a_store_are_checked(name, value, tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 3))
    blocks = [(X, (np.arange(50) % 2).astype(float), np.ones(50))]
    store = cutsvm.convert(iter(blocks), tmp_path / "store").store
    file = store.path / store.manifest.part_name(name)
    numbers = np.fromfile(file, dtype="<f8")
    numbers[7] = value
    numbers.tofile(file)
    parts = json.loads((store.path / manifest.NAME).read_bytes())["parts"]
    parts[name]["crc32"] = zlib.crc32(numbers)
    forge(store.path, {"parts": parts})
    with pytest.raises(DataError, match=rf"{name}.bin: row 7: expected a finite number.*found {value}"):
        Store(store.path).column(name)


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_squares_of_a_store_are_those_of_its_rows(kind, tmp_path):
    store = make_store(tmp_path / "store", kind=kind)
    file = store.path / store.manifest.part_name("squares")
    numbers = np.fromfile(file, dtype="<f8")
    numbers[20_000] *= 2.0
    numbers.tofile(file)
    parts = json.loads((store.path / manifest.NAME).read_bytes())["parts"]
    parts["squares"]["crc32"] = zlib.crc32(numbers)
    forge(store.path, {"parts": parts})
    with pytest.raises(DataError, match=r"row 20000: the square of the row is"):
        Store(store.path).load()


def test_a_block_that_was_replaced_is_checked_again(tmp_path):
    store = make_store(tmp_path / "store", kind="csr")
    store.read(1)
    file = store.path / store.manifest.block_name(1)
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"block-000001.bin: damaged: the checksum does not match"):
        store.read(1)


@pytest.mark.parametrize("text", [b"[" * 100_000, b"[" * 100 + b"]" * 100, b'"\xff"', b"[NaN]"])
def test_store_names_that_are_no_json(text, tmp_path):
    store = make_store(tmp_path / "store", kind="dense")
    file = manifest.part_file(store.manifest.segments[0].data, "feature_names")
    (store.path / file).write_bytes(text)
    parts = json.loads((store.path / manifest.NAME).read_bytes())["parts"]
    parts["feature_names"] = {"dtype": "json", "size": len(text), "crc32": zlib.crc32(text), "file": file}
    forge(store.path, {"parts": parts})
    with pytest.raises(DataError, match=r"feature_names.json: not valid JSON: "):
        open_dataset(store.path)


def test_deeply_nested_json_raises():
    assert parse_json(b"[" * _MAX_DEPTH + b"]" * _MAX_DEPTH)
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json(b"[" * (_MAX_DEPTH + 1) + b"]" * (_MAX_DEPTH + 1))


def test_features_over_more_decades_than_a_float(tmp_path):
    X = np.array([[1e-300, 0.0], [0.0, 1e300], [1e-300, 1e300]])
    store = cutsvm.convert((X, [0, 1, 1]), tmp_path / "store")
    assert store.spread == np.finfo(float).max


# ---- svmlight numbers


@pytest.mark.parametrize(
    "digits", ["9223372036854775807", "9223372036854775808", "99999999999999999999", "4611686018427387904"]
)
def test_exponents_near_the_limits_of_64_bits(digits, tmp_path):
    path = tmp_path / "a.svm"
    for text in (f"1e{digits}", f"12345678901234567890123e+{digits}", f"-0.5E{digits}"):
        path.write_text(f"1 1:{text}\n")
        with pytest.raises(DataError, match="expected a finite value"):
            open_dataset(path)
    for text in (f"1e-{digits}", f"0e{digits}", f"12345678901234567890123e-{digits}", f"0.000e{digits}"):
        path.write_text(f"1 1:{text}\n")
        assert open_dataset(path).X[0, 0] == 0.0


def test_a_long_fraction_and_a_large_exponent_do_not_cancel(tmp_path):
    path = tmp_path / "a.svm"
    zeros = "0" * 999_999
    for exponent, value in ((1_000_000, 1.0), (1_000_001, 10.0), (1_000_022, 1e22)):
        path.write_text(f"1 1:0.{zeros}1e{exponent}\n")
        assert open_dataset(path).X[0, 0] == value
    path.write_text(f"1 1:0.{zeros}1e1000500\n")
    with pytest.raises(DataError, match="expected a finite value"):
        open_dataset(path)


# ---- names


@pytest.mark.parametrize("name", ["a\x1b[31m.svm", "a\nb.svm", "a\u202eb.svm"])
def test_control_characters_of_a_name_do_not_reach_the_terminal(name, tmp_path, capsys):
    path = tmp_path / name
    path.write_text("1 1:1 2:0.5\n-1 1:-1\n")
    bad = tmp_path / f"bad-{name}"
    bad.write_text("1 1:1\nx\n")
    sign = next(sign for sign in name if not sign.isprintable())
    commands = [
        ["check", path],
        ["check", bad],
        ["train", path],
        ["info", f"{path}.model"],
        ["predict", path, f"{path}.model"],
        ["convert", path, tmp_path / f"store-{name}"],
        ["info", tmp_path / f"store-{name}"],
        ["path", path, "--Cs", "0.1:1:2"],
        ["train", path, f"--{name}"],
        ["check", tmp_path / f"missing-{name}"],
    ]
    for words in commands:
        main([str(word) for word in words])
        said = capsys.readouterr()
        assert not any(sign in line for stream in said for line in stream.split("\n"))
        if sign == "\n":
            assert "b.svm" not in [line[:5] for stream in said for line in stream.split("\n")], words


def test_control_characters_of_labels_and_names_in_python(rows, tmp_path, capsys):
    X, _ = rows
    y = np.array(["a\x1b[31m", "b\n", "c"])[np.arange(N) % 3]
    path = tmp_path / "fit\x1b.ck"
    model = LinearSVC(multi_class="ovr", solver="ocas", max_iter=1, tol=1e-9, verbose=1, checkpoint=path)
    with pytest.warns(ConvergenceWarning) as warned:
        model.set_params(callbacks=[ProgressBar(every=0.0)]).fit(X, y)
    said = capsys.readouterr().err + "".join(str(warning.message) for warning in warned)
    assert "\x1b" not in said and "\\x1b" in said and "class b\\n against the rest" in said


def test_labels_with_line_breaks_are_one_prediction_a_line(tmp_path, capsys):
    X = np.random.default_rng(0).normal(size=(20, 2))
    np.savez(tmp_path / "a.npz", X=X, y=np.where(X[:, 0] > 0, "yes\n\x1b[0m", "no"))
    model = str(tmp_path / "a.model")
    assert main(["train", "-q", str(tmp_path / "a.npz"), model]) == 0
    capsys.readouterr()
    assert main(["predict", "-q", str(tmp_path / "a.npz"), model, "-"]) == 0
    assert set(capsys.readouterr().out.splitlines()) == {"yes\\n\\x1b[0m", "no"}


def test_an_index_at_the_end_of_64_bits(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text(f"1 1:1\n0 {2**63 - 1}:1\n")
    with pytest.raises(DataError, match=r"index 9223372036854775807 is too large for a store"):
        cutsvm.convert(path, tmp_path / "store")
    assert open_dataset(path).feature_ids.tolist() == [1, 2**63 - 1]


# ---- models and checkpoints whose checksum is right


def changed(path, kind, change):
    """The file with another header or other arrays, and a checksum that fits."""
    with open(path, "rb") as stream:
        header, stored = model_format.unpack(str(path), stream, kind)
    change(header, stored)
    path.write_bytes(b"".join(map(bytes, model_format.pack(header, stored, kind))))


BAD_HEADERS = {
    "status is a list": lambda header: header["fitted"].update(status=[]),
    "status is unknown": lambda header: header["fitted"].update(status="x"),
    "no gap": lambda header: header["fitted"].update(gap=[]),
    "a gap beyond float64": lambda header: header["fitted"].update(gap=10**400),
    "a count of queries alone": lambda header: header["fitted"].update(n_queries=3),
    "no count": lambda header: header["fitted"].update(n_pairs=None),
    "C is text": lambda header: header["params"].update(C="x"),
    "C beyond float64": lambda header: header["params"].update(C=10**400),
    "C is a solver": lambda header: header["params"].update(C={"solver": "OCAS", "options": {}}),
    "tol is 0": lambda header: header["params"].update(tol=0.0),
    "class weights are a number": lambda header: header["params"].update(class_weight=3),
    "intercept": lambda header: header["params"].update(intercept=7),
    "fit_intercept": lambda header: header["params"].update(fit_intercept="yes"),
    "features": lambda header: header.update(n_features=10**30),
    "nested": lambda header: header.update(task=[[[[]]]]),
}


@pytest.mark.parametrize("case", BAD_HEADERS)
def test_crafted_model_headers(case, rows, tmp_path, capsys):
    path = tmp_path / "a.model"
    cutsvm.save_model(LinearSVC().fit(*rows), path)
    changed(path, "model", lambda header, _: BAD_HEADERS[case](header))
    with pytest.raises(model_format.ModelFileError, match=r"a\.model"):
        cutsvm.load_model(path)
    assert main(["info", str(path)]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_model_by_a_solver_of_another_version(rows, tmp_path):
    path = tmp_path / "a.model"
    cutsvm.save_model(LinearSVC().fit(*rows), path)
    changed(path, "model", lambda header, _: header["params"].update(solver="of tomorrow"))
    assert cutsvm.load_model(path).estimator.solver == "auto"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("label 1 -1", "label 1_0 -1", "a.model:3: expected ASCII words and numbers"),
        ("label 1 -1", "label 1\xa0-1", "a.model:3: expected ASCII words and numbers"),
        ("0.25", "2_5", "a.model:7: expected ASCII words and numbers"),
        ("bias 1", "bias 1e300", "that float64 can hold"),
        ("0.25", "1e999", "expected finite numbers after 'w'"),
    ],
)
def test_numbers_of_a_liblinear_model(old, new, says, tmp_path):
    text = "solver_type L2R_L1LOSS_SVC_DUAL\nnr_class 2\nlabel 1 -1\nnr_feature 1\nbias 1\nw\n0.25\n1e200\n"
    path = tmp_path / "a.model"
    path.write_text(text)
    assert cutsvm.load_model(path).estimator.coef_.tolist() == [[0.25]]
    path.write_bytes(text.replace(old, new).encode("latin-1"))
    with pytest.raises(model_format.ModelFileError, match=says):
        cutsvm.load_model(path)


BAD_CHECKPOINTS = {
    "running is a list": lambda header, _: header.update(running=[]),
    "problems are a number": lambda header, _: header.update(problems=3),
    "a record is a list": lambda header, _: header["problems"][0].update(record=[]),
    "no primal": lambda header, _: header["problems"][0]["record"].update(primal=None),
    "a primal beyond float64": lambda header, _: header["problems"][0]["record"].update(primal=10**400),
    "w": lambda _, stored: stored["w0"].fill(1e200),
    "no slopes": lambda _, stored: stored.pop("slopes"),
    "huge slopes": lambda _, stored: stored["slopes"].fill(1e300),
    "errors that are not finite": lambda _, stored: stored["errors"].fill(np.inf),
    "huge offsets": lambda _, stored: stored["offsets"].fill(1e307),
    "slopes that are not finite": lambda _, stored: stored["slopes"].fill(np.nan),
    "shards": lambda _, stored: stored["shard"].fill(10**6),
}


@pytest.mark.parametrize("case", BAD_CHECKPOINTS)
@pytest.mark.filterwarnings("ignore:Stopped at a gap")
def test_crafted_checkpoints(case, rows, tmp_path):
    X, y = rows
    noisy = np.where(np.arange(N) % 5 == 0, -y, y)
    path = tmp_path / "fit.ck"
    model = LinearSVC(100.0, solver="ocas", tol=1e-12, max_iter=3, checkpoint=path).fit(X, noisy)
    changed(path, "checkpoint", BAD_CHECKPOINTS[case])
    with pytest.raises(ValueError, match=r"fit\.ck: damaged: "):
        model.fit(X, noisy)
