"""Spanning forests: all methods and engines give one forest, at any number of threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph

import matchwood
from graphs import ZOO, complete, cycle, disjoint, from_edges, grid, path, rmat, shuffled, star
from matchwood.check import check_spanning_forest
from matchwood.spanning.forest import order as orders
from matchwood.spanning.forest.boruvka import cpu as cpu_boruvka
from matchwood.spanning.forest.costs import undirected_costs
from matchwood.spanning.forest.kruskal import cpu as cpu_kruskal
from matchwood.spanning.forest.stars import cpu as cpu_stars
from strategies import graphs
from support import in_time, some

METHODS = ["boruvka", "awerbuch_shiloach", "kruskal", "filter_kruskal"]
msf = matchwood.minimum_spanning_forest


def assert_same(found, right):
    assert np.array_equal(found.edges, right.edges)
    assert np.array_equal(found.weights, right.weights)
    assert found.edges.dtype == right.edges.dtype
    assert found.weights.dtype == right.weights.dtype
    assert found.components == right.components
    assert found.total == right.total


def weighted(A: sp.csr_array, kind: str) -> sp.csr_array:
    """The pattern of `A` with symmetric values of a kind."""
    B = sp.csr_array(A)
    u = np.repeat(np.arange(B.shape[0]), np.diff(B.indptr))
    low, high = np.minimum(u, B.indices), np.maximum(u, B.indices)
    mixed = (low * 2654435761 + high * 40503 + 12345) % 1000003
    values = {
        "few": lambda: (mixed % 3 - 1).astype(np.float32),
        "equal": lambda: np.full(mixed.size, -2.5, np.float32),
        "float32": lambda: mixed.astype(np.float32) - 500_000,
        "close": lambda: (mixed - 500_000) * 2.0**-52 + 1.0,  # prefixes cannot tell them apart
        "wide": lambda: np.where(mixed % 2, 1e-300, 1e300) * (mixed - 500_000.0),
        "int64": lambda: mixed.astype(np.int64) % 50 + (1 << 60),
        "widest": lambda: np.array([-(2**63), 2**63 - 1, 0, 5, 6])[mixed % 5],
    }[kind]()
    return sp.csr_array((values, B.indices, B.indptr), shape=B.shape)


KINDS = ["few", "equal", "float32", "close", "wide", "int64", "widest"]


@pytest.mark.parametrize("maximum", [False, True], ids=["minimum", "maximum"])
@pytest.mark.parametrize("name", some(ZOO))
def test_equals_the_reference(name: str, maximum: bool) -> None:
    A = ZOO[name]()
    right = msf(A, engine="reference", maximum=maximum)
    G = matchwood.graph(A)
    for method in METHODS:
        for threads in (1, 2, 3, 5):
            assert_same(msf(G, method=method, maximum=maximum, threads=threads), right)
    assert_same(msf(A, maximum=maximum), right)
    check_spanning_forest(A, right, maximum=maximum)


@given(graphs(max_n=40, max_m=90, weights="any"), st.booleans())
def test_random_graphs(A: sp.csr_array, maximum: bool) -> None:
    right = msf(A, engine="reference", maximum=maximum)
    for method in METHODS:
        for threads in (1, 3):
            assert_same(msf(A, method=method, maximum=maximum, threads=threads), right)
    check_spanning_forest(A, right, maximum=maximum)


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_of_weights(kind: str) -> None:
    for A in (rmat(8, 12), grid(20, 21), shuffled(disjoint([complete(30), star(60)]), isolated=5)):
        B = weighted(A, kind)
        for maximum in (False, True):
            right = msf(B, engine="reference", maximum=maximum)
            for method in METHODS:
                for threads in (1, 3):
                    assert_same(msf(B, method=method, maximum=maximum, threads=threads), right)
            check_spanning_forest(B, right, maximum=maximum)


@pytest.mark.parametrize(("degree", "light"), [(0.0, 0.2), (0.0, 1.0), (0.0, 1e9), (1e9, 1.0)])
def test_what_goes_first_changes_nothing(monkeypatch, degree: float, light: float) -> None:
    monkeypatch.setattr(cpu_boruvka, "LIGHT_DEGREE", degree)
    monkeypatch.setattr(cpu_boruvka, "LIGHT_EDGES", light)
    monkeypatch.setattr(cpu_kruskal, "EDGES_PER_VERTEX", light / 10)
    for kind in ("few", "float32", "close"):
        A = weighted(shuffled(disjoint([rmat(8, 12), grid(9, 9)]), isolated=9), kind)
        right = msf(A, engine="reference")
        for method in ("boruvka", "filter_kruskal"):
            for threads in (1, 2, 5):
                assert_same(msf(A, method=method, threads=threads), right)


def test_many_schedules() -> None:
    A = weighted(shuffled(disjoint([rmat(9, 8), path(500), star(300)]), isolated=50), "few")
    G = matchwood.graph(A)
    right = msf(G, threads=1)
    for method in METHODS:
        for _ in range(15):
            assert_same(msf(G, method=method, threads=3), right)


def test_equals_scipy_where_scipy_can() -> None:
    """Positive weights, all different: SciPy finds the same tree; sums may be rounded."""
    A = matchwood.generators.random_weights(matchwood.generators.rmat(10), dtype=np.float64)
    found, right = msf(A), csgraph.minimum_spanning_tree(A)
    assert found.edges.shape[0] == right.nnz
    assert found.total == pytest.approx(right.sum(), rel=1e-12)
    assert abs(found.tocsr() - sp.triu(right + right.T)).max() == 0


def test_zero_weights_are_edges() -> None:
    A = from_edges(4, [0, 1, 2], [1, 2, 3], 0.0)
    found = msf(A)
    assert found.edges.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert found.tocsr().nnz == 3
    assert csgraph.minimum_spanning_tree(A).nnz == 0


def test_negative_zero_is_zero() -> None:
    """Equal weights: the ends decide, not the sign of the zero."""
    A = (3, [[0, 1], [0, 2], [1, 2]], np.array([0.0, -0.0, -0.0]))
    for method in METHODS:
        assert msf(A, method=method).edges.tolist() == [[0, 1], [0, 2]]


def test_integers_beyond_floats() -> None:
    big = 1 << 53
    edges, weights = [[0, 1], [1, 2], [0, 2]], [big + 1, big, big + 2]  # two are one in float64
    u, v = np.array(edges).T
    A = sp.csr_array((np.array(weights), (u, v)), shape=(3, 3))
    for method in METHODS:
        found = msf(A, method=method)
        assert found.weights.tolist() == [big + 1, big]
        assert found.total == 2 * big + 1
        assert found.weights.dtype == np.int64
        assert msf(A, method=method, maximum=True).weights.tolist() == [big + 1, big + 2]
    A.data[:] = (1 << 63) - 1
    assert msf(A).total == 2 * ((1 << 63) - 1)  # no overflow
    with pytest.raises(ValueError, match="integer weights must fit int64, got 9223372036854775808"):
        msf(sp.csr_array((np.array([1 << 63], np.uint64), ([0], [1])), shape=(2, 2)))


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int32, np.uint64, np.bool_, np.float16])
def test_other_types(kind: type) -> None:
    A = from_edges(4, [0, 1, 2, 0], [1, 2, 3, 3], [1, 0, 1, 1]).astype(np.float64)
    B = sp.csr_array((A.data.astype(kind), A.indices, A.indptr), shape=A.shape)
    assert msf(B).edges.tolist() == msf(A).edges.tolist()
    assert msf(B).weights.dtype == (np.int64 if np.dtype(kind).kind in "iu" else np.float32)


def test_values_that_differ_by_direction() -> None:
    A = sp.csr_array(np.array([[0, 5.0, 2.0], [1.0, 0, 3.0], [7.0, 0, 9.0]]))
    found = msf(A)
    assert found.weights.tolist() == [1.0, 2.0]
    assert msf(A, maximum=True).weights.tolist() == [5.0, 7.0]
    counts = sp.csr_array(A.astype(np.int64))
    assert msf(counts).weights.tolist() == [1, 2]


def test_result() -> None:
    found = msf(disjoint([path(3), path(1), cycle(4)]))
    edges, weights = found
    assert edges.tolist() == [[0, 1], [1, 2], [4, 5], [4, 7], [5, 6]]
    assert (found.components, found.n, found.rounds > 0) == (3, 8, True)
    assert found.tocsr().shape == (8, 8)
    assert np.array_equal(found.tocsr().data, weights)
    empty = msf(sp.csr_array((0, 0)))
    assert (empty.edges.shape, empty.total, empty.components) == ((0, 2), 0.0, 0)
    assert empty.tocsr().shape == (0, 0)


def test_without_values_all_edges_weigh_one() -> None:
    A = grid(4, 5)
    found = msf((A.indptr, A.indices))
    assert found.total == 19.0
    assert_same(found, msf((A.indptr, A.indices), engine="reference"))


# Nothing runs for ever


def _path_with(weights: np.ndarray) -> sp.csr_array:
    n = weights.size + 1
    return from_edges(n, np.arange(n - 1), np.arange(1, n), weights)


@pytest.mark.parametrize("order", ["rising", "falling", "equal", "zigzag", "random"])
def test_rounds_are_bounded(order: str) -> None:
    """Chains as long as the graph, circles of equal weights, and random ones."""
    n = 1 << 13
    steps = np.arange(1.0, n)
    weights = {
        "rising": steps, "falling": steps[::-1].copy(), "equal": np.ones(n - 1),
        "zigzag": np.where(steps % 2 == 0, steps, -steps),
        "random": np.random.default_rng(3).random(n - 1),
    }[order]  # fmt: skip
    circle = cycle(n)
    circle.data[:] = 1.0
    for A in (_path_with(weights), circle, shuffled(_path_with(weights))):
        G = matchwood.graph(A)
        for method in METHODS:
            found = msf(G, method=method, threads=2)
            assert found.edges.shape[0] == n - 1
            limit = {"boruvka": 13, "awerbuch_shiloach": 1.71 * 13 + 2}.get(method, 16)
            assert found.rounds <= limit


def test_stars_that_would_not_end_are_an_error(monkeypatch) -> None:
    monkeypatch.setattr(cpu_stars, "round_limit", lambda n: 1)
    with pytest.raises(ValueError, match="taken for symmetric"):
        msf(path(500), method="awerbuch_shiloach")


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_worst_of_the_zoo_is_no_worse(method: str) -> None:
    """A path of a million vertices with rising weights takes no more than a random one, times 5."""
    import time

    n = 1_000_000
    weights = {
        "random": np.random.default_rng(1).random(n - 1),
        "rising": np.arange(1.0, n),
        "falling": np.arange(1.0, n)[::-1].copy(),
    }
    graphs = {name: matchwood.graph(_path_with(each)) for name, each in weights.items()}
    times = dict.fromkeys(graphs, np.inf)
    for rounds in range(20):  # the best of a few, of more where the machine is busy with others
        for name, G in graphs.items():
            start = time.perf_counter()
            msf(G, method=method)
            times[name] = min(times[name], time.perf_counter() - start)
        if rounds >= 2 and max(times["rising"], times["falling"]) < 5 * times["random"]:
            return
    pytest.fail(f"seconds: {times}")


# Arguments, input, threads


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="method must be one of 'auto', 'boruvka'"):
        msf(path(3), method="prim")
    with pytest.raises(ValueError, match="minimum_spanning_forest: A must be square"):
        msf(sp.csr_array((2, 3)))
    for bad in (np.nan, np.inf, -np.inf):
        A = path(4)
        A.data[2] = bad
        with pytest.raises(ValueError, match="weights must be finite"):
            msf(A)
    with pytest.raises(TypeError, match="weights must be real numbers"):
        msf(path(3).astype(np.complex128))
    with pytest.raises(ValueError, match="threads must be at least 1"):
        msf(path(3), threads=0)


def test_input_is_not_changed() -> None:
    for name in ("duplicates, unsorted", "rmat", "self loops"):
        A = ZOO[name]()
        before = A.indptr.copy(), A.indices.copy(), A.data.copy()
        for method in METHODS:
            msf(A, method=method)
        for array, copy in zip((A.indptr, A.indices, A.data), before, strict=True):
            assert np.array_equal(array, copy)


def test_calls_from_several_threads() -> None:
    G = matchwood.graph(weighted(rmat(9, 8), "float32"))
    right = msf(G)
    found = [None] * 6

    def call(i: int) -> None:
        found[i] = msf(G, method=METHODS[i % 4], threads=2)

    members = [threading.Thread(target=call, args=(i,)) for i in range(6)]
    for member in members:
        member.start()
    for member in members:
        member.join()
    for each in found:
        assert_same(each, right)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_ctrl_c(method: str) -> None:
    """A call that is interrupted ends at once, and the next one is as good as any."""
    import time

    G = matchwood.graph(weighted(matchwood.generators.rmat(19, engine="cpu"), "float32"))
    right = msf(G)
    raised: list[float] = []

    def interrupt(done: int, total: int) -> None:
        raised.append(time.perf_counter())
        raise KeyboardInterrupt

    def delay() -> float:
        with pytest.raises(KeyboardInterrupt), matchwood.on_progress(interrupt):
            for _ in range(1000):
                msf(G, method=method, threads=2)
        return time.perf_counter() - raised[-1]

    in_time(delay, 0.1)
    assert_same(msf(G, method=method), right)


# The order


@pytest.mark.parametrize("kind", KINDS)
def test_codes_ascend_with_weights(kind: str) -> None:
    A = weighted(rmat(6, 4), kind)
    G = matchwood.graph(A)
    for maximum in (False, True):
        costs = undirected_costs(G, "test", maximum)
        order = orders.make(costs, maximum)
        codes = orders.codes(costs.data, order)
        ranks = np.argsort(codes, kind="stable")
        weights = costs.data[ranks]
        falls = weights[1:] > weights[:-1] if maximum else weights[1:] < weights[:-1]
        assert not falls.any()
        equal = weights[1:] == weights[:-1]
        assert np.array_equal(equal, codes[ranks][1:] == codes[ranks][:-1])
        assert int((codes >> order.drop).max()) < 1 << (64 - int(order.places))
