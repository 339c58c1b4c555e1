"""The gate: the three views against dense definitions, nothing changed, nothing copied in vain."""

from __future__ import annotations

import copy
import pickle
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

import matchwood
from graphs import ZOO, dense_pattern, dense_values, grid, raw_csr, rmat
from matchwood.gate import holding
from matchwood.gate.graph import View, as_graph
from matchwood.primitives.assemble.check import check_canonical
from matchwood.primitives.symmetrize.check import check_symmetric
from strategies import graphs


def to_dense(view: View, n: int) -> np.ndarray:
    data = np.ones(view.nnz) if view.data is None else view.data
    return sp.csr_array((data, view.indices, view.indptr), shape=(n, n)).toarray()


def assert_views(A: sp.csr_array) -> None:
    n = A.shape[0]
    before = [array.copy() for array in (A.indptr, A.indices, A.data)]
    G = matchwood.graph(A)
    pattern, values = dense_pattern(A), dense_values(A)
    off = ~np.eye(n, dtype=bool)

    directed = G.directed_pattern()
    check_canonical(directed.indptr, directed.indices, n)
    assert np.array_equal(to_dense(directed, n) != 0, pattern)
    assert np.array_equal(to_dense(G.directed_weights(), n), values)

    undirected = G.undirected_pattern()
    check_symmetric(*undirected)
    assert np.array_equal(to_dense(undirected, n) != 0, (pattern | pattern.T) & off)

    symmetric = np.array_equal(values, values.T) and np.array_equal(pattern, pattern.T)
    magnitude = np.abs(values) if symmetric else np.abs(values) + np.abs(values.T)
    weights = G.undirected_weights()
    check_symmetric(*weights)
    assert np.allclose(to_dense(weights, n), magnitude * off, rtol=1e-6, atol=0)
    assert (weights.data > 0).all()

    assert G.has_symmetric_pattern == np.array_equal(pattern, pattern.T)
    assert G.has_symmetric_values == symmetric
    assert G.loops == np.diag(pattern).sum()
    assert np.array_equal(G.degrees, ((pattern | pattern.T) & off).sum(axis=1))
    for array, kept in zip((A.indptr, A.indices, A.data), before, strict=True):
        assert array.dtype == kept.dtype
        assert np.array_equal(array, kept)


def test_a_zero_without_a_mirror_makes_the_values_unsymmetric():
    """Values alone decide how weights are made: an entry without a mirror counts, be it zero."""
    indptr, indices = np.array([0, 1, 2, 3]), np.array([1, 2, 1])
    for zero in (0.0, -0.0):
        G = matchwood.graph((indptr, indices, np.array([zero, 1.0, 1.0])))
        assert not G.has_symmetric_values
        weights = G.undirected_weights()
        assert (weights.indices.tolist(), weights.data.tolist()) == ([2, 1], [2.0, 2.0])


@pytest.mark.parametrize("name", ZOO)
def test_views_of_the_zoo(name: str) -> None:
    assert_views(ZOO[name]())


@given(graphs())
def test_views_of_random_graphs(A: sp.csr_array) -> None:
    assert_views(A)


def views_of(G: matchwood.Graph) -> list[Any]:
    return [G.directed_pattern(), G.undirected_pattern(), G.undirected_weights()]


def test_a_graph_owns_its_memory() -> None:
    """One copy, which all views share, and which nobody can write to."""
    A = grid(20, 30, 2.0)
    G = matchwood.graph(A)
    for view in views_of(G):
        assert np.shares_memory(view.indptr, G.indptr)
        assert np.shares_memory(view.indices, G.indices)
    for array in (G.indptr, G.indices, G.data, G.undirected_weights().data, G.degrees):
        assert not any(np.shares_memory(array, own) for own in (A.indptr, A.indices, A.data))
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
    assert matchwood.graph(G) is matchwood.graph(G, copy=False) is G


