"""Model files and checkpoints, whose container has a length and a checksum."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from random import Random
from typing import Any

import numpy as np
from scipy import sparse

from cutsvm import (
    KernelOneClassSVM,
    KernelSVC,
    KernelSVR,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    OrdinalSVC,
    QuantileSVR,
    RankingSVM,
    ROCAreaSVC,
)
from cutsvm.cli import info, messages
from cutsvm.io.models.model_file import load_model, save_model
from cutsvm.io.models.model_format import ModelFileError
from tests.fuzz.mutate import mutate_bytes, mutate_json
from tests.fuzz.target import Target, require

__all__ = ["Checkpoints", "Models"]

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 3))
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=24) > 0, 1, -1)
THREE = np.arange(24) % 3


def split(data: bytes) -> tuple[str, dict[str, Any], bytes]:
    """Kind, header and arrays of a container."""
    line, _, rest = data.partition(b"\n")
    size = int(line.split(b"header=")[1].split(b" ")[0])
    return line.split(b" ")[0].decode(), json.loads(rest[:size]), rest[size:]


def join(kind: str, header: Any, arrays: bytes) -> bytes:
    """A container whose length and checksum are right."""
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 1) % 64) + b"\n"
    digest = hashlib.sha256(text + arrays).hexdigest()
    total = 0
    while True:
        line = f"{kind} 1 header={len(text)} total={total} sha256={digest}\n".encode()
        if len(line) + len(text) + len(arrays) == total:
            return line + text + arrays
        total = len(line) + len(text) + len(arrays)


class Container(Target):
    """A changed file is refused by its checksum; one whose checksum was made to fit is refused, or consistent."""

    def make(self, random: Random) -> bytes:
        seed = random.choice(self.seeds)
        if random.random() < 0.3:
            return mutate_bytes(random, seed, self.seeds)
        kind, header, arrays = split(seed)
        change = random.random()
        for _ in range(random.choice((1, 1, 1, 3))):
            if change < 0.7:
                header = mutate_json(random, header)
            if change > 0.6:
                arrays = self.other_numbers(random, arrays)
        return join(kind, header, arrays)

    @staticmethod
    def other_numbers(random: Random, arrays: bytes) -> bytes:
        if random.random() < 0.3:
            return mutate_bytes(random, arrays, [])
        numbers = np.frombuffer(arrays[: len(arrays) // 8 * 8], dtype="<f8").copy()
        if not len(numbers):
            return arrays
        at = random.randrange(len(numbers))
        if random.random() < 0.5:
            numbers[at] = random.choice((np.nan, np.inf, -1.0, 1e308, 0.0))
        else:
            numbers.view("<i8")[at] = random.choice((-1, 0, 1, 2, 2**31, 2**62))
        return numbers.tobytes() + arrays[len(arrays) // 8 * 8 :]

    def is_sound(self, data: bytes) -> bool:
        """Whether length and checksum are right."""
        try:
            line, _, rest = data.partition(b"\n")
            total = int(line.split(b"total=")[1].split(b" ")[0])
            return total == len(data) and line.endswith(b"sha256=" + hashlib.sha256(rest).hexdigest().encode())
        except (IndexError, ValueError):
            return False


class Models(Container):
    """Model files of every task; what is loaded predicts, and `cutsvm info` shows it."""

    name, suffix = "model", ".model"
    refusals = (ModelFileError,)

    def make_seeds(self) -> list[bytes]:
        models: list[Any] = [
            LinearSVC(class_weight={1: 2.0, -1: 1.0}).fit(X, Y),
            LinearSVC(solver="cpa").fit(X.astype(np.float32), np.array(["a", "b", "c"])[THREE]),
            LinearSVC(multi_class="ovr").fit(X, THREE),
            RankingSVM().fit(X, THREE, qid=np.arange(24) // 6),
            ROCAreaSVC().fit(X, Y),
            OrdinalSVC().fit(X, THREE),
            LinearOneClassSVM(nu=0.2).fit(X + 2.0),
            LinearSVC(loss="logistic").fit(X, THREE),
            LinearSVR(epsilon=0.1, loss="huber").fit(X, X[:, 1]),
            QuantileSVR(quantile=0.9).fit(X, X[:, 1]),
            KernelSVC(random_state=0).fit(X, Y),
            KernelSVC(kernel="poly", random_state=0).fit(sparse.csr_matrix(X), THREE),
            KernelSVC(kernel="linear", solver="isda").fit(X, Y),
            KernelSVR(epsilon=0.05).fit(X, X[:, 1]),
            KernelOneClassSVM(kernel="poly", coef0=1.0).fit(sparse.csr_matrix(X)),
        ]
        seeds = []
        for number, model in enumerate(models):
            ids = np.array([2, 5, 9]) if number == 0 else None
            if number == 1:
                model.feature_names_in_ = np.array(["x", "y", "z"], dtype=object)
            save_model(model, self.path, feature_ids=ids, zero_based=False if number % 2 else None)
            seeds.append(self.path.read_bytes())
        return seeds

    def read(self, data: bytes) -> None:
        model = load_model(self.path)
        require(self.is_sound(data), "a refusal by the checksum")
        estimator, width = model.estimator, model.estimator.n_features_in_
        for line in info.model_table(os.fspath(self.path), len(data), model):
            require(messages.printable(line) == line, "lines without control characters")
        json.dumps(messages._finite(info.model_facts(model)), allow_nan=False)
        require(model.feature_ids is None or len(model.feature_ids) == width, "an id for every feature")
        if width > 1000:
            return
        probe = np.linspace(-1.0, 1.0, 2 * width).reshape(2, width)
        vars(estimator).pop("feature_names_in_", None)
        if width:
            with np.errstate(all="ignore"):
                predicted = estimator.predict(probe)
            require(len(predicted) == 2, "a prediction for every row")
            if hasattr(estimator, "classes_"):
                require(np.isin(predicted, estimator.classes_).all(), "a class as prediction")


class Checkpoints(Container):
    """Checkpoints of several solvers; a fit goes on from one, or says that it cannot."""

    name, suffix = "checkpoint", ".ck"
    refusals = (ValueError,)

    def make_seeds(self) -> list[bytes]:
        self.kinds: list[Any] = [
            lambda: (LinearSVC(100.0, solver="ocas", tol=1e-12, max_iter=3, checkpoint=self.path), Y, {}),
            lambda: (LinearSVC(100.0, solver="dcd", tol=1e-15, max_iter=3, checkpoint=self.path), Y, {}),
            lambda: (LinearSVC(10.0, solver="cpa", tol=1e-12, max_iter=3, checkpoint=self.path), THREE, {}),
            lambda: (
                LinearSVC(10.0, solver="ocas", multi_class="ovr", tol=1e-12, max_iter=3, checkpoint=self.path),
                THREE,
                {},
            ),
            lambda: (RankingSVM(100.0, solver="ocas", tol=1e-12, max_iter=3, checkpoint=self.path), THREE, {}),
        ]
        seeds = []
        for kind in self.kinds:
            self.path.unlink(missing_ok=True)
            self.fit(kind)
            seeds.append(self.path.read_bytes())
        return seeds

    @staticmethod
    def fit(kind: Any) -> Any:
        model, y, more = kind()
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return model.fit(X, y, **more)

    def make(self, random: Random) -> bytes:
        # In front the number of the seed, so that the fit is the one that the checkpoint is of.
        number = random.randrange(len(self.seeds))
        whole, self.seeds = self.seeds, [self.seeds[number]]
        try:
            return bytes([number]) + super().make(random)
        finally:
            self.seeds = whole

    def check(self, data: bytes) -> bool:
        self.number = data[0] % len(self.kinds)
        return super().check(data[1:])

    def read(self, data: bytes) -> None:
        model = self.fit(self.kinds[self.number])
        require(self.is_sound(data) or not data, "a refusal by the checksum")
        require(np.isfinite(model.coef_).all() and np.isfinite(model.objective_), "a finite model")
