"""The analytic-centre solver under `memory_limit`, from outside: it holds no number of each row in private memory."""

import sys

import numpy as np
import pytest

from cutsvm import convert
from tests.robust.memory_peak import watch

pytestmark = pytest.mark.slow

ROWS = 2_500_000
SPARE = 17_000_000  # bytes that a fit may use in this test: less than one number (20 MB) of each row

FIT = """
import sys, warnings
from cutsvm import LinearSVC
from cutsvm._utils import memory
from cutsvm._utils.memory import MemorySettings
from cutsvm.solvers import ACCPM
from cutsvm.solvers.accpm.solver import ACCPMSettings
from cutsvm.solvers.bucketing.buckets import BucketSettings
warnings.simplefilter("ignore")
large, small, form, buckets, spare = *sys.argv[1:4], *map(int, sys.argv[4:])
settings = MemorySettings(fixed=spare)

class Limited(LinearSVC):
    def _memory_plan(self, store):
        return memory.plan(store.shape[0], store.manifest.size, self.memory_limit, 1, settings)

dispatches = BucketSettings(only_if_it_pays=False, K=1, pending_bytes=1 << 20, piece_bytes=1 << 20)
solver = ACCPM(formulation=form, buckets=buckets, settings=ACCPMSettings(buckets=dispatches))
def fit(store):
    limit = settings.step + spare
    model = Limited(100.0, memory_limit=limit, solver=solver, max_iter=40, n_jobs=2)
    return model.fit(store).history_[-1]["rows_written"]
fit(small)  # libraries and threads are there then
before = memory.private()
written = fit(large)
print(before + spare, written)
"""


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limit")
    rng = np.random.default_rng(0)

    def blocks(many):
        for _ in range(10):
            X = rng.normal(size=(many // 10, 2)).astype(np.float32)
            X[:, 0] += np.where(X[:, 0] > 0.0, 0.1, -0.1)
            yield X, np.sign(X[:, 0])

    for name, many in (("large", ROWS), ("small", 20_000)):
        convert(blocks(many), folder / name)
    return str(folder / "large"), str(folder / "small")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RssAnon is Linux's")
@pytest.mark.parametrize("buckets", [1, 16])
@pytest.mark.parametrize("form", ["E", "I1", "I2"])
def test_no_number_of_each_row_is_held(stores, form, buckets):
    peak = watch([sys.executable, "-c", FIT, *stores, form, str(buckets), str(SPARE)])
    assert peak.returncode == 0, peak.output
    most, written = map(int, peak.output.split())
    assert peak.private <= most
    assert (written > 0) == (buckets > 1)
