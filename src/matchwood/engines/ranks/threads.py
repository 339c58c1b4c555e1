"""Ranks that are threads of one process: where they meet, their communicator, and `run`.

A collective is a meeting: each rank brings an object, waits until all ranks have entered, and then
reads what the others brought, where it lies.  Arrays are never pickled.  A large array is not
copied either: its owner waits until all have read it (a second meeting).  A small one is copied,
which costs less than to wait again.
"""

from __future__ import annotations

import copy
import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from matchwood.arguments import at_most, count
from matchwood.engines import check_threads
from matchwood.engines.cpu.cpus import checked_threads
from matchwood.engines.ranks import checks
from matchwood.engines.ranks.checks import Counts
from matchwood.engines.ranks.faults import difference, failure_of, listed
from matchwood.engines.ranks.networks.staging import settle
from matchwood.engines.ranks.protocol import (
    Communicator,
    MappedArrays,
    Session,
    Traffic,
    collective,
)
from matchwood.errors import EngineUnavailable, RankFailed

COPIED_BYTES = 1 << 16  # up to this size an array is copied, so that its owner need not wait
LOOK_SECONDS = 0.05  # between looks at the ranks, where Ctrl-C does not end the wait for a lock
MOST_RANKS = 4096  # threads of one process
PARTING_SECONDS = 0.05  # that `run` waits for ranks to end after Ctrl-C


class Meeting:
    """One collective: who has entered (`come` of them), with what, and who waits."""

    def __init__(self, group: Group, number: int) -> None:
        self.group = group
        self.number = number
        self.things: list[Any] = [None] * len(group.members)
        self.calls: list[tuple[Any, ...] | None] = [None] * len(group.members)
        self.come = 0
        self.waiters: list[threading.Lock] = []

    def missing(self) -> list[int]:
        return [
            rank for rank, call in zip(self.group.members, self.calls, strict=True) if call is None
        ]

    def operation(self) -> str:
        return str(next(call for call in self.calls if call is not None)[0])


class Group:
    """The ranks of a communicator, as `run` numbers them, and the meetings not yet complete."""

    def __init__(self, members: Sequence[int]) -> None:
        self.members = tuple(members)
        self.meetings: dict[int, Meeting] = {}


