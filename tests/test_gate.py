"""The gate beyond the views: duplicates, weights nobody reads, pickles, forks, extremes."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from graphs import ZOO, grid, rmat
from matchwood.primitives.inspect import trusted_values_and_loops

LIST = (3, [[0, 1], [0, 1], [1, 2], [0, 2]], [1.0, 5.0, 4.0, 3.0])


def dense(G, view="directed_weights"):
    v = getattr(G, view)()
    return sp.csr_array((v.data, v.indices, v.indptr), shape=(G.n, G.n)).toarray()


# ---- duplicates and parallel edges ----


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.int8, np.uint64])
def test_of_parallel_edges_the_problem_takes_one(kind, engine) -> None:
    n, edges, weights = LIST
    A = (n, edges, np.array(weights, kind))
    least = matchwood.minimum_spanning_forest(A, engine=engine)
    assert (least.edges.tolist(), least.total) == ([[0, 1], [0, 2]], 4)
    most = matchwood.minimum_spanning_forest(A, maximum=True, engine=engine)
    assert (most.edges.tolist(), most.total) == ([[0, 1], [1, 2]], 9)
    matchwood.check.check_spanning_forest(A, least)
    matched = matchwood.weighted_matching(A, engine=engine)
    assert matched.weight == 5.0


@pytest.mark.parametrize(
    ("rule", "least", "matrix"),
    [(None, 4, 6), ("sum", 7, 6), ("min", 4, 1), ("max", 7, 5), ("first", 4, 1)],
)
@pytest.mark.parametrize("weights", [LIST[2], [1, 5, 4, 3]])
def test_rules_for_duplicates(rule, least, matrix, weights, engine) -> None:
    G = matchwood.graph((*LIST[:2], weights), duplicates=rule)
    assert matchwood.minimum_spanning_forest(G, engine=engine).total == least
    assert dense(G)[0, 1] == matrix
    assert G.nnz == 4


def test_rules_for_matrices() -> None:
    n, edges, weights = LIST
    rows, cols = np.array(edges).T
    coo = sp.coo_array((weights, (rows, cols)), shape=(n, n))
    csr = (np.array([0, 3, 4, 4]), np.array([1, 1, 2, 2]), np.array([1.0, 5.0, 3.0, 4.0]))
    for A in (coo, csr):
        assert dense(matchwood.graph(A))[0, 1] == 6
        assert dense(matchwood.graph(A, duplicates="min"))[0, 1] == 1
        assert dense(matchwood.graph(A, duplicates="max"))[0, 1] == 5
        assert dense(matchwood.graph(A, duplicates="first"))[0, 1] == 1
        assert matchwood.minimum_spanning_forest(A).total == 7
        with pytest.raises(ValueError, match=r"given once .* got \(0, 1\) more than once"):
            matchwood.graph(A, duplicates="error")
    assert matchwood.graph(grid(3, 3), duplicates="error").n == 9
    with pytest.raises(ValueError, match="graph: duplicates must be one of None, 'sum'"):
        matchwood.graph(coo, duplicates="mean")


def test_both_directions_of_an_edge() -> None:
    """Two directions are parallel edges of a list, and two entries of a matrix."""
    edges, weights = [[0, 1], [1, 0], [1, 2]], [2.0, 2.0, 1.0]
    G = matchwood.graph((3, edges, weights))
    assert dense(G, "undirected_weights").tolist() == [[0, 2, 0], [2, 0, 1], [0, 1, 0]]
    assert G.weight_range == (1.0, 2.0)
    for rule, weight in (("sum", 4.0), ("min", 2.0), ("max", 2.0), ("first", 2.0)):
        H = matchwood.graph((3, edges, weights), duplicates=rule)
        assert dense(H, "undirected_weights")[0, 1] == weight
    A = sp.csr_array(dense(G))
    assert dense(matchwood.graph(A), "undirected_weights")[0, 1] == 4.0


def test_a_rule_can_be_given_to_a_graph() -> None:
    G = matchwood.graph(LIST)
    assert matchwood.graph(G) is G
    assert matchwood.graph(G, duplicates="max").data.tolist() == [5.0, 3.0, 4.0]
    assert matchwood.graph(G, weight=None).data is None
    with pytest.raises(TypeError, match="attribute of a NetworkX graph, got 'cost'"):
        matchwood.graph(G, weight="cost")


def test_directed_factors_take_the_heaviest_of_parallel_arcs() -> None:
    A = (3, [[0, 1], [0, 1], [0, 2]], [2.0, 2.0, 3.0])
    found = matchwood.degree_factor(A, 1, directed=True)
    heaviest = matchwood.degree_factor((3, [[0, 1], [0, 2]], [2.0, 3.0]), 1, directed=True)
    assert found.weight == heaviest.weight


# ---- sums that overflow ----


def test_sums_that_overflow_are_errors() -> None:
    big = np.finfo(np.float64).max
    with pytest.raises(ValueError, match="duplicates must have a finite sum"):
        matchwood.graph((np.array([0, 2, 2]), np.array([1, 1]), np.array([big, big]))).data
    A = np.array([[0, big], [big / 2, 0]])
    with pytest.raises(
        ValueError, match=r"\|a_ij\| \+ \|a_ji\| must be finite, got overflow at row 0"
    ):
        matchwood.graph(A).undirected_weights()
    assert (
        matchwood.graph((2, [[0, 1], [1, 0], [0, 1]], [big, big / 2, big])).weight_range[1] == big
    )
    single = np.finfo(np.float32).max
    with pytest.raises(ValueError, match="must be finite"):
        matchwood.graph(np.array([[0, single], [single / 2, 0]], np.float32)).undirected_weights()
    rows = (np.array([0, 2, 2]), np.array([1, 1]))
    with pytest.raises(ValueError, match="sums of integer duplicates must be exact"):
        matchwood.graph((*rows, np.array([1 << 53, 3]))).data
    with pytest.raises(ValueError, match="sums of integer duplicates must fit int64"):
        matchwood.minimum_spanning_forest((*rows, np.array([1 << 62, 1 << 62])))
    with pytest.raises(ValueError, match="sums of integer duplicates must fit int64"):
        matchwood.minimum_spanning_forest((*rows, np.array([-(1 << 62), -(1 << 62) - 1])))
    found = matchwood.minimum_spanning_forest((*rows, np.array([1 << 62, (1 << 62) - 1])))
    assert found.total == (1 << 63) - 1


def test_nan_among_parallel_edges_is_found() -> None:
    for weights in ([1.0, np.nan], [np.nan, 1.0], [np.inf, 1.0]):
        A = (2, [[0, 1], [0, 1]], weights)
        for call in (matchwood.minimum_spanning_forest, matchwood.weighted_matching):
            with pytest.raises(ValueError, match="weights must be finite"):
                call(A)


# ---- weights that nobody reads ----


PATTERN_ONLY = [
    matchwood.connected_components,
    matchwood.strongly_connected_components,
    matchwood.maximal_independent_set,
    matchwood.maximal_matching,
    matchwood.reverse_cuthill_mckee,
    lambda A: matchwood.bfs(A, 0),
]


def strange_graphs():
    nx = pytest.importorskip("networkx")
    for value in ("text", None, 1 << 60, 1 << 80, object(), 1j, [1, 2], float("nan")):
        H = nx.MultiGraph([(0, 1, {"weight": value}), (1, 2, {"cost": 7}), (0, 1)])
        yield H
    edges = [[0, 1], [1, 2]]
    for weights in (["a", "b"], [None, 2], [1j, 1], np.array(["x", "y"]), [1 << 80, 1]):
        yield (3, edges, weights)
    A = sp.csr_array((np.array([1j, 2]), np.array([1, 2]), np.array([0, 1, 2, 2])), shape=(3, 3))
    yield from (A, A.tocoo(), A.tocsc(), A.toarray(), A.astype(np.clongdouble))
    yield (A.indptr, A.indices, np.array(["a", None], object))


def test_patterns_do_not_read_weights() -> None:
    for A in strange_graphs():
        for function in PATTERN_ONLY:
            function(A)
        assert "Graph" in repr(matchwood.graph(A))
        with pytest.raises((TypeError, ValueError), match=r"weighted_matching: .*weights must be"):
            matchwood.weighted_matching(A)
        assert matchwood.weighted_matching(matchwood.graph(A, weight=None)).weight == 1


def test_the_name_of_the_weight() -> None:
    nx = pytest.importorskip("networkx")
    H = nx.Graph()
    H.add_edge("a", "b", cost=3, weight="no")
    H.add_edge("b", "c", cost=5)
    H.add_edge("a", "c")
    assert matchwood.minimum_spanning_forest(matchwood.graph(H, weight="cost")).total == 4
    assert matchwood.minimum_spanning_forest(matchwood.graph(H, weight=None)).total == 2
    with pytest.raises(TypeError, match="weights must be real numbers, got str at 0"):
        matchwood.minimum_spanning_forest(H)
    with pytest.raises(TypeError, match="weight must name an edge attribute"):
        matchwood.graph(H, weight=3)
    with pytest.raises(TypeError, match="weight must be None, or an attribute of a NetworkX graph"):
        matchwood.graph(grid(2, 2), weight="cost")


def test_integers_are_never_rounded() -> None:
    nx = pytest.importorskip("networkx")
    H = nx.Graph([(0, 1, {"weight": (1 << 60) + 1}), (1, 2, {"weight": 1 << 60})])
    assert matchwood.minimum_spanning_forest(H).total == (1 << 61) + 1
    H.add_edge(2, 3, weight=0.5)  # a float turns all others into floats
    with pytest.raises(
        ValueError, match=r"exact in float64, at most 2\*\*53 .* 1152921504606846977"
    ):
        matchwood.minimum_spanning_forest(H)
    for weights in ([1 << 63, -1], [(1 << 53) + 1, 0.5], [1 << 70, 1]):
        with pytest.raises((TypeError, ValueError), match="weights must"):
            matchwood.minimum_spanning_forest((3, [[0, 1], [1, 2]], weights))


# ---- extremes ----


def test_extreme_weights_of_forests(engine) -> None:
    big = np.finfo(np.float64).max
    A = (4, [[0, 1], [1, 2], [2, 3]], [big, big, -big])
    found = matchwood.minimum_spanning_forest(A, engine=engine)
    assert found.total == big
    matchwood.check.check_spanning_forest(A, found)
    with pytest.raises(ValueError, match="sum of the weights must be finite in float64"):
        matchwood.minimum_spanning_forest((3, [[0, 1], [1, 2]], [big, big]), engine=engine)
    tiny = np.array([5e-324, 1e-323, -0.0, 0.0])
    B = (4, [[0, 1], [1, 2], [0, 2], [2, 3]], tiny)
    found = matchwood.minimum_spanning_forest(B, engine=engine)
    assert (found.edges.tolist(), found.total) == ([[0, 1], [0, 2], [2, 3]], 5e-324)
    matchwood.check.check_spanning_forest(B, found)
    with pytest.raises(ValueError, match=f"must fit int64, got {1 << 63}"):
        matchwood.minimum_spanning_forest(
            (2, [[0, 1]], np.array([1 << 63], np.uint64)), engine=engine
        )


BAD = [
    (
        (True, [[0, 0]]),
        TypeError,
        "must begin with the number of vertices or with indptr, got True",
    ),
    ((3.0, [[0, 1]]), TypeError, "got 3.0"),
    (("3", [[0, 1]]), TypeError, "got '3'"),
    ((np.True_, [[0, 0]]), TypeError, "must begin with the number of vertices"),
    ((3, [[0.0, 1.0]]), TypeError, "edges must hold integers, got dtype float64"),
    ((3, np.array([[True, False]])), TypeError, "edges must hold integers, got dtype bool"),
    ((3, [[0, 1], [2]]), TypeError, "edges must be an array of numbers"),
    ((3, [[0, 1 << 63]]), TypeError, "edges must hold integers, got dtype float64"),
    ((3, [[0, 1 << 80]]), TypeError, "edges must be an array of numbers"),
    ((1 << 80, []), ValueError, r"at most 2\*\*62"),
    ((3, [[0, 1]], [[1.0]]), TypeError, "weights must be one-dimensional"),
    ((3, [[0, 1]], 5), TypeError, "weights must be an array of numbers, got int"),
    (([0, 1], [0], "x"), TypeError, "data must be an array of numbers, got str"),
]


@pytest.mark.parametrize(("A", "error", "message"), BAD)
def test_bad_lists_get_a_named_error(A, error, message) -> None:
    with pytest.raises(error, match=message) as raised:
        matchwood.graph(A)
    assert str(raised.value).startswith("graph: ")


# ---- pickles, copies, forks ----


@pytest.mark.parametrize("name", ["directed", "duplicates, unsorted", "empty"])
def test_graphs_can_be_pickled_and_copied(name) -> None:
    A = ZOO[name]() if name in ZOO else sp.csr_array((0, 0))
    G = matchwood.graph(A)
    G.undirected_pattern()
    for H in (pickle.loads(pickle.dumps(G)), copy.copy(G), copy.deepcopy(G)):
        assert H is not G
        assert repr(H) == repr(G)
        for ours, theirs in zip(H.undirected_weights(), G.undirected_weights(), strict=True):
            assert np.array_equal(ours, theirs)
    nx = pytest.importorskip("networkx")
    H = pickle.loads(pickle.dumps(matchwood.graph(nx.path_graph(4))))
    assert matchwood.minimum_spanning_forest(H).total == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_can_use_a_graph_that_another_thread_prepares() -> None:
    G = matchwood.graph(rmat(6, 3, symmetric=False))
    expected = matchwood.graph(rmat(6, 3, symmetric=False)).undirected_pattern().nnz
    inside, go_on = threading.Event(), threading.Event()

    def make() -> int:
        inside.set()
        go_on.wait(200)
        return 1

    worker = threading.Thread(target=lambda: G.keep("slow", make))
    worker.start()
    inside.wait(60)
    child = os.fork()
    if child == 0:
        os._exit(0 if G.undirected_pattern().nnz == expected else 1)
    try:
        end = time.monotonic() + 120
        done, status = os.waitpid(child, os.WNOHANG)
        while not done and time.monotonic() < end:
            time.sleep(0.02)
            done, status = os.waitpid(child, os.WNOHANG)
        if not done:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        assert done == child
        assert os.waitstatus_to_exitcode(status) == 0
    finally:
        go_on.set()
        worker.join()


@pytest.mark.parametrize("value", [1.0, -2.5, 0.0, -0.0, 1e-40])
def test_facts_of_entries_that_are_all_the_same(value, zoo_graph):
    """They are taken from the pattern, and must be those that the values would give."""
    A = zoo_graph.tocsr().copy()
    A.sum_duplicates()
    for kind in (np.float32, np.float64):
        A.data = np.full(A.nnz, value, kind)
        G = matchwood.graph(A)
        view = G.directed_weights()
        facts, loops = trusted_values_and_loops(*view)
        assert G.inspected(view) == facts
        assert G.loops == loops
