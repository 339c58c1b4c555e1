"""Coarsening: every engine gives the reference's bits; hierarchies shrink on every graph."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import matchwood
from graphs import ZOO, complete, disjoint, grid, path, rmat, shuffled, star
from matchwood import CheckFailed, coarsen, coarsening_hierarchy, weighted_matching
from matchwood.check import check_coarsening, check_hierarchy
from matchwood.matching.coarsening import pair_free
from strategies import graphs
from support import cores

THREADS = sorted({1, 2, 3, 2 * cores() + 1})


def assert_same(found, expected) -> None:
    for name in ("indptr", "indices", "data"):
        ours, theirs = getattr(found.matrix, name), getattr(expected.matrix, name)
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs)
    assert np.array_equal(found.map, expected.map)
    assert found.map.dtype == expected.map.dtype
    assert np.array_equal(found.vertex_weights, expected.vertex_weights)
    assert found.vertex_weights.dtype == expected.vertex_weights.dtype


@pytest.mark.parametrize("name", ZOO)
def test_equals_the_reference(name: str) -> None:
    A = ZOO[name]()
    before = A.copy()
    mate = weighted_matching(A, rng=3)
    own = np.arange(A.shape[0]) / 7
    expected = coarsen(A, mate, vertex_weights=own, engine="reference")
    check_coarsening(A, mate, expected, vertex_weights=own)
    for threads in THREADS:
        assert_same(coarsen(A, mate, vertex_weights=own, threads=threads), expected)
    assert abs(A - before).nnz == 0


@pytest.mark.parametrize("kind", [np.int32, pytest.param(np.int64, marks=pytest.mark.slow)])
@given(A=graphs(max_n=30, max_m=60), rng=st.integers(0, 99))
def test_random_graphs(kind: type, A: sp.csr_array, rng: int) -> None:
    G = matchwood.graph(A, index_dtype=kind)
    mate = weighted_matching(G, rng=rng).mate
    mate = pair_free(G.undirected_weights(), mate)
    expected = coarsen(G, mate, engine="reference")
    check_coarsening(G, mate, expected)
    assert int(expected.vertex_weights.sum()) == G.n
    for threads in (1, 3):
        assert_same(coarsen(G, mate, threads=threads), expected)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_coarse_matrix_is_exactly_symmetric(kind: type) -> None:
    """Sums of the same weights in another order would differ in their last bits."""
    A = matchwood.generators.random_weights(rmat(9, 8), dtype=kind)
    for level in coarsening_hierarchy(A, until=5):
        matrix = level.matrix
        assert matrix.dtype == kind
        assert (matrix != matrix.T).nnz == 0
        assert not matrix.diagonal().any()


def test_a_small_case_by_hand() -> None:
    A = sp.csr_array(
        [[0, 8, 1, 2, 0], [8, 0, 4, 0, 0], [1, 4, 0, 9, 0], [2, 0, 9, 0, 3], [0, 0, 0, 3, 0]]
    )
    found = coarsen(A, [1, 0, 3, 2, -1], vertex_weights=[1, 2, 3, 4, 5])
    matrix, map = found
    assert matrix.toarray().tolist() == [[0, 7, 0], [7, 0, 3], [0, 3, 0]]
    assert map.tolist() == [0, 0, 1, 1, 2]
    assert found.vertex_weights.tolist() == [3, 7, 5]
    assert repr(found) == "<Coarsening: 5 -> 3 vertices>"


@pytest.mark.parametrize("name", ZOO)
def test_hierarchies(name: str) -> None:
    A = ZOO[name]()
    for method in ("auto", "proposal"):
        found = coarsening_hierarchy(A, until=3, method=method)
        sizes = found.sizes
        assert sizes[-1] <= 3
        for fine, coarse in itertools.pairwise(sizes):
            assert coarse <= 0.75 * fine + 1
        if len(found):
            assert int(found.levels[-1].vertex_weights.sum()) == A.shape[0]
            assert np.array_equal(
                np.bincount(found.map, minlength=sizes[-1]), found.levels[-1].vertex_weights
            )
        other = coarsening_hierarchy(A, until=3, method=method, threads=3)
        for one, two in zip(found, other, strict=True):
            assert_same(one, two)


@pytest.mark.parametrize(
    "A",
    [
        star(5000),
        sp.csr_array((5000, 5000)),
        disjoint([star(1500), star(1500), path(1000)]),
        shuffled(rmat(10, 3), isolated=2000),
        complete(40),
    ],
    ids=["star", "no edges", "stars", "isolated", "complete"],
)
def test_nothing_stalls(A: sp.csr_array) -> None:
    assert len(coarsening_hierarchy(A, until=1)) <= 2.5 * np.log2(A.shape[0]) + 2


def test_without_two_hops_a_star_stalls_and_that_ends_it() -> None:
    assert len(coarsening_hierarchy(star(500), until=10, two_hop=False)) == 0
    assert coarsening_hierarchy(grid(20, 20), until=10, two_hop=False).sizes[-1] <= 10


def test_values_are_handed_down() -> None:
    A = grid(12, 12)
    H = coarsening_hierarchy(A, until=4)
    part = H.project(np.arange(H.sizes[-1]))
    assert np.array_equal(part, H.map)
    assert repr(H).startswith("<Hierarchy: 144 > ")
    with pytest.raises(ValueError, match="one row for each of"):
        H.project([1, 2, 3, 4, 5, 6, 7])
    small = coarsening_hierarchy(A, until=1000)
    assert np.array_equal(small.project(np.arange(144)), np.arange(144))


@pytest.mark.parametrize(
    ("mate", "error", "text"),
    [
        ([1, 0], ValueError, r"mate must have 4 elements, got shape \(2,\)"),
        ([1, 0, 4, -1], ValueError, r"mate\[2\] is 4, no vertex of 0..3"),
        ([1, 2, 1, -1], ValueError, r"mate\[0\] is 1, but mate\[1\] is 2"),
        ([0, -1, -1, -1], ValueError, r"mate\[0\] is 0 itself"),
        ([1.0, 0.0, -1.0, -1.0], TypeError, "mate must hold integers, got dtype float64"),
    ],
)
def test_bad_mates(mate, error, text: str) -> None:
    with pytest.raises(error, match=text):
        coarsen(path(4), mate)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="vertex_weights must have 4 elements"):
        coarsen(path(4), [-1] * 4, vertex_weights=[1, 2])
    with pytest.raises(TypeError, match="vertex_weights must hold real numbers"):
        coarsen(path(4), [-1] * 4, vertex_weights=[1j] * 4)
    with pytest.raises(ValueError, match="until must be at least 1"):
        coarsening_hierarchy(path(4), until=0)
    with pytest.raises(ValueError, match="method must be"):
        coarsening_hierarchy(path(4), method="best")


def spoiled(name: str):
    """A right answer for a weighted grid, broken in one way."""
    A = matchwood.generators.random_weights(grid(4, 5))
    mate = weighted_matching(A).mate
    right = coarsen(A, mate)
    check_coarsening(A, mate, right)
    matrix, map, weights = right.matrix.copy(), right.map.copy(), right.vertex_weights.copy()
    if name == "map":
        map[3] += 1
    elif name == "short map":
        map = map[:-1]
    elif name == "vertex weight":
        weights[2] += 1
    elif name == "size":
        matrix = sp.csr_array((3, 3))
    elif name == "value":
        matrix.data[4] *= 1.5
    elif name == "missing":
        matrix.data[0] = 0
        matrix.eliminate_zeros()
    elif name == "superfluous":
        matrix = matrix.tolil()
        matrix[0, 0] = 1.0
        matrix = sp.csr_array(matrix)
    changed = dataclasses.replace(right, matrix=matrix, map=map, vertex_weights=weights)
    return A, mate, changed


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("map", r"map\[3\] is"),
        ("short map", "map must have 20 elements"),
        ("vertex weight", "but its members weigh"),
        ("size", "the matrix must have"),
        ("value", "of the matrix is .*, must be"),
        ("missing", "is missing"),
        ("superfluous", r"entry \(0, 0\) of the matrix joins nothing"),
    ],
)
def test_the_check_fails(name: str, text: str) -> None:
    A, mate, answer = spoiled(name)
    with pytest.raises(CheckFailed, match=text):
        check_coarsening(A, mate, answer)


def test_the_check_of_a_hierarchy_can_fail() -> None:
    A = matchwood.generators.grid((8, 8))
    for method in ("auto", "proposal", "random"):
        found = matchwood.coarsening_hierarchy(A, until=5, method=method)
        check_hierarchy(A, found)
        for k, level in enumerate(found.levels):
            map = level.map.copy()
            map[0] = map[-1]
            matrix = level.matrix.copy()
            matrix.data[0] += 1
            weights = level.vertex_weights.copy()
            weights[-1] += 1
            for spoiled in (
                dataclasses.replace(level, map=map),
                dataclasses.replace(level, matrix=matrix),
                dataclasses.replace(level, vertex_weights=weights),
            ):
                levels = (*found.levels[:k], spoiled, *found.levels[k + 1 :])
                with pytest.raises(matchwood.CheckFailed):
                    check_hierarchy(A, dataclasses.replace(found, levels=levels))
