"""Waiting for other processes, interruptible: what MPI and torch.distributed share.

A collective is started and then polled, together with the notices of the other ranks.  So a rank
that waits raises within milliseconds after another one failed, Python reacts to Ctrl-C between two
looks, and a rank that has waited too long can say for whom.

MPI, or the store of torch_group.py, carries the notices; `Control` says what they hold and what
follows from them.  Four kinds:

    failed   the sender cannot go on: all raise `RankFailed`
    left     the sender has closed its communicator; with the number of its last collective in each
    where    the sender has waited too long: answer
    here     the answer: the operation in which the sender waits, and the same numbers

A communicator has a path: () for that of all ranks; for one that was split off, the path of the
one it was split from, the number of the split, and the color.
"""

from __future__ import annotations

import abc
import atexit
import contextlib
import copy
import os
import pickle
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from matchwood.engines.ranks.checks import Counts
from matchwood.engines.ranks.faults import difference, failure_of, listed, shortened
from matchwood.engines.ranks.networks import staging
from matchwood.engines.ranks.protocol import Communicator, Session, Traffic
from matchwood.errors import RankFailed

NOTICE_BYTES = 4000
"""The most bytes of a notice, few enough that libraries send it without waiting for the receiver:
those looked at (MPICH, Open MPI) do so up to 4096 bytes or more."""

TYPE_BYTES, MESSAGE_BYTES = 200, 1500  # of a notice; the traceback has the rest

Path = tuple[int, ...]

BUSY_LOOKS = 200  # one after the other, before a rank that waits leaves its CPU to others
YIELDS = 2000  # looks between which the CPU is offered to others; then a rank sleeps
CROWDED_LOOKS = 20  # the same where ranks share CPUs: those who compute need them
SLEEP_SECONDS = 0.0002  # between two looks of a rank that has waited long
REST_PART, REST_SECONDS = 64, 0.005  # a rank that rests sleeps 1 / 64 of its wait, at most 5 ms
ANSWER_SECONDS = 0.5  # that a rank whose patience is over waits for answers
TIMED_LOOKS = 64  # looks between two looks at the clock, while nobody sleeps


CLOSING = (-1,)  # a path that stands for no communicator: ranks that are closing have it


