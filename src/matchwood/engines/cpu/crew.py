"""The host side of a team: the number of its threads (members), waiting for them, stopping them.

A crew owns its threads from the first to the last instruction of a kernel.  Crews share no thread
pool with a queue: two crews could then each wait at a barrier for members that the other holds.
members.py has the threads, cpus.py says how many, pinning.py which CPUs they stay on, and native.py
has the way to the kernel that needs no interpreter.  The first part of this file compiles kernels.

The calling thread does not run the kernel: it waits, reports progress, and reacts to Ctrl-C.  Only
a kernel so small that a hand-over would cost more runs in the calling thread itself.
"""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import functools
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from llvmlite.binding import ffi
from numba.core import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaError

from matchwood import arguments
from matchwood.engines.cpu import native
from matchwood.engines.cpu.cache import cache_folder
from matchwood.engines.cpu.cpus import called_function, checked_threads, default_threads
from matchwood.engines.cpu.members import Member, dismiss, enlist
from matchwood.engines.cpu.native import WAIT_SECONDS, Entry, Run, entry
from matchwood.engines.cpu.pinning import arrange
from matchwood.engines.cpu.team import DETAIL, DONE, FAILURE, STOP, TOTAL, WORDS, Team

# Compiling a kernel for given arguments, so that Ctrl-C and forks do no harm.
#
# A compilation runs in a thread of its own: LLVM cannot be interrupted, and Numba may not recover
# from an exception in the middle.  On Ctrl-C the caller goes on at once; the compilation finishes
# in the background, and the code is there for the next call.
#
# A fork copies the calling thread alone.  A lock that another thread holds stays locked in the
# child for ever, and LLVM's memory is in the state of an unfinished compilation.  So a fork waits
# until no thread compiles; if that takes too long, the child remembers that it must not compile.

COMPILE_WAIT_SECONDS = 0.05  # of one wait; on some systems Ctrl-C works only between waits
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
    """Whether its kind decides Numba's type: machine code may then be called without a test."""
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
    """Compile, and append to `entries`, if given, how members enter the code."""
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
            error = outcome.get(timeout=COMPILE_WAIT_SECONDS)
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


INLINE_WORK = 20_000
"""Steps (for example edges) below which a kernel runs in the calling thread.  A hand-over takes
10 us for an empty kernel and 20 to 30 us with a few arrays, the time of some 15,000 steps.  The
limit is not larger, since Ctrl-C does not work meanwhile.  Measured:
bench/engines/cpu/overhead.py."""

SECOND_THREAD_WORK = 100_000
"""Steps below which a team has one member.  Two are faster from some 70,000 steps of 2 ns on, 1.25
times at 120,000 and 1.7 times at a million.  Measured: bench/engines/cpu/overhead.py, 2 cores."""

TOGETHER = 1 << 15
"""Steps of a short kernel below which one member is as quick as several that are awake."""

STOPPING_SECONDS = 0.0005  # between two tests whether members that must stop have ended

Progress = Callable[[int, int], None]
Found = Callable[[int], None]
_progress: contextvars.ContextVar[tuple[Progress, Found | None] | None] = contextvars.ContextVar(
    "matchwood_progress", default=None
)
_counter: contextvars.ContextVar[Callable[[], int] | None] = contextvars.ContextVar(
    "matchwood_counter", default=None
)


def on_progress(
    callback: Progress, *, found: Found | None = None
) -> contextlib.AbstractContextManager[None]:
    """Call ``callback(done, total)`` about twenty times a second while kernels run.

    It runs in the calling thread, for calls made inside the ``with`` block, in this thread or
    task only.  `total` is 0 where the work is not known in advance.  An exception that it raises
    ends the kernel and reaches the caller.

    Functions that find things one by one also call ``found(count)``, just before `callback`:
    `fuzzy_join` passes the number of pairs so far.

    Examples
    --------
    >>> import matchwood
    >>> with matchwood.on_progress(lambda done, total: None):
    ...     matchwood.connected_components(matchwood.generators.path(5)).count
    1
    """
    if not callable(callback):
        raise TypeError(f"on_progress: callback must be callable, got {arguments.shown(callback)}")
    return _telling(callback, arguments.callback("on_progress", "found", found))


@contextlib.contextmanager
def _telling(callback: Progress, found: Found | None) -> Iterator[None]:
    token = _progress.set((callback, found))
    try:
        yield
    finally:
        _progress.reset(token)


@contextlib.contextmanager
def counting(count: Callable[[], int]) -> Iterator[None]:
    """For a host whose kernels find things: ``count()`` is the number found so far.

    It is called in the calling thread while kernels run, and only where a callback asks for it.
    """
    token = _counter.set(count)
    try:
        yield
    finally:
        _counter.reset(token)


def tell_progress(done: int, total: int) -> None:
    """For a host that works without kernels of its own: call the progress callback."""
    callbacks = _progress.get()
    if callbacks is not None:
        callbacks[0](done, total)


def _report(words: np.ndarray[Any, Any]) -> None:
    callbacks, count = _progress.get(), _counter.get()
    if callbacks is None:
        return
    callback, found = callbacks
    if found is not None and count is not None:
        found(count())
    callback(int(words[DONE]), int(words[TOTAL]))


