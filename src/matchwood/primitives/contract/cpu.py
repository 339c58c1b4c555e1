"""Contraction on a team: entries are listed, or tallied.

Entries are listed where the diagonal is not needed: a symmetric matrix is then read by half.  They
are tallied where it is, and where they are only counted.  Both add up in the order of the rows.
R-MAT 16, two threads: for pairs of mates with float64 values a list took 0.8 of the time of a
tally; for groups of 50 vertices with integers a tally took 0.3 of the time of a list.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    atomic_add,
    barrier,
    crew,
    device,
    expanded,
    fail,
    interrupted,
    kernel,
    next_chunk,
    share,
    share_rows,
)
from matchwood.engines.cpu.hints import prefetch
from matchwood.primitives.assemble.cpu import assemble
from matchwood.primitives.contract import sums_type
from matchwood.primitives.number.cpu import number_roots
from matchwood.primitives.patterns import not_symmetric
from matchwood.primitives.scan.cpu import exclusive_scan
from matchwood.primitives.tally.cpu import (
    NO_COUNTS,
    Rows,
    add_by_label,
    clear,
    empty_local_sums,
    local_sums_of,
    rows_of,
    unsigned,
    word,
)
from matchwood.primitives.transpose.cpu import NO_DATA, first_places, transpose

Array = np.ndarray[Any, Any]


# Listed: entries between groups, in the order of the rows; `assemble` sorts them and adds up equal
# ones in the order of the list.  Of a symmetric matrix only the upper half is listed, i < j, and
# `assemble` mirrors the list.  Values may be left out: then only the pattern is made.  No races:
# members own their rows, and where they write follows from counts.

NOT_SYMMETRIC = 1  # code of a failure: more edges than a symmetric pattern has


class Listed(NamedTuple):
    """Entries one after the other; `sums` counts those of each member and, last, all."""

    rows: Array
    columns: Array
    values: Array
    sums: Array


@device
def _kept(i: Any, j: Any, symmetric: bool) -> bool:
    """Is an entry from group i to group j listed?"""
    return i < j or (i > j and not symmetric)


@kernel
def _list_entries(team: Any, matrix: Rows, labels: Array, symmetric: bool, out: Listed) -> None:
    """List the entries that are kept, in the order of the rows."""
    lo, hi = share_rows(team, matrix.indptr)
    count = 0
    for u in range(lo, hi):
        if interrupted(team, u):
            return
        for k in range(np.uint64(matrix.indptr[u]), np.uint64(matrix.indptr[u + 1])):
            count += _kept(labels[u], labels[matrix.indices[k]], symmetric)
    out.sums[team.me] = count
    if barrier(team):
        return
    place = np.int64(0)
    for member in range(team.me):
        place += out.sums[member]
    if place + count > out.rows.size:
        fail(team, NOT_SYMMETRIC, place + count)
        return
    if team.me == team.size - 1:
        out.sums[team.size] = place + count
    with_data = matrix.data.size > 0
    for u in range(lo, hi):
        if interrupted(team, u):
            return
        for k in range(np.uint64(matrix.indptr[u]), np.uint64(matrix.indptr[u + 1])):
            j = labels[matrix.indices[k]]
            if _kept(labels[u], j, symmetric):
                out.rows[place] = labels[u]
                out.columns[place] = j
                if with_data:
                    out.values[place] = matrix.data[k]
                place += 1


def list_and_sort(
    indptr: Array, indices: Array, data: Array | None, labels: Array, count: int, *,
    symmetric: bool, threads: int | None = None, caller: str = "contract",
) -> Any:  # fmt: skip
    """(indptr, indices, data) of the groups, without loops; `data` may be None."""
    kind, nnz = indices.dtype, indices.size
    team = crew(threads, work=nnz + labels.size)
    values = NO_DATA if data is None else data
    most = nnz // 2 if symmetric else nnz  # every edge is stored twice
    out = Listed(
        np.empty(most, kind),
        np.empty(most, kind),
        np.empty(0 if data is None else most, values.dtype),
        np.zeros(team.size + 1, np.int64),
    )
    team.run(
        _list_entries, rows_of(indptr, indices, values), labels, symmetric, out,
        errors={NOT_SYMMETRIC: lambda found: not_symmetric(caller)},
    )  # fmt: skip
    m = int(out.sums[-1])
    listed = (out.rows[:m], out.columns[:m], None if data is None else out.values[:m])
    return assemble(count, count, *listed, symmetric=symmetric, threads=threads)


# Pairs of mates are numbered, then listed.


@kernel
def _number_pairs(
    team: Any, mate: Array, members: Array, root: Array, sums: Array, label: Array, weights: Array
) -> None:
    """Number the pairs: the label of every vertex, and weights[:sums[size]] of the groups."""
    lo, hi = share(team, mate.size)
    for v in range(lo, hi):
        root[v] = mate[v] if 0 <= mate[v] < v else v
    if barrier(team):
        return
    if number_roots(team, root, label, sums):
        return
    for v in range(lo, hi):
        if root[v] == v:
            weights[label[v]] = members[v] + (members[mate[v]] if mate[v] >= 0 else 0)


def contract_pairs(
    indptr: Array, indices: Array, data: Array, mate: Array, members: Array, caller: str,
    threads: int | None, *, ordered: bool = True,
) -> Any:  # fmt: skip
    """Listed; tallied where rows may be left unsorted (bench/partitioning/kway.py)."""
    n = mate.size
    team = crew(threads, work=indices.size + n)
    sums = np.zeros(team.size + 1, np.int64)
    root, label = np.empty_like(mate), np.empty(n, indices.dtype)
    weights = np.empty(n, members.dtype)
    team.run(_number_pairs, mate, members, root, sums, label, weights)
    count = int(sums[-1])
    made: Any
    if ordered:
        made = list_and_sort(
            indptr, indices, data, label, count, symmetric=True, threads=threads, caller=caller
        )
    else:
        made = quotient(
            indptr, indices, data, None, label, count, True, threads, ordered=False,
            kind=sums_type(data),
        )[:3]  # fmt: skip
    return made, label, weights[:count].copy()


# Tallied.  The vertices are sorted by label, so that a row of the result is a run of rows of the
# graph, which one member adds up in dense totals of its own: one word for each label.  The label of
# the row itself is among them, so the diagonal costs nothing more.  A member writes the rows of its
# chunks one after the other: the result has far fewer entries than the graph as a rule, and memory
# that is not written costs nothing.  Then chunks are put in order and rows are sorted: those of a
# symmetric matrix of integers by a transpose, which visits rows in order and so writes columns in
# order; others one by one.

BLOCK = 256  # entries of a row whose labels are read before their weights are added
CHUNK = 16  # rows of the result that a member takes at a time: they differ much in length
SLAB = 1 << 18  # entries of memory that a member takes at a time, for the rows of many chunks
PART = 8  # chunks that may need more than 1 / PART of a slab take what they need
FAR, NEAR = np.uint64(12), np.uint64(6)  # vertices ahead: a row pointer is prefetched; and a row


class Table(NamedTuple):
    """What each member of a team needs: (members, labels) twice and (members, BLOCK)."""

    total: Array
    seen: Array  # 1: the label is listed in the row
    label: Array  # the labels of the entries of a block


class Memory(NamedTuple):
    """Where the rows of chunks are written, in any order of chunks."""

    at: Array  # where those of each chunk begin
    taken: Array  # entries that members have taken so far: one word
    slab: int  # entries that are taken at a time


@kernel
def _group(
    team: Any, labels: Array, counts: Array, sums: Array, starts: Array, members: Array
) -> None:
    """members[starts[c] : starts[c + 1]] = the vertices with label c, ascending."""
    mine = counts[team.me]
    mine[:] = 0
    lo, hi = share(team, labels.size)
    for v in range(np.uint64(lo), np.uint64(hi)):
        if interrupted(team, np.int64(v)):
            return
        mine[labels[v]] += 1
    if barrier(team) or first_places(team, counts, starts, sums):
        return
    for v in range(np.uint64(lo), np.uint64(hi)):
        if interrupted(team, np.int64(v)):
            return
        c = labels[v]
        members[mine[c]] = v
        mine[c] += 1


@device
def _entries(indptr: Array, members: Array, first: Any, last: Any) -> Any:
    """Entries in the rows of members first..last-1."""
    total = np.int64(0)
    for i in range(np.uint64(first), np.uint64(last)):
        v = np.uint64(members[i])
        total += np.int64(indptr[v + np.uint64(1)]) - np.int64(indptr[v])
    return total


@expanded
def _fetch(rows: Rows, members: Array, i: Any) -> None:
    """Prefetch the rows of vertices further on in `members`: they lie anywhere."""
    one, last = np.uint64(1), np.uint64(members.size - 1)
    prefetch(rows.indptr, np.uint64(members[min(i + FAR, last)]))
    v = np.uint64(members[min(i + NEAR, last)])
    begin = np.uint64(rows.indptr[v])
    prefetch(rows.indices, begin)
    prefetch(rows.indices, np.uint64(rows.indptr[v + one]))
    if rows.data.size > 0:
        prefetch(rows.data, begin)


@expanded
def _add_row(
    rows: Rows, labels: Array, v: Any, table: Table, me: int, listed: Array, place: Any
) -> Any:
    """Add row v to the totals; new labels are listed from `place` on.  Returns where that ends.

    In blocks, labels first, so that no read waits for a write just before it; without branches,
    since whether a label is new cannot be predicted.
    """
    total, seen, label = table.total[me], table.seen[me], table.label[me]
    begin = np.uint64(rows.indptr[np.uint64(v)])
    end = np.uint64(rows.indptr[np.uint64(v) + np.uint64(1)])
    while begin < end:
        block = rows.indices[begin : min(end, begin + np.uint64(BLOCK))]
        for k in range(block.size):
            label[k] = labels[block[k]]
        if rows.data.size > 0:
            weight = rows.data[begin : min(end, begin + np.uint64(BLOCK))]
            for k in range(block.size):
                c = label[k]
                listed[place] = c
                place += np.uint64(seen[c] ^ np.uint8(1))
                seen[c] = 1
                total[c] += weight[k]
        else:
            for k in range(block.size):
                c = label[k]
                listed[place] = c
                place += np.uint64(seen[c] ^ np.uint8(1))
                seen[c] = 1
                total[c] += total.dtype.type(1)
        begin += np.uint64(BLOCK)
    return place


@kernel
def _add_up(
    team: Any, rows: Rows, inner: Array, labels: Array, starts: Array, members: Array,
    memory: Memory, table: Table, out: Rows, diagonal: Array,
) -> None:  # fmt: skip
    """Write the rows of chunks, wherever memory is free; out.indptr[c + 1] = length of row c.

    No member writes into another's memory: a row never lists more labels than it has entries.
    """
    count = diagonal.size
    total, seen = table.total[team.me], table.seen[team.me]
    clear(table.total, team.me)
    clear(table.seen, team.me)
    free = end = np.int64(0)  # of this member's slab
    chunk = next_chunk(team, count, CHUNK)
    while chunk >= 0:
        last = min(chunk + CHUNK, count)
        most = _entries(rows.indptr, members, starts[chunk], starts[last])
        is_large = most > memory.slab // PART
        if is_large:
            at = atomic_add(memory.taken, 0, most)
        else:
            if end - free < most:
                free = atomic_add(memory.taken, 0, memory.slab)
                end = free + memory.slab
            at = free
        memory.at[chunk // CHUNK] = at
        place = np.uint64(at)
        for c in range(np.uint64(chunk), np.uint64(last)):
            begin = place
            within = diagonal.dtype.type(0)
            seen[c] = 1  # not listed
            for i in range(np.uint64(starts[c]), np.uint64(starts[c + np.uint64(1)])):
                if interrupted(team, np.int64(i)):
                    return
                _fetch(rows, members, i)
                place = _add_row(rows, labels, members[i], table, team.me, out.indices, place)
                if inner.size > 0:
                    within += inner[members[i]]
            diagonal[c] = within + total[c]
            total[c] = 0
            seen[c] = 0
            for i in range(begin, place):
                u = out.indices[i]
                out.data[i] = total[u]
                total[u] = 0
                seen[u] = 0
            out.indptr[c + np.uint64(1)] = place - begin
        if not is_large:
            free = np.int64(place)
        chunk = next_chunk(team, count, CHUNK)


@kernel
def _put_in_order(
    team: Any, at: Array, loose: Rows, packed: Rows, longest: Array, filled: Array
) -> None:
    """Copy the rows of chunks, in order; and how long a member's rows are, and how many have any.

    Rows differ much in length, so members have equal numbers of entries, not of chunks.
    """
    count = packed.indptr.size - 1
    first, last = share_rows(team, packed.indptr)
    lo, hi = (first + CHUNK - 1) // CHUNK, (last + CHUNK - 1) // CHUNK
    most = some = np.int64(0)
    for c in range(np.uint64(first), np.uint64(last)):
        length = np.int64(packed.indptr[c + np.uint64(1)]) - np.int64(packed.indptr[c])
        most = max(most, length)
        some += length > 0
    longest[team.me], filled[team.me] = most, some
    for chunk in range(lo, hi):
        if interrupted(team, chunk):
            return
        c = np.uint64(chunk * CHUNK)
        begin, source = np.uint64(packed.indptr[c]), np.uint64(at[chunk])
        end = np.uint64(packed.indptr[np.uint64(min((chunk + 1) * CHUNK, count))])
        indices, data = packed.indices[begin:end], packed.data[begin:end]
        old_indices, old_data = loose.indices[source:], loose.data[source:]
        for i in range(indices.size):
            indices[i] = old_indices[i]
        for i in range(data.size):
            data[i] = old_data[i]


@device
def _sort_row(columns: Array, values: Array, lo: Any, hi: Any) -> None:
    """Shell's sort of one row by column: rows are short as a rule, and hardly out of order."""
    size, gap = hi - lo, np.uint64(1)
    while gap * np.uint64(3) < size:
        gap = gap * np.uint64(3) + np.uint64(1)
    while gap > np.uint64(0):
        for i in range(lo + gap, hi):
            c, w, k = columns[i], values[i], i
            while k >= lo + gap and columns[k - gap] > c:
                columns[k], values[k] = columns[k - gap], values[k - gap]
                k -= gap
            columns[k], values[k] = c, w
        gap //= np.uint64(3)


