"""The kernels of dist.py: what a rank does on its block, and for the vertices that it owns.

A block is a part of the rows of a row group: those entries whose columns are in one column group.
Local ids, places and stripes: matchwood/dist/grid.  The rule of a round: dist.py.

Every free row has a candidate, its first edge of the block to a free column; it waits in the linked
list of that column.  When a column is taken, the rows of its list look for another candidate.  So a
row costs work when its candidate has to change, and none while it waits.

Vertices have two numbers besides the local one: the grid's id says who owns a vertex, the name
is the user's number, which breaks ties and stands in the answer.  They differ only where the
graph was renumbered.

Messages are flat arrays of the unsigned index type, one record after the other; a weight of 64
bits takes two words of 32.  Weights are the bits of positive floats as signed integers, which
compare as the floats do; 0 stands for no edge.

Races.  Searching reads only what the round before took.  Lists change by compare-and-swap, and
are closed by one member each.  The order of lists and queues is arbitrary, and nothing depends on
it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.matching.cpu_rows import Ties, prefetch_queued
from matchwood.primitives.cpu_hints import trailing_zeros
from matchwood.primitives.edge_order.cpu import rank_in_row
from matchwood.primitives.frontier.cpu import flush, push
from matchwood.teams import (
    Team,
    atomic_cas,
    barrier,
    device,
    interrupted,
    kernel,
    load_acquire,
    share,
    share_rows,
)

Array = np.ndarray[Any, Any]
SHORT_ROW = 32  # entries; longer rows are faster with branches, see suitor/cpu.py
TAKEN = -1  # in `taken`: or-ed to the bits of a weight it makes them negative


class Block(NamedTuple):
    """A rank's entries, by local ids."""

    indptr: Array
    indices: Array
    weights: Array
    names: Array  # of local vertices
    ids: Array  # the grid's ids of local vertices
    renamed: bool  # they differ: records have both


class Rows(NamedTuple):
    """What a rank knows about the vertices of its block."""

    taken: Array  # (local vertices) int8: 0 or TAKEN
    waiting: Array  # (local vertices) the first row that waits for this column, or nobody
    following: Array  # (rows) the next row of the list that a row is in
    found: Array  # (rows) scratch: the candidates of a round


class Out(NamedTuple):
    """Messages that a kernel writes, in the order of their receivers."""

    words: Array
    counts: Array  # (members, receivers) records that each member has for each receiver
    places: Array  # (members, receivers) where they begin
    width: int  # words of a record


class Queue(NamedTuple):
    """Vertices that members append to; see primitives/frontier."""

    vertices: Array
    tail: Array
    buffers: Array  # one row for each member


class Heard(NamedTuple):
    """Matched vertices as ranks of a group told them: places, or a bitmap where that is shorter."""

    words: Array
    starts: Array  # (ranks + 1) where the words of each rank begin
    owned: Array  # (ranks) vertices of each


class HeardOf(NamedTuple):
    """What a rank was told in a round."""

    columns: Heard  # by the ranks of its column of the grid
    rows: Heard  # by those of its row
    own: int  # its own number among the latter


@device
def nobody(array: Array) -> Any:
    return ~array.dtype.type(0)


@device
def put_bits(words: Array, at: Any, bits: Array, i: Any) -> None:
    """Write the weight bits[i] from `at` on."""
    raw = np.uint64(bits[i])  # weights are not negative
    if bits.itemsize > words.itemsize:
        words[at] = np.uint32(raw & np.uint64(0xFFFF_FFFF))
        words[at + 1] = np.uint32(raw >> np.uint64(32))
    else:
        words[at] = raw


@device
def get_bits(words: Array, at: Any, bits: Array) -> Any:
    """The weight at `at`, of the type of `bits`."""
    raw = np.uint64(words[at])
    if bits.itemsize > words.itemsize:
        raw |= np.uint64(words[at + 1]) << np.uint64(32)
    return bits.dtype.type(raw)


