"""Hosts, CPUs, GPUs, libraries and settings of the ranks, in words."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Iterator
from typing import Any

from matchwood.arguments import one_of, shown
from matchwood.engines.ranks.placement import (
    Place,
    library_of,
    mpi_launchers,
    place_of,
    site,
    torchrun,
)
from matchwood.engines.ranks.protocol import Communicator, Session

PACKAGES = ("mpi4py", "cupy-cuda12x", "cupy-cuda13x", "torch")


def describe(comm: Communicator | None = None, mode: str = "stdout") -> dict[str, Any] | None:
    """Show where the ranks of a program run, and how they exchange data.

    Parameters
    ----------
    comm : Communicator, optional
        Its ranks are described; all of them call this function, and rank 0 prints.  None describes
        this process alone, without starting MPI.
    mode : {"stdout", "dicts"}
        "stdout" prints, "dicts" returns dictionaries instead, on every rank.

    Returns
    -------
    description : dict or None
        Keys ``kind``, ``size``, ``transport``, ``launchers`` (processes by what started them),
        ``library`` (the MPI library, None before it runs), ``shared_memory`` (arrays of the host go
        through memory that all ranks have), ``cuda_aware``, ``timeout``, ``debug``, ``versions``,
        and ``ranks``: for each its ``host``, ``local_rank``, ``local_size``, ``cpus``, ``threads``
        and ``gpu``.

    Examples
    --------
    >>> import matchwood as mw
    >>> found = mw.dist.describe(mode="dicts")
    >>> found["kind"], len(found["ranks"])
    ('serial', 1)
    """
    one_of("describe", "mode", mode, ("stdout", "dicts"))
    if comm is not None and not isinstance(comm, Communicator):
        raise TypeError(f"describe: comm must be a Communicator or None, got {shown(comm)}")
    facts = _facts(comm)
    if mode == "dicts":
        return facts
    if comm is None or comm.rank == 0:
        print("\n".join(_lines(facts)))  # noqa: T201  that is what it is for
    return None


def _facts(comm: Communicator | None) -> dict[str, Any]:
    session = Session() if comm is None else comm.session
    place = session.place
    if place is None:
        place = place_of(0, [site()])
    threads = place.threads if comm is None else comm.threads
    own = _rank(place, threads)
    return {
        "kind": "serial" if comm is None else comm.kind,
        "size": 1 if comm is None else comm.size,
        "transport": getattr(comm, "transport", None),
        "launchers": {**mpi_launchers(), **({"torchrun": _torch_size()} if torchrun() else {})},
        "library": _library(),
        "shared_memory": getattr(comm, "shared_memory", False),
        "cuda_aware": getattr(comm, "cuda_aware", None),
        "timeout": session.timeout,
        "debug": session.debug,
        "versions": _versions(),
        "ranks": [own] if comm is None else comm.objects(own),
    }


def _rank(place: Place, threads: int) -> dict[str, Any]:
    return {
        "host": place.host,
        "local_rank": place.local_rank,
        "local_size": place.local_size,
        "cpus": list(place.cpus),
        "threads": threads,
        "gpu": place.gpu,
    }


def _torch_size() -> int:
    return int(os.environ["WORLD_SIZE"])


def _library() -> str | None:
    MPI = sys.modules.get("mpi4py.MPI")
    return None if MPI is None else library_of(MPI)


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _lines(facts: dict[str, Any]) -> Iterator[str]:
    count = "1 rank" if facts["size"] == 1 else f"{facts['size']} ranks"
    yield f"kind       {facts['kind']}, {count}"
    for name, size in facts["launchers"].items():
        yield f"started    by {name}, {size} processes"
    if facts["library"] is not None:
        yield f"library    {facts['library']}"
    if facts["shared_memory"]:
        yield "CPU data   by memory that the ranks share"
    if facts["transport"] is not None:
        yield f"GPU data   by {facts['transport']}"
    elif facts["cuda_aware"] is not None:
        how = "read by the library" if facts["cuda_aware"] else "copied to the host first"
        yield f"GPU data   {how}"
    debug = "on" if facts["debug"] else "off"
    yield f"settings   timeout {facts['timeout']:g} s, debugging {debug}"
    for name, version in facts["versions"].items():
        yield f"{name:10} {version}"
    for number, rank in enumerate(facts["ranks"]):
        gpu = "no GPU" if rank["gpu"] is None else f"GPU {rank['gpu']}"
        yield (
            f"rank {number:<5} {rank['host']}, {rank['local_rank']} of {rank['local_size']} there, "
            f"{len(rank['cpus'])} CPUs, threads {rank['threads']}, {gpu}"
        )
