"""The secret numbers under which this process tests symmetry; see __init__.py."""

from __future__ import annotations

import functools
import secrets
from typing import Any, NamedTuple

import numpy as np


class Key(NamedTuple):
    """The secret numbers of the CPU's hashes; uint64, uniformly random, multipliers odd."""

    start: Any  # of a vertex: the term that is added first
    spread: Any  # and five multipliers, one for each step
    again: Any
    step1: Any
    step2: Any
    step3: Any
    value_start: Any  # the same for a value
    value_spread: Any
    value_again: Any


TERMS = ("start", "value_start")


def draw(bits: Any = secrets.randbits) -> Key:
    """A new key, from a source of random bits."""
    even = (bits(64) if name in TERMS else bits(64) | 1 for name in Key._fields)
    return Key(*(np.uint64(number) for number in even))


@functools.cache
def key() -> Key:
    """The key of this process, for the CPU."""
    return draw()


@functools.cache
def words(count: int) -> tuple[int, ...]:
    """The words of the GPU's key: a mask in the lower half, a multiplier in the upper one.

    Multipliers are odd and have their highest bit set, so that all bits of a product count.
    """
    return tuple(secrets.randbits(64) | 1 << 32 | 1 << 63 for _ in range(count))
