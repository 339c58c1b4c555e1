"""How many threads: the CPUs of the machine, the number asked for, and the largest allowed."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from matchwood.arguments import is_integer, shown

FEWEST_ALLOWED = 64  # threads that may be asked for on any machine, for tests
PER_CPU = 8  # threads per CPU; more would only wait for each other

ONE_THREAD_ENTRIES = 1 << 17  # waking a team takes as long as one thread takes for these
CACHED_TIMES = 16  # times ONE_THREAD_ENTRIES, over the threads of a team: still in the caches


def available_cpus() -> int:
    """CPUs this process may use: affinity, and the quota of its cgroup, rounded up."""
    if hasattr(os, "sched_getaffinity"):
        cpus = len(os.sched_getaffinity(0))
    else:
        cpus = os.cpu_count() or 1
    quota = _cgroup_quota()
    return max(1, cpus if quota is None else min(cpus, int(np.ceil(quota))))


@functools.cache
def _cgroup_quota(
    membership: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")
) -> float | None:
    """CPUs granted by cgroup v2 or v1; None where there is no limit.

    A limit on a group holds for the groups inside it, so the least limit of all ancestors counts.
    """
    try:
        lines = [line.split(":", 2) for line in membership.read_text().splitlines()]
    except OSError:
        return None
    quotas: list[float] = []
    for number, controllers, group in (line for line in lines if len(line) == 3):
        version2 = number == "0" and not controllers
        if not version2 and "cpu" not in controllers.split(","):
            continue
        top = root if version2 else root / "cpu"
        inside = top / group.lstrip("/")  # in a container this folder may not be there, `top` is
        for folder in (inside, *inside.parents):
            if folder.is_relative_to(top):
                quotas += _quota_of(folder)
    return min(quotas, default=None)


def _quota_of(folder: Path) -> list[float]:
    """The limit that one cgroup sets, if it sets one."""
    with contextlib.suppress(OSError, ValueError):
        quota, period = (folder / "cpu.max").read_text().split()
        return [] if quota == "max" else [int(quota) / int(period)]
    with contextlib.suppress(OSError, ValueError):
        quota_us = int((folder / "cpu.cfs_quota_us").read_text())
        period_us = int((folder / "cpu.cfs_period_us").read_text())
        return [] if quota_us < 0 else [quota_us / period_us]
    return []


def most_threads() -> int:
    """The largest team that may be asked for: eight threads for each CPU, and 64 on any machine."""
    return max(FEWEST_ALLOWED, PER_CPU * available_cpus())


def default_threads() -> int:
    """MATCHWOOD_NUM_THREADS, else the CPUs this process may use."""
    text = os.environ.get("MATCHWOOD_NUM_THREADS")
    if text is None:
        return available_cpus()
    digits = text.lstrip("0")
    if not (text.isascii() and text.isdecimal() and digits):
        raise ValueError(f"MATCHWOOD_NUM_THREADS must be a positive integer, got {text!r}")
    most = most_threads()
    if len(digits) > len(str(most)) or int(digits) > most:
        raise ValueError(
            f"MATCHWOOD_NUM_THREADS must be at most {most} on this machine, got {text[:20]}"
        )
    return int(digits)


def suits_one_thread(entries: int) -> bool:
    """Whether one thread, by a method for data in the caches, is not slower than a team.

    The methods that ask take a third of the time that one thread of a team takes.
    """
    return entries <= ONE_THREAD_ENTRIES or (
        entries * default_threads() <= ONE_THREAD_ENTRIES * CACHED_TIMES
    )


def checked_threads(threads: Any) -> int:
    """The `threads` of a call as an integer, else an error that names the function called."""
    if not is_integer(threads):
        got = shown(threads)
        raise TypeError(f"{called_function()}: threads must be an integer or None, got {got}")
    if threads < 1:
        raise ValueError(f"{called_function()}: threads must be at least 1, got {shown(threads)}")
    if threads > FEWEST_ALLOWED and threads > most_threads():  # the first test is the fast one
        raise ValueError(
            f"{called_function()}: threads must be at most {most_threads()} on this machine "
            f"({PER_CPU} for each CPU, and {FEWEST_ALLOWED} on any), got {shown(threads)}"
        )
    return int(threads)


def called_function() -> str:
    """The public function that the user called: the outermost frame of this package."""
    frame, name = sys._getframe(1), "matchwood"
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "matchwood":
        if not frame.f_code.co_name.startswith(("_", "<")):
            name = frame.f_code.co_qualname
        if frame.f_back is None:
            break
        frame = frame.f_back
    return name