class Rendezvous:
    """Where the ranks of one `run` meet, in all communicators split from the first.

    All waiting is in `meet`, under one lock, so it is known who waits where.  A meeting ends with
    `RankFailed` for everybody as soon as a rank raises or returns, when the ranks that are left all
    wait for each other, when two bring different things, and when the time is over.
    """

    def __init__(self, ranks: int) -> None:
        self.everybody = Group(range(ranks))
        self.failure: RankFailed | None = None
        self._lock = threading.Lock()
        self._open: set[Meeting] = set()
        self._waiting = 0
        self._left: set[int] = set()

    def meet(
        self,
        group: Group,
        number: int,
        place: int,
        call: tuple[Any, ...],
        thing: Any,
        patience: float,
    ) -> list[Any]:
        """Bring `thing` to a meeting of the group; what all brought, once all have entered."""
        own: threading.Lock | None = None
        with self._lock:
            if self.failure is not None:
                raise self.failure_again()
            meeting = group.meetings.get(number)
            if meeting is None:
                meeting = group.meetings[number] = Meeting(group, number)
                self._open.add(meeting)
            meeting.things[place], meeting.calls[place] = thing, call
            meeting.come += 1
            if meeting.come == len(group.members):
                self._complete(meeting)
            else:
                own = threading.Lock()
                own.acquire()
                meeting.waiters.append(own)
                self._waiting += 1
                self._look_for_deadlock(meeting)
        if own is not None and not own.acquire(timeout=min(patience, threading.TIMEOUT_MAX)):
            self._too_late(meeting, patience)
        if self.failure is not None:
            raise self.failure_again()
        return meeting.things

    def _complete(self, meeting: Meeting) -> None:
        """All have entered: let those who wait go on, unless their calls differ."""
        found = difference(meeting.calls)
        if found is not None:
            place, text = found
            self._end(RankFailed(meeting.group.members[place], "ValueError", text))
            return
        del meeting.group.meetings[meeting.number]
        self._open.discard(meeting)
        self._waiting -= len(meeting.waiters)
        for waiter in meeting.waiters:
            waiter.release()

    def _look_for_deadlock(self, meeting: Meeting) -> None:
        """End the waiting where nobody is left who could end it."""
        if self.failure is not None:
            return
        gone = [rank for rank in meeting.missing() if rank in self._left]
        if gone:
            text = f"it returned while others wait for it in {meeting.operation()}"
            self._end(RankFailed(gone[0], "RuntimeError", text))
        elif self._waiting == len(self.everybody.members) - len(self._left):
            first = min(self._open, key=lambda each: min(each.missing()))
            places = "; ".join(
                f"{each.operation()} waits for {listed(each.missing())}"
                for each in sorted(self._open, key=lambda each: each.missing())
            )
            text = f"all ranks wait for each other: {places}"
            self._end(RankFailed(min(first.missing()), "RuntimeError", text))

    def _too_late(self, meeting: Meeting, patience: float) -> None:
        with self._lock:
            missing = meeting.missing()
            if missing and self.failure is None:
                verb = "has" if len(missing) == 1 else "have"
                text = (
                    f"{listed(missing)} {verb} not come to {meeting.operation()} "
                    f"within {patience:g} s (MATCHWOOD_DIST_TIMEOUT)"
                )
                self._end(RankFailed(missing[0], "TimeoutError", text))

    def fail(self, failure: RankFailed) -> None:
        """Make all ranks raise, at once where they wait."""
        with self._lock:
            if self.failure is None:
                self._end(failure)

    def _end(self, failure: RankFailed) -> None:
        self.failure = failure
        for meeting in self._open:
            for waiter in meeting.waiters:
                waiter.release()
        self._open.clear()

    def absence(self, group: Group, operation: str) -> RankFailed | None:
        """The failure of a rank, or that one of the group has returned; None where all work."""
        if self.failure is not None:
            return self.failure_again()
        gone = self._left.intersection(group.members)
        if not gone:
            return None
        text = f"it returned while others wait for it in {operation}"
        return RankFailed(min(gone), "RuntimeError", text)

    def failure_again(self) -> RankFailed:
        """The failure as a new exception: each rank raises one of its own."""
        assert self.failure is not None
        return copy.copy(self.failure)

    def leave(self, rank: int) -> None:
        """Note that the rank has returned: a meeting that waits for it fails."""
        with self._lock:
            self._left.add(rank)
            for meeting in list(self._open):
                self._look_for_deadlock(meeting)


# The communicator


