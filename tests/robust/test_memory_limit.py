"""`memory_limit` seen from outside: the peak of the process's private memory."""

import sys

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from cutsvm import LinearSVC, convert
from cutsvm._utils import memory
from cutsvm.solvers import OCAS
from tests.robust.memory_peak import watch

pytestmark = pytest.mark.slow

ROWS = 2_500_000
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RssAnon is Linux's")
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
    limit = settings.step + spare
    Limited(C=1e-5, memory_limit=limit, intercept=intercept, solver=solver, max_iter=2, n_jobs=2).fit(store)
"""


@pytest.fixture(
    scope="module",
    params=[(2, False), (2, True), (4, False)],
    ids=["two classes", "weights far apart", "four classes"],
)
def store(request, tmp_path_factory):
    classes, weighted = request.param
    path = tmp_path_factory.mktemp("limit") / f"{classes}.store"
    rng = np.random.default_rng(0)

    def blocks():
        for _ in range(10):
            X = rng.normal(size=(ROWS // 10, 2)).astype(np.float32)
            y = (X @ [[1.0, 0.3, -0.5, 0.0], [0.0, 1.0, 0.2, 0.9]])[:, :classes].argmax(axis=1)
            yield (X, y, 10.0 ** rng.uniform(-6.0, 6.0, len(y))) if weighted else (X, y)

    convert(blocks(), path)
    return classes, path


@linux
def test_no_solver_allocates_memory_per_row(store):
    classes, path = store
    peak = watch([sys.executable, "-c", FITS, str(path), str(classes), str(SPARE)])
    assert peak.returncode == 0, peak.output
    assert peak.private <= int(peak.output)


WIDE = """
import sys, warnings
import numpy as np
from cutsvm import LinearSVC
from cutsvm.solvers import CPA, OCAS
warnings.simplefilter("ignore")
store, limit, checkpoint = sys.argv[1], f"{sys.argv[2]} total", sys.argv[3]
fixed = dict(C=10.0, tol=1e-9, memory_limit=limit, fit_intercept=False, n_jobs=2)
LinearSVC(solver=CPA(shards=1), max_iter=200, checkpoint=checkpoint, **fixed).fit(store)
LinearSVC(solver=CPA(shards=1), max_iter=1, checkpoint=checkpoint, **fixed).fit(store)  # reads it
LinearSVC(solver=OCAS(), max_iter=60, **fixed).fit(store)
LinearSVC(solver="accpm", max_iter=200, **fixed).fit(store)
LinearSVC(max_iter=60, **fixed).fit(store)
"""


@pytest.fixture(scope="module")
def wide_store(tmp_path_factory):
    """60,000 features: a plane takes half a megabyte."""
    path, rng, rows, filled = tmp_path_factory.mktemp("wide") / "wide.store", np.random.default_rng(0), 20_000, 20
    columns = np.sort(rng.integers(0, 60_000 // filled, (rows, filled)) + np.arange(filled) * (60_000 // filled))
    values = rng.normal(size=(rows, filled)).astype(np.float32)
    X = csr_matrix((values.ravel(), columns.ravel(), np.arange(0, rows * filled + 1, filled)), shape=(rows, 60_000))
    convert([(X, np.where(values[:, 0] + rng.normal(size=rows) > 0.0, 1.0, -1.0))], path)
    return path


@linux
def test_planes_of_wide_rows_fit_the_limit(wide_store, tmp_path):
    """200 planes alone would take 100 MB, and as much again while they are copied."""
    limit = 270_000_000
    peak = watch([sys.executable, "-c", WIDE, str(wide_store), str(limit), str(tmp_path / "fit.checkpoint")])
    assert peak.returncode == 0, peak.output
    assert peak.private <= limit


PAIRS = """
import sys, warnings
from cutsvm import LinearOneClassSVM, OrdinalSVC, ROCAreaSVC, RankingSVM
warnings.simplefilter("ignore")
model, least = eval(sys.argv[1]), 0
while not hasattr(model, "coef_"):
    try:
        model.set_params(memory_limit=f"{(least := least + 10_000_000)} total").fit(sys.argv[2])
    except ValueError as error:
        assert "too little for a fit" in str(error), error
print(least)
"""


@linux
@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("RankingSVM", ""),
        ("RankingSVM", "loss='squared_hinge', "),
        ("OrdinalSVC", ""),
        ("OrdinalSVC", "loss='squared_hinge', "),
        ("LinearOneClassSVM", ""),
    ],
)
def test_pairs_fit_the_smallest_limit_that_is_accepted(name, loss, tmp_path):
    """What is kept of a row, in the worst case: different scores and levels, weights far apart."""
    rng, rows = np.random.default_rng(0), 300_000
    X = rng.normal(size=(rows, 2)).astype(np.float32)
    y = X[:, 0] + rng.normal(size=rows)
    y = y if name == "RankingSVM" else np.digitize(y, [-1.0, 0.0, 1.0]).astype(float)
    weights, qid = 10.0 ** rng.uniform(-20.0, 20.0, rows), np.zeros(rows, dtype=int)
    convert((X, y), tmp_path / "store", weight=weights, qid=qid)
    peak = watch([sys.executable, "-c", PAIRS, f"{name}({loss}max_iter=2, n_jobs=2)", str(tmp_path / "store")])
    assert peak.returncode == 0, peak.output
    assert peak.private <= int(peak.output)


WHITENED = """
import sys, warnings
from cutsvm import LinearSVC
from cutsvm.solvers import OCAS
from cutsvm.solvers.bucketing.buckets import BucketSettings
warnings.simplefilter("ignore")
solver = OCAS(buckets=4, bucketing=BucketSettings(K=1))
LinearSVC(C=0.01, solver=solver, memory_limit=f"{sys.argv[2]} total", max_iter=4, n_jobs=2).fit(sys.argv[1])
"""


@linux
def test_lengths_of_many_features_fit_the_limit(tmp_path):
    """500 features, the most that are whitened."""
    rng, rows, limit = np.random.default_rng(0), 18_000, 200_000_000
    X = rng.normal(size=(rows, 500)).astype(np.float32)
    convert((X, np.where(X[:, 0] + rng.normal(size=rows) > 0.0, 1, -1)), tmp_path / "store")
    peak = watch([sys.executable, "-c", WHITENED, str(tmp_path / "store"), str(limit)])
    assert peak.returncode == 0, peak.output
    assert peak.private <= limit


def test_shards_whose_planes_do_not_fit_are_refused(wide_store):
    with pytest.raises(ValueError, match="shards=128: memory_limit leaves room"):
        LinearSVC(solver=OCAS(shards=128), memory_limit=140_000_000).fit(wide_store)


def test_the_interpreter_counts_under_a_limit_of_the_process(wide_store):
    """A limit below what the process has already is refused, with what is needed."""
    with pytest.raises(ValueError, match="too little for a fit; expected at least"):
        LinearSVC(memory_limit=f"{memory.private()} total").fit(wide_store)


FREED = """
import numpy as np
from cutsvm._utils import memory
small = [np.ones(1000) for _ in range(10_000)]
few = small[::100]  # they keep the heap from shrinking by itself
del small
before = memory.private()
memory.in_use(1)
print(before - memory.private())
"""


@linux
def test_what_was_freed_leaves_room_for_the_next_fit():
    found = watch([sys.executable, "-c", FREED])
    assert found.returncode == 0, found.output
    assert int(found.output) > 60_000_000
