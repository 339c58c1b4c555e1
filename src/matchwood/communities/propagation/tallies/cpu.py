"""Label propagation on the block of a rank, on a team.  What the functions are for: __init__.py.

Labels are any vertices of the graph, so a table of all of them would be as long as the graph on
every rank.  Here each member has a table with open addressing, of twice the longest row.

Races: every list is written by one member.  `wake` sets bytes to 1 from several members at once,
by relaxed stores.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.communities.propagation.tallies import Lists
from matchwood.primitives.hashing import GOLDEN
from matchwood.primitives.hashing.cpu import mix64
from matchwood.primitives.hashing.reference import mix64_number
from matchwood.primitives.tally.cpu import SHORT_ROW, Rows
from matchwood.teams import crew, device, interrupted, kernel, next_chunk, share, store_relaxed

Array = np.ndarray[Any, Any]

CHUNK = 256  # vertices that a member takes at a time
WORD = 64  # bits of a word in which active vertices are marked
_GOLDEN, _SHIFT, _ONE = np.uint64(GOLDEN), np.uint64(32), np.uint64(1)


class Table(NamedTuple):
    """A list of labels and their weights for each member, and where each label is in it."""

    slots: Array  # (members, a power of two) uint32: 1 + the place in the list, 0 for none
    label: Array  # (members, longest)
    weight: Array  # (members, longest) int64


def table_of(members: int, longest: int, kind: Any) -> Table:
    """Room for lists of up to `longest` labels."""
    size = 1 << max(2 * longest - 1, 1).bit_length()
    return Table(
        np.zeros((members, size if longest > SHORT_ROW else 1), np.uint32),
        np.empty((members, max(longest, 1)), kind),
        np.empty((members, max(longest, 1)), np.int64),
    )


@device
def _mask(entries: Any) -> Any:
    """The slots that a list of so many entries uses, less 1: a power of two, less 1."""
    size = np.uint64(2 * SHORT_ROW)
    while size < np.uint64(2) * np.uint64(entries):
        size += size
    return size - _ONE


@device
def _add(table: Table, rank: int, mask: Any, found: int, c: Any, weight: Any) -> int:
    """Add to the weight of label c; returns how many labels the list has."""
    label, weights = table.label[rank], table.weight[rank]
    slots = table.slots[rank]
    at = ((np.uint64(c) * _GOLDEN) >> _SHIFT) & mask
    while True:
        place = slots[at]
        if place == 0:
            slots[at] = found + 1
            label[found] = c
            weights[found] = weight
            return found + 1
        if label[place - 1] == c:
            weights[place - 1] += weight
            return found
        at = (at + _ONE) & mask


@device
def _add_to_short(table: Table, rank: int, found: int, c: Any, weight: Any) -> int:
    """The same where there are at most SHORT_ROW entries: labels are compared one by one."""
    label, weights = table.label[rank], table.weight[rank]
    for at in range(found):
        if label[at] == c:
            weights[at] += weight
            return found
    label[found] = c
    weights[found] = weight
    return found + 1


@device
def _tally(table: Table, rank: int, rows: Rows, labels: Array, v: Any) -> int:
    """The labels in the row of v, with their weights; returns how many."""
    begin, end = np.uint64(rows.indptr[v]), np.uint64(rows.indptr[v + 1])
    found, weighted = 0, rows.data.size > 0
    if end - begin <= np.uint64(SHORT_ROW):
        for k in range(begin, end):
            weight = rows.data[k] if weighted else np.int64(1)
            found = _add_to_short(table, rank, found, labels[rows.indices[k]], weight)
        return found
    mask = _mask(end - begin)
    for k in range(begin, end):
        weight = rows.data[k] if weighted else np.int64(1)
        found = _add(table, rank, mask, found, labels[rows.indices[k]], weight)
    table.slots[rank][: mask + _ONE] = 0
    return found


@kernel
def _tally_all(
    team: Any,
    rows: Rows,
    labels: Array,
    vertices: Array,
    begins: Array,
    table: Table,
    counts: Array,
    found_labels: Array,
    found_weights: Array,
) -> None:
    """The list of vertex i goes to begins[i], where its whole row would have room."""
    chunk = next_chunk(team, vertices.size, CHUNK)
    while chunk >= 0:
        for i in range(chunk, min(chunk + CHUNK, vertices.size)):
            found = _tally(table, team.rank, rows, labels, vertices[i])
            at = begins[i]
            for k in range(found):
                found_labels[at + k] = table.label[team.rank, k]
                found_weights[at + k] = table.weight[team.rank, k]
            counts[i] = found
        chunk = next_chunk(team, vertices.size, CHUNK)


@kernel
def _close_gaps(
    team: Any, begins: Array, ends: Array, source: tuple[Array, Array], target: tuple[Array, Array]
) -> None:
    """Lists that begin at begins[i] one after the other; number i ends before ends[i]."""
    lo, hi = share(team, ends.size)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        first = ends[i - 1] if i > 0 else np.int64(0)
        for k in range(ends[i] - first):
            target[0][first + k] = source[0][begins[i] + k]
            target[1][first + k] = source[1][begins[i] + k]


def tallies(
    rows: Rows, labels: Array, vertices: Array, kind: Any, threads: int | None
) -> tuple[Array, Array, Array]:
    """For each of these rows how many labels it has; then all labels, and their weights."""
    lengths = (rows.indptr[vertices + 1] - rows.indptr[vertices]).astype(np.int64)
    ends = np.cumsum(lengths)
    work, longest = int(ends[-1]) if ends.size else 0, int(lengths.max(initial=0))
    team = crew(threads, work=work + vertices.size)
    counts = np.empty(vertices.size, np.int64)
    spread = np.empty(work, kind), np.empty(work, np.int64)
    team.run(
        _tally_all, rows, labels, vertices, ends - lengths,
        table_of(team.size, longest, labels.dtype), counts, *spread,
    )  # fmt: skip
    closed = np.cumsum(counts)
    size = int(closed[-1]) if closed.size else 0
    found = np.empty(size, kind), np.empty(size, np.int64)
    team.run(_close_gaps, ends - lengths, closed, spread, found)
    return counts, *found


@device
def _join(table: Table, rank: int, lists: Lists, j: Any, entries: int) -> int:
    """All lists of a vertex as one; returns how many labels it has."""
    found, mask = 0, _mask(entries)
    for s in range(lists.after.size):
        begin, after = lists.begins[s, j], lists.after[s]
        for k in range(begin, begin + lists.sizes[s, j]):
            c, weight = lists.words[k], np.int64(lists.words[k + after])
            if entries <= SHORT_ROW:
                found = _add_to_short(table, rank, found, c, weight)
            else:
                found = _add(table, rank, mask, found, c, weight)
    if entries > SHORT_ROW:
        table.slots[rank][: mask + _ONE] = 0
    return found


@kernel
def _decide(team: Any, lists: Lists, own: Array, table: Table, targets: Array) -> None:
    """The heaviest label around each vertex, of several the one with the smallest mix64."""
    chunk = next_chunk(team, own.size, CHUNK)
    while chunk >= 0:
        for j in range(chunk, min(chunk + CHUNK, own.size)):
            entries = np.int64(0)
            for s in range(lists.after.size):
                entries += lists.sizes[s, j]
            found = _join(table, team.rank, lists, j, entries)
            label, weight = table.label[team.rank], table.weight[team.rank]
            best, inside = np.uint64(own[j]), np.int64(0)
            for i in range(found):
                if np.uint64(label[i]) == best:
                    inside = weight[i]
            most, least = inside, mix64(best)
            for i in range(found):
                if weight[i] > 0 and weight[i] >= most:
                    h = mix64(np.uint64(label[i]))
                    if weight[i] > most or h < least:
                        best, most, least = np.uint64(label[i]), weight[i], h
            targets[j] = best
        chunk = next_chunk(team, own.size, CHUNK)


@kernel
def _weigh(team: Any, lists: Lists, own: Array, table: Table, inside: Array, most: Array) -> None:
    """The weight of each vertex' own label around it, and of the heaviest (with that label)."""
    chunk = next_chunk(team, own.size, CHUNK)
    while chunk >= 0:
        for j in range(chunk, min(chunk + CHUNK, own.size)):
            entries = np.int64(0)
            for s in range(lists.after.size):
                entries += lists.sizes[s, j]
            found = _join(table, team.rank, lists, j, entries)
            inside[j], most[0, j], most[1, j] = 0, 0, own[j]
            for i in range(found):
                weight, c = table.weight[team.rank, i], np.int64(table.label[team.rank, i])
                if c == own[j]:
                    inside[j] = weight
                if weight > most[0, j] or (weight == most[0, j] and c < most[1, j]):
                    most[0, j], most[1, j] = weight, c
        chunk = next_chunk(team, own.size, CHUNK)


