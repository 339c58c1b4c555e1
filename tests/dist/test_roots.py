"""Roots of a forest whose parents are spread over ranks: one machine's answers and errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matchwood
from matchwood import dist
from matchwood.check import check_forest_roots, is_forest_roots
from spread_graphs import FEW_GRIDS, GRIDS, alike, assert_refused, tried
from traversal.test_pointer_jumping import a_forest, outcome


def empty(comm, n, shape, **options):
    """A graph without edges: vectors are spread as its vertices are."""
    none = np.empty((0, 2), np.int64)
    grid = f"{shape[0]}x{shape[1]}"
    return matchwood.distribute((n, none), comm=comm, grid=grid, **options)


def climbed(comm, n, shape, parents, options):
    G = empty(comm, n, shape, **options)
    found = []
    for parent in parents:
        vector = G.vector(parent[G.ids])
        before = vector.local.copy()
        said = tried(lambda vector=vector: matchwood.forest_roots(vector))
        assert np.array_equal(vector.local, before)
        if isinstance(said, str):
            wrong = tried(lambda vector=vector: check_forest_roots(vector, vector))
            assert wrong == said.replace(" forest_roots", " check_forest_roots")
        else:
            check_forest_roots(vector, said)
            assert said.dtype == (np.int32 if parent.dtype == np.int32 else np.int64)
            said = said.gather(None).tolist()
        found.append(said)
    return found


def compared(n, parents, shapes, **options):
    expected = []
    for parent in parents:
        said = outcome(parent)
        expected.append(f"ValueError: {said}" if isinstance(said, str) else said)
    for shape in shapes:
        for found in dist.run(climbed, shape[0] * shape[1], n, shape, parents, options):
            assert found == expected, shape


def some_parents(n):
    """Forests of several depths, and parents with cycles."""
    rng = np.random.default_rng(n)
    chain = np.arange(n) - 1
    return [
        *(a_forest(n, back, seed=back).astype(np.int32) for back in (1, 3, 40)),
        chain,
        np.roll(np.arange(n), 1),  # one cycle
        *(rng.integers(-1, n, n) for _ in range(4)),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("n", [0, 1, 2, 30, 257])
def test_roots_are_those_of_one_machine(n):
    compared(n, some_parents(n), FEW_GRIDS)
    compared(n, some_parents(n), ((2, 3),), order="hashed")


@pytest.mark.slow
@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_roots_on_all_grids(n):
    compared(n, some_parents(n), GRIDS)


@pytest.mark.slow
@given(st.lists(st.integers(-1, 19), min_size=1, max_size=20))
@settings(max_examples=25)
def test_random_parents(parents):
    parent = np.array([min(p, len(parents) - 1) for p in parents], np.int64)
    compared(parent.size, [parent], ((2, 2), (1, 3)))


def test_rounds_are_logarithmic():
    """A way of 2^14 steps: 15 rounds, and one that finds nothing left to do."""
    parent = np.arange(1 << 14) - 1

    def body(comm):
        told = []
        comm.listener = lambda round, active, traffic: told.append((round, active))
        G = empty(comm, parent.size, (2, 2))
        matchwood.forest_roots(G.vector(parent[G.ids]))
        return told

    for told in dist.run(body, 4):
        assert told[-1] == (15, 0)


@pytest.mark.slow
def test_the_check_finds_every_change_on_all_ranks():
    parent = a_forest(12, 4, seed=3)

    def body(comm, order):
        G = empty(comm, 12, (2, 2), order=order)
        vector = G.vector(parent[G.ids])
        right = matchwood.forest_roots(vector)
        whole = right.gather(None)
        said = []
        for v in range(12):
            for wrong in range(-1, 13):
                local = right.local.copy()
                local[G.ids == v] = wrong
                said.append(tried(lambda x=local: check_forest_roots(vector, G.vector(x))))
                assert (said[-1] is None) == (wrong == whole[v])
        assert is_forest_roots(vector, right)
        assert not is_forest_roots(vector, G.vector(local))
        return said

    for order in ("given", "hashed"):
        alike(body, 4, order)


def test_what_is_refused():
    def body(comm):
        G, other = empty(comm, 8, (2, 2)), empty(comm, 8, (1, 4))
        right = G.vector(G.ids.copy())
        wrong = G.vector(np.where(G.ids == 5, 9, G.ids))
        floats = G.vector(G.ids.astype(float)) if comm.rank == 1 else right
        return [
            tried(lambda: matchwood.forest_roots(wrong)),
            tried(lambda: matchwood.forest_roots(floats)),
            tried(lambda: matchwood.forest_roots(right, engine="reference")),
            tried(lambda: matchwood.forest_roots(right, threads=-1)),
            tried(lambda: check_forest_roots(right, other.vector(other.ids.copy()))),
            tried(lambda: check_forest_roots(right, right.local)),
            tried(lambda: check_forest_roots(right, matchwood.forest_roots(right))),
        ]

    found = alike(body, 4)
    texts = [
        "ValueError: forest_roots: parent must lie within -1..7, got 9 at 5 (on rank 1)",
        "TypeError: forest_roots: parent must hold integers, got dtype float64 (on rank 1)",
        "EngineUnavailable: forest_roots: engine must be None",
        "ValueError: forest_roots: threads must be",
        "CheckFailed: forest roots: root must be spread over 2x2 ranks",
        "TypeError: check_forest_roots: root must be a DistributedVector",
    ]
    assert_refused(found, texts)
