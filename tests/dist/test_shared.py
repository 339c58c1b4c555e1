"""Ranks that share memory, played by threads of one process.  As processes: test_answers_mpi.py."""

from __future__ import annotations

import gc
import os
import pickle
import random
import sys
import time

import numpy as np
import pytest

import matchwood as mw
from dist import bodies
from dist.mpi import SHARES
from matchwood.engines.ranks.networks import shared as region
from matchwood.engines.ranks.networks.shared import Shared
from matchwood.engines.ranks.networks.shared import cpu as cpu_copies

pytestmark = pytest.mark.skipif(not SHARES, reason="the system has no anonymous files")


def neighbour(comm, room=region.ROW_BYTES):
    """The rank of a thread as one that shares memory with the others."""
    rendezvous = comm._meetings

    def wait_until(done):
        while not done():
            if rendezvous.failure is not None:
                raise rendezvous.failure_again()
            time.sleep(0)

    comm.members = tuple(range(comm.size))
    comm.wait_until = wait_until
    comm.session.crowded = True  # a thread that waits leaves the interpreter to the others
    opened = region.open_region(comm, room)
    return None if opened is None else Shared(comm, opened)


def test_operations():
    def work(comm):
        bodies.everything(neighbour(comm), few=True)

    for ranks in (2, 5):
        mw.dist.run(work, ranks)


def test_operations_in_many_steps():
    def work(comm):
        small = neighbour(comm, 256 * comm.size)
        bodies.reductions(small, [np.float32, np.complex128], (0, 1, 63, 64, 65, 300))
        bodies.gathers(small, [np.int16, np.float64], (0, 5, 128, 129))
        bodies.strides(small)
        bodies.things(small)
        large = np.arange(5000) + comm.rank
        parts = [np.arange(5000) + k for k in range(comm.size)]
        bodies.same(small.allgather(large), np.concatenate(parts))
        bodies.same(small.broadcast(large if comm.rank == 1 else None, 1), parts[1])

    for ranks in (2, 3):
        mw.dist.run(work, ranks)


@pytest.mark.parametrize("threads", [2, 3])
def test_operations_by_the_threads_of_a_rank(monkeypatch, threads):
    """However little is copied."""
    copied = []
    run = cpu_copies.crew

    def counted(count, work):
        copied.append(count)
        return run(count, work=work)

    monkeypatch.setattr(cpu_copies, "crew", counted)
    monkeypatch.setattr(cpu_copies, "COPIED_BY_TEAM_BYTES", 0)

    def work(comm):
        bodies.everything(neighbour(comm), few=True)
        small = neighbour(comm, 256 * comm.size)
        bodies.reductions(small, [np.float32, np.complex128], (0, 1, 63, 64, 65, 300))
        bodies.gathers(small, [np.int16, np.float64, np.uint8], (0, 5, 128, 129))
        bodies.strides(small)

    mw.dist.run(work, 3, threads=threads)
    assert set(copied) == {threads}


@pytest.mark.parametrize("kind", ["u1", "i2", "f4", "c16", "?"])
def test_large_arrays_of_any_type_are_copied(kind):
    rng = np.random.default_rng(5)
    old = rng.integers(0, 2, cpu_copies.COPIED_BY_TEAM_BYTES + 16 * 3, np.uint8).view(kind)
    for threads in (1, 2, 5):
        new = np.full(old.nbytes + 32, 7, np.uint8)
        cpu_copies.copy(threads, old, new[16:-16])
        assert np.array_equal(new[16:-16].view(kind), old)
        assert (new[:16] == 7).all()
        assert (new[-16:] == 7).all()


