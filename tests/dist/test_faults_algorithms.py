"""A rank that fails at any collective of a distributed algorithm: all ranks raise."""

from __future__ import annotations

import random
import time

import pytest

import matchwood as mw
from dist.mpi import mpiexec
from dist.walks import Boom
from matchwood.dist import run

ALGORITHMS = {
    "components": lambda G: mw.connected_components(G),
    "colour": lambda G: mw.connected_components(G, method="colour"),
    "bfs": lambda G: mw.bfs(G, 0),
    "matching": lambda G: mw.weighted_matching(G),
    "pagerank": lambda G: mw.pagerank(G),
    "labels": lambda G: mw.label_propagation(G),
    "forest": lambda G: mw.minimum_spanning_forest(G),
}


def graph():
    return mw.generators.random_weights(mw.generators.rmat(6, rng=1), rng=2)


def failing(comm, A, name, victim, at):
    """Distribute the graph and run an algorithm; the victim fails before collective `at`.

    Returns the number of collectives.
    """
    calls = 0

    def before(which, operation):
        nonlocal calls
        calls += 1
        if comm.rank == victim and calls == at:
            raise Boom(operation)

    comm.session.before = before
    with comm:
        G = mw.distribute(A if comm.rank == 0 else None, comm=comm)
        ALGORITHMS[name](G)
    return calls


def inject(count, seed):
    A, rng = graph(), random.Random(seed)
    lengths = {
        (name, ranks): run(failing, ranks, A, name, -1, 0)[0]
        for name in ALGORITHMS
        for ranks in (2, 4)
    }
    for _ in range(count):
        name, ranks = rng.choice(list(lengths))
        at, victim = rng.randint(1, lengths[name, ranks]), rng.randrange(ranks)
        start = time.monotonic()
        with pytest.raises(mw.RankFailed) as failed:
            run(failing, ranks, A, name, victim, at)
        case = (name, ranks, victim, at)
        assert (failed.value.rank, failed.value.type) == (victim, "Boom"), case
        assert time.monotonic() - start < 60, case  # none waits for the timeout


def test_failures_at_random_collectives():
    inject(60, 1)


@pytest.mark.slow
def test_failures_at_many_collectives():
    inject(1000, 2)


UNDER_MPI = """
import random
import numpy as np
import matchwood as mw
from dist.mpi import say
from dist.test_faults_algorithms import ALGORITHMS, Boom, failing, graph

A, rng = graph(), random.Random(3)
for _ in range(12):
    name, victim, at = rng.choice(list(ALGORITHMS)), rng.randrange(4), rng.randint(1, 25)
    try:
        failing(mw.dist.world(), A, name, victim, at)
        say("nothing failed", name, victim, at)
    except (Boom, mw.RankFailed) as error:
        assert getattr(error, "type", "Boom") == "Boom", error
with mw.dist.world() as comm:
    assert comm.allreduce(np.ones(1))[0] == comm.size
"""


@pytest.mark.mpi
def test_failures_at_random_collectives_of_mpi():
    assert mpiexec(4, UNDER_MPI).lines == []
