"""Model files: round trips are exact, and bad files raise."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from cutsvm.estimators.linear import LinearSVC
from cutsvm.estimators.ordinal import OrdinalSVC
from cutsvm.io import files
from cutsvm.io.files import write_atomically
from cutsvm.io.models import model_format
from cutsvm.io.models.model_file import ModelFileError, is_model_file, load_model, save_model
from cutsvm.io.models.model_format import pack
from cutsvm.solvers import ACCPM, CPA, DCD, OCAS, ArnostiSettings, Auto, Sifting
from tests.support.model_files import array, fitted, rebuild, tamper

CLASSES = {
    "int": np.array([-1, 1]),
    "int8": np.array([0, 1, 2], dtype=np.int8),
    "uint8": np.array([3, 200], dtype=np.uint8),
    "large int": np.array([-(2**62), 2**62]),
    "float": np.array([0.1, 0.30000000000000004, 1e300]),
    "float32": np.array([0.1, 0.2], dtype=np.float32),
    "bool": np.array([False, True]),
    "str": np.array(["eins", "zwei", "ß\n\"'\x1b"]),
    "object": np.array(["a", "bb"], dtype=object),
    "big-endian": np.array([1, 2], dtype=">i4"),
}


@pytest.mark.parametrize("name", CLASSES)
def test_labels_keep_value_and_dtype(tmp_path: Path, name: str) -> None:
    model = fitted(np.sort(CLASSES[name]))
    save_model(model, tmp_path / "m")
    classes = load_model(tmp_path / "m").estimator.classes_
    np.testing.assert_array_equal(classes, model.classes_)
    assert classes.dtype == model.classes_.dtype.newbyteorder("=")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [0, 1, 5, 1000])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_round_trip_is_exact(tmp_path: Path, dtype: Any, width: int, n_classes: int) -> None:
    model = fitted(np.arange(n_classes), width, dtype, C=0.3, tol=1e-5, intercept="regularized", max_iter=77)
    ids = np.arange(width) * 10**12 + 3
    save_model(model, tmp_path / "m", zero_based=True, feature_ids=ids)
    saved = load_model(tmp_path / "m")
    for name in ("coef_", "intercept_", "classes_"):
        loaded, original = getattr(saved.estimator, name), getattr(model, name)
        np.testing.assert_array_equal(loaded, original, strict=True)
        assert loaded.flags.writeable
    for name in ("n_features_in_", "n_iter_", "objective_", "lower_bound_", "gap_", "converged_", "status_"):
        assert getattr(saved.estimator, name) == getattr(model, name), name
    assert saved.estimator.get_params() == model.get_params()
    assert (saved.zero_based, saved.task, saved.format) == (True, "classify", "cutsvm")
    assert saved.feature_ids is not None
    np.testing.assert_array_equal(saved.feature_ids, ids)


def test_predictions_of_a_loaded_model(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    X, y = random.standard_normal((60, 4)), np.array(["no", "perhaps", "yes"])[np.arange(60) % 3]
    model = LinearSVC(multi_class="ovr", tol=1e-2).fit(X, y)
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m").estimator
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X), strict=True)
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X), strict=True)
    np.testing.assert_array_equal(loaded.objective_, model.objective_)


def test_parameters_that_are_objects(tmp_path: Path) -> None:
    model = fitted([1, 2], solver=OCAS(shards=4), class_weight={1: 2.0, 2: 0.5}, max_time=3.5, verbose=0)
    save_model(model, tmp_path / "m")
    params = load_model(tmp_path / "m").estimator.get_params()
    assert params["solver"] == OCAS(shards=4)
    assert params["class_weight"] == {1: 2.0, 2: 0.5}
    assert params["max_time"] == 3.5


SOLVERS = [
    *(OCAS(line_search="tca", shards=4), CPA(epsilon=0.1, buckets=2), DCD(), ACCPM(formulation="E"), Auto()),
    *(CPA(exact=True), OCAS(exact=True, epsilon=0.5)),
    OCAS(line_search="gca2", safe=False, first_step=0.5, guard="none", arnosti=ArnostiSettings(beta=0.1, t1=0.3)),
    *(Sifting(), Sifting(inner=OCAS(line_search="gca", shards=2), band=0.3), Sifting(inner=DCD())),
]


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_solver_objects_are_restored(tmp_path: Path, solver: Any) -> None:
    save_model(fitted([1, 2], solver=solver), tmp_path / "m")
    assert load_model(tmp_path / "m").estimator.solver == solver


@pytest.mark.parametrize("inner", [None, 3, "ocas", {"solver": "Nobody", "options": {}}], ids=repr)
def test_a_solver_within_a_solver_that_is_unknown(tmp_path: Path, inner: Any) -> None:
    """Files of earlier versions have null there: that is the default. Else the solver is left out."""
    packed = {"solver": "Sifting", "options": {"inner": inner, "band": 0.5}}
    path = tamper(tmp_path, lambda header: header["params"].update(solver=packed))
    expected = Sifting(band=0.5) if inner is None or isinstance(inner, dict) else "auto"
    assert load_model(path).estimator.solver == expected


def test_an_unknown_solver_does_not_stop_a_prediction(tmp_path: Path) -> None:
    def newer(header: dict[str, Any]) -> None:
        header["params"]["solver"] = {"solver": "Oracle", "options": {"x": 1}}
        header["params"]["from_the_future"] = 3

    path = tamper(tmp_path, newer)
    assert load_model(path).estimator.solver == "auto"


def test_solver_names_resolve_to_solvers_only(tmp_path: Path) -> None:
    for name in ("annotations", "REGISTRY", "resolve", "Solver", "__builtins__"):
        path = tamper(tmp_path, lambda h, n=name: h["params"].update(solver={"solver": n, "options": {}}))
        assert load_model(path).estimator.solver == "auto"


def test_feature_names_and_sparse_weights(tmp_path: Path) -> None:
    from scipy import sparse

    model = fitted([0, 1], 3)
    model.feature_names_in_ = np.array(["a", "b", "ü"], dtype=object)
    dense = model.coef_
    model.coef_ = sparse.csr_matrix(dense)
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m").estimator
    np.testing.assert_array_equal(loaded.feature_names_in_, model.feature_names_in_)
    np.testing.assert_array_equal(loaded.coef_, dense)


def test_results_as_lists_or_unknown(tmp_path: Path) -> None:
    model = fitted([0, 1, 2])
    model.gap_, model.lower_bound_ = np.array([0.1, 0.2, np.inf]), float("-inf")
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m").estimator
    np.testing.assert_array_equal(loaded.gap_, [0.1, 0.2, np.nan])
    assert loaded.lower_bound_ is None


def test_invalid_models_raise(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="not fitted"):
        save_model(LinearSVC(), tmp_path / "m")
    with pytest.raises(ValueError, match="format"):
        save_model(fitted([0, 1]), tmp_path / "m", format="pickle")  # type: ignore[arg-type]
    broken = fitted([0, 1])
    broken.coef_[0, 0] = np.nan
    with pytest.raises(ModelFileError, match="finite"):
        save_model(broken, tmp_path / "m")
    with pytest.raises(ModelFileError, match="complex"):
        save_model(fitted(np.array([1j, 2j])), tmp_path / "m")
    with pytest.raises(TypeError, match="dtype"):
        pack({}, {"a": np.array([1j])})
    assert list(tmp_path.iterdir()) == []


# ---- bad files


def test_truncation_at_every_byte_and_trailing_bytes(tmp_path: Path) -> None:
    path = tmp_path / "m"
    save_model(fitted([-1, 1], 3), path)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match=str(path)):
            load_model(path)
    path.write_bytes(whole + b"\n")
    with pytest.raises(ModelFileError, match="after its end"):
        load_model(path)


def test_every_flipped_bit_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "m"
    save_model(fitted([-1, 1], 3), path)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(ModelFileError):
            load_model(path)


HOSTILE = {
    "giant shape": lambda h: array(h).update(shape=[1, 10**15]),
    "giant shape and length": lambda h: array(h).update(shape=[1, 10**15], length=8 * 10**15),
    "overflowing shape": lambda h: array(h).update(shape=[2**63, 2**63], length=0),
    "empty giant": lambda h: array(h).update(shape=[0, 2**70], length=0),
    "negative shape": lambda h: array(h).update(shape=[-1, -5]),
    "three dimensions": lambda h: array(h).update(shape=[1, 1, 5]),
    "boolean shape": lambda h: array(h).update(shape=[True, 5]),
    "no shape": lambda h: array(h).pop("shape"),
    "negative length": lambda h: array(h).update(length=-40),
    "wrong offset": lambda h: array(h).update(offset=8),
    "negative offset": lambda h: array(h).update(offset=-64),
    "object dtype": lambda h: array(h).update(dtype="|O8"),
    "big-endian dtype": lambda h: array(h).update(dtype=">f8"),
    "unhashable dtype": lambda h: array(h).update(dtype=[["a", "f8"]]),
    "integer weights": lambda h: array(h).update(dtype="<i8"),
    "array twice": lambda h: h["arrays"].append(h["arrays"][0]),
    "array missing": lambda h: h["arrays"].pop(0),
    "arrays not a list": lambda h: h.update(arrays={"coef": 1}),
    "array not an object": lambda h: h["arrays"].insert(0, 3),
    "no arrays": lambda h: h.pop("arrays"),
    "other width": lambda h: h.update(n_features=6),
    "width not a number": lambda h: h.update(n_features="5"),
    "no classes": lambda h: h.pop("classes"),
    "one class": lambda h: h["classes"].update(values=[1]),
    "same class twice": lambda h: h["classes"].update(values=[1, 1]),
    "classes descending": lambda h: h["classes"].update(values=[1, -1]),
    "too many classes": lambda h: h["classes"].update(values=[1, 2, 3]),
    "nested classes": lambda h: h["classes"].update(values=[[1], [2]]),
    "class too large": lambda h: h["classes"].update(values=[1, 2**70]),
    "class dtype void": lambda h: h["classes"].update(dtype="V8"),
    "class dtype nonsense": lambda h: h["classes"].update(dtype="<i3"),
    "class dtype of text": lambda h: h["classes"].update(dtype="<U1000000000"),
    "wide classes": lambda h: h["classes"].update(dtype="<U9", values=["a" * 10**6, *map(str, range(1000))]),
    "task": lambda h: h.update(task="world domination"),
    "base": lambda h: h.update(zero_based=1),
    "params": lambda h: h.update(params=[1]),
    "pairs": lambda h: h["params"].update(class_weight={"pairs": [[[1], 2]]}),
    "fitted": lambda h: h.update(fitted=None),
    "gap": lambda h: h["fitted"].update(gap="small"),
    "status": lambda h: h["fitted"].update(status="__class__"),
    "names": lambda h: h.update(feature_names=["a"]),
    "names not text": lambda h: h.update(feature_names=[1, 2, 3, 4, 5]),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_headers(tmp_path: Path, case: str) -> None:
    path = tamper(tmp_path, HOSTILE[case])
    with pytest.raises(ModelFileError, match=str(path)):
        load_model(path)


ORDINAL = {
    "no thresholds": lambda h: h["arrays"].pop(),
    "task of two classes": lambda h: h.update(task="roc"),
    "same class twice": lambda h: h["classes"].update(values=[1, 2, 2]),
    "one class less": lambda h: h["classes"].update(values=[1, 2]),
}


def ordinal() -> OrdinalSVC:
    X = np.arange(12.0).reshape(6, 2)
    return OrdinalSVC().fit(X, [1, 1, 2, 2, 3, 3])


@pytest.mark.parametrize("case", ORDINAL)
def test_hostile_headers_of_thresholds(tmp_path: Path, case: str) -> None:
    path = tamper(tmp_path, ORDINAL[case], ordinal())
    with pytest.raises(ModelFileError, match=str(path)):
        load_model(path)


@pytest.mark.parametrize("thresholds", [[2.0, 1.0], [np.nan, 1.0]])
def test_decreasing_thresholds_raise(tmp_path: Path, thresholds: list[float]) -> None:
    model = ordinal()
    model.thresholds_ = np.array(thresholds)
    save_model(model, tmp_path / "m")
    with pytest.raises(ModelFileError, match="thresholds in ascending order"):
        load_model(tmp_path / "m")


def test_other_estimators_raise(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="LinearRegression cannot be written; expected one of LinearSVC"):
        save_model(LinearRegression(), tmp_path / "m")
    with pytest.raises(ModelFileError, match="LIBLINEAR's format holds linear classifiers"):
        save_model(ordinal(), tmp_path / "m", format="liblinear")


def test_text_labels_ignore_the_stated_width(tmp_path: Path) -> None:
    def widen(header: dict[str, Any]) -> None:
        header["classes"]["dtype"] = "<U1000000000"

    model = load_model(tamper(tmp_path, widen, fitted(["no", "yes"]))).estimator
    assert model.classes_.dtype == np.dtype("<U3")


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"[]",
        b"3",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"arrays": NaN}',
        b'{"arrays": []}',
        b'{"n_features": ' + b"9" * 10_000 + b"}",
    ],
)
def test_bad_json(tmp_path: Path, header: bytes) -> None:
    with pytest.raises(ModelFileError, match="bad"):
        load_model(rebuild(tmp_path / "bad", header, b""))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "empty"),
        (b"1 1:0.5\n", "neither"),
        (b"\x80\x04\x95", "neither"),
        (b"cutsvm-model 2 whatever\n", "newer"),
        (b"cutsvm-model x\n", "damaged"),
        (b"cutsvm-modelx 1\n", "not a cutsvm"),
        (b"cutsvm-model 1 header=9 total=99999999999999 sha256=" + b"0" * 64 + b"\n", "truncated"),
        (b"cutsvm-model 1 header=" + b"9" * 200 + b"\n", "damaged"),
    ],
)
def test_files_that_are_not_models(tmp_path: Path, text: bytes, says: str) -> None:
    path = tmp_path / "m"
    path.write_bytes(text)
    with pytest.raises(ModelFileError, match=says):
        load_model(path)


def test_header_longer_than_the_file(tmp_path: Path) -> None:
    path = tmp_path / "m"
    digest = hashlib.sha256(b"{}").hexdigest()
    first = f"cutsvm-model 1 header=500 total=110 sha256={digest}\n".encode()
    assert len(first) + 2 == 110
    path.write_bytes(first + b"{}")
    with pytest.raises(ModelFileError, match="longer"):
        load_model(path)


def test_a_model_through_a_pipe(tmp_path: Path) -> None:
    import threading

    os.mkfifo(tmp_path / "pipe")
    for format in ("cutsvm", "liblinear"):
        save_model(fitted([-1, 1], 30_000), tmp_path / "m", format=format)  # type: ignore[arg-type]
        whole = (tmp_path / "m").read_bytes()
        writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(whole,))
        writer.start()
        model = load_model(tmp_path / "pipe")
        writer.join()
        assert model.format == format and model.estimator.coef_.shape == (1, 30_000)


# ---- writing


def test_full_disk_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m"
    save_model(fitted([0, 1]), path)
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="No space") as caught:
        save_model(fitted([0, 1], 50), path)
    assert caught.value.filename == str(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m"]


def test_failed_write_leaves_no_file(tmp_path: Path) -> None:
    def pieces() -> Any:
        yield b"first"
        raise RuntimeError("second")

    with pytest.raises(RuntimeError):
        write_atomically(tmp_path / "m", pieces())
    assert os.listdir(tmp_path) == []


def test_permissions_links_and_long_names(tmp_path: Path) -> None:
    target = tmp_path / ("n" * 250)
    write_atomically(target, [b"new"])
    assert stat.S_IMODE(target.stat().st_mode) & 0o600 == 0o600
    target.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(target.name)
    write_atomically(link, [b"newer"])
    assert link.is_symlink()
    assert target.read_bytes() == b"newer"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_devices_are_written_to_and_not_replaced() -> None:
    write_atomically(os.devnull, [b"gone"])
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        save_model(fitted([0, 1]), tmp_path / "none" / "m")


# ---- LIBLINEAR's format

BINARY = """solver_type L2R_L1LOSS_SVC_DUAL
nr_class 2
label 1 -1
nr_feature 3
bias 1
w
0.25
-1.5
0.1
0.125
"""


@pytest.mark.parametrize("classes", [[-1, 1], [0, 1], [3, 7, 11]])
@pytest.mark.parametrize("intercept", [True, False])
def test_liblinear_round_trip(tmp_path: Path, classes: list[int], intercept: bool) -> None:
    model = fitted(classes, 4, fit_intercept=intercept)
    save_model(model, tmp_path / "m", format="liblinear", zero_based=False)
    saved = load_model(tmp_path / "m")
    assert (saved.format, saved.zero_based) == ("liblinear", False)
    assert saved.estimator.fit_intercept == intercept
    for name in ("coef_", "intercept_", "classes_"):
        np.testing.assert_array_equal(getattr(saved.estimator, name), getattr(model, name), strict=True)


def test_liblinear_text(tmp_path: Path) -> None:
    model = fitted([-1.0, 1.0], 3)
    model.coef_, model.intercept_ = np.array([[0.25, -1.5, 0.1]]), np.array([0.125])
    save_model(model, tmp_path / "m", format="liblinear")
    assert [line.rstrip() for line in (tmp_path / "m").read_text().splitlines()] == BINARY.splitlines()


def test_liblinear_fills_the_features_never_seen(tmp_path: Path) -> None:
    model = fitted([-1, 1], 3)
    save_model(model, tmp_path / "m", format="liblinear", feature_ids=[2, 3, 20_000])
    loaded = load_model(tmp_path / "m").estimator
    assert loaded.coef_.shape == (1, 20_000)
    np.testing.assert_array_equal(loaded.coef_[:, [1, 2, 19_999]], model.coef_)
    assert np.count_nonzero(loaded.coef_) == 3


@pytest.mark.parametrize(
    ("classes", "options", "says"),
    [
        ([0.5, 1.5], {}, "integer labels"),
        (["a", "b"], {}, "integer labels"),
        ([0, 2**40], {}, "integer labels"),
        ([0, 1], {"zero_based": True}, "from 1"),
        ([0, 1], {"feature_ids": [1, 2, 3, 4, 10**9]}, "line per feature"),
    ],
)
def test_models_that_liblinear_cannot_represent(tmp_path: Path, classes: Any, options: Any, says: str) -> None:
    with pytest.raises(ModelFileError, match=says):
        save_model(fitted(classes), tmp_path / "m", format="liblinear", **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("L2R_L1LOSS_SVC_DUAL", "L2R_XR", ":1: expected a solver_type of LIBLINEAR"),
        ("L2R_L1LOSS_SVC_DUAL", "L2R_L2LOSS_SVR", ":3: expected no line 'label' with L2R_L2LOSS_SVR"),
        ("L2R_L1LOSS_SVC_DUAL", "ONECLASS_SVM", "expected a line 'rho' before 'w'"),
        ("nr_class 2", "nr_class 3", ":3: expected nr_class"),
        ("label 1 -1", "label 1 1", ":3: expected nr_class"),
        ("label 1 -1", "label 1 x", ":3: expected integer"),
        ("label 1 -1", "label 1 99999999999", ":3: expected labels"),
        ("nr_feature 3", "nr_feature 4", "expected 5 x 1 weights"),
        ("nr_feature 3", "nr_feature 2000000000", ":4: more features"),
        ("nr_feature 3", "nr_feature -1", ":4: expected a count"),
        ("nr_feature 3", "nr_feature", ":4: expected a count"),
        ("bias 1\n", "bias x\n", ":5: expected a number"),
        ("bias 1\n", "bias inf\n", ":5: expected a number"),
        ("bias 1\n", "", ":5: expected a line 'bias'"),
        ("bias 1\n", "bias 1\nbias 1\n", ":6: expected a line of"),
        ("bias 1\n", "beta 1\n", ":5: expected a line of"),
        ("bias 1\n", "bias 1\nrho 1\n", ":6: expected no line 'rho' with L2R_L1LOSS_SVC_DUAL"),
        ("w\n", "", ":6: expected a line of"),
        ("-1.5", "x", "expected numbers"),
        ("-1.5", "nan", "finite"),
        ("0.125\n", "", "found 3"),
        ("0.125\n", "0.125\n1\n", "found 5"),
    ],
)
def test_bad_liblinear_models(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = tmp_path / "m"
    path.write_text(BINARY.replace(old, new, 1))
    with pytest.raises(ModelFileError, match=f"{path}.*{says}"):
        load_model(path)
    path.write_text("solver_type L2R_LR\n")
    with pytest.raises(ModelFileError, match="cut off"):
        load_model(path)


def test_liblinear_labels_in_any_order_and_any_bias(tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_text(BINARY.replace("label 1 -1", "label -1 1").replace("bias 1", "bias 2"))
    model = load_model(path).estimator
    np.testing.assert_array_equal(model.coef_, [[-0.25, 1.5, -0.1]])
    np.testing.assert_array_equal(model.intercept_, [-0.25])
    path.write_text(
        "solver_type MCSVM_CS\nnr_class 2\nlabel 5 3\nnr_feature 2\nbias -1\nw\n1 2\n3 5\n".replace("\n", "\r\n")
    )
    model = load_model(path).estimator
    np.testing.assert_array_equal(model.classes_, [3, 5])
    np.testing.assert_array_equal(model.coef_, [[-1, -2]])


def test_is_model_file(tmp_path: Path) -> None:
    save_model(fitted([0, 1]), tmp_path / "ours")
    save_model(fitted([0, 1]), tmp_path / "theirs", format="liblinear")
    (tmp_path / "data").write_text("+1 1:1\n")
    (tmp_path / "empty").touch()
    assert [is_model_file(tmp_path / name) for name in ("ours", "theirs", "data", "empty")] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_liblinear_predicts_the_same(tmp_path: Path, n_classes: int, intercept: bool) -> None:
    theirs = pytest.importorskip("liblinear.liblinearutil")
    random = np.random.default_rng(3)
    X = random.standard_normal((80, 6))
    model = fitted(np.array([-1, 1, 4])[:n_classes], 6, fit_intercept=intercept)
    path = tmp_path / "m"
    save_model(model, path, format="liblinear")
    labels, _, scores = theirs.predict([], X, theirs.load_model(str(path)), "-q")
    np.testing.assert_array_equal(np.array(labels, dtype=int), model.predict(X))
    ours = model.decision_function(X)
    np.testing.assert_allclose(np.array(scores)[:, 0] if n_classes == 2 else scores, ours, rtol=1e-9)


@pytest.mark.parametrize("options", ["-s 3 -B 1", "-s 3", "-s 4 -B 1", "-s 4", "-s 0 -B 2"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_predictions_equal_liblinear(tmp_path: Path, n_classes: int, options: str) -> None:
    theirs = pytest.importorskip("liblinear.liblinearutil")
    random = np.random.default_rng(4)
    X = random.standard_normal((90, 4))
    y = (np.arange(90) * 7 % n_classes) * 3 - 2
    X[:, 0] += y
    trained = theirs.train(y, X, options + " -q")
    theirs.save_model(str(tmp_path / "m"), trained)
    labels, _, _ = theirs.predict([], X, trained, "-q")
    loaded = load_model(tmp_path / "m").estimator
    np.testing.assert_array_equal(loaded.predict(X), np.array(labels, dtype=int))


def test_version_is_stated_or_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> str:
        raise model_format.PackageNotFoundError

    monkeypatch.setattr(model_format, "version", missing)
    model_format.package_version.cache_clear()
    try:
        assert model_format.package_version() == "unknown"
    finally:
        model_format.package_version.cache_clear()
