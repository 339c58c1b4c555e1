"""Memory that all ranks of a communicator have mapped, and how they meet there.

    flags    for each rank the number of the last meeting it came to
    heads    for each rank a few numbers: what it came for, lengths, where runs begin
    rows     for each rank a row of bytes: data

Heads and rows exist twice, and take turns from one meeting to the next.  So nobody waits until all
have read.  A row is written again two meetings later: all ranks came to the meeting in between, and
each of them had read what it wanted of the first one by then.

The memory is an anonymous file, which has no name in any folder.  The first rank makes it, and the
others open it through the first one's entry in /proc.  It is gone with the last process that has it
mapped, however that ends.
"""

from __future__ import annotations

import mmap
import os
import pickle
import secrets
from collections.abc import Callable
from typing import Any

import numpy as np

from matchwood.engines.cpu import Team, crew
from matchwood.engines.ranks.networks.shared.cpu_flags import ABSENT, DIFFERENT, LINE, come, present

NAME = "matchwood"
ROW_BYTES = 1 << 23  # of which only what is used takes memory; more goes in several meetings
LEAST_SLOT = 1 << 12  # bytes of a row for each rank; with more ranks the steps are too small
HEAD_WORDS = 72  # of a head, at least: broadcasts need so many
LOOKS = 50  # at a flag that is not up, one after the other: some 2 us
ALIGNED = 64  # bytes
TOKEN_BYTES = 16

Array = np.ndarray[Any, Any]


class Board:
    """The memory of one communicator, on one rank.

    Attributes
    ----------
    heads : (ranks, words) array of int64
    rows : (ranks, bytes) array of uint8
    whole : array of uint8
        Those of the meeting that `begin` was called for; `whole` is all rows in one.
    room : int
        Bytes of a row.
    """

    def __init__(self, memory: mmap.mmap, rank: int, size: int, room: int) -> None:
        self.rank, self.size, self.room = rank, size, room
        flags, heads, rows = layout(size, room)
        whole = np.frombuffer(memory, np.uint8)
        self._flags = whole[:flags].view(np.int64)
        self._heads = list(whole[flags : flags + heads].view(np.int64).reshape(2, size, -1))
        self._rows = list(whole[flags + heads : flags + heads + rows].reshape(2, size, room))
        self._wholes = [side.reshape(-1) for side in self._rows]
        self._number = 0
        self._team = Team(0, 1, np.zeros(0, np.int64))
        self.begin()
        crew(1, work=1).run(come, self._flags, self.heads, rank, 0, 0)  # compiled before a meeting
        crew(1, work=1).run(present, self._flags, self.heads, 0, 0)
        self._number = 0

    def begin(self) -> None:
        """Go on to the heads and rows of the next meeting: they may be written now."""
        self._number += 1
        side = self._number & 1
        self.heads, self.rows, self.whole = self._heads[side], self._rows[side], self._wholes[side]

    def meet(self, looks: int, wait: Callable[[Callable[[], Any]], None]) -> bool:
        """Come to the meeting, and return when all have; True when all came for the same.

        What this rank has to say is in its head and its row by now.  It looks so many times one
        after the other before `wait` is asked to wait.
        """
        number, heads, team, flags = self._number, self.heads, self._team, self._flags
        found = come(team, flags, heads, self.rank, number, looks)
        if found == ABSENT:

            def done() -> bool:
                nonlocal found
                found = present(team, flags, heads, number, looks)
                return bool(found != ABSENT)

            wait(done)
        return bool(found != DIFFERENT)


def layout(size: int, room: int) -> tuple[int, int, int]:
    """Bytes of all flags, of both sides' heads, and of both sides' rows."""
    words = -(-max(HEAD_WORDS, size + 4) // LINE) * LINE
    return size * LINE * 8, 2 * size * words * 8, 2 * size * room


def room_for(size: int) -> int:
    """Bytes of a row in a communicator of that size; 0 where there are too many ranks."""
    return ROW_BYTES if ROW_BYTES // size >= LEAST_SLOT else 0


def open_board(base: Any, room: int) -> Board | None:
    """The board of a communicator whose ranks are on one host; None on all where one fails.

    All ranks call this; `base` carries what they must tell each other.
    """
    size = sum(layout(base.size, room))
    memory, descriptor, told = None, -1, b""
    try:
        if base.rank == 0:
            memory, descriptor, told = _made(size)
        first = base.raw_bytes(told)[0]
        if base.rank > 0 and first:
            memory = _opened(first, size)
        # when all have answered they have opened it, or never will
        answers = base.raw_bytes(b"" if memory is None else b"mapped")
    finally:
        if descriptor >= 0:
            os.close(descriptor)
    if memory is None or not all(answers):
        return None
    return Board(memory, base.rank, base.size, room)


def _made(size: int) -> tuple[mmap.mmap | None, int, bytes]:
    """Memory, its descriptor, and how others find it; nothing where the system has no such."""
    if not hasattr(os, "memfd_create"):
        return None, -1, b""
    descriptor = -1
    try:
        descriptor = os.memfd_create(NAME, os.MFD_CLOEXEC)
        os.ftruncate(descriptor, size + TOKEN_BYTES)
        memory = mmap.mmap(descriptor, size + TOKEN_BYTES)
    except OSError:
        return None, descriptor, b""
    token = secrets.token_bytes(TOKEN_BYTES)
    memory[size:] = token
    return memory, descriptor, pickle.dumps((os.getpid(), descriptor, token))


def _opened(told: bytes, size: int) -> mmap.mmap | None:
    """The memory of the first rank; None where it cannot be reached, or is another one.

    Processes in containers of one host may have the same numbers; the token tells them apart.
    """
    process, number, token = pickle.loads(told)
    path = f"/proc/{process}/fd/{number}"
    try:
        if not os.readlink(path).startswith(f"/memfd:{NAME}"):
            return None
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        memory = mmap.mmap(descriptor, size + TOKEN_BYTES)
    except (OSError, ValueError):
        return None
    finally:
        os.close(descriptor)
    return memory if memory[size:] == token else None
