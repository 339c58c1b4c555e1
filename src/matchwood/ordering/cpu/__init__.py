"""What kernels of this family share: logarithms by table, sorted places, merges of sorted runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import device
from matchwood.engines.cpu.hints import leading_zeros

Array = np.ndarray[Any, Any]

TABLE_WORD_ZEROS = np.uint64(48)  # leading zeros of a word of 16 bits
NO_SHIFT, TWENTY = np.uint64(0), np.uint64(20)
INSERTION_PLACES = 24  # places up to which insertion sort is used


@device
def log_of(d: Any, table: Array) -> Any:
    """L(d) of gap/__init__.py; d is a positive int64."""
    word = np.uint64(d)
    zeros = leading_zeros(word)
    shift = TABLE_WORD_ZEROS - zeros if zeros < TABLE_WORD_ZEROS else NO_SHIFT
    return np.int64(table[word >> shift]) + np.int64(shift << TWENTY)


@device
def merge_runs(source: Array, target: Array, count: int, run: int) -> None:
    """Merge sorted runs of that length, two by two, from `source` into `target`."""
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


@device
def sort_places(places: Array, other: Array, count: int) -> None:
    """Sort places[:count]; `other` has room for `count` places."""
    for first in range(0, count, INSERTION_PLACES):
        for x in range(first + 1, min(first + INSERTION_PLACES, count)):
            word = places[x]
            j = x
            while j > first and places[j - 1] > word:
                places[j] = places[j - 1]
                j -= 1
            places[j] = word
    run = INSERTION_PLACES
    while run < count:
        merge_runs(places, other, count, run)
        run *= 2
        if run < count:
            merge_runs(other, places, count, run)
            run *= 2
        else:
            for x in range(count):
                places[x] = other[x]
