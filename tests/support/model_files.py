"""Model files whose contents were changed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from cutsvm.driver.records import Status
from cutsvm.estimators.linear import LinearSVC
from cutsvm.io.models.model_file import save_model


def fitted(classes: Any, width: int = 5, dtype: Any = np.float64, **params: Any) -> LinearSVC:
    """An estimator with given labels and random weights, as after a fit."""
    classes = np.asarray(classes)
    rows = 1 if len(classes) == 2 else len(classes)
    random = np.random.default_rng(len(classes) * 100 + width)
    model = LinearSVC(**params)
    model.classes_ = classes
    model.coef_ = random.standard_normal((rows, width)).astype(dtype)
    model.intercept_ = random.standard_normal(rows) if model.fit_intercept else np.zeros(rows)
    model.n_features_in_ = width
    model.n_iter_, model.objective_, model.lower_bound_, model.gap_ = 7, 12.5, 12.25, 0.02
    model.converged_, model.status_, model.history_ = True, Status.CONVERGED, []
    return model


def rebuild(path: Path, header: bytes, data: bytes) -> Path:
    """A file whose length and checksum are right, whatever the header says."""
    body = header + data
    digest = hashlib.sha256(body).hexdigest()
    total = len(body)
    while True:
        first = f"cutsvm-model 1 header={len(header)} total={total} sha256={digest}\n".encode()
        if len(first) + len(body) == total:
            break
        total = len(first) + len(body)
    path.write_bytes(first + body)
    return path


def tamper(folder: Path, change: Any, model: LinearSVC | None = None) -> Path:
    """A valid model whose header was changed by `change`."""
    path = folder / "tampered"
    save_model(model or fitted([-1, 1]), path, feature_ids=np.arange(5))
    first, rest = path.read_bytes().split(b"\n", 1)
    length = int(first.split(b"header=")[1].split()[0])
    header = json.loads(rest[:length])
    change(header)
    return rebuild(path, json.dumps(header).encode(), rest[length:])


def array(header: dict[str, Any], name: str = "coef") -> dict[str, Any]:
    found: dict[str, Any] = next(entry for entry in header["arrays"] if entry["name"] == name)
    return found
