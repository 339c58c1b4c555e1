"""Colouring: many components at once, for what is left after the largest is gone.

Every open vertex gets the largest vertex that reaches it as its colour.  A vertex with its own
colour is a root: the vertices of that colour from which it can be reached are its component.
Components of different roots have different colours, so members find them side by side.

A colour that is known to reach v is followed by its own colour (`colour[colour[v]]`), which
reaches v too, so that long ways take few passes.  Passes and rounds are limited all the same:
what is left afterwards is one member's work (cpu_tarjan.py), however the vertices are numbered.

Races.  `colour[v]` is written by the member that has v in its chunk, only ever upwards, to vertices
that reach v; the last pass changes nothing, so the colours do not depend on scheduling.  In the
search from a root, all vertices touched have that root's colour.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.components.strong.largest.cpu_reach import DONE, OPEN
from matchwood.teams import (
    atomic_add,
    barrier,
    device,
    load_relaxed,
    next_chunk,
    share,
    stopping,
    store_relaxed,
)

Array = np.ndarray[Any, Any]

ROUNDS = 8  # at most; each finds the components of all roots
PASSES = 24  # at most in a round
CHUNK = 512  # vertices

# words of `shared`
_LINE = 16
CHANGED = 0  # three in turn
COUNT = 3 * _LINE
COLOUR_WORDS = 4 * _LINE


@device
def list_open(team: Any, mark: Array, listed: Array, sums: Array) -> Any:
    """Write the open vertices to `listed`, ascending; returns how many, -1: the team stops.

    All members call, after a barrier; ends with one.
    """
    lo, hi = share(team, mark.size)
    count = 0
    for v in range(lo, hi):
        count += mark[v] == OPEN
    sums[team.rank] = count
    if barrier(team):
        return -1
    at = np.int64(0)
    total = np.int64(0)
    for member in range(team.size):
        if member == team.rank:
            at = total
        total += sums[member]
    for v in range(np.uint64(lo), np.uint64(hi)):
        if mark[v] == OPEN:
            listed[at] = v
            at += 1
    return -1 if barrier(team) else total


@device
def _spread(
    team: Any,
    in_indptr: Array,
    in_indices: Array,
    mark: Array,
    listed: Array,
    size: int,
    colour: Array,
) -> int:
    """A pass: the largest colour among those with arcs to v; how many changed."""
    one = listed.dtype.type(1)
    changed = 0
    chunk = next_chunk(team, size, CHUNK)
    while chunk >= 0:
        for i in range(chunk, min(chunk + CHUNK, size)):
            v = listed[i]
            before = load_relaxed(colour, v)
            best = before
            for k in range(np.uint64(in_indptr[v]), np.uint64(in_indptr[v + one])):
                u = in_indices[k]
                if mark[u] == OPEN:
                    best = max(best, load_relaxed(colour, u))
            best = max(best, load_relaxed(colour, best))
            if best != before:
                store_relaxed(colour, v, best)
                changed += 1
        chunk = next_chunk(team, size, CHUNK)
    return changed


@device
def _collect(
    in_indptr: Array,
    in_indices: Array,
    mark: Array,
    root: Any,
    colour: Array,
    following: Array,
    parent: Array,
) -> None:
    """The component of a root: a search backwards within its colour."""
    one, nobody = colour.dtype.type(1), colour.dtype.type(-1)
    # `head` and `tail` of a list linked through `following`, which keeps all of the component
    head = tail = root
    following[root] = nobody
    store_relaxed(mark, root, DONE)
    least = root
    while head != nobody:
        least = min(least, head)
        for k in range(np.uint64(in_indptr[head]), np.uint64(in_indptr[head + one])):
            u = in_indices[k]
            # mark first: colours of vertices that are done may be of an earlier round
            if load_relaxed(mark, u) == OPEN and colour[u] == root:
                store_relaxed(mark, u, DONE)
                following[tail] = u
                following[u] = nobody
                tail = u
        head = following[head]
    head = root
    while head != nobody:
        parent[head] = least
        head = following[head]


@device
def colour_rounds(
    team: Any,
    in_indptr: Array,
    in_indices: Array,
    mark: Array,
    parent: Array,
    listed: Array,
    colour: Array,
    following: Array,
    few: int,
    sums: Array,
    shared: Array,
) -> int:
    """Components by colours until `few` vertices are open; returns the rounds, -1: stop.

    All members call, after a barrier; ends with one.
    """
    step = 0
    for turn in range(ROUNDS):
        size = list_open(team, mark, listed, sums)
        if size < 0:
            return -1
        if size <= few:
            return turn
        lo, hi = share(team, size)
        for i in range(lo, hi):
            colour[listed[i]] = listed[i]
        if team.rank == 0:
            for i in range(3):
                shared[CHANGED + i * _LINE] = 0
        if barrier(team):
            return -1
        settled = False
        for _ in range(PASSES):
            if team.rank == 0:
                store_relaxed(shared, CHANGED + (step + 1) % 3 * _LINE, 0)
            changed = _spread(team, in_indptr, in_indices, mark, listed, size, colour)
            atomic_add(shared, CHANGED + step % 3 * _LINE, changed)
            if barrier(team):
                return -1
            settled = load_relaxed(shared, CHANGED + step % 3 * _LINE) == 0
            step += 1
            if settled:
                break
        if not settled:
            return turn + 1
        chunk = next_chunk(team, size, CHUNK)
        while chunk >= 0:
            for i in range(chunk, min(chunk + CHUNK, size)):
                root = listed[i]
                if colour[root] == root:
                    _collect(in_indptr, in_indices, mark, root, colour, following, parent)
            chunk = next_chunk(team, size, CHUNK)
        if barrier(team):
            return -1
    return -1 if stopping(team) else ROUNDS
