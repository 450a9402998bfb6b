"""`memory_limit` seen from outside: the peak of the process's private memory."""

import sys

import numpy as np
import pytest

from cutsvm import convert
from tests.robust.memory_peak import watch

pytestmark = pytest.mark.slow

ROWS = 2_500_000
SPARE = 17_000_000  # bytes that a fit may use in this test: less than one number (20 MB) of each row

FITS = """
import sys, warnings
import numpy as np
from cutsvm import LinearSVC
from cutsvm._utils import memory
from cutsvm._utils.memory import MemorySettings
from cutsvm.solvers import ACCPM, OCAS
from cutsvm.solvers.accpm.solver import ACCPMSettings
from cutsvm.solvers.bucketing.buckets import BucketSettings
warnings.simplefilter("ignore")
store, classes, spare = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
fits = [("ocas", "free"), ("cpa", "regularized"), ("auto", "free")]
if classes == 2:
    small = BucketSettings(pending_bytes=1 << 20, piece_bytes=1 << 20)
    fits += [(ACCPM(buckets=2, settings=ACCPMSettings(buckets=small)), "free")]
    fits += [(OCAS(buckets=2, bucketing=small), "free")]
settings = MemorySettings(fixed=spare)

class Limited(LinearSVC):
    def _memory_plan(self, store):
        outputs = classes if classes > 2 else 1
        return memory.plan(store.shape[0], store.manifest.size, self.memory_limit, outputs, settings)

rng = np.random.default_rng(0)
for solver, intercept in fits:  # libraries and threads are there then
    model = LinearSVC(solver=solver, intercept=intercept, n_jobs=2)
    model.fit(rng.normal(size=(5000, 2)), rng.integers(0, classes, 5000))
print(memory.private() + spare, flush=True)
for solver, intercept in fits:
    limit = memory.in_use(settings.step) + settings.step + spare
    Limited(C=1e-5, memory_limit=limit, intercept=intercept, solver=solver, max_iter=2, n_jobs=2).fit(store)
"""


@pytest.fixture(scope="module", params=[2, 4], ids=["two classes", "four classes"])
def store(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("limit") / f"{request.param}.store"
    rng = np.random.default_rng(0)

    def blocks():
        for _ in range(10):
            X = rng.normal(size=(ROWS // 10, 2)).astype(np.float32)
            yield X, (X @ [[1.0, 0.3, -0.5, 0.0], [0.0, 1.0, 0.2, 0.9]])[:, : request.param].argmax(axis=1)

    convert(blocks(), path)
    return request.param, path


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RssAnon is Linux's")
def test_no_solver_allocates_memory_per_row(store):
    classes, path = store
    peak = watch([sys.executable, "-c", FITS, str(path), str(classes), str(SPARE)])
    assert peak.returncode == 0, peak.output
    assert peak.private <= int(peak.output)