class _PythonRun:
    """One run of a kernel that members call through Python; without it: `Run` of native.py.

    It knows which members have begun and ended.  The last one to end releases the lock that `wait`
    waits for.
    """

    def __init__(self, kernel: Any, team: Team, args: tuple[Any, ...]) -> None:
        self._kernel, self._args = kernel, args
        self._size, self._words = team.size, team.words
        self._lock = threading.Lock()
        self._running = threading.Lock()
        self._running.acquire()
        self._runner: dict[int, str] = {}
        self._ended: set[int] = set()
        self.error: BaseException | None = None  # the first one

    def begin(self, members: list[Member]) -> None:
        """Send the members to work, numbered by their place in the list."""
        for me, member in enumerate(members):
            member.assign(functools.partial(self._task, me))

    def alone(self) -> None:
        """Run a team of one in this thread."""
        self._task(0)

    def _task(self, me: int) -> None:
        if self._runner.setdefault(me, "member") != "member":
            return  # cancelled before this member began
        error: BaseException | None = None
        try:
            self._kernel(Team(me, self._size, self._words), *self._args)
        except BaseException as caught:
            error = caught
        with self._lock:
            if error is not None:
                self.error = self.error or error
                self._words[STOP] = 1
            self._ended.add(me)
            if len(self._ended) == self._size:
                self._running.release()

    def wait(self) -> bool:
        """True when all members have ended.  A signal ends the wait at once, so Ctrl-C works."""
        return self._running.acquire(timeout=WAIT_SECONDS)

    def cancel(self) -> None:
        """Stop the members, and wait for those that have begun.

        Afterwards the caller may change the arrays, so a second Ctrl-C must not end this early:
        the loop begins again.
        """
        while True:
            try:
                self._words[STOP] = 1
                ranks = range(self._size)
                begun = [r for r in ranks if self._runner.setdefault(r, "nobody") == "member"]
                while not self._ended.issuperset(begun):
                    time.sleep(STOPPING_SECONDS)
                return
            except BaseException:  # noqa: S112  the first exception is raised by the caller
                continue


class Crew:
    """A team before it runs: its size is known, so that the host can allocate for each member."""

    def __init__(self, size: int, inline: bool) -> None:
        self.size = size
        self._inline = inline

    def run(
        self,
        kernel: Any,
        *args: Any,
        errors: Mapping[int, Callable[[int], Exception]] | None = None,
    ) -> None:
        """Run ``kernel(team, *args)`` on every member and return when all have returned.

        `errors` maps the codes given to `fail` to functions that make the exception from the
        detail.  On an exception in the calling thread (Ctrl-C, a progress callback that raises)
        the members stop at their next barrier or chunk, and the exception goes on.
        """
        words = np.zeros(WORDS, np.int64)
        team = Team(0, self.size, words)
        code = compiled(kernel, team, args, not self._inline)  # before any member waits for it
        if self._inline:
            code.call(team, *args)
        elif code.entry is None:
            self._hand_over(_PythonRun(code.call, team, args), team)
        else:
            self._hand_over(Run(code.entry, kernel.__name__, (team, *args)), team)
        failure = int(words[FAILURE])
        if failure:
            detail = int(words[DETAIL])
            if errors is None or failure not in errors:
                raise RuntimeError(f"{kernel.__name__} failed with code {failure}, detail {detail}")
            raise errors[failure](detail)

    def spread(self, task: Callable[[int], object], n: int) -> None:
        """Call ``task(i)`` for i in 0 .. n - 1; each member takes the next that nobody has taken.

        For long calls into compiled libraries that let other threads run, such as NumPy's sort.
        Ctrl-C takes effect between two tasks.
        """
        numbers = iter(range(n))
        lock = threading.Lock()

        def work(team: Team) -> None:
            while not team.words[STOP]:
                with lock:
                    i = next(numbers, None)
                if i is None:
                    return
                task(i)

        team = Team(0, self.size, np.zeros(WORDS, np.int64))
        if self._inline:
            work(team)
        elif n:
            self._hand_over(_PythonRun(work, team, ()), team)

    def _hand_over(self, run: Run | _PythonRun, team: Team) -> None:
        members: list[Member] = []
        try:
            if self._call(members):
                arrange(members, kernel=isinstance(run, Run))
                run.begin(members)
                while not run.wait():
                    _report(team.words)
            else:
                run.alone()  # in this thread; Ctrl-C has to wait until the kernel ends
            if team.words[DONE]:
                _report(team.words)
        except BaseException:
            run.cancel()
            raise
        finally:
            dismiss(members)
        error = run.error
        if error is not None:
            raise error

    def _call(self, members: list[Member]) -> bool:
        """Get the members; False where there is no thread for a team of one."""
        try:
            enlist(self.size, members)
            return True
        except (RuntimeError, MemoryError) as error:
            if self.size == 1:
                return False
            raise RuntimeError(
                f"{called_function()}: {self.size} threads are needed, and the system starts no "
                f"more ({error}); ask for fewer by threads= or MATCHWOOD_NUM_THREADS"
            ) from error


def crew(threads: int | None = None, *, work: int) -> Crew:
    """The crew for a kernel of about `work` steps (usually edges).

    `threads` is the number of members, at most `most_threads`.  None takes `default_threads`, or
    one where a second thread would gain nothing.
    """
    if threads is None:
        size = default_threads() if work >= SECOND_THREAD_WORK else 1
    else:
        size = checked_threads(threads)
    return Crew(size, inline=size == 1 and work < INLINE_WORK)


def crew_for_step(threads: int | None, *, work: int) -> Crew:
    """The crew for one of the many steps of a call, of which some are small.

    As `crew`, but one member where several would not be quicker, also if `threads` are given.
    """
    return crew(threads if work >= TOGETHER else 1, work=work)
