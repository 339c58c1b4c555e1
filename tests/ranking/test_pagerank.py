"""PageRank: near the definition, the same bits at any number of threads, NetworkX's rules."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

import matchwood
from graphs import ZOO, grid, random_graph, rmat, shuffled, star
from matchwood.check import check_pagerank
from matchwood.ranking import pagerank
from matchwood.ranking.cpu import OWN, plan_of
from strategies import graphs
from support import REST, some


def kinds(n: int) -> list[dict]:
    rng = np.random.default_rng(n)
    return [
        {},
        {"personalization": rng.random(n) + 0.01},
        {"dangling": rng.random(n) + 0.1, "start": rng.random(n) + 0.01},
        {"tol": 0, "max_iterations": 7, "damping": 0.5},
    ]


def checked(A, found, weighted, kind):
    check_pagerank(A, found, weighted=weighted, replay=True, **kind)


@pytest.mark.parametrize("rest", REST)
@pytest.mark.parametrize(("place", "name"), some(enumerate(ZOO)))
def test_near_the_reference_and_the_same_at_any_number_of_threads(
    place: int, name: str, rest: bool
) -> None:
    """Each graph has half of the kinds with weights, and the other half without."""
    A = ZOO[name]()
    for weighted in (False, True):
        B = abs(A) if weighted else A
        for kind in kinds(A.shape[0])[(place + weighted + rest) % 2 :: 2]:
            expected = pagerank(B, engine="reference", weighted=weighted, **kind)
            found = pagerank(B, threads=1, weighted=weighted, **kind)
            assert np.abs(found.scores - expected.scores).max(initial=0) < 1e-13
            assert found.iterations == expected.iterations
            assert found.converged == expected.converged
            checked(B, found, weighted, kind)
            for threads in (2, 3, 7):
                other = pagerank(B, threads=threads, weighted=weighted, **kind)
                assert np.array_equal(other.scores, found.scores)
                assert other.error == found.error


@pytest.mark.gpu
def test_the_gpu_is_near(zoo_graph: sp.csr_array) -> None:
    for weighted in (False, True):
        B = abs(zoo_graph) if weighted else zoo_graph
        for kind in kinds(B.shape[0]):
            found = pagerank(B, engine="gpu", weighted=weighted, **kind)
            expected = pagerank(B, weighted=weighted, **kind)
            assert np.abs(found.scores - expected.scores).max(initial=0) < 1e-12
            assert found.iterations == expected.iterations


@pytest.mark.gpu
def test_the_gpu_is_near_on_larger_graphs() -> None:
    for A in (grid(90, 100), rmat(13, 8), rmat(12, 8, symmetric=False), star(70_000)):
        for dtype, near in ((np.float64, 1e-12), (np.float32, 1e-5)):
            found = pagerank(A, engine="gpu", dtype=dtype, tol=0, max_iterations=20)
            expected = pagerank(A, dtype=dtype, tol=0, max_iterations=20)
            assert np.abs(found.scores - expected.scores).sum() < near
            again = pagerank(A, engine="gpu", dtype=dtype, tol=0, max_iterations=20)
            assert np.array_equal(again.scores, found.scores)


@pytest.mark.gpu
def test_iterations_and_change_on_the_gpu() -> None:
    """Few iterations, and ends before, at and after those where the host looks."""
    for A in (grid(30, 40), rmat(10, 8, symmetric=False), star(3000)):
        for most in (1, 2, 3, 7, 8, 9, 30):
            for tol in (0, 1e-9, 1e-6, 1e-4, 10):
                found = pagerank(A, engine="gpu", tol=tol, max_iterations=most)
                expected = pagerank(A, tol=tol, max_iterations=most)
                assert found.iterations == expected.iterations, (most, tol)
                assert found.converged == expected.converged, (most, tol)
                assert found.error == pytest.approx(expected.error, abs=1e-12), (most, tol)
                assert np.abs(found.scores - expected.scores).max() < 1e-12, (most, tol)


@pytest.mark.gpu
def test_renumbered_vertices_on_the_gpu() -> None:
    """Most arcs come from few vertices, which are scattered; arcs have a direction."""
    cupy = pytest.importorskip("cupy")
    A = shuffled(rmat(17, 12, symmetric=False))
    G = matchwood.graph((cupy.asarray(A.indptr), cupy.asarray(A.indices)))
    jump = np.random.default_rng(1).random(A.shape[0])
    for options in ({}, {"personalization": jump, "dangling": jump[::-1], "start": 1 + jump}):
        found = pagerank(G, tol=0, max_iterations=20, **options)
        expected = pagerank(A, tol=0, max_iterations=20, **options)
        assert np.abs(found.scores.get() - expected.scores).sum() < 1e-12
    assert G.keep("surfer pieces, pattern", lambda: None).renumbered is not None


@given(graphs(weights="positive"))
def test_random_graphs(A: sp.csr_array) -> None:
    for weighted in (False, True):
        for dtype in (np.float32, np.float64):
            found = pagerank(A, weighted=weighted, dtype=dtype, threads=2)
            assert found.scores.dtype == dtype
            check_pagerank(A, found, weighted=weighted)


def test_windows_and_tasks() -> None:
    """Several windows, and rows that are longer than a task."""
    for A in (star(70_000), rmat(13, 12), random_graph(20_000, 90_000, symmetric=False)):
        options = {"dtype": np.float32, "tol": 1e-4}
        one = pagerank(A, threads=1, **options)
        for threads in (2, 3, 7):
            assert np.array_equal(pagerank(A, threads=threads, **options).scores, one.scores)
        check_pagerank(A, one, tol=1e-4)


def far_graphs() -> dict[str, tuple[sp.csr_array, set[str]]]:
    """Graphs of 150,000 vertices by how the CPU reads their entries, and the kinds of windows."""
    n = 150_000
    v = np.arange(n)
    rng = np.random.default_rng(0)
    ring = sp.csr_array((np.ones(2 * n), (np.tile(v, 2), np.append(v + 1, v + 2) % n)), (n, n))
    jump = sp.csr_array((np.ones(n), (v, (v + n // 2) % n)), (n, n))
    hub = sp.csr_array((np.ones(n), (np.full(n, 7), v)), (n, n))
    some = sp.csr_array((np.ones(n), rng.integers(0, n, (2, n))), (n, n))
    uneven = np.clip(v + rng.integers(-9, 9, n), 0, n - 1)
    close = sp.csr_array((np.ones(n), (v, uneven)), (n, n))
    less = sp.csr_array((np.ones(n // 15), (np.full(n // 15, 7), v[::15])), (n, n))
    few = sp.csr_array((np.ones(n // 9), rng.integers(0, n, (2, n // 9))), (n, n))
    return {
        "all near but where the ring closes": (ring, {"near", "own"}),
        "even rows, far neighbours": (sp.csr_array(ring + jump), {"own"}),
        "uneven rows, far neighbours": (sp.csr_array(some + jump), {"far"}),
        "uneven rows, some far": (sp.csr_array(close + few), {"mixed"}),
        "a row of all vertices": (sp.csr_array(ring + hub.T), {"near", "own"}),
        "a hub among uneven rows": (sp.csr_array(close + less.T), {"near", "mixed"}),
    }


def window_kinds(plan) -> set[str]:
    found = set()
    for w, base in enumerate(plan.bases):
        if base == OWN:
            found.add("own")
        elif plan.cuts[w] == plan.starts[w + 1]:
            found.add("near")
        else:
            found.add("far" if plan.cuts[w] == plan.starts[w] else "mixed")
    return found


@pytest.mark.parametrize("name", far_graphs())
def test_entries_near_and_far(name: str) -> None:
    A, expected = far_graphs()[name]
    A.data[:] = 1
    n, G = A.shape[0], matchwood.graph(A)
    found = pagerank(G, tol=0, max_iterations=5, threads=1)
    incoming = A.T.tocsr()
    plan = plan_of(incoming.indptr, incoming.indices, None, 2)
    assert window_kinds(plan) == expected
    degree = A.sum(axis=1)
    x = np.full(n, 1 / n)
    for _ in range(5):
        lost = x[degree == 0].sum()
        x = 0.85 * (incoming @ (x / np.maximum(degree, 1)) + lost / n) + 0.15 / n
    np.testing.assert_allclose(found.scores, x, rtol=1e-11)  # SciPy adds up 150,000 one by one
    for options in ({"threads": 2}, {"threads": 3}, {"threads": 2, "weighted": True}):
        again = pagerank(G, tol=0, max_iterations=5, **options)
        if "weighted" in options:
            np.testing.assert_allclose(again.scores, x, rtol=1e-11)
        else:
            assert np.array_equal(again.scores, found.scores)


def test_networkx_gives_the_same() -> None:
    nx = pytest.importorskip("networkx")
    for seed in range(5):
        H = nx.gnp_random_graph(40, 0.05, directed=True, seed=seed)
        A = nx.to_scipy_sparse_array(H, weight=None, dtype=float)
        theirs = nx.pagerank(H, weight=None)
        found = pagerank(A, tol=40 * 1e-6)  # its rule
        assert np.abs(found.scores - [theirs[v] for v in range(40)]).max() < 1e-14


def test_weights_count() -> None:
    A = sp.csr_array(np.array([[0, 3.0, 1.0], [1.0, 0, 0], [1.0, 0, 0]]))
    plain, weighted = pagerank(A).scores, pagerank(A, weighted=True).scores
    assert abs(plain[1] - plain[2]) < 1e-9
    assert weighted[1] > 2 * weighted[2]


def test_weights_of_any_size() -> None:
    """Sums of rows whose inverse is no number of the type of the scores; rows of different size."""
    A = random_graph(60, 240)
    A.data = np.random.default_rng(4).uniform(1, 9, A.nnz)
    A.data[A.indptr[7] : A.indptr[8]] = 0
    rows = np.repeat(np.arange(60), np.diff(A.indptr))
    many = np.where(rows % 2 == 0, 1e-300, 1e300)
    sizes = (1.0, 1e-310, 1e-45, 1e39, 1e100, 1e306, many)
    for dtype, near in ((np.float64, 1e-12), (np.float32, 1e-6)):
        expected = pagerank(A, weighted=True, dtype=dtype)
        for size in sizes:
            B = A.copy()
            B.data = A.data * size
            found = pagerank(B, weighted=True, dtype=dtype)
            assert np.abs(found.scores - expected.scores).max() < near
            assert found.iterations == expected.iterations
            check_pagerank(B, found, weighted=True)
            again = pagerank(matchwood.graph(B), weighted=True, dtype=dtype, engine="reference")
            assert np.abs(found.scores - again.scores).max() < near


def test_no_vertices_no_edges_loops_only() -> None:
    empty = pagerank(sp.csr_array((0, 0)))
    assert empty.scores.size == 0
    assert empty.converged
    assert empty.iterations == 0
    for A in (sp.csr_array((4, 4)), sp.eye_array(4, format="csr")):
        assert np.allclose(pagerank(A).scores, 0.25)
    zeros = sp.csr_array(([0.0, 0.0], ([0, 1], [1, 0])), shape=(2, 2))
    assert np.allclose(pagerank(zeros, weighted=True).scores, 0.5)  # weights of 0: no arcs


def test_rounding_of_many_iterations_is_allowed_for() -> None:
    """The scores of some add up to 1 + 2e-14: every iteration rounds."""
    for seed in range(8):
        A = random_graph(300, 900, symmetric=seed % 2 == 0, seed=seed)
        for dtype in (np.float32, np.float64):
            options = {"damping": 0.99, "tol": 1e-9, "max_iterations": 2000}
            found = pagerank(A, dtype=dtype, **options)
            check_pagerank(A, found, **options, replay=True)


def test_iterations() -> None:
    A = grid(9, 9)
    found = pagerank(A, tol=0, max_iterations=13)
    assert found.iterations == 13
    assert not found.converged
    with pytest.warns(
        RuntimeWarning, match=r"not converged: iteration 2, the last, .* tol is 1e-06"
    ):
        few = pagerank(A, max_iterations=2)
    assert few.iterations == 2
    assert not few.converged
    assert few.error > 1e-6
    check_pagerank(A, few, max_iterations=2, replay=True)
    with pytest.raises(matchwood.CheckFailed, match=r"not converged after 2 iterations, with max"):
        check_pagerank(A, few)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_default_ends_near_the_answer_on_large_graphs(dtype) -> None:
    """NetworkX's rule, changes of less than n tol, would end here after few iterations."""
    A = matchwood.generators.rmat(14, 8)
    found = pagerank(A, dtype=dtype)
    right = pagerank(A, tol=1e-14, max_iterations=1000)
    tol = {np.float32: 1e-5, np.float64: 1e-6}[dtype]
    assert found.converged
    assert found.error < tol
    assert np.abs(found.scores - right.scores).sum() < 0.85 / 0.15 * tol
    check_pagerank(A, found)
    check_pagerank(A, found, tol=tol)
    with pytest.raises(matchwood.CheckFailed, match="converged is True with an error"):
        check_pagerank(A, found, tol=found.error)