@kernel
def _sort_rows(team: Any, rows: Rows, mirrored: bool, more: Array) -> None:
    """Sort each row; `mirrored` stores the sums above the diagonal below it, too.

    more[member] = how many more entries its rows have above the diagonal than below it.

    Sums of the same numbers differ in the last bits, as members of a group are added in the order
    of the rows.  A member writes its own rows only, above the diagonal before the barrier and below
    it afterwards.
    """
    one = np.uint64(1)
    lo, hi = share_rows(team, rows.indptr)
    for i in range(np.uint64(lo), np.uint64(hi)):
        if interrupted(team, np.int64(i)):
            return
        begin, end = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + one])
        _sort_row(rows.indices, rows.data, begin, end)
    if not mirrored or barrier(team):
        return
    for i in range(np.uint64(lo), np.uint64(hi)):
        if interrupted(team, np.int64(i)):
            return
        for k in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + one])):
            j = np.uint64(rows.indices[k])
            if j > i:
                more[team.me] += np.int64(rows.indptr[i + one]) - np.int64(k)
                break
            more[team.me] -= 1
            at, end = np.uint64(rows.indptr[j]), np.uint64(rows.indptr[j + one])
            last = end
            while at < end:
                middle = (at + end) // np.uint64(2)
                if np.uint64(rows.indices[middle]) < i:
                    at = middle + one
                else:
                    end = middle
            if at == last or np.uint64(rows.indices[at]) != i:
                fail(team, NOT_SYMMETRIC, np.int64(i))
                return
            rows.data[k] = rows.data[at]


