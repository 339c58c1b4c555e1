"""PageRank and label propagation under mpiexec: one machine's answers."""

from __future__ import annotations

import pytest

from dist.mpi import RANKS, mpiexec, needs_mpi

pytestmark = needs_mpi

SCRIPT = """
import numpy as np, matchwood as mw
from graphs import grid, rmat
from dist.mpi import say
from matchwood.communities import subrounds
from spread_graphs import slab

subrounds.MOST_SUBROUNDS = 4  # else small graphs have many more
A, B = rmat(9, 6, symmetric=False), grid(6, 9)
p = np.random.default_rng(2).random(512)
with mw.dist.world() as comm:
    G = mw.distribute(slab(A, comm.rank, comm.size), comm=comm)
    for options in ({}, {"weighted": True, "personalization": p}):
        found = mw.pagerank(G, **options)
        mw.check.check_pagerank(G, found, **options)
        right = mw.pagerank(A, **options)
        assert found.iterations == right.iterations
        assert np.abs(found.scores.gather(None) - right.scores).max() < 1e-10
    H = mw.distribute(slab(B, comm.rank, comm.size), comm=comm)
    found, right = mw.label_propagation(H), mw.label_propagation(B)
    mw.check.check_label_propagation(H, found)
    assert np.array_equal(found.labels.gather(None), right.labels)
    assert (found.count, found.rounds) == (right.count, right.rounds)
    assert found.modularity == right.modularity
    say("right")
"""


@pytest.mark.parametrize("ranks", RANKS)
def test_one_answer(ranks):
    assert mpiexec(ranks, SCRIPT).lines == ["right"] * ranks
