"""Rounds of factors with n = 1 to 4 on a team, ties by index.  Read cpu.py first.

The functions do what those of the same name in cpu.py do for any n.  For n = 2, the common case,
there is all of a round; for the others there are the proposals.  The heaviest entries of a row are
kept in variables.  So no branch here depends on weights or states: with random ones the processor
could not predict it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import Team, device, expanded, interrupted
from matchwood.engines.cpu.hints import natural, select

Array = np.ndarray[Any, Any]

# State of a vertex: full, or the charge.  Without charges any state but FULL is admissible.
FULL, ANY = 0, 3  # the charges are 1 and 2

MOST = 4  # places of a vertex

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


@device
def propose_one(
    team: Team, mine: Array, charged: bool, rows: Rows, places: Places
) -> tuple[Any, Any]:
    """`_propose` for n = 1: a vertex that is asked has nothing confirmed."""
    indptr, indices, data = rows
    state, neighbours, weights = places
    proposed = left = np.int64(0)
    none = data.dtype.type(0)
    for i in range(mine.size):
        if interrupted(team, i):
            break
        v = natural(np.int64(mine[i]))
        wanted = np.uint8(ANY - state[v] if charged else ANY)
        a, w_a = np.int64(-1), none
        begin, end = np.uint64(indptr[v]), np.uint64(indptr[v + 1])
        middle = min(end, begin + np.uint64(BRANCH_FREE_ENTRIES))
        for k in range(begin, middle):
            j = np.int64(natural(np.int64(indices[k])))
            w = select(state[j] & wanted != 0, data[k], none)
            heavier = w > w_a
            a, w_a = select(heavier, j, a), select(heavier, w, w_a)
        for k in range(middle, end):
            if data[k] > w_a:
                j = np.int64(natural(np.int64(indices[k])))
                heavier = state[j] & wanted != 0
                a, w_a = select(heavier, j, a), select(heavier, data[k], w_a)
        neighbours[v], weights[v] = a, w_a
        proposed += np.int64(a >= 0)
        mine[natural(left)] = v
        left += np.int64(charged | (a >= 0))  # else no neighbour has room, now and later
    return proposed, left


@expanded
def _inserted(best: Any, heaviest: Any, j: Any, w: Any) -> Any:
    """The four heaviest entries and their weights, with another one."""
    a, b, c, d = best
    w_a, w_b, w_c, w_d = heaviest
    heavier = w > w_d
    d, w_d = select(heavier, j, d), select(heavier, w, w_d)
    heavier = w > w_c
    d, w_d = select(heavier, c, d), select(heavier, w_c, w_d)
    c, w_c = select(heavier, j, c), select(heavier, w, w_c)
    heavier = w > w_b
    c, w_c = select(heavier, b, c), select(heavier, w_b, w_c)
    b, w_b = select(heavier, j, b), select(heavier, w, w_b)
    heavier = w > w_a
    b, w_b = select(heavier, a, b), select(heavier, w_a, w_b)
    a, w_a = select(heavier, j, a), select(heavier, w, w_a)
    return (a, b, c, d), (w_a, w_b, w_c, w_d)


@expanded
def _confirmed(start: int, n: int, neighbours: Array, weights: Array) -> int:
    """Put what is confirmed first; how many that are."""
    kept: Any = 0
    for place in range(natural(start), start + n):
        j, w = neighbours[place], weights[place]
        neighbours[natural(start + kept)], weights[natural(start + kept)] = j, w
        kept += np.int64(w > 0)
    return kept


@device
def propose_four(
    team: Team, mine: Array, fresh: bool, charged: bool, n: int, rows: Rows, places: Places
) -> tuple[Any, Any]:
    """`_propose` for n = 3 and 4; `fresh`: nothing is confirmed yet, and places are not read."""
    indptr, indices, data = rows
    state, neighbours, weights = places
    proposed = left = np.int64(0)
    none, nobody = data.dtype.type(0), np.int64(-1)
    for i in range(mine.size):
        if interrupted(team, i):
            break
        v = natural(np.int64(mine[i]))
        wanted = np.uint8(ANY - state[v] if charged else ANY)
        start = natural(v * n)
        kept = np.int64(0 if fresh else _confirmed(start, n, neighbours, weights))
        x = np.int64(neighbours[start]) if kept > 0 else nobody
        y = np.int64(neighbours[start + 1]) if kept > 1 else nobody
        z = np.int64(neighbours[start + 2]) if kept > 2 else nobody
        best, heaviest = (nobody, nobody, nobody, nobody), (none, none, none, none)
        begin, end = np.uint64(indptr[v]), np.uint64(indptr[v + 1])
        middle = min(end, begin + np.uint64(BRANCH_FREE_ENTRIES))
        for k in range(begin, middle):
            j = np.int64(natural(np.int64(indices[k])))
            welcome = (state[j] & wanted != 0) & (j != x) & (j != y) & (j != z)
            best, heaviest = _inserted(best, heaviest, j, select(welcome, data[k], none))
        for k in range(middle, end):
            w = data[k]
            if w > heaviest[3]:
                j = np.int64(natural(np.int64(indices[k])))
                welcome = (state[j] & wanted != 0) & (j != x) & (j != y) & (j != z)
                best, heaviest = _inserted(best, heaviest, j, select(welcome, w, none))
        proposals = np.int64(0)
        for place in range(n - kept):
            at = natural(start + kept + place)
            neighbours[at], weights[at] = best[place], heaviest[place]
            proposals += np.int64(best[place] >= 0)
        proposed += proposals
        mine[natural(left)] = v
        left += np.int64(charged | (proposals > 0))  # else no neighbour has room, now and later
    return proposed, left
