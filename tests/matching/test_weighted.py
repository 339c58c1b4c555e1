"""Weighted matching: greedy, dominant and suitor are one matching, on every engine and team."""

from __future__ import annotations

import itertools
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

import matchwood
from graphs import ZOO, complete, disjoint, from_edges, grid, path, rmat, shuffled, star
from matchwood import generators, io
from matchwood.matching import (
    Matching,
    is_locally_dominant,
    is_maximal_matching,
    maximal_matching,
    weighted_matching,
)
from matchwood.matching.check import check_locally_dominant, check_matching
from matchwood.matching.random_weighted.check import check_random_weighted
from strategies import graphs
from support import cores, some

GREEDY = ["greedy", "dominant", "suitor"]
METHODS = [*GREEDY, "random_weighted", "streaming"]
TIES = ["hash", "index"]
THREADS = sorted({1, 2, 3, 2 * cores() + 1})


def assert_same(a: Matching, b: Matching) -> None:
    assert np.array_equal(a.mate, b.mate)
    assert a.mate.dtype == b.mate.dtype
    assert a.weight == pytest.approx(b.weight, rel=1e-12)


@pytest.mark.parametrize("name", some(ZOO))
def test_equals_the_reference(name: str) -> None:
    """At any number of threads; and the three greedy methods equal each other."""
    A = ZOO[name]()
    kept = A.copy()
    for ties in TIES:
        by_method = {}
        for method in METHODS:
            options = {"method": method, "ties": ties, "rng": 3}
            expected = by_method[method] = weighted_matching(A, engine="reference", **options)
            for threads in THREADS:
                found = weighted_matching(A, threads=threads, **options)
                assert_same(found, expected)
                assert found.method == method
                if method == "dominant":
                    assert found.rounds == expected.rounds
            found.check(A)
        check_locally_dominant(A, by_method["greedy"], rng=3, ties=ties)
        assert is_maximal_matching(A, by_method["greedy"])
        for method in GREEDY[1:]:
            assert_same(by_method[method], by_method["greedy"])
    for before, after in ((kept.data, A.data), (kept.indices, A.indices), (kept.indptr, A.indptr)):
        assert np.array_equal(before, after)


@pytest.mark.slow
@given(graphs(max_n=20, max_m=60))
def test_random_graphs(A: sp.csr_array) -> None:
    for ties in TIES:
        expected = weighted_matching(A, method="greedy", ties=ties, engine="reference")
        check_locally_dominant(A, expected, ties=ties)
        for method in GREEDY:
            for threads in (1, 3):
                found = weighted_matching(A, method=method, ties=ties, threads=threads)
                assert_same(found, expected)


@pytest.mark.parametrize(
    ("index_dtype", "dtype"),
    [
        (np.int32, np.float32),
        (np.int32, np.float64),
        # each compiles its kernels once more
        pytest.param(np.int64, np.float64, marks=pytest.mark.slow),
        pytest.param(np.int64, np.float32, marks=pytest.mark.slow),
    ],
)
def test_larger_graphs(index_dtype: type, dtype: type) -> None:
    """Enough for many chunks, batches and rounds; rows longer than those scanned in one go."""
    parts = [rmat(10, 8), grid(40, 50), star(3000), complete(60), path(2000), grid(30, 30, 1.0)]
    A = shuffled(disjoint(parts), isolated=50)
    A.data = A.data.astype(dtype)
    G = matchwood.graph(A, index_dtype=index_dtype)
    for ties in TIES:
        first = weighted_matching(G, method="greedy", ties=ties, threads=1)
        assert is_locally_dominant(G, first, ties=ties)
        assert first.mate.dtype == index_dtype
        for method, threads in itertools.product(GREEDY, THREADS):
            other = weighted_matching(G, method=method, ties=ties, threads=threads)
            assert np.array_equal(other.mate, first.mate)
            assert other.weight == first.weight  # to the last bit


