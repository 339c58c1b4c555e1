"""The communicator of MPI and the answers of its ranks, under mpiexec.

What the ranks do, BODIES, compares whole answers with those of one machine.  All of it runs in one
start for each number of ranks: to start Python and load compiled code takes longer than the work.
"""

from __future__ import annotations

import numpy as np
import pytest

import matchwood as mw
from dist import bodies, test_forest, test_matching
from dist.mpi import RANKS, SHARES, by_messages, mpiexec, needs_mpi
from graphs import ZOO, grid, rmat
from matchwood.communities import subrounds
from matchwood.engines.ranks.networks.shared import Shared, open_region
from spread_graphs import slab

pytestmark = needs_mpi

SCRIPT = """
import sys
import matchwood as mw
from dist.mpi import say
from dist.test_answers_mpi import BODIES

with mw.dist.world() as comm:
    assert comm.kind == "mpi"
    assert comm.size == int(sys.argv[1])
    for body in BODIES:
        body(comm)
        say(body.__name__, comm.rank)
assert comm.closed
"""


def operations(comm):
    """By shared memory, also in many steps; then by messages, also in many parts."""
    few = comm.size not in (1, 3)
    bodies.everything(comm, few=few)
    expected = mw.dist.run(sums, comm.size)[comm.rank]
    assert sums(comm) == expected
    if comm.size > 1 and SHARES:
        assert isinstance(comm, Shared)
        assert isinstance(comm.split(0), Shared)
        small = Shared(comm.base, open_region(comm.base, 512 * comm.size))  # bytes of a rank
        bodies.reductions(small, ["complex128"], (0, 1, 300))
        bodies.gathers(small, ["int16"], (0, 5, 2000))
        bodies.things(small)
        assert sums(small) == expected
    hosts = comm.session.hosts
    if comm.size > 2 and SHARES:  # two ranks to a host: only those of one share memory
        comm.session.hosts = [rank // 2 for rank in range(comm.size)]
        pair = comm.split(comm.rank // 2)
        assert isinstance(pair, Shared) == (pair.size == 2)
        assert not isinstance(comm.split(0), Shared)
        for each in (pair, comm.split(0)):
            bodies.reductions(each, [np.float32], (5,))
    plain = by_messages(comm)
    bodies.everything(plain, few=True)
    whole = plain.part
    for part in (1, 5):  # elements of a message; more of them go as several
        plain.part = part
        small = plain.split(0)
        assert small.part == part
        for each in (plain, small):
            bodies.reductions(each, ["complex128"], (0, 1, 20))
            bodies.gathers(each, ["int16"], (0, 5))
            bodies.strides(each)
    plain.part = whole
    assert sums(plain) == expected
    comm.session.hosts = hosts


def sums(comm):
    """Sums of floats, whose bits depend on the order."""
    lengths = (1, 50, 5000)
    return [comm.allreduce(bodies.drawn(n, np.float32, n, comm.rank)).tobytes() for n in lengths]


def components(comm):
    names = ("0x0", "one edge", "disconnected", "directed path")
    for A in (*(ZOO[name]() for name in names), rmat(9, 8, symmetric=False)):
        n = A.shape[0]
        for order in ("given", "hashed") if n > 60 else ("given",):
            G = mw.distribute(slab(A, comm.rank, comm.size), comm=comm, order=order)
            right = mw.connected_components(A)
            for method in ("auto", "colour"):
                found = mw.connected_components(G, method=method)
                assert found.count == right.count
                assert np.array_equal(found.labels.gather(None), right.labels)
            mw.check.check_connected_components(G, found)
            sources = sorted({0, n // 2}) if n else []
            search, one = mw.bfs(G, sources), mw.bfs(A, sources)
            assert np.array_equal(search.level.gather(None), one.level)
            assert np.array_equal(search.parent.gather(None), one.parent)
            assert search.rounds == one.rounds
            mw.check.check_bfs(G, sources, search)
            roots = mw.forest_roots(search.parent)
            assert np.array_equal(roots.gather(None), mw.forest_roots(one.parent))
            mw.check.check_forest_roots(search.parent, roots)
            if n > 1:
                broken = G.vector(np.where(G.ids == n - 1, n, roots.local))
                assert not mw.check.is_forest_roots(search.parent, broken)


def trees(comm):
    """Matchings and spanning forests: the same bodies as in threads."""
    for k, name in enumerate(("few weights", "rmat, directed", "int64 indices")):
        A, order = ZOO[name](), ("given", "hashed")[k % 2]
        ties = ("hash", "index")[k % 2]
        one = mw.weighted_matching(A, ties=ties)
        mate, edges, _ = test_matching.found_on(comm, A, None, order, {"ties": ties})
        assert np.array_equal(mate, one.mate), name
        assert np.array_equal(edges, one.edges()), name
        one = mw.minimum_spanning_forest(A)
        edges, weights, found = test_forest.found_on(comm, A, None, False, {"order": order})
        assert np.array_equal(edges, one.edges), name
        assert np.array_equal(weights, one.weights), name
        assert found.components == one.components
        G = test_matching.spread(comm, A, None)
        empty = G.vector(np.full(G.grid.owned, -1))
        assert mw.matching.is_matching(G, empty)
        assert not mw.matching.is_locally_dominant(G, empty)
        assert not mw.spanning.is_spanning_forest(G, np.empty((0, 2), np.int64))


def ranking(comm):
    subrounds.MOST_SUBROUNDS = 4  # else small graphs have many more
    A, B = rmat(9, 6, symmetric=False), grid(6, 9)
    p = np.random.default_rng(2).random(512)
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


BODIES = (operations, components, trees, ranking)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", RANKS)
def test_answers_are_those_of_one_machine(ranks):
    copy = str(ranks % 2)  # with one, the first rank does it all
    options = {"MATCHWOOD_NUM_THREADS": "1", "MATCHWOOD_DIST_COPY": copy}
    done = mpiexec(ranks, SCRIPT, str(ranks), timeout=240, **options)
    names = ("components", "operations", "ranking", "trees")
    assert done.lines == [f"{body} {rank}" for body in names for rank in range(ranks)]
