"""The classes of cutsvm that skops, and MLflow with it, has to be told to trust."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

__all__ = ["skops_types"]


def skops_types(source: Any) -> list[str]:
    """The names of the classes of cutsvm in a model, or in a file of skops', for its list of trusted types.

    Parameters
    ----------
    source : a fitted estimator, also in a pipeline or a search, or the path of a file that `skops.io.dump` wrote.

    Classes of other packages are not in the list: skops names them, and whether to trust them is not ours to say.

    Examples
    --------
    >>> import skops.io
    >>> from cutsvm import LinearSVC, skops_types
    >>> model = LinearSVC().fit([[0.0], [1.0]], [0, 1])
    >>> skops_types(model)
    ['cutsvm.estimators.linear.LinearSVC']
    >>> again = skops.io.loads(skops.io.dumps(model), trusted=skops_types(model))
    """
    if importlib.util.find_spec("skops") is None:
        raise ImportError("skops_types needs skops: pip install skops")
    import skops.io

    if isinstance(source, str | os.PathLike):
        names = skops.io.get_untrusted_types(file=source)
    else:
        names = skops.io.get_untrusted_types(data=skops.io.dumps(source))
    return sorted(name for name in names if name.startswith("cutsvm."))