@device
def _first_among_ties(
    block: Block, start: Any, end: Any, u: Any, taken: Array, ties: Ties
) -> Any:  # fmt: skip
    """As `_first_free`, for rows with equal weights: by rank, then the smaller name."""
    indices, weights, names = block.indices, block.weights, block.names
    seed, by_hash = ties
    mine = names[u]
    best, best_w, best_rank = nobody(indices), weights.dtype.type(0), np.uint64(0)
    ranked = False
    for k in range(start, end):
        v, w, rank = indices[k], weights[k], np.uint64(0)
        if w < best_w or taken[v] < 0:
            continue
        tied = w == best_w
        if tied:
            if not ranked:
                best_rank, ranked = rank_in_row(mine, names[best], seed, by_hash), True
            rank = rank_in_row(mine, names[v], seed, by_hash)
            if rank < best_rank or (rank == best_rank and names[v] > names[best]):
                continue
        best, best_w, best_rank, ranked = v, w, rank, tied
    return best, best_w


@device
def _first_free(block: Block, u: Any, taken: Array, ties: Ties) -> Any:
    """The free column along u's first edge of the block, and the weight; or nobody and 0."""
    indptr, indices, weights = block.indptr, block.indices, block.weights
    best, best_w = nobody(indices), weights.dtype.type(0)
    tied = False
    start, end = np.uint64(indptr[u]), np.uint64(indptr[u + indptr.dtype.type(1)])
    if end - start <= np.uint64(SHORT_ROW):
        for k in range(start, end):  # no branches: none of them could be predicted
            v = indices[k]
            w = weights.dtype.type(weights[k] | weights.dtype.type(taken[v]))
            better = w > best_w
            tied |= w == best_w
            best = v if better else best
            best_w = w if better else best_w
    else:
        for k in range(start, end):
            w = weights[k]
            if w >= best_w and taken[indices[k]] >= 0:
                tied |= w == best_w
                best, best_w = indices[k], w
    if tied:
        best, best_w = _first_among_ties(block, start, end, u, taken, ties)
    return best, best_w


@device
def _first(block: Block, u: Any, taken: Array, ties: Ties) -> Any:
    """`_first_free` for the first round, when all vertices are free: only weights are read."""
    indptr, indices, weights = block.indptr, block.indices, block.weights
    at: Any = np.uint64(0)
    best_w = weights.dtype.type(0)
    tied = False
    start, end = np.uint64(indptr[u]), np.uint64(indptr[u + indptr.dtype.type(1)])
    if end - start <= np.uint64(SHORT_ROW):
        for k in range(start, end):
            w = weights[k]
            better = w > best_w
            tied |= w == best_w
            at = k if better else at
            best_w = w if better else best_w
    else:
        for k in range(start, end):
            w = weights[k]
            if w >= best_w:
                tied |= w == best_w
                at, best_w = k, w
    best = nobody(indices)
    if tied:
        best, best_w = _first_among_ties(block, start, end, u, taken, ties)
    elif start < end:
        best = indices[at]
    return best, best_w


@device
def _wait_for(rows: Rows, v: Any, u: Any, plain: bool) -> None:
    """Put row u into the list of column v.  `plain`: no other member is at work."""
    waiting, following = rows.waiting, rows.following
    head = load_acquire(waiting, v)
    while True:
        following[u] = head
        if plain:
            waiting[v] = u
            return
        seen = atomic_cas(waiting, v, head, waiting.dtype.type(u))
        if seen == head:
            return
        head = seen


@device
def begin_records(team: Team, out: Out, places: Array) -> None:
    """places[d] = where this member's records for d begin; all members have counted theirs."""
    start = np.int64(0)
    for d in range(places.size):
        for member in range(team.size):
            if member == team.rank:
                places[d] = start
            start += out.counts[member, d]


