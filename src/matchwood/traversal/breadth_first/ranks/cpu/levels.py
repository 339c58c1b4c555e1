"""A level: top down, bottom up, and owners that take parents.  Read messages.py first."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    atomic_add,
    atomic_min,
    barrier,
    crew,
    device,
    expanded,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
    share,
)
from matchwood.engines.cpu.hints import (
    count_ones,
    deposited,
    extracted,
    leading_zeros,
    prefetch,
    trailing_zeros,
)
from matchwood.engines.ranks.grid import GridShape
from matchwood.engines.ranks.grid.cpu import ONE
from matchwood.primitives.frontier.cpu import claim_bit, flush, push
from matchwood.traversal.breadth_first.ranks.cpu.messages import (
    NONE,
    WORD,
    WORDS,
    Columns,
    FoundRows,
    FrontierMessages,
    Names,
    Offers,
    Queue,
    close,
    column_bit,
    column_name,
    has,
    list_rows,
    offer_columns,
    offer_rows,
    row_name,
    set_columns,
    word_of,
    words_for,
)

Array = np.ndarray[Any, Any]


# Top down
#
# Races.  Several members may reach a column at once.  The one that claims its bit lists it, and all
# lower its parent by an atomic minimum once all columns are claimed.


CHUNK = 64  # rows of the frontier that a member takes at a time


class Outward(NamedTuple):
    """The rows of a block."""

    indptr: Array
    indices: Array
    full: Array  # (C, words) bits by place: those that have entries


@expanded
def follow_alone(rows: Outward, u: Any, name: Any, columns: Columns, found: Array, at: int) -> int:
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
    """List the columns of row u that are new; their parents are lowered afterwards."""
    for k in range(np.uint64(rows.indptr[u]), np.uint64(rows.indptr[u + ONE])):
        v = rows.indices[k]
        if not has(columns.seen, v) and claim_bit(columns.fresh, np.int64(v)):
            columns.best[v] = ~columns.best.dtype.type(0)
            count = push(buffer, count, v, found.vertices, found.tail)
    return count


@expanded
def _lower(rows: Outward, u: Any, name: Any, columns: Columns) -> None:
    """Lower the parents of the new columns of row u."""
    for k in range(np.uint64(rows.indptr[u]), np.uint64(rows.indptr[u + ONE])):
        v = rows.indices[k]
        if has(columns.fresh, v) and name < load_relaxed(columns.best, v):
            atomic_min(columns.best, v, name)


@device
def follow(
    team: Any, rows: Outward, frontier: Array, names: Names, columns: Columns, found: Queue
) -> None:
    """Follow the entries of these rows; columns that are new go to `found`, with their parents."""
    kind, alone, buffer = columns.best.dtype.type, team.size == 1, found.buffers[team.me]
    at = 0
    chunk = next_chunk(team, frontier.size, CHUNK)
    while chunk >= 0:
        for i in range(chunk, min(chunk + CHUNK, frontier.size)):
            u = np.uint64(frontier[i])
            if alone:
                name = kind(row_name(names, u))
                at = follow_alone(rows, u, name, columns, found.vertices, at)
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
    team: Any, sent: FrontierMessages, rows: Outward, open: Array, names: Names, columns: Columns,
    frontier: Queue, found: Queue, offers: Offers,
) -> None:  # fmt: skip
    """Follow the rows sent, and write a message for each owner.  Caller: queues' tails are 0."""
    close(team, sent, open)
    list_rows(team, sent, rows.full, rows.indptr, frontier)
    if barrier(team):
        return
    listed = frontier.vertices[: frontier.tail[0]]
    follow(team, rows, listed, names, columns, found)
    if barrier(team):
        return
    offer_columns(team, found.vertices[: found.tail[0]], names.shape, columns, offers)


# Bottom up
#
# Open rows look for their first column in the frontier, which is the smallest.  In most rows that
# is one of the first entries, and the first entries of all rows lie together, by place: on R-MAT 22
# one row in a hundred is read from its own place, and these are prefetched, many at a time.
#
# Columns are known by their bits in the frontier, from which their names follow.  Of the rows of a
# chunk those that have entries are numbered, and open ones are known by their numbers meanwhile.
#
# No races: a member takes whole words of places.