def test_nobody_writes_what_others_still_read():
    """Ranks that dawdle at random, between writing, meeting and reading."""

    def work(comm):
        shared, rng, own = neighbour(comm, 1 << 12), random.Random(7), random.Random(comm.rank)
        memory = shared._region
        meet = memory.meet

        def late(*arguments):
            time.sleep(own.choice((0, 0, 1e-4, 3e-4)))
            found = meet(*arguments)
            time.sleep(own.choice((0, 0, 1e-4, 3e-4)))
            return found

        memory.meet = late
        for number in range(120):
            length = rng.choice((1, 30, 512, 700))
            mine = np.full(length, number * comm.size + comm.rank)
            kind = rng.randrange(3)
            if kind == 0:
                expected = np.repeat(number * comm.size + np.arange(comm.size), length)
                assert np.array_equal(shared.allgather(mine), expected)
            elif kind == 1:
                total = comm.size * number * comm.size + comm.size * (comm.size - 1) // 2
                assert (shared.allreduce(mine) == total).all()
            else:
                sent = np.repeat(mine[:1], comm.size)
                found, _ = shared.alltoallv(sent, [1] * comm.size)
                assert np.array_equal(found, number * comm.size + np.arange(comm.size))

    mw.dist.run(work, 3)


def test_arrays_that_are_not_copied():
    def work(comm):
        shared, counts = neighbour(comm, 1 << 12), [3, 2, 4]
        for size in (9, 600 * 9):  # the second is too large to lie there
            for between in (False, True):
                shares = [count * size // 9 for count in counts]
                sums = shared.scratch(size, np.float64)
                if between:  # a caller that changed its mind: the array is an ordinary one then
                    assert shared.objects(comm.rank) == [0, 1, 2]
                    sums = np.empty(size)
                sums[:] = 10.0**comm.rank
                assert shared.reduce_scatter(sums, shares).tolist() == [111.0] * shares[comm.rank]
        for length in (4, 3000):
            mine = np.full(length, comm.rank, np.int16)
            found = shared.allgather(mine, borrowed=True)
            assert found.tolist() == np.repeat(np.arange(3), length).tolist()
        shown, copied = shared.allgather(mine[:4], borrowed=True), shared.allgather(mine[:4])
        assert shown.base is not None
        assert copied.base is None

    mw.dist.run(work, 3)


def test_ranks_that_call_different_things():
    """They are named even if nobody asked for debugging."""

    def sizes(comm):
        shared = neighbour(comm)
        shared.allreduce(np.ones(10 + (comm.rank == 1)))

    def operations(comm):
        shared = neighbour(comm)
        shared.barrier() if comm.rank == 2 else shared.allgatherv(np.ones(3))

    with pytest.raises(mw.RankFailed, match=r"rank 1 called allreduce\(88 bytes\), but ranks 0 an"):
        mw.dist.run(sizes, 3)
    with pytest.raises(mw.RankFailed, match=r"rank 2 called barrier\(0 bytes\), but ranks 0 and 1"):
        mw.dist.run(operations, 3)


def test_memory_that_one_rank_cannot_reach(monkeypatch):
    """Then nobody uses it."""
    found = region._opened

    def opened(told, size):
        return None if sys._getframe(1).f_locals["base"].rank == 2 else found(told, size)

    monkeypatch.setattr(region, "_opened", opened)
    assert mw.dist.run(neighbour, 4) == [None] * 4
    monkeypatch.setattr(region, "_opened", found)
    monkeypatch.delattr(os, "memfd_create")
    assert mw.dist.run(neighbour, 3) == [None] * 3


def test_memory_of_a_stranger_is_refused(tmp_path):
    memory, descriptor, told = region._made(1 << 12)
    process, number, token = pickle.loads(told)
    assert process == os.getpid()
    assert region._opened(told, 1 << 12)[:] == memory[:]
    assert region._opened(pickle.dumps((process, number, b"x" * 16)), 1 << 12) is None
    assert region._opened(pickle.dumps((process, number, token)), 1 << 13) is None
    os.close(descriptor)
    with (tmp_path / "file").open("wb") as file:
        assert region._opened(pickle.dumps((process, file.fileno(), token)), 1 << 12) is None
    assert region._opened(pickle.dumps((process, 10**6, token)), 1 << 12) is None


@pytest.mark.slow
def test_nothing_stays_behind():
    """No file in any folder, and no descriptor once the communicators are gone."""

    def work(comm):
        shared = neighbour(comm)
        shared.allgather(np.ones(1000))
        comm.barrier()
        shared.close()

    def anonymous():
        gc.collect()
        paths = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
        return [path for path in paths if os.path.islink(path) and region.NAME in os.readlink(path)]

    before = anonymous()
    mw.dist.run(work, 3)
    assert len(anonymous()) <= len(before)