class Threads(Communicator):
    """A rank that is a thread; `run` makes them."""

    kind = "threads"

    def __init__(
        self,
        rendezvous: Rendezvous,
        group: Group,
        rank: int,
        threads: int,
        session: Session,
        traffic: Traffic | None = None,
    ) -> None:
        super().__init__(rank, len(group.members), threads, session, traffic)
        self._meetings = rendezvous
        self._group = group
        self._number = 0
        self._call: tuple[Any, ...] = ()
        self._starts: Any = None  # where the runs for this rank begin; set by `raw_table`

    def raw_compare(self, operation: str, *details: Any) -> None:
        # compared when all have entered; arrays as lists
        plain = tuple(d.tolist() if isinstance(d, np.ndarray) else d for d in details)
        self._call = (operation, *plain)

    def _meet(self, thing: Any) -> list[Any]:
        self._number += 1
        call, patience = self._call, self.session.timeout
        return self._meetings.meet(self._group, self._number, self.rank, call, thing, patience)

    def _read(self, array: Any, read: Callable[[list[Any]], Any]) -> Any:
        """What `read` makes of the arrays of all ranks; nobody changes them meanwhile."""
        copied = array is None or array.nbytes <= COPIED_BYTES
        brought = array if array is None or not copied else array.copy()
        settle(brought)
        together = self._meet((copied, brought))
        result = read([each for _, each in together])
        if not all(each for each, _ in together):
            settle(result)
            self._meet(None)
        return result

    @collective
    def lend(self, arrays: Sequence[Any]) -> MappedArrays | None:
        self.raw_compare("lend")
        for array in arrays:
            settle(array)
        found = self._meet(list(arrays))
        devices = {str(array.device) for each in found for array in each}
        return MappedArrays(found) if len(devices) == 1 else None

    @collective
    def shared_array(self, nbytes: int) -> Any:
        self.raw_compare("shared_array", nbytes)
        return self._meet(np.zeros(nbytes, np.uint8) if self.rank == 0 else None)[0]

    def wait_until(self, done: Callable[[], bool]) -> None:
        operation, deadline = self._call[0], time.monotonic() + self.session.timeout
        while not done():
            absence = self._meetings.absence(self._group, operation)
            if absence is None and time.monotonic() > deadline:
                text = f"others have not come to {operation} within {self.session.timeout:g} s"
                me = self._group.members[self.rank]
                absence = RankFailed(me, "TimeoutError", f"{text} (MATCHWOOD_DIST_TIMEOUT)")
            if absence is not None and not done():  # who has returned may have come before
                raise absence
            time.sleep(0)

    def raw_barrier(self) -> None:
        self._meet(None)

    def raw_bytes(self, text: bytes) -> Sequence[bytes]:
        return self._meet(text)

    def raw_lengths(self, length: int) -> Counts:
        return np.array(self._meet(length), np.int64)

    def raw_table(self, sends: Counts) -> tuple[Counts, int]:
        table = np.array(self._meet(sends))
        self._starts = (np.cumsum(table, axis=1) - table)[:, self.rank]
        return table[:, self.rank].copy(), int(table.sum())

    def raw_gather(self, array: Any, counts: Counts) -> Any:
        return self._read(array, lambda arrays: _joined(array, arrays))

    def raw_exchange(self, array: Any, sends: Counts, receives: Counts, total: int) -> Any:
        ends = self._starts + receives  # of the runs for this rank in the arrays of all

        def read(arrays: list[Any]) -> Any:
            runs = zip(arrays, self._starts.tolist(), ends.tolist(), strict=True)
            return _joined(array, [theirs[lo:hi] for theirs, lo, hi in runs])

        return self._read(array, read)

    def raw_broadcast(self, array: Any, root: int) -> Any:
        return self._read(array, lambda arrays: arrays[root].copy())

    def raw_reduce_scatter(self, array: Any, counts: Counts, op: str) -> Any:
        start = int(counts[: self.rank].sum())
        own = slice(start, start + int(counts[self.rank]))
        return self._read(array, lambda arrays: checks.reduced([a[own] for a in arrays], op))

    def raw_allreduce(self, array: Any, op: str) -> Any:
        if array.nbytes <= COPIED_BYTES:
            return self._read(array, lambda arrays: checks.reduced(arrays, op))
        counts = checks.even_shares(array.size, self.size)
        own = self.raw_reduce_scatter(array, counts, op)
        settle(own)
        return _joined(array, self._meet(own))  # nobody changes `own`: it need not be read at once

    def raw_split(self, color: int | None, ranks: Sequence[int]) -> Communicator | None:
        # all ranks of a color must hold one group: that of the first of them
        group = None
        if color is not None and ranks[0] == self.rank:
            group = Group([self._group.members[rank] for rank in ranks])
        groups = self._meet(group)
        if color is None:
            return None
        place = ranks.index(self.rank)
        traffic = Traffic(self.traffic)
        return Threads(self._meetings, groups[ranks[0]], place, self.threads, self.session, traffic)

    def raw_close(self) -> None:
        self._call = ("close",)
        try:
            self._meet(None)
        finally:
            self._end()

    def raw_fail(self, error: BaseException) -> None:
        self._meetings.fail(failure_of(self._group.members[self.rank], error))
        self._end()

    def _end(self) -> None:
        self.session.closed = True
        self.session.failure = self._meetings.failure


def _joined(like: Any, arrays: Sequence[Any]) -> Any:
    return checks.module_of(like).concatenate(arrays)


# Starting ranks, and ending them when one fails or at Ctrl-C