HEADS = np.uint64(3)  # entries of a row that lie together with those of others
MANY_OPEN_ROWS = np.uint64(16)  # of 64; with more open rows, all 64 are tried
SIX, LOW = np.uint64(6), np.uint64(63)


class Inward(NamedTuple):
    """The rows of a block of the transpose.

    The rows of a chunk that have entries are numbered by place.  Their first entries lie together,
    as bits of the frontier, from starts[s, chunk] on, a multiple of 64.
    """

    indptr: Array
    indices: Array
    full: Array  # (C, words) bits by place: rows that have entries
    starts: Array  # (C, chunks)
    heads: Array  # (HEADS, numbers); the last one again where there are fewer
    longer: Array  # bits by number: rows that have more than HEADS


class ChunkNotes(NamedTuple):
    """What a member notes of the rows of a chunk."""

    bits: Array  # (2, WORDS + 1) by number: those that are open; those that are found
    entries: Array  # by number: the entry that was tried last, as a bit of the frontier
    late: Array  # (2, rows): numbers and places of those whose other entries must be tried


class GroupMessages(NamedTuple):
    """What the ranks of the row and of the column sent of the frontier."""

    rows: FrontierMessages
    columns: FrontierMessages


@kernel
def _take_heads(team: Any, rows: Inward, names: Names) -> None:
    """The first entries of rows, and which rows are longer.  A member has chunks of its own."""
    stripes, chunks = rows.starts.shape
    taken = next_chunk(team, stripes * chunks, 1)
    while taken >= 0:
        s, chunk = taken // chunks, taken % chunks
        at = np.uint64(rows.starts[s, chunk])
        for w in range(chunk * WORDS, min((chunk + 1) * WORDS, rows.full.shape[1])):
            left = rows.full[s, w]
            while left != NONE:
                v = np.uint64((w * WORD + np.int64(trailing_zeros(left))) * stripes + s)
                left &= left - ONE
                begin, last = np.uint64(rows.indptr[v]), np.uint64(rows.indptr[v + ONE]) - ONE
                for i in range(HEADS):
                    u = rows.indices[min(begin + np.uint64(i), last)]
                    rows.heads[i, at] = column_bit(names, u)
                rows.longer[at >> SIX] |= np.uint64(begin + HEADS <= last) << (at & LOW)
                at += ONE
        taken = next_chunk(team, stripes * chunks, 1)


