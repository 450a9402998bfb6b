"""patch and unpatch: the drop-in classes in place of scikit-learn's, wherever a module has bound them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import ModuleType

from sklearn import svm

from cutsvm.sklearn.linear import LinearSVC, LinearSVR
from cutsvm.sklearn.svc import SVC

_DROPINS: dict[type, type] = {svm.LinearSVC: LinearSVC, svm.LinearSVR: LinearSVR, svm.SVC: SVC}
_ORIGINALS = {dropin: original for original, dropin in _DROPINS.items()}
# Names that were bound to a drop-in class before `patch`, by module: those that `unpatch` leaves alone.
_own_bindings: set[tuple[str, str]] | None = None


def patch() -> None:
    """Puts cutsvm's `LinearSVC`, `LinearSVR` and `SVC` in place of scikit-learn's in `sklearn.svm`.

    Every module that has imported one of them gets the new class too, under the name that it has there, and modules
    imported later find it in `sklearn.svm`. Models that exist keep their class, and so do pickles: the module of
    scikit-learn that defines a class keeps it.
    """
    global _own_bindings
    if _own_bindings is None:
        _own_bindings = {(module.__name__, name) for module, name, _ in _bindings(_ORIGINALS)}
    _replace(_DROPINS, set())


def unpatch() -> None:
    """Undoes `patch`, in modules that were imported since as well.

    A name that was bound to a class of `cutsvm.sklearn` before `patch` stays what it is.
    """
    global _own_bindings
    if _own_bindings is None:
        return
    _replace(_ORIGINALS, _own_bindings)
    _own_bindings = None


def is_patched() -> bool:
    """Whether `sklearn.svm` has the drop-in classes."""
    return svm.LinearSVC is LinearSVC


def _replace(replacements: dict[type, type], kept: set[tuple[str, str]]) -> None:
    """Binds every name of a class to its replacement, but for those of `kept`."""
    for module, name, kind in list(_bindings(replacements)):
        if (module.__name__, name) not in kept:
            setattr(module, name, replacements[kind])


def _bindings(classes: Iterable[type]) -> Iterator[tuple[ModuleType, str, type]]:
    """Module, name and class of each global variable that is one of the classes.

    Modules of cutsvm.sklearn are left out, and the module where a class is defined: pickles refer to it.
    """
    for key, module in list(sys.modules.items()):
        if not isinstance(module, ModuleType) or key.startswith("cutsvm.sklearn"):
            continue
        for name, value in list(vars(module).items()):
            for kind in classes:
                if value is kind and kind.__module__ != module.__name__:
                    yield module, name, kind
