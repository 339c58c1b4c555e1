"""What kernels of gaps and refinement share: logarithms by table, and sorted places."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.teams import device

Array = np.ndarray[Any, Any]

SHORT = 24  # places that are sorted by insertion


@device
def log_of(d: Any, table: Array) -> Any:
    """L(d) of gaps/logarithms.py; d is a positive int64."""
    if d < 65536:
        return np.int64(table[np.uint64(d)])
    rest = np.uint64(d) >> np.uint64(16)
    shift = np.uint64(0)
    for step in (32, 16, 8, 4, 2, 1):
        if rest >> np.uint64(step):
            rest >>= np.uint64(step)
            shift += np.uint64(step)
    shift += np.uint64(1)
    return np.int64(table[np.uint64(d) >> shift]) + np.int64(shift << np.uint64(20))


@device
def sort_places(places: Array, other: Array, count: int) -> None:
    """Sort places[:count]; `other` is room for as many."""
    for first in range(0, count, SHORT):
        for x in range(first + 1, min(first + SHORT, count)):
            word = places[x]
            j = x
            while j > first and places[j - 1] > word:
                places[j] = places[j - 1]
                j -= 1
            places[j] = word
    run = SHORT
    while run < count:
        _merge(places, other, count, run)
        run *= 2
        if run < count:
            _merge(other, places, count, run)
            run *= 2
        else:
            for x in range(count):
                places[x] = other[x]


@device
def _merge(source: Array, target: Array, count: int, run: int) -> None:
    for first in range(0, count, 2 * run):
        a, b = first, min(first + run, count)
        a_end, b_end = b, min(first + 2 * run, count)
        for x in range(first, b_end):
            if a < a_end and (b >= b_end or source[a] < source[b]):
                target[x] = source[a]
                a += 1
            else:
                target[x] = source[b]
                b += 1
