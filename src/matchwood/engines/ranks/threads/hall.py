"""Where ranks that are threads meet.

All waiting is in `Hall.meet`, under one lock, so the hall knows who waits where.  It ends the
meeting with `RankFailed` for everybody as soon as a rank raises or returns, when the ranks that are
left all wait for each other, when two bring different things, and when the time is over.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from matchwood.engines.ranks.faults import difference, listed
from matchwood.errors import RankFailed


class Meeting:
    """One collective: who has come, with what, and who waits."""

    def __init__(self, group: Group, number: int) -> None:
        self.group = group
        self.number = number
        self.things: list[Any] = [None] * len(group.members)
        self.calls: list[tuple[Any, ...] | None] = [None] * len(group.members)
        self.come = 0
        self.waiters: list[threading.Lock] = []

    def missing(self) -> list[int]:
        """The ranks, as the hall counts them, that have not come."""
        return [
            rank for rank, call in zip(self.group.members, self.calls, strict=True) if call is None
        ]

    def operation(self) -> str:
        return str(next(call for call in self.calls if call is not None)[0])


class Group:
    """The ranks of a communicator, as the hall counts them, and the meetings not yet complete."""

    def __init__(self, members: Sequence[int]) -> None:
        self.members = tuple(members)
        self.meetings: dict[int, Meeting] = {}


class Hall:
    """Where the ranks of one `run` meet, in all communicators split from the first."""

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
        """Bring `thing` to a meeting of the group; what all brought, once all have come."""
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
        """All have come: let those who wait go on, unless they want different things."""
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

    def failure_again(self) -> RankFailed:
        """The failure as a new exception: each rank raises one of its own."""
        assert self.failure is not None
        old = self.failure
        return RankFailed(old.rank, old.type, old.message, old.traceback)

    def leave(self, rank: int) -> None:
        """The rank has returned: whoever waits for it waits in vain."""
        with self._lock:
            self._left.add(rank)
            for meeting in list(self._open):
                self._look_for_deadlock(meeting)
