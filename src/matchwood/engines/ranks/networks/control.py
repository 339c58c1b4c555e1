"""What ranks tell each other besides their data: that one failed, has left, or where it waits.

A carrier (mpi_control.py, or the store of torch_group.py) moves the notices; this file decides what
they say and what follows from them.  Four kinds:

    failed   the sender cannot go on: all raise `RankFailed`
    left     the sender has closed its communicator; with the number of its last collective in each
    where    the sender has waited too long: answer
    here     the answer: the operation in which the sender waits, and the same numbers

A communicator has a path: () for that of all ranks, and for one that was split from it the path of
that, the number of the split, and the color.
"""

from __future__ import annotations

import abc
import atexit
import pickle
import weakref
from collections.abc import Sequence
from typing import Any

from matchwood.engines.ranks.faults import listed, shortened
from matchwood.errors import RankFailed

NOTICE_BYTES = 4000
"""Of a notice.  Libraries send so few at once, without waiting for the receiver: those looked at
(MPICH, Open MPI) do so up to 4096 bytes or more."""

TYPE_BYTES, MESSAGE_BYTES = 200, 1500  # of a notice; the traceback has the rest

Path = tuple[int, ...]


class Control(abc.ABC):
    """One rank's ear for the others; shared by a communicator and all split from it."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
        self.failure: RankFailed | None = None
        self.entered: dict[Path, int] = {}  # collectives that this rank came to
        self.operation = ""  # the last of them
        self.left: dict[int, dict[Path, int]] = {}
        self.answers: dict[int, tuple[str, dict[Path, int]]] = {}
        if not _open:
            atexit.register(_leave_all)
        _open.add(self)

    @abc.abstractmethod
    def look(self) -> None:
        """Hear what has come; never waits."""

    @abc.abstractmethod
    def send(self, rank: int, notice: bytes) -> None:
        """Send a notice; never waits."""

    @abc.abstractmethod
    def finish(self) -> None:
        """Free what an ordinary end frees: all ranks have left."""

    @abc.abstractmethod
    def abandon(self, held: Any) -> None:
        """End after a failure; `held` are the arrays of an operation that never ends."""

    def end(self, held: Any, failed: bool) -> None:
        """No notice comes or goes any more; `held` are the arrays of an unfinished operation."""
        _open.discard(self)
        if failed:
            self.abandon(held)
        else:
            self.finish()

    def tell(self, *notice: Any) -> None:
        """Send a notice to all other ranks."""
        text = pickle.dumps((self.rank, *notice))
        for rank in range(self.size):
            if rank != self.rank:
                self.send(rank, text)

    def hear(self, text: bytes) -> None:
        """React to a notice."""
        sender, kind, *rest = pickle.loads(text)
        if kind == "failed":
            self.failure = self.failure or RankFailed(*rest)
        elif kind == "left":
            self.left[sender] = rest[0]
        elif kind == "where":
            answer = (self.rank, "here", self.operation, fitting(self.entered))
            self.send(sender, pickle.dumps(answer))
        elif kind == "here":
            self.answers[sender] = (rest[0], rest[1])

    def announce(self, failure: RankFailed) -> None:
        """Tell the others of a failure that they do not know of."""
        self.failure = self.failure or failure
        fields = [
            failure.rank,
            shortened(failure.type, TYPE_BYTES),
            shortened(failure.message, MESSAGE_BYTES),
        ]
        room = NOTICE_BYTES - len(pickle.dumps((self.rank, "failed", *fields, ""))) - 16
        # the end of a traceback says most
        self.tell("failed", *fields, shortened(failure.traceback, room, end=True))

    def leave(self) -> None:
        """Tell the others that this rank comes to no collective any more."""
        self.operation = "close"
        self.tell("left", fitting(self.entered))

    def gone(self, members: Sequence[int], path: Path, number: int) -> int | None:
        """A member that has left without coming to collective `number` of this communicator."""
        for rank, entered in self.left.items():
            if rank in members and entered.get(path, 0) < number:
                return rank
        return None

    def missing(self, members: Sequence[int], path: Path, number: int) -> tuple[list[int], str]:
        """The members that, by the answers, have not come, and what is known of them."""
        absent, silent, words = [], [], []
        for rank in members:
            if rank == self.rank or rank in self.left:
                continue
            if rank not in self.answers:
                silent.append(rank)
            elif self.answers[rank][1].get(path, 0) < number:
                absent.append(rank)
                words.append(f"rank {rank} waits in {self.answers[rank][0]}")
        if silent:
            verb = "does" if len(silent) == 1 else "do"
            words.append(f"{listed(silent)} {verb} not answer")
        return sorted(absent + silent), "; ".join(words)


def fitting(entered: dict[Path, int]) -> dict[Path, int]:
    """As many of the numbers as a notice holds, those of the latest communicators."""
    found = dict(entered)
    while len(pickle.dumps(found)) > NOTICE_BYTES - 400:
        found = dict(list(found.items())[len(found) // 2 :])
    return found


_open: weakref.WeakSet[Control] = weakref.WeakSet()


def _leave_all() -> None:
    """A program that ends without closing its communicator: whoever waits for it hears of it."""
    atexit.unregister(_leave_all)
    for control in list(_open):
        control.leave()
        control.end(None, failed=True)
