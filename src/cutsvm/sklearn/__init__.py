"""scikit-learn's `LinearSVC`, `LinearSVR` and `SVC` under their own names, trained by cutsvm where it can.

    from cutsvm.sklearn import LinearSVC        # one import to change, or
    cutsvm.sklearn.patch()                      # all of them, in this process, or
    python -m cutsvm.sklearn script.py          # in a script that is not to be changed

Signatures, defaults, checks, messages and attributes are scikit-learn's, since the classes are derived from its own.
What cutsvm does not train falls through to scikit-learn's `fit`, with a line in the log "cutsvm" that says why.
"""

from __future__ import annotations

from cutsvm.sklearn.linear import LinearSVC, LinearSVR
from cutsvm.sklearn.patching import patch, unpatch
from cutsvm.sklearn.svc import SVC

__all__ = ["SVC", "LinearSVC", "LinearSVR", "patch", "unpatch"]
