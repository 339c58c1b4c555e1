"""The communicator of all processes that a program was started with."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from typing import Any

from matchwood.arguments import one_of
from matchwood.engines import check_threads
from matchwood.engines.cpu import pinning
from matchwood.engines.ranks.faults import difference
from matchwood.engines.ranks.protocol import Communicator, timeout_seconds
from matchwood.engines.ranks.serial import Serial
from matchwood.engines.ranks.start.launchers import OPEN_MPI, library_of, mpi_launchers, torchrun
from matchwood.engines.ranks.start.placement import Site, place_of, site, take_gpu
from matchwood.errors import EngineUnavailable

KINDS = (None, "serial", "mpi", "torch")
NOT_OPEN_MPI = ("MPICH", "Intel", "MVAPICH", "CRAY")  # how other libraries call themselves
TRANSPORTS = ("auto", "nccl", "ipc", "host")


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
        Not all processes came in time.
    ValueError
        The processes want different things, such as GPUs and CPUs.

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
    """The program has started MPI itself, for more than one process."""
    module = sys.modules.get("mpi4py.MPI")
    return module is not None and module.Is_initialized() and module.COMM_WORLD.Get_size() > 1


def _settled(comm: Communicator, engine: str, transport: str, threads: int | None) -> Communicator:
    """The communicator with its threads and GPU: agreed on by all ranks before any work."""
    debug, comm.session.debug = comm.session.debug, False  # until all ranks agree
    told = comm.objects((engine, transport, debug))
    found = difference([("world", *each[:2]) for each in told])
    if found is not None:
        raise ValueError(f"world: {found[1]}")
    comm.session.debug = any(each[2] for each in told)
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
    from matchwood.engines.ranks.networks.device import with_transport

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


def _serial() -> Communicator:
    return Serial()


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
    """Raise where the launcher belongs to another library, as far as names tell."""
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


_OPENERS = {"serial": _serial, "mpi": _mpi, "torch": _torch}
