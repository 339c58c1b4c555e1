"""Attacks on matchings: spoiled answers, arrays that are none, weights near the ends of floats."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from adversarial.clock import attempts
from adversarial.spoiling import refused
from matchwood.check import check_bound, check_coarsening, check_maximal_matching
from matchwood.matching import (
    coarsen,
    coarsening_hierarchy,
    is_locally_dominant,
    is_matching,
    is_maximal_matching,
    matching_bound,
    maximal_matching,
    streaming_matching,
    weighted_matching,
)
from matchwood.matching.exact.check import check_exact
from matchwood.matching.random_weighted.check import check_random_weighted
from matchwood.matching.streaming.check import check_streaming
from matchwood.primitives.edge_order.reference import edge_key
from support import NO_RUSTWORKX

METHODS = ("greedy", "dominant", "suitor", "augmented", "streaming", "random_weighted", "exact")
THREADS = (1, 2, 3, 5, 6, 7, 16)
EXTREMES = (5e-324, 1e-310, 2.3e-308, 1e-300, 1.0, 3.0, 1e300, 4e307, 1e308, 1.7e308)
Edges = dict[tuple[int, int], float]


def random_case(rng: np.random.Generator, weights: Any = (1.0, 1.0, 2.0, 3.0)) -> Any:
    """A Graph of few vertices and its edges {(u, v): w}, u < v."""
    n = int(rng.integers(1, 9))
    pairs = [(u, v) for u in range(n) for v in range(u + 1, n)]
    chosen = [pair for pair in pairs if rng.random() < rng.choice([0.2, 0.5, 0.9])]
    edges = {pair: float(rng.choice(weights)) for pair in chosen}
    A = sp.lil_array((n, n))
    for (u, v), w in edges.items():
        A[u, v] = A[v, u] = w
    return matchwood.graph(A.tocsr()), edges


def oracle(mate: list[int], n: int, edges: Edges) -> tuple[bool, bool, bool]:
    """Is it a matching, a maximal one, the greedy one?  By the definitions."""
    if len(mate) != n or any(not -1 <= u < n for u in mate):
        return False, False, False
    pairs = {(min(v, u), max(v, u)) for v, u in enumerate(mate) if u >= 0}
    mutual = all(u < 0 or (u != v and mate[u] == v) for v, u in enumerate(mate))
    if not mutual or not pairs <= edges.keys():
        return False, False, False
    maximal = all(mate[u] >= 0 or mate[v] >= 0 for u, v in edges)
    greedy: set[tuple[int, int]] = set()
    taken: set[int] = set()
    for u, v in sorted(edges, key=lambda e: edge_key(edges[e], *e)):
        if not taken & {u, v}:
            greedy.add((u, v))
            taken |= {u, v}
    return True, maximal, pairs == greedy


def spoiled_mates(rng: np.random.Generator, mate: list[int]) -> list[int]:
    mate, n = list(mate), len(mate)
    for _ in range(int(rng.integers(0, 3))):
        u, v = (int(x) for x in rng.integers(0, n, 2))
        kind = rng.integers(6)
        if kind == 0:
            mate[u] = int(rng.integers(-3, n + 3))
        elif kind == 1:
            mate[u], mate[v] = mate[v], mate[u]
        elif kind == 2 and 0 <= mate[u] < n:
            mate[mate[u]] = -1
            mate[u] = -1
        elif kind == 3:
            mate[u], mate[v] = v, u
        elif kind == 4:
            mate[u] = -1
        elif rng.random() < 0.1:
            return mate[:-1] if rng.random() < 0.5 else [*mate, -1]
    return mate


def in_some_type(rng: np.random.Generator, mate: list[int]) -> Any:
    """The same integers: as a list, or as an array of any type that holds them."""
    kinds = ["i1", "i2", "i4", "i8"] + (
        ["u1", "u2", "u4", "u8"] if min(mate, default=0) >= 0 else []
    )
    return list(mate) if rng.random() < 0.2 else np.array(mate, rng.choice(kinds))


def test_checks_decide_about_spoiled_mates() -> None:
    """Never accept what is wrong, never refuse what is right, whatever the type of the integers."""
    rng = np.random.default_rng(1)
    for _ in attempts(0.3):
        G, edges = random_case(rng)
        right = weighted_matching(G, threads=1).mate.tolist()
        for _ in range(20):
            mate = spoiled_mates(rng, right)
            answer = in_some_type(rng, mate)
            found = (
                is_matching(G, answer),
                is_maximal_matching(G, answer),
                is_locally_dominant(G, answer),
            )
            assert found == oracle(mate, G.n, edges), (mate, edges)


def test_what_is_no_integer_is_no_mate() -> None:
    A = matchwood.generators.path(4)
    for mate in (
        np.array([1.0, 0.0, 3.0, 2.0]),
        [1.2, 0.0, 3.0, 2.0],
        [True, False, False, True],
        np.array([1, 0, 3, 2], object),
        np.array(["1", "0", "3", "2"]),
        np.array([1, 0, 3, 2], complex),
    ):
        for function in (is_matching, is_maximal_matching, is_locally_dominant):
            with pytest.raises(TypeError, match="mate must hold integers"):
                function(A, mate)
        for function in (matching_bound, coarsen):
            with pytest.raises(TypeError, match="mate must hold integers"):
                function(A, mate)
    wraps = np.array([1, 0, 2**64 - 1, 2**64 - 1], np.uint64)
    assert not is_matching(A, wraps)
    for function in (matching_bound, coarsen):
        with pytest.raises(ValueError, match=r"no vertex of 0\.\.3"):
            function(A, wraps)


def test_wrong_mates_reach_no_kernel() -> None:
    """`matching_bound` and `coarsen` refuse what is not mutual; what they accept is right."""
    rng = np.random.default_rng(2)
    for _ in attempts(0.2):
        G, _edges = random_case(rng)
        mate = rng.integers(-2, G.n + 1, G.n) if rng.random() < 0.5 else rng.permutation(G.n)
        if rng.random() < 0.1:
            mate = mate * 10**9
        mutual = all(
            u == -1 or (0 <= u < G.n and u != v and mate[u] == v) for v, u in enumerate(mate)
        )
        for function in (matching_bound, coarsen):
            if mutual:
                function(G, mate)
            else:
                with pytest.raises(ValueError, match=f"{function.__name__}: mate"):
                    function(G, mate)
        if mutual:
            value, dual = matching_bound(G, mate)
            check_bound(G, (value, dual))
            check_coarsening(G, mate, coarsen(G, mate))


def spoiled_number(rng: np.random.Generator, value: float) -> Any:
    wrong = [
        value * 1.001 + 1e-300,
        value * 0.999 - 1e-300,
        np.nan,
        np.inf,
        -value - 1,
        "1",
        None,
        1j,
    ]
    return wrong[rng.integers(len(wrong))]


def test_checks_refuse_spoiled_numbers() -> None:
    rng = np.random.default_rng(3)
    for _ in attempts(0.2):
        G, edges = random_case(rng)
        if not edges:
            continue
        method = str(rng.choice(METHODS))
        if method == "exact" and NO_RUSTWORKX:
            continue
        found = weighted_matching(G, method=method, threads=1)
        found.check(G)
        assert refused(
            dataclasses.replace(found, weight=spoiled_number(rng, found.weight)).check, G
        )
        for bound in (np.nan, found.weight * 0.99, max(edges.values()) * 0.99, "1"):
            assert refused(
                dataclasses.replace(found, _origin=found._origin._replace(bound=bound)).check, G
            )
        empty = dataclasses.replace(found, mate=np.full(G.n, -1, np.int32), weight=0.0)
        assert refused(empty.check, G), found.method
        value, dual = matching_bound(G, found)
        check_bound(G, (value, dual))
        assert refused(check_bound, G, (spoiled_number(rng, value), dual))
        u, v = list(edges)[rng.integers(len(edges))]
        for wrong in (np.nan, np.inf, -dual[u] - 1):
            spoiled = dual.copy()
            spoiled[u] = wrong
            assert refused(check_bound, G, (value, spoiled))
        low = dual.copy()
        low[u], low[v] = edges[u, v] / 2, edges[u, v] * 0.499
        assert refused(check_bound, G, (float(low.sum()), low))
        assert refused(check_bound, G, (value, dual[:-1]))
    if NO_RUSTWORKX:
        pytest.skip(f"{NO_RUSTWORKX}; the other methods passed")


def test_each_method_is_held_to_its_promise() -> None:
    """Another matching than the one answer is refused, where there is only one answer."""
    pytest.importorskip("rustworkx", reason="a heaviest matching needs rustworkx here")
    rng = np.random.default_rng(4)
    for _ in attempts(0.2):
        G, edges = random_case(rng)
        by_order = weighted_matching(G, method="random_weighted", threads=1)
        best = weighted_matching(G, method="exact")
        some = maximal_matching(G, weighted=True, threads=1)
        some.check(G)
        for _ in range(6):
            mate = np.array(spoiled_mates(rng, by_order.mate.tolist()))
            if mate.tolist() != by_order.mate.tolist():
                assert refused(check_random_weighted, G, mate)
            mate = np.array(spoiled_mates(rng, best.mate.tolist()))
            if not oracle(mate.tolist(), G.n, edges)[0]:
                continue
            weight = sum(edges[v, u] for v, u in enumerate(mate.tolist()) if u > v)
            other = dataclasses.replace(
                best, mate=mate, weight=weight, _origin=best._origin._replace(bound=None)
            )
            assert refused(check_exact, G, other) == (weight < best.weight)
            mate = np.array(spoiled_mates(rng, some.mate.tolist()))
            right = oracle(mate.tolist(), G.n, edges)[1]
            assert refused(check_maximal_matching, G, mate, weighted=True) != right


def test_spoiled_coarsenings_are_refused() -> None:
    rng = np.random.default_rng(5)
    for _ in attempts(0.3):
        G, _ = random_case(rng)
        found = weighted_matching(G, threads=1)
        members = rng.integers(1, 5, G.n) if rng.random() < 0.5 else rng.random(G.n)
        right = coarsen(G, found, vertex_weights=members, threads=1)
        check_coarsening(G, found, right, vertex_weights=members)
        for wrong in _spoiled_coarsenings(rng, right):
            assert refused(check_coarsening, G, found, wrong, vertex_weights=members), wrong


def _spoiled_coarsenings(rng: np.random.Generator, right: Any) -> Any:
    k = right.vertex_weights.size
    at = int(rng.integers(k))
    for bad in (right.vertex_weights[at] + 1, np.nan):
        weights = right.vertex_weights.astype(float if bad != bad else right.vertex_weights.dtype)
        weights[at] = bad
        yield dataclasses.replace(right, vertex_weights=weights)
    yield dataclasses.replace(right, vertex_weights=right.vertex_weights[:-1])
    yield dataclasses.replace(right, map=right.map + 1)
    yield dataclasses.replace(right, map=right.map.astype(float))
    if right.matrix.nnz:
        at = int(rng.integers(right.matrix.nnz))
        for bad in (np.nan, np.inf, 0.0, right.matrix.data[at] * 1.001):
            matrix = right.matrix.copy()
            matrix.data[at] = bad
            yield dataclasses.replace(right, matrix=matrix)
    i, j = (int(x) for x in rng.integers(0, k, 2))
    if right.matrix[i, j] == 0:
        matrix = right.matrix.tolil()
        matrix[i, j] = 1.0
        yield dataclasses.replace(right, matrix=matrix.tocsr())


def test_weights_at_the_ends_of_double_precision() -> None:
    """An answer that passes its own check, with a true bound; or an error by name."""
    rng = np.random.default_rng(6)
    for k in attempts(0.3):
        few = rng.choice(EXTREMES, 2) if k % 2 else EXTREMES
        G, edges = random_case(rng, few)
        for method in METHODS:
            with contextlib.suppress(matchwood.errors.EngineUnavailable):
                _attack_extreme(G, method)
        listed = [(u, v, w) for (u, v), w in edges.items()]
        with named_error("streaming_matching"):
            found = streaming_matching(listed, n=G.n)
            check_streaming(G, found)
        with named_error("maximal_matching"):
            maximal_matching(G, weighted=True, threads=1).check(G)
        with named_error("coarsen"):
            mate = weighted_mates(G)
            check_coarsening(G, mate, coarsen(G, mate, threads=1))
        with named_error("(coarsen|weighted_matching)"):
            coarsening_hierarchy(G, until=1, threads=1)


def weighted_mates(G: Any) -> Any:
    """Mates by number: those of a maximal matching without weights."""
    return maximal_matching(G, threads=1).mate


@contextlib.contextmanager
def named_error(function: str) -> Any:
    """Sums that are no numbers may be refused, by name and with a way out."""
    try:
        yield
    except ValueError as error:
        named = re.search(rf"^{function}: .*divide the weights by a power of two", str(error))
        if isinstance(error, matchwood.CheckFailed) or not named:
            raise


def _attack_extreme(G: Any, method: str) -> None:
    with named_error("(weighted_matching|matching_bound)"):
        found = weighted_matching(G, method=method, threads=1)
        found.check(G)
        check_bound(G, matching_bound(G, found, threads=1))
        assert found.weight <= found.bound * (1 + 1e-9)
        assert 0.0 <= found.quality <= 1 + 1e-9
        found.check(G)


@pytest.mark.parametrize("method", METHODS)
def test_one_answer_at_odd_numbers_of_threads(method: str) -> None:
    if method == "exact" and NO_RUSTWORKX:
        pytest.skip(NO_RUSTWORKX)
    rng = np.random.default_rng(7)
    for _ in attempts(0.15):
        G, _ = random_case(rng)
        seed = int(rng.integers(100))
        ties = str(rng.choice(["hash", "index"]))
        options = {"method": method, "rng": seed, "ties": ties}
        expected = weighted_matching(G, engine="reference", **options)
        for threads in THREADS:
            found = weighted_matching(G, threads=threads, **options)
            if method == "exact":  # equally heavy ones are all right
                assert found.weight == pytest.approx(expected.weight)
                continue
            assert found.mate.tolist() == expected.mate.tolist()
            assert found.weight == pytest.approx(expected.weight, rel=1e-12)


def test_proposals_and_levels_at_odd_numbers_of_threads() -> None:
    rng = np.random.default_rng(8)
    for _ in attempts(0.3):
        G, _ = random_case(rng)
        options: dict[str, Any] = {
            "rng": int(rng.integers(100)), "weighted": bool(rng.integers(2)),
            "method": str(rng.choice(["proposal", "serial"])),
        }  # fmt: skip
        expected = maximal_matching(G, engine="reference", **options)
        coarse = coarsen(G, expected, engine="reference")
        for threads in THREADS:
            found = maximal_matching(G, threads=threads, **options)
            assert found.mate.tolist() == expected.mate.tolist()
            assert found.matched_by_round == expected.matched_by_round
            level = coarsen(G, found, threads=threads)
            assert level.map.tolist() == coarse.map.tolist()
            assert (level.matrix != coarse.matrix).nnz == 0
            bound = matching_bound(G, found, threads=threads)
            assert np.array_equal(bound.dual, matching_bound(G, found, threads=1).dual)
