"""A level of a search top down, where vertices lie in stripes.  Read stripes.py and cpu_told.py.

What goes to the owners: cpu_offers.py.

Races.  Several members may reach a column at once.  The one that claims its bit lists it, and all
lower its parent by an atomic minimum once all columns are claimed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    atomic_min,
    barrier,
    device,
    expanded,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
    share,
)
from matchwood.engines.ranks.grid.cpu import ONE
from matchwood.primitives.frontier.cpu import claim_bit, flush, push
from matchwood.traversal.breadth_first.ranks.cpu_offers import Offers, Parents, offer_columns
from matchwood.traversal.breadth_first.ranks.cpu_told import (
    NONE,
    Columns,
    Heard,
    Names,
    Queue,
    close,
    has,
    list_rows,
    row_name,
)

Array = np.ndarray[Any, Any]

CHUNK = 64  # rows of the frontier that a member takes at a time


class Outward(NamedTuple):
    """The rows of a block."""

    indptr: Array
    indices: Array
    full: Array  # (C, words) bits by place: those that have entries


@expanded
def _follow_alone(rows: Outward, u: Any, name: Any, columns: Columns, found: Array, at: int) -> int:
    """Follow the entries of row u, where no other member is at work."""
    fresh, best = columns.fresh, columns.best
    for k in range(np.uint64(rows.indptr[u]), np.uint64(rows.indptr[u + ONE])):
        v = rows.indices[k]
        if has(columns.seen, v):
            continue
        if has(fresh, v):
            best[v] = min(best[v], name)
            continue
        fresh[np.uint64(v) >> np.uint64(6)] |= ONE << (np.uint64(v) & np.uint64(63))
        best[v] = name
        found[at] = v
        at += 1
    return at


@expanded
def _claim(rows: Outward, u: Any, columns: Columns, found: Queue, buffer: Array, count: int) -> int:
    """The columns of row u that are new; their parents are lowered afterwards."""
    for k in range(np.uint64(rows.indptr[u]), np.uint64(rows.indptr[u + ONE])):
        v = rows.indices[k]
        if not has(columns.seen, v) and claim_bit(columns.fresh, np.int64(v)):
            columns.best[v] = ~columns.best.dtype.type(0)
            count = push(buffer, count, v, found.vertices, found.tail)
    return count


@expanded
def _lower(rows: Outward, u: Any, name: Any, columns: Columns) -> None:
    """Parents of the new columns of row u."""
    for k in range(np.uint64(rows.indptr[u]), np.uint64(rows.indptr[u + ONE])):
        v = rows.indices[k]
        if has(columns.fresh, v) and name < load_relaxed(columns.best, v):
            atomic_min(columns.best, v, name)


@expanded
def _follow_one(team: Any, rows: Outward, u: Any, columns: Columns, found: Queue) -> None:
    """Follow the only row of the frontier, whose entries members share.

    Its columns are seen at once: no other row leads to them.
    """
    alone, buffer, at = team.size == 1, found.buffers[team.rank], 0
    begin = np.int64(rows.indptr[u])
    lo, hi = share(team, np.int64(rows.indptr[u + ONE]) - begin)
    for k in range(np.uint64(begin + lo), np.uint64(begin + hi)):
        if interrupted(team, k):
            break
        v = rows.indices[k]
        if not alone:
            if claim_bit(columns.seen, np.int64(v)):
                at = push(buffer, at, v, found.vertices, found.tail)
        elif not has(columns.seen, v):
            columns.seen[np.uint64(v) >> np.uint64(6)] |= ONE << (np.uint64(v) & np.uint64(63))
            found.vertices[at] = v
            at += 1
    if alone:
        found.tail[0] = at
    else:
        flush(buffer, at, found.vertices, found.tail)


@device
def follow(
    team: Any, rows: Outward, frontier: Array, names: Names, columns: Columns, found: Queue
) -> None:
    """Follow the entries of these rows; columns that are new go to `found`, with their parents."""
    kind, alone, buffer = columns.best.dtype.type, team.size == 1, found.buffers[team.rank]
    at = 0
    chunk = next_chunk(team, frontier.size, CHUNK)
    while chunk >= 0:
        for i in range(chunk, min(chunk + CHUNK, frontier.size)):
            u = np.uint64(frontier[i])
            if alone:
                name = kind(row_name(names, u))
                at = _follow_alone(rows, u, name, columns, found.vertices, at)
            else:
                at = _claim(rows, u, columns, found, buffer, at)
        chunk = next_chunk(team, frontier.size, CHUNK)
    if alone:
        found.tail[0] = at
        return
    flush(buffer, at, found.vertices, found.tail)
    if barrier(team):
        return
    chunk = next_chunk(team, frontier.size, CHUNK)
    while chunk >= 0:
        for i in range(chunk, min(chunk + CHUNK, frontier.size)):
            u = np.uint64(frontier[i])
            _lower(rows, u, kind(row_name(names, u)), columns)
        chunk = next_chunk(team, frontier.size, CHUNK)


@kernel
def top_down(
    team: Any, heard: Heard, rows: Outward, open: Array, names: Names, columns: Columns,
    frontier: Queue, found: Queue, offers: Offers,
) -> None:  # fmt: skip
    """The rows that the ranks of the row told, what they lead to, and a message for each owner.

    Caller: the tails of both queues are 0.
    """
    close(team, heard, open)
    list_rows(team, heard, rows.full, rows.indptr, frontier)
    if barrier(team):
        return
    told = frontier.vertices[: frontier.tail[0]]
    if told.size == 1:
        _follow_one(team, rows, np.uint64(told[0]), columns, found)
    else:
        follow(team, rows, told, names, columns, found)
    if barrier(team):
        return
    only = columns.best.dtype.type(row_name(names, told[0]) if told.size == 1 else NONE)
    parents = Parents(told.size == 1, only, columns.best)
    offer_columns(team, found.vertices[: found.tail[0]], names.shape, columns, parents, offers)
