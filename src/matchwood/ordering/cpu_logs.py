"""What kernels of gaps and refinement share: logarithms by table, and sorted places."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import device
from matchwood.engines.cpu.hints import leading_zeros
from matchwood.ordering.cpu_merge import merge_runs

Array = np.ndarray[Any, Any]

TOP = np.uint64(48)  # leading zeros of a word of 16 bits
NO_SHIFT, TWENTY = np.uint64(0), np.uint64(20)
SHORT = 24  # places that are sorted by insertion


@device
def log_of(d: Any, table: Array) -> Any:
    """L(d) of gap/logarithms.py; d is a positive int64."""
    word = np.uint64(d)
    zeros = leading_zeros(word)
    shift = TOP - zeros if zeros < TOP else NO_SHIFT
    return np.int64(table[word >> shift]) + np.int64(shift << TWENTY)


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
        merge_runs(places, other, count, run)
        run *= 2
        if run < count:
            merge_runs(other, places, count, run)
            run *= 2
        else:
            for x in range(count):
                places[x] = other[x]
