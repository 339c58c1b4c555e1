"""The host side of a team: how many members, who they are, waiting for them, stopping them.

A crew owns its threads from the first to the last instruction of a kernel.  Members never queue
behind another crew's: two crews that shared a pool could each wait at a barrier for members that
the other holds.  Threads that are free are kept for the next crew; a forked child starts with
none, since threads do not survive a fork.

The calling thread does not work: it waits, reports progress, and hears Ctrl-C.  Only a kernel too
small to be worth a hand-over runs in the calling thread itself.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from matchwood.teams.team import DETAIL, DONE, FAILURE, STOP, TOTAL, WORDS, Team

INLINE_WORK = 20_000
"""Steps (edges, say) below which a kernel runs in the calling thread.  A hand-over costs 10 us for
an empty kernel and 20 to 30 with a few arrays, the time of some 15,000 steps.  Not more than that,
since Ctrl-C is not heard in the meantime.  Measured: bench/teams/overhead.py."""

SECOND_THREAD_WORK = 100_000
"""Steps below which one member does the work: two are faster from some 70,000 steps of 2 ns, by a
quarter at 120,000, by 1.7 at a million.  Measured: bench/teams/overhead.py, 2 cores."""

PROGRESS_SECONDS = 0.05
STOPPING_SECONDS = 0.0005  # between looks at members that were told to stop

Progress = Callable[[int, int], None]
_progress: contextvars.ContextVar[Progress | None] = contextvars.ContextVar(
    "matchwood_progress", default=None
)


@contextlib.contextmanager
def on_progress(callback: Progress) -> Iterator[None]:
    """Call ``callback(done, total)`` about twenty times a second while kernels run.

    It runs in the calling thread, for calls made inside the ``with`` block, in this thread or
    task only.  `total` is 0 where the work is not known beforehand.  An exception that it raises
    ends the kernel and reaches the caller.

    Examples
    --------
    >>> import matchwood
    >>> with matchwood.on_progress(lambda done, total: None):
    ...     matchwood.connected_components(matchwood.generators.path(5)).count
    1
    """
    token = _progress.set(callback)
    try:
        yield
    finally:
        _progress.reset(token)


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

    A limit on a group holds for the groups inside it, so the least of all ancestors counts.
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


def default_threads() -> int:
    """MATCHWOOD_NUM_THREADS, else the CPUs this process may use."""
    text = os.environ.get("MATCHWOOD_NUM_THREADS")
    if text is None:
        return available_cpus()
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"MATCHWOOD_NUM_THREADS must be a positive integer, got {text!r}")
    return int(text)


class _Member(threading.Thread):
    """A thread that waits for a task, runs it, and waits again."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="matchwood")
        # Of the ways to hand over a task this one survives Ctrl-C at any point: a semaphore whose
        # release was interrupted may lose its waiter.
        self._tasks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.start()

    def assign(self, task: Callable[[], None]) -> None:
        self._tasks.put(task)

    def run(self) -> None:
        while True:
            self._tasks.get()()


_free: list[_Member] = []
_free_lock = threading.Lock()


def _forget_members() -> None:
    global _free_lock
    _free.clear()
    _free_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_members)


def _enlist(count: int, members: list[_Member]) -> None:
    """Fill `members`, which the caller gives back by `_dismiss` whatever happens."""
    with _free_lock:
        while _free and len(members) < count:
            members.append(_free.pop())
    while len(members) < count:
        members.append(_Member())


def _dismiss(members: list[_Member]) -> None:
    with _free_lock:
        _free.extend(members)


