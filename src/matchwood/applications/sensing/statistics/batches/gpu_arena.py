"""Memory of a device in one block, given out and taken back without asking the driver.

A call in batches takes and gives back the same few arrays for every part.  CuPy's pool keeps
memory for each stream apart, and streams of a call are new, so each array would be asked of the
driver, which takes longer than a small part's work.
"""

from __future__ import annotations

import bisect
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu

ROUND = 512  # bytes


class _Lent:
    """Gives its bytes back when the last array in them is gone."""

    def __init__(self, arena: Arena, start: int, nbytes: int) -> None:
        self._arena, self._start, self._nbytes = arena, start, nbytes

    def __del__(self) -> None:
        self._arena.back(self._start, self._nbytes)


class Arena:
    """Arrays of one stream.  Where there is no room left, CuPy's pool is asked."""

    def __init__(self, nbytes: int, what: str) -> None:
        fits = 0 < nbytes <= gpu.free_bytes()
        self._slab: Any = gpu.empty(nbytes, np.uint8, what) if fits else None
        self._free = [] if self._slab is None else [(0, nbytes // ROUND * ROUND)]  # (start, bytes)
        self.overflowed = False  # the pool was asked

    def malloc(self, nbytes: int) -> Any:
        """As CuPy's allocators do it."""
        cupy = engines.cupy()
        wanted = -(-nbytes // ROUND) * ROUND
        for place, (start, size) in enumerate(self._free):
            if size >= wanted > 0:
                if size == wanted:
                    del self._free[place]
                else:
                    self._free[place] = (start + wanted, size - wanted)
                memory = cupy.cuda.UnownedMemory(
                    self._slab.data.ptr + start, wanted, _Lent(self, start, wanted),
                    self._slab.device.id,
                )  # fmt: skip
                return cupy.cuda.MemoryPointer(memory, 0)
        self.overflowed = self.overflowed or nbytes > 0
        return cupy.get_default_memory_pool().malloc(nbytes)

    def back(self, start: int, nbytes: int) -> None:
        """Bytes are free again, and one with free neighbours."""
        place = bisect.bisect(self._free, (start, nbytes))
        if place < len(self._free) and self._free[place][0] == start + nbytes:
            nbytes += self._free.pop(place)[1]
        if place > 0 and sum(self._free[place - 1]) == start:
            start, before = self._free[place - 1]
            self._free[place - 1] = (start, before + nbytes)
        else:
            self._free.insert(place, (start, nbytes))
