"""Multistep: many components at once by colours, for what is left after the largest is gone.

Every open vertex gets the largest vertex that reaches it as its colour.  A vertex with its own
colour is a root: the vertices of that colour from which it can be reached are its component.
Components of different roots have different colours, so members find them side by side.

A colour that is known to reach v is followed by its own colour (`colour[colour[v]]`), which
reaches v too, so that long ways take few passes.  Passes and rounds are limited all the same:
what is left afterwards is one member's work (tarjan.py), however the vertices are numbered.

Races.  `colour[v]` is written by the member that has v in its chunk, only ever upwards, to vertices
that reach v; the last pass changes nothing, so the colours do not depend on scheduling.  In the
search from a root, all vertices touched have that root's colour.

The paper: [3] in ../__init__.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.components.strong.cpu.steps import DONE, LINE, OPEN, Arcs, list_open
from matchwood.engines.cpu import (
    atomic_add,
    barrier,
    device,
    kernel,
    load_relaxed,
    next_chunk,
    share,
    stopping,
    store_relaxed,
)

Array = np.ndarray[Any, Any]

ROUNDS = 8  # rounds, at most; each finds the components of all roots
PASSES = 24  # passes of a round, at most
CHUNK = 512  # vertices that a member takes at a time

# words of `shared`
CHANGED = 0  # three in turn: colours changed in this pass, the next, one to be emptied
COUNT = 3 * LINE
COLOUR_WORDS = 4 * LINE


@device
def _spread(team: Any, into: Arcs, mark: Array, listed: Array, size: int, colour: Array) -> int:
    """A pass: each v takes the largest colour with an arc to it; returns how many changed."""
    in_indptr, in_indices = into
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
    into: Arcs, mark: Array, root: Any, colour: Array, following: Array, parent: Array
) -> None:
    """Find the component of a root: a search backwards within its colour."""
    in_indptr, in_indices = into
    one, no_vertex = colour.dtype.type(1), colour.dtype.type(-1)
    # `head` and `tail` of a list linked through `following`, which keeps all of the component
    head = tail = root
    following[root] = no_vertex
    store_relaxed(mark, root, DONE)
    least = root
    while head != no_vertex:
        least = min(least, head)
        for k in range(np.uint64(in_indptr[head]), np.uint64(in_indptr[head + one])):
            u = in_indices[k]
            # mark first: colours of vertices that are done may be of an earlier round
            if load_relaxed(mark, u) == OPEN and colour[u] == root:
                store_relaxed(mark, u, DONE)
                following[tail] = u
                following[u] = no_vertex
                tail = u
        head = following[head]
    head = root
    while head != no_vertex:
        parent[head] = least
        head = following[head]


@device
def _colour_rounds(
    team: Any, into: Arcs, mark: Array, parent: Array, listed: Array, colour: Array,
    following: Array, few: int, sums: Array, shared: Array,
) -> int:  # fmt: skip
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
                shared[CHANGED + i * LINE] = 0
        if barrier(team):
            return -1
        settled = False
        for _ in range(PASSES):
            if team.rank == 0:
                store_relaxed(shared, CHANGED + (step + 1) % 3 * LINE, 0)
            changed = _spread(team, into, mark, listed, size, colour)
            atomic_add(shared, CHANGED + step % 3 * LINE, changed)
            if barrier(team):
                return -1
            settled = load_relaxed(shared, CHANGED + step % 3 * LINE) == 0
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
                    _collect(into, mark, root, colour, following, parent)
            chunk = next_chunk(team, size, CHUNK)
        if barrier(team):
            return -1
    return -1 if stopping(team) else ROUNDS


@kernel
def find_by_colours(
    team: Any, into: Arcs, few: int, mark: Array, following: Array, listed: Array, colour: Array,
    parent: Array, sums: Array, shared: Array,
) -> None:  # fmt: skip
    """Components of open vertices, until at most `few` are open; sums[team.size] = rounds."""
    rounds = _colour_rounds(team, into, mark, parent, listed, colour, following, few, sums, shared)
    if team.rank == 0:
        sums[team.size] = rounds
