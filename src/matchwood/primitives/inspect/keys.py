"""The secret numbers under which this process tests symmetry; see __init__.py."""

from __future__ import annotations

import functools
import os
import secrets
from typing import Any, NamedTuple

import numpy as np

PRIME = (1 << 127) - 1

Array = np.ndarray[Any, Any]


class Tables(NamedTuple):
    """What the CPU's hash of a vertex is made of; uint64, uniformly random."""

    high: Array  # a line of four for each value of the high bits of a vertex: x1, y1, x2, y2
    low: Array  # the same for its low bits
    shift: int  # how many bits are low


def _random(rows: int, columns: int) -> Array:
    words = np.frombuffer(os.urandom(8 * rows * columns), np.uint64)
    return words.reshape(rows, columns).copy()  # writable, as kernels are compiled for


@functools.cache
def _tables(bits: int) -> Tables:
    shift = bits // 2
    return Tables(_random(1 << (bits - shift), 4), _random(1 << shift, 4), shift)


def tables(n: int) -> Tables:
    """The tables for vertices 0 .. n - 1.  One set for each number of bits, kept."""
    return _tables(max(n - 1, 1).bit_length())


@functools.cache
def value_keys() -> Array:
    """Two linear functions modulo 2^128, a line each: factor, then term, low half first."""
    return _random(2, 4)


@functools.cache
def point() -> tuple[int, int]:
    """Where the GPU evaluates: r and t, modulo the prime."""
    return secrets.randbelow(PRIME), secrets.randbelow(PRIME)
