"""Graphs that are spread over ranks with GPUs: the answers are those of one machine.

Four ranks share one GPU.  One start for all: see `ON_GPU`.
"""

from __future__ import annotations

import pytest

from dist.mpi import mpiexec

ON_GPU = """
import sys
import numpy as np
import matchwood as mw
from matchwood import engines
from graphs import ZOO
from spread_graphs import slab

NAMES = ("0x0", "one edge", "few weights", "rmat", "rmat, directed", "star", "path", "float32",
         "int64 indices", "self loops", "explicit zeros")


def whole(vector):
    assert engines.location(vector.local) == "gpu"
    return vector.gather(None)


def forest(comm, found):
    edges = np.concatenate(comm.objects(engines.moved(found.edges, "cpu")))
    weights = np.concatenate(comm.objects(engines.moved(found.weights, "cpu")))
    order = np.lexsort((edges[:, 1], edges[:, 0]))
    return edges[order], weights[order]


def matchings(G, A):
    for ties in ("hash", "index"):
        one = mw.weighted_matching(A, method="dominant", ties=ties, rng=5)
        found = mw.weighted_matching(G, method="dominant", ties=ties, rng=5)
        found.check(G)
        assert np.array_equal(whole(found.mate), one.mate)
        assert np.isclose(found.weight, one.weight, rtol=1e-12, atol=0)
        assert found.rounds == one.rounds or G.grid.p == 1


def forests(comm, G, A):
    for maximum in (False, True):
        one = mw.minimum_spanning_forest(A, maximum=maximum)
        found = mw.minimum_spanning_forest(G, maximum=maximum)
        mw.check.check_spanning_forest(G, found, maximum=maximum)
        edges, weights = forest(comm, found)
        assert np.array_equal(edges, one.edges)
        assert weights.tobytes() == one.weights.tobytes()
        assert (found.components, found.rounds) == (one.components, one.rounds)


def others(G, A):
    found, one = mw.connected_components(G), mw.connected_components(A)
    assert found.count == one.count
    assert np.array_equal(whole(found.labels), one.labels)
    if A.shape[0]:
        found, one = mw.bfs(G, 0), mw.bfs(A, 0)
        assert np.array_equal(found.level.gather(None), one.level)
        assert np.array_equal(found.parent.gather(None), one.parent)
        found, one = mw.pagerank(G), mw.pagerank(A)
        assert np.abs(found.scores.gather(None) - one.scores).max() < 1e-10


with mw.dist.world("gpu", transport=sys.argv[1]) as comm:
    for name in NAMES:
        for order in ("given", "hashed"):
            A = ZOO[name]()
            G = mw.distribute(slab(A, comm.rank, comm.size), comm=comm, order=order).on("gpu")
            matchings(G, A)
            forests(comm, G, A)
            others(G, A)
            A = abs(A)
            G = mw.distribute(slab(A, comm.rank, comm.size), comm=comm, order=order).on("gpu")
            found, one = mw.label_propagation(G), mw.label_propagation(A)
            assert np.array_equal(found.labels.gather(None), one.labels)
"""


@pytest.mark.gpu
@pytest.mark.mpi
@pytest.mark.parametrize("transport", ["auto", "host"])
def test_answers_of_ranks_with_gpus(transport):
    for ranks in (1, 2, 4):
        mpiexec(ranks, ON_GPU, transport, timeout=300)
