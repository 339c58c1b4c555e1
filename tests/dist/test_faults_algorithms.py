"""A rank that fails at any collective of a distributed algorithm: all ranks raise."""

from __future__ import annotations

import random
import time

import pytest

import matchwood as mw
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


@pytest.mark.slow
def test_failures_at_random_collectives():
    inject(60, 1)


@pytest.mark.slow
def test_failures_at_many_collectives():
    inject(1000, 2)


def fail_at_random_collectives(seed):
    """The same by processes, each of which calls this under mpiexec; see test_faults_mpi.py."""
    A, rng = graph(), random.Random(seed)
    for _ in range(12):
        comm = mw.dist.world()
        name, victim, at = (
            rng.choice(list(ALGORITHMS)),
            rng.randrange(comm.size),
            rng.randint(1, 25),
        )
        with pytest.raises((Boom, mw.RankFailed)) as failed:
            failing(comm, A, name, victim, at)
        assert getattr(failed.value, "type", "Boom") == "Boom", (name, victim, at)
