"""Members that stay on CPUs of their own.

Linux often wakes two members of a team on one CPU while another one is idle, and moves them only
milliseconds later: of four ranks with four CPUs each, members had a CPU in 0.6 of the time of short
kernels.  Where each stays on one, in 0.9; components of R-MAT 22 then took 26 ms instead of 40.

That is done only where nobody else uses the CPUs: ranks say so, whose launcher gave each some of
its own (`reserve`).  The calling thread may go to any of them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

ANYWHERE = -1  # no CPU of its own
_UNKNOWN = -2  # a change was interrupted


class Placed(Protocol):
    """A member; `cpu` is the one it stays on."""

    cpu: int

    @property
    def native_id(self) -> int | None:
        """The number of its thread."""


class _Reserved:
    """CPUs that no other process uses, as long as `holds` says so."""

    def __init__(self, cpus: Iterable[int], holds: Callable[[], bool]) -> None:
        self.cpus = sorted(cpus)
        self.allowed = set(self.cpus)
        self.holds = holds


_reserved: _Reserved | None = None


def reserve(cpus: Iterable[int], holds: Callable[[], bool]) -> None:
    """No other process uses these CPUs, as long as `holds` says so: members may stay on them."""
    global _reserved
    _reserved = _Reserved(cpus, holds) if hasattr(os, "sched_setaffinity") else None


def _forget() -> None:
    """A process that was forked off shares the CPUs of its parent."""
    global _reserved
    _reserved = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def arrange(members: Sequence[Placed], kernel: bool) -> None:
    """Each member stays on a CPU where there are as many reserved; else all may go anywhere.

    So they may for anything but a kernel in machine code: threads that another library starts stay
    where the thread was that started them.  So they may, too, where the calling thread's own CPUs
    are no longer those that were reserved.
    """
    found = _reserved
    if found is not None and not found.holds():
        _forget()
        found = None
    stay = (
        kernel
        and found is not None
        and len(members) == len(found.cpus)
        and os.sched_getaffinity(0) == found.allowed
    )
    for rank, member in enumerate(members):
        cpu = found.cpus[rank] if stay and found is not None else ANYWHERE
        if member.cpu != cpu:
            _move(member, cpu)


def _move(member: Placed, cpu: int) -> None:
    """Where the system refuses, the member stays where it may be, and is asked again next time."""
    assert member.native_id is not None
    member.cpu = _UNKNOWN  # also where Ctrl-C comes in between
    with contextlib.suppress(OSError):
        allowed = {cpu} if cpu != ANYWHERE else os.sched_getaffinity(0)
        os.sched_setaffinity(member.native_id, allowed)
        member.cpu = cpu