@kernel
def _sums(
    team: Any, values: Array, labels: Array, local_sums: Array, sums: Array, none: Array
) -> None:
    lo, hi = share(team, labels.size)
    for v in range(np.uint64(lo), np.uint64(hi)):
        if interrupted(team, np.int64(v)):
            return
        add_by_label(team, local_sums, sums, none, labels[v], values[v], 0)
    empty_local_sums(team, local_sums, sums, none)


def sums_by_label(values: Array, labels: Array, count: int, threads: int | None) -> Array:
    sums = np.zeros(count, np.int64)
    team = crew(threads, work=labels.size)
    named = labels.view(unsigned(labels.dtype))
    team.run(_sums, values, named, local_sums_of(team.size), sums, NO_COUNTS)
    return sums


@kernel
def _gather(team: Any, values: Array, places: Array, found: Array) -> None:
    lo, hi = share(team, places.size)
    for v in range(np.uint64(lo), np.uint64(hi)):
        if interrupted(team, np.int64(v)):
            return
        found[v] = values[np.uint64(places[v])]


def gathered(values: Array, places: Array, threads: int | None = None) -> Array:
    """values[places]; NumPy takes several times as long, since it widens the indices first."""
    found = np.empty(places.size, values.dtype)
    crew(threads, work=places.size).run(_gather, values, places, found)
    return found


