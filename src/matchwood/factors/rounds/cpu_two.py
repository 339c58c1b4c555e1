"""Rounds of [0,2]-factors on a team, ties by index.  Read cpu.py first.

The functions do what those of the same name in cpu.py do for any n.  This is the common case.  So
no branch here depends on weights or states: with random ones the processor could not predict it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.primitives.cpu_hints import natural, select
from matchwood.teams import Team, device, interrupted

Array = np.ndarray[Any, Any]

# State of a vertex: full, or the charge.  Without charges any state but FULL is admissible.
FULL, ANY = 0, 3  # the charges are 1 and 2

BRANCH_FREE_ENTRIES = 32  # of a row: among the first the two heaviest change too often to predict


class Rows(NamedTuple):
    """The graph, row by row; the weights by their bits."""

    indptr: Any
    indices: Any
    data: Any


class Places(NamedTuple):
    """What rounds read and write: a state for each vertex, and n places for its neighbours."""

    state: Any  # (N,) FULL or a charge
    neighbours: Any  # (N n,) -1 for none
    weights: Any  # (N n,) bits; positive: confirmed or proposed, negative: not answered


@device
def propose_two(
    team: Team, mine: Array, fresh: bool, charged: bool, rows: Rows, places: Places
) -> tuple[Any, Any]:
    """`_propose`; `fresh`: nothing is confirmed yet, so what is in the places is not read."""
    indptr, indices, data = rows
    state, neighbours, weights = places
    proposed = left = np.int64(0)
    none, no_vertex = data.dtype.type(0), np.int64(-1)
    for i in range(mine.size):
        if interrupted(team, i):
            break
        v = natural(np.int64(mine[i]))
        wanted = np.uint8(ANY - state[v] if charged else ANY)
        start, last = natural(2 * v), natural(2 * v + 1)
        kept, w_kept = no_vertex, none
        if not fresh:
            in_first = weights[start] > 0
            w_kept = max(weights[start], weights[last], none)
            kept = select(in_first, np.int64(neighbours[start]), np.int64(neighbours[last]))
            kept = select(w_kept > 0, kept, no_vertex)
        a = b = no_vertex
        w_a = w_b = none
        begin, end = np.uint64(indptr[v]), np.uint64(indptr[v + 1])
        middle = min(end, begin + np.uint64(BRANCH_FREE_ENTRIES))
        for k in range(begin, middle):
            j = np.int64(natural(np.int64(indices[k])))
            w = select((state[j] & wanted != 0) & (j != kept), data[k], none)
            heavier = w > w_b
            b, w_b = select(heavier, j, b), select(heavier, w, w_b)
            heavier = w > w_a
            b, w_b = select(heavier, a, b), select(heavier, w_a, w_b)
            a, w_a = select(heavier, j, a), select(heavier, w, w_a)
        for k in range(middle, end):
            w = data[k]
            if w > w_b:
                j = np.int64(natural(np.int64(indices[k])))
                if state[j] & wanted != 0 and j != kept:
                    heavier = w > w_a
                    b, w_b = select(heavier, a, j), select(heavier, w_a, w)
                    a, w_a = select(heavier, j, a), select(heavier, w, w_a)
        free = kept < 0
        neighbours[start], weights[start] = select(free, a, kept), select(free, w_a, w_kept)
        neighbours[last], weights[last] = select(free, b, a), select(free, w_b, w_a)
        proposals = np.int64(a >= 0) + np.int64(free & (b >= 0))
        proposed += proposals
        mine[natural(left)] = v
        left += np.int64(charged | (proposals > 0))  # else no neighbour has room, now and later
    return proposed, left


@device
def confirm_two(team: Team, mine: Array, places: Places) -> tuple[Any, Any]:
    """`_confirm`."""
    state, neighbours, weights = places
    rejected = left = np.int64(0)
    for i in range(mine.size):
        if interrupted(team, i):
            break
        v = natural(np.int64(mine[i]))
        answered = np.int64(0)
        for place in range(natural(2 * v), 2 * v + 2):
            j = np.int64(neighbours[place])
            asked = j >= 0
            at = natural(2 * select(asked, j, np.int64(v)))
            listed = (neighbours[at] == v) | (neighbours[at + 1] == v)
            refused = asked & (not listed)
            answered += np.int64(asked & listed)
            rejected += np.int64(refused)
            w = weights[place]
            weights[place] = select(refused, -w, w)
        full = answered == 2
        state[v] = select(full, np.uint8(FULL), state[v])
        mine[natural(left)] = v
        left += np.int64(not full)
    return rejected, left


@device
def sort_pairs(team: Team, lo: int, hi: int, places: Places) -> None:
    """`_sort_rows`; of two edges of a vertex with equal weights the smaller neighbour is first."""
    neighbours, weights = places.neighbours, places.weights
    none, no_vertex = weights.dtype.type(0), np.int64(-1)
    for v in range(natural(lo), hi):
        if interrupted(team, v):
            return
        start, last = natural(2 * v), natural(2 * v + 1)
        w_a, w_b = max(weights[start], none), max(weights[last], none)
        a = select(w_a > 0, np.int64(neighbours[start]), no_vertex)
        b = select(w_b > 0, np.int64(neighbours[last]), no_vertex)
        swap = (w_b > w_a) | ((w_b == w_a) & (b < a))
        neighbours[start], weights[start] = select(swap, b, a), select(swap, w_b, w_a)
        neighbours[last], weights[last] = select(swap, a, b), select(swap, w_a, w_b)