def test_many_schedules() -> None:
    """Equal weights everywhere, so that many vertices propose to the same one."""
    G = matchwood.graph(disjoint([rmat(8, 8), star(400), grid(20, 20, 1.0), complete(40)]))
    G = matchwood.graph(from_edges(G.n, *sp.csr_array(as_matrix(G)).tocoo().coords, 1.0))
    first = weighted_matching(G, method="greedy", threads=1)
    for _ in range(30):
        for method, threads in itertools.product(("suitor", "dominant"), THREADS):
            assert_same(weighted_matching(G, method=method, threads=threads), first)


def as_matrix(G: matchwood.Graph) -> sp.csr_array:
    view = G.undirected_weights()
    return sp.csr_array((view.data, view.indices, view.indptr), shape=(G.n, G.n))


def test_long_chains() -> None:
    """Each decision waits for the one before: the queue of `dominant` keeps that linear."""
    n = 20_000
    ascending = from_edges(n, np.arange(n - 1), np.arange(1, n), np.arange(1.0, n))
    for method in GREEDY:
        found = weighted_matching(ascending, method=method, threads=2)
        assert found.cardinality == n // 2
    assert weighted_matching(ascending, method="dominant").rounds == n // 2
    equal = matchwood.graph(path_of_ones(n))
    assert weighted_matching(equal, method="dominant", ties="index").rounds == n // 2
    assert weighted_matching(equal, method="dominant", ties="hash").rounds < 20


def path_of_ones(n: int) -> sp.csr_array:
    return from_edges(n, np.arange(n - 1), np.arange(1, n))


def test_weights_that_differ_in_the_last_bit() -> None:
    rng = np.random.default_rng(4)
    u, v = rng.integers(0, 200, (2, 2000))
    keep = u != v
    w = 1.0 + np.finfo(float).eps * rng.integers(0, 5000, keep.sum())
    A = from_edges(200, u[keep], v[keep], w)
    expected = weighted_matching(A, method="greedy", threads=1)
    check_locally_dominant(A, expected)
    for method, threads in itertools.product(GREEDY, THREADS):
        found = weighted_matching(A, method=method, threads=threads)
        assert np.array_equal(found.mate, expected.mate)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_of_all_sizes(dtype: type) -> None:
    """Subnormal numbers and huge ones in one matrix."""
    rng = np.random.default_rng(5)
    low, high = (-149, 127) if dtype == np.float32 else (-1074, 1020)
    A = rmat(8, 4)
    upper = sp.triu(A, 1).tocoo()
    w = np.ldexp(1.0, rng.integers(low, high, upper.nnz)).astype(dtype)
    A = from_edges(A.shape[0], *upper.coords, w, dtype=dtype)
    first = weighted_matching(A, method="greedy", threads=1)
    check_locally_dominant(A, first)
    for method, threads in itertools.product(GREEDY, THREADS):
        other = weighted_matching(A, method=method, threads=threads)
        assert np.array_equal(other.mate, first.mate)


def test_half_of_the_best() -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        u, v = rng.integers(0, 14, (2, 30))
        keep = u != v
        A = from_edges(14, u[keep], v[keep], rng.random(keep.sum()))
        G = nx.from_scipy_sparse_array(A)
        best = sum(G[a][b]["weight"] for a, b in nx.max_weight_matching(G))
        for method in METHODS:
            found = weighted_matching(A, method=method)
            assert found.weight <= best * (1 + 1e-12) <= found.bound * (1 + 1e-12)
            edges = {tuple(edge) for edge in found.edges().tolist()}
            assert nx.is_matching(G, edges)
            if method in GREEDY:
                assert 2 * found.weight >= best
                assert nx.is_maximal_matching(G, edges)


def test_random_weighted() -> None:
    for name in ("random", "rmat", "few weights", "equal weights", "mixed signs"):
        A = ZOO[name]()
        for seed in (0, 7):
            for ties in TIES:
                options = {"method": "random_weighted", "rng": seed, "ties": ties}
                found = weighted_matching(A, threads=1, **options)
                check_random_weighted(A, found, rng=seed, ties=ties)
                assert is_maximal_matching(A, found)
                for threads in THREADS:
                    other = weighted_matching(A, threads=threads, **options)
                    assert np.array_equal(other.mate, found.mate)
            other = maximal_matching(A, method="serial", weighted=True, rng=seed)
            same = weighted_matching(A, method="random_weighted", rng=seed)
            assert np.array_equal(other.mate, same.mate)


