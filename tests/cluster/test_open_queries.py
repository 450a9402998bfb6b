"""Queries: grains end between them, wherever parts end."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutsvm._utils.errors import DataError
from cutsvm.cluster.grains import Layout, LayoutSettings
from cutsvm.cluster.local import Local
from cutsvm.cluster.open import OpenSettings, open_parts, split_arrays
from tests.support.collections import facts_bits

SMALL = OpenSettings(layout=LayoutSettings(fewest_rows=16, least=4))
RNG = np.random.default_rng(0)
N = 200
X, Y = RNG.normal(size=(N, 3)), RNG.integers(0, 4, N)
QID = np.repeat(RNG.permutation(40), RNG.multinomial(N - 40, np.ones(40) / 40) + 1)


def opened(parts, settings=SMALL):
    return open_parts(parts, executor=Local(1), targets="levels", settings=settings)


@given(cuts=st.lists(st.integers(0, N), max_size=10), text=st.booleans())
def test_edges_are_between_queries_for_any_parts(cuts, text):
    qid = np.char.add("q", QID.astype(str)) if text else QID
    whole, again = (opened(split_arrays(X, Y, qid=qid, parts=own)) for own in ([], sorted(cuts)))
    assert facts_bits(whole.facts) == facts_bits(again.facts)
    np.testing.assert_array_equal(whole.layout.edges, again.layout.edges)
    inner = whole.layout.edges[1:-1]
    assert len(inner) > 2 and (QID[inner] != QID[inner - 1]).all()
    starts = np.flatnonzero(np.append(True, QID[1:] != QID[:-1]))
    for edge in Layout.of(N, 24.0, SMALL.layout).edges[1:-1]:
        assert min(starts[starts >= edge], default=N) in whole.layout.edges


def test_a_grain_has_its_queries():
    parts = opened(split_arrays(X, Y, qid=QID, parts=5))
    found = parts.fold(queries_of, joined)
    np.testing.assert_array_equal(found, QID)
    assert parts.facts.labels.low == 0.0 and parts.facts.labels.high == 3.0


def queries_of(grain):
    return grain.block.qid


def joined(*several):
    return np.concatenate(several)


def test_without_queries_all_rows_are_one():
    np.testing.assert_array_equal(opened(split_arrays(X, Y, parts=3)).layout.edges, [0, N])


@pytest.mark.parametrize("qid, name", [(np.arange(N) % 50, "0"), (np.where(np.arange(N) == 150, 7, np.arange(N)), "7")])
def test_a_query_that_appears_again_is_refused(qid, name):
    with pytest.raises(DataError, match=f"the query {name} appears again after rows of others: sort the rows"):
        opened(split_arrays(X, Y, qid=qid, parts=3))


def test_queries_that_are_too_large_are_refused():
    few = OpenSettings(layout=SMALL.layout, most_query_bytes=1000)
    with pytest.raises(DataError, match=r"queries of up to 200 rows.*qid states them"):
        opened([(X, Y)], few)
    with pytest.raises(DataError, match=r"queries of up to \d+ rows.*smaller queries do"):
        opened(split_arrays(X, Y, qid=np.arange(N) // 100), few)


def test_queries_that_are_missing():
    with pytest.raises(DataError, match="part 1: row 3: expected a query, found nan"):
        qid = QID.astype(float)
        qid[103] = np.nan
        opened(split_arrays(X, Y, qid=qid, parts=2))
    with pytest.raises(DataError, match="part 1: there are no queries, which other parts have"):
        opened([(X, Y, None, QID), (X, Y)])
    with pytest.raises(DataError, match="queries are text in some parts and numbers in others"):
        opened([(X, Y, None, QID), (X, Y, None, QID.astype(str))])
