"""Label propagation on the block of a rank, on a team.  What ranks exchange: __init__.py.

A rank has a part of each row of its row group.  It adds up the labels there (`label_sums`); the
owner of a vertex joins the lists of the ranks of its row (`ReceivedLists`) and takes the best label
(`decided`).

Labels are any vertices of the graph: a member has a table with open addressing, of twice the
longest row.

Races: every list is written by one member.  `wake` sets bytes to 1 from several members at once,
by relaxed stores.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    crew,
    device,
    expanded,
    interrupted,
    kernel,
    next_chunk,
    share,
    store_relaxed,
)
from matchwood.primitives.hashing import GOLDEN
from matchwood.primitives.hashing.cpu import mix64
from matchwood.primitives.tally.cpu import Rows

Array = np.ndarray[Any, Any]

CHUNK = 256  # vertices that a member takes at a time
WORD = 64  # bits of a word in which active vertices are marked
SHORT_ROW = 8  # entries; a linear search among these takes less time than a cache miss
_GOLDEN, _SHIFT, _ONE = np.uint64(GOLDEN), np.uint64(32), np.uint64(1)


class Table(NamedTuple):
    """A list of labels for each member: (members, slots), (members, longest row) twice."""

    place: Array
    label: Array
    weight: Array


def table_of(members: int, lengths: Array, kind: Any) -> Table:
    """Room for the longest of these lists of labels; `place` has the slots of the table."""
    longest = int(lengths.max(initial=0))
    size = 1 << max(2 * longest - 1, 1).bit_length()
    return Table(
        np.zeros((members, size if longest > SHORT_ROW else 1), np.uint32),
        np.empty((members, max(longest, 1)), kind),
        np.empty((members, max(longest, 1)), np.int64),
    )


@device
def _mask(entries: Any) -> Any:
    """The slots for a list of `entries` entries, a power of two, less 1."""
    size = np.uint64(2 * SHORT_ROW)
    while size < np.uint64(2) * np.uint64(entries):
        size += size
    return size - _ONE


@device
def _place_of(slots: Array, label: Array, mask: Any, found: Any, c: Any) -> Any:
    """The place of label c in the list; a new label is noted at place `found`."""
    at = ((np.uint64(c) * _GOLDEN) >> _SHIFT) & mask
    place = np.uint64(slots[at])
    while place != 0 and label[place - _ONE] != c:
        at = (at + _ONE) & mask
        place = np.uint64(slots[at])
    if place != 0:
        return place - _ONE
    slots[at] = found + _ONE
    label[found] = c
    return found


@device
def _place_in_short(label: Array, found: Any, c: Any) -> Any:
    """`_place_of` for at most SHORT_ROW entries: labels are compared one by one."""
    at = np.uint64(0)
    while at < found and label[at] != c:
        at += _ONE
    label[at] = c
    return at


@expanded
def _added(table: Table, member: int, entries: Any, found: Any, c: Any, weight: Any) -> Any:
    """Add to the weight of label c, in a list of at most `entries`; its place, and the labels."""
    label, weights = table.label[member], table.weight[member]
    if entries <= np.uint64(SHORT_ROW):
        at = _place_in_short(label, found, c)
    else:
        at = _place_of(table.place[member], label, _mask(entries), found, c)
    if at == found:
        found += _ONE
        weights[at] = 0
    weights[at] += weight
    return at, found


@expanded
def _empty(table: Table, member: int, entries: Any) -> None:
    """Empty the slots that a list of `entries` has used."""
    if entries > np.uint64(SHORT_ROW):
        table.place[member, : _mask(entries) + _ONE] = 0


@device
def _add_up(table: Table, member: int, rows: Rows, labels: Array, v: Any) -> int:
    """Add up the weights of the labels in the row of v; returns the number of labels."""
    label, weights = table.label[member], table.weight[member]
    begin, end = np.uint64(rows.indptr[v]), np.uint64(rows.indptr[v + 1])
    found, last = np.uint64(0), np.uint64(0)
    for k in range(begin, end):
        c = labels[rows.indices[k]]
        weight = rows.data[k] if rows.data.size > 0 else np.int64(1)
        if k == begin or label[last] != c:  # neighbours often have the label of the one before
            last, found = _added(table, member, end - begin, found, c, weight)
        else:
            weights[last] += weight
    _empty(table, member, end - begin)
    return np.int64(found)


@device
def _only_label(table: Table, member: int, rows: Rows, labels: Array, v: Any) -> bool:
    """List the label of a row that has only one, and say so.  From the second round on most do."""
    begin, end = np.uint64(rows.indptr[v]), np.uint64(rows.indptr[v + 1])
    if begin == end:
        return False
    c = labels[rows.indices[begin]]
    for k in range(begin + _ONE, end):
        if labels[rows.indices[k]] != c:
            return False
    weight = np.int64(end - begin)
    if rows.data.size > 0:
        weight = np.int64(0)
        for k in range(begin, end):
            weight += rows.data[k]
    table.label[member, 0], table.weight[member, 0] = c, weight
    return True


@kernel
def _add_up_all(
    team: Any, rows: Rows, labels: Array, vertices: Array, begins: Array, table: Table,
    counts: Array, found: tuple[Array, Array],
) -> None:  # fmt: skip
    """Write the list of vertex i at begins[i], where its whole row would have room."""
    chunk = next_chunk(team, vertices.size, CHUNK)
    while chunk >= 0:
        for i in range(chunk, min(chunk + CHUNK, vertices.size)):
            if _only_label(table, team.me, rows, labels, vertices[i]):
                size = 1
            else:
                size = _add_up(table, team.me, rows, labels, vertices[i])
            at = begins[i]
            for k in range(size):
                found[0][at + k] = table.label[team.me, k]
                found[1][at + k] = table.weight[team.me, k]
            counts[i] = size
        chunk = next_chunk(team, vertices.size, CHUNK)


@kernel
def _close_gaps(
    team: Any, begins: Array, ends: Array, source: tuple[Array, Array], target: tuple[Array, Array]
) -> None:
    """Move the lists that begin at begins[i] together; list i then ends before ends[i]."""
    lo, hi = share(team, ends.size)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        first = ends[i - 1] if i > 0 else np.int64(0)
        for k in range(ends[i] - first):
            target[0][first + k] = source[0][begins[i] + k]
            target[1][first + k] = source[1][begins[i] + k]


def label_sums(
    rows: Rows, labels: Array, vertices: Array, kind: Any, threads: int | None
) -> tuple[Array, Array, Array]:
    """The number of labels of each row; all labels; their weights."""
    lengths = (rows.indptr[vertices + 1] - rows.indptr[vertices]).astype(np.int64)
    ends = np.cumsum(lengths)
    work = int(ends[-1]) if ends.size else 0
    team = crew(threads, work=work + vertices.size)
    counts = np.empty(vertices.size, np.int64)
    gapped = np.empty(work, kind), np.empty(work, np.int64)
    table = table_of(team.size, lengths, labels.dtype)
    begins = ends - lengths
    team.run(_add_up_all, rows, labels, vertices, begins, table, counts, gapped)
    closed = np.cumsum(counts)
    size = int(closed[-1]) if closed.size else 0
    found = np.empty(size, kind), np.empty(size, np.int64)
    team.run(_close_gaps, begins, closed, gapped, found)
    return counts, *found


@device
def _join(table: Table, member: int, lists: Any, j: Any) -> int:
    """Join all lists of a vertex; returns how many labels it has."""
    entries, found = np.uint64(0), np.uint64(0)
    for s in range(lists.after.size):
        entries += np.uint64(lists.sizes[s, j])
    for s in range(lists.after.size):
        begin, after = lists.begins[s, j], lists.after[s]
        for k in range(begin, begin + lists.sizes[s, j]):
            weight = np.int64(lists.words[k + after])
            _, found = _added(table, member, entries, found, lists.words[k], weight)
    _empty(table, member, entries)
    return np.int64(found)


@kernel
def _decide(team: Any, lists: Any, own: Array, table: Table, targets: Array) -> None:
    """The heaviest label around each vertex, of several the one with the smallest mix64."""
    chunk = next_chunk(team, own.size, CHUNK)
    while chunk >= 0:
        for j in range(chunk, min(chunk + CHUNK, own.size)):
            found = _join(table, team.me, lists, j)
            label, weight = table.label[team.me], table.weight[team.me]
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
def _weigh(team: Any, lists: Any, own: Array, table: Table, inside: Array, most: Array) -> None:
    """The weight of each vertex' own label around it, and of the heaviest (with that label)."""
    chunk = next_chunk(team, own.size, CHUNK)
    while chunk >= 0:
        for j in range(chunk, min(chunk + CHUNK, own.size)):
            found = _join(table, team.me, lists, j)
            inside[j], most[0, j], most[1, j] = 0, 0, own[j]
            for i in range(found):
                weight, c = table.weight[team.me, i], np.int64(table.label[team.me, i])
                if c == own[j]:
                    inside[j] = weight
                if weight > most[0, j] or (weight == most[0, j] and c < most[1, j]):
                    most[0, j], most[1, j] = weight, c
        chunk = next_chunk(team, own.size, CHUNK)


