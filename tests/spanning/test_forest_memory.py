"""The memory that the methods state, beside the graph and the forest, is what they take."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import matchwood
from matchwood.spanning.forest.costs import undirected_costs

SMALL = 300_000  # bytes that do not grow with the graph
RESULT = 12  # bytes a vertex: the ends and the weight of an edge


@pytest.mark.parametrize(
    ("method", "edge", "vertex"),
    [
        ("boruvka", 16, 28),
        ("awerbuch_shiloach", 0, 24),
        ("kruskal", 32, 4),
        ("filter_kruskal", 20, 4 + 2 * 28),  # of each vertex one or two edges are sorted at once
    ],
)
def test_bytes_an_edge(method: str, edge: int, vertex: int) -> None:
    A = matchwood.generators.random_weights(matchwood.generators.mesh((30, 30, 30)))
    G = matchwood.graph(A)
    matchwood.minimum_spanning_forest(G, method=method)  # compiles
    tracemalloc.start()
    matchwood.minimum_spanning_forest(G, method=method, threads=2)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    marks = G.nnz / 8
    limit = edge * G.nnz / 2 + (vertex + RESULT) * G.n + marks + SMALL
    assert taken <= limit
    assert taken >= edge * G.nnz / 2  # else this measures nothing


def test_a_symmetric_matrix_is_not_copied() -> None:
    A = matchwood.generators.random_weights(matchwood.generators.grid((300, 300)))
    G = matchwood.graph(A, copy=False)
    costs = undirected_costs(G, "test", False)
    assert np.shares_memory(costs.data, A.data)
    assert undirected_costs(G, "test", True) is costs
