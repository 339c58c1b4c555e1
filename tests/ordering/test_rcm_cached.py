"""Graphs that fit the caches: ordered in one kernel, symmetric by pairs, united in one pass."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

import matchwood
from graphs import ZOO, disjoint, grid, path, rmat, shuffled, star
from matchwood.ordering import cuthill_mckee, rcm_ordering, reverse_cuthill_mckee
from matchwood.ordering.rcm import cpu, reference
from matchwood.ordering.rcm.cpu import cached
from matchwood.primitives.inspect import cpu as inspect_cpu
from matchwood.primitives.inspect import reference as inspect_reference
from matchwood.primitives.symmetrize import cpu as symmetrize_cpu
from matchwood.primitives.symmetrize import reference as symmetrize_reference
from strategies import graphs

NONE = np.empty(0, np.int64)


@pytest.fixture(params=["tried", "searched"])
def rule(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have starts found as in small graphs, and as in larger ones."""
    if request.param == "searched":
        monkeypatch.setattr(reference, "SMALL_GRAPH_EDGES", -1)


def with_loops(A: sp.csr_array, every: int) -> sp.csr_array:
    """A with a loop at each vertex that `every` divides."""
    own = np.arange(0, A.shape[0], every)
    loops = sp.coo_array((np.ones(own.size), (own, own)), shape=A.shape)
    return sp.csr_array(A + loops)


def assert_order(A: Any) -> None:
    G = matchwood.graph(A)
    expected, counted = reference.order(G, NONE, "auto", False)
    for threads in (1, 2):
        found, counters = cpu.order(G, NONE, "auto", False, threads=threads)
        assert found.tolist() == expected.tolist()
        assert (counters["components"], counters["levels"]) == (
            counted["components"],
            counted["levels"],
        )
    assert reverse_cuthill_mckee(A).tolist() == expected[::-1].tolist()
    assert cuthill_mckee(A, method="serial").tolist() == expected.tolist()


@pytest.mark.usefixtures("rule")
def test_equals_the_reference() -> None:
    for make in ZOO.values():
        A = make()
        assert_order(A)
        assert_order(with_loops(A, 1))
        assert_order(with_loops(A, 3))
    for seed in range(4):
        A = shuffled(disjoint([rmat(6, 3), path(5), star(40), grid(5, 7)]), isolated=3, seed=seed)
        assert_order(A)
        assert_order(with_loops(A, 2))


# For the wider type all is compiled once more.
@pytest.mark.parametrize("index_dtype", [np.int32, pytest.param(np.int64, marks=pytest.mark.slow)])
@pytest.mark.usefixtures("rule")
def test_long_lists_of_children(index_dtype: type) -> None:
    """More than 32 children of a parent are sorted by digits."""
    hubs = disjoint([star(300), rmat(7, 20)])
    assert_order(matchwood.graph(hubs, index_dtype=index_dtype))


@given(graphs())
def test_random_graphs(A: sp.csr_array) -> None:
    assert_order(A)


def test_counters_and_the_way_for_larger_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    A = shuffled(disjoint([grid(9, 11), path(40)]))
    found = rcm_ordering(A)
    monkeypatch.setattr(cached, "CACHED_ENTRIES", -1)
    other = rcm_ordering(A)
    assert found.perm.tolist() == other.perm.tolist()
    for word in ("method", "components", "levels", "searches", "threads", "front"):
        assert found.counters[word] == other.counters[word], word
    assert set(found.seconds) == set(other.seconds)


def test_a_pattern_that_is_not_symmetric_does_no_harm() -> None:
    """As if the gate had been deceived: an error or some order, and nothing else is touched."""
    rng = np.random.default_rng(1)
    for k in range(120):
        n = int(rng.integers(2, 12))
        A = sp.csr_array((rng.random((n, n)) < 0.3) & ~np.eye(n, dtype=bool))
        view = matchwood.graph(A).directed_pattern()
        perm = np.arange(n)
        with contextlib.suppress(ValueError):
            perm = cached.order(view, 0, n, k % 2 == 0, NONE, True, "test").perm
        assert sorted(perm.tolist()) == list(range(n))
    one_way = sp.csr_array([[0, 1, 0], [0, 0, 1], [0, 1, 0]])
    with pytest.raises(ValueError, match="symmetric"):
        view = matchwood.graph(one_way).directed_pattern()
        cached.order(view, 0, 3, True, NONE, True, "test")


def test_pairs_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(0)
    for k in range(400):
        n = int(rng.integers(1, 9))
        dense = rng.random((n, n)) < rng.choice([0.1, 0.3, 0.8])
        if k % 2:
            dense = dense | dense.T
        if k % 4 == 1:
            i, j = rng.integers(0, n, 2)
            dense[i, j] ^= True
        A = sp.csr_array(dense)
        expected = inspect_reference.symmetry(A.indptr, A.indices)
        assert inspect_cpu.symmetry_by_pairs(A.indptr, A.indices) == expected
        wide = A.indptr.astype(np.int64), A.indices.astype(np.int64)
        assert inspect_cpu.symmetry_by_pairs(*wide) == expected


def test_union_of_a_small_pattern() -> None:
    rng = np.random.default_rng(2)
    for _ in range(100):
        n = int(rng.integers(1, 9))
        A = sp.csr_array(rng.random((n, n)) < rng.choice([0.0, 0.1, 0.3, 0.8]))
        expected = symmetrize_reference.union_with_transpose(A.indptr, A.indices, None)
        for kind in (np.int32, np.int64):
            found = symmetrize_cpu.small_union(A.indptr.astype(kind), A.indices.astype(kind))
            assert found[0].tolist() == expected[0].tolist()
            assert found[1].tolist() == expected[1].tolist()
            assert found[0].dtype == found[1].dtype == kind
