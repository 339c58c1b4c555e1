"""The threads of teams: started when needed, kept while idle, forgotten after a fork.

An idle member waits at its mailbox (native.py), where kernels reach it without the interpreter.
It leaves the mailbox for a task in Python.  Members started before mailboxes were ready have none.

A team never waits for threads of another team: it gets as many as it needs, idle ones first and
then new ones.  Idle threads are kept for the next team, as many as the largest team may have.  One
team after another has them in the same order: what a member wrote is then in its own cache.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Callable

from matchwood.engines.cpu import native
from matchwood.engines.cpu.cpus import most_threads
from matchwood.engines.cpu.mailboxes import LOOKS
from matchwood.engines.cpu.pinning import ANYWHERE

KEPT_THREADS = most_threads()  # most idle threads that are kept
JOIN_SECONDS = 5  # longest wait for an idle thread to end


class Member(threading.Thread):
    """A thread that waits for a task or a kernel, runs it, and waits again."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="matchwood")
        # A SimpleQueue survives Ctrl-C at any point.  A semaphore whose release is interrupted may
        # never wake its waiter.
        self._tasks: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self.mailbox = native.Mailbox() if native.ready() else None
        self.cpu = ANYWHERE  # on which it stays, see pinning.py
        self.start()

    def assign(self, task: Callable[[], None]) -> None:
        """Run a task in this thread.  It must not raise."""
        self._put(task)

    def retire(self) -> None:
        """End the thread when its tasks are done."""
        self._put(lambda: _RETIRED)

    def _put(self, task: Callable[[], object]) -> None:
        self._tasks.put(task)
        if self.mailbox is not None:
            self.mailbox.call()

    def run(self) -> None:
        # without a variable for the task, which would keep its arrays alive while waiting
        if self.mailbox is None:
            while self._tasks.get()() is not _RETIRED:
                pass
            return
        while True:
            self.mailbox.attend()
            # All tasks: after Ctrl-C between a task and its call, the task waits for the next call.
            with contextlib.suppress(queue.Empty):
                while self._tasks.get_nowait()() is not _RETIRED:
                    pass
                return


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
    outdated: list[Member] = []
    with _free_lock:
        first = max(0, len(_free) - count)
        taken = _free[first:]
        del _free[first:]
        for member in taken:
            (outdated if native.ready() and member.mailbox is None else members).append(member)
    for member in outdated:
        member.retire()
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


def rest() -> None:
    """Idle members sleep at once, instead of looking for work: others need their CPUs now."""
    with _free_lock:
        for member in _free:
            if member.mailbox is not None:
                member.mailbox.words[LOOKS] = 0  # until the next kernel, which sets it


def dismiss(members: list[Member]) -> None:
    """Take back idle members; those beyond `KEPT_THREADS` end."""
    with _free_lock:
        _free.extend(members)
        surplus = _free[KEPT_THREADS:]
        del _free[KEPT_THREADS:]
    for member in surplus:
        member.retire()
