"""A chunk of packets that is filled block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.applications.sensing.stream.sources import Block
from matchwood.engines.cpu import crew

CHUNK = 1 << 23  # packets that are worked on at once, as in an archive of 64 windows of 2^17


class Buffer:
    """Room for a chunk, or for two in turns where one is worked on while the next one comes."""

    def __init__(self, size: int, threads: int | None, double: bool = False) -> None:
        self._limit, self._threads = size, threads
        self._arrays: list[Any] = [None, None, None, None]  # src, dst, time, pairs
        self._others: list[Any] | None = [None, None, None, None] if double else None
        self._used = 0
        self.counted = 0

    @property
    def is_full(self) -> bool:
        return self._used == self._limit

    def fill(self, block: Block, pairs: Any, at: int) -> int:
        """Take packets of the block from `at` on; returns where it stopped."""
        count = min(self._limit - self._used, block.src.size - at)
        for k, given in enumerate((*block, pairs)):
            if given is None:
                continue
            array = self._arrays[k] = self._with_room(self._arrays[k], given, self._used + count)
            self._copy(given[at : at + count], array[self._used : self._used + count])
        self._used += count
        return at + count

    def _with_room(self, array: Any, given: Any, needed: int) -> Any:
        """An array for so many packets: it grows as they come, up to the size of a chunk."""
        if array is not None and array.size >= needed:
            return array
        size = min(self._limit, max(CHUNK, 2 * needed))
        larger = engines.xp(given).empty(size, given.dtype)
        if array is not None:
            larger[: self._used] = array[: self._used]
        return larger

    def _copy(self, given: Any, goal: Any) -> None:
        """By all members: most of the goal is memory that nobody has touched yet."""
        if engines.location(goal) == "gpu":
            goal[:] = given
            return
        team = crew(self._threads, work=goal.size)
        each = -(-goal.size // team.size)
        parts = [slice(k * each, (k + 1) * each) for k in range(team.size)]
        team.spread(lambda k: np.copyto(goal[parts[k]], given[parts[k]]), len(parts))

    def filled(self) -> tuple[Block, Any]:
        parts = [None if array is None else array[: self._used] for array in self._arrays]
        if parts[0] is None:
            parts[0] = parts[1] = np.empty(0, np.uint32)
        return Block(*parts[:3]), parts[3]

    def keep_from(self, start: int) -> None:
        """Packets from `start` on stay, at the front.  Where none left, the chunk grows.

        With two chunks in turns they move to the other one.  The one before may be read until it
        is its turn again.
        """
        left = self._used - start
        if left == self._limit:
            self._limit *= 2
        if self._others is not None and start:
            kept = [None if x is None else x[start : self._used] for x in self._arrays]
            self._arrays, self._others = self._others, self._arrays
            self._used = 0
            for k, given in enumerate(kept):
                if given is not None:
                    array = self._arrays[k] = self._with_room(self._arrays[k], given, left)
                    array[:left] = given
        elif start:
            for array in self._arrays:
                if array is not None and left:
                    array[:left] = array[start : self._used].copy()
        self._used = left
