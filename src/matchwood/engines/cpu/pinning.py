"""Members that stay on CPUs of their own.

Linux often wakes two members of a team on one CPU while another one is idle, and moves them only
milliseconds later: of four ranks with four CPUs each, members had a CPU for 0.6 of the time of
short kernels.  Pinned, they had one for 0.9: components of R-MAT 22 took 26 ms instead of 40.

That is done only where nobody else uses the CPUs: a rank whose launcher gave it CPUs of its own
calls `reserve`.  The calling thread may run on any of them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

ANYWHERE = -1  # no CPU of its own
_UNKNOWN = -2  # a change was interrupted
_LENT = -3  # anywhere among CPUs that were lent


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
_lent: _Reserved | None = None


def reserve(cpus: Iterable[int], holds: Callable[[], bool]) -> None:
    """No other process uses these CPUs, as long as `holds` says so: members may stay on them."""
    global _reserved
    _reserved = _Reserved(cpus, holds) if hasattr(os, "sched_setaffinity") else None


def usable(cpus: Iterable[int]) -> bool:
    """Whether this thread may run on all of these CPUs."""
    return not hasattr(os, "sched_getaffinity") or os.sched_getaffinity(0).issuperset(cpus)


@contextlib.contextmanager
def lent(cpus: Iterable[int]) -> Iterator[None]:
    """This thread and its teams run on these CPUs, too: the processes that have them wait.

    A launcher divides the CPUs of a job among its ranks; one rank that works for all may use those
    of all.  Where the system refuses that, it keeps its own.
    """
    global _lent
    if usable(cpus):
        yield
        return
    own, before = os.sched_getaffinity(0), _lent
    try:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, own.union(cpus))
        _lent = _Reserved(os.sched_getaffinity(0), lambda: True)
        yield
    finally:
        _lent = before
        os.sched_setaffinity(0, own)


def _forget() -> None:
    """A process that was forked off shares the CPUs of its parent."""
    global _reserved, _lent
    _reserved = _lent = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def arrange(members: Sequence[Placed], kernel: bool) -> None:
    """Pin each member to a CPU if there are as many reserved; else all may run anywhere.

    They also may for anything but a kernel in machine code, because threads that another library
    starts inherit the CPU of the thread that started them; and where the calling thread's own CPUs
    are no longer those that were reserved.
    """
    global _reserved
    found = _reserved if _lent is None else _lent
    if found is not None and not found.holds():
        _reserved = found = None
    stay = (
        kernel
        and found is not None
        and len(members) == len(found.cpus)
        and os.sched_getaffinity(0) == found.allowed
    )
    anywhere = ANYWHERE if _lent is None else _LENT  # members that ran elsewhere are moved
    for me, member in enumerate(members):
        cpu = found.cpus[me] if stay and found is not None else anywhere
        if member.cpu != cpu:
            _move(member, cpu)


def _move(member: Placed, cpu: int) -> None:
    """Pin a member, or unpin it; where the system refuses, it is tried again next time."""
    assert member.native_id is not None
    member.cpu = _UNKNOWN  # stays so after Ctrl-C
    with contextlib.suppress(OSError):
        allowed = {cpu} if cpu >= 0 else os.sched_getaffinity(0)
        os.sched_setaffinity(member.native_id, allowed)
        member.cpu = cpu
