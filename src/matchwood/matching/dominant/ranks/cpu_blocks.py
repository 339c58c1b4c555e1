"""What a rank does on its block in a round of ranks; the part of owners is cpu_owners.py.

A block is a part of the rows of a row group: those entries whose columns are in one column group.
Local ids, places and stripes: matchwood/engines/ranks/grid.  The rule of a round: __init__.py.

Every free row has a candidate, its first edge of the block to a free column.  When that is taken,
the row is scanned again.

In the first rounds many columns are taken at once, and a pass over all rows finds those that have
lost their candidate, in the order of memory.  Once few are taken, rows wait in linked lists, one
for each column (`enlist`).  From then on a row costs work when its candidate has to change, and
none while it waits: on a path of ascending weights, where a round matches one edge, that makes n
rounds of constant work.

Vertices have two numbers besides the local one: the grid's id says who owns a vertex, the name
is the user's number, which breaks ties and stands in the answer.  They differ only where the
graph was renumbered.

Scans of a row: cpu_scans.py.  Messages: cpu_records.py.  Weights are the bits of positive floats as
signed integers, which compare as the floats do; 0 stands for no edge.

Races.  Searching reads only what the round before took.  Lists change by compare-and-swap, and
are closed by one member each.  The order of lists and queues is arbitrary, and nothing depends on
it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    Team,
    atomic_cas,
    atomic_or,
    barrier,
    expanded,
    interrupted,
    kernel,
    load_acquire,
    next_chunk,
    share,
)
from matchwood.engines.cpu.hints import prefetch, trailing_zeros
from matchwood.engines.ranks.grid.cpu import column_id
from matchwood.matching.cpu_rows import Ties
from matchwood.matching.dominant.ranks.cpu_records import (
    Candidates,
    Out,
    begin_part,
    begin_records,
    nobody,
    put_bits,
    records_of,
)
from matchwood.matching.dominant.ranks.cpu_scans import (
    Block,
    Rows,
    first_free,
    first_of_all,
    is_taken,
    taken_bit,
)
from matchwood.primitives.frontier.cpu import flush, push

Array = np.ndarray[Any, Any]
PASS = 4096  # rows whose free ones are listed together, and which a member takes at a time
AHEAD = 16  # rows between the one whose columns are prefetched and the one that is scanned


class Queue(NamedTuple):
    """Vertices that members append to; see primitives/frontier."""

    vertices: Array
    tail: Array
    buffers: Array  # one row for each member


class Heard(NamedTuple):
    """Matched vertices as ranks of a group told them: places, or a bitmap where that is shorter."""

    words: Array
    starts: Array  # (ranks) where the words of each rank begin,
    ends: Array  # (ranks) and where they end
    owned: Array  # (ranks) vertices of each
    base: Array  # (ranks) the local id of place 0 of each,
    stride: Array  # (ranks) and how far those of two places are apart


class HeardOf(NamedTuple):
    """What a rank was told in a round."""

    columns: Heard  # by the ranks of its column of the grid
    rows: Heard  # by those of its row
    own: int  # its own number among the latter


@expanded
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


@kernel
def enlist(team: Team, rows: Rows) -> None:
    """Lists of rows from their candidates."""
    none = nobody(rows.following)
    lo, hi = share(team, rows.waiting.size)
    rows.waiting[lo:hi] = none
    if barrier(team):
        return
    lo, hi = share(team, rows.counts.size)
    for part in range(lo, hi):
        for i in range(part * PASS, part * PASS + rows.counts[part]):
            if interrupted(team, i):
                return
            u = rows.free[i]
            v = rows.following[u]
            if v != none and not is_taken(rows.taken, u):
                _wait_for(rows, v, u, team.size == 1)


@expanded
def _write(
    block: Block, out: Out, candidates: Candidates, at: Any, k: Any, v: Any, bits: Array, i: Any
) -> None:  # fmt: skip
    """A record: place k of a row, its candidate v, and the weight bits[i].

    Where that is 0 there is no candidate, and the record names any vertex.  A block that has whole
    rows is that of their owner: it stores the candidate, and the record is the place alone.
    """
    v = v if v != nobody(block.indices) else block.indices.dtype.type(0)
    at = np.uint64(at) * np.uint64(out.width)
    out.words[at] = k
    number = column_id(block.shape, v)
    if out.receivers == 1:
        candidates.bits[k] = bits[i]
        if block.renamed:
            candidates.ids[k], candidates.names[k] = number, block.names[v]
        else:
            candidates.names[k] = number
        return
    out.words[at + np.uint64(1)] = number
    at += np.uint64(2)
    if block.renamed:
        out.words[at] = block.names[v]
        at += np.uint64(1)
    put_bits(out.words, at, bits, i)


@kernel
def propose(
    team: Team, block: Block, rows: Rows, ties: Ties, candidates: Candidates, out: Out
) -> None:  # fmt: skip
    """The candidate of every row that has an edge, for its owner.  All vertices are free.

    A record is (place, id[, name], weight) of a row, its candidate, and the edge.
    Caller: out.counts is 0.
    """
    C, indptr, last, parts = out.receivers, block.indptr, rows.following.size, rows.counts.size
    part = next_chunk(team, parts, 1)
    while part >= 0:
        counts, begin = out.counts[part], part * PASS
        c, left = begin % C, begin
        for i in range(begin, min(begin + PASS, last)):
            full = indptr[i] < indptr[i + 1]
            rows.free[left] = i
            left += full
            counts[c] += full
            c = c + 1 if c + 1 < C else 0
        rows.counts[part] = left - begin
        part = next_chunk(team, parts, 1)
    if begin_records(team, out):
        return
    stripes, bits, places = block.indices.dtype.type(C), out.bits[team.rank], out.places[team.rank]
    done, part = 0, next_chunk(team, parts, 1)
    while part >= 0:
        done, stop = begin_part(team, out, done, part), part * PASS + rows.counts[part]
        for i in range(part * PASS, stop):
            if interrupted(team, i):
                return
            prefetch(block.indices, np.uint64(indptr[rows.free[min(i + AHEAD, stop - 1)]]))
            u = rows.free[i]
            v, bits[0] = first_of_all(block, u, rows.taken, ties)
            rows.following[u] = v
            k = u // stripes
            c = u - k * stripes
            _write(block, out, candidates, places[c], k, v, bits, 0)
            places[c] += 1
        part = next_chunk(team, parts, 1)


@expanded
def _fetch(block: Block, u: Any) -> None:
    """Fetch both ends of u's row; most rows of a block are short."""
    indptr = block.indptr
    first, last = np.uint64(indptr[u]), np.uint64(indptr[u + indptr.dtype.type(1)]) - np.uint64(1)
    prefetch(block.weights, first)
    prefetch(block.weights, last)
    prefetch(block.indices, first)
    prefetch(block.indices, last)


