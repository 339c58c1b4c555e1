"""Luby's sampling on a team.  The rule: __init__.py.

A round has four phases with a barrier after each.  Each member of the team keeps the vertices of
its rows that are left in a list of its own.

    draw      state DRAWN for those drawn; where no vertex is drawn, for the one nearest to it
    resolve   state WINNER for those without a drawn neighbour that is larger
    join      winners are JOINED, their neighbours LEAVING
    leave     lists are shortened, and the neighbours of those that leave lose a degree

Races: in each phase a vertex's state is written by its owner.  Only LEAVING may be written by
others: it replaces FREE or DRAWN, and all writers write the same.  Two states that a reader may
see at the same time mean the same to it (DRAWN and WINNER; LEAVING and OUT; FREE and DRAWN).
Degrees change by atomic subtraction in `leave` alone.  So every round's result is the same in any
schedule.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    Crew,
    advance,
    atomic_add,
    barrier,
    device,
    expect,
    interrupted,
    kernel,
    load_relaxed,
    share_rows,
    store_relaxed,
)
from matchwood.primitives.hashing.cpu import hash2

Array = np.ndarray[Any, Any]

OUT, JOINED, FREE = np.uint8(0), np.uint8(1), np.uint8(2)
DRAWN, WINNER, LEAVING = np.uint8(3), np.uint8(4), np.uint8(5)
MOST_NEIGHBOURS = (1 << 31) - 1  # that count; more would make 2 d x overflow
DRAW_BITS = np.uint64(32)
NO_DRAW = np.uint64(0xFFFF_FFFF_FFFF_FFFF)  # larger than any draw


@device
def _row(indptr: Array, v: Any) -> Any:
    """The places of the entries of row v."""
    return range(np.uint64(indptr[v]), np.uint64(indptr[np.uint64(v) + np.uint64(1)]))


@device
def _row_left(indptr: Array, degree: Array, v: Any) -> Any:
    """The same, or nothing where no neighbour is left."""
    end = np.uint64(indptr[np.uint64(v) + np.uint64(1)])
    return range(end if degree[v] == 0 else np.uint64(indptr[v]), end)


@device
def _larger(degree: Array, w: Any, v: Any) -> bool:
    return degree[w] > degree[v] or (degree[w] == degree[v] and w > v)


@kernel
def _sample(
    team: Any,
    indptr: Array,
    indices: Array,
    seed: Any,
    state: Array,
    degree: Array,
    live: Array,
    words: Array,
    result: Array,
) -> None:
    # words[member]: drawn, least draw, its vertex, vertices left
    first, last = share_rows(team, indptr)
    expect(team, state.size)
    size = last - first
    for v in range(first, last):
        if interrupted(team, v):
            return
        degree[v] = indptr[v + 1] - indptr[v]
        state[v] = FREE
        live[v] = v
    if barrier(team):
        return
    rounds = 0
    left: Any = 1
    while left > 0:
        # draw
        drawn, least, nearest = 0, NO_DRAW, np.uint64(0)
        for i in range(first, first + size):
            if interrupted(team, i):
                return
            v = live[i]
            d: Any = min(np.int64(degree[v]), MOST_NEIGHBOURS)
            x = (hash2(rounds, v, seed) >> DRAW_BITS) * np.uint64(2 * d)
            if x >> DRAW_BITS == np.uint64(0):
                store_relaxed(state, v, DRAWN)
                drawn += 1
            elif x < least or (x == least and np.uint64(v) < nearest):
                least, nearest = x, np.uint64(v)
        words[team.rank, 0] = np.uint64(drawn)
        words[team.rank, 1] = least
        words[team.rank, 2] = nearest
        if barrier(team):
            return
        total = np.uint64(0)
        for member in range(team.size):
            total += words[member, 0]
            x, v = words[member, 1], words[member, 2]
            if x < least or (x == least and v < nearest):
                least, nearest = x, v
        if total == np.uint64(0):
            if team.rank == 0:
                store_relaxed(state, nearest, DRAWN)
            if barrier(team):
                return
        # resolve
        for i in range(first, first + size):
            if interrupted(team, i):
                return
            v = live[i]
            if load_relaxed(state, v) == DRAWN:
                wins = True
                for k in _row_left(indptr, degree, v):
                    w = indices[k]
                    other = load_relaxed(state, w)
                    if DRAWN <= other <= WINNER and _larger(degree, w, v):
                        wins = False
                        break
                if wins:
                    store_relaxed(state, v, WINNER)
        if barrier(team):
            return
        # join
        for i in range(first, first + size):
            if interrupted(team, i):
                return
            v = live[i]
            if load_relaxed(state, v) == WINNER:
                store_relaxed(state, v, JOINED)
                for k in _row_left(indptr, degree, v):
                    w = indices[k]
                    other = load_relaxed(state, w)
                    if FREE <= other <= DRAWN:
                        store_relaxed(state, w, LEAVING)
        if barrier(team):
            return
        # leave
        kept = 0
        for i in range(first, first + size):
            if interrupted(team, i):
                return
            v = live[i]
            mine = load_relaxed(state, v)
            if mine == LEAVING:
                store_relaxed(state, v, OUT)
                for k in _row(indptr, v):
                    w = indices[k]
                    other = load_relaxed(state, w)
                    if FREE <= other <= DRAWN:
                        atomic_add(degree, w, -1)
            elif mine != JOINED:
                store_relaxed(state, v, FREE)
                live[first + kept] = v
                kept += 1
        advance(team, size - kept)
        size = kept
        words[team.rank, 3] = np.uint64(size)
        if barrier(team):
            return
        left = 0
        for member in range(team.size):
            left += np.int64(words[member, 3])
        rounds += 1
    if team.rank == 0:
        result[0] = rounds


def sample(team: Crew, indptr: Array, indices: Array, seed: int, state: Array) -> int:
    """Fill `state` with the set; the number of rounds."""
    n = state.size
    result = np.zeros(1, np.int64)
    team.run(
        _sample, indptr, indices, np.uint64(seed), state,
        np.empty(n, indptr.dtype), np.empty(n, indices.dtype),
        np.zeros((team.size, 4), np.uint64), result,
    )  # fmt: skip
    return int(result[0])
