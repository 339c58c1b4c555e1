"""Streaming: one pass, blocks or single edges, within its promise, and its bound holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import matchwood
from graphs import ZOO, random_graph, rmat
from matchwood.matching import streaming_matching, weighted_matching
from matchwood.matching.streaming.check import check_streaming
from matchwood.matching.streaming.cpu import match
from matchwood.matching.streaming.reference import match as by_definition
from strategies import graphs


def upper(A: sp.csr_array) -> tuple[Any, Any, Any]:
    """The edges in the order in which `weighted_matching` reads them."""
    view = matchwood.graph(A).undirected_weights()
    u = np.repeat(np.arange(view.n), np.diff(view.indptr))
    keep = u < view.indices
    return u[keep], view.indices[keep], view.data[keep]


@pytest.mark.parametrize("name", ZOO)
def test_all_ways_to_hand_over_edges(name: str) -> None:
    A = ZOO[name]()
    n = A.shape[0]
    expected = weighted_matching(A, method="streaming")
    check_streaming(A, expected)
    u, v, w = upper(A)
    cuts = range(0, u.size + 7, 7)
    for edges in (
        zip(u.tolist(), v.tolist(), w.tolist(), strict=True),
        [(u, v, w)],
        ((u[k : k + 7], v[k : k + 7], w[k : k + 7]) for k in cuts),
    ):
        found = streaming_matching(edges, n=n)
        assert np.array_equal(found.mate, expected.mate)
        assert found.weight == pytest.approx(expected.weight, rel=1e-12)
        assert found.bound == pytest.approx(expected.bound, rel=1e-12)


@given(graphs(max_n=16, max_m=50), st.sampled_from([0.0, 0.1, 1.0]))
def test_the_promise(A: sp.csr_array, epsilon: float) -> None:
    view = matchwood.graph(A).undirected_weights()
    found, expected = (f(view, 0, True, None, epsilon) for f in (match, by_definition))
    assert np.array_equal(found.mate, expected.mate)
    assert found.weight == pytest.approx(expected.weight, rel=1e-12)
    best = weighted_matching(A, method="exact", engine="reference").weight
    assert found.weight <= best * (1 + 1e-12)
    assert best <= found.bound * (1 + 1e-12)
    assert found.bound <= (2 + 2 * epsilon) * found.weight * (1 + 1e-12)


def test_longer_than_memory_would_like() -> None:
    """A generator of a million edges over few vertices: the stack stays small."""
    made = 0

    def stream() -> Iterator[tuple[Any, Any, Any]]:
        nonlocal made
        rng = np.random.default_rng(6)
        for _ in range(50):
            u, v = rng.integers(0, 500, (2, 20_000))
            made += u.size
            yield u, v, rng.random(u.size)

    found = streaming_matching(stream())
    assert made == 1_000_000
    assert found.mate.size == 500
    assert found.cardinality > 200
    assert found.weight <= found.bound <= 2.1 * found.weight * (1 + 1e-9)


def test_larger_epsilon_is_lighter_on_memory_and_weight() -> None:
    view = matchwood.graph(rmat(11, 8)).undirected_weights()
    few, many = (match(view, 0, True, None, epsilon) for epsilon in (2.0, 0.0))
    assert few.weight < many.weight
    assert few.bound is not None
    assert many.bound is not None
    assert few.bound > many.bound


def test_loops_zeros_and_repeated_edges() -> None:
    edges = [(0, 0, 9.0), (0, 1, 0.0), (2, 3, 1.0), (3, 2, 4.0), (2, 3, 1.0)]
    found = streaming_matching(edges)
    assert found.edges().tolist() == [[2, 3]]
    assert found.weight == 4.0
    assert streaming_matching(edges, n=9).mate.size == 9
    assert streaming_matching([]).mate.size == 0
    assert streaming_matching([], n=3).mate.tolist() == [-1, -1, -1]


def test_many_blocks_of_a_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    A = random_graph(300, 2000)
    expected = weighted_matching(A, method="streaming")
    monkeypatch.setattr("matchwood.matching.streaming.cpu.ENTRIES_PER_BLOCK", 17)
    found = weighted_matching(A, method="streaming")
    assert np.array_equal(found.mate, expected.mate)


def test_bad_edges() -> None:
    for edges, message in [
        ([(0, 1, 1.0), (0, -1, 1.0)], "at least 0, got -1 at edge 1"),
        ([(0, 1, -2.0)], "finite and not negative, got -2.0 at edge 0"),
        ([(0, 1, float("nan"))], "got nan at edge 0"),
        ([(0, 1)], r"edges must be \(u, v, w\), got 2 items"),
        ([(np.arange(2), np.arange(3), np.ones(2))], "must have the same length"),
    ]:
        with pytest.raises(ValueError, match=message):
            streaming_matching(edges)
    with pytest.raises(ValueError, match=r"within 0..2, got 3 at edge 0"):
        streaming_matching([(0, 3, 1.0)], n=3)
    with pytest.raises(TypeError, match=r"vertices must be integers, got float64"):
        streaming_matching([(0.5, 1, 1.0)])
    with pytest.raises(TypeError, match=r"weights must be real numbers"):
        streaming_matching([(0, 1, 1j)])
    with pytest.raises(ValueError, match=r"epsilon must be finite and at least 0"):
        streaming_matching([(0, 1, 1.0)], epsilon=-1)


def test_the_check_is_strict() -> None:
    A = random_graph(40, 90)
    right = weighted_matching(A, method="streaming")
    check_streaming(A, right)
    worse = streaming_matching([(0, 1, 1.0)], n=40)
    with pytest.raises(matchwood.CheckFailed):
        check_streaming(A, worse)
