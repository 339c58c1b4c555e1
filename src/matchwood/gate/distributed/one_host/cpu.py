"""The whole matrix of ranks that share memory: every rank writes the rows of its block into it.

A row u has a part in each of the C blocks of its row of the grid.  All arrays but the block's are
in memory that all ranks have mapped; ranks meet between two steps.

    count   the length of each part: lengths[c, u], which has one writer
    place   indptr of a range of vertices, and where each part begins, in place of its length
    fill    each rank copies its parts there, with the user's numbers of the columns
    merge   the rows of a range: their parts are sorted, and so is the row afterwards

Entries of one place of the matrix are in one block, in the order in which they were given, and stay
in it: equal columns are never compared between two parts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import barrier, crew, interrupted, kernel, next_chunk, share

Array = np.ndarray[Any, Any]

CHUNK = 256  # rows that a member merges at a time


class Part(NamedTuple):
    """The block of a rank, in column `c` of the grid; names are the user's numbers."""

    indptr: Array
    indices: Array  # unsigned
    bits: Array  # values as unsigned words, or empty
    names: Array
    rows: int
    c: int


class Rows(NamedTuple):
    """The whole matrix, in memory that all ranks share."""

    indptr: Array
    indices: Array
    bits: Array
    parts: Array  # (C, n): lengths of the parts of each row, then where they begin


@kernel
def _count(team: Any, part: Part, parts: Array) -> None:
    mine = parts[part.c]
    lo, hi = share(team, part.rows)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        mine[part.names[i]] = part.indptr[i + 1] - part.indptr[i]


@kernel
def _add_up(team: Any, parts: Array, first: int, end: int, sums: Array) -> None:
    """sums[0, member] = entries of its share of the range; sums[1, member] = the longest part."""
    lo, hi = share(team, end - first)
    total, longest = np.int64(0), np.int64(0)
    for u in range(first + lo, first + hi):
        if interrupted(team, u):
            return
        for c in range(parts.shape[0]):
            total += parts[c, u]
            longest = max(longest, np.int64(parts[c, u]))
    sums[0, team.me], sums[1, team.me] = total, longest


@kernel
def _place(team: Any, rows: Rows, first: int, end: int, starts: Array) -> None:
    """starts[member] = the entries before its share of the range."""
    lo, hi = share(team, end - first)
    at = starts[team.me]
    for u in range(first + lo, first + hi):
        if interrupted(team, u):
            return
        rows.indptr[u] = at
        for c in range(rows.parts.shape[0]):
            length = np.int64(rows.parts[c, u])
            rows.parts[c, u] = at
            at += length
    if end == rows.indptr.size - 1 and hi == end - first:  # the same from all who are at the end
        rows.indptr[end] = at


@kernel
def _fill(team: Any, part: Part, rows: Rows) -> None:
    starts, valued = rows.parts[part.c], part.bits.size > 0
    lo, hi = share(team, part.rows)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        begin, end = np.int64(part.indptr[i]), np.int64(part.indptr[i + 1])
        to = np.int64(starts[part.names[i]])
        for k in range(end - begin):
            rows.indices[to + k] = part.names[part.indices[begin + k]]
        if valued:
            for k in range(end - begin):
                rows.bits[to + k] = part.bits[begin + k]


@kernel
def _merge(team: Any, rows: Rows, first: int, end: int, spare: Array, spare_bits: Array) -> None:
    """Sort the rows of the range; spare[member] has room for the longest part."""
    indices, bits, parts = rows.indices, rows.bits, rows.parts
    mine, mine_bits, valued = spare[team.me], spare_bits[team.me], bits.size > 0
    chunk = next_chunk(team, end - first, CHUNK)
    while chunk >= 0:
        for u in range(first + chunk, min(first + chunk + CHUNK, end)):
            begin = np.int64(rows.indptr[u])
            for c in range(1, parts.shape[0]):
                start = np.int64(parts[c, u])
                stop = np.int64(parts[c + 1, u] if c + 1 < parts.shape[0] else rows.indptr[u + 1])
                if start in (begin, stop) or indices[start - 1] < indices[start]:
                    continue
                for k in range(stop - start):
                    mine[k] = indices[start + k]
                    if valued:
                        mine_bits[k] = bits[start + k]
                old, new, at = start - 1, stop - start - 1, stop - 1
                while new >= 0:  # from the back: what is left of the old ones stays where it is
                    if old >= begin and indices[old] > mine[new]:
                        indices[at] = indices[old]
                        if valued:
                            bits[at] = bits[old]
                        old -= 1
                    else:
                        indices[at] = mine[new]
                        if valued:
                            bits[at] = mine_bits[new]
                        new -= 1
                    at -= 1
        chunk = next_chunk(team, end - first, CHUNK)


