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
from matchwood.matching.cardinality import reference
from matchwood.matching.cardinality.check import check_maximum_matching, free_at_least
from matchwood.matching.cardinality.cpu import CHEAP, bipartite
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


@pytest.mark.slow
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


def with_holes(side):
    """A grid with a tenth of its vertices taken out: paths are long."""
    stays = np.random.default_rng(0).random(side * side) > 0.1
    return grid(side, side)[stays][:, stays]


def test_phases_are_few():
    """Trees go on growing behind the first path: a phase takes paths of all lengths."""
    A = with_holes(80)
    found = maximum_matching(A, method="hopcroft_karp")
    assert found.rounds < 9
    assert found.cardinality == maximum_matching(A, method="blossom").cardinality


def test_trees_share_the_ends_of_paths():
    """Many trees reach the same free vertices at once.  One tree must not take them all."""
    roots, inner, outer, ends = np.arange(400).reshape(4, 100)
    A = from_edges(
        400,
        np.r_[roots, outer, np.repeat(outer, 100)],
        np.r_[inner, inner, np.tile(ends, 100)],
    )
    view = matchwood.graph(A).undirected_pattern()
    mate = np.full(400, -1, view.indices.dtype)
    mate[inner], mate[outer] = outer, inner
    assert bipartite.turn_paths(view, bipartite.two_sides(view), mate, 1) < 15  # 100, if one does
    assert (mate >= 0).all()


def two_sided(n, m, seed):
    """A random bipartite graph; pairs of vertices change places, so that sides are mixed."""
    rng = np.random.default_rng(seed)
    place = rng.permutation(2 * n)
    return from_edges(2 * n, place[rng.integers(0, n, m)], place[rng.integers(n, 2 * n, m)])


def test_phases_are_those_of_the_definition():
    """From any start, the mates are the same on every team."""
    rng = np.random.default_rng(6)
    graphs = [two_sided(n, 2 * n, n) for n in (1, 2, 5, 9, 30, 200)] + [with_holes(30), path(40)]
    for A in graphs:
        view = matchwood.graph(A).undirected_pattern()
        side = bipartite.two_sides(view)
        assert side.tolist() == reference.two_sides(view).tolist()
        start = maximum_matching(A).mate.copy()
        parted = np.flatnonzero(rng.random(view.n) < rng.random())
        start[start[parted]] = -1
        start[(start >= 0) & (start[start] != np.arange(view.n))] = -1
        wanted = start.tolist()
        phases = reference.turn_paths(view, side, wanted, bipartite.LOOSE_PER_STAYING)
        for threads in (1, 2, 5):
            mate = start.copy()
            assert bipartite.turn_paths(view, side, mate, threads) == phases
            assert mate.tolist() == wanted


def test_sides_of_wide_levels():
    """Levels that are divided among the members, and an odd cycle that is found in one."""
    A = two_sided(9000, 30000, 1)
    view = matchwood.graph(A).undirected_pattern()
    side = reference.two_sides(view)
    giant = np.flatnonzero(np.diff(view.indptr) > 0)
    assert giant.size > 3 * bipartite.WIDE
    u, v = giant[side[giant] == 0][-2:]
    odd = matchwood.graph(sp.csr_array(A + from_edges(18000, [u], [v]))).undirected_pattern()
    for threads in (1, 2, 3):
        assert np.array_equal(bipartite.two_sides(view, threads), side)
        assert bipartite.two_sides(odd, threads) is None


@pytest.mark.slow
def test_many_sizes():
    rng = np.random.default_rng(4)
    for k in range(100):
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
    for A, method in (
        (rmat(8, 4), "auto"),
        (star(50), "hopcroft_karp"),
        (with_holes(60), "hopcroft_karp"),
        (two_sided(2000, 5000, 2), "hopcroft_karp"),
    ):
        first = maximum_matching(A, method=method, threads=1)
        for threads in (2, 3, 7):
            found = maximum_matching(A, method=method, threads=threads)
            assert np.array_equal(found.mate, first.mate)
            assert found.rounds == first.rounds


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
    for A, method in ((rmat(7, 4), "auto"), (with_holes(12), "hopcroft_karp")):
        A = sp.csr_array((A.data, A.indices.astype(index), A.indptr.astype(index)), shape=A.shape)
        found = maximum_matching(A, method=method)
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
