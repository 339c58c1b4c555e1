"""Compiling a kernel for the arguments at hand, such that Ctrl-C and forks do no harm.

A compilation runs in a thread of its own: LLVM cannot be interrupted, and Numba, cut off in the
middle, may not recover.  On Ctrl-C the caller is free at once; the code is finished behind its
back, and there when it is next asked for.

A fork copies the calling thread alone.  A lock that another thread holds stays locked in the child
for ever, and LLVM's memory is what that thread left in the middle of its work.  So a fork waits
until nobody compiles; if that takes too long, the child knows that it must not compile.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import queue
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite.binding import ffi
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaError

from matchwood.teams.cache import cache_folder
from matchwood.teams.cpus import called_function
from matchwood.teams.members import Member, dismiss, enlist
from matchwood.teams.team import Team

LOOK_SECONDS = 0.05  # between looks, for systems where waiting for a lock does not end at Ctrl-C
FORK_SECONDS = 60.0  # that a fork waits for a compilation; the longest of ours takes 6
LAYOUT = 0x403  # bits of `ndarray.flags.num`: C order, Fortran order, writeable
_LOCKS = [  # in the order in which Numba takes them
    wrapper._lock for wrapper in (global_compiler_lock, ffi.lib._lock) if hasattr(wrapper, "_lock")
]

_compiled: set[tuple[Any, ...]] = set()  # (kernel, kinds of its arguments) seen before
_under_way: list[str] = []  # kernels that are being compiled
_held: list[Any] = []  # locks that this thread took for a fork
_lost = False  # this process was forked in the middle of a compilation


def ensure_compiled(kernel: Any, team: Team, args: tuple[Any, ...]) -> None:
    """Make sure that machine code for these arguments exists.

    Numba's own look at the types costs 12 us an argument, ours 0.5 us.
    """
    kinds = (kernel, *map(_kind, args))
    if kinds not in _compiled:
        try:
            _compile(kernel, (team, *args))
        except NumbaError as error:
            if not kernel.__module__.startswith("matchwood."):
                raise  # who writes a kernel wants to know why it does not compile
            found = ", ".join(_described(value) for value in args)
            raise TypeError(
                f"{called_function()}: {kernel.__name__} has no form for arguments of the types "
                f"{found}"
            ) from error
        _compiled.add(kinds)


def _compile(kernel: Any, values: tuple[Any, ...]) -> None:
    cache_folder()  # its warning is for the thread that called us
    if not _lost:
        _apart(functools.partial(_compile_here, kernel, values), kernel.__name__)
    elif _signature(kernel, values) not in kernel.overloads:
        raise RuntimeError(
            f"{called_function()}: {kernel.__name__} cannot be compiled in this process, which was "
            "forked while another thread compiled; call the function before the fork, or start "
            "processes by 'spawn'"
        )


def _compile_here(kernel: Any, values: tuple[Any, ...]) -> None:
    # Numba imports modules when it first looks at a type, and a child forked in the middle of an
    # import waits for ever: so that, too, under the lock which forks wait for.
    with global_compiler_lock:
        signature = _signature(kernel, values)
        if signature not in kernel.overloads:
            kernel.compile(signature)


def _signature(kernel: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(kernel.typeof_pyval(value) for value in values)


def _apart(task: Callable[[], object], name: str) -> None:
    """Run the task in a thread of its own, and wait for it where Ctrl-C is heard."""
    members: list[Member] = []
    if not global_compiler_lock.is_locked():  # by this thread, which another would wait for
        with contextlib.suppress(RuntimeError):  # no thread to be had: then here
            enlist(1, members)
    if not members:
        task()
        return
    outcome: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def work() -> None:
        error: BaseException | None = None
        _under_way.append(name)
        try:
            task()
        except BaseException as caught:
            error = caught
        _under_way.remove(name)
        dismiss(members)
        outcome.put(error)

    members[0].assign(work)
    while True:
        try:
            error = outcome.get(timeout=LOOK_SECONDS)
            break
        except queue.Empty:
            continue
    if error is not None:
        raise error


def _kind(value: Any) -> Any:
    """What of an argument decides its Numba type."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, value.flags.num & LAYOUT
    if isinstance(value, tuple):
        return type(value), *map(_kind, value)
    return type(value)


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} array" if value.flags.writeable else f"read-only {value.dtype} array"
    return type(value).__name__


def _before_fork() -> None:
    for lock in _LOCKS:
        if not lock.acquire(timeout=FORK_SECONDS):
            return
        _held.append(lock)


def _after_fork() -> None:
    mine = _held[::-1]
    _held.clear()  # while they are ours: another thread that forks waits for the last
    for lock in mine:
        lock.release()


def _after_fork_in_child() -> None:
    global _lost
    _under_way.clear()
    if len(_held) < len(_LOCKS):
        _lost = True
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
    )


@atexit.register
def _let_compilations_end() -> None:
    """Wait: LLVM frees its memory at the end of the process, which must not be in use then."""
    if _under_way and _LOCKS:
        _LOCKS[0].acquire(timeout=FORK_SECONDS)