def test_the_check_finds_every_fault() -> None:
    A = rmat(6, 4)
    right = pagerank(A, tol=1e-9)
    scores = right.scores
    moved, nan, negative = scores.copy(), scores.copy(), scores.copy()
    moved[0] += 1e-3
    moved[1] -= min(1e-3, moved[1])
    moved /= moved.sum()
    infinite = scores.copy()
    infinite[3] = math.inf
    nan[3] = math.nan
    negative[3] = -negative[3]
    for name, value, message in [
        ("scores", moved, "another iteration changes"),
        ("scores", nan, "the score of vertex 3 is nan"),
        ("scores", negative, "the score of vertex 3"),
        ("scores", infinite, "the score of vertex 3 is inf"),
        ("iterations", 0, "0 iterations on 64 vertices"),
        ("iterations", 2**40, "converged after 1099511627776 iterations, with max_iterations=100"),
        ("scores", 2 * scores, "the scores add up to"),
        ("scores", scores[:-1], "must have 64 elements"),
        ("error", -1.0, "must not be negative"),
        ("error", 1.0, "converged is True"),
        ("converged", False, "converged is False"),
    ]:
        with pytest.raises(matchwood.CheckFailed, match=message):
            check_pagerank(A, dataclasses.replace(right, **{name: value}), tol=1e-9)
    with pytest.raises(matchwood.CheckFailed, match="after 900 iterations it is at most"):
        wrong = dataclasses.replace(right, iterations=900)
        check_pagerank(A, wrong, tol=1e-9, max_iterations=1000)
    for name, value, message in [
        ("iterations", right.iterations - 1, f"but iteration {right.iterations - 1} changes the"),
        ("iterations", right.iterations + 1, f"but number {right.iterations} was the last"),
        ("iterations", 1, "but iteration 1 changes the scores by"),
        ("error", right.error * 1.001, "but iteration .* changes the scores by"),
        ("scores", scores[::-1].copy(), "another iteration changes"),
    ]:
        with pytest.raises(matchwood.CheckFailed, match=message):
            wrong = dataclasses.replace(right, **{name: value})
            check_pagerank(A, wrong, tol=1e-9, replay=True)
    assert matchwood.check.is_pagerank(A, right, tol=1e-9)
    assert not matchwood.check.is_pagerank(A, right, tol=1e-9, damping=0.5)
    with pytest.raises(TypeError, match="answer must be a Ranking"):
        check_pagerank(A, scores)


