"""Attacks on algorithms over ranks: arguments that differ, odd grids, empty ranks, slow ranks."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood as mw
from adversarial.clock import attempts
from matchwood import dist
from spread_graphs import slab, tried

RANKS = 3
PATH = (5, np.array([[0, 1], [1, 2], [2, 3], [3, 4]], np.int32), np.array([3.0, 1.0, 2.0, 5.0]))


def other(usual: Any, wrong: Any) -> Any:
    """What a rank passes: `odd` is true on one of them."""
    return lambda odd: wrong if odd else usual


def vectors(G: Any) -> Any:
    return mw.bfs(G, 0).parent


CALLS = {
    "bfs": lambda G, **given: mw.bfs(G, given.pop("sources", 0), **given),
    "connected_components": mw.connected_components,
    "weighted_matching": mw.weighted_matching,
    "minimum_spanning_forest": mw.minimum_spanning_forest,
    "pagerank": mw.pagerank,
    "label_propagation": mw.label_propagation,
    "forest_roots": lambda G, **given: mw.forest_roots(vectors(G), **given),
    "check_bfs": lambda G, **given: mw.check.check_bfs(G, 0, mw.bfs(G, 0), **given),
    "check_connected_components": lambda G, **given: mw.check.check_connected_components(
        G, mw.connected_components(G), **given
    ),
    "check_pagerank": lambda G, **given: mw.check.check_pagerank(G, mw.pagerank(G), **given),
    "check_label_propagation": lambda G, **given: mw.check.check_label_propagation(
        G, mw.label_propagation(G), **given
    ),
    "check_spanning_forest": lambda G, **given: mw.check.check_spanning_forest(
        G, mw.minimum_spanning_forest(G), **given
    ),
    "check_locally_dominant": lambda G, **given: mw.matching.check.check_locally_dominant(
        G, mw.weighted_matching(G), **given
    ),
}

HALVES, THIRDS = np.full(5, 0.2), np.array([1.0, 0, 0, 0, 1])
HOSTILE: dict[str, list[tuple[str, Any]]] = {
    "bfs": [
        ("sources", other(0, 1)), ("sources", other(0, [0, 1])), ("sources", other(0, "x")),
        ("sources", other(0, 99)), ("sources", other(0, -1)), ("sources", other(0, None)),
        ("directed", other(True, False)), ("depth_limit", other(None, 1)),
        ("depth_limit", other(2, -1)), ("depth_limit", other(2, "x")),
    ],
    "connected_components": [
        ("method", other("auto", "colour")), ("method", other("auto", "x")),
        ("method", other("auto", 3)), ("method", other("auto", None)),
    ],
    "weighted_matching": [
        ("method", other("auto", "suitor")), ("method", other("auto", "x")),
        ("method", other("auto", [1])), ("ties", other("hash", "index")),
        ("ties", other("hash", 0)), ("rng", other(0, 1)), ("rng", other(0, "x")),
        ("rng", other(0, -1)), ("rng", other(0, 2**64)),
    ],
    "minimum_spanning_forest": [
        ("maximum", other(False, True)), ("method", other("auto", "kruskal")),
        ("method", other("auto", "x")), ("method", other("auto", {})),
    ],
    "pagerank": [
        ("damping", other(0.85, 0.5)), ("damping", other(0.85, 2.0)),
        ("damping", other(0.85, "x")), ("damping", other(0.85, float("nan"))),
        ("tol", other(1e-8, 1e-3)), ("tol", other(1e-8, -1)), ("max_iterations", other(9, 8)),
        ("max_iterations", other(9, 1.5)), ("weighted", other(False, True)),
        ("personalization", other(None, HALVES)), ("personalization", other(HALVES, THIRDS)),
        ("personalization", other(HALVES, -HALVES)), ("personalization", other(HALVES, HALVES[:3])),
        ("personalization", other(HALVES, "x")), ("start", other(None, THIRDS)),
        ("dtype", other(np.float64, np.float32)), ("dtype", other(np.float64, np.int8)),
    ],
    "label_propagation": [
        ("rng", other(0, 1)), ("rng", other(0, "x")), ("tol", other(0, 0.5)), ("tol", other(0, 2)),
        ("max_rounds", other(5, 6)), ("max_rounds", other(5, -1)), ("max_rounds", other(5, "x")),
    ],
    "forest_roots": [],
    "check_bfs": [("directed", other(True, False)), ("depth_limit", other(None, "x"))],
    "check_connected_components": [
        ("numbering", other("first", "any")), ("numbering", other("first", "x")),
    ],
    "check_pagerank": [
        ("damping", other(0.85, 0.5)), ("damping", other(0.85, 7)),
        ("max_iterations", other(100, 99)), ("start", other(None, HALVES)),
        ("replay", other(False, True)), ("replay", other(False, "x")),
    ],
    "check_label_propagation": [
        ("replay", other(False, True)), ("replay", other(False, 1)),
        ("settled", other(True, False)), ("settled", other(True, "x")),
    ],
    "check_spanning_forest": [
        ("maximum", other(False, True)), ("ties", other("index", "x")),
    ],
    "check_locally_dominant": [
        ("rng", other(0, 3)), ("ties", other("hash", "index")), ("ties", other("hash", "x")),
    ],
}  # fmt: skip
for _name in list(CALLS)[:7]:
    HOSTILE[_name] += [("threads", other(None, 0)), ("threads", other(1, "x"))]
    HOSTILE[_name] += [("engine", other(None, "gpu")), ("engine", other(None, 7))]


@pytest.mark.parametrize("name", CALLS)
def test_arguments_that_differ_are_refused_by_all_ranks(name):
    """One rank passes something else: all raise the same error, and the communicator goes on."""

    def body(comm: Any, odd_one: int) -> list[Any]:
        G = mw.distribute(PATH if comm.rank == 0 else None, comm=comm)
        said = []
        for argument, given in HOSTILE[name]:
            value = given(comm.rank == odd_one)
            said.append(tried(lambda value=value: CALLS[name](G, **{argument: value})))  # noqa: B023
        CALLS[name](G)
        return said

    for odd_one in (0, RANKS - 1):
        ranks = dist.run(body, RANKS, odd_one)
        for case, texts in zip(HOSTILE[name], zip(*ranks, strict=True), strict=True):
            shown = (case[0], case[1](False), case[1](True), texts)
            assert all(isinstance(text, str) for text in texts), shown
            assert len(set(texts)) == 1, shown


# Any graph on any grid, with ranks that are late


def drawn(rng: Any) -> Any:
    """A symmetric graph of few vertices, often fewer than ranks; some ranks have no entries."""
    n = int(rng.choice([0, 1, 2, 3, 7, 30]))
    m = int(rng.integers(0, 4 * n + 1)) if n else 0
    span = max(1, n // int(rng.integers(1, 4)))
    u, v = rng.integers(0, span, m), rng.integers(0, span, m)
    values = rng.integers(1, 4, m).astype(float) if rng.integers(2) else rng.random(m)
    A = sp.coo_array((values, (u, v)), (n, n)).tocsr()
    A = sp.csr_array(A + A.T)
    wide = rng.integers(2)
    index = np.int64 if wide else np.int32
    return sp.csr_array((A.data, A.indices.astype(index), A.indptr.astype(index)), A.shape)


def late(comm: Any, seed: int) -> None:
    """Some ranks come late to some collectives."""
    rng = np.random.default_rng((seed, comm.rank))
    share = float(rng.choice([0.0, 0.05, 0.3]))

    def before(which: Any, operation: str) -> None:
        if rng.random() < share:
            time.sleep(float(rng.choice([0.0, 0.0002, 0.001])))

    comm.session.before = before


def answers(A: Any, sources: Any, gather: Any = lambda vector: vector) -> dict[str, Any]:
    """What one machine, or the ranks together, find."""
    parts = mw.connected_components(A)
    again = mw.connected_components(A)
    search = mw.bfs(A, sources)
    found = {
        "components": gather(parts.labels), "components again": gather(again.labels),
        "counts": (parts.count, again.count), "levels": gather(search.level),
        "parents": gather(search.parent), "roots": gather(mw.forest_roots(search.parent)),
        "mates": gather(mw.weighted_matching(A, method="dominant").mate),
        "scores": gather(mw.pagerank(A, max_iterations=5, tol=0).scores),
        "communities": gather(mw.label_propagation(A, max_rounds=2).labels),
    }  # fmt: skip
    forest = mw.minimum_spanning_forest(A)
    found["forest"] = (forest.components, forest.rounds, float(forest.total))
    return found


@pytest.mark.slow
def test_any_graph_on_any_grid_with_late_ranks(monkeypatch):
    monkeypatch.setattr("matchwood.communities.subrounds.MOST_SUBROUNDS", 3)
    shapes = ((1, 1), (3, 1), (1, 5), (7, 1), (2, 3), (3, 3), (2, 5))

    def body(comm: Any, A: Any, grid: Any, order: str, sources: Any, seed: int) -> Any:
        late(comm, seed)
        G = mw.distribute(slab(A, comm.rank, comm.size), comm=comm, grid=grid, order=order)
        return answers(G, sources, lambda vector: vector.gather(None))

    for k in attempts(1):
        rng = np.random.default_rng((31, k))
        A, grid = drawn(rng), shapes[int(rng.integers(len(shapes)))]
        order = ("given", "hashed")[int(rng.integers(2))]
        n = A.shape[0]
        sources = np.unique(rng.integers(0, n, 2)) if n else []
        right = answers(A, sources)
        for found in dist.run(body, grid[0] * grid[1], A, grid, order, sources, k):
            for name, value in right.items():
                case = (k, grid, order, n, name)
                if name in ("scores", "forest"):
                    assert np.allclose(found[name], value, rtol=1e-9, atol=1e-12), case
                else:
                    assert np.array_equal(found[name], value), case
