"""The heaviest matching: SciPy for bipartite graphs, rustworkx for others, against brute force."""

from __future__ import annotations

import sys

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

import matchwood
from graphs import ZOO, bipartite, complete, cycle, from_edges, grid, random_graph, star
from matchwood.matching import Matching, weighted_matching
from matchwood.matching.exact import cpu
from matchwood.matching.exact.check import check_exact
from strategies import graphs


def best_of_networkx(A: sp.csr_array) -> float:
    view = matchwood.graph(A).undirected_weights()
    G = nx.from_scipy_sparse_array(
        sp.csr_array((view.data.astype(float), view.indices, view.indptr), (view.n,) * 2)
    )
    return float(sum(G[a][b]["weight"] for a, b in nx.max_weight_matching(G)))


BIPARTITE = (
    "0x0",
    "1x1",
    "one edge",
    "no edges",
    "path",
    "star",
    "bipartite",
    "tree",
    "grid",
    "shuffled grid",
    "only zeros",
    "skew-symmetric",
    "equal weights",
    "directed path",
)


@pytest.mark.parametrize("name", BIPARTITE)
def test_bipartite_graphs(name: str) -> None:
    A = ZOO[name]()
    found = weighted_matching(A, method="exact")
    assert found.weight == pytest.approx(best_of_networkx(A), rel=1e-9)
    assert found.bound == found.weight
    check_exact(A, found)


def test_general_graphs() -> None:
    pytest.importorskip("rustworkx")
    for A in (
        complete(15),
        cycle(31),
        random_graph(60, 150),
        ZOO["mixed signs"](),
        ZOO["float32"](),
    ):
        found = weighted_matching(A, method="exact")
        assert found.weight == pytest.approx(best_of_networkx(A), rel=1e-9)
        check_exact(A, found)


@given(graphs(max_n=12, max_m=30))
def test_equals_brute_force(A: sp.csr_array) -> None:
    expected = weighted_matching(A, method="exact", engine="reference")
    expected.check(A)
    assert expected.weight == pytest.approx(best_of_networkx(A), rel=1e-9)
    try:
        found = weighted_matching(A, method="exact")
    except matchwood.EngineUnavailable:
        return  # not bipartite, and no rustworkx here
    assert found.weight == pytest.approx(expected.weight, rel=1e-9)
    found.check(A)


def test_integers_keep_every_bit() -> None:
    """Weights that differ by little beside a large one."""
    pytest.importorskip("rustworkx")
    w = np.array([1.0, 1.0 + 2**-30, 2.0**20, 1.0, 2.0**-10])
    A = from_edges(7, [0, 1, 2, 4, 5], [1, 2, 0, 5, 6], w)
    found = weighted_matching(A, method="exact")
    assert found.weight == best_of_networkx(A)


@pytest.mark.slow
def test_it_refuses_what_takes_hours() -> None:
    with pytest.raises(
        ValueError, match=r"20000 vertices and \d+ edges would take about \d+ hours"
    ):
        weighted_matching(random_graph(20_000, 60_000_000 // 20), method="exact")
    with pytest.raises(ValueError, match=r"bipartite graph with 1000000 vertices and .* hours"):
        cpu._refuse_hours(
            cpu.BIPARTITE_SECONDS * 5e5**2, "a bipartite graph with 1000000 vertices and 9 edges"
        )
    with pytest.raises(ValueError, match=r"at most 24 vertices, got 25"):
        weighted_matching(cycle(25), method="exact", engine="reference")


def test_without_rustworkx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rustworkx", None)
    view = matchwood.graph(cycle(5)).undirected_weights()
    with pytest.raises(matchwood.EngineUnavailable, match=r"pip install 'matchwood\[exact\]'"):
        cpu.match(view, 0, True)
    assert cpu.match(matchwood.graph(cycle(6)).undirected_weights(), 0, True).weight == 3.0


def test_a_check_without_rustworkx_says_that_it_cannot_decide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Triangles in a row: prices of the vertices alone prove nothing there."""
    pytest.importorskip("rustworkx")
    triangles = [[3 * t + a, 3 * t + b] for t in range(5) for a, b in ((0, 1), (1, 2), (0, 2))]
    A = (15, np.array(triangles), np.ones(15))
    found = weighted_matching(A, method="exact")
    found.check(A)
    monkeypatch.setitem(sys.modules, "rustworkx", None)
    with pytest.raises(matchwood.EngineUnavailable, match=r"check_exact: .* cannot be decided"):
        found.check(A)
    B = matchwood.generators.path(20)
    weighted_matching(B, method="exact").check(B)  # bipartite: decided without


def test_sides_are_found() -> None:
    for A, sides in ((star(9), {1, 8}), (bipartite(3, 4), {3, 4}), (grid(3, 3), {4, 5})):
        one, other = cpu.double_cover(A)
        assert (one != other).all()
        assert {int((one < other).sum()), int((one > other).sum())} == sides
    one, other = cpu.double_cover(cycle(5))
    assert (one == other).all()


def test_the_check_is_strict() -> None:
    A = sp.csr_array([[0, 4, 0, 0], [4, 0, 5, 0], [0, 5, 0, 4], [0, 0, 4, 0]])
    right = weighted_matching(A, method="exact")
    check_exact(A, right)
    poor = Matching(np.array([1, 0, -1, -1]), 4.0, method="exact")
    with pytest.raises(matchwood.CheckFailed, match=r"but there is one of 8.0"):
        check_exact(A, poor)


def swapped(view, mate: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The edges of some matched vertices given up, and others taken in a random order."""
    rows = np.repeat(np.arange(view.n), np.diff(view.indptr))
    worse = mate.copy()
    for v in rng.choice(view.n, max(1, view.n // 6), replace=False):
        if worse[v] >= 0:
            worse[worse[v]], worse[v] = -1, -1
    for k in rng.permutation(view.nnz):
        u, v = rows[k], view.indices[k]
        if worse[u] < 0 and worse[v] < 0:
            worse[u], worse[v] = v, u
    return worse


@pytest.mark.parametrize("sides", [True, False], ids=["bipartite", "general"])
def test_the_heaviest_is_proved_and_no_other_passes(sides: bool) -> None:
    """Graphs too large to try all matchings; weights that are often equal, or far apart."""
    pytest.importorskip("rustworkx")
    rng = np.random.default_rng(3)
    seen = set()
    for k in range(25):
        n = int(rng.integers(16, 60))
        ends = rng.integers(0, n, (3 * n, 2))
        if sides:
            ends = 2 * (ends // 2) + [0, 1]
        ends = ends[(ends[:, 0] != ends[:, 1]) & (ends < n).all(axis=1)]
        if k % 2:
            weights = rng.choice([1.0, 2.0, 3.0], len(ends))
        else:
            weights = rng.random(len(ends)) * 10.0 ** rng.uniform(-6, 6)
        G = matchwood.graph((n, ends, weights))
        best = weighted_matching(G, method="exact")
        check_exact(G, best)
        view = G.undirected_weights()
        mate = swapped(view, best.mate, rng)
        weight = sum(view.data[view.indptr[v] : view.indptr[v + 1]][
            view.indices[view.indptr[v] : view.indptr[v + 1]] == mate[v]].item()
            for v in range(n) if mate[v] > v)  # fmt: skip
        other = Matching(mate, weight, method="exact")
        wrong = weight < best.weight * (1 - 1e-9)
        seen.add(wrong)
        if wrong:
            with pytest.raises(matchwood.CheckFailed):
                check_exact(G, other)
        else:
            check_exact(G, other)
    assert True in seen