def test_bad_arguments() -> None:
    A = grid(2, 2)
    for options, error, message in [
        ({"damping": 1}, ValueError, "pagerank: damping must be at least 0 and less than 1"),
        ({"damping": -0.1}, ValueError, "pagerank: damping must be finite and between 0 and 1"),
        ({"damping": math.nan}, ValueError, "damping must be finite"),
        ({"tol": -1}, ValueError, "pagerank: tol must be finite and at least 0"),
        ({"max_iterations": 0}, ValueError, "max_iterations must be at least 1"),
        ({"personalization": [1, 2]}, ValueError, "personalization must have 4 elements, got 2"),
        ({"personalization": [0, 0, 0, 0]}, ValueError, "personalization must not be all zero"),
        ({"dangling": [1, -1, 0, 0]}, ValueError, "dangling must not be negative, got -1.0 at 1"),
        ({"dangling": [1, math.nan, 0, 0]}, ValueError, "dangling must be finite"),
        ({"start": ["a"] * 4}, TypeError, "start must hold real numbers"),
        ({"weighted": 1}, TypeError, "weighted must be True or False"),
        ({"dtype": int}, TypeError, "dtype must be float32 or float64"),
    ]:
        with pytest.raises(error, match=message):
            pagerank(A, **options)
    for value in (-1.0, math.nan, math.inf):
        B = A.copy()
        B.data[0] = value
        with pytest.raises(ValueError, match="pagerank: "):
            pagerank(B, weighted=True)
        assert pagerank(B).converged  # values are not read


def test_a_score_near_the_largest_float_is_refused() -> None:
    A = rmat(6, 4)
    found = pagerank(A)
    for huge in (1e307, 1e308, 1.7e308):
        scores = found.scores.copy()
        scores[3] = huge
        with pytest.raises(matchwood.CheckFailed, match="add up to"):
            check_pagerank(A, dataclasses.replace(found, scores=scores))
