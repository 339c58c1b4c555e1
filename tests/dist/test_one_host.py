"""The whole graph that the ranks of a host write together, and the CPUs that they lend."""

from __future__ import annotations

import os

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import matchwood
from dist.mpi import SHARES, mpiexec
from dist.test_back import PLACES, parts, same_graph
from dist.test_shared import neighbour
from graphs import path
from matchwood import dist
from matchwood.gate.distributed import one_host
from matchwood.gate.distributed.one_host import cpu
from spread_graphs import slab, tried

pytestmark = pytest.mark.skipif(not SHARES, reason="the system has no anonymous files")
GRIDS = ("1x2", "2x1", "1x3", "2x2", "3x2", "1x5", "2x3", "7x1")


def whole(comm, mine, threads, options):
    """The first rank's graph; no rank gathers it."""
    G = matchwood.distribute(mine, comm=neighbour(comm), **options)
    G.gather, G.threads = None, threads
    found = one_host.whole_graph(G)
    assert one_host.whole_graph(G) is found
    return found


@pytest.mark.parametrize("places", PLACES, ids=str)
def test_it_is_the_graph_of_one_machine(places):
    """Of all kinds of input; entries given twice stay in their order."""
    for turn, (part, given_whole, options) in enumerate(parts()):

        def body(comm, part=part, options=options, turn=turn):
            mine = part(comm.rank, comm.size)
            return whole(comm, mine, 1 + turn % 3, {**options, **places})

        size = 2 + turn % 3
        given_all = given_whole(size) if callable(given_whole) else given_whole
        found, *others = dist.run(body, size)
        assert others == [None] * (size - 1)
        same_graph(found, matchwood.graph(given_all, **options))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 60), st.integers(0, 400), st.sampled_from(GRIDS), st.integers(0, 99),
    st.sampled_from(("given", "hashed", "contiguous")), st.sampled_from("?bhilfd"),
)  # fmt: skip
def test_any_graph_on_any_grid(n, m, grid, seed, order, kind):
    """Rows of many entries in few columns, too, and values of all sizes."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, n, (2, m)) // (1 + rng.integers(0, 4, (2, 1)))
    edges, values = ends.T, rng.integers(1, 100, m).astype(kind)
    size = int(grid[0]) * int(grid[2])

    def body(comm):
        lo, hi = m * comm.rank // size, m * (comm.rank + 1) // size
        mine = n, edges[lo:hi], values[lo:hi]
        return whole(comm, mine, 1 + seed % 3, {"order": order, "grid": grid})

    found = dist.run(body, size)[0]
    expected = matchwood.graph((n, edges, values))
    assert np.array_equal(found.entries().indptr, expected.entries().indptr)
    assert np.array_equal(found.entries().indices, expected.entries().indices)
    mine, right = found.given_values("test"), expected.given_values("test")
    assert mine.dtype == right.dtype
    assert np.array_equal(mine, right)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_rows_go_to_their_owners(threads):
    """In their order; rows of any width, and ranks that get none."""
    rng = np.random.default_rng(threads)
    for rows, ranks in ((0, 3), (7, 1), (1000, 6)):
        owner = rng.integers(0, max(1, ranks - 1), 50).astype(one_host.OWNER)
        keys = rng.integers(0, 50, rows).astype(np.int32)
        places, bounds = cpu.by_owner(keys, owner, ranks, threads)
        order = np.argsort(owner[keys], kind="stable")
        assert np.array_equal(places[order], np.arange(rows))
        assert bounds == [0, *np.cumsum(np.bincount(owner[keys], minlength=ranks)).tolist()]
        for array in (rng.random(rows), rng.integers(0, 9, (rows, 2), np.int32)):
            into = np.zeros(array.nbytes, np.uint8)
            cpu.deal(array, places, into, threads)
            assert np.array_equal(into.view(array.dtype).reshape(array.shape), array[order])


def test_values_that_are_no_words(monkeypatch):
    """Complex numbers are gathered, and refused by the same error as on one machine."""
    A = sp.csr_array(path(9) * 1j)

    def body(comm):
        G = matchwood.distribute(slab(A, comm.rank, 3), comm=neighbour(comm))
        return one_host.whole_graph(G), one_host._joins(G)

    for rank, (found, joined) in enumerate(dist.run(body, 3)):
        assert (found is None) == (rank > 0)
        assert not joined


def test_memory_that_is_not_there(monkeypatch):
    """Without memory that ranks share, the first rank gathers."""

    def body(comm):
        near = neighbour(comm)
        G = matchwood.distribute(slab(path(9), comm.rank, 3), comm=near)
        near.shared_array = lambda nbytes: None
        return one_host.whole_graph(G)

    found = dist.run(body, 3)[0]
    same_graph(found, matchwood.graph(path(9)))


def test_a_first_rank_that_may_not_use_the_cpus_of_others(monkeypatch):
    """It works alone on small graphs where rounds are many; on others all ranks work."""

    def body(comm, entries):
        monkeypatch.setattr(one_host, "usable", lambda cpus: False)
        monkeypatch.setattr(one_host, "ALONE_ENTRIES", entries)
        G = matchwood.distribute(slab(path(40), comm.rank, 3), comm=neighbour(comm))
        matchwood.weighted_matching(G)
        matchwood.connected_components(G)
        return [G.stats[name] for name in ("weighted_matching", "connected_components")]

    assert dist.run(body, 3, 78)[0] == ["on the first of 3 ranks, 1 thread", "on all 3 ranks"]
    assert dist.run(body, 3, 77)[0] == ["on all 3 ranks"] * 2


LENT = """
import os
own = sorted(os.sched_getaffinity(0))
rank = int(os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")))
os.sched_setaffinity(0, own[rank : rank + 1])    # as launchers do
import matchwood as mw
from dist.mpi import say

with mw.dist.world() as comm:
    A = mw.generators.grid((300, 300))
    G = mw.distribute(A if comm.rank == 0 else None, comm=comm)
    found = mw.label_propagation(G).labels.gather(None)
    assert (found == mw.label_propagation(A).labels).all()
    say(comm.rank, len(os.sched_getaffinity(0)), G.stats["label_propagation"])
"""


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="needs two CPUs",
)
def test_ranks_that_are_bound_lend_their_cpus():
    done = mpiexec(2, LENT)
    assert done.lines == [f"{rank} 1 on the first of 2 ranks, 2 threads" for rank in range(2)]


def test_what_users_do_with_stats_is_theirs(monkeypatch):
    """Ranks agree on who works, also where one of them has cleared its notes."""
    monkeypatch.setattr(one_host, "FEW_ENTRIES", 0)

    def body(comm):
        G = matchwood.distribute(slab(path(9), comm.rank, 2), comm=neighbour(comm))
        for _ in range(2):
            matchwood.bfs(G, 0)
            where = G.stats["bfs"]
            if comm.rank:
                G.stats.clear()
        return where

    assert dist.run(body, 2) == ["on the first of 2 ranks, 1 thread"] * 2


def test_a_first_rank_without_memory(monkeypatch):
    """All ranks raise the error, in the name of the function that was called."""

    def body(comm):
        G = matchwood.distribute(slab(path(9), comm.rank, 2), comm=neighbour(comm))
        comm.barrier()  # what follows is for louvain alone
        monkeypatch.setattr("matchwood.memory.SMALL", 0)
        monkeypatch.setattr("matchwood.memory.available_memory", lambda: 0)
        return tried(lambda: matchwood.louvain(G))

    for text in dist.run(body, 2):
        assert text.startswith("OutOfMemory: louvain: a graph of 16 entries needs")
