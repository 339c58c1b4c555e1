"""Where a rank runs: which host, CPUs and GPU it has, how many threads, and what started it."""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matchwood import engines
from matchwood.engines.cpu.cpus import available_cpus, default_threads
from matchwood.errors import EngineUnavailable

BOOT = Path("/proc/sys/kernel/random/boot_id")  # differs where two hosts have one name
OPEN_MPI = "Open MPI's mpiexec"

SIZES = {
    "OMPI_COMM_WORLD_SIZE": OPEN_MPI,
    "PMI_SIZE": "mpiexec of MPICH or Intel MPI",
    "MV2_COMM_WORLD_SIZE": "MVAPICH's mpiexec",
    "SLURM_STEP_NUM_TASKS": "Slurm's srun",
    "JSM_NAMESPACE_SIZE": "jsrun",
    "FLUX_JOB_SIZE": "flux run",
    "PALS_SIZE": "PALS' mpiexec",
}
"""Variables in which launchers of MPI programs say how many processes they started."""


@dataclass(frozen=True)
class Site:
    """Where a rank runs: `cpus` it may use, and `quota`, how many of them it may keep busy."""

    host: str
    boot: str
    cpus: tuple[int, ...]
    quota: int
    devices: int = 0


@dataclass(frozen=True)
class Place:
    """Where a rank runs among the others.

    `gpu` is the number of its device, None for ranks that compute on CPUs.  `crowded`: its host has
    more ranks than CPUs for them.  `apart`: no other rank may run on the CPUs of this one, because
    the launcher has divided them.
    """

    host: str
    local_rank: int
    local_size: int
    cpus: tuple[int, ...]
    threads: int
    crowded: bool
    gpu: int | None
    devices: int
    apart: bool = False


def site(engine: str = "cpu") -> Site:
    """Where this process runs; GPUs are counted for `engine` "gpu" only."""
    if hasattr(os, "sched_getaffinity"):
        cpus = tuple(sorted(os.sched_getaffinity(0)))
    else:
        cpus = tuple(range(os.cpu_count() or 1))
    try:
        boot = BOOT.read_text().strip()
    except OSError:
        boot = ""
    devices = 0
    if engine == "gpu":
        devices = int(engines.cupy().cuda.runtime.getDeviceCount())
    return Site(socket.gethostname(), boot, cpus, available_cpus(), devices)


def place_of(rank: int, sites: Sequence[Site]) -> Place:
    """The place of a rank, from the sites of all; ranks that share a CPU get a part each."""
    own = sites[rank]
    neighbours = [r for r, other in enumerate(sites) if (other.host, other.boot) == _machine(own)]
    users = Counter(cpu for r in neighbours for cpu in sites[r].cpus)
    share = sum(1 / users[cpu] for cpu in own.cpus)
    allowed = own.quota * share / len(own.cpus)  # a quota holds for all ranks together
    local_rank = neighbours.index(rank)
    if own.devices == 0:
        gpu = None
    else:
        gpu = local_rank % own.devices
    return Place(
        host=own.host,
        local_rank=local_rank,
        local_size=len(neighbours),
        cpus=own.cpus,
        threads=_threads(allowed),
        crowded=allowed < 1 - 1e-9,
        gpu=gpu,
        devices=own.devices,
        apart=len(neighbours) > 1 and all(users[cpu] == 1 for cpu in own.cpus),
    )


def _machine(where: Site) -> tuple[str, str]:
    return where.host, where.boot


def _threads(allowed: float) -> int:
    """MATCHWOOD_NUM_THREADS, else the whole CPUs among those allowed, and one at least."""
    if "MATCHWOOD_NUM_THREADS" in os.environ:
        return default_threads()
    return max(1, int(allowed + 1e-9))


def take_gpu(place: Place) -> None:
    if place.gpu is None:
        raise EngineUnavailable(f"world: no GPU on {place.host}")
    engines.cupy().cuda.Device(place.gpu).use()


# What started this process: mpiexec, srun, torchrun or a shell, by its environment


def mpi_launchers(environ: Mapping[str, str] = os.environ) -> dict[str, int]:
    """The launchers found, and how many processes each says it started."""
    found = {}
    for name, launcher in SIZES.items():
        text = environ.get(name, "")
        if text.isascii() and text.isdecimal():
            found[launcher] = int(text)
    return found


def torchrun(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether torchrun, or a launcher that sets the same variables, started this process."""
    return all(name in environ for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))


def library_of(MPI: Any) -> str:
    first = MPI.Get_library_version().strip("\0 \n").splitlines()[0]
    return " ".join(first.split(",")[0].split())
