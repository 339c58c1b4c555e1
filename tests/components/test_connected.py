"""Connected components: all methods and engines give one numbering, and the check is strict."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from scipy.sparse import csgraph

import matchwood
from graphs import ZOO, cycle, disjoint, grid, path, rmat, shuffled, star
from matchwood.check import check_connected_components
from strategies import graphs
from support import THREADS

METHODS = ["auto", "afforest", "fastsv", "bfs"]


@pytest.mark.parametrize("name", ZOO)
def test_equals_the_reference(name: str) -> None:
    A = ZOO[name]()
    expected = matchwood.connected_components(A, engine="reference")
    check_connected_components(A, expected)
    for method, threads in itertools.product(METHODS, THREADS):
        for argument in (A, matchwood.graph(A)):
            found = matchwood.connected_components(argument, method=method, threads=threads)
            assert found.count == expected.count, (method, threads)
            assert np.array_equal(found.labels, expected.labels), (method, threads)
            assert found.labels.dtype == expected.labels.dtype


@given(graphs(max_n=60, max_m=60))
def test_random_graphs(A: sp.csr_array) -> None:
    expected = matchwood.connected_components(A, engine="reference")
    for method in METHODS:
        for threads in (1, 2, 5):
            found = matchwood.connected_components(A, method=method, threads=threads)
            assert np.array_equal(found.labels, expected.labels)
    check_connected_components(A, expected)


@pytest.mark.parametrize(
    ("index_dtype", "methods"),
    [
        (np.int32, METHODS),
        (np.int64, [method for method in METHODS if method != "bfs"]),
        pytest.param(np.int64, ["bfs"], marks=pytest.mark.slow),  # compiles the search once more
    ],
)
def test_larger_graphs_agree_with_scipy(index_dtype: type, methods: list[str]) -> None:
    parts = [rmat(9, 6), path(4000), cycle(3000), star(500), grid(30, 40)]
    for A in (*parts, shuffled(disjoint(parts), isolated=100), rmat(12, 2, symmetric=False)):
        count, labels = csgraph.connected_components(A, directed=True, connection="weak")
        _, first = np.unique(labels, return_index=True)
        number = np.empty(count, np.int64)
        number[np.argsort(first)] = np.arange(count)
        check_connected_components(A, (count, number[labels]))
        for method, threads in itertools.product(methods, THREADS):
            G = matchwood.graph(A, index_dtype=index_dtype)
            found = matchwood.connected_components(G, method=method, threads=threads)
            assert found.count == count, (method, threads)
            assert found.labels.dtype == index_dtype
            assert np.array_equal(found.labels, number[labels]), (method, threads)


def test_many_schedules() -> None:
    G = matchwood.graph(shuffled(disjoint([rmat(8, 2), path(500), star(300)]), isolated=50))
    first = matchwood.connected_components(G, threads=1).labels
    for method in METHODS:
        for threads in THREADS * 40:
            found = matchwood.connected_components(G, method=method, threads=threads)
            assert np.array_equal(found.labels, first)


def test_result() -> None:
    result = matchwood.connected_components(disjoint([path(3), path(1), path(2)]))
    count, labels = result
    assert (count, labels.tolist()) == (3, [0, 0, 0, 1, 2, 2])
    assert result.sizes().tolist() == [3, 1, 2]
    assert result.rounds > 0


def test_fastsv_needs_few_rounds() -> None:
    assert matchwood.connected_components(path(100_000), method="fastsv", threads=1).rounds < 40


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="method must be one of 'auto', 'afforest'"):
        matchwood.connected_components(path(3), method="dfs")
    with pytest.raises(ValueError, match="connected_components: A must be square"):
        matchwood.connected_components(sp.csr_array((2, 3)))


def test_the_check_finds_every_fault() -> None:
    A = disjoint([path(4), path(3), path(1)])
    right = [0, 0, 0, 0, 1, 1, 1, 2]
    check_connected_components(A, right)
    check_connected_components(A, (3, right))
    for labels, message in [
        ([0, 0, 0, 0, 1, 1, 2, 3], r"edge \(5, 6\) joins labels 1 and 2"),
        ([0, 0, 0, 0, 0, 0, 0, 1], "no path joins vertex 4 to vertex 0"),
        ([0, 0, 0, 0, 1, 1, 1, 1], "no path joins vertex 7 to vertex 4"),
        ([1, 1, 1, 1, 0, 0, 0, 2], "label 1 .* must come before label 0"),
        ([0, 0, 0, 0, 1, 1, 1, 3], "without gaps"),
        ([0, 0, 0, 0, 1, 1, 1, -1], "without gaps"),
        (right[:5], "must have 8 elements"),
    ]:
        with pytest.raises(matchwood.CheckFailed, match=message):
            check_connected_components(A, labels)
    with pytest.raises(matchwood.CheckFailed, match="count is 4"):
        check_connected_components(A, (4, right))
