"""The memory that docstrings state, beside the graph and the result, is what is taken."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

import matchwood
from matchwood.engines.cpu import default_threads

N = 300_000  # large against what does not grow with the graph
SMALL = 200_000  # bytes that do not: control words, Python objects


def peak(function: Callable[[], Any]) -> int:
    """Largest number of bytes that were allocated at once while `function` ran."""
    function()  # compiles
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "call", "scratch", "result"),
    [
        ("bfs", lambda G: matchwood.bfs(G, 0, threads=2), 8.5, 8),
        ("afforest", lambda G: matchwood.connected_components(G, threads=2), 4, 4),
        (
            "fastsv",
            lambda G: matchwood.connected_components(G, method="fastsv", threads=2),
            8,
            4,
        ),
    ],
)
def test_bytes_a_vertex(
    name: str, call: Callable[[Any], Any], scratch: float, result: float
) -> None:
    G = matchwood.graph(matchwood.generators.grid((N // 500, 500)))
    taken = peak(lambda: call(G))
    assert taken <= (scratch + result) * N + SMALL
    assert taken >= result * N  # else this measures nothing


def test_preparing_a_symmetric_matrix_takes_one_copy_or_none() -> None:
    A = matchwood.generators.grid((N // 500, 500))
    own = A.indptr.nbytes + A.indices.nbytes + A.data.nbytes
    assert peak(lambda: matchwood.graph(A).undirected_weights()) < own + SMALL
    assert peak(lambda: matchwood.graph(A, copy=False).undirected_weights()) < SMALL


def test_the_union_with_the_transpose_takes_what_is_said() -> None:
    """The transpose and the result, and counters for each thread."""
    A = matchwood.generators.rmat(14, 8, directed=True)
    G = matchwood.graph(A)
    out = G.undirected_pattern()
    taken = peak(lambda: matchwood.graph(A, copy=False).undirected_pattern())
    stated = 4 * (A.nnz + out.nnz) + 4 * A.shape[0] * (4 + 2 * default_threads())
    assert taken <= stated + SMALL
