"""Sums by label that a team makes together, where many vertices may have the same label.

Members that add to the same word wait for each other: its cache line goes from core to core.  So
each member has a pocket with the sums of the labels that it met last, one for each remainder of a
label.  What is in there is added to the shared words when another label needs the place, and by
`empty_pocket`, which a barrier must follow.  Integers: any order gives the same sums.

Races: a pocket is its member's own.  Shared words change by atomic additions only; a team of one
needs neither.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import atomic_add, device, expanded

Array = np.ndarray[Any, Any]

LABELS = 256  # in a pocket: with their two sums they fill 6 KB of the nearest cache
LINE = 16  # words between two pockets, so that they do not share a cache line
NO_COUNTS = np.empty(0, np.int32)  # where only one sum is made


def pockets_of(members: int) -> Array:
    """A row for each member: labels, their sums, their counts."""
    return np.zeros((members, 3 * LABELS + LINE), np.int64)


@device
def _put(mine: Array, slot: Any, sums: Array, counts: Array) -> None:
    """Add what is in a place of the pocket to the shared words."""
    at, total, count = mine[slot], mine[slot + LABELS], mine[slot + 2 * LABELS]
    if total != 0:
        atomic_add(sums, at, total)
        mine[slot + LABELS] = 0
    if count != 0:
        atomic_add(counts, at, counts.dtype.type(count))
        mine[slot + 2 * LABELS] = 0


@expanded
def add_by_label(
    team: Any, pockets: Array, sums: Array, counts: Array, label: Any, value: Any, count: Any
) -> None:
    """sums[label] += value, counts[label] += count; a count of 0 where there are no counts."""
    if team.size == 1:
        sums[label] += value
        if count != 0:
            counts[label] += counts.dtype.type(count)
        return
    mine = pockets[team.rank]
    slot = np.uint64(label) & np.uint64(LABELS - 1)
    if mine[slot] != np.int64(label):
        _put(mine, slot, sums, counts)
        mine[slot] = label
    mine[slot + np.uint64(LABELS)] += value
    mine[slot + np.uint64(2 * LABELS)] += count


@device
def empty_pocket(team: Any, pockets: Array, sums: Array, counts: Array) -> None:
    """All sums of this member are in the shared words."""
    if team.size == 1:
        return
    mine = pockets[team.rank]
    for slot in range(LABELS):
        _put(mine, slot, sums, counts)
