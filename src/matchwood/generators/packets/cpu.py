"""Packets between random addresses: each member writes its share."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import Team, crew, device, interrupted, kernel, share
from matchwood.generators.streams.cpu import value

Array = np.ndarray[Any, Any]

_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
GUIDE_BITS = 16  # upper bits of a drawn number, which limit the search for its host
ZIPF_STEPS = 8  # steps of `crew` that a packet costs


@kernel
def _uniform(team: Team, key: Any, src: Array, dst: Array) -> None:
    lo, hi = share(team, src.size)
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        drawn = value(key, k)
        src[k] = np.uint32(drawn >> _HALF)
        dst[k] = np.uint32(drawn & _LOW)


@device
def _address(thresholds: Array, guide: Array, drawn: np.uint64) -> np.uint32:
    """The host of a number, by bisection between two entries of the guide, then scattered."""
    step = np.int64(drawn >> np.uint64(32 - GUIDE_BITS))
    low, high = guide[step], guide[step + 1]
    while low < high:
        middle = (low + high) // 2
        if thresholds[middle] <= drawn:
            low = middle + 1
        else:
            high = middle
    word = np.uint32(low)
    word ^= word >> np.uint32(16)
    word = np.uint32(word * np.uint32(0x7FEB352D))
    word ^= word >> np.uint32(15)
    word = np.uint32(word * np.uint32(0x846CA68B))
    return word ^ (word >> np.uint32(16))


@kernel
def _zipf(team: Team, key: Any, thresholds: Array, guide: Array, src: Array, dst: Array) -> None:
    lo, hi = share(team, src.size)
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        drawn = value(key, k)
        src[k] = _address(thresholds, guide, drawn >> _HALF)
        dst[k] = _address(thresholds, guide, drawn & _LOW)


def uniform(n: int, key: int, threads: int | None) -> tuple[Array, Array]:
    src, dst = np.empty(n, np.uint32), np.empty(n, np.uint32)
    crew(threads, work=n).run(_uniform, np.uint64(key), src, dst)
    return src, dst


def zipf(n: int, key: int, thresholds: Array, threads: int | None) -> tuple[Array, Array]:
    src, dst = np.empty(n, np.uint32), np.empty(n, np.uint32)
    steps = np.arange((1 << GUIDE_BITS) + 1, dtype=np.uint64) << np.uint64(32 - GUIDE_BITS)
    guide = np.searchsorted(thresholds, steps, side="right")
    guide[-1] = thresholds.size - 1
    crew(threads, work=ZIPF_STEPS * n).run(_zipf, np.uint64(key), thresholds, guide, src, dst)
    return src, dst