def with_heads(
    indptr: Array, indices: Array, full: Array, names: Names, threads: int | None
) -> Inward:
    """The rows of a block; `full` has the bits of those that have entries."""
    stripes, words = full.shape
    ones = np.unpackbits(full.view(np.uint8)).reshape(stripes, words, WORD).sum(2)
    sizes = np.add.reduceat(ones, np.arange(0, words, WORDS), axis=1) if words else ones
    starts = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(-(-sizes.ravel() // WORD) * WORD, out=starts[1:])
    heads = np.zeros((int(HEADS), int(starts[-1])), indices.dtype)
    longer = np.zeros(int(starts[-1]) // WORD, np.uint64)
    rows = Inward(indptr, indices, full, starts[:-1].reshape(sizes.shape), heads, longer)
    crew(threads, work=8 * heads.size).run(_take_heads, rows, names)
    return rows


@expanded
def _is_in(frontier: Array, bit: Any) -> Any:
    """1 where a column is in the frontier, else 0."""
    k = np.uint64(bit)
    return (frontier[k >> SIX] >> (k & LOW)) & ONE


@expanded
def _try_all(frontier: Array, head: Array, entries: Array) -> Any:
    """Bits of 64 rows that have this entry in the frontier; without a branch, many at a time."""
    bits = NONE
    for b in range(WORD):
        entries[b] = head[b]
        bits |= _is_in(frontier, head[b]) << np.uint64(b)
    return bits


@expanded
def _try_some(frontier: Array, head: Array, open: Any, entries: Array) -> Any:
    """The same of the open rows alone.  No branch asks for the answer."""
    bits = NONE
    while open != NONE:
        b = trailing_zeros(open)
        open &= open - ONE
        entries[b] = head[b]
        bits |= _is_in(frontier, head[b]) << b
    return bits


@expanded
def _number_open(full: Array, open: Array, numbered: Array) -> Any:
    """The bits of open rows by number; returns how many words, 0 where none is open."""
    at = any_open = NONE
    for w in range(open.size):
        any_open |= open[w]
    if any_open == NONE:
        return NONE
    numbered[0] = NONE
    for w in range(open.size):
        bits, q, shift = extracted(open[w], full[w]), at >> SIX, at & LOW
        numbered[q] |= bits << shift
        numbered[q + ONE] = (bits >> ONE) >> (LOW - shift)
        at += count_ones(full[w])
    return (at + LOW) >> SIX


@expanded
def _by_place(numbered: Array, at: Any, full: Any) -> Any:
    """The bits by place of the rows `full` of a word, which are numbered from `at` on."""
    q, shift = at >> SIX, at & LOW
    bits = numbered[q] >> shift | (numbered[q + ONE] << ONE) << (LOW - shift)
    return deposited(bits, full)


@expanded
def _try_heads(rows: Inward, frontier: Array, start: int, words: Any, near: ChunkNotes) -> Any:
    """Which open rows of a chunk have one of their first entries in the frontier.

    Longer rows that have none stay open; returns whether there are any.
    """
    open, found = near.bits[0], near.bits[1]
    longer, late = rows.longer[start // WORD :], NONE
    for q in range(words):
        first, left = start + np.int64(q) * WORD, open[q]
        entries = near.entries[q * np.uint64(WORD) : (q + ONE) * np.uint64(WORD)]
        if count_ones(left) > MANY_OPEN_ROWS:
            bits = _try_all(frontier, rows.heads[0, first : first + WORD], entries) & left
        else:
            bits = _try_some(frontier, rows.heads[0, first : first + WORD], left, entries)
        for i in range(1, HEADS):
            head = rows.heads[i, first : first + WORD]
            bits |= _try_some(frontier, head, left & ~bits, entries)
        found[q] = bits
        open[q] = left & ~bits & longer[q]
        late |= open[q]
    found[words] = open[words] = NONE
    return late != NONE


@expanded
def _list_late(full: Array, near: ChunkNotes) -> Any:
    """Numbers and places of the rows that are still open; returns how many."""
    count, at = NONE, NONE
    for w in range(full.size):
        left = _by_place(near.bits[0], at, full[w])
        while left != NONE:
            b = trailing_zeros(left)
            left &= left - ONE
            near.late[0, count] = at + count_ones(full[w] & ((ONE << b) - ONE))
            near.late[1, count] = np.uint64(w * WORD) + b
            count += ONE
        at += count_ones(full[w])
    return count


@expanded
def _try_others(
    rows: Inward, frontier: Array, names: Names, base: Any, count: Any, near: ChunkNotes
) -> None:
    """Try the other entries of the rows that are listed; first all rows are prefetched.

    The row of place k of the chunk is base + k C.
    """
    found = near.bits[1]
    numbers, places = near.late[0, :count], near.late[1, :count]
    for i in range(places.size):
        prefetch(rows.indices, np.uint64(rows.indptr[base + places[i] * names.shape.C]) + HEADS)
    for i in range(places.size):
        v = base + places[i] * names.shape.C
        for at in range(np.uint64(rows.indptr[v]) + HEADS, np.uint64(rows.indptr[v + ONE])):
            u = column_bit(names, rows.indices[at])
            if _is_in(frontier, u) != NONE:
                k = np.uint64(numbers[i])
                near.entries[k] = u
                found[k >> SIX] |= ONE << (k & LOW)
                break


@expanded
def _write_parents(names: Names, words: Any, near: ChunkNotes, parents: Array) -> Any:
    """Write the parents of the rows of a chunk that were found; returns their number."""
    kind, at = parents.dtype.type, NONE
    for q in range(words):
        entries = near.entries[q * np.uint64(WORD) : (q + ONE) * np.uint64(WORD)]
        left = near.bits[1, q]
        while left != NONE:
            parents[at] = kind(column_name(names, entries[trailing_zeros(left)]))
            left &= left - ONE
            at += ONE
    return np.int64(at)


@expanded
def _mark_found(full: Array, open: Array, near: ChunkNotes, words: Any, bits: Array) -> None:
    """Set the bits by place of the rows of a chunk that were found, and clear their open bits."""
    if words == NONE:
        bits[:] = NONE
        return
    at = NONE
    for w in range(full.size):
        bits[w] = _by_place(near.bits[1], at, full[w])
        open[w] &= ~bits[w]
        at += count_ones(full[w])


@device
def search_rows(
    team: Any, rows: Inward, frontier: Array, names: Names, open: Array, found: FoundRows
) -> None:
    """Members take the words of a chunk."""
    stripes, chunks = rows.starts.shape
    near = ChunkNotes(found.near[team.me], found.entries[team.me], found.late[team.me])
    taken = next_chunk(team, stripes * chunks, 1)
    while taken >= 0:
        s, chunk = taken // chunks, taken % chunks
        first, end = chunk * WORDS, min((chunk + 1) * WORDS, open.shape[1])
        full, mine, bits = rows.full[s, first:end], open[s, first:end], found.bits[s, first:end]
        words = _number_open(full, mine, near.bits[0])
        if words != NONE and _try_heads(rows, frontier, rows.starts[s, chunk], words, near):
            base, late = np.uint64(first * WORD * stripes + s), _list_late(full, near)
            _try_others(rows, frontier, names, base, late, near)
        _mark_found(full, mine, near, words, bits)
        parents = found.parents[s, first * WORD : end * WORD]
        found.counts[s, chunk] = _write_parents(names, words, near, parents)
        taken = next_chunk(team, stripes * chunks, 1)


@kernel
def bottom_up(
    team: Any, sent: GroupMessages, rows: Inward, open: Array, names: Names, frontier: Array,
    found: FoundRows, offers: Offers,
) -> None:  # fmt: skip
    """Search the open rows for the columns sent, and write a message for each owner."""
    lo, hi = share(team, frontier.size)
    frontier[lo:hi] = NONE
    close(team, sent.rows, open)
    if barrier(team):
        return
    set_columns(team, sent.columns, names.shift, frontier)
    if barrier(team):
        return
    search_rows(team, rows, frontier, names, open, found)
    if barrier(team):
        return
    offer_rows(team, found, offers)


# Owners take the parents that are offered
#
# Races: a member writes the words of its own places alone.


COUNTED_VERTICES = 4096  # vertices of a level whose entries are all counted; of more, a sample:
SAMPLED = 2  # one vertex in SAMPLED words of places,
SAMPLES = 512  # but about SAMPLES vertices of a member at most


class OwnVertices(NamedTuple):
    """Own vertices by place; level and parent are all ones, that is -1, where not reached."""

    level: Array
    parent: Array
    reached: Array  # bits, in words of 64
    reached_now: Array  # bits of those reached in this level
    listed: Array  # the same as a list, where that is shorter than the bits
    indptr: Array  # row pointers of the block, which has some of their entries


@kernel
def begin(team: Any, level: Array, parent: Array) -> None:
    """No vertex is reached."""
    lo, hi = share(team, level.size)
    level[lo:hi] = ~level.dtype.type(0)
    parent[lo:hi] = ~parent.dtype.type(0)


@expanded
def _accept_list(own: OwnVertices, places: Array, parents: Array, lo: int, hi: int) -> None:
    """Accept what a list offers to the places in words lo .. hi of the bitmap."""
    for i in range(places.size):
        k = np.uint64(places[i])
        w, bit = np.int64(k >> np.uint64(6)), ONE << (k & np.uint64(63))
        if lo <= w and w < hi and own.reached[w] & bit == NONE:
            own.reached_now[w] |= bit
            own.parent[k] = min(own.parent[k], parents[i])


@device
def _accept_bits(
    team: Any, own: OwnVertices, bits: Array, parents: Array, lo: int, hi: int
) -> None:
    """Accept what bits offer to the places in words lo .. hi of them."""
    at = NONE
    for w in range(lo):
        at += count_ones(word_of(bits, w))
    for w in range(lo, hi):
        if interrupted(team, w):
            return
        offered, known = word_of(bits, w), own.reached[w]
        own.reached_now[w] |= offered & ~known
        base = np.uint64(w * WORD)
        while offered != NONE:
            b = trailing_zeros(offered)
            if (known >> b) & ONE == NONE:
                own.parent[base + b] = min(own.parent[base + b], parents[at])
            offered &= offered - ONE
            at += ONE


@expanded
def _entries(own: OwnVertices, k: Any, shape: GridShape) -> Any:
    """The entries of own vertex k in this block."""
    v = k * shape.C + shape.c
    return np.int64(own.indptr[v + ONE]) - np.int64(own.indptr[v])


@device
def _settle(
    team: Any, own: OwnVertices, depth: int, columns: Columns, shape: GridShape, lo: int, hi: int
) -> Any:  # fmt: skip
    """Set the levels of those reached in words lo .. hi; returns their number and entries.

    Where they are many, one vertex in some words is a sample, in turn the first and the last of a
    word, since in some graphs even vertices have more entries than odd ones.  No other member has
    bits in the words of `seen`, since these have 64 places of one member or of the other.
    """
    below, count, arcs = own.level.dtype.type(depth), np.int64(0), np.int64(0)
    for w in range(lo, hi):
        count += np.int64(count_ones(own.reached_now[w]))
    sampled, entries, after, low = count > COUNTED_VERTICES, np.int64(0), lo, True
    apart = max(SAMPLED, (hi - lo) // SAMPLES)
    for w in range(lo, hi):
        if interrupted(team, w):
            break
        left, base = own.reached_now[w], np.uint64(w * WORD)
        if left == NONE:
            continue
        own.reached[w] |= left
        if sampled:
            if w >= after:
                after, low = w + apart, not low
                b = trailing_zeros(left) if low else np.uint64(63) - leading_zeros(left)
                entries = _entries(own, base + b, shape)
            arcs += entries * np.int64(count_ones(left))
        while left != NONE:
            k = base + trailing_zeros(left)
            left &= left - ONE
            own.level[k] = below
            if not sampled:
                arcs += _entries(own, k, shape)
            v = k * shape.C + shape.c
            columns.seen[v >> np.uint64(6)] |= ONE << (v & np.uint64(63))
    return count, arcs


@expanded
def _list_reached(own: OwnVertices) -> None:
    at = 0
    for w in range(own.reached_now.size):
        left = own.reached_now[w]
        while left != NONE:
            own.listed[at] = np.uint64(w * WORD) + trailing_zeros(left)
            left &= left - ONE
            at += 1


@kernel
def accept(
    team: Any, words: Array, starts: Array, depth: int, own: OwnVertices, columns: Columns,
    shape: GridShape, totals: Array,
) -> None:  # fmt: skip
    """Take the smallest of the parents that are offered.

    totals: how many vertices are reached in this level; their entries in this block.  Caller:
    own.reached_now and totals are 0.
    """
    lo, hi = share(team, own.reached_now.size)
    size = words_for(own.level.size, words)
    for s in range(starts.size - 1):
        offered = words[starts[s] : starts[s + 1]]
        if offered.size < 2 * size:
            half = offered.size // 2
            _accept_list(own, offered[:half], offered[half:], lo, hi)
        else:
            _accept_bits(team, own, offered[:size], offered[size:], lo, hi)
    count, arcs = _settle(team, own, depth, columns, shape, lo, hi)
    atomic_add(totals, 0, count)
    atomic_add(totals, 1, arcs)
    if barrier(team):
        return
    if team.me == 0 and totals[0] < own.listed.size:
        _list_reached(own)
