"""Vertices renumbered by a computed permutation, for graphs whose numbers have structure.

A Feistel network of the next even number of bits, applied again while it leads outside of
0 .. n - 1.  Both directions are computed, so no rank keeps a table of n numbers.  The stripes of
the grid are those of the new numbers; users see only theirs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.primitives.hashing import GOLDEN, mix64
from matchwood.primitives.hashing.reference import mix64_number

ROUNDS = 6
KEY = 0x6D617463_68776F6F  # any number: all ranks and all runs use the same permutation


class HashedOrder:
    """A permutation of 0 .. n - 1: `inside` numbers are those of the grid."""

    name = "hashed"

    def __init__(self, n: int) -> None:
        self.n = n
        self.half = max(1, ((max(n, 2) - 1).bit_length() + 1) // 2)
        self.keys = np.array(
            [mix64_number(KEY + k * GOLDEN & (2**64 - 1)) for k in range(ROUNDS)], np.uint64
        )

    def inside(self, ids: Any, threads: int | None = 1) -> Any:
        """The grid's numbers of these vertices."""
        return self._mapped(ids, self.keys, threads)

    def user(self, ids: Any, threads: int | None = 1) -> Any:
        """The user's numbers of the grid's."""
        return self._mapped(ids, self.keys[::-1].copy(), threads, back=True)

    def _mapped(self, ids: Any, keys: Any, threads: int | None, back: bool = False) -> Any:
        if engines.location(ids) == "gpu":
            return self.mapped_arrays(ids, keys, back)
        ids = np.ascontiguousarray(ids)
        out = np.empty_like(ids)
        engine = engines.load(__package__, "cpu_order")
        engine.permute(ids, self.n, self.half, keys, back, out, threads)
        return out

    def mapped_arrays(self, ids: Any, keys: Any, back: bool) -> Any:
        """The same by operations on whole arrays, NumPy's or CuPy's; the steps: cpu_order.py."""
        xp = engines.xp(ids)
        half, mask = np.uint64(self.half), np.uint64((1 << self.half) - 1)
        found = ids.astype(np.uint64)
        left = xp.arange(found.shape[0])  # which of them are not below n yet
        while left.shape[0]:
            high, low = found[left] >> half, found[left] & mask
            for key in keys:
                if back:
                    high, low = low ^ (mix64(high + key) & mask), high
                else:
                    high, low = low, high ^ (mix64(low + key) & mask)
            found[left] = (high << half) | low
            left = left[found[left] >= np.uint64(self.n)]
        return found.astype(ids.dtype)