class _Watch:
    """Which ranks have begun and ended.  The last one to end opens the gate."""

    def __init__(self, size: int, words: np.ndarray[Any, Any]) -> None:
        self._size = size
        self._words = words
        self._lock = threading.Lock()
        self._gate = threading.Lock()
        self._gate.acquire()
        self._runner: dict[int, str] = {}
        self._ended: set[int] = set()
        self.error: BaseException | None = None  # the first one

    def begins(self, rank: int) -> bool:
        """False when the rank was called off."""
        return self._runner.setdefault(rank, "member") == "member"

    def ends(self, rank: int, error: BaseException | None) -> None:
        with self._lock:
            if error is not None:
                self.error = self.error or error
                self._words[STOP] = 1
            self._ended.add(rank)
            if len(self._ended) == self._size:
                self._gate.release()

    def wait(self, timeout: float) -> bool:
        """True when all are done.  Wakes up at once for a signal, so Ctrl-C is heard."""
        return self._gate.acquire(timeout=timeout)

    def call_off(self) -> None:
        """Stop the members, and wait for those that have begun.

        The arrays are the caller's again afterwards, so a second Ctrl-C must not cut this short:
        it may come at any point, and then all is looked at anew.
        """
        while True:
            try:
                self._words[STOP] = 1
                ranks = range(self._size)
                begun = [r for r in ranks if self._runner.setdefault(r, "nobody") == "member"]
                while not self._ended.issuperset(begun):
                    time.sleep(STOPPING_SECONDS)
                return
            except BaseException:  # noqa: S112  the first exception is on its way already
                continue


class Crew:
    """A team to be: its size is known, so that the host can allocate for each member."""

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
        # Compile in the calling thread, where Ctrl-C is heard, before any member waits for it.
        _compile(kernel, Team(0, self.size, words), args)
        if self._inline:
            kernel(Team(0, 1, words), *args)
        else:
            self._hand_over(kernel, words, args)
        code = int(words[FAILURE])
        if code:
            detail = int(words[DETAIL])
            if errors is None or code not in errors:
                raise RuntimeError(f"{kernel.__name__} failed with code {code}, detail {detail}")
            raise errors[code](detail)

    def _hand_over(self, kernel: Any, words: np.ndarray[Any, Any], args: tuple[Any, ...]) -> None:
        watch = _Watch(self.size, words)

        def task(rank: int) -> None:
            if not watch.begins(rank):
                return
            error: BaseException | None = None
            try:
                kernel(Team(rank, self.size, words), *args)
            except BaseException as caught:
                error = caught
            watch.ends(rank, error)

        members: list[_Member] = []
        try:
            _enlist(self.size, members)
            for rank, member in enumerate(members):
                member.assign(functools.partial(task, rank))
            self._attend(watch, words)
        except BaseException:
            watch.call_off()
            raise
        finally:
            _dismiss(members)
        if watch.error is not None:
            raise watch.error

    @staticmethod
    def _attend(watch: _Watch, words: np.ndarray[Any, Any]) -> None:
        callback = _progress.get()
        while not watch.wait(PROGRESS_SECONDS):
            if callback is not None:
                callback(int(words[DONE]), int(words[TOTAL]))
        if callback is not None and words[DONE]:
            callback(int(words[DONE]), int(words[TOTAL]))


_compiled: set[tuple[Any, ...]] = set()  # (kernel, kinds of its arguments) seen before


def _compile(kernel: Any, team: Team, args: tuple[Any, ...]) -> None:
    """Make sure that machine code for these arguments exists.

    Numba's own look at the types costs 12 us an argument, ours 1 us.
    """
    kinds = (kernel, *(_kind(value) for value in args))
    if kinds not in _compiled:
        signature = tuple(kernel.typeof_pyval(value) for value in (team, *args))
        if signature not in kernel.overloads:
            kernel.compile(signature)
        _compiled.add(kinds)


def _kind(value: Any) -> Any:
    """What of an argument decides its Numba type."""
    if isinstance(value, np.ndarray):
        flags = value.flags
        return value.dtype, value.ndim, flags.c_contiguous, flags.f_contiguous, flags.writeable
    if isinstance(value, tuple):
        return type(value), tuple(_kind(item) for item in value)
    return type(value)


def crew(threads: int | None = None, *, work: int) -> Crew:
    """The crew for a kernel of about `work` steps (edges, as a rule).

    Asked-for `threads` are given, whatever the machine; None takes `default_threads`, and one
    where the work is too small to gain from a second.
    """
    if threads is None:
        size = default_threads() if work >= SECOND_THREAD_WORK else 1
    else:
        if not isinstance(threads, (int, np.integer)) or isinstance(threads, bool):
            raise TypeError(f"threads must be an integer or None, got {threads!r}")
        if threads < 1:
            raise ValueError(f"threads must be at least 1, got {threads}")
        size = int(threads)
    return Crew(size, inline=size == 1 and work < INLINE_WORK)