def _table_for(lists: Lists, members: int) -> Table:
    entries = lists.sizes.sum(axis=0)
    return table_of(members, int(entries.max(initial=0)), lists.words.dtype)


def decided(lists: Lists, own: Array, threads: int | None) -> Array:
    """The label that each of the own vertices takes; `own` are the labels that they have."""
    team = crew(threads, work=int(lists.words.size) + own.size)
    targets = np.empty_like(own)
    team.run(_decide, lists, own, _table_for(lists, team.size), targets)
    return targets


def weighed(lists: Lists, own: Array, threads: int | None) -> tuple[Array, Array]:
    """The weight of the own label around each vertex; the largest weight and its least label."""
    team = crew(threads, work=int(lists.words.size) + own.size)
    inside, most = np.empty(own.size, np.int64), np.empty((2, own.size), np.int64)
    team.run(_weigh, lists, own.astype(np.int64), _table_for(lists, team.size), inside, most)
    return inside, most


@kernel
def _number_turns(team: Any, ids: Array, start: Any, turn: Any, parts: Any, out: Array) -> None:
    lo, hi = share(team, ids.size)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        out[i] = mix64(mix64(start ^ np.uint64(ids[i])) ^ turn) % parts


def turns(ids: Array, parts: int, number: int, seed: int, threads: int | None) -> Array:
    """The sub-round of each vertex in round `number` (subrounds.py)."""
    out = np.empty(ids.size, np.uint8)
    start = np.uint64(mix64_number(seed + GOLDEN))
    team = crew(threads, work=2 * ids.size)
    team.run(_number_turns, ids, start, np.uint64(number), np.uint64(parts), out)
    return out


