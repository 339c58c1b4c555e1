"""Checks that a call's memory is free, before it is allocated.

The operating system promises more memory than there is, and ends a process that uses it.  So
requests whose size is known beforehand are compared with what is free, here and nowhere else.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from matchwood.errors import OutOfMemory

SMALL = 64 << 20  # bytes; smaller requests are not compared with what is free
ADDRESSES = 1 << 47  # bytes that a process can address; the limit where nothing else is known
VERTEX_ARRAYS = 4  # arrays of n: row pointers, the same while they are counted, two of an answer


def require_vertices(caller: str, n: int, where: str = "cpu") -> None:
    """Raise `OutOfMemory` where there is no room for the arrays of a graph with `n` vertices.

    For inputs that only name their number of vertices.  On a GPU a failed allocation says so.
    """
    nbytes = VERTEX_ARRAYS * n * (4 if n < 1 << 31 else 8)
    if where == "cpu" or nbytes > ADDRESSES:
        require_memory(caller, nbytes, f"a graph of {n} vertices")


def require_memory(caller: str, nbytes: int, what: str) -> None:
    """Raise `OutOfMemory` where `nbytes` are surely not free.  O(1); nothing is allocated."""
    if nbytes <= SMALL:
        return
    known = available_memory()
    free = ADDRESSES if known is None else known
    if nbytes > free:
        raise OutOfMemory(f"{caller}: {what} needs {_size(nbytes)} of memory, {_size(free)} free")


def _size(nbytes: int) -> str:
    value, units = float(min(nbytes, 1 << 200)), ("bytes", "KiB", "MiB", "GiB", "TiB")
    for unit in units:
        if value < 1024 or unit == units[-1]:
            break
        value /= 1024
    return f"{value:,.4g} {unit}"


def available_memory() -> int | None:
    """Bytes that this process can still get, without swap; None where that is unknown."""
    known = [*_of_machine(), *_of_groups(), *_of_process()]
    return min(known, default=None)


def _of_machine() -> list[int]:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return [int(line.split()[1]) * 1024]
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    return []


def _of_process() -> list[int]:
    """What is left of the limit on the addresses of this process (``ulimit -v``)."""
    with contextlib.suppress(ImportError, OSError, ValueError, IndexError):
        import resource  # not on Windows

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            return [max(0, limit - pages * resource.getpagesize())]
    return []


def _of_groups(
    membership: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")
) -> list[int]:
    """What is left of the limit of each cgroup (v2 or v1) that holds this process."""
    try:
        lines = [line.split(":", 2) for line in membership.read_text().splitlines()]
    except (OSError, ValueError):
        return []
    left: list[int] = []
    for number, controllers, group in (line for line in lines if len(line) == 3):
        if number == "0" and not controllers:
            top, limit, used = root, "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            top, limit, used = root / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        inside = top / group.lstrip("/")
        for folder in (inside, *inside.parents):
            if folder.is_relative_to(top):
                left += _left(folder, limit, used)
    return left


def _left(folder: Path, limit: str, used: str) -> list[int]:
    with contextlib.suppress(OSError, ValueError):
        most = int((folder / limit).read_text())  # "max" is no number
        taken = int((folder / used).read_text()) - _cached(folder)
        return [max(0, most - taken)]
    return []


def _cached(folder: Path) -> int:
    """Bytes of file cache, which the kernel gives up before it refuses memory."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in (folder / "memory.stat").read_text().splitlines():
            if line.startswith(("file ", "total_cache ")):
                return int(line.split()[1])
    return 0
