"""The memory that one partition holds on its device: every array is counted, none is forgotten.

The plan says before any work how many bytes there will be; the ledger sees that no more are taken.
CUDA's allocator rounds up to 512 bytes, and so does the ledger, also for simulated devices: what
tests count there is what a device holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from matchwood.errors import OutOfMemory

ALIGNMENT = 512  # bytes


def aligned(nbytes: int) -> int:
    """Bytes that an allocation of so many takes."""
    return -(-max(int(nbytes), 1) // ALIGNMENT) * ALIGNMENT


class Ledger:
    """Arrays of one partition, made by `make(size, dtype)`, and the bytes that they take."""

    def __init__(self, make: Callable[[int, Any], Any], limit: int) -> None:
        self._make = make
        self.limit = limit
        self.taken = 0
        self.most = 0  # at any time

    def take(self, size: int, dtype: Any) -> Any:
        """An uninitialised array; `OutOfMemory` where it would exceed the limit."""
        self._count(size * np.dtype(dtype).itemsize)
        return self._make(size, dtype)

    def hold(self, array: Any) -> None:
        """An array that is there already counts like one that was taken."""
        self._count(array.nbytes)

    def _count(self, nbytes: int) -> None:
        nbytes = aligned(nbytes)
        if self.taken + nbytes > self.limit:
            raise OutOfMemory(
                f"a partition may hold {self.limit:,} bytes on its device and has "
                f"{self.taken:,}; {nbytes:,} more were asked for"
            )
        self.taken += nbytes
        self.most = max(self.most, self.taken)

    def give_back(self, array: Any) -> None:
        """The caller drops the array."""
        self.taken -= aligned(array.nbytes)
