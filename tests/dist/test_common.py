"""Memory that ranks lend each other, and what they do together in it; GPUs are played."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood as mw
from dist import fake_cupy
from dist.fake_gpus import FakeCuda, FakeWindows
from graphs import ZOO
from matchwood.dist import run
from matchwood.engines.ranks.networks.ipc import Ipc
from matchwood.gate.distributed.whole import common
from spread_graphs import slab
from support import looped

RANKS = (1, 2, 3, 5)


def opened(comm, **options):
    return Ipc(comm, FakeCuda(**options), FakeWindows)


# Loans


def lend_and_write(comm):
    made = opened(comm)
    own = [np.full(5 + comm.rank, comm.rank, np.int32), np.zeros(0), np.arange(3.0)[1:]]
    lent = made.lend(own)
    for rank, (first, empty, last) in enumerate(lent.arrays):
        assert first.tolist() == [rank] * (5 + rank)
        assert empty.size == 0
        assert last.tolist() == [1, 2]
    made.barrier()
    after = (comm.rank + 1) % comm.size
    lent.arrays[after][0][0] = 100 + comm.rank
    made.barrier()
    assert own[0][0] == 100 + (comm.rank - 1) % comm.size
    assert bool(made.cuda.maps) == (comm.size > 1)
    made.close()
    assert made.cuda.maps == []


@looped("ranks", RANKS)
def test_what_one_lends_the_others_read_and_write(ranks):
    run(lend_and_write, ranks)


def keep_until_all_have_let_go(comm):
    made = opened(comm)
    own = [np.full(4, comm.rank)]
    seen = weakref.ref(own[0])
    lent = made.lend(own)
    del own
    kept = lent if comm.rank == 0 else None
    del lent
    gc.collect()
    made.lend([])
    assert seen() is not None  # the first rank may still read it
    assert bool(made.cuda.maps) == (comm.rank == 0)
    assert kept is None or kept.arrays[-1][0].tolist() == [comm.size - 1] * 4
    del kept
    gc.collect()
    assert made.cuda.maps == []
    made.lend([])
    assert seen() is None
    made.close()


@pytest.mark.slow
def test_memory_is_kept_while_another_rank_has_it_mapped():
    run(keep_until_all_have_let_go, 3)


@looped("trouble", [{"bus": "another"}, {"fails": "exported"}, {"fails": "mapped"}])
def test_nobody_gets_what_one_rank_cannot_have(trouble):
    def work(comm):
        made = opened(comm, **(trouble if comm.rank == 1 else {}))
        assert made.lend([np.ones(3)]) is None
        assert made.cuda.maps == []
        assert made.allreduce(np.ones(1))[0] == comm.size  # the communicator goes on
        made.close()

    run(work, 3)


def test_a_rank_that_fails_before_it_lends():
    def work(comm):
        with opened(comm) as made:
            if comm.rank == 2:
                raise OSError("no more")
            made.lend([np.ones(3)])

    with pytest.raises(mw.RankFailed, match="rank 2 failed: OSError: no more"):
        run(work, 3)


# Graphs


@pytest.fixture
def _gpu(monkeypatch):
    fake_cupy.play(monkeypatch)


def spread(comm, A, **options):
    return mw.distribute(slab(A, comm.rank, comm.size), comm=comm, **options).on("gpu")


@pytest.mark.usefixtures("_gpu")
def test_arrays_in_common():
    def work(comm):
        G = spread(comm, ZOO["few weights"]())
        space = common(G, "test", one=(3, np.int32), other=(comm.size, np.int64))
        space.other[comm.rank : comm.rank + 1] = comm.rank + 7
        comm.barrier()
        assert space.other.tolist() == [7, 8, 9]
        again = common(G, "test", one=(3, np.int32), other=(comm.size, np.int64))
        assert again.other.tolist() == [7, 8, 9]
        assert common(G, "other", one=(1, np.int32)).one.size == 1

    run(work, 3)


@pytest.mark.usefixtures("_gpu")
def test_many_trees_at_first():
    """A sample of neighbours that joins few vertices is taken again, along other neighbours."""
    rng = np.random.default_rng(1)
    edges = rng.integers(0, 4000, (16000, 2))
    A = sp.coo_array((np.ones(16000), edges.T), (4000, 4000)).tocsr()
    A = A + A.T
    one = mw.connected_components(A)

    def work(comm):
        G = spread(comm, A)
        for _ in range(2):  # the pattern is known to be symmetric from the second call on
            found = mw.connected_components(G)
            assert found.count == one.count
            assert np.array_equal(found.labels.gather(None), one.labels)

    run(work, 4)


@pytest.mark.usefixtures("_gpu")
def test_a_failure_at_any_collective():
    A = ZOO["few weights"]()
    collectives = []

    def work(comm, failing):
        G = spread(comm, A)
        mw.connected_components(G)
        count = 0

        def before(one, name):
            nonlocal count
            count += 1
            if comm.rank == 1 and count == failing:
                raise OSError(f"at {name}")

        comm.session.before = before
        mw.connected_components(G)
        comm.session.before = None
        collectives.append(count)

    run(work, 3, 0)
    assert 3 <= max(collectives) <= 8  # letters take more
    for failing in range(1, min(collectives) + 1):
        with pytest.raises(mw.RankFailed, match="rank 1 failed: OSError: at "):
            run(work, 3, failing)
