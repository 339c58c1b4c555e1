"""Spanning forests on the GPU: every method gives the edges of the definition, bit for bit.

Only the GPU engine and the reference run here, so these tests need no compiler for the CPU.
"""

from __future__ import annotations

import numpy as np
import pytest

import matchwood
from graphs import ZOO, complete, disjoint, grid, path, rmat, shuffled, star, with_dtypes
from matchwood.spanning.forest import order
from matchwood.spanning.forest.boruvka import gpu as engine

pytestmark = pytest.mark.gpu

METHODS = ("boruvka", "awerbuch_shiloach", "kruskal", "filter_kruskal")


def weighted(A, kind):
    """The pattern of `A` with other values: unequal, many equal, integers beyond 2^53."""
    B = A.tocsr().astype(np.float64)
    u = np.repeat(np.arange(B.shape[0]), np.diff(B.indptr))
    low, high = np.minimum(u, B.indices), np.maximum(u, B.indices)
    mixed = (low * 2654435761 + high * 40503 + 12345) % 1000003
    if kind == "few":
        B.data = (mixed % 3 - 1).astype(np.float32)
    elif kind == "int64":
        B.data = mixed.astype(np.int64) % 50 + (1 << 60)
    elif kind == "float32":
        B.data = mixed.astype(np.float32) - 500000
    else:
        B.data = (mixed - 500000) * 1e-300 + 1.0
    return B


LARGER = {
    "grid": lambda: grid(90, 101),
    "shuffled path": lambda: shuffled(path(20_000)),
    "long path": lambda: path(30_000),
    "star": lambda: star(30_000, centre=29_999),
    "rmat 11": lambda: rmat(11, 12),
    "complete": lambda: complete(300),
    "many": lambda: shuffled(disjoint([complete(5)] * 2000), isolated=100),
}


def prepared(A, index_dtype=np.int32):
    cupy = pytest.importorskip("cupy")
    arrays = tuple(cupy.asarray(array) for array in (A.indptr, A.indices, A.data))
    return matchwood.graph(arrays, index_dtype=index_dtype)


