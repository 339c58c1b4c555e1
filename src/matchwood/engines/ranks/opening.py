"""The communicator of all processes that a program was started with."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matchwood import engines
from matchwood.arguments import one_of
from matchwood.engines import check_threads
from matchwood.engines.cpu import pinning
from matchwood.engines.ranks.faults import difference
from matchwood.engines.ranks.placement import (
    OPEN_MPI,
    Site,
    library_of,
    mpi_launchers,
    place_of,
    site,
    take_gpu,
    torchrun,
)
from matchwood.engines.ranks.protocol import Communicator, Serial, timeout_seconds
from matchwood.errors import EngineUnavailable

KINDS = (None, "serial", "mpi", "torch")
NOT_OPEN_MPI = ("MPICH", "Intel", "MVAPICH", "CRAY")  # how other libraries call themselves
TRANSPORTS = ("auto", "nccl", "ipc", "host")
SHARING_VERSION = 23000  # of NCCL, which lets ranks share a GPU


def world(
    engine: str = "cpu",
    *,
    kind: str | None = None,
    transport: str = "auto",
    threads: int | None = None,
) -> Communicator:
    """The communicator of all processes of this program; use it in a ``with`` statement.

    Under ``mpiexec`` or ``srun`` it is that of MPI, under ``torchrun`` a group of
    torch.distributed, and in a program that was started alone it has one rank.  All processes call
    this function together.  Every call gives a new communicator.

    Parameters
    ----------
    engine : {"cpu", "gpu"}
        Where this program's arrays will live.  With "gpu" every rank takes a GPU: its number among
        the ranks of its host, modulo the devices it sees.
    kind : {None, "serial", "mpi", "torch"}
        None finds out how the program was started.
    transport : {"auto", "nccl", "ipc", "host"}
        How arrays on GPUs travel: by NCCL, by CUDA IPC between processes that share a GPU, or with
        the other data (by a library that reads GPU memory, else through the host's).  "auto" takes
        NCCL where each rank has a GPU of its own, and IPC where all share those of one host.
    threads : int, optional
        CPU threads of each rank.  By default MATCHWOOD_NUM_THREADS, else the CPUs of the rank,
        divided among the ranks of the host that share them.

    Returns
    -------
    comm : Communicator

    Raises
    ------
    EngineUnavailable
        mpi4py or torch is missing; the launcher belongs to another MPI than mpi4py, so that every
        process would be rank 0; there is no GPU.
    RankFailed
        Another process failed while this one was waiting for it.
    TimeoutError
        Not all processes called this function in time.
    ValueError
        The processes pass different arguments, such as GPUs and CPUs.

    Examples
    --------
    >>> import matchwood as mw
    >>> with mw.dist.world() as comm:
    ...     comm.rank, comm.size
    (0, 1)
    """
    one_of("world", "engine", engine, ("cpu", "gpu"))
    one_of("world", "kind", kind, KINDS)
    one_of("world", "transport", transport, TRANSPORTS)
    check_threads(threads)
    threads = None if threads is None else int(threads)
    comm = _OPENERS[kind or _kind_found()]()
    try:
        return _settled(comm, engine, transport, threads)
    except BaseException as error:
        comm.fail(error)
        raise


def _kind_found() -> str:
    torch = sys.modules.get("torch.distributed")
    if torch is not None and torch.is_available() and torch.is_initialized():
        return "torch"
    if mpi_launchers() or _mpi_in_use():
        return "mpi"
    return "torch" if torchrun() else "serial"


def _mpi_in_use() -> bool:
    """Whether the program has started MPI itself, for more than one process."""
    module = sys.modules.get("mpi4py.MPI")
    return module is not None and module.Is_initialized() and module.COMM_WORLD.Get_size() > 1


def _settled(comm: Communicator, engine: str, transport: str, threads: int | None) -> Communicator:
    """The communicator with threads and GPU set, after all ranks have agreed on the arguments."""
    debug, comm.session.debug = comm.session.debug, False  # until all ranks agree
    wishes = comm.objects((engine, transport, debug))
    found = difference([("world", *each[:2]) for each in wishes])
    if found is not None:
        raise ValueError(f"world: {found[1]}")
    comm.session.debug = any(each[2] for each in wishes)
    sites = comm.objects(site(engine))
    place = place_of(comm.rank, sites)
    session = comm.session
    session.place, session.crowded = place, place.crowded
    if place.apart:
        pinning.reserve(place.cpus, lambda: not session.closed)
    comm.threads = place.threads if threads is None else threads
    comm.traffic.clear()
    if engine == "cpu":
        return _with_shared_memory(comm, sites)
    take_gpu(place)
    if comm.size == 1:
        return comm
    return with_transport(comm, transport)


def _with_shared_memory(comm: Communicator, sites: Sequence[Site]) -> Communicator:
    """The communicator of ranks on one host that share memory; on several hosts its splits may."""
    if comm.kind != "mpi":
        return comm
    from matchwood.engines.ranks.networks.polled import Polled
    from matchwood.engines.ranks.networks.shared import among_neighbours

    assert isinstance(comm, Polled)
    comm.session.hosts = [(each.host, each.boot) for each in sites]
    return among_neighbours(comm)


# How arrays on GPUs travel


@dataclass(frozen=True)
class Device:
    """The GPU of a rank, as the others need to know it."""

    host: str
    bus: str
    nccl: int  # version, 0 where NCCL is missing


def with_transport(comm: Communicator, transport: str) -> Communicator:
    """The communicator with another way for GPU arrays; see `world`."""
    devices = comm.objects(_own_device(comm))
    if transport == "auto":
        transport = _best(devices)
        tolerant = True
    else:
        tolerant = False
    if transport == "nccl":
        from matchwood.engines.ranks.networks.nccl import open_nccl

        refuse_shared(devices)
        return open_nccl(comm)
    if transport == "ipc":
        from matchwood.engines.ranks.networks.ipc import open_ipc

        return open_ipc(comm, tolerant)
    return comm


def _own_device(comm: Communicator) -> Device:
    from matchwood.engines.ranks.networks.nccl import version

    cupy = engines.cupy()
    place = comm.session.place
    assert place is not None
    bus = cupy.cuda.Device().pci_bus_id
    return Device(place.host, str(bus), version())


def _best(devices: Sequence[Device]) -> str:
    """NCCL where each rank has a GPU of its own, IPC on one host, else the host's memory."""
    separate = len({(each.host, each.bus) for each in devices}) == len(devices)
    if separate and all(each.nccl for each in devices):
        return "nccl"
    return "ipc" if len({each.host for each in devices}) == 1 else "host"


def refuse_shared(devices: Sequence[Device]) -> None:
    """Raise where NCCL would: it is missing, or two ranks share a GPU and it does not permit it."""
    if not all(each.nccl for each in devices):
        raise EngineUnavailable("world: transport 'nccl' needs NCCL on every rank")
    if len({(each.host, each.bus) for each in devices}) == len(devices):
        return
    permitted = os.environ.get("NCCL_MULTI_RANK_GPU_ENABLE") == "1"
    if min(each.nccl for each in devices) < SHARING_VERSION or not permitted:
        raise EngineUnavailable(
            "world: transport 'nccl' needs a GPU for each rank, and two ranks share one; "
            "NCCL 2.30 permits that under NCCL_MULTI_RANK_GPU_ENABLE=1, and transport='ipc' does"
        )


# The kinds of communicators


def _mpi() -> Communicator:
    launchers = mpi_launchers()
    if importlib.util.find_spec("mpi4py") is None:
        by = " and ".join(launchers) or "world(kind='mpi')"
        raise EngineUnavailable(
            f"world: {by} asks for MPI, and mpi4py is not installed: pip install matchwood[mpi]"
        )
    MPI = _loaded_mpi()
    if MPI.Is_finalized():
        raise EngineUnavailable("world: MPI was finalized in this process, and cannot start again")
    if not MPI.Is_initialized():
        _refuse_strange(MPI, launchers)
        MPI.Init_thread()
    _refuse_lonely(MPI, launchers)
    from matchwood.engines.ranks.networks.mpi import open_world

    return open_world(MPI, timeout_seconds())


def _loaded_mpi() -> Any:
    """mpi4py's module, without starting MPI: some libraries end the process if they cannot."""
    import mpi4py

    if "mpi4py.MPI" not in sys.modules:
        mpi4py.rc.initialize = False
        mpi4py.rc.finalize = True
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise EngineUnavailable(f"world: mpi4py finds no MPI library: {error}") from error
    return MPI


def _refuse_strange(MPI: Any, launchers: dict[str, int]) -> None:
    """Raise where the launcher belongs to another library, as far as names show it."""
    if OPEN_MPI in launchers and library_of(MPI).startswith(NOT_OPEN_MPI):
        raise _foreign(MPI, OPEN_MPI, launchers[OPEN_MPI])


def _refuse_lonely(MPI: Any, launchers: dict[str, int]) -> None:
    """Raise where every process is rank 0 of a world of its own."""
    most = max(launchers.values(), default=1)
    if most > 1 and MPI.COMM_WORLD.Get_size() == 1:
        by = next(name for name, size in launchers.items() if size == most)
        raise _foreign(MPI, by, most)


def _foreign(MPI: Any, launcher: str, size: int) -> EngineUnavailable:
    library = library_of(MPI)
    return EngineUnavailable(
        f"world: {launcher} started {size} processes, but for mpi4py, which uses {library}, each "
        f"is rank 0 of 1. Start the program with the mpiexec of that library (or, for srun, with "
        f"its --mpi option), or install mpi4py for the library of your mpiexec"
    )


def _torch() -> Communicator:
    if importlib.util.find_spec("torch") is None:
        raise EngineUnavailable("world: kind 'torch' needs torch, which is not installed")
    from matchwood.engines.ranks.networks.torch_group import open_world

    return open_world(timeout_seconds())


_OPENERS = {"serial": Serial, "mpi": _mpi, "torch": _torch}