def joined(comm: Any, part: Part, rows: Rows, threads: int | None) -> None:
    """Fill the rows with the blocks of all ranks, which call this together."""
    n, p, rank, entries = rows.indptr.size - 1, comm.size, comm.rank, int(rows.indices.size)
    own = crew(threads, work=part.indices.size + part.rows)
    own.run(_count, part, rows.parts)
    comm.barrier()
    first, end = n * rank // p, n * (rank + 1) // p
    sums = np.zeros((2, own.size), np.int64)
    own.run(_add_up, rows.parts, first, end, sums)
    totals = comm.allgather(sums[0].sum(keepdims=True))
    longest = int(comm.allreduce(sums[1].max(keepdims=True), "max")[0])
    starts = int(totals[:rank].sum()) + np.cumsum(sums[0]) - sums[0]
    own.run(_place, rows, first, end, starts)
    comm.barrier()
    own.run(_fill, part, rows)
    comm.barrier()
    if rows.parts.shape[0] > 1:
        bounds = [entries * rank // p, entries * (rank + 1) // p]
        first, end = np.searchsorted(rows.indptr, bounds).tolist()
        first, end = first if rank else 0, n if rank == p - 1 else end
        spare = np.empty((own.size, longest), rows.indices.dtype)
        bits = np.empty((own.size, longest if rows.bits.size else 0), rows.bits.dtype)
        own.run(_merge, rows, first, end, spare, bits)
        comm.barrier()


# Answers, sorted by the ranks that own them


@kernel
def _by_owner(team: Any, keys: Array, owner: Array, counts: Array, places: Array) -> None:
    """places[i]: where row i goes; counts[member, rank] are rows, then where they begin."""
    mine = counts[team.me]
    lo, hi = share(team, keys.size)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        mine[owner[keys[i]]] += 1
    if barrier(team):
        return
    if team.me == 0:
        at = np.int64(0)
        for rank in range(counts.shape[1]):
            for member in range(team.size):
                rows = counts[member, rank]
                counts[member, rank] = at
                at += rows
        counts[team.size, 0] = at
    if barrier(team):
        return
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        rank = owner[keys[i]]
        places[i] = mine[rank]
        mine[rank] += 1


def by_owner(keys: Array, owner: Array, ranks: int, threads: int) -> tuple[Array, list[int]]:
    """Where each row goes, and where those of each rank begin, and the end.

    keys[i] is the vertex of row i; owner[v] the rank that gets its rows, in their order.
    """
    team = crew(threads, work=2 * keys.size)
    counts = np.zeros((team.size + 1, ranks), np.int64)
    places = np.empty(keys.size, np.uint32 if keys.size < 1 << 32 else np.uint64)
    team.run(_by_owner, np.ascontiguousarray(keys), owner, counts, places)
    return places, [0, *counts[team.size - 1].tolist()]


@kernel
def _deal(team: Any, words: Array, places: Array, into: Array) -> None:
    lo, hi = share(team, places.size)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        for j in range(words.shape[1]):
            into[places[i], j] = words[i, j]


def deal(array: Array, places: Array, into: Array, threads: int) -> None:
    """Copy row i of an array to place places[i] of `into`, which has as many bytes."""
    if array.size == 0:
        return
    rows = array.view(f"u{array.itemsize}").reshape(array.shape[0], -1)
    crew(threads, work=array.size).run(
        _deal, rows, places, into.view(rows.dtype).reshape(rows.shape)
    )
