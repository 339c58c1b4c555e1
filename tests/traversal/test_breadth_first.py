"""Breadth-first search: every engine equals the reference, and the check finds every fault."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph

import matchwood
from graphs import ZOO, grid, path, rmat, star
from matchwood.check import check_bfs
from strategies import graphs
from support import THREADS

SPREAD = [0, 7, 3]


def sources_of(A: sp.csr_array) -> list[list[int]]:
    n = A.shape[0]
    return [[]] if n == 0 else [[0], [n - 1], sorted({s % n for s in SPREAD})]


def assert_same(a: matchwood.BFS, b: matchwood.BFS) -> None:
    assert np.array_equal(a.level, b.level)
    assert np.array_equal(a.parent, b.parent)
    assert a.rounds == b.rounds


@pytest.mark.parametrize("name", ZOO)
def test_equals_the_reference(name: str) -> None:
    A = ZOO[name]()
    G = matchwood.graph(A)
    for sources in sources_of(A):
        for directed in (True, False):
            expected = matchwood.bfs(A, sources, directed=directed, engine="reference")
            check_bfs(A, sources, expected, directed=directed)
            for argument, threads in itertools.product((A, G), THREADS):
                found = matchwood.bfs(argument, sources, directed=directed, threads=threads)
                assert_same(found, expected)


@given(graphs(max_n=40), st.integers(0, 5), st.data())
def test_random_graphs(A: sp.csr_array, limit: int, data: st.DataObject) -> None:
    n = A.shape[0]
    sources = data.draw(st.lists(st.integers(0, n - 1), max_size=4)) if n else []
    expected = matchwood.bfs(A, sources, depth_limit=limit, engine="reference")
    for threads in (1, 2, 5):
        found = matchwood.bfs(A, sources, depth_limit=limit, threads=threads)
        assert_same(found, expected)
    check_bfs(A, sources, found, depth_limit=limit)


@pytest.mark.parametrize("index_dtype", [np.int32, pytest.param(np.int64, marks=pytest.mark.slow)])
def test_all_ways_to_expand_a_level(
    monkeypatch: pytest.MonkeyPatch, threads: int, index_dtype: type
) -> None:
    """R-MAT goes bottom up and back; a wide grid goes top down in parallel; a path alone."""
    for A, source in ((rmat(12, 8), 5), (grid(900, 3), 0), (grid(60, 700), 77), (path(3000), 9)):
        G = matchwood.graph(A, index_dtype=index_dtype)
        found = matchwood.bfs(G, source, threads=threads)
        check_bfs(G, source, found)
        assert found.level.dtype == index_dtype
        order, before = csgraph.breadth_first_order(A, source)
        assert (found.level >= 0).sum() == order.size
        assert np.array_equal(found.level >= 0, (before != -9999) | (np.arange(G.n) == source))


@pytest.mark.parametrize("n", [4000, 4032, 4097])  # the last word of a bitmap: part, full, one bit
@pytest.mark.parametrize("symmetric", [True, False])
def test_bottom_up_among_vertices_that_wait_for_ever(n: int, symmetric: bool) -> None:
    """A dense part goes bottom up and ends in a long tail.

    Vertices without arcs, with arcs out only, and a clique of its own are never reached.
    """
    rng = np.random.default_rng(n)
    dense, tail = n // 2, 40
    places = rng.permutation(n)
    ends = rng.integers(0, dense, (2, 20 * dense))
    chain = np.arange(dense - 1, dense + tail)
    clique = np.arange(n - 300, n - 200)
    blind = np.arange(n - 200, n - 100)  # lead into the dense part; nothing leads to them
    rows = np.concatenate([ends[0], chain[:-1], np.repeat(clique, clique.size), blind])
    columns = np.concatenate([ends[1], chain[1:], np.tile(clique, clique.size), blind % dense])
    arcs = (places[rows], places[columns])
    A = sp.csr_array((np.ones(rows.size), arcs), (n, n))
    G = matchwood.graph(A + A.T if symmetric else A)
    for limit in (None, 2, 3):
        expected = matchwood.bfs(G, places[0], depth_limit=limit, engine="reference")
        for threads in THREADS:
            found = matchwood.bfs(G, places[0], depth_limit=limit, threads=threads)
            assert_same(found, expected)
            check_bfs(G, places[0], found, depth_limit=limit)


def test_frontiers_that_grow_and_shrink_many_times() -> None:
    """A geometric graph changes between the ways to expand a level dozens of times."""
    A = matchwood.generators.random_geometric(60_000, degree=6, rng=1)
    G = matchwood.graph(A)
    alone = matchwood.bfs(G, 0, threads=1)
    check_bfs(G, 0, alone)
    for threads in THREADS * 3:
        assert_same(matchwood.bfs(G, 0, threads=threads), alone)


def test_many_schedules() -> None:
    """Many runs of a graph with contention: the same bits each time."""
    G = matchwood.graph(rmat(10, 16))
    first = matchwood.bfs(G, 1, threads=1)
    for threads in THREADS * 60:
        assert_same(matchwood.bfs(G, 1, threads=threads), first)


def test_directed_graphs_are_followed_forwards() -> None:
    A = rmat(11, 8, symmetric=False)
    G = matchwood.graph(A)
    expected = matchwood.bfs(A, 3, engine="reference")
    for threads in THREADS:
        assert_same(matchwood.bfs(A, 3, threads=threads), expected)  # forwards only
        assert_same(matchwood.bfs(G, 3, threads=threads), expected)  # backwards, transposed


def test_result_unpacks_and_finds_paths() -> None:
    level, parent = result = matchwood.bfs(path(5), 2)
    assert level.tolist() == [2, 1, 0, 1, 2]
    assert parent.tolist() == [1, 2, 2, 2, 3]
    assert result.rounds == 2
    assert result.path(4) == [2, 3, 4]
    assert matchwood.bfs(path(3), 0, depth_limit=1).path(2) == []


def test_members_share_long_rows() -> None:
    """Hubs behind short rows, that lead to the same vertices: smallest parents in all orders."""
    n, hubs = 30_000, 5
    rng = np.random.default_rng(3)
    ends = [rng.choice(np.arange(10, n), 9000, replace=False) for _ in range(hubs)]
    rows = np.concatenate([np.zeros(hubs, int), np.repeat(np.arange(1, hubs + 1), 9000)])
    columns = np.concatenate([np.arange(1, hubs + 1), *ends])
    arcs = sp.csr_array((np.ones(rows.size), (rows, columns)), (n, n))
    for A in (arcs, arcs + arcs.T):
        G = matchwood.graph(A)
        expected = matchwood.bfs(G, [0], engine="reference")
        for source, threads in itertools.product(([0], [0, 3]), THREADS):
            found = matchwood.bfs(G, source, threads=threads)
            check_bfs(G, source, found)
            if source == [0]:
                assert_same(found, expected)


def test_a_star_with_a_hub_of_many() -> None:
    A = star(20_000)
    for threads in THREADS:
        check_bfs(A, 5, matchwood.bfs(A, 5, threads=threads))


@pytest.mark.parametrize(
    ("sources", "options", "error", "message"),
    [
        (9, {}, ValueError, r"sources must be vertices 0\.\.8, got 9"),
        ([0, -1], {}, ValueError, "got -1"),
        (0.5, {}, TypeError, "sources must be an integer or a list of them"),
        ([[0], [1]], {}, TypeError, "of shape"),
        (0, {"depth_limit": -1}, ValueError, "depth_limit must not be negative"),
        (0, {"depth_limit": 1.5}, TypeError, "depth_limit must be an integer"),
        (0, {"threads": 0}, ValueError, "threads must be at least 1"),
        (0, {"engine": "dist"}, ValueError, "engine must be None or one of"),
    ],
)
def test_bad_arguments(
    sources: object, options: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        matchwood.bfs(grid(3, 3), sources, **options)


def test_the_check_finds_every_fault() -> None:
    A = grid(4, 4)
    right = matchwood.bfs(A, 0)

    def spoiled(level: dict[int, int], parent: dict[int, int]) -> tuple[object, object]:
        levels, parents = right.level.copy(), right.parent.copy()
        for v, value in level.items():
            levels[v] = value
        for v, value in parent.items():
            parents[v] = value
        return levels, parents

    check_bfs(A, 0, spoiled({}, {}))
    for level, parent, message in [
        ({}, {5: 4}, "parent of 5 is 4, but 1 is smaller"),
        ({}, {5: 15}, "parent 15 of 5 is not of the level before"),
        ({}, {15: 10}, "parent 10 of 15 is not of the level before"),
        ({}, {10: 3}, "there is no arc 3 -> 10"),
        ({15: 5}, {}, "not of the level before|leads from"),
        ({15: 8}, {}, "leads from level 5 to level 8"),
        ({15: -1}, {15: -1}, "leads from level 5 to level -1"),
        ({15: -1}, {}, "vertex 15 has level -1 and parent 11"),
        ({5: 0}, {5: 5}, "vertex 5 has level 0 but is no source"),
        ({0: 1}, {}, "vertex 0 is a source, not of level 0"),
        ({}, {0: 1}, "source 0 is not its own parent"),
    ]:
        with pytest.raises(matchwood.CheckFailed, match=message):
            check_bfs(A, 0, spoiled(level, parent))
    with pytest.raises(matchwood.CheckFailed, match="must have 16 elements"):
        check_bfs(A, 0, (right.level[:5], right.parent))
    limited = matchwood.bfs(A, 0, depth_limit=2)
    check_bfs(A, 0, limited, depth_limit=2)
    with pytest.raises(matchwood.CheckFailed):
        check_bfs(A, 0, limited)
    with pytest.raises(matchwood.CheckFailed):
        check_bfs(A, 0, right, depth_limit=2)