@kernel
def _take_marks(team: Any, vertices: Array, active: Array, words: Array) -> None:
    lo, hi = share(team, words.size)
    for w in range(lo, hi):
        bits = np.uint64(0)
        for b in range(min(WORD, vertices.size - w * WORD)):
            v = vertices[w * WORD + b]
            bits |= np.uint64(active[v]) << np.uint64(b)
            active[v] = 0
        words[w] = bits


def take_marks(vertices: Array, active: Array, threads: int | None) -> Array:
    """Who of these is active, a bit each; they are no longer active."""
    words = np.empty(-(-vertices.size // WORD), np.uint64)
    crew(threads, work=vertices.size).run(_take_marks, vertices, active, words)
    return words


def marked(words: Array, vertices: Array) -> Array:
    """Those of the vertices whose bit is set."""
    bits = np.unpackbits(words.view(np.uint8), count=vertices.size, bitorder="little")
    return vertices[np.flatnonzero(bits)]


@kernel
def _wake(
    team: Any,
    columns: tuple[Array, Array],
    moved: Array,
    new: Array,
    labels: Array,
    active: Array,
) -> None:
    """`columns` has for each column the rows that hold it."""
    indptr, rows = columns
    chunk = next_chunk(team, moved.size, CHUNK)
    while chunk >= 0:
        for i in range(chunk, min(chunk + CHUNK, moved.size)):
            v = moved[i]
            labels[v] = new[i]
            for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + 1])):
                store_relaxed(active, rows[k], 1)
        chunk = next_chunk(team, moved.size, CHUNK)


def wake(
    columns: tuple[Array, Array],
    moved: Array,
    new: Array,
    labels: Array,
    active: Array,
    threads: int | None,
) -> None:
    """Columns that moved have new labels; rows that hold one of them are active."""
    team = crew(threads, work=16 * moved.size)
    team.run(_wake, columns, moved, new, labels, active)


@kernel
def _find_late(
    team: Any, rows: Rows, vertices: Array, wishes: Array, ids: Array, late: Array
) -> None:
    chunk = next_chunk(team, vertices.size, CHUNK)
    while chunk >= 0:
        for i in range(chunk, min(chunk + CHUNK, vertices.size)):
            v = vertices[i]
            mine = mix64(np.uint64(ids[v]))
            late[i] = 0
            for k in range(np.uint64(rows.indptr[v]), np.uint64(rows.indptr[v + 1])):
                u = rows.indices[k]
                if wishes[u] == 1 and mix64(np.uint64(ids[u])) < mine:
                    late[i] = 1
                    break
        chunk = next_chunk(team, vertices.size, CHUNK)


def late_of(rows: Rows, vertices: Array, wishes: Array, ids: Array, threads: int | None) -> Array:
    """Who of these has a neighbour here that wishes to move too, and is before it by mix64."""
    late = np.empty(vertices.size, np.uint8)
    crew(threads, work=16 * vertices.size).run(_find_late, rows, vertices, wishes, ids, late)
    return late


@kernel
def _add_inside(team: Any, rows: Rows, labels: Array, n: int, sums: Array) -> None:
    lo, hi = share(team, n)
    total = np.int64(0)
    for v in range(lo, hi):
        if interrupted(team, v):
            return
        own = labels[v]
        for k in range(np.uint64(rows.indptr[v]), np.uint64(rows.indptr[v + 1])):
            if labels[rows.indices[k]] == own:
                total += rows.data[k] if rows.data.size > 0 else np.int64(1)
    sums[team.rank] = total


def inside(rows: Rows, labels: Array, n: int, threads: int | None) -> int:
    """The weight of the entries of n rows that lie within a label."""
    team = crew(threads, work=int(rows.indices.size) + n)
    sums = np.zeros(team.size, np.int64)
    team.run(_add_inside, rows, labels, n, sums)
    return int(sums.sum())
