"""The threads of teams: started when needed, kept while idle, forgotten after a fork.

A team never waits for threads of another team: it gets as many as it needs, idle ones first and
then new ones.  Idle threads are kept for the next team, as many as the largest team may have.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable

from matchwood.teams.cpus import most_threads

KEPT_THREADS = most_threads()  # most idle threads that are kept
JOIN_SECONDS = 5  # longest wait for an idle thread to end


class Member(threading.Thread):
    """A thread that waits for a task, runs it, and waits again."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="matchwood")
        # A SimpleQueue works even if Ctrl-C comes at any point.  A semaphore whose release is
        # interrupted may never wake its waiter.
        self._tasks: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self.start()

    def assign(self, task: Callable[[], None]) -> None:
        """Run a task in this thread.  It must not raise."""
        self._tasks.put(task)

    def retire(self) -> None:
        """End the thread when its tasks are done."""
        self._tasks.put(lambda: _RETIRED)

    def run(self) -> None:
        # without a variable for the task, which would keep its arrays alive while waiting
        while self._tasks.get()() is not _RETIRED:
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
    """Fill `members`; the caller gives them back by `dismiss`, also after an error.

    Raises RuntimeError where the system starts no more threads.  Threads started for this call are
    then ended, so that others can use their memory.
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
    """Take back idle members; those beyond `KEPT_THREADS` end."""
    with _free_lock:
        _free.extend(members)
        surplus = _free[KEPT_THREADS:]
        del _free[KEPT_THREADS:]
    for member in surplus:
        member.retire()
