"""The threads of teams: started when needed, kept while idle, forgotten after a fork.

Members never wait in a queue for another team's to be done: who needs five gets five, free ones
first and then new ones.  Idle ones are kept for the next team, as many as the largest team has.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable

from matchwood.teams.cpus import most_threads

KEPT_THREADS = most_threads()  # idle ones, at most
JOIN_SECONDS = 5  # for a thread that has nothing left to do


class Member(threading.Thread):
    """A thread that waits for a task, runs it, and waits again."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="matchwood")
        # Of the ways to hand over a task this one survives Ctrl-C at any point: a semaphore whose
        # release was interrupted may lose its waiter.
        self._tasks: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self.start()

    def assign(self, task: Callable[[], None]) -> None:
        """Have a task run.  It must not raise."""
        self._tasks.put(task)

    def retire(self) -> None:
        """End the thread when its tasks are done."""
        self._tasks.put(lambda: _RETIRED)

    def run(self) -> None:
        while self._tasks.get()() is not _RETIRED:  # no name here keeps the task's arrays alive
            pass


_RETIRED = object()


_free: list[Member] = []
_free_lock = threading.Lock()


def _forget() -> None:
    global _free_lock
    _free.clear()
    _free_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def enlist(count: int, members: list[Member]) -> None:
    """Fill `members`, which the caller gives back by `dismiss` whatever happens.

    Raises RuntimeError where the system starts no more threads; those that were started for this
    call are ended, since others need what they hold.
    """
    with _free_lock:
        while _free and len(members) < count:
            members.append(_free.pop())
    kept = len(members)
    try:
        while len(members) < count:
            members.append(Member())
    except (RuntimeError, MemoryError):
        started = members[kept:]
        del members[kept:]
        for member in started:
            member.retire()
        for member in started:
            member.join(JOIN_SECONDS)
        raise


def dismiss(members: list[Member]) -> None:
    """Take back members that are idle; of more than `KEPT_THREADS` the rest end."""
    with _free_lock:
        _free.extend(members)
        surplus = _free[KEPT_THREADS:]
        del _free[KEPT_THREADS:]
    for member in surplus:
        member.retire()