def test_the_check_of_random_order_is_strict() -> None:
    A = ZOO["random"]()
    right = weighted_matching(A, method="random_weighted").mate
    check_random_weighted(A, right)
    u = int(np.flatnonzero(right >= 0)[0])
    wrong = right.copy()
    wrong[right[u]] = wrong[u] = -1
    with pytest.raises(matchwood.CheckFailed, match="should have taken"):
        check_random_weighted(A, wrong)
    with pytest.raises(matchwood.CheckFailed, match="should have taken"):
        check_random_weighted(A, weighted_matching(A, method="greedy").mate)


@pytest.mark.slow
def test_real_graphs(data_folder: Path) -> None:
    """One matching on every square matrix of moderate size in the data folder."""
    tried = 0
    for file in sorted(
        (*data_folder.glob("graphs/*.mtx.gz"), *data_folder.glob("matrices/*.mtx.gz"))
    ):
        A = io.read(file)
        if A.shape[0] != A.shape[1] or A.nnz > 500_000:
            continue
        G = matchwood.graph(A)
        found = [weighted_matching(G, method=method, threads=2) for method in GREEDY]
        check_locally_dominant(G, found[0])
        for other in found[1:]:
            assert_same(other, found[0])
        tried += 1
    assert tried > 10


def test_result() -> None:
    A = sp.csr_array([[0, 4, 0, 0], [4, 0, 5, 0], [0, 5, 0, 4], [0, 0, 4, 0]])
    found = weighted_matching(A)
    mate, weight = found
    assert mate.tolist() == [-1, 2, 1, -1]
    assert weight == 5.0
    assert found.cardinality == 1
    assert found.edges().tolist() == [[1, 2]]
    assert found.edges().dtype == mate.dtype
    assert set(found.seconds) == {"prepare", "match"}
    assert "1 edges of 4 vertices, weight 5, suitor" in repr(found)
    assert found.bound == pytest.approx(8.0, rel=1e-2)
    assert found.quality == found.weight / found.bound
    empty = weighted_matching(sp.csr_array((3, 3)))
    assert empty.edges().shape == (0, 2)
    assert empty.bound == 0
    assert empty.quality == 1.0
    with pytest.raises(ValueError, match="does not know its graph"):
        Matching(mate, weight).bound
    with pytest.raises(AttributeError):
        found.weight = 3.0  # type: ignore[misc]


def test_the_seed_decides_ties_only() -> None:
    equal, different = generators.grid((20, 20)), ZOO["random"]()
    one, other = (weighted_matching(equal, rng=seed).mate for seed in (1, 2))
    assert not np.array_equal(one, other)
    one, other = (weighted_matching(different, rng=seed).mate for seed in (1, 2))
    assert np.array_equal(one, other)
    again = weighted_matching(equal, rng=np.random.default_rng(8))
    assert_same(again, weighted_matching(equal, rng=np.random.default_rng(8)))


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="method must be one of 'auto', 'greedy'"):
        weighted_matching(path(3), method="best")
    with pytest.raises(ValueError, match="ties must be one of 'hash', 'index'"):
        weighted_matching(path(3), ties="none")
    with pytest.raises(ValueError, match="weighted_matching: A must be square"):
        weighted_matching(sp.csr_array((2, 3)))
    with pytest.raises(ValueError, match="weights must be finite"):
        weighted_matching(sp.csr_array([[0, np.nan], [np.nan, 0]]))
    with pytest.raises(TypeError, match="rng must be an integer"):
        weighted_matching(path(3), rng="seed")
    check_matching(path(3), weighted_matching(path(3)))


@pytest.mark.parametrize("size", [0, 1, 2, 1023, 5000])
def test_the_gpu_notices_ties(size: int) -> None:
    """It samples a few entries, of an array of any length."""
    from matchwood.matching.suitor.gpu import many_ties

    assert many_ties(np.ones(size)) == (size > 1)
    assert not many_ties(np.arange(float(size)))
