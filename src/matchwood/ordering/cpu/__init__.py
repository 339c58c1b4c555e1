"""What kernels of this family share: logarithms by table, sorted places, merges of sorted runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import device, expanded, stopping
from matchwood.engines.cpu.hints import leading_zeros

Array = np.ndarray[Any, Any]

TABLE_WORD_ZEROS = np.uint64(48)  # leading zeros of a word of 16 bits
NO_SHIFT, TWENTY = np.uint64(0), np.uint64(20)
INSERTION_ENTRIES = 32  # entries of a row up to which it is sorted by insertion
CHECK_ENTRIES = 1 << 16  # entries, or words of a sort, between two checks for Ctrl-C: a few ms


@device
def log_of(d: Any, table: Array) -> Any:
    """L(d) of gap/__init__.py; d is a positive int64."""
    word = np.uint64(d)
    zeros = leading_zeros(word)
    shift = TABLE_WORD_ZEROS - zeros if zeros < TABLE_WORD_ZEROS else NO_SHIFT
    return np.int64(table[word >> shift]) + np.int64(shift << TWENTY)


@device
def _merge_runs(source: Array, target: Array, count: int, run: int) -> None:
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
def sort_runs(team: Any, words: Array, other: Array, count: int) -> bool:
    """Sort words[:count], unless the team stops; True when the result is in `other`."""
    for first in range(0, count, INSERTION_ENTRIES):
        if first != 0 and first & (CHECK_ENTRIES - 1) == 0 and stopping(team):
            return False
        for x in range(first + 1, min(first + INSERTION_ENTRIES, count)):
            word = words[x]
            j = x
            while j > first and words[j - 1] > word:
                words[j] = words[j - 1]
                j -= 1
            words[j] = word
    run = INSERTION_ENTRIES
    there = False
    while run < count and not stopping(team):  # a pass over ten million words takes some 40 ms
        if there:
            _merge_runs(other, words, count, run)
        else:
            _merge_runs(words, other, count, run)
        there = not there
        run *= 2
    return there


@expanded
def sort_places(team: Any, places: Array, other: Array, count: int) -> None:
    """Sort places[:count]; `other` has room for `count` places."""
    if sort_runs(team, places, other, count):
        for x in range(count):
            places[x] = other[x]
