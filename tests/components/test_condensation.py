"""The condensation: a graph without cycles, in topological order, the same on all engines."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

import matchwood
from graphs import ZOO, disjoint, from_edges, rmat, shuffled
from matchwood.check import check_condensation
from matchwood.components.strong import condensation
from strategies import graphs


def assert_same(one: condensation.Condensation, other: condensation.Condensation) -> None:
    assert np.array_equal(one.graph.indptr, other.graph.indptr)
    assert np.array_equal(one.graph.indices, other.graph.indices)
    assert np.array_equal(one.labels, other.labels)
    assert np.array_equal(one.levels, other.levels)


@pytest.mark.parametrize("name", ZOO)
def test_equals_the_reference(name: str) -> None:
    A = ZOO[name]()
    found = matchwood.condensation(A)
    assert_same(found, matchwood.condensation(A, engine="reference"))
    assert_same(found, matchwood.condensation(matchwood.graph(A), method="multistep", threads=2))
    check_condensation(A, found)


@given(graphs(max_n=30, max_m=60))
def test_random_graphs(A: sp.csr_array) -> None:
    found = matchwood.condensation(A)
    check_condensation(A, found)
    check_condensation(A, tuple(found))
    dense = found.graph.toarray()
    assert not np.tril(dense).any()
    assert np.isin(dense, [0, 1]).all()
    assert_same(found, matchwood.condensation(A, engine="reference"))


@pytest.mark.parametrize("index", [np.int32, pytest.param(np.int64, marks=pytest.mark.slow)])
def test_a_larger_graph(index: type) -> None:
    A = shuffled(rmat(11, 4, symmetric=False))
    found = matchwood.condensation(matchwood.graph(A, index_dtype=index))
    check_condensation(A, found)
    assert found.labels.dtype == index
    assert found.count == matchwood.strongly_connected_components(A).count
    assert (np.diff(found.levels) >= 0).all()
    longest = matchwood.condensation(from_edges(9, range(8), range(1, 9), symmetric=False))
    assert longest.levels.tolist() == list(range(9))


def test_levels_of_a_graph_with_cycles() -> None:
    """0 -> 1 -> 2 -> 1, 2 -> 3, 4: what is on a cycle or behind one has no level."""
    A = from_edges(5, [0, 1, 2, 2], [1, 2, 1, 3], symmetric=False)
    assert condensation.levels(A.indptr, A.indices).tolist() == [0, -1, -1, -1, 0]


def test_the_check_finds_every_fault() -> None:
    cycle = from_edges(3, [0, 1, 2], [1, 2, 0], symmetric=False)
    A = disjoint([cycle, from_edges(2, [0], [1], symmetric=False)])
    graph, labels = matchwood.condensation(A)
    assert labels.tolist() == [0, 0, 0, 1, 2]
    dense = graph.toarray()
    more = dense.copy()
    more[0, 2] = 1
    for wrong, message in [
        ((sp.csr_array(more), labels), r"arc \(0, 2\) of the condensation has no arc"),
        ((sp.csr_array(dense * 0), labels), r"arc \(1, 2\) is missing"),
        ((graph, labels[:3]), "labels must have 5 elements"),
        ((graph, labels + 1), "labels must be 5 numbers within 0..2"),
        ((graph, [0, 0, 0, 1, 1]), "count is 3"),
        ((sp.csr_array(dense[[1, 0, 2]][:, [1, 0, 2]]), [1, 1, 1, 0, 2]), "must come before"),
    ]:
        with pytest.raises(matchwood.CheckFailed, match=message):
            check_condensation(A, wrong)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="condensation: A must be square"):
        matchwood.condensation(sp.csr_array((2, 3)))
    with pytest.raises(ValueError, match="method must be one of"):
        matchwood.condensation(sp.csr_array((2, 2)), method="none")
