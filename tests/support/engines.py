"""What every engine must do, as a class of tests: a subclass has the fixture `executor`."""

from __future__ import annotations

import numpy as np
import pytest

from cutsvm._utils.errors import ClusterError, DataError
from cutsvm.cluster import protocol
from cutsvm.cluster.local import Local
from cutsvm.cluster.protocol import fold
from tests.support import cluster_tasks as tasks


class EngineTests:
    def test_elements_come_in_their_order(self, executor):
        column = executor.put(list(range(20))).map(tasks.scaled, list(range(100, 120)), factor=3.0)
        assert list(executor.collect(column)) == [3.0 * k + 100 + k for k in range(20)]

    def test_several_steps_and_none(self, executor):
        column = executor.put([1.0, 2.0])
        assert list(executor.collect(column)) == [1.0, 2.0]
        twice = column.map(tasks.scaled, [1.0, 1.0], factor=2.0).map(tasks.scaled, [0.5, 0.25], factor=10.0)
        assert list(executor.collect(twice)) == [30.5, 50.25]

    def test_values_may_be_arrays_and_tuples(self, executor):
        X = np.arange(6.0).reshape(3, 2)
        first, second = executor.collect(executor.put([X, ("a.parquet", (3, None))]))
        np.testing.assert_array_equal(first, X)
        assert second == ("a.parquet", (3, None))

    def test_held_elements_are_computed_once(self, executor, tmp_path):
        held = executor.hold(executor.put([4, 5, 6]).map(tasks.counted, folder=str(tmp_path)))
        for _ in range(3):
            assert list(executor.collect(held.map(tasks.scaled, [1, 1, 1], factor=2))) == [9, 11, 13]
        assert [tasks.runs(tmp_path, k) for k in (4, 5, 6)] == [1, 1, 1]

    def test_elements_that_are_not_held_are_computed_in_every_round(self, executor, tmp_path):
        column = executor.put([4, 5]).map(tasks.counted, folder=str(tmp_path))
        for _ in range(3):
            assert list(executor.collect(column)) == [4, 5]
        assert [tasks.runs(tmp_path, k) for k in (4, 5)] == [3, 3]

    @pytest.mark.parametrize("held", [False, True])
    def test_regroup(self, executor, held):
        column = executor.put(["a", "b", "c", "d"])
        column = executor.hold(column) if held else column
        groups = [[0, 1], [1], [3, 2, 0], [2, 3]]
        assert list(executor.collect(column.regroup(groups).map(tasks.joined))) == ["(a b)", "(b)", "(d c a)", "(c d)"]

    @pytest.mark.parametrize("here", [True, False])
    def test_a_fold_gives_the_same_bits_as_on_threads(self, executor, here):
        values = (np.random.default_rng(0).normal(size=40) * 10.0 ** np.arange(-20, 20)).tolist()
        expected = fold(Local(1), Local(1).put(values), tasks.plus, width=4)
        assert fold(executor, executor.put(values), tasks.plus, width=4, here=here) == expected

    def test_an_error_of_a_task_keeps_its_type_and_text(self, executor):
        column = executor.put(list(range(8))).map(tasks.refused, bad=5)
        elements = executor.collect(column)
        with pytest.raises(DataError, match=r"^part\.csv:5: no number$"):
            list(elements)
        # So does one of a held column that others are made of.
        with pytest.raises(DataError, match=r"^part\.csv:5: no number$"):
            list(executor.collect(executor.hold(column).regroup([[0, 1], [4, 5]]).map(tasks.joined)))

    def test_a_round_may_be_left_early(self, executor):
        elements = executor.collect(executor.put(list(range(30))).map(tasks.scaled, [0] * 30, factor=1))
        assert [next(elements), next(elements)] == [0, 1]
        elements.close()
        assert list(executor.collect(executor.put([7]))) == [7]

    def test_resources_and_traffic(self, executor):
        assert executor.resources.threads >= 1
        seen = []
        executor.progress = lambda done, all_: seen.append((done, all_))
        before = executor.traffic.rounds
        list(executor.collect(executor.put([np.zeros(10), np.zeros(10)])))
        assert executor.traffic.rounds == before + 1
        assert seen == [(1, 2), (2, 2)]
        executor.progress = None
        assert executor.traffic.received >= 160


class ClusterTests(EngineTests):
    """The same for engines whose workers are other processes."""

    def test_the_version_of_the_client_is_asked_for(self, executor, monkeypatch):
        monkeypatch.setattr(protocol, "package_version", lambda: "9.9.9")
        with pytest.raises(ClusterError, match=r"9\.9\.9"):
            list(executor.collect(executor.put([1, 2])))
