"""Tasks of a full pass: pure, of any rows, added up in order; a pass over a store has the same bits however it runs."""

import pickle
import weakref
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import cutsvm
from cutsvm._utils.timing import clock
from cutsvm.driver.records import Status, Stop
from cutsvm.driver.run import run
from cutsvm.io.temporary_arrays import TemporaryArrays
from cutsvm.matrix import StoreRows
from cutsvm.problem.losses import Hinge, Tube
from cutsvm.problem.oracle import Oracle
from cutsvm.problem.point import Intercept
from cutsvm.problem.settings import OracleSettings
from cutsvm.solvers import OCAS, Sifting
from cutsvm.solvers.sifting.full_pass import StreamedPass
from cutsvm.solvers.sifting.tasks import FoundRows, add_sift_results, add_violators, find_violators, sift_rows
from tests.support.problems import (
    SIFT_ANYTHING,
    from_disk,
    long_data,
    many_classes,
    multiclass_oracle_of,
    oracle_of,
)

N = 600
PLACES = np.array([0.0, 0.5, 1.0])


def problems():
    X, a = long_data(N)
    rng = np.random.default_rng(1)
    yield "hinge", oracle_of(X, a * rng.uniform(0.5, 2.0, N), "free")
    yield "hinge, csr", oracle_of(X, a, layout="csr")
    yield "tube", Oracle(oracle_of(X, a, layout="float32").matrix, Tube(X @ rng.normal(size=5), np.ones(N), 0.3))
    yield "classes", multiclass_oracle_of(*many_classes(N))


PROBLEMS = dict(problems())


def arguments(oracle, most=None):
    """Of both tasks, at a point not far from the reference point."""
    rng = np.random.default_rng(0)
    best, w, reference = rng.normal(size=(3, oracle.size))
    line = {"w": w, "best": best, "places": PLACES, "most": most}
    sift = {**line, "band": 0.5, "keep": 1.0, "seed": 3}
    return sift, {**line, "reference": reference, "band": 0.3, "joined": np.arange(0, N, 7)}


def in_parts(oracle, rows):
    """The same, with tasks on this number of rows at a time."""
    return replace(oracle, settings=OracleSettings(scores=rows * oracle.outputs))


def arrays(result):
    """All numbers of a result."""
    found = result.near if hasattr(result, "near") else result.rows
    sums = [result.sums.groups, result.sums.rows, result.sums.targets] if hasattr(result, "sums") else []
    copies = []
    for some in found.copies:
        scores = np.empty(some.matrix.n)
        some.matrix.scores(np.arange(1.0, some.matrix.d + 1.0), 0.0, scores)
        copies += [scores, some.loss.row_weights, some.mark]
    return [result.on_line, np.array([found.many]), *sums, *copies, *found.numbers]


def assert_same(one, other):
    for mine, theirs in zip(arrays(one), arrays(other), strict=True):
        assert_array_equal(mine, theirs)


TASKS = {"sift": (sift_rows, add_sift_results, 0), "violators": (find_violators, add_violators, 1)}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("kind", TASKS)
def test_tasks_are_pure_and_survive_pickling(name, kind):
    oracle = PROBLEMS[name]
    task, add, which = TASKS[kind]
    shared = arguments(oracle)[which]
    before = pickle.dumps(shared)
    results, again = (list(in_parts(oracle, 250).each_part(task, add, **shared)) for _ in range(2))
    assert len(results) == 3 and pickle.dumps(shared) == before
    sent = pickle.loads(pickle.dumps((task, add, shared, results)))
    for one, twin, other in zip(results, again, sent[3], strict=True):
        assert_same(one, twin)
        assert_same(one, other)
    assert_same(sent[1](sent[3][0], sent[3][1]), add(results[0], results[1]))
    assert_same(next(in_parts(oracle, 250).each_part(sent[0], sent[1], **sent[2])), results[0])


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("kind", TASKS)
def test_sums_of_parts_are_those_of_all_rows(name, kind):
    oracle = PROBLEMS[name]
    task, add, which = TASKS[kind]
    shared = arguments(oracle)[which]
    (whole,) = oracle.each_part(task, add, **shared)
    first, second, third = in_parts(oracle, 250).each_part(task, add, **shared)
    total = add(add(first, second), third)
    assert_allclose(total.on_line, whole.on_line)
    rows, found = (result.near if kind == "sift" else result.rows for result in (whole, total))
    assert rows.many == found.many > 0
    assert sum(some.matrix.n for some in found.copies) == found.many
    if kind == "sift":
        assert_array_equal(total.sums.groups, whole.sums.groups)
        assert_allclose(total.sums.rows, whole.sums.rows, rtol=1e-10, atol=1e-9)
        assert_allclose(total.sums.targets, whole.sums.targets, rtol=1e-10, atol=1e-9)
    else:
        assert_array_equal(np.concatenate(found.numbers), *rows.numbers)
        assert not np.isin(shared["joined"], rows.numbers).any()


