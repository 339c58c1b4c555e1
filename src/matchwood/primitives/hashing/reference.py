"""The hashes in Python integers (one number) and in NumPy (whole arrays); same bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

MASK32, MASK64 = (1 << 32) - 1, (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15  # 2^64 / golden ratio, odd
MULTIPLIER_1, MULTIPLIER_2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
MD5_START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
MD5_K = tuple(math.floor(abs(math.sin(i + 1)) * 2**32) for i in range(16))
MD5_R = (7, 12, 17, 22) * 4


def mix64_number(x: int) -> int:
    """mix64 of one number."""
    x &= MASK64
    x = (x ^ x >> 30) * MULTIPLIER_1 & MASK64
    x = (x ^ x >> 27) * MULTIPLIER_2 & MASK64
    return x ^ x >> 31


def hash2_number(u: int, v: int, seed: int) -> int:
    """hash2 of one pair."""
    return mix64_number(mix64_number(mix64_number(seed + GOLDEN) ^ u & MASK64) ^ v & MASK64)


def quarter_md5_number(v: int, r: int) -> int:
    """quarter_md5 of one vertex, as the algorithm is printed."""
    h = list(MD5_START)
    a0, a1, a2, a3 = h
    for i in range(16):
        f = (a1 & a2) | (~a1 & a3 & MASK32)
        turned = (a0 + f + MD5_K[i] + v) & MASK32
        turned = (turned << MD5_R[i] | turned >> (32 - MD5_R[i])) & MASK32
        a0, a1, a2, a3 = a3, (a1 + turned) & MASK32, a1, a2
        h = [(x + a) & MASK32 for x, a in zip(h, (a0, a1, a2, a3), strict=True)]
        v = v * r & MASK32
    return sum(h) & MASK32


def mix64_array(x: Any, *, threads: int | None = None) -> Any:
    x = (x ^ x >> np.uint64(30)) * np.uint64(MULTIPLIER_1)
    x = (x ^ x >> np.uint64(27)) * np.uint64(MULTIPLIER_2)
    return x ^ x >> np.uint64(31)


def hash2_array(u: Any, v: Any, seed: int, *, threads: int | None = None) -> Any:
    start = np.uint64(mix64_number(seed + GOLDEN))
    u, v = u.astype(np.int64).view(np.uint64), v.astype(np.int64).view(np.uint64)
    return mix64_array(mix64_array(start ^ u) ^ v)


def quarter_md5_array(v: Any, r: int, *, threads: int | None = None) -> Any:
    v = v.astype(np.uint32)
    a0, a1, a2, a3 = (np.full_like(v, word) for word in MD5_START)
    total = np.full_like(v, sum(MD5_START) & MASK32)
    for i in range(16):
        turned = a0 + ((a1 & a2) | (~a1 & a3)) + np.uint32(MD5_K[i]) + v
        turned = turned << np.uint32(MD5_R[i]) | turned >> np.uint32(32 - MD5_R[i])
        a0, a1, a2, a3 = a3, a1 + turned, a1, a2
        total = total + a0 + a1 + a2 + a3
        v = v * np.uint32(r)
    return total


def random_bit_array(v: Any, r: int, barrier: int, *, threads: int | None = None) -> Any:
    """See matchwood.primitives.hashing.random_bit; `barrier` is `bit_barrier(p)`."""
    return quarter_md5_array(v, r).astype(np.uint64) < np.uint64(barrier)
