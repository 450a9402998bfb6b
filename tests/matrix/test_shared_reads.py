"""Shared reads: every problem sees all blocks in order, each is read once, and nobody waits for one that has ended."""

import threading
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from cutsvm import convert
from cutsvm._utils.errors import DataError
from cutsvm._utils.threads import cached_property
from cutsvm.io.store.store import Store
from cutsvm.matrix import StoreRows
from cutsvm.matrix.shared_reads import SharedReads, SharedRows

SECONDS = 20  # after which a test fails that waits


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("shared") / "rows.store"
    X = np.random.default_rng(0).normal(size=(700, 3))
    convert((X, np.tile([-1.0, 1.0], 350)), path, block_bytes=2400)
    found = Store(path)
    assert len(found.edges) - 1 == 7
    return found


def run(store, works, turns=2):
    """What each of the functions returns or raises, each in a thread with rows of its own; and the reads."""
    with SharedReads(store, turns) as shared, ThreadPoolExecutor(len(works)) as pool:
        readers = [shared.reader() for _ in works]

        def begin(reader, work):
            with reader:
                return work(SharedRows(StoreRows(store), reader, 1))

        running = [pool.submit(begin, reader, work) for reader, work in zip(readers, works, strict=True)]
        _, late = wait(running, SECONDS)
        for reader in readers:  # so that a test that fails ends
            reader.close()
        assert not late, "problems wait for each other"
        return [one.exception() or one.result() for one in running], shared.reads


def passes(many):
    def work(rows):
        found = []
        for k in range(many):
            out = np.empty(rows.n)
            rows.scores(np.array([1.0, k, -2.0]), 0.5, out)
            found.append(out)
        return found

    return work


@pytest.mark.parametrize("turns", [1, 2, 5])
def test_blocks_are_read_once_for_all(store, turns):
    alone = passes(4)(StoreRows(store))
    found, reads = run(store, [passes(4)] * 4, turns)
    for other in found:
        assert_array_equal(other, alone)  # to the last bit
    assert reads == (28, 112, 7) and (reads.passes, reads.requested_passes) == (4.0, 16.0)


def test_problems_of_different_length_do_not_wait_for_those_that_have_ended(store):
    found, reads = run(store, [passes(many) for many in (1, 5, 0, 3)])
    assert [len(one) for one in found] == [1, 5, 0, 3]
    assert reads == (35, 63, 7)


def test_an_error_of_one_problem_is_its_own(store):
    def fails(rows):
        for number, _ in enumerate(rows.blocks()):
            if number == 3:
                raise RuntimeError("in the middle of a pass")

    (first, error, last), _ = run(store, [passes(3), fails, passes(2)], turns=1)
    assert_array_equal(first, passes(3)(StoreRows(store)))
    assert isinstance(error, RuntimeError) and len(last) == 2


def test_a_pass_may_be_left_or_be_within_another(store):
    def leaves(rows):
        for _ in rows.blocks():
            break
        return passes(2)(rows)

    def nests(rows):
        for number, _ in enumerate(rows.blocks()):
            if number == 2:
                inner = passes(1)(rows)
        return inner

    found, reads = run(store, [leaves, nests, passes(3)])
    assert [len(one) for one in found] == [2, 1, 3]
    assert reads.read < reads.requested


def test_some_blocks_are_read_alone(store):
    def some(rows):
        return [mine.start for mine, _ in rows.blocks([1, 4])]

    found, reads = run(store, [some, passes(1)])
    assert found[0] == [100, 400]
    assert reads == (9, 9, 7)


def test_no_more_blocks_are_mapped_than_one_problem_would_map(store, monkeypatch):
    """The fastest waits for the slowest."""
    furthest, slow = [0], threading.Event()
    read = Store.read
    monkeypatch.setattr(Store, "read", lambda self, k, **more: (furthest.append(k), read(self, k, **more))[1])

    def waits(rows):
        for number, _ in enumerate(rows.blocks()):
            if number == 1:
                slow.wait(0.3)
                assert max(furthest) <= 3  # its own block, the one the other has, and the next
        return True

    found, _ = run(store, [waits, passes(1)])
    assert found[0] is True and max(furthest) == 6


def test_a_store_that_is_damaged_meanwhile_is_an_error_of_all(tmp_path):
    path = tmp_path / "rows.store"
    convert((np.ones((300, 3)), np.tile([0.0, 1.0, 1.0], 100)), path, block_bytes=2400)
    store = Store(path)
    block = store.path / store.manifest.block_name(2)
    block.write_bytes(block.read_bytes()[:-8])
    found, _ = run(store, [passes(2), passes(1)])
    assert [type(error) for error in found] == [DataError, DataError]


def test_properties_that_read_do_not_lock_each_other_out(store):
    class Reads:
        def __init__(self, rows):
            self.rows = rows

        @cached_property
        def found(self):
            return passes(1)(self.rows)[0]

    found, reads = run(store, [lambda rows: Reads(rows).found] * 3)
    assert_array_equal(found[0], found[2])
    assert reads == (7, 21, 7)