def test_rows_drawn_depend_on_their_numbers_alone():
    oracle = PROBLEMS["hinge"]
    thinned = {**arguments(oracle)[0], "keep": 0.5}
    results = [sift_rows(first, oracle, **thinned) for first in (0, N, 0)]
    assert_same(results[0], results[2])
    assert not np.array_equal(arrays(results[0])[-2], arrays(results[1])[-2])
    all_near = sift_rows(0, oracle, **{**thinned, "keep": 1.0}).near.many
    assert 0.4 * all_near < results[0].near.many < 0.6 * all_near
    (copied,) = results[0].near.copies
    number = {row.tobytes(): k for k, row in enumerate(oracle.matrix.X)}
    drawn = [number[row.tobytes()] for row in copied.matrix.X]
    assert_array_equal(copied.loss.signed, 2.0 * oracle.loss.signed[drawn])


@pytest.mark.parametrize("kind", TASKS)
def test_rows_without_room_are_counted_only(kind):
    oracle = PROBLEMS["hinge"]
    task, add, which = TASKS[kind]
    (enough,) = oracle.each_part(task, add, **arguments(oracle)[which])
    many = (enough.near if kind == "sift" else enough.rows).many
    parts = in_parts(oracle, 250)
    for most, copied in ((many, many), (many - 1, 0), (0, 0), (-5, 0)):
        results = list(parts.each_part(task, add, **arguments(oracle, most)[which]))
        total = add(add(*results[:2]), results[2])
        found = total.near if kind == "sift" else total.rows
        assert (found.many, found.fit) == (many, copied > 0)
        assert sum(some.matrix.n for some in found.copies) == copied
        assert sum(map(len, found.numbers)) == (copied if kind == "violators" else 0)


def test_parts_of_an_oracle():
    oracle = in_parts(PROBLEMS["hinge"], 250)
    with clock() as spent:
        found = list(oracle.each_part(lambda first, part, more: (first, part, more), add_sift_results, more=5))
    assert [(first, part.matrix.n, part.loss.n, more) for first, part, more in found] == [
        (0, 250, 250, 5),
        (250, 250, 250, 5),
        (500, 100, 100, 5),
    ]
    assert all(part.intercept is Intercept.FREE and not part.whole for _, part, _ in found)
    assert (spent.counts["passes"], spent.counts["visits"]) == (1, N)
    assert_array_equal(np.concatenate([part.loss.signed for _, part, _ in found]), oracle.loss.signed)


def test_no_result_is_kept_while_the_next_one_is_made():
    alive = weakref.WeakSet()

    class Result:
        pass

    def task(first, part):
        assert not alive
        result = Result()
        alive.add(result)
        return result

    for result in in_parts(PROBLEMS["hinge"], 100).each_part(task, add_sift_results):
        del result


class CountsCopies(StreamedPass):
    """Notes how many rows there are copies of during a pass."""

    def _sum(self, task, add, **shared):
        def noted(total, found):
            both = add(total, found)
            self.copied.append(sum(some.matrix.n for some in both.near.copies))
            return both

        return super()._sum(task, noted, **shared)


def test_a_pass_holds_no_more_rows_than_there_is_room_for():
    X, a = long_data(N)
    oracle = in_parts(from_disk(oracle_of(X, np.abs(a)), 40), 50)  # all are at the same distance at 0
    full = CountsCopies(oracle, 1.0)
    full.copied = []
    working_set = full.build(np.zeros(oracle.size), 0.5, np.random.default_rng(0))
    assert max(full.copied) <= 40 and len(full.copied) > 11
    assert working_set.n_rows == 0


ROWS = 4096  # of a part


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """The same rows in blocks of one, two, and all parts."""
    X, a = long_data()
    folder = tmp_path_factory.mktemp("stores")
    for parts in (1, 2, 100):
        cutsvm.convert((X.astype(np.float32), a), folder / str(parts), block_bytes=parts * ROWS * 20)
    return [cutsvm.open_dataset(folder / str(parts)).store for parts in (1, 2, 100)]


@pytest.mark.parametrize("intercept", ["none", "free"])
@pytest.mark.parametrize("room", [None, 1500])
def test_same_bits_for_any_threads_and_blocks(stores, intercept, room):
    _, a = long_data()
    assert [len(store.edges) - 1 for store in stores] == [8, 4, 1]
    results = set()
    for store in stores:
        for threads in (1, 2, 3):
            rows = StoreRows(store, threads, room=room, temporary=TemporaryArrays(store.path))
            settings = OracleSettings(scores=ROWS)
            oracle = Oracle(rows, Hinge(a, threads), Intercept(intercept), threads, settings=settings)
            result = run(Sifting(), oracle, 100.0 / len(a), Stop(tol=1e-4))
            assert result.status is Status.CONVERGED
            results.add((result.w.tobytes(), result.primal, result.lower))
    assert len(results) == 1


def test_the_inner_solver_gets_all_rows_in_the_end():
    """Where no working set is wide enough; no bound is lost."""
    X, a = long_data(1000)
    results = [
        run(solver, oracle_of(X, a), 0.01, Stop(tol=1e-5))
        for solver in (Sifting(settings=replace(SIFT_ANYTHING, rebuilds=-1)), OCAS())
    ]
    ours, plain = results
    assert ours.status is plain.status is Status.CONVERGED
    assert ours.lower <= plain.primal and plain.lower <= ours.primal


def test_found_rows_add_up():
    none = FoundRows(0, 3)
    assert none.add(FoundRows(2, 3)).fit and not none.add(FoundRows(4, 3)).fit
    assert FoundRows(10**12, None).fit