@expanded
def _count(queue: Array, lo: Any, hi: Any, part: Any, out: Out) -> None:
    """Of a part, queue[lo:hi]: how many rows each rank has."""
    C, counts = queue.dtype.type(out.receivers), out.counts[part]
    for i in range(lo, hi):
        counts[queue[i] % C] += 1


@expanded
def _propose_again(
    team: Team, block: Block, rows: Rows, ties: Ties, queue: Array, lo: Any, hi: Any,
    candidates: Candidates, out: Out,
) -> None:  # fmt: skip
    """Another candidate for the rows of a part, queue[lo:hi]; as `propose`."""
    C = block.indices.dtype.type(out.receivers)
    places, bits = out.places[team.rank], out.bits[team.rank]
    plain, listed = team.size == 1, rows.waiting.size > 0
    for i in range(lo, hi):
        if interrupted(team, np.int64(i)):
            return
        _fetch(block, queue[min(i + np.uint64(AHEAD), hi - np.uint64(1))])
        prefetch(block.indptr, queue[min(i + np.uint64(2 * AHEAD), hi - np.uint64(1))])
        u = queue[i]
        v, bits[0] = first_free(block, u, rows.taken, ties)
        if not listed:
            rows.following[u] = v
        elif v != nobody(block.indices):
            _wait_for(rows, v, u, plain)
        k = u // C
        c = u - k * C
        _write(block, out, candidates, places[c], k, v, bits, 0)
        places[c] += 1