class _Rank(threading.Thread):
    """A thread that calls the function of one rank and keeps what it returns or raises."""

    def __init__(
        self,
        comm: Threads,
        rendezvous: Rendezvous,
        call: Callable[[Threads], Any],
        ended: threading.Semaphore,
    ) -> None:
        super().__init__(name=f"matchwood rank {comm.rank}", daemon=True)
        self.result: Any = None
        self.error: BaseException | None = None
        self._comm = comm
        self._meetings = rendezvous
        self._call = call
        self._ended = ended

    def run(self) -> None:
        try:
            self._work()
        except KeyboardInterrupt as error:  # of `_interrupt`, at any point
            self.error = self.error or error
        finally:
            self._ended.release()

    def _work(self) -> None:
        try:
            self.result = self._call(self._comm)
        except BaseException as error:
            self.error = error
            self._meetings.fail(failure_of(self._comm.rank, error))
        finally:
            self._meetings.leave(self._comm.rank)


def run(function: Callable[..., Any], ranks: int = 4, *args: Any, threads: int = 1) -> list[Any]:
    """Call ``function(comm, *args)`` on several ranks, which are threads of this process.

    For trying and testing: a program that is right here is right under ``mpiexec``.

    Parameters
    ----------
    function : callable
        Gets a `Communicator` and `args`.
    ranks : int
        How many.
    *args
        The same objects for all ranks.
    threads : int
        CPU threads of each rank.

    Returns
    -------
    results : list
        What `function` returned, by rank.

    Raises
    ------
    RankFailed
        An exception was raised on one of the ranks; it is the cause of this one.  Where several
        raised, that of the smallest rank.  A rank that returns while others wait for it fails too.

    Examples
    --------
    >>> import matchwood as mw
    >>> import numpy as np
    >>> def total(comm):
    ...     return int(comm.allreduce(np.array([comm.rank]))[0])
    >>> mw.dist.run(total, 3)
    [3, 3, 3]
    """
    if not callable(function):
        raise TypeError(f"run: function must be callable, got {type(function).__name__}")
    ranks = at_most("run", "ranks", count("run", "ranks", ranks, 1), MOST_RANKS, "each is a thread")
    check_threads(threads)
    threads = checked_threads(threads)  # None is no number of them
    rendezvous = Rendezvous(ranks)
    ended = threading.Semaphore(0)
    workers = [
        _Rank(
            Threads(rendezvous, rendezvous.everybody, rank, threads, Session()),
            rendezvous,
            lambda comm: function(comm, *args),
            ended,
        )
        for rank in range(ranks)
    ]
    try:
        for worker in workers:
            worker.start()
        for _ in workers:
            while not ended.acquire(timeout=LOOK_SECONDS):
                pass
    except BaseException as error:
        _interrupt(rendezvous, workers, error)
        begun = sum(worker.ident is not None for worker in workers)
        if isinstance(error, RuntimeError) and begun < ranks:  # of Python: no more threads
            raise EngineUnavailable(
                f"run: only {begun} of {ranks} ranks could be started; ask for fewer"
            ) from error
        raise
    return _results(workers, rendezvous)


def _interrupt(rendezvous: Rendezvous, workers: Sequence[_Rank], error: BaseException) -> None:
    """End the ranks after Ctrl-C: those that wait raise there, the others in Python code."""
    rendezvous.fail(failure_of(None, error))
    deadline = time.monotonic() + PARTING_SECONDS
    started = [worker for worker in workers if worker.ident is not None]
    for worker in started:
        if worker.is_alive():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(worker.ident or 0), ctypes.py_object(KeyboardInterrupt)
            )
    for worker in started:
        worker.join(max(0.0, deadline - time.monotonic()))


def _results(workers: Sequence[_Rank], rendezvous: Rendezvous) -> list[Any]:
    for worker in workers:
        if worker.error is not None and not isinstance(worker.error, RankFailed):
            raise failure_of(int(worker.name.split()[-1]), worker.error) from worker.error
    if rendezvous.failure is not None:
        raise rendezvous.failure
    for worker in workers:
        if worker.error is not None:
            raise worker.error
    return [worker.result for worker in workers]
