"""Vertices renumbered by a computed permutation, for graphs whose numbers have structure.

A Feistel network of the next even number of bits, applied again while it leads outside of
0 .. n - 1.  Both directions are computed, so no rank keeps a table of n numbers.  The stripes of
the grid are those of the new numbers; users see only theirs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.primitives.hashing import GOLDEN
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
        ids = np.ascontiguousarray(ids)
        out = np.empty_like(ids)
        engine = engines.load(__package__, "cpu_order")
        engine.permute(ids, self.n, self.half, keys, back, out, threads)
        return out
