"""NCCL and CUDA IPC: their host side with made-up GPUs, and both on a GPU where there is one."""

from __future__ import annotations

import numpy as np
import pytest

import matchwood as mw
from dist import bodies
from dist.fake_gpus import FakeCuda, FakeNccl, FakeNcclComm, FakeWindows
from dist.mpi import mpiexec
from matchwood.dist import run
from matchwood.engines.ranks.networks import staging
from matchwood.engines.ranks.networks.ipc import Ipc
from matchwood.engines.ranks.networks.nccl import Nccl
from matchwood.engines.ranks.opening import SHARING_VERSION, Device, _best, refuse_shared
from support import looped

# With made-up GPUs


@pytest.mark.slow
@looped("largest", [1 << 28, 48])  # bytes of a window: one round, and many
def test_ipc(largest):
    def work(comm):
        made = Ipc(comm, FakeCuda(), FakeWindows, largest)
        if largest > 1000:
            bodies.everything(made, few=True)
        else:
            bodies.reductions(made, [np.int8, np.float64, np.complex128], (0, 1, 7, 40))
            bodies.gathers(made, [np.bool_, np.longdouble], (0, 1, 5))
            bodies.strides(made)
        made.close()
        assert comm.closed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("matchwood.engines.ranks.networks.ipc.FIRST_BYTES", 32)
        for ranks in (1, 2, 3, 5):
            run(work, ranks)


def with_nccl(comm):
    nccl = FakeNccl()
    room = comm._meet(FakeNcclComm.room(comm.size) if comm.rank == 0 else None)[0]
    return Nccl(comm, nccl, FakeNcclComm(nccl, comm.rank, comm.size, room), FakeCuda())


@pytest.mark.slow
def test_nccl():
    def work(comm):
        comm.raw_compare("open")
        made = with_nccl(comm)
        bodies.everything(made, few=False)
        for op, right in (("sum", comm.size), ("max", 1)):
            own = made.reduce_scatter(np.ones(3 * comm.size, np.int32), [3] * comm.size, op)
            assert own.tolist() == [right] * 3
        made.close()
        return made._comm.calls

    for ranks in (1, 2, 3, 4):
        calls = run(work, ranks)[0]
        assert {"allReduce", "reduceScatter", "allGather", "bcast"} <= set(calls)
        assert calls[-1] == "destroy"


def test_nccl_adds_floats_in_the_order_of_ranks():
    def work(comm):
        comm.raw_compare("open")
        made = with_nccl(comm)
        made.allreduce(np.ones(8, np.float32))
        made.allreduce(np.ones(8), "max")
        made.reduce_scatter(np.ones(2 * comm.size), [2] * comm.size)
        return made._comm.calls

    assert not {"allReduce", "reduceScatter"} & set(run(work, 2)[0])


def test_a_failure_aborts_nccl():
    comms = {}

    def work(comm):
        comm.raw_compare("open")
        comms[comm.rank] = with_nccl(comm)
        with comms[comm.rank] as made:
            if comm.rank == 1:
                raise OSError("no more")
            made.allgather(np.ones(3))

    with pytest.raises(mw.RankFailed, match="rank 1 failed: OSError: no more"):
        run(work, 3)
    assert all(made._comm.calls[-1] == "abort" for made in comms.values())


def devices(*buses, host="a", nccl=SHARING_VERSION - 1):
    return [Device(host, bus, nccl) for bus in buses]


def test_the_way_of_gpu_arrays():
    assert _best(devices("1", "2")) == "nccl"
    assert _best(devices("1", "1")) == "ipc"
    assert _best(devices("1", "2", nccl=0)) == "ipc"
    assert _best([*devices("1", "1"), *devices("1", host="b")]) == "host"
    assert _best([*devices("1"), *devices("1", host="b")]) == "nccl"


def test_nccl_is_refused_where_ranks_share_a_gpu(monkeypatch):
    monkeypatch.delenv("NCCL_MULTI_RANK_GPU_ENABLE", raising=False)
    refuse_shared(devices("1", "2"))
    shared = devices("1", "1", nccl=SHARING_VERSION)
    with pytest.raises(mw.EngineUnavailable, match="two ranks share one"):
        refuse_shared(shared)
    monkeypatch.setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1")
    refuse_shared(shared)
    with pytest.raises(mw.EngineUnavailable, match="two ranks share one"):
        refuse_shared(devices("1", "1"))
    with pytest.raises(mw.EngineUnavailable, match="needs NCCL on every rank"):
        refuse_shared([*shared, *devices("2", nccl=0)])


def test_the_library_is_asked_whether_it_reads_gpus(monkeypatch):
    class Library:
        __file__ = __file__  # no library: it cannot be asked, so nothing is tried

    assert staging.cuda_aware(Library) is False
    staging.cuda_aware.cache_clear()
    monkeypatch.setenv("MATCHWOOD_DIST_CUDA_AWARE", "1")
    assert staging.cuda_aware(Library) is True
    staging.cuda_aware.cache_clear()
    monkeypatch.setenv("MATCHWOOD_DIST_CUDA_AWARE", "perhaps")
    with pytest.raises(ValueError, match="MATCHWOOD_DIST_CUDA_AWARE must be 0 or 1"):
        staging.cuda_aware(Library)


# On a GPU

ON_GPU = """
import sys
import cupy
import numpy as np
import matchwood as mw
from dist.bodies import drawn, folded

with mw.dist.world("gpu", transport=sys.argv[1]) as comm:
    ranks = range(comm.size)
    across = comm.split(comm.rank % 2)
    for dtype in ("int32", "int64", "float64", "bool"):
        op = "or" if dtype == "bool" else "sum"
        for length in (0, 1, 1000, 3_000_000):
            parts = [drawn(length, dtype, k, length) for k in ranks]
            mine = cupy.asarray(parts[comm.rank])
            total = comm.allreduce(mine, op)
            assert isinstance(total, cupy.ndarray)
            assert (total.get() == folded(parts, op)).all()
            counts = [length // comm.size] * (comm.size - 1)
            counts.append(length - sum(counts))
            lo = sum(counts[: comm.rank])
            own = comm.reduce_scatter(mine, counts, op)
            assert (own.get() == folded(parts, op)[lo : lo + counts[comm.rank]]).all()
            assert (comm.allgather(mine).get() == np.concatenate(parts)).all()
            whole, lengths = comm.allgatherv(mine[: length // (comm.rank + 1)])
            assert lengths.tolist() == [length // (k + 1) for k in ranks]
            came, _ = comm.alltoallv(mine, counts)
            starts = np.cumsum([0, *counts])
            runs = [part[starts[comm.rank] : starts[comm.rank + 1]] for part in parts]
            assert (came.get() == np.concatenate(runs)).all()
            cast = comm.broadcast(mine if comm.rank == 0 else None)
            assert (cast.get() == parts[0]).all()
            assert across.allgather(mine).size == across.size * length
"""


@pytest.mark.gpu
@pytest.mark.mpi
@pytest.mark.parametrize("transport", ["auto", "ipc", "host"])
def test_gpu_ranks(transport):
    mpiexec(4, ON_GPU, transport)


@pytest.mark.gpu
@pytest.mark.mpi
def test_nccl_with_one_rank():
    """Several need a GPU each."""
    mpiexec(1, ON_GPU, "nccl")
