"""The GPU gives the arrays that the CPU gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from graphs import ZOO, disjoint, grid, rmat, star, with_dtypes
from matchwood.factors import check_factor, coverage_of_order, degree_factor

pytestmark = pytest.mark.gpu


def same(A: Any, n: int, beside: Any = None, **options: Any) -> None:
    """`beside` is the same graph for the CPU, with indices that it has kernels for already."""
    expected = degree_factor(A if beside is None else beside, n, **options)
    found = degree_factor(A, n, engine="gpu", **options)
    label = f"n={n} {options}"
    assert np.array_equal(found.neighbours, expected.neighbours), label
    assert np.array_equal(found.weights, expected.weights), label
    assert found.neighbours.dtype == (
        expected.neighbours.dtype if beside is None else A.index_dtype
    )
    assert found.maximal == expected.maximal, label
    assert found.rounds == expected.rounds, label
    if expected.weight > 1e-30:  # CuPy's sums take subnormal numbers for 0
        assert found.coverage == pytest.approx(expected.coverage)


@pytest.mark.parametrize("name", ZOO)
def test_zoo(name: str) -> None:
    A = ZOO[name]()
    same(A, 1)
    same(A, 2, rounds=None)
    same(A, 3, rounds=7, ties="hash", uncharged=1, rng=3)
    same(A, 2, rounds=None, directed=True)
    same(A, 2, rounds=0)
    same(A, 2, method="greedy")


@pytest.mark.parametrize("ties", ["index", "hash"])
@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_larger_graphs(index_dtype: type, dtype: type, ties: str) -> None:
    """Rows of many lengths: lanes, warps, chunks of 8192 entries and more than one of them."""
    parts = [rmat(12, 12), star(30_000), grid(100, 90, 1.0)]
    A = with_dtypes(disjoint(parts), index_dtype, dtype)
    G, narrow = (matchwood.graph(A, index_dtype=kind) for kind in (index_dtype, np.int32))
    every = dtype == np.float32 and (index_dtype == np.int64) == (ties == "hash")
    for n in (1, 2, 4, 8) if every else (2, 3):  # each compiles for seconds
        same(G, n, narrow, ties=ties)
    same(G, 2, narrow, ties=ties, rounds=None, uncharged=2)


@pytest.mark.parametrize("n", range(1, 9))
def test_every_n(n: int) -> None:
    A = sp.csr_array(rmat(10, 20))
    same(A, n, rounds=None)
    same(A, n, rounds=6, ties="hash")


@pytest.mark.parametrize("n", [1, 2, 4])
def test_equal_weights(n: int) -> None:
    """All vertices have room for many rounds, and some tiles of rows have one weight only."""
    A = matchwood.generators.mesh((20, 19, 18), dtype=np.float32)
    same(A, n, rounds=9)
    same(A, n, rounds=9, uncharged=2)
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    low, high = np.minimum(rows, A.indices), np.maximum(rows, A.indices)
    own = 1 + (31 * low + 17 * high) % 97
    A.data = np.where(low < A.shape[0] // 2, 1, own).astype(np.float32)
    same(A, n, rounds=9)
    same(A, n, rounds=None)


@pytest.mark.parametrize("rounds", [None, 63, 64, 65, 130])
def test_many_rounds(rounds: int | None) -> None:
    """Weights that grow along a path: without charges one edge is confirmed in a round."""
    weights = np.arange(1, 400, dtype=np.float32)
    A = sp.csr_array(sp.diags_array([weights, weights], offsets=[-1, 1]))
    same(A, 1, rounds=rounds, period=1)
    same(A, 2, rounds=rounds, period=7, uncharged=3)
    B = sp.csr_array(sp.random_array((500, 500), density=0.02, rng=3, dtype=np.float32))
    same(B, 2, rounds=rounds, period=70, directed=True)


def test_subnormal_weights() -> None:
    A = grid(6, 6, 1.0)
    A.data = (np.arange(A.nnz) % 5 + 1).astype(np.float32) * np.float32(1e-42)
    A = sp.csr_array(A.maximum(A.T))
    same(A, 2, rounds=None)


def test_stays_on_the_device() -> None:
    import cupyx.scipy.sparse

    A = cupyx.scipy.sparse.csr_matrix(sp.csr_matrix(grid(20, 20)))
    found = degree_factor(A, 2)
    assert type(found.neighbours).__module__.startswith("cupy")
    assert type(found.edges()).__module__.startswith("cupy")
    check_factor(A, found)
    assert found.edges().get().tolist() == degree_factor(grid(20, 20), 2).edges().tolist()
    assert coverage_of_order(A) == pytest.approx(coverage_of_order(grid(20, 20)))


def test_too_many_neighbours() -> None:
    with pytest.raises(ValueError, match="n must be at most 8 on the GPU, got 9"):
        degree_factor(grid(5, 5), 9, engine="gpu")


def test_memory() -> None:
    """Beyond the graph at most (16 n + 16) bytes a vertex: the result twice, and some more."""
    import cupy

    A = matchwood.generators.aniso(1, (1500, 1500), dtype=np.float32, engine="gpu")
    G = matchwood.graph(A)
    G.undirected_weights()
    pool = cupy.get_default_memory_pool()
    for n in (1, 2, 4):
        degree_factor(G, n)  # compiles
        pool.free_all_blocks()
        before = pool.total_bytes()
        found = degree_factor(G, n)
        assert pool.total_bytes() - before <= (16 * n + 16) * G.n
        del found
