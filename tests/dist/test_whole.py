"""Views of ranks that share a GPU, whole on the first rank, and its answers; GPUs are played."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import matchwood as mw
from dist import fake_cupy
from graphs import ZOO
from matchwood.dist import run
from matchwood.gate.distributed import whole
from spread_graphs import slab
from support import REST, looped

GRIDS = ("1x2", "2x1", "1x3", "2x2", "3x2", "2x3", "5x1")
VIEWS = ("entries", "directed_weights", "undirected_pattern", "undirected_weights")
NAMES = (
    "one edge", "few weights", "rmat, directed", "star", "float32", "int64 indices", "self loops",
    "explicit zeros",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _gpu(monkeypatch):
    fake_cupy.play(monkeypatch)


def ranks_of(grid):
    return int(grid[0]) * int(grid[2])


def spread(comm, A, **options):
    return mw.distribute(slab(A, comm.rank, comm.size), comm=comm, **options).on("gpu")


def same_views(comm, A, grid, order):
    """What the first rank has is what one machine makes of the matrix."""
    G, one = spread(comm, A, grid=grid, order=order), mw.graph(A)
    for name in VIEWS:
        shared = whole.gathered(G, "test", **{name: getattr(G, name)()})
        expected = getattr(one, name)()

        def work(view, expected=expected):
            assert view.indptr.dtype == view.indices.dtype
            for found, right in zip(view, expected, strict=True):
                assert (found is None) == (right is None)
                if found is not None:
                    assert found.get().tolist() == right.tolist()
            if expected.data is not None:
                assert view.data.dtype == expected.data.dtype
            return [view.indptr[1:]], (comm.rank, view.nnz)

        (ends,), told = shared.answer(work)
        assert told == (0, expected.nnz)
        assert ends.get().tolist() == expected.indptr[1:][G.ids].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("rest", REST)
@looped("name", NAMES)
@looped("order", ("given", "hashed"))
def test_the_view_of_one_machine(name, order, rest):
    """Each graph on half of the grids, in the other order on the others."""
    A = ZOO[name]()
    for grid in GRIDS[(NAMES.index(name) + (order == "hashed") + rest) % 2 :: 2]:
        run(same_views, ranks_of(grid), A, grid, order)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    st.integers(1, 40), st.integers(0, 150), st.sampled_from(GRIDS),
    st.sampled_from(("given", "hashed")), st.integers(0, 99),
)  # fmt: skip
def test_any_graph(n, m, grid, order, seed):
    rng = np.random.default_rng(seed)
    entries = (rng.integers(1, 5, m).astype(float), rng.integers(0, n, (2, m)))
    run(same_views, ranks_of(grid), sp.coo_array(entries, (n, n)).tocsr(), grid, order)


def same_entries_twice(comm, edges):
    """Edges that were given more than once stay side by side, in their order."""
    mine = edges[comm.rank :: comm.size]
    weights = np.arange(comm.rank, len(edges), comm.size, dtype=np.float32)
    G = mw.distribute((9, mine, weights), comm=comm, grid="2x2").on("gpu")

    def work(view):
        lengths = np.diff(view.indptr.get())
        rows = np.repeat(np.arange(9), lengths)
        return [view.indptr[1:]], np.stack([rows, view.indices.get()]).T.tolist()

    _, told = whole.gathered(G, "test", entries=G.entries()).answer(work)
    assert told == sorted(told)
    total = comm.allreduce(np.array([G.entries().nnz]))[0]
    assert len(told) == total


def test_edges_that_were_given_twice():
    edges = np.array([[0, 1], [3, 4], [0, 1], [8, 0], [3, 4], [0, 1], [5, 5]])
    run(same_entries_twice, 4, edges)


def answers(comm, A, order, joins):
    """Components and a matching; how often blocks were joined on the first rank."""
    one = mw.connected_components(A), mw.weighted_matching(A)
    G = spread(comm, A, order=order)
    lend, lent = comm.lend, []
    comm.lend = lambda arrays: lent.append(len(arrays)) or lend(arrays)
    for _ in range(2):
        found = mw.connected_components(G)
        assert (found.count, found.rounds > 0) == (one[0].count, True)
        assert np.array_equal(found.labels.gather(None), one[0].labels)
        mates = mw.weighted_matching(G)
        assert np.array_equal(mates.mate.gather(None), one[1].mate)
        assert mates.cardinality == one[1].cardinality
        assert np.isclose(mates.weight, one[1].weight, rtol=1e-12, atol=0)
        assert mates.method == ("suitor" if joins else "dominant")
    assert len(lent) == (4 if joins else 2)  # two views, and memory for two kinds of answers


def searches(comm, A, order):
    G = spread(comm, A, order=order)
    marks = np.isin(G.ids, (3, 11, 12))
    for directed in (False, True):
        for limit in (None, 2):
            one = mw.bfs(A, [3, 11, 12], directed=directed, depth_limit=limit)
            for sources in ([12, 3, 11], G.vector(marks)):
                found = mw.bfs(G, sources, directed=directed, depth_limit=limit)
                assert np.array_equal(found.level.gather(None), one.level)
                assert np.array_equal(found.parent.gather(None), one.parent)
                assert found.rounds == one.rounds
    symmetric = (A != A.T).nnz == 0
    names = G._kept[whole.KEPT][comm].keys()
    assert len(names) == (2 if symmetric else 3)


@looped("name", ("few weights", "rmat, directed"))
def test_searches_by_the_first_rank(name):
    run(searches, 3, ZOO[name](), "given")
    run(searches, 4, ZOO[name](), "hashed")


@looped("order", ("given", "hashed", "rcm"))
def test_answers_are_found_by_the_first_rank(order):
    for ranks in (2, 3, 6):
        run(answers, ranks, ZOO["few weights"](), order, True)


@pytest.mark.slow
def test_ranks_that_read_late(monkeypatch):
    """The first rank does not write the next answers before all have read these."""
    A = ZOO["few weights"]()
    right = [mw.bfs(A, source).level for source in range(6)]
    empty = whole.gpu.empty

    def late(*args):
        time.sleep(random.choice((0, 0, 0.02)))
        return empty(*args)

    def work(comm):
        G = spread(comm, A)
        mw.bfs(G, 0)
        comm.barrier()
        found = [mw.bfs(G, source).level for source in range(6)]
        for levels, one in zip(found, right, strict=True):
            assert np.array_equal(levels.gather(None), one)

    monkeypatch.setattr(whole.gpu, "empty", late)
    for _ in range(3):
        run(work, 4)


@pytest.mark.slow
def test_a_gpu_that_is_too_full(monkeypatch):
    """Then all ranks work, as they do on GPUs of their own."""
    import cupy

    monkeypatch.setattr(cupy, "free", 1000)
    run(answers, 4, ZOO["few weights"](), "given", False)


@pytest.mark.slow
def test_memory_that_ends_while_blocks_are_joined(monkeypatch):
    from matchwood.gate.distributed import gpu

    def full(*_):
        raise MemoryError("no more")

    monkeypatch.setattr(gpu, "_merge", full)
    run(answers, 4, ZOO["few weights"](), "given", False)


def test_an_error_of_the_first_rank_is_that_of_all():
    def work(comm):
        G = spread(comm, ZOO["few weights"]())
        shared = whole.gathered(G, "test", entries=G.entries())

        def fails(view):
            raise OverflowError("too heavy")

        for _ in range(2):  # the communicator goes on
            with pytest.raises(OverflowError, match="too heavy"):
                shared.answer(fails)
        assert comm.allreduce(np.ones(1))[0] == comm.size

    run(work, 3)


def test_a_rank_that_fails_while_the_first_works():
    def work(comm):
        G = spread(comm, ZOO["few weights"]())
        shared = whole.gathered(G, "test", entries=G.entries())
        if comm.rank == 2:
            raise OSError("gone")
        shared.answer(lambda view: ([view.indptr[1:]], 0))

    with pytest.raises(mw.RankFailed, match="rank 2 failed: OSError: gone"):
        run(work, 3)
