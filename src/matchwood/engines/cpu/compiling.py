"""Compiling a kernel for given arguments, so that Ctrl-C and forks do no harm.

A compilation runs in a thread of its own: LLVM cannot be interrupted, and Numba may not recover
from an exception in the middle.  On Ctrl-C the caller goes on at once; the compilation finishes in
the background, and the code is there for the next call.

A fork copies the calling thread alone.  A lock that another thread holds stays locked in the child
for ever, and LLVM's memory is in the state of an unfinished compilation.  So a fork waits until no
thread compiles; if that takes too long, the child remembers that it must not compile.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import queue
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite.binding import ffi
from numba.core import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaError

from matchwood.engines.cpu import native
from matchwood.engines.cpu.cache import cache_folder
from matchwood.engines.cpu.cpus import called_function
from matchwood.engines.cpu.members import Member, dismiss, enlist
from matchwood.engines.cpu.native import Entry, entry
from matchwood.engines.cpu.team import Team

WAIT_SECONDS = 0.05  # of one wait; on some systems Ctrl-C works only between waits
FORK_SECONDS = 60.0  # that a fork waits for a compilation; the longest one takes 6
LAYOUT = 0x103  # bits of `ndarray.flags.num`: C order, Fortran order, aligned
LARGEST = np.iinfo(np.int64).max  # Numba takes a larger int for unsigned
PLAIN = frozenset({int, float, bool, complex, type(None)})  # whose type decides Numba's type
_LOCKS = [  # in the order in which Numba takes them
    wrapper._lock for wrapper in (global_compiler_lock, ffi.lib._lock) if hasattr(wrapper, "_lock")
]


class Code(NamedTuple):
    """A kernel for arguments of some kinds."""

    call: Callable[..., Any]  # from Python
    entry: Entry | None  # without Python, where that is possible
    handed_over: bool  # an entry was asked for


_compiled: dict[tuple[Any, ...], Code] = {}  # by kernel, kinds of its arguments
_being_compiled: list[str] = []  # kernels that are being compiled
_held: list[Any] = []  # locks that this thread took for a fork
_forked_while_compiling = False  # this process was forked in the middle of a compilation


def compiled(kernel: Any, team: Team, args: tuple[Any, ...], handed_over: bool) -> Code:
    """The machine code for these arguments; it is made where it does not exist.

    `handed_over`: members will call it, else the calling thread.

    A test of the types takes 0.5 us an argument here.  Numba's own takes 2 us for a call, but
    500 us for a record if there is a record of another class with the same name and fields.  Each
    member would wait for it in turn, so members do without it.
    """
    kinds = (kernel, *map(_kind, args))
    code = _compiled.get(kinds)
    if code is None or (handed_over and not code.handed_over):
        try:
            found_entry = _compile(kernel, (team, *args), handed_over)
        except NumbaError as error:
            if not kernel.__module__.startswith("matchwood."):
                raise  # the author of a kernel outside the package needs Numba's own message
            found = ", ".join(_described(value) for value in args)
            raise TypeError(
                f"{called_function()}: {kernel.__name__} has no form for arguments of the types "
                f"{found}"
            ) from error
        values = (team, *args)
        plain = all(map(_is_plain, values))
        call = kernel.overloads[_signature(kernel, values)].entry_point if plain else kernel
        code = _compiled[kinds] = Code(call, found_entry, handed_over)
    return code


def _is_plain(value: Any) -> bool:
    """Its kind tells Numba's type for sure: machine code may be called without a test."""
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return type(value) in PLAIN or isinstance(value, (np.ndarray, np.generic))


def _compile(kernel: Any, values: tuple[Any, ...], handed_over: bool) -> Entry | None:
    cache_folder()  # here, so that its warning appears in the calling thread
    if not _forked_while_compiling:
        entries: list[Entry | None] = []
        task = functools.partial(_compile_here, kernel, values, entries if handed_over else None)
        _in_own_thread(task, kernel.__name__)
        return entries[0] if entries else None
    if _signature(kernel, values) not in kernel.overloads:
        raise RuntimeError(
            f"{called_function()}: {kernel.__name__} cannot be compiled in this process, which was "
            "forked while another thread compiled; call the function before the fork, or start "
            "processes by 'spawn'"
        )
    return None


def _compile_here(kernel: Any, values: tuple[Any, ...], entries: list[Entry | None] | None) -> None:
    """Compile; how members enter it goes to `entries`."""
    # Numba imports modules when it first meets a type, and a child forked in the middle of an
    # import waits for ever.  So this, too, is done under the lock that forks wait for.
    with global_compiler_lock:
        signature = _signature(kernel, values)
        if signature not in kernel.overloads:
            kernel.compile(signature)
        if entries is not None and all(map(_is_plain, values)):
            native.prepare()
            if native.ready():
                entries.append(entry(kernel.overloads[signature]))


def _signature(kernel: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Numba's types of the arguments.

    A read-only array is of the same type as others: a kernel writes only to what it was given to
    write to, and one form of it is enough.
    """
    kinds = tuple(kernel.typeof_pyval(value) for value in values)
    return tuple(map(_writeable, kinds)) if all(map(_is_plain, values)) else kinds


def _writeable(kind: Any) -> Any:
    if isinstance(kind, types.Array):
        return kind if kind.mutable else kind.copy(readonly=False)
    if isinstance(kind, types.BaseTuple):
        inner = list(map(_writeable, kind))
        return types.BaseTuple.from_types(inner, getattr(kind, "instance_class", None))
    return kind


def _in_own_thread(task: Callable[[], object], name: str) -> None:
    """Run the task in a thread of its own, and wait for it so that Ctrl-C works."""
    members: list[Member] = []
    if not global_compiler_lock.is_locked():  # if this thread has it, another would wait for ever
        with contextlib.suppress(RuntimeError):  # no thread can be started: run the task here
            enlist(1, members)
    if not members:
        task()
        return
    outcome: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def work() -> None:
        error: BaseException | None = None
        _being_compiled.append(name)
        try:
            task()
        except BaseException as caught:
            error = caught
        _being_compiled.remove(name)
        dismiss(members)
        outcome.put(error)

    members[0].assign(work)
    while True:
        try:
            error = outcome.get(timeout=WAIT_SECONDS)
            break
        except queue.Empty:
            continue
    if error is not None:
        raise error


def _kind(value: Any) -> Any:
    """The properties of an argument that decide its Numba type."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, value.flags.num & LAYOUT
    if isinstance(value, tuple):
        return type(value), *map(_kind, value)
    if isinstance(value, np.generic):
        return value.dtype
    if type(value) is int and value > LARGEST:
        return np.uint64
    return type(value)


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} array"
    return type(value).__name__


def _before_fork() -> None:
    for lock in _LOCKS:
        if not lock.acquire(timeout=FORK_SECONDS):
            return
        _held.append(lock)


def _after_fork() -> None:
    mine = _held[::-1]
    _held.clear()  # before the release: then another thread that forks may fill it
    for lock in mine:
        lock.release()


def _after_fork_in_child() -> None:
    global _forked_while_compiling
    _being_compiled.clear()
    if len(_held) < len(_LOCKS):
        _forked_while_compiling = True
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
    )


@atexit.register
def _let_compilations_end() -> None:
    """Wait for compilations: LLVM frees its memory at exit, and must not be using it then."""
    if _being_compiled and _LOCKS:
        _LOCKS[0].acquire(timeout=FORK_SECONDS)
