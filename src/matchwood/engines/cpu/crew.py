"""The host side of a team: the number of its threads (members), waiting for them, stopping them.

A crew owns its threads from the first to the last instruction of a kernel.  Crews share no thread
pool with a queue: two crews could then each wait at a barrier for members that the other holds.
members.py has the threads, cpus.py says how many, pinning.py which CPUs they stay on, and native.py
has the way to the kernel that needs no interpreter.

The calling thread does not run the kernel: it waits, reports progress, and reacts to Ctrl-C.  Only
a kernel so small that a hand-over would cost more runs in the calling thread itself.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from matchwood import arguments
from matchwood.engines.cpu import native
from matchwood.engines.cpu.cpus import called_function, checked_threads, default_threads
from matchwood.engines.cpu.members import Member, dismiss, enlist
from matchwood.engines.cpu.native import WAIT_SECONDS, Control, Run, entered
from matchwood.engines.cpu.pinning import arrange
from matchwood.engines.cpu.team import DETAIL, DONE, FAILURE, STOP, TOTAL

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
def watching(look: Callable[[], object]) -> Iterator[None]:
    """Call ``look()`` about twenty times a second while kernels run; its exception ends them."""
    callback, found = _progress.get() or (None, None)

    def both(done: int, total: int) -> None:
        look()
        if callback is not None:
            callback(done, total)

    with _telling(both, found):
        yield


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


def _report(control: Any) -> None:
    callbacks, count = _progress.get(), _counter.get()
    if callbacks is None:
        return
    callback, found = callbacks
    if found is not None and count is not None:
        found(count())
    callback(control[DONE], control[TOTAL])


class _PythonRun:
    """One run of a kernel that members call through Python; without it: `Run` of native.py.

    It knows which members have begun and ended.  The last one to end releases the lock that `wait`
    waits for.
    """

    def __init__(self, work: Callable[[int], object], size: int, control: Any) -> None:
        self._work, self._size, self._words = work, size, control
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
            self._work(me)
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
        entry, record = entered(kernel, self.size, args)  # before any member waits for it
        words = entry.words
        if self._inline:
            entry.call_here(record, args)
        else:
            entry.fill(record, args)
            control = Control.from_buffer(record, 8 * words)
            run = (
                Run(record, kernel.__name__, args)
                if native.ready()
                else _PythonRun(functools.partial(entry.call, record), self.size, control)
            )
            self._hand_over(run, control)
        failure = record[words + FAILURE]
        if failure:
            detail = record[words + DETAIL]
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

        def work(_: int) -> None:
            while not control[STOP]:
                with lock:
                    i = next(numbers, None)
                if i is None:
                    return
                task(i)

        control = Control()
        if self._inline:
            work(0)
        elif n:
            self._hand_over(_PythonRun(work, self.size, control), control)

    def _hand_over(self, run: Run | _PythonRun, control: Any) -> None:
        members: list[Member] = []
        try:
            if self._call(members):
                arrange(members, kernel=isinstance(run, Run))
                run.begin(members)
                while not run.wait():
                    _report(control)
            else:
                run.alone()  # in this thread; Ctrl-C has to wait until the kernel ends
            if control[DONE]:
                _report(control)
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
