"""LIBLINEAR's text model, written and read.

    solver_type L2R_L1LOSS_SVC_DUAL
    nr_class 2
    label 1 -1
    nr_feature 3
    bias 1
    w
    0.25            one line per feature, one column per class
    -1.5            (two classes: one column, for the label that comes first)
    0.0
    0.125           with bias >= 0 one line more: the weight of a constant feature with that value

Regressors and one-class models have no line `label`; one-class models have a line `rho`, which is subtracted from the
scores, and no bias. Numbers are written so that they read back exactly.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cutsvm.io.models.model_format import ModelFileError

_COMMON_WORDS = (b"solver_type", b"nr_class", b"nr_feature", b"bias")
HEADER_WORDS = (*_COMMON_WORDS, b"label", b"rho")
_CRAMMER_SINGER = "MCSVM_CS"


class Kind(NamedTuple):
    """What a solver_type stands for: the task of the model, parameters of its estimator, and its own header word."""

    task: str
    parameters: Mapping[str, Any]
    own_word: str | None = None


_LOGISTIC = Kind("classify", {"loss": "logistic", "multi_class": "ovr"}, "label")
_SQUARED_HINGE = Kind("classify", {"loss": "squared_hinge", "multi_class": "ovr"}, "label")
_HINGE = Kind("classify", {}, "label")
_SQUARED_TUBE = Kind("regress", {"loss": "squared_epsilon_insensitive"})
READABLE = {
    "L2R_LR": _LOGISTIC,
    "L2R_LR_DUAL": _LOGISTIC,
    "L1R_LR": _LOGISTIC,
    "L2R_L2LOSS_SVC": _SQUARED_HINGE,
    "L2R_L2LOSS_SVC_DUAL": _SQUARED_HINGE,
    "L1R_L2LOSS_SVC": _SQUARED_HINGE,
    "L2R_L1LOSS_SVC_DUAL": _HINGE,
    _CRAMMER_SINGER: _HINGE,
    "L2R_L2LOSS_SVR": _SQUARED_TUBE,
    "L2R_L2LOSS_SVR_DUAL": _SQUARED_TUBE,
    "L2R_L1LOSS_SVR_DUAL": Kind("regress", {}),
    "ONECLASS_SVM": Kind("oneclass", {}, "rho"),
}
# LIBLINEAR counts features in an int, and every unused id costs a line of text.
_MAX_FEATURES = 50_000_000
# Words with an underscore: of the header, and names of solvers.
_NAMES = re.compile(rb"\b(?:solver_type|nr_class|nr_feature|L[12]R_[A-Z0-9_]+|MCSVM_CS|ONECLASS_SVM)\b")
_LINES_PER_PIECE = 8192


@dataclass(frozen=True, eq=False)
class LinearWeights:
    """A linear model: coef (1 or K, d), intercept (1 or K,) or None; of regressors and one-class models no classes."""

    classes: npt.NDArray[Any]
    coef: npt.NDArray[np.float64]
    intercept: npt.NDArray[np.float64] | None
    solver_type: str


def check_writable(
    classes: npt.NDArray[Any], zero_based: bool | None, feature_ids: npt.NDArray[np.int64] | None
) -> None:
    """Raise `ModelFileError` if LIBLINEAR's format cannot hold the model."""
    integral = classes.dtype.kind in "iu" or (classes.dtype.kind == "f" and bool(np.all(classes == np.rint(classes))))
    if not integral or not np.all(np.abs(classes.astype(np.float64)) < 2**31):
        shown = ", ".join(map(str, classes[:3].tolist()))
        raise ModelFileError(f"LIBLINEAR's format holds integer labels only; these are {shown}, ...")
    if zero_based:
        raise ModelFileError("LIBLINEAR numbers features from 1; this model was trained on features from 0")
    if feature_ids is not None and len(feature_ids) and int(feature_ids[-1]) > _MAX_FEATURES:
        raise ModelFileError(f"LIBLINEAR's format needs a line per feature up to the last, {feature_ids[-1]}")


