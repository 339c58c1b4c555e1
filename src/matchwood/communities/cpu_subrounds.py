"""The vertices of a round, sorted into its sub-rounds by a team (subrounds.py has the rule)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.communities.subrounds import subrounds_of
from matchwood.primitives.hashing import GOLDEN
from matchwood.primitives.hashing.cpu import mix64
from matchwood.primitives.hashing.reference import mix64_number
from matchwood.teams import barrier, device, interrupted, share

Array = np.ndarray[Any, Any]


class Split(NamedTuple):
    """Sub-rounds of a graph; all of it is written by `split_round`, but for `start`."""

    order: Array  # the vertices by sub-round, then by number
    number: Array  # the sub-round of each vertex
    begins: Array  # where each sub-round begins in `order`, and the end
    counts: Array  # (members, sub-rounds)
    places: Array  # (members, sub-rounds)
    start: Any  # what hash2 makes of the seed


def split_of(n: int, members: int, kind: Any, seed: int) -> Split:
    """Room for the sub-rounds of n vertices."""
    parts = subrounds_of(n)
    return Split(
        np.empty(n, kind),
        np.empty(n, np.uint8),
        np.zeros(parts + 1, np.int64),
        np.empty((members, parts), np.int64),
        np.empty((members, parts), np.int64),
        np.uint64(mix64_number(seed + GOLDEN)),
    )


@device
def split_round(team: Any, split: Split, round_number: Any) -> bool:
    """Sort the vertices by sub-round.  True: the team stops."""
    n, parts = split.order.size, split.begins.size - 1
    mine, places = split.counts[team.rank], split.places[team.rank]
    for p in range(parts):
        mine[p] = 0
    lo, hi = share(team, n)
    mask = np.uint64(parts - 1)
    power = (parts & (parts - 1)) == 0
    turn = np.uint64(round_number)
    for v in range(lo, hi):
        if interrupted(team, v):
            return True
        h = mix64(mix64(split.start ^ np.uint64(v)) ^ turn)
        turn_of_v = h & mask if power else h % np.uint64(parts)
        split.number[v] = turn_of_v
        mine[turn_of_v] += 1
    if barrier(team):
        return True
    place = np.int64(0)
    for p in range(parts):
        if team.rank == 0:
            split.begins[p] = place
        for member in range(team.size):
            if member == team.rank:
                places[p] = place
            place += split.counts[member, p]
    if team.rank == 0:
        split.begins[parts] = place
    for v in range(lo, hi):
        turn_of_v = np.uint64(split.number[v])
        split.order[places[turn_of_v]] = v
        places[turn_of_v] += 1
    return barrier(team)