def decided(lists: Any, own: Array, threads: int | None) -> Array:
    """The label that each of the own vertices takes; `own` are the labels that they have."""
    team = crew(threads, work=int(lists.words.size) + own.size)
    targets = np.empty_like(own)
    table = table_of(team.size, lists.sizes.sum(axis=0), lists.words.dtype)
    team.run(_decide, lists, own, table, targets)
    return targets


def weighed(lists: Any, own: Array, threads: int | None) -> tuple[Array, Array]:
    """The weight of the own label around each vertex; the largest weight and its least label."""
    team = crew(threads, work=int(lists.words.size) + own.size)
    inside, most = np.empty(own.size, np.int64), np.empty((2, own.size), np.int64)
    table = table_of(team.size, lists.sizes.sum(axis=0), lists.words.dtype)
    team.run(_weigh, lists, own.astype(np.int64), table, inside, most)
    return inside, most


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
    """A bit for each vertex, 1 where it is active; none of them is active afterwards."""
    words = np.empty(-(-vertices.size // WORD), np.uint64)
    crew(threads, work=vertices.size).run(_take_marks, vertices, active, words)
    return words


@kernel
def _wake(
    team: Any, columns: tuple[Array, Array], moved: Array, new: Array, labels: Array, active: Array
) -> None:
    """See `wake`; `columns` has for each column the rows that hold it."""
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
    columns: tuple[Array, Array], moved: Array, new: Array, labels: Array, active: Array,
    threads: int | None,
) -> None:  # fmt: skip
    """Give columns that moved their new labels, and mark the rows that hold one as active."""
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
    """Which vertices have a neighbour here that wishes to move too, and is before them by mix64."""
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
    sums[team.me] = total


def inside(rows: Rows, labels: Array, n: int, threads: int | None) -> int:
    """The weight of the entries of n rows that lie within a label."""
    team = crew(threads, work=int(rows.indices.size) + n)
    sums = np.zeros(team.size, np.int64)
    team.run(_add_inside, rows, labels, n, sums)
    return int(sums.sum())
