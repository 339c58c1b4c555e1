"""A team that fills the slots of a ring ahead of the copies, where it is known what will travel.

To call twelve threads for a slot takes 0.4 ms, a third of the time in which they fill it.  Here
they are called once for all slots.  Turn t is in slot t mod RING_SLOTS.  The team waits until the
device has left it, and the caller, which alone calls CUDA, until it is filled.  They tell each
other by two counters.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.devices import cpu_copies

Array = np.ndarray[Any, Any]

POLL_SECONDS = 0.00002  # between two looks at the counters: a slot is filled in some 0.7 ms


class Turn(NamedTuple):
    """What goes into a slot: its parts, and where their words are."""

    slot: Any
    parts: Any
    targets: list[Array]  # in the slot
    sources: list[Array]

    def moves(self) -> list[tuple[int, int, int]]:
        """(address to, address from, bytes)."""
        pairs = zip(self.targets, self.sources, strict=True)
        return [(to.ctypes.data, of.ctypes.data, of.nbytes) for to, of in pairs]


class Filling:
    """The turns of several sends, in their order, filled by a team of its own.

    Parameters
    ----------
    sends : sequence of lists of Turn
        What the caller will ask for by `next_send`.
    slots : int
        Of the ring.  All are free.
    threads : int
        Of the team.
    """

    def __init__(self, sends: Sequence[list[Turn]], slots: int, threads: int) -> None:
        self._sends = deque(sends)
        self._turn = 0  # that is sent next
        self._sent: deque[Any] = deque()  # events of turns that the device has not left
        self._words = np.zeros(cpu_copies.FILLING_WORDS, np.int64)
        self._error: BaseException | None = None
        self._turns = [turn for send in sends for turn in send]  # memory that the team reads
        moves = [move for turn in self._turns for move in turn.moves()]
        firsts = np.cumsum([0, *(len(turn.parts) for turn in self._turns)], dtype=np.int64)
        table = np.array(moves, np.int64).reshape(-1, 3)
        arguments = (table, firsts, slots, self._words, threads)
        self._thread = threading.Thread(
            target=self._run, args=arguments, daemon=True, name="matchwood filling"
        )
        self._thread.start()

    def _run(self, *arguments: Any) -> None:
        try:
            cpu_copies.fill(*arguments)
        except BaseException as error:
            self._error = error

    @property
    def ended(self) -> bool:
        """All sends were asked for."""
        return not self._sends

    def next_send(self) -> Any:
        """The turns of the next send, each when its slot is filled; tell `sent` before the next."""
        for turn in self._sends.popleft():
            self._wait()
            self._turn += 1
            yield turn

    def sent(self, event: Any) -> None:
        """The event comes when the device has left the slot of the last turn."""
        self._sent.append(event)

    def _wait(self) -> None:
        """Until the next turn is in its slot.  Ctrl-C is heard meanwhile."""
        self._tell_left()
        while not self._is_filled():
            if not self._thread.is_alive() and not self._is_filled():
                raise self._error or RuntimeError("the slots of a ring are filled no more")
            time.sleep(POLL_SECONDS)
            self._tell_left()

    def _is_filled(self) -> bool:
        return bool(self._words[cpu_copies.FILLED] > self._turn)

    def _tell_left(self) -> None:
        """Which slots the device has left, for the team."""
        while self._sent and self._sent[0].done:
            self._sent.popleft()
            self._words[cpu_copies.LEFT] += 1

    def close(self) -> None:
        """No thread writes into a slot after this."""
        self._words[cpu_copies.ENDED] = 1
        self._thread.join()
