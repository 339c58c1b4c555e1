"""Matchings and spanning forests under mpiexec: the same bodies as in threads."""

from __future__ import annotations

import pytest

from dist.mpi import RANKS, mpiexec, needs_mpi

pytestmark = needs_mpi

SCRIPT = """
import numpy as np
import matchwood
from dist import test_forest, test_matching
from dist.mpi import say
from graphs import ZOO

NAMES = ("few weights", "rmat, directed", "int64 indices")
with matchwood.dist.world() as comm:
    assert comm.kind == "mpi"
    for k, name in enumerate(NAMES):
        A, order = ZOO[name](), ("given", "hashed")[k % 2]
        ties = ("hash", "index")[k % 2]
        one = matchwood.weighted_matching(A, ties=ties)
        mate, edges, _ = test_matching.found_on(comm, A, None, order, {"ties": ties})
        assert np.array_equal(mate, one.mate) and np.array_equal(edges, one.edges()), name
        one = matchwood.minimum_spanning_forest(A)
        edges, weights, found = test_forest.found_on(comm, A, None, False, {"order": order})
        assert np.array_equal(edges, one.edges) and np.array_equal(weights, one.weights), name
        assert found.components == one.components
        G = test_matching.spread(comm, A, None)
        empty = G.vector(np.full(G.grid.owned, -1))
        assert matchwood.matching.is_matching(G, empty)
        assert not matchwood.matching.is_locally_dominant(G, empty)
        assert not matchwood.spanning.is_spanning_forest(G, np.empty((0, 2), np.int64))
say("well")
"""


@pytest.mark.parametrize("ranks", RANKS)
def test_the_answers_of_one_machine(ranks):
    assert mpiexec(ranks, SCRIPT, MATCHWOOD_NUM_THREADS="1").lines == ["well"] * ranks
