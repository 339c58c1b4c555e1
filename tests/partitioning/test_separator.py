"""Separators and smallest covers: equal to the reference, whatever the threads; what checks see."""

from __future__ import annotations

import dataclasses

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

import matchwood
from graphs import ZOO, bipartite, complete, cycle, disjoint, grid, path, rmat, star
from matchwood import minimum_vertex_cover, vertex_separator
from matchwood.check import check_separator, check_vertex_cover
from matchwood.partitioning.separator import LARGEST_TOTAL, limits_of, whole_weights
from strategies import graphs
from support import THREADS, some

SLOW = {"random", "rmat", "rmat, directed", "long path"}  # for the reference
NAMES = some(ZOO, SLOW)


def drawn(n: int, low: int, high: int) -> np.ndarray:
    """Numbers of low .. high - 1; the first is 1, so that not all are 0."""
    found = np.random.default_rng(n).integers(low, high, n)
    found[:1] = 1
    return found


def assert_separates(A, teams=THREADS, **options):
    kept = A.copy()
    expected = vertex_separator(A, engine="reference", **options)
    for threads in teams:
        found = vertex_separator(A, threads=threads, **options)
        assert found.dtype == np.int8
        np.testing.assert_array_equal(found, expected)
    weights = options.get("vertex_weights")
    check_separator(A, found, vertex_weights=weights, imbalance=options.get("imbalance", 0.1))
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(A, part), getattr(kept, part))


@pytest.mark.parametrize("name", NAMES)
def test_zoo(name):
    A = ZOO[name]()
    n = A.shape[0]
    assert_separates(A, tries=2)
    assert_separates(A, tries=1, rng=3, imbalance=0.5, vertex_weights=drawn(n, 0, 5))
    assert_separates(A, labels=drawn(n, 0, 2))


@given(graphs())
def test_random_graphs(A):
    assert_separates(A, [2], tries=1, imbalance=0.0, vertex_weights=drawn(A.shape[0], 0, 9) / 3)


def test_grids_are_cut_straight():
    """The shortest line across a grid has as many vertices as its shorter side."""
    for rows, columns in ((20, 30), (16, 100), (50, 55)):
        side = vertex_separator(grid(rows, columns))
        assert np.count_nonzero(side == 2) == rows
    parts = vertex_separator(disjoint([grid(9, 9), grid(9, 9)]))
    assert np.count_nonzero(parts == 2) == 0


def test_labels_are_a_start():
    """Two halves of a grid: covered by a line, which stays."""
    A = grid(12, 20)
    labels = (np.arange(240) % 20 >= 10).astype(int)
    side = vertex_separator(A, labels=labels)
    assert np.count_nonzero(side == 2) == 12
    assert side[0] == 0
    assert np.array_equal(vertex_separator(A, labels=1 - labels) == 2, side == 2)


def test_seeds_and_graphs():
    A = rmat(9, 6)
    one = vertex_separator(A, tries=1)
    assert np.array_equal(one, vertex_separator(matchwood.graph(A), tries=1, rng=None))
    best = [np.count_nonzero(vertex_separator(A, tries=1, rng=seed) == 2) for seed in range(6)]
    assert len(set(best)) > 1
    assert np.count_nonzero(vertex_separator(A, tries=8) == 2) <= max(best)
    same = vertex_separator(nx.Graph([(0, 1), (1, 2)]))
    assert same.tolist() == [0, 2, 1]


def test_weights_become_integers():
    assert whole_weights("f", None, 3).tolist() == [1, 1, 1]
    assert whole_weights("f", [1.0, 2.0], 2).tolist() == [1, 2]
    thirds = whole_weights("f", [1 / 3, 2 / 3, 1e-30], 3)
    assert abs(thirds[1] - 2 * thirds[0]) <= 1  # rounded
    assert thirds[2] == 0
    assert LARGEST_TOTAL // 4 < thirds.sum() <= LARGEST_TOTAL
    large = whole_weights("f", np.array([2**40, 2**40]), 2)
    assert large[0] == large[1]
    assert 0 < large.sum() <= LARGEST_TOTAL
    least = whole_weights("f", [5e-324, 1e-323, 0.0], 3)
    assert least[1] == 2 * least[0] > LARGEST_TOTAL // 2
    side = vertex_separator(path(7), vertex_weights=[5e-324] * 7)
    assert side.tolist() == [0, 0, 0, 2, 1, 1, 1]


def test_limits_are_exact():
    """In double precision 1.15 * 100 is less than 115."""
    assert limits_of(np.array([200, 3, 1, 0]), 0.15).tolist() == [115, 2, 1, 0]
    most = np.array([LARGEST_TOTAL])
    assert limits_of(most, 1e300).tolist() == [LARGEST_TOTAL]
    assert limits_of(most, np.float32(0)).tolist() == [1 << 30]