def quotient(
    indptr: Array, indices: Array, data: Array | None, inner: Array | None, labels: Array,
    count: int, symmetric: bool, threads: int | None = None, *, ordered: bool, kind: Any,
) -> tuple[Array, Array, Array, Array, int, int]:  # fmt: skip
    """The matrix of the labels; its diagonal apart, to which `inner` adds; sums are of `kind`.

    And the length of the longest row, and the number of rows with entries.
    """
    n, entries = labels.size, indices.size
    team = crew(threads, work=entries + n)
    rows = rows_of(indptr, indices, data, kind)
    named = labels.view(rows.indices.dtype)
    starts, members = np.empty(count + 1, indptr.dtype), np.empty(n, named.dtype)
    counts = np.empty((team.size, count), indptr.dtype)
    team.run(_group, named, counts, np.zeros(team.size, np.int64), starts, members)
    slab = min(SLAB, entries)
    memory = Memory(np.empty(count // CHUNK + 1, np.int64), np.zeros(1, np.int64), slab)
    table = Table(
        np.empty((team.size, count), kind),
        np.empty((team.size, count), np.uint8),
        np.empty((team.size, BLOCK), rows.indices.dtype),
    )
    lengths = np.zeros(count + 1, indptr.dtype)
    # A slab is left when less than a part of it is free, and each member has one that is not full.
    most = entries + entries // (PART - 1) + 1 + team.size * slab
    loose = Rows(lengths, np.empty(most, rows.indices.dtype), np.empty(most, kind))
    diagonal = np.empty(count, kind)
    beside = np.empty(0, kind) if inner is None else inner.astype(kind, copy=False)
    team.run(_add_up, rows, beside, named, starts, members, memory, table, loose, diagonal)
    lengths = exclusive_scan(lengths[1:], threads=threads)
    m = int(lengths[-1])
    packed = Rows(lengths, np.empty(m, rows.indices.dtype), np.empty(m, kind))
    longest, filled = np.zeros((2, team.size), np.int64)
    team.run(_put_in_order, memory.at, loose, packed, longest, filled)
    del loose, table
    columns = packed.indices.view(indices.dtype)
    facts = int(longest.max()), int(filled.sum())
    if not ordered:
        return lengths, columns, packed.data, diagonal, *facts
    if symmetric and kind.kind == "i":
        return (*transpose(lengths, columns, packed.data, count, threads=threads), diagonal, *facts)
    more = np.zeros(team.size, np.int64)
    team.run(
        _sort_rows, packed, symmetric, more,
        errors={NOT_SYMMETRIC: lambda found: not_symmetric("contract")},
    )  # fmt: skip
    if more.sum() != 0:  # each entry below has one above
        raise not_symmetric("contract")
    return lengths, columns, packed.data, diagonal, *facts


def contract_measured(
    indptr: Array, indices: Array, data: Array | None, inner: Array | None, labels: Array,
    count: int, threads: int | None, most: int | None,
) -> tuple[Array, Array, Array, Array, int, int]:  # fmt: skip
    """See `trusted_contract_measured`: the parts, the longest row, the rows with entries."""
    kind = sums_type(data) if most is None else np.dtype(word(most))
    return quotient(
        indptr, indices, data, inner, labels, count, True, threads, ordered=False, kind=kind
    )


def contract(
    indptr: Array, indices: Array, data: Array | None, inner: Array | None, labels: Array,
    count: int, *, loops: bool, symmetric: bool, threads: int | None = None, ordered: bool = True,
) -> Any:  # fmt: skip
    if loops or data is None:
        found = quotient(
            indptr, indices, data, inner, labels, count, symmetric, threads,
            ordered=ordered, kind=sums_type(data),
        )[:4]  # fmt: skip
        return found if loops else (*found[:3], None)
    values = data.astype(sums_type(data), copy=False)
    made = list_and_sort(
        indptr, indices, values, labels, count, symmetric=symmetric, threads=threads
    )
    return (*made, None)


def contract_pattern(
    indptr: Array, indices: Array, labels: Array, count: int, threads: int | None
) -> Any:
    return list_and_sort(indptr, indices, None, labels, count, symmetric=False, threads=threads)[:2]
