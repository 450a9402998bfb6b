"""A file that is written while a fit runs: when, how, and what it must match when it is read."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from cutsvm._utils.types import Array
from cutsvm._utils.warn import warn
from cutsvm.driver.fingerprint import Fingerprint
from cutsvm.io.files import temp_path, write_atomically
from cutsvm.io.models.model_format import ModelFileError, pack, package_version, unpack
from cutsvm.io.store.manifest import NAME, is_store

_MAGIC = b"cutsvm-checkpoint "
_REMEDY = "Delete the file to start over, or give checkpoint another name"


@dataclass(frozen=True)
class CheckpointSettings:
    """When a checkpoint is written, and the numbers that one may hold."""

    seconds_before_first: float = 1.0
    min_seconds_between: float = 5.0
    time_share: float = 0.05  # of the time of a fit that writing may take
    max_number: float = 1e308  # of an objective, a bound or a count
    max_weight: float = 1e150  # weights below have finite squares, and finite sums of them
    keep: bool = False  # the file of a fit that has converged


_settings = CheckpointSettings()


def configure(settings: CheckpointSettings) -> CheckpointSettings:
    """Use these settings in the whole process, and return the previous ones."""
    global _settings
    before, _settings = _settings, settings
    return before


def settings() -> CheckpointSettings:
    """Those that are used in the process."""
    return _settings


def check_path(path: Any) -> None:
    """A checkpoint can be there: the folder exists, and a file of this name is one of ours."""
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise ValueError(f"checkpoint={path!r}: expected the name of a file")
    name = os.fspath(path)
    folder = os.path.dirname(os.path.abspath(name))
    if not os.path.isdir(folder):
        raise ValueError(f"checkpoint={name!r}: there is no folder {folder}")
    if os.path.exists(os.path.join(folder, NAME)) and is_store(folder):
        raise ValueError(f"checkpoint={name!r}: {folder} is a store, which takes no other files")
    if not os.path.exists(name):
        return
    if not stat.S_ISREG(os.stat(name).st_mode):
        raise ValueError(f"checkpoint={name!r}: it exists and is not a file")
    with open(name, "rb") as stream:
        start = stream.read(len(_MAGIC))
    if not _MAGIC.startswith(start):
        raise ValueError(f"{name}: not a checkpoint, so it is left alone: give checkpoint another name")


class CheckpointFile:
    """A file that is written while a fit runs, and read when the same fit begins again."""

    def __init__(self, path: str | os.PathLike[str], fingerprint: Fingerprint) -> None:
        check_path(path)
        self.name, self.fingerprint = os.fspath(path), fingerprint
        self._target = os.path.realpath(path)  # the working folder may change
        self._warned = False
        self._due = perf_counter() + _settings.seconds_before_first

    @property
    def is_due(self) -> bool:
        """Whether it is time to write."""
        return perf_counter() >= self._due

    def load(self) -> tuple[dict[str, Any], dict[str, Array], list[str]] | None:
        """Its header, its arrays, and what they are different in; None if there is no file."""
        if not os.path.exists(self._target) or not os.path.getsize(self._target):
            return None
        try:
            with open(self._target, "rb") as stream:
                header, arrays = unpack(self.name, stream, "checkpoint")
        except ModelFileError as error:
            raise ValueError(f"{error}. {_REMEDY}") from None
        return header, arrays, self.fingerprint.differences(header)

    def save(self, header: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Replaces the file; it is due again after a time that grows with what writing takes."""
        began = perf_counter()
        own = {
            "cutsvm": package_version(),
            "settings": self.fingerprint.settings,
            "hashes": self.fingerprint.hashes,
        }
        try:
            write_atomically(self._target, pack(own | header, arrays, "checkpoint"), repeated=True)
        except OSError as error:
            self._warn(
                f"the checkpoint {self.name} cannot be written: {error.strerror}. The fit goes on "
                "without; after a kill it would begin where the last one ended, or at the start"
            )
        now = perf_counter()
        self._due = now + max(_settings.min_seconds_between, (now - began) / _settings.time_share)

    def remove(self) -> None:
        """Nothing stale is left of a fit that has converged."""
        if _settings.keep:
            return
        try:
            temp_path(self._target).unlink(missing_ok=True)
            os.unlink(self._target)
        except FileNotFoundError:
            pass
        except OSError as error:
            self._warn(f"the checkpoint {self.name} cannot be removed: {error.strerror}")

    def _warn(self, text: str) -> None:
        if not self._warned:
            self._warned = True
            warn(text, RuntimeWarning)

    def other_fit(self, differences: list[str]) -> ValueError:
        return ValueError(f"{self.name}: a checkpoint of another fit: {'; '.join(differences)}. {_REMEDY}")

    def damaged(self, what: str) -> ValueError:
        return ValueError(f"{self.name}: damaged: {what}. {_REMEDY}")
