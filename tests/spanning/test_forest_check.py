"""The check of spanning forests finds every fault and names it."""

from __future__ import annotations

import numpy as np
import pytest

import matchwood
from graphs import disjoint, from_edges, grid, path, rmat
from matchwood.check import check_spanning_forest
from matchwood.spanning import Forest

msf = matchwood.minimum_spanning_forest


def square():
    """0-1-2-3 and back, weights 1, 2, 3, 4, and a diagonal 0-2 of 5; vertex 4 alone."""
    return from_edges(5, [0, 1, 2, 0, 0], [1, 2, 3, 3, 2], [1.0, 2.0, 3.0, 4.0, 5.0])


RIGHT = [[0, 1], [1, 2], [2, 3]]


def test_right_answers_pass() -> None:
    A = square()
    check_spanning_forest(A, RIGHT)
    check_spanning_forest(A, [[3, 2], [1, 0], [2, 1]])  # any order, any direction
    check_spanning_forest(A, (RIGHT, [1.0, 2.0, 3.0]))
    check_spanning_forest(A, msf(A))
    check_spanning_forest(A, msf(A, maximum=True), maximum=True)
    check_spanning_forest(A, [[0, 2], [0, 3], [1, 2]], maximum=True)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[0, 1], [1, 2]], "vertices 2 and 3 are joined in the graph, but not in the forest|"
                           "vertices 0 and 3 are joined in the graph, but not in the forest"),
        ([], "vertices 0 and 1 are joined"),
        ([[0, 1], [1, 2], [0, 2], [2, 3]], r"edge \(0, 2\) closes a cycle"),
        ([[0, 1], [0, 1], [1, 2], [2, 3]], r"edge \(0, 1\) closes a cycle"),
        ([[0, 1], [1, 2], [0, 3]],
         r"edge \(2, 3\) of weight 3.0 comes before edge \(0, 3\) of weight 4.0"),
        ([[0, 1], [2, 3], [0, 2]],
         r"edge \(0, 3\) of weight 4.0 comes before edge \(0, 2\) of weight 5.0|"
         r"edge \(1, 2\) of weight 2.0 comes before edge \(0, 2\) of weight 5.0"),
        ([[0, 1], [1, 2], [1, 3]], r"\(1, 3\) is no edge of the graph"),
        ([[0, 1], [1, 2], [3, 3]], r"\(3, 3\) is no edge of the graph"),
        ([[0, 1], [1, 2], [2, 9]], r"edge \(2, 9\) leaves 0 .. 4"),
        ([[0, 1], [1, 2], [-1, 3]], r"edge \(-1, 3\) leaves 0 .. 4"),
        ([0, 1, 2], r"shape \(m, 2\), got \(3,\)"),
    ],
)  # fmt: skip
def test_every_fault_is_found(edges, message: str) -> None:
    with pytest.raises(matchwood.CheckFailed, match=message):
        check_spanning_forest(square(), edges)


def test_faults_of_weights_and_numbers() -> None:
    A = square()
    with pytest.raises(matchwood.CheckFailed, match=r"edge \(1, 2\) weighs 2.0, not 2.5"):
        check_spanning_forest(A, (RIGHT, [1.0, 2.5, 3.0]))
    with pytest.raises(matchwood.CheckFailed, match="weights must have 3 elements"):
        check_spanning_forest(A, (RIGHT, [1.0]))
    found = msf(A)
    with pytest.raises(matchwood.CheckFailed, match="1 components, but 5 vertices and 3 edges"):
        check_spanning_forest(A, Forest(found.edges, found.weights, found.total, 1, 5))
    with pytest.raises(matchwood.CheckFailed, match=r"total is 7\.0, the weights give 6\.0"):
        check_spanning_forest(A, Forest(found.edges, found.weights, 7.0, 2, 5))


def test_of_equal_weights_the_ends_decide() -> None:
    A = from_edges(3, [0, 0, 1], [1, 2, 2], 1.0)
    check_spanning_forest(A, [[0, 1], [0, 2]])
    with pytest.raises(matchwood.CheckFailed, match=r"edge \(0, 1\) of weight 1.0 comes before"):
        check_spanning_forest(A, [[0, 2], [1, 2]])


def test_a_minimum_forest_is_no_maximum_forest() -> None:
    with pytest.raises(matchwood.CheckFailed, match="comes before"):
        check_spanning_forest(square(), RIGHT, maximum=True)


def test_every_exchanged_edge_is_noticed() -> None:
    """Replace one edge of the forest by any other edge of the graph."""
    A = disjoint([grid(4, 4), path(3)])
    found = msf(A)
    u, v = A.nonzero()
    others = [(a, b) for a, b in zip(u.tolist(), v.tolist(), strict=True) if a < b]
    taken = {tuple(edge) for edge in found.edges.tolist()}
    for i in range(0, found.edges.shape[0], 3):
        for other in others:
            if other in taken:
                continue
            edges = found.edges.copy()
            edges[i] = other
            with pytest.raises(matchwood.CheckFailed):
                check_spanning_forest(A, edges)


def test_check_is_quick_on_long_chains() -> None:
    A = path(200_000)
    A.data[:] = 1.0
    check_spanning_forest(A, msf(A))
    B = rmat(12, 8)
    check_spanning_forest(B, msf(B))


def test_empty() -> None:
    check_spanning_forest(np.zeros((0, 0)), np.empty((0, 2), int))
    check_spanning_forest(np.zeros((3, 3)), [])