def test_memory_that_was_made_here_is_not_copied() -> None:
    """Entries that were sorted, a conversion, another type: `copy` makes no difference."""
    A = grid(40, 50, 2.0).tocoo()
    pairs = np.stack(A.coords, axis=1)
    for kind in (A, (A.shape[0], pairs, A.data), A.tocsc()):
        matchwood.graph(kind)  # compiles
        peaks = []
        for copied in (True, False):
            tracemalloc.start()
            assert matchwood.graph(kind, copy=copied).owns_memory
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert peaks[0] < peaks[1] + 5000
    G = matchwood.graph(A, index_dtype=np.int64)
    assert np.shares_memory(matchwood.graph(G, weight=None).indices, G.indices)


def test_shared_memory_is_watched() -> None:
    A = grid(20, 30, 2.0)
    G = matchwood.graph(A, copy=False)
    for view in views_of(G):
        assert np.shares_memory(view.indptr, A.indptr)
        assert np.shares_memory(view.indices, A.indices)
    assert np.shares_memory(G.undirected_weights().data, A.data)
    level = matchwood.bfs(G, 0).level
    own = [matchwood.graph(G), copy.copy(G), pickle.loads(pickle.dumps(G))]
    for name in ("indptr", "indices", "data"):
        array = getattr(A, name)
        before, array[3] = array[3], array[3] + 1
        for use in (lambda: matchwood.bfs(G, 0), lambda: pickle.dumps(G), G.transposed_weights):
            with pytest.raises(ValueError, match=f"got other values of {name}; make the graph"):
                use()
        assert all((matchwood.bfs(H, 0).level == level).all() for H in own)
        array[3] = before
    assert (matchwood.bfs(G, 0).level == level).all()
    with pytest.raises(TypeError, match="graph: copy must be"):
        matchwood.graph(A, copy="no")