def text_pieces(model: LinearWeights, feature_ids: npt.NDArray[np.int64] | None = None) -> Iterator[bytes]:
    """The text of the model, in pieces. `feature_ids`: the 1-based id of each column, ascending."""
    check_writable(model.classes, False, feature_ids)
    labels = [int(label) for label in model.classes.tolist()]
    # Our scores are positive for classes[1]; LIBLINEAR's for the label that comes first.
    order = labels[::-1] if len(labels) == 2 else labels
    width = model.coef.shape[1] if feature_ids is None else int(feature_ids[-1]) if len(feature_ids) else 0
    own_word = READABLE[model.solver_type].own_word
    intercept = None if own_word == "rho" else model.intercept
    yield f"solver_type {model.solver_type}\nnr_class {len(labels) or 2}\n".encode("ascii")
    if own_word == "label":
        yield f"label {' '.join(map(str, order))}\n".encode("ascii")
    yield f"nr_feature {width}\nbias {-1 if intercept is None else 1}\n".encode("ascii")
    if own_word == "rho":
        yield f"rho {0.0 if model.intercept is None else 0.0 - float(model.intercept[0])!r}\n".encode("ascii")
    yield b"w\n"
    yield from _weight_lines(model.coef, feature_ids)
    if intercept is not None:
        yield _line(intercept.tolist())


def _line(values: list[float]) -> bytes:
    """The values in the shortest decimals that read back exactly."""
    return (" ".join(map(repr, values)) + " \n").encode("ascii")


def _weight_lines(coef: npt.NDArray[np.float64], feature_ids: npt.NDArray[np.int64] | None) -> Iterator[bytes]:
    """One line per feature id from 1 on; zeros for ids that did not occur."""
    unseen = b"0 " * len(coef) + b"\n"
    next_id = 1
    for start in range(0, coef.shape[1], _LINES_PER_PIECE):
        rows = coef[:, start : start + _LINES_PER_PIECE].T.tolist()
        if feature_ids is None:
            yield b"".join(map(_line, rows))
            continue
        for identifier, row in zip(feature_ids[start : start + len(rows)].tolist(), rows, strict=True):
            for skipped in range(next_id, identifier, _LINES_PER_PIECE):
                yield unseen * min(_LINES_PER_PIECE, identifier - skipped)
            yield _line(row)
            next_id = identifier + 1


def read_text(name: str, text: bytes) -> LinearWeights:
    """The model in `text`; errors as `name:line: what was expected`."""
    # Python accepts 1_000 as a number, and blanks beyond ASCII; LIBLINEAR does not.
    odd = re.search(rb"[_\x00\x1c-\x1f\x80-\xff]", _NAMES.sub(lambda name: b" " * len(name[0]), text))
    if odd is not None:
        line = text.count(b"\n", 0, odd.start()) + 1
        raise ModelFileError(f"{name}:{line}: expected ASCII words and numbers, got {odd[0]!r}")
    head, start = _head(name, text)
    solver = head["solver_type"][1]
    kind = READABLE.get(solver)
    if kind is None:
        raise ModelFileError(
            f"{name}:{head['solver_type'][0]}: expected a solver_type of LIBLINEAR, not {solver[:40]!r}"
        )
    _check_own_word(name, head, kind)
    labels = _labels(name, head) if kind.own_word == "label" else []
    features, bias = _number(name, head, "nr_feature"), _float(name, head, "bias")
    rho = _float(name, head, "rho") if kind.own_word == "rho" else None
    columns = len(labels) if len(labels) > 2 or solver == _CRAMMER_SINGER else 1
    rows = features + (bias >= 0)
    # Every number takes two bytes of the file or more: allocate no more than the file can hold.
    if rows * columns > len(text):
        raise ModelFileError(f"{name}:{head['nr_feature'][0]}: more features than the file has numbers")
    tokens = text[start:].split()
    if len(tokens) != rows * columns:
        raise ModelFileError(f"{name}: expected {rows} x {columns} weights after 'w', found {len(tokens)}")
    weights = _floats(name, tokens).reshape(rows, columns).T
    with np.errstate(over="ignore"):
        intercept = weights[:, -1] * bias if bias >= 0 else None
        if rho is not None:
            intercept = np.array([0.0 - rho]) if intercept is None else intercept - rho
        model = LinearWeights(np.empty(0), weights[:, :features], intercept, solver)
        if labels:
            model = _with_ascending_classes(labels, model)
    if not (np.isfinite(model.coef).all() and (model.intercept is None or np.isfinite(model.intercept).all())):
        raise ModelFileError(f"{name}: expected weights, and their products with the bias, that float64 can hold")
    return model


