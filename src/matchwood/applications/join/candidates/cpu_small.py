"""Pairs that are settled at once: equal elements, nearest neighbours, and small rests.

Equal elements are matched with each other (for Jaccard that loses nothing).  What is left of both
records weighs no more than the nearest neighbours of its elements.  Where one side has one or two
elements left, the heaviest matching needs no solver: it is the largest similarity, or the best two
in different columns.

Similarities of distinct elements are asked for again and again, so each member remembers them in a
table in which a later pair takes the place of an earlier one with the same hash.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.applications.join.arrays import Elements
from matchwood.applications.join.candidates.cpu_lists import SLACK
from matchwood.applications.join.similarity.cpu_phi import ONE, jaccard
from matchwood.engines.cpu import device, inlined

TOO_FEW, OPEN = -1, -2  # not settled by a weight: the pair cannot reach what it needs; go on
SLOTS = 1 << 14  # similarities that a member remembers: 256 KB
_SHIFT = np.uint64(64 - 14)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio


class Known(NamedTuple):
    """One member's memory of similarities, and the elements that are left of a pair."""

    keys: np.ndarray  # uint64: both elements; 0 is nobody's, since the second one is larger
    weights: np.ndarray  # int64
    rows: np.ndarray  # int32: elements left on one side ...
    columns: np.ndarray  # int32: ... and on the other


@device
def similarity(elements: Elements, a: int, b: int, keys: Any, weights: Any) -> int:
    """Jaccard similarity of two different elements, remembered."""
    low, high = np.uint64(min(a, b)), np.uint64(max(a, b))
    key = (low << np.uint64(32)) | high
    slot = (key * _SPREAD) >> _SHIFT
    if keys[slot] == key:
        return weights[slot]
    found = jaccard(elements, a, b)
    keys[slot] = key
    weights[slot] = found
    return found


@device
def _best_of_row(elements: Elements, a: int, others: Any, keys: Any, weights: Any) -> Any:
    best = np.int64(0)
    for j in range(others.size):
        best = max(best, similarity(elements, a, others[j], keys, weights))
    return best


@device
def _best_of_two_rows(
    elements: Elements, a: int, b: int, others: Any, keys: Any, weights: Any
) -> Any:
    """The heaviest matching of two elements with several: the best columns, not the same one.

    If both rows prefer one column, one of them takes its second best.
    """
    first = second = np.int64(0)  # best of row a, and its best outside that column
    other_first = other_second = np.int64(0)
    at = other_at = -1
    for j in range(others.size):
        x = similarity(elements, a, others[j], keys, weights)
        y = similarity(elements, b, others[j], keys, weights)
        if x > first:
            first, second, at = x, first, j
        elif x > second:
            second = x
        if y > other_first:
            other_first, other_second, other_at = y, other_first, j
        elif y > other_second:
            other_second = y
    if at != other_at or at < 0:
        return first + other_first
    return max(first + other_second, second + other_first)


@inlined
def settle(
    elements: Elements, left: Any, right: Any, nearest: Any, need: int, solves: bool, known: Known
) -> int:
    """The weight of the pair if it is settled here, else TOO_FEW or OPEN.

    `solves`: the exact weight of a small rest is what is asked for.
    """
    i = j = same = rows = columns = 0
    mine = theirs = 0.0
    while i < left.size and j < right.size:
        x, y = left[i], right[j]
        if x == y:
            same += 1
            i += 1
            j += 1
        elif x < y:
            mine += nearest[x]
            known.rows[rows] = x
            rows += 1
            i += 1
        else:
            theirs += nearest[y]
            known.columns[columns] = y
            columns += 1
            j += 1
    while i < left.size:
        x = left[i]
        mine += nearest[x]
        known.rows[rows] = x
        rows += 1
        i += 1
    while j < right.size:
        y = right[j]
        theirs += nearest[y]
        known.columns[columns] = y
        columns += 1
        j += 1
    rest = min(mine, theirs)
    if (same + rest + SLACK) * ONE < need:
        return TOO_FEW
    if rest <= 0.0:
        return same * ONE
    if not solves or min(rows, columns) > 2:
        return OPEN
    keys, weights = known.keys, known.weights
    if rows == 1:
        best = _best_of_row(elements, known.rows[0], known.columns[:columns], keys, weights)
    elif columns == 1:
        best = _best_of_row(elements, known.columns[0], known.rows[:rows], keys, weights)
    elif rows == 2:
        best = _best_of_two_rows(
            elements, known.rows[0], known.rows[1], known.columns[:columns], keys, weights
        )
    else:
        best = _best_of_two_rows(
            elements, known.columns[0], known.columns[1], known.rows[:rows], keys, weights
        )
    return same * ONE + best