@pytest.mark.parametrize("size", [100, 300_000])  # its own checksum, and two sums
@pytest.mark.parametrize("kind", [np.int32, np.int64, np.float32, np.int16, bool])
def test_each_change_of_an_element_changes_the_checksum(size: int, kind: Any) -> None:
    rng = np.random.default_rng(1)
    array = rng.integers(0, 2, size + 1).astype(kind)[1:]  # at an odd place in memory
    watch = holding.Watch.of(data=array)
    assert not watch.changed()
    for at in (0, 1, size // 2, size - 1, *rng.integers(0, size, 20).tolist()):
        before, array[at] = array[at], array[at] + 1 if kind is not bool else not array[at]
        assert watch.changed() == ["data"]
        array[at] = before
    i, j = np.flatnonzero(array)[0], np.flatnonzero(array == 0)[-1]
    array[[i, j]] = array[[j, i]]
    assert watch.changed() == ["data"]


def test_int64_is_narrowed_and_kept_on_request() -> None:
    A = sp.csr_array((np.ones(2), np.array([1, 0]), np.array([0, 1, 2])), shape=(2, 2))
    assert A.indices.dtype == np.int64
    assert matchwood.graph(A).indices.dtype == np.int32
    G = matchwood.graph(A, index_dtype=np.int64, copy=False)
    assert G.indices.dtype == np.int64
    assert np.shares_memory(G.indices, A.indices)
    assert matchwood.graph(G, index_dtype=np.int32).indptr.dtype == np.int32
    assert matchwood.connected_components(G).labels.dtype == np.int64


def kinds_of_one_graph() -> dict[str, object]:
    A = rmat(5, 3, symmetric=False)
    A.sum_duplicates()
    coo = A.tocoo()
    edges = np.stack(coo.coords, axis=1)
    return {
        "csr_array": A,
        "csr_matrix": sp.csr_matrix(A),
        "csc_array": A.tocsc(),
        "coo_array": coo,
        "lil_array": A.tolil(),
        "dok_array": A.todok(),
        "bsr_array": A.tobsr((1, 1)),
        "dense": A.toarray(),
        "fortran": np.asfortranarray(A.toarray()),
        "arrays": (A.indptr, A.indices, A.data),
        "lists": (A.indptr.tolist(), A.indices.tolist(), A.data.tolist()),
        "small ints": (A.indptr.astype(np.uint16), A.indices.astype(np.uint8), A.data),
        "big endian": (A.indptr.astype(">i4"), A.indices.astype(">i8"), A.data.astype(">f8")),
        "strided": (np.repeat(A.indptr, 2)[::2], np.repeat(A.indices, 2)[::2], A.data),
        "edges": (A.shape[0], edges, A.data),
        "edge list": (A.shape[0], edges.tolist(), A.data.tolist()),
        "graph": matchwood.graph(A),
    }


@pytest.mark.parametrize("kind", kinds_of_one_graph())
def test_every_kind_of_input_gives_the_same_graph(kind: str) -> None:
    kinds = kinds_of_one_graph()
    expected = as_graph(kinds["csr_array"], "test").directed_weights()
    view = as_graph(kinds[kind], "test").directed_weights()
    for got, want in zip(view, expected, strict=True):
        assert np.array_equal(got, want)
        assert got.dtype == want.dtype


def test_dlpack_is_read_in_place() -> None:
    class Foreign:
        def __init__(self, array: np.ndarray) -> None:
            self.array = array

        def __dlpack__(self, **options: object) -> object:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.array.__dlpack_device__()

    A = grid(4, 5)
    G = matchwood.graph((Foreign(A.indptr), Foreign(A.indices)), copy=False)
    assert np.shares_memory(G.indices, A.indices)


def test_networkx_graphs() -> None:
    nx = pytest.importorskip("networkx")
    H = nx.DiGraph([("b", "a"), ("a", "c")])
    G = matchwood.graph(H)  # numbered in the graph's order: b, a, c
    assert to_dense(G.directed_pattern(), 3).tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    M = nx.MultiGraph()
    M.add_edge(0, 1, weight=2)
    M.add_edge(0, 1, weight=3)
    M.add_edge(1, 1)
    assert to_dense(matchwood.graph(M).directed_weights(), 2).tolist() == [[0, 5], [5, 1]]
    assert matchwood.graph(nx.Graph()).n == 0


def test_values_are_not_read_for_patterns() -> None:
    A = sp.csr_array(np.array([[0, np.nan], [np.inf, 0]]))
    assert matchwood.connected_components(A).count == 1
    assert matchwood.connected_components(A.astype(complex)).count == 1


def test_overallocated_arrays() -> None:
    A = grid(3, 3)
    A.indices = np.r_[A.indices, 99].astype(np.int32)
    A.data = np.r_[A.data, np.nan]
    assert matchwood.graph(A).nnz == 24
    assert_views(grid(3, 3))
    assert matchwood.graph(A).undirected_weights().nnz == 24


def test_views_from_many_threads_are_made_once() -> None:
    G = matchwood.graph(rmat(9, 8, symmetric=False))
    found: list[View] = []
    workers = [
        threading.Thread(target=lambda: found.append(G.undirected_weights())) for _ in range(8)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len({id(view) for view in found}) == 1


def test_weight_range_and_repr() -> None:
    G = matchwood.graph(raw_csr(3, [0, 1, 1, 2], [1, 0, 2, 1], [1.0, 1.0, -4.0, -4.0]))
    assert G.weight_range == (1.0, 4.0)
    assert matchwood.graph(sp.csr_array((2, 2))).weight_range == (0.0, 0.0)
    assert repr(G) == "<Graph: 3 vertices, 4 entries, float64, cpu>"


BAD = [
    (sp.csr_array((2, 3)), ValueError, r"graph: A must be square, got shape \(2, 3\)"),
    (sp.coo_array(np.ones(3)), ValueError, r"A must have 2 dimensions, got shape \(3,\)"),
    (np.ones((2, 2, 2)), ValueError, r"A must have 2 dimensions, got shape \(2, 2, 2\)"),
    (np.array([["a"]]), TypeError, "A must hold numbers"),
    ("graph.mtx", TypeError, "A must be a sparse matrix .* got str"),
    (None, TypeError, "got NoneType"),
    (3, TypeError, "got int"),
    ((i for i in range(3)), TypeError, "got generator"),
    ([[0, 1], [1, 0]], TypeError, "got list"),
    (([0, 1],), TypeError, "2 or 3 items, got 1"),
    (([0.0, 1.0], [0]), TypeError, "indptr must hold integers, got dtype float64"),
    (([0, 1], [0.5]), TypeError, "indices must hold integers, got dtype float64"),
    (([0, 1], ["a"]), TypeError, "indices must be an array of numbers"),
    (([0, 1], [[0]]), ValueError, "indices must be one-dimensional"),
    ((np.empty(0, int), np.empty(0, int)), ValueError, "at least one element"),
    (([1, 1], [0]), ValueError, "indptr must start at 0, got 1"),
    (([0, 2, 1], [0, 1]), ValueError, "indptr must not decrease, got 2 and then 1 at row 1"),
    (([0, 1, 3], [0, 1]), ValueError, "indptr must end at the number of indices, 2, got 3"),
    (([0, 1, 1], [0, 1]), ValueError, "indptr must end at the number of indices, 2, got 1"),
    (([0, 1, 2], [0, 2]), ValueError, r"indices must be within 0\.\.1, got 2 at entry 1"),
    (([0, 1, 2], [0, -1]), ValueError, "got -1 at entry 1"),
    (([0, 1], [1 << 32]), ValueError, f"got {1 << 32} at entry 0"),
    ((np.array([0, 1]), np.array([1 << 63], np.uint64)), ValueError, "more than any index"),
    (([0, 1], [0], [1.0, 2.0]), ValueError, "data must have one value for each index"),
    ((-1, []), ValueError, "must not be negative, got -1"),
    ((3, [0, 1, 2]), ValueError, r"edges must have shape \(m, 2\), got \(3,\)"),
    ((3, [[0, 3]]), ValueError, r"edges must join vertices 0\.\.2, got \(0, 3\) as edge 0"),
    ((3, [[0.5, 1.0]]), TypeError, "edges must hold integers"),
    ((3, [[0, 1]], [1.0, 2.0]), ValueError, "weights must have one value for each of the 1 edges"),
    ((3, "edges"), TypeError, "edges must be an array of numbers, got str"),
]


@pytest.mark.parametrize(("A", "error", "message"), BAD)
def test_bad_input_gets_a_named_error(A: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        matchwood.graph(A)


BAD_WEIGHTS = [
    (np.array([[0, np.nan], [1, 0]]), ValueError, "must be finite, got nan at row 0, column 1"),
    (np.array([[0, 1], [-np.inf, 0]]), ValueError, "must be finite, got -inf at row 1, column 0"),
    (np.array([[0, (1 << 53) + 1], [1, 0]]), ValueError, r"at most 2\*\*53 .* 9007199254740993"),
    (np.array([[0, -(1 << 60)], [1, 0]]), ValueError, "exact in float64"),
    (np.array([[0, 1j], [1, 0]]), TypeError, "weights must be real numbers, got dtype complex128"),
    (np.array([[0, 1], [1, 0]], np.longdouble), TypeError, "weights must be real numbers"),
]


@pytest.mark.parametrize(("A", "error", "message"), BAD_WEIGHTS)
def test_bad_weights_get_a_named_error(A: object, error: type[Exception], message: str) -> None:
    if isinstance(A, np.ndarray) and A.dtype == np.longdouble and A.dtype.itemsize == 8:
        pytest.skip("long double is double here")
    with pytest.raises(error, match=message):
        matchwood.graph(A).undirected_weights("graph")


def test_negative_weights_where_not_allowed() -> None:
    G = matchwood.graph(np.array([[0.0, -2.5], [1.0, 0.0]]))
    with pytest.raises(ValueError, match=r"weights must not be negative, got -2\.5"):
        G.undirected_weights("caller", negative="error")
    assert G.undirected_weights().data.tolist() == [3.5, 3.5]


def test_values_for_the_entries_are_checked() -> None:
    """`canonical` hands arrays to a kernel: a wrong one must not get there."""
    G = matchwood.graph(raw_csr(2, [0, 0, 0], [1, 0, 1], [1.0, 2.0, 4.0]))
    assert to_dense(G.canonical(np.array([1.0, 2.0, 4.0])), 2).tolist() == [[2, 5], [0, 0]]
    assert to_dense(G.canonical(np.array([1, 2, 4]), "first"), 2).tolist() == [[2, 1], [0, 0]]
    assert G.canonical([1.0, 2.0, 4.0]).data.tolist() == [2.0, 5.0]
    assert G.canonical(np.arange(6.0)[::2], "max").data.tolist() == [2.0, 4.0]
    for data, error in (
        (np.ones(2), ValueError), (np.ones(4), ValueError), (np.ones((3, 1)), ValueError),
        (np.ones(3, complex), TypeError), (np.ones(3, ">f8"), TypeError),
        (np.array([None] * 3), TypeError), ("abc", ValueError), (1.0, ValueError),
    ):  # fmt: skip
        with pytest.raises(error, match=r"Graph\.canonical: data must"):
            G.canonical(data)
    for rule in ("keep", "most", None, 3):
        with pytest.raises(ValueError, match=r"Graph\.canonical: rule must be one of"):
            G.canonical(None, rule)
    with pytest.raises(ValueError, match=r"Graph\.on: engine must be one of"):
        G.on("gup")
    with pytest.raises(ValueError, match="graph: negative must be one of"):
        G.undirected_weights(negative="ignore")


def test_index_dtype_must_be_an_index_type() -> None:
    with pytest.raises(TypeError, match="index_dtype must be int32 or int64, got int16"):
        matchwood.graph(grid(2, 2), index_dtype=np.int16)


def test_largest_exact_integers_pass() -> None:
    weights = matchwood.graph((2, [[0, 1]], [1 << 53])).undirected_weights()
    assert weights.data.tolist() == [2.0**53] * 2


def test_gpu_input_without_a_gpu() -> None:
    from matchwood import engines

    if engines.gpu_available():
        pytest.skip("there is a GPU")

    class OnGpu:
        __cuda_array_interface__ = {
            "shape": (2, 2),
            "typestr": "<f8",
            "data": (0, True),
            "version": 3,
        }

    with pytest.raises(matchwood.EngineUnavailable, match=r"GPU|CuPy"):
        matchwood.graph(OnGpu())
    with pytest.raises(matchwood.EngineUnavailable, match=r"GPU|CuPy"):
        matchwood.bfs(grid(3, 3), 0, engine="gpu")
    with pytest.raises(ValueError, match="engine must be None or one of"):
        matchwood.bfs(grid(3, 3), 0, engine="tpu")


def test_loops_are_counted_with_the_values(monkeypatch) -> None:
    """One pass over symmetric values tells all that the undirected weights need."""
    rng = np.random.default_rng(2)
    upper = sp.triu(sp.random_array((90, 90), density=0.1, rng=rng), 1)
    for diagonal in (np.zeros(90), np.arange(90) % 3 * 1.0):
        A = sp.csr_array(upper + upper.T + sp.diags_array(diagonal))
        A.eliminate_zeros()
        wanted = int((A.diagonal() != 0).sum())
        for threads in ("1", "3"):
            monkeypatch.setenv("MATCHWOOD_NUM_THREADS", threads)
            G, H = matchwood.graph(A), matchwood.graph(A)
            view = G.undirected_weights()
            assert not G.has_kept("symmetry")
            assert G.loops == H.loops == H.symmetry().loops == wanted
            assert view.nnz == A.nnz - wanted
        B = A.copy()
        B.data[3] = np.inf
        with pytest.raises(ValueError, match="finite"):
            matchwood.graph(B).undirected_weights()


# What a Graph keeps for walks along arcs


@pytest.mark.parametrize("name", ZOO)
def test_transposed_weights(name):
    A = ZOO[name]()
    G = matchwood.graph(A)
    view = G.transposed_weights()
    n = A.shape[0]
    B = sp.csr_array((view.data, view.indices, view.indptr), shape=(n, n))
    assert np.allclose(B.toarray(), dense_values(A).T)
    assert B.has_sorted_indices
    assert G.transposed_weights() is view
    if G.has_symmetric_values:
        assert view.data is G.directed_weights().data


@pytest.mark.parametrize("name", ZOO)
def test_diagonal(name):
    A = ZOO[name]()
    found = matchwood.graph(A).diagonal()
    assert np.allclose(found, np.diag(dense_values(A)))


def test_values_that_are_not_finite_are_refused():
    A = sp.csr_array(np.array([[0.0, np.nan], [1.0, 0.0]]))
    with pytest.raises(ValueError, match="asked"):
        matchwood.graph(A).transposed_weights("asked")
