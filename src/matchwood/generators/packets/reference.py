"""Packets between random addresses, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.generators.streams import values

Array = np.ndarray[Any, Any]

_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


def uniform(n: int, key: int, threads: int | None) -> tuple[Array, Array]:
    """The upper and the lower half of number k of the stream."""
    drawn = values(key, np.arange(n, dtype=np.uint64))
    return (drawn >> _HALF).astype(np.uint32), (drawn & _LOW).astype(np.uint32)


def zipf(n: int, key: int, thresholds: Array, threads: int | None) -> tuple[Array, Array]:
    """Each half draws a host."""
    src, dst = uniform(n, key, threads)
    return _address(thresholds, src), _address(thresholds, dst)


def _address(thresholds: Array, drawn: Array) -> Array:
    """The host of a drawn number, scattered over all addresses by a bijection of 32-bit numbers."""
    word = np.searchsorted(thresholds, drawn, side="right").astype(np.uint32)
    word ^= word >> np.uint32(16)
    word *= np.uint32(0x7FEB352D)
    word ^= word >> np.uint32(15)
    word *= np.uint32(0x846CA68B)
    return word ^ word >> np.uint32(16)