def assert_same(found, right):
    assert np.array_equal(found.edges.get(), right.edges)
    assert found.weights.dtype == right.weights.dtype
    assert np.array_equal(found.weights.get(), right.weights)
    assert found.components == right.components
    assert found.total == pytest.approx(right.total, rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_zoo(zoo_graph, method):
    for index_dtype in (np.int32, np.int64):
        for maximum in (False, True):
            right = matchwood.minimum_spanning_forest(
                zoo_graph, engine="reference", maximum=maximum
            )
            G = prepared(zoo_graph, index_dtype)
            found = matchwood.minimum_spanning_forest(G, method=method, maximum=maximum)
            assert found.edges.dtype == index_dtype
            assert_same(found, right)


@pytest.mark.parametrize("kind", ["few", "int64", "float32", "float64"])
@pytest.mark.parametrize("name", LARGER)
def test_larger(name, kind):
    A = weighted(LARGER[name](), kind)
    right = matchwood.minimum_spanning_forest(A, engine="reference")
    G = prepared(A)
    for method in METHODS:
        for _ in range(2):  # other schedules
            assert_same(matchwood.minimum_spanning_forest(G, method=method), right)
    maximum = matchwood.minimum_spanning_forest(A, engine="reference", maximum=True)
    assert_same(matchwood.minimum_spanning_forest(G, maximum=True), maximum)


def test_light_edges_first_and_a_list_that_is_too_short(monkeypatch):
    graphs = [
        (weighted(A, kind), index_dtype)
        for A, kind, index_dtype in (
            (rmat(10, 16), "float32", np.int32),
            (rmat(10, 16), "few", np.int64),
            (rmat(10, 16), "float64", np.int32),
            (shuffled(disjoint([complete(40), star(5000), rmat(9, 9)])), "int64", np.int32),
        )
    ]
    for A, index_dtype in graphs:
        right = matchwood.minimum_spanning_forest(A, engine="reference")
        G = prepared(A, index_dtype)
        for degree, light, bitmap in (
            (0.0, 0.3, 0), (0.0, 0.05, 0), (0.0, 0.3, 1 << 30), (0.0, 2.0, 0), (1e9, 1.0, 0),
        ):  # fmt: skip
            monkeypatch.setattr(engine, "LIGHT_DEGREE", degree)
            monkeypatch.setattr(engine, "LIGHT_EDGES", light)
            monkeypatch.setattr(engine, "LIGHT_EDGES_SKEWED", light)
            monkeypatch.setattr(engine, "BITMAP_VERTICES", bitmap)
            assert_same(matchwood.minimum_spanning_forest(G), right)
    A = graphs[0][0]
    right = matchwood.minimum_spanning_forest(A, engine="reference")
    G = prepared(A)
    monkeypatch.setattr(engine, "LIGHT_DEGREE", 0.0)
    monkeypatch.setattr(order, "SAMPLE", 2)  # a bad guess of what is light
    assert_same(matchwood.minimum_spanning_forest(G), right)


def test_rounds_are_bounded():
    n = 1 << 14
    for weights in (np.arange(1, n), np.arange(n, 1, -1), np.ones(n - 1)):
        A = path(n)
        order = np.argsort(A.tocoo().row + A.tocoo().col, kind="stable")
        A.data[order] = np.repeat(weights, 2)
        G = prepared(A)
        for method in METHODS[:2]:
            found = matchwood.minimum_spanning_forest(G, method=method)
            assert found.rounds <= 2 * 14 + 4
            assert found.edges.shape == (n - 1, 2)


def test_values_that_differ_by_direction():
    A = with_dtypes(ZOO["rmat, directed"](), np.int32, np.float32)
    for maximum in (False, True):
        right = matchwood.minimum_spanning_forest(A, engine="reference", maximum=maximum)
        assert_same(matchwood.minimum_spanning_forest(prepared(A), maximum=maximum), right)


@pytest.mark.parametrize(
    "name", ["duplicates, unsorted", "rmat, directed", "self loops", "directed"]
)
def test_integers_stored_in_every_way(name):
    """Beyond 2^53: duplicates added up, the lighter direction taken, loops left out."""
    A = ZOO[name]()
    u = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    A = type(A)((((u * 7 + A.indices * 3) % 11 + (1 << 58)), A.indices, A.indptr), shape=A.shape)
    for maximum in (False, True):
        right = matchwood.minimum_spanning_forest(A, engine="reference", maximum=maximum)
        found = matchwood.minimum_spanning_forest(prepared(A), maximum=maximum)
        assert_same(found, right)
        assert found.total == right.total


def test_tiny_and_zero_weights():
    """Subnormal float32, which the GPU's own arithmetic takes for zero."""
    A = with_dtypes(ZOO["complete"](), np.int32, np.float32)
    u = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    A.data[:] = ((u * A.indices) % 7 - 3).astype(np.float32) * np.float32(1e-42)
    right = matchwood.minimum_spanning_forest(A, engine="reference")
    for method in METHODS:
        assert_same(matchwood.minimum_spanning_forest(prepared(A), method=method), right)


def test_result_and_input():
    cupy = pytest.importorskip("cupy")
    A = ZOO["grid"]()
    G = prepared(A)
    found = matchwood.minimum_spanning_forest(G)
    matrix = found.tocsr()
    assert isinstance(found.edges, cupy.ndarray)
    right = matchwood.minimum_spanning_forest(A, engine="reference").tocsr()
    assert abs(matrix.get() - right).sum() == 0
    for method in METHODS:
        matchwood.minimum_spanning_forest(G, method=method)
    assert np.array_equal(G.indptr.get(), A.indptr)
    assert np.array_equal(G.indices.get(), A.indices)
    assert np.array_equal(G.data.get(), A.data)


def test_chains_as_long_as_the_graph():
    """Every vertex chooses the next one: a chain that starts where the first threads are."""
    n = 300_000
    for step in (1, -1):
        A = path(n)
        order = np.argsort(A.tocoo().row + A.tocoo().col, kind="stable")
        A.data = A.data.copy()
        A.data[order] = np.repeat(np.arange(1.0, n)[::step], 2)
        found = matchwood.minimum_spanning_forest(prepared(A))
        assert found.edges.shape == (n - 1, 2)
        assert found.rounds == 1