def _head(name: str, text: bytes) -> tuple[dict[str, tuple[int, str]], int]:
    """The lines before `w` as {word: (line number, rest)}, and the offset of the weights."""
    head: dict[str, tuple[int, str]] = {}
    start, number = 0, 0
    while start < len(text):
        number += 1
        end = text.find(b"\n", start)
        end = len(text) if end < 0 else end
        word, _, rest = text[start:end].strip().decode("latin-1").partition(" ")
        start = end + 1
        if word == "w":
            missing = [w.decode() for w in _COMMON_WORDS if w.decode() not in head]
            if missing:
                raise ModelFileError(f"{name}:{number}: expected a line {missing[0]!r} before 'w'")
            return head, start
        if word.encode("latin-1") not in HEADER_WORDS or word in head:
            raise ModelFileError(f"{name}:{number}: expected a line of a LIBLINEAR header, got {word[:40]!r}")
        head[word] = (number, rest.strip())
    raise ModelFileError(f"{name}: cut off: expected a line 'w' and the weights")


def _check_own_word(name: str, head: dict[str, tuple[int, str]], kind: Kind) -> None:
    """Refuse a header without the line of its kind of model, or with that of another."""
    if kind.own_word is not None and kind.own_word not in head:
        raise ModelFileError(f"{name}: expected a line {kind.own_word!r} before 'w'")
    _number(name, head, "nr_class")
    for word in {"label", "rho"} - {kind.own_word}:
        if word in head:
            raise ModelFileError(f"{name}:{head[word][0]}: expected no line {word!r} with {head['solver_type'][1]}")


def _number(name: str, head: dict[str, tuple[int, str]], word: str) -> int:
    line, text = head[word]
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise ModelFileError(f"{name}:{line}: expected a count after {word!r}, got {text[:40]!r}")
    return int(text)


def _float(name: str, head: dict[str, tuple[int, str]], word: str) -> float:
    line, text = head[word]
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ModelFileError(f"{name}:{line}: expected a number after {word!r}, got {text[:40]!r}")
    return value


def _labels(name: str, head: dict[str, tuple[int, str]]) -> list[int]:
    line, text = head["label"]
    try:
        labels = [int(word) for word in text.split()]
    except ValueError:
        raise ModelFileError(f"{name}:{line}: expected integer labels") from None
    if len(labels) != _number(name, head, "nr_class") or len(labels) < 2 or len(set(labels)) < len(labels):
        raise ModelFileError(f"{name}:{line}: expected nr_class different labels, two or more")
    if not all(abs(label) < 2**31 for label in labels):
        raise ModelFileError(f"{name}:{line}: expected labels that fit in an int")
    return labels


def _floats(name: str, tokens: list[bytes]) -> npt.NDArray[np.float64]:
    try:
        values = np.array([float(token) for token in tokens], dtype=np.float64)
    except ValueError as error:
        raise ModelFileError(f"{name}: expected numbers after 'w': {error}") from None
    if not np.isfinite(values).all():
        raise ModelFileError(f"{name}: expected finite numbers after 'w'")
    return values


def _with_ascending_classes(labels: list[int], model: LinearWeights) -> LinearWeights:
    """The classes in ascending order; of two classes one row of weights, positive for the larger label."""
    order = np.argsort(labels)
    classes = np.array(labels, dtype=np.int64)[order]
    coef, intercept = model.coef, model.intercept
    if len(labels) > 2:
        turned = None if intercept is None else intercept[order]
        return LinearWeights(classes, coef[order], turned, model.solver_type)
    sign = 1.0 if labels[0] == classes[1] else -1.0
    # Crammer and Singer's two rows of weights: the larger score wins, so their difference decides.
    fold = np.array([[sign]]) if len(coef) == 1 else np.array([[sign, -sign]])
    return LinearWeights(classes, fold @ coef, None if intercept is None else fold @ intercept, model.solver_type)