@device
def _search(
    team: Team, block: Block, rows: Rows, ties: Ties, queue: Array, bits: Array, lo: int, hi: int,
    every: bool, out: Out,
) -> None:  # fmt: skip
    """Find a candidate for queue[lo:hi], or for rows lo .. hi if `every`; then write records.

    A candidate's column is left in rows.found, by place in the queue; its weight in `bits`.
    """
    C = out.counts.shape[1]
    kind = block.indices.dtype.type
    counts = out.counts[team.rank]
    plain = team.size == 1
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        if every:
            u = kind(i)
            v, w = _first(block, u, rows.taken, ties)
        else:
            prefetch_queued(block.indptr, block.indices, block.weights, queue, i, hi)
            u = queue[i]
            v, w = _first_free(block, u, rows.taken, ties)
        rows.found[i] = v
        bits[i] = w
        if v != nobody(block.indices):
            _wait_for(rows, v, u, plain)
        elif every:
            continue  # no record: the owner knows of no candidate
        counts[np.int64(u) % C] += 1
    if barrier(team):
        return
    places = out.places[team.rank]
    begin_records(team, out, places)
    for i in range(lo, hi):
        u = np.int64(i) if every else np.int64(queue[i])
        v, w = rows.found[i], bits[i]
        empty = v == nobody(block.indices)
        if empty and every:
            continue
        at = places[u % C] * out.width
        places[u % C] += 1
        out.words[at] = u // C
        out.words[at + 1] = 0 if empty else block.ids[v]
        if block.renamed:
            out.words[at + 2] = 0 if empty else block.names[v]
        put_bits(out.words, at + 2 + block.renamed, bits, i)


@kernel
def propose(
    team: Team, block: Block, rows: Rows, ties: Ties, queue: Array, bits: Array, out: Out
) -> None:
    """The candidate of every row that has an edge, for its owner.  All vertices are free.

    A record is (place, id[, name], weight) of a row, its candidate, and the edge.
    Caller: out.counts is 0.
    """
    lo, hi = share_rows(team, block.indptr)
    hi = min(hi, rows.following.size)  # the rows behind are empty
    _search(team, block, rows, ties, queue, bits, min(lo, hi), hi, True, out)


@device
def _take(
    team: Team, heard: Heard, s: int, stride: int, to_local: Array, rows: Rows, fresh: Queue,
    count: int,
) -> int:  # fmt: skip
    """Mark this member's share of what rank s of a group told; collect columns in `fresh`.

    Place k of rank s has position k * stride + s; `to_local` is empty for a row group, whose
    positions are the local ids.
    """
    start = heard.starts[s]
    size = heard.starts[s + 1] - start
    width = 8 * heard.words.itemsize
    bitmap = size == (heard.owned[s] + width - 1) // width
    buffer = fresh.buffers[team.rank]
    columns = to_local.size > 0
    lo, hi = share(team, size)
    for i in range(start + lo, start + hi):
        word = np.uint64(heard.words[i])
        left = word if bitmap else np.uint64(1)
        while left:
            if bitmap:
                k = np.int64((i - start) * width) + np.int64(trailing_zeros(left))
            else:
                k = np.int64(word)
            left &= left - np.uint64(1)
            position = k * stride + s
            local = to_local[position] if columns else position
            rows.taken[local] = TAKEN
            if columns:
                count = push(buffer, count, local, fresh.vertices, fresh.tail)
    return count


@kernel
def wake(
    team: Team, block: Block, rows: Rows, ties: Ties, heard: Any, to_local: Array, fresh: Queue,
    queue: Queue, bits: Array, out: Out,
) -> None:  # fmt: skip
    """Mark matched vertices; rows whose candidate was one of them find another, for its owner.

    A rank's own vertices are marked as columns.  Records are those of `propose`, of weight 0 where
    a row has no candidate left.  Caller: out.counts and both tails are 0.
    """
    of_columns, of_rows, own = heard.columns, heard.rows, heard.own
    R, C = of_columns.owned.size, of_rows.owned.size
    none = nobody(block.indices)
    count = 0
    for s in range(R):
        count = _take(team, of_columns, s, R, to_local, rows, fresh, count)
    flush(fresh.buffers[team.rank], count, fresh.vertices, fresh.tail)
    for s in range(C):
        if s != own:
            _take(team, of_rows, s, C, to_local[:0], rows, fresh, 0)
    if barrier(team):
        return
    lo, hi = share(team, fresh.tail[0])
    count = 0
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        v = fresh.vertices[i]
        u = rows.waiting[v]
        rows.waiting[v] = none
        while u != none:
            if rows.taken[u] >= 0:
                count = push(queue.buffers[team.rank], count, u, queue.vertices, queue.tail)
            u = rows.following[u]
    flush(queue.buffers[team.rank], count, queue.vertices, queue.tail)
    if barrier(team):
        return
    lo, hi = share(team, queue.tail[0])
    _search(team, block, rows, ties, queue.vertices, bits, lo, hi, False, out)
