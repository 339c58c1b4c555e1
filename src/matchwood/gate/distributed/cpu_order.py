"""The computed permutation of order.py, on a team."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import crew, device, interrupted, kernel, share
from matchwood.primitives.hashing.cpu import mix64

Array = np.ndarray[Any, Any]


@device
def _forth(x: Any, bits: Any, mask: Any, keys: Array) -> Any:
    high, low = x >> bits, x & mask
    for k in range(keys.size):
        high, low = low, high ^ (mix64(low + keys[k]) & mask)
    return (high << bits) | low


@device
def _back(x: Any, bits: Any, mask: Any, keys: Array) -> Any:
    """The inverse of `_forth`, with its keys in reverse order."""
    high, low = x >> bits, x & mask
    for k in range(keys.size):
        high, low = low ^ (mix64(high + keys[k]) & mask), high
    return (high << bits) | low


@kernel
def _permute(team: Any, ids: Array, n: Any, half: Any, keys: Array, back: bool, out: Array) -> None:
    mask = (np.uint64(1) << half) - np.uint64(1)
    lo, hi = share(team, ids.size)
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        x = np.uint64(ids[k])
        while True:  # ends: on the cycle of x the next number below n comes, at the latest x
            x = _back(x, half, mask, keys) if back else _forth(x, half, mask, keys)
            if x < n:
                break
        out[k] = x


def permute(
    ids: Array, n: int, half: int, keys: Array, back: bool, out: Array, threads: int | None
) -> None:
    """The permutation of 0 .. n - 1, or its inverse, of each of the ids."""
    crew(threads, work=8 * ids.size).run(
        _permute, ids, np.uint64(n), np.uint64(half), keys, back, out
    )