@expanded
def _take(
    team: Team, heard: Heard, s: int, rows: Rows, collect: bool, fresh: Queue, count: int
) -> int:  # fmt: skip
    """Mark this member's share of what rank s of a group told; `collect` them in `fresh`."""
    start = heard.starts[s]
    size = heard.ends[s] - start
    width = 8 * heard.words.itemsize
    bitmap = size == (heard.owned[s] + width - 1) // width
    buffer = fresh.buffers[team.rank]
    base, stride = heard.base[s], heard.stride[s]
    lo, hi = share(team, size)
    for i in range(start + lo, start + hi):
        if interrupted(team, i):
            break
        word = np.uint64(heard.words[i])
        left = word if bitmap else np.uint64(1)
        while left:
            if bitmap:
                k = np.int64((i - start) * width) + np.int64(trailing_zeros(left))
            else:
                k = np.int64(word)
            left &= left - np.uint64(1)
            local = base + k * stride
            x = np.uint64(local)
            bit = np.uint64(1) << (x & np.uint64(63))
            if team.size == 1:
                rows.taken[x >> np.uint64(6)] |= bit
            else:
                atomic_or(rows.taken, x >> np.uint64(6), bit)
            if collect:
                count = push(buffer, count, local, fresh.vertices, fresh.tail)
    return count


@expanded
def _those_without(rows: Rows, part: Any, queue: Array) -> Any:
    """Queue, from `begin` to `end`, the free rows of a part whose candidate was taken, ascending.

    Rows that are taken, or have no candidate left, are not looked at again.
    """
    none, taken = nobody(rows.following), rows.taken
    begin = np.uint64(part * PASS)
    left = end = begin
    for i in range(begin, begin + np.uint64(rows.counts[part])):
        u = rows.free[i]
        v = rows.following[u]
        has = v != none
        waits = np.uint64(has) & ~taken_bit(taken, u)  # no branches, as in scans
        rows.free[left] = u
        left += waits
        queue[end] = u
        end += waits & taken_bit(taken, v if has else u)
    rows.counts[part] = left - begin
    return begin, end


@expanded
def _those_that_waited(team: Team, rows: Rows, fresh: Queue, queue: Queue) -> bool:
    """Close the lists of the columns in `fresh`, and queue their rows; True: the team stops."""
    none = nobody(rows.following)
    lo, hi = share(team, fresh.tail[0])
    count = 0
    for i in range(lo, hi):
        v = fresh.vertices[i]
        u = rows.waiting[v]
        rows.waiting[v] = none
        while u != none:
            if not is_taken(rows.taken, u):
                count = push(queue.buffers[team.rank], count, u, queue.vertices, queue.tail)
            u = rows.following[u]
    flush(queue.buffers[team.rank], count, queue.vertices, queue.tail)
    return barrier(team)


@expanded
def _slice(queue: Queue, part: Any, parts: Any) -> Any:
    """Where a part of the queued rows begins and ends."""
    return np.uint64(queue.tail[0] * part // parts), np.uint64(queue.tail[0] * (part + 1) // parts)


@kernel
def wake(
    team: Team, block: Block, rows: Rows, ties: Ties, heard: Any, fresh: Queue, queue: Queue,
    candidates: Candidates, out: Out,
) -> None:  # fmt: skip
    """Mark matched vertices; rows whose candidate was one of them find another, for its owner.

    A rank's own vertices are marked as columns.  Records are those of `propose`, of weight 0 where
    a row has no candidate left.  Caller: out.counts and both tails are 0.
    """
    of_columns, of_rows, own = heard.columns, heard.rows, heard.own
    listed = rows.waiting.size > 0
    count = 0
    for s in range(of_columns.owned.size):
        count = _take(team, of_columns, s, rows, listed, fresh, count)
    flush(fresh.buffers[team.rank], count, fresh.vertices, fresh.tail)
    for s in range(of_rows.owned.size):
        if s != own:
            _take(team, of_rows, s, rows, False, fresh, 0)
    if barrier(team):
        return
    parts, lost = out.counts.shape[0], queue.vertices
    if listed and _those_that_waited(team, rows, fresh, queue):
        return
    part = next_chunk(team, parts, 1)
    while part >= 0:
        if listed:
            begin, end = _slice(queue, part, parts)
        else:
            begin, end = _those_without(rows, part, lost)
        _count(lost, begin, end, part, out)
        part = next_chunk(team, parts, 1)
    if begin_records(team, out):
        return
    done, part = 0, next_chunk(team, parts, 1)
    while part >= 0:
        done = begin_part(team, out, done, part)
        begin = _slice(queue, part, parts)[0] if listed else np.uint64(part * PASS)
        end = begin + np.uint64(records_of(out, part))
        _propose_again(team, block, rows, ties, lost, begin, end, candidates, out)
        part = next_chunk(team, parts, 1)