class Control(abc.ABC):
    """Notices from and to other ranks; shared by a communicator and all split from it."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
        self.failure: RankFailed | None = None
        self.entered: dict[Path, int] = {}  # the number of collectives that this rank entered
        self.operation = ""  # the last of them
        self.left: dict[int, dict[Path, int]] = {}
        self.answers: dict[int, tuple[str, dict[Path, int]]] = {}
        if not _open:
            atexit.register(_leave_all)
        _open.add(self)

    @abc.abstractmethod
    def look(self) -> None:
        """Receive the notices that have arrived; never waits."""

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
        """End the exchange of notices; `held` are the arrays of an unfinished operation."""
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
        """Notify the others that this rank enters no more collectives."""
        self.operation = "close"
        self.tell("left", fitting(self.entered))

    def gone(self, members: Sequence[int], path: Path, number: int) -> int | None:
        """A rank that has left before it entered collective `number` of this communicator."""
        for rank, entered in self.left.items():
            if rank in members and entered.get(path, 0) < number:
                return rank
        return None

    def missing(self, members: Sequence[int], path: Path, number: int) -> tuple[list[int], str]:
        """The ranks that, by the answers, have not entered, and what is known of them."""
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
    """As many of the numbers as fit into a notice, those of the latest communicators."""
    found = dict(entered)
    while len(pickle.dumps(found)) > NOTICE_BYTES - 400:
        found = dict(list(found.items())[len(found) // 2 :])
    return found


_open: weakref.WeakSet[Control] = weakref.WeakSet()


def _leave_all() -> None:
    """At the end of a program that did not close its communicators: notify the other ranks."""
    atexit.unregister(_leave_all)
    for control in list(_open):
        control.leave()
        control.end(None, failed=True)


class Polled(Communicator):
    """A communicator whose operations are started and then polled."""

    def __init__(
        self,
        rank: int,
        members: Sequence[int],
        threads: int,
        control: Control,
        path: Path,
        session: Session,
        traffic: Traffic | None = None,
    ) -> None:
        super().__init__(rank, len(members), threads, session, traffic)
        self.members = tuple(members)
        self.path = path
        self._control = control
        self._held: Any = None
        self._splits = 0

    def raw_compare(self, operation: str, *details: Any) -> None:
        control = self._control
        control.entered[self.path] = control.entered.get(self.path, 0) + 1
        control.operation = operation
        if not self.session.debug or operation == "close":
            return
        call = pickle.dumps((operation, *map(_plain, details)))
        found = difference([pickle.loads(text) for text in self.raw_bytes(call)])
        if found is not None:
            place, text = found
            raise RankFailed(self.members[place], "ValueError", text)

    def wait_until(self, done: Callable[[], Any]) -> None:
        """Return when `done()` is true; raise when a rank has failed or the time is over."""
        if done():
            return
        crowded, most = self.session.crowded, REST_SECONDS if self.session.resting else 0.0
        busy, awake = (0, CROWDED_LOOKS) if crowded else (BUSY_LOOKS, YIELDS)
        looks, waited, started = 0, 0.0, time.monotonic()
        while not done():
            self.look()
            looks += 1
            if looks > awake:
                time.sleep(max(SLEEP_SECONDS, min(waited / REST_PART, most)))
            elif looks > busy:
                _yield()
            if looks > awake or looks % TIMED_LOOKS == 0:
                waited = time.monotonic() - started
                if waited > self.session.timeout:
                    raise self._too_late(done)

    def look(self) -> None:
        self._control.look()
        self._raise_failures()

    @abc.abstractmethod
    def _swapped(self, pairs: Counts) -> Counts:
        """Send row r of `pairs`, (ranks, 2) numbers, to rank r; what this rank received."""

    def raw_bytes(self, text: bytes) -> Sequence[bytes]:
        counts = self.raw_lengths(len(text))
        joined = self.raw_gather(np.frombuffer(text, np.uint8), counts).tobytes()
        ends = np.cumsum(counts).tolist()
        return [joined[lo:hi] for lo, hi in zip([0, *ends], ends, strict=False)]

    def raw_table(self, sends: Counts) -> tuple[Counts, int]:
        pairs = np.empty((self.size, 2), np.int64)
        pairs[:, 0], pairs[:, 1] = sends, sends.sum()
        found = self._swapped(pairs)
        return found[:, 0].copy(), int(found[:, 1].sum())

    @staging.through_host
    def raw_reduce_scatter(self, array: Any, counts: Counts, op: str) -> Any:
        return super().raw_reduce_scatter(array, counts, op)

    @staging.through_host
    def raw_allreduce(self, array: Any, op: str) -> Any:
        return super().raw_allreduce(array, op)

    def _raise_failures(self) -> None:
        control = self._control
        if control.failure is not None:
            raise copy.copy(control.failure)
        if control.left and self.path != CLOSING:
            gone = control.gone(self.members, self.path, control.entered.get(self.path, 0))
            if gone is not None:
                text = f"it left while others wait for it in {control.operation}"
                raise RankFailed(gone, "RuntimeError", text)

    def _too_late(self, done: Callable[[], Any]) -> RankFailed:
        """The failure that names the ranks that did not enter, and where they wait instead."""
        control, number = self._control, self._control.entered.get(self.path, 0)
        control.answers.clear()
        control.tell("where")
        deadline = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < deadline and control.failure is None:
            control.look()
            done()  # libraries move messages only while they are asked
            time.sleep(SLEEP_SECONDS)
        self._raise_failures()
        missing, known = control.missing(self.members, self.path, number)
        who = f"{listed(missing)} {'has' if len(missing) == 1 else 'have'} not come"
        text = (
            f"{who if missing else 'all ranks have come, but nothing came back'} to "
            f"{control.operation} within {self.session.timeout:g} s (MATCHWOOD_DIST_TIMEOUT)"
        )
        first = missing[0] if missing else self.members[self.rank]
        return RankFailed(first, "TimeoutError", f"{text}; {known}" if known else text)

    def raw_close(self) -> None:
        """Leave, and wait until the others leave or fail."""
        control = self._control
        try:
            control.leave()
            self.path = CLOSING
            control.entered[CLOSING] = 1  # ranks that have not closed count as missing
            self.wait_until(lambda: len(control.left) == control.size - 1)
        except BaseException as error:
            self.raw_fail(error)
            raise
        self.session.closed = True
        control.end(None, failed=False)

    def raw_fail(self, error: BaseException) -> None:
        self.session.closed = True
        control = self._control
        if control.failure is None:  # else the others know
            failure = failure_of(control.rank, error)
            control.failure = failure
            with contextlib.suppress(Exception):  # `error` says more
                control.announce(failure)
        self.session.failure = control.failure
        with contextlib.suppress(Exception):
            control.end(self._held, failed=True)


def _yield() -> None:
    if hasattr(os, "sched_yield"):
        os.sched_yield()
    else:
        time.sleep(0)


def _plain(detail: Any) -> Any:
    return detail.tolist() if hasattr(detail, "tolist") else detail