def test_a_vertex_that_is_too_heavy_is_in_the_separator():
    side = vertex_separator(path(5), vertex_weights=[1, 1, 50, 1, 1], imbalance=0)
    assert side[2] == 2
    side = vertex_separator(star(4), vertex_weights=[0, 50, 1, 1])
    check_separator(star(4), side, vertex_weights=[0, 50, 1, 1])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"imbalance": -0.1}, ValueError, "imbalance must be finite and at least 0"),
        ({"imbalance": "much"}, TypeError, "imbalance must be a number"),
        ({"tries": 0}, ValueError, "tries must be at least 1"),
        ({"rng": -1}, ValueError, "rng must lie in"),
        ({"vertex_weights": [1, 2]}, ValueError, "vertex_weights must have 4 elements, got 2"),
        ({"vertex_weights": [1, -2, 1, 1]}, ValueError, "must be at least 0, got -2.0 at 1"),
        ({"vertex_weights": [0, 0, 0, 0]}, ValueError, "vertex_weights must not all be 0"),
        ({"vertex_weights": [1, np.nan, 0, 0]}, ValueError, "must be finite, got nan at 1"),
        ({"vertex_weights": [1e308] * 4}, ValueError, "the sum of vertex_weights must be finite"),
        ({"labels": [0, 1, 2, 0]}, ValueError, r"labels must lie within 0..1, got 2 at 2"),
        ({"labels": [0.0, 1, 0, 0]}, TypeError, "labels must hold integers"),
        ({"labels": [0]}, ValueError, "labels must have 4 elements, got 1"),
        ({"engine": "fast"}, ValueError, "engine must be None or one of"),
        ({"threads": 0}, ValueError, "threads"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=rf"vertex_separator: .*{message}"):
        vertex_separator(path(4), **options)


def test_bad_graphs():
    with pytest.raises(ValueError, match="vertex_separator: A must be square"):
        vertex_separator(sp.csr_array((2, 3)))
    with pytest.raises(ValueError, match="minimum_vertex_cover: A must be square"):
        minimum_vertex_cover(sp.csr_array((2, 3)))
    for A in (cycle(5), complete(3), disjoint([path(9), cycle(7)])):
        with pytest.raises(ValueError, match="minimum_vertex_cover: the graph must be bipartite"):
            minimum_vertex_cover(A)


def test_the_check_of_separators_finds_every_fault():
    A = path(6)
    check_separator(A, [0, 0, 2, 1, 1, 1])
    for side, message in [
        ([0, 0, 1, 1, 1, 1], "the edge 1, 2 joins both sides"),
        ([0, 0, 2, 1, 1, 3], "side holds 3 at 5"),
        ([0, 0, 0, 0, 2, 1], "side 0 weighs 4, but may weigh 3"),
        ([0, 2, 1, 1, 1], "side must have 6 elements"),
    ]:
        with pytest.raises(matchwood.CheckFailed, match=message):
            check_separator(A, side)
    with pytest.raises(TypeError, match="side must hold integers"):
        check_separator(A, [0.0] * 6)


def two_sided(A):
    return nx.is_bipartite(nx.from_scipy_sparse_array(A, create_using=nx.Graph))


@pytest.mark.parametrize("name", [name for name in ZOO if name != "0x0"])
def test_covers_of_the_zoo(name):
    A = ZOO[name]()
    A.setdiag(0)
    A.eliminate_zeros()
    if not two_sided(sp.csr_array(A)):
        with pytest.raises(ValueError, match="is in an odd cycle"):
            minimum_vertex_cover(A)
        return
    expected = minimum_vertex_cover(A, engine="reference")
    for threads in (1, 3):
        found = minimum_vertex_cover(A, threads=threads)
        assert np.array_equal(found.members, expected.members)
        assert np.array_equal(found.side, expected.side)
        check_vertex_cover(A, found)
    check_vertex_cover(A, expected)
    assert found.size == maximum_by_networkx(A)


def maximum_by_networkx(A):
    G = nx.from_scipy_sparse_array(sp.csr_array(A), create_using=nx.Graph)
    return len(nx.max_weight_matching(G, maxcardinality=True, weight=None))


@given(graphs(max_n=16))
def test_covers_of_random_rectangles(B):
    """The rows and columns of a matrix are the sides."""
    pattern = sp.csr_array((np.ones(B.nnz), B.indices, B.indptr), B.shape)
    A = sp.csr_array(sp.block_array([[None, pattern], [pattern.T, None]]))
    found = minimum_vertex_cover(A)
    check_vertex_cover(A, found)
    assert np.array_equal(found.members, minimum_vertex_cover(A, engine="reference").members)


def test_the_check_of_covers_finds_every_fault():
    A = bipartite(3, 5)
    right = minimum_vertex_cover(A)
    assert right.members.tolist() == [True] * 3 + [False] * 5
    assert repr(right) == "<Cover: 3 of 8 vertices>"
    more = right.members.copy()
    more[7] = True
    less = right.members.copy()
    less[0] = False
    mate = right.matching.mate.copy()
    mate[[0, mate[0]]] = -1
    smaller = dataclasses.replace(right.matching, mate=mate, weight=2.0)
    for change, message in [
        ({"members": less, "size": 2}, "is not covered"),
        ({"members": more, "size": 4}, "4 vertices, but its matching proves only 3"),
        ({"size": 2}, "size is 2, but must be 3"),
        ({"matching": smaller}, "3 vertices, but its matching proves only 2"),
        ({"side": np.zeros(8, int)}, "are on side 0"),
        ({"side": np.full(8, 2)}, "side holds 2 at 0"),
    ]:
        with pytest.raises(matchwood.CheckFailed, match=message):
            check_vertex_cover(A, dataclasses.replace(right, **change))
    with pytest.raises(TypeError, match="answer must be a Cover"):
        check_vertex_cover(A, right.members)


def test_without_vertices():
    empty = sp.csr_array((0, 0))
    assert vertex_separator(empty).shape == (0,)
    check_separator(empty, vertex_separator(empty))
    check_vertex_cover(empty, minimum_vertex_cover(empty))
