"""Largest matchings: as many edges as NetworkX finds, and a check that proves it."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from scipy.sparse.csgraph import maximum_bipartite_matching

import matchwood
from graphs import ZOO, complete, disjoint, from_edges, grid, path, rmat, star
from matchwood import maximum_matching
from matchwood.errors import CheckFailed
from matchwood.matching.cardinality.check import check_maximum_matching, free_at_least
from matchwood.matching.cardinality.cpu import CHEAP
from strategies import graphs

WAYS = ({}, {"method": "blossom"}, {"engine": "reference"})


def size_by_networkx(A):
    G = nx.Graph()
    G.add_nodes_from(range(A.shape[0]))
    rows, columns = sp.coo_array(A).coords
    G.add_edges_from((u, v) for u, v in zip(rows.tolist(), columns.tolist(), strict=True) if u != v)
    return len(nx.max_weight_matching(G, maxcardinality=True, weight=None)), nx.is_bipartite(G)


def assert_largest(A):
    kept = A.copy()
    size, bipartite = size_by_networkx(A)
    ways = (*WAYS, {"method": "hopcroft_karp"}) if bipartite else WAYS
    for way in ways:
        found = maximum_matching(A, **way)
        assert found.cardinality == found.weight == size == found.bound
        found.check(A)
        check_maximum_matching(A, found.mate)
    for before, after in ((kept.data, A.data), (kept.indices, A.indices), (kept.indptr, A.indptr)):
        assert np.array_equal(before, after)


@pytest.mark.parametrize("name", ZOO)
def test_zoo(name):
    assert_largest(ZOO[name]())


@given(graphs())
def test_random_graphs(A):
    assert_largest(A)


def flowers(petals):
    """Odd cycles that share a vertex, with a stem: contracted one inside the other."""
    u, v = [0], [1]
    for k in range(petals):
        a = 2 + 4 * k
        ring = [1, a, a + 1, a + 2, a + 3, 1]
        u += ring[:-1]
        v += ring[1:]
    return from_edges(2 + 4 * petals, u, v)


def test_odd_cycles():
    for A in (flowers(1), flowers(4), complete(9), disjoint([complete(5), complete(7), path(4)])):
        assert_largest(A)
    ring = from_edges(9, np.arange(9), (np.arange(9) + 1) % 9)
    assert maximum_matching(ring).cardinality == 4


def test_phases_are_few():
    """Distances go on behind the first free vertex: a phase takes paths of all lengths."""
    stays = np.random.default_rng(0).random(80 * 80) > 0.1
    A = grid(80, 80)[stays][:, stays]
    found = maximum_matching(A, method="hopcroft_karp")
    assert found.rounds < 8  # 17, if they end there
    assert found.cardinality == maximum_matching(A, method="blossom").cardinality


def test_many_sizes():
    rng = np.random.default_rng(4)
    for k in range(150):
        n, m = int(rng.integers(1, 40)), int(rng.integers(0, 90))
        u, v = rng.integers(0, n, (2, m))
        if k % 3 == 0:  # bipartite: even with odd
            u, v = u // 2 * 2, v // 2 * 2 + 1
            u, v = u[v < n], v[v < n]
        assert_largest(sp.csr_array((np.ones(u.size), (u, v)), shape=(n, n)))


def test_against_scipy():
    rng = np.random.default_rng(3)
    for degree in (1.5, 3, 8):
        m = int(3000 * degree)
        ends = rng.integers(0, 3000, m), rng.integers(0, 2500, m)
        B = sp.csr_array((np.ones(m), ends), shape=(3000, 2500))
        A = sp.csr_array(sp.block_array([[None, B], [B.T, None]]))
        size = int((maximum_bipartite_matching(B) >= 0).sum())
        for method in ("auto", "hopcroft_karp", "blossom"):
            found = maximum_matching(A, method=method)
            assert found.cardinality == size
            found.check(A)


def test_the_same_at_any_number_of_threads():
    for A in (rmat(8, 4), grid(20, 21), star(50)):
        first = maximum_matching(A, threads=1)
        for threads in (2, 3, 7):
            assert np.array_equal(maximum_matching(A, threads=threads).mate, first.mate)


def test_searches_give_way_to_phases(monkeypatch):
    """Where they would read too much, of a bipartite graph; others are searched to the end."""
    from matchwood.matching.cardinality import cpu

    assert CHEAP > 0
    monkeypatch.setattr(cpu, "CHEAP", 0)
    rng = np.random.default_rng(8)
    B = sp.random_array((300, 300), density=0.01, rng=rng, format="csr")
    A = sp.csr_array(sp.block_array([[None, B], [B.T, None]]))
    found = maximum_matching(A)
    assert found.method == "hopcroft_karp"
    found.check(A)
    found = maximum_matching(rmat(8, 3))
    assert found.method == "blossom"
    found.check(rmat(8, 3))


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_index_types(index):
    A = rmat(7, 4)
    A = sp.csr_array((A.data, A.indices.astype(index), A.indptr.astype(index)), shape=A.shape)
    found = maximum_matching(A)
    assert found.cardinality == size_by_networkx(A)[0]


def test_breaking_answers():
    for A in (rmat(7, 4), grid(9, 9), flowers(3)):
        right = maximum_matching(A).mate
        for u in np.flatnonzero(right > np.arange(right.size))[::4]:
            wrong = right.copy()
            wrong[[u, right[u]]] = -1
            with pytest.raises(CheckFailed, match="there is a matching with"):
                check_maximum_matching(A, wrong)
        wrong = right.copy()
        u = int(np.flatnonzero(right >= 0)[0])
        wrong[u] = -1
        with pytest.raises(CheckFailed):
            check_maximum_matching(A, wrong)


def test_the_proof_counts():
    """Take the centre out of a star: all leaves but one are free."""
    view = matchwood.graph(star(6)).undirected_pattern()
    centre = np.zeros(6, bool)
    assert free_at_least(view, centre) == 0
    centre[int(np.diff(view.indptr).argmax())] = True
    assert free_at_least(view, centre) == 4


def test_arguments():
    with pytest.raises(ValueError, match="maximum_matching: method must be one of"):
        maximum_matching(path(4), method="greedy")
    for engine in ("cpu", "reference"):
        with pytest.raises(ValueError, match="must be bipartite"):
            maximum_matching(complete(3), method="hopcroft_karp", engine=engine)
    for n in (0, 1, 4):
        assert maximum_matching(sp.csr_array((n, n))).mate.tolist() == [-1] * n
