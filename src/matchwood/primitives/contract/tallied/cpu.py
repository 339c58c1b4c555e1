"""A graph added up by labels, on a team.

The vertices are sorted by label, so that a row of the result is a run of rows of the graph, which
one member adds up with the dense places of primitives/tally.  It writes them where the entries of
those rows would stand: a row never grows.  Then the gaps are closed and rows are sorted.  A
transpose sorts: it visits rows in order, so columns come out in order.  A symmetric matrix of
integers needs one of them, any other two.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.primitives.contract import sums_type
from matchwood.primitives.cpu_hints import prefetch
from matchwood.primitives.patterns import not_symmetric
from matchwood.primitives.tally.cpu import (
    Rows,
    Scratch,
    clear_list,
    gather,
    rows_of,
    scratch_of,
    search,
)
from matchwood.primitives.transpose.cpu import transpose
from matchwood.teams import crew, device, interrupted, kernel, next_chunk, share_rows

Array = np.ndarray[Any, Any]

SHORT_RUN = 8  # entries of all members of a label; then labels are looked for one by one
CHUNK = 16  # rows of the result that a member takes at a time: they differ much in length
# How many members ahead a pointer, a row and its labels are fetched, and how many labels
FAR, NEAR, NEXT, LABELS = np.uint64(12), np.uint64(6), np.uint64(3), np.uint64(8)


@kernel
def _capacities(team: Any, indptr: Array, starts: Array, members: Array, room: Array) -> None:
    """room[c + 1] = entries in the rows of all members of c."""
    lo, hi = share_rows(team, starts)
    for c in range(lo, hi):
        if interrupted(team, c):
            return
        total = np.int64(0)
        for i in range(np.uint64(starts[c]), np.uint64(starts[c + 1])):
            v = members[i]
            total += np.int64(indptr[v + members.dtype.type(1)]) - np.int64(indptr[v])
        room[c + 1] = total


@device
def _fetch(rows: Rows, labels: Array, members: Array, i: Any) -> None:
    """Fetch what members that come later need: the labels around one, the rows of others.

    They lie anywhere, and whether a label is new nobody can foresee: without this the processor
    waits for each of them.
    """
    one, last = np.uint64(1), np.uint64(members.size - 1)
    prefetch(rows.indptr, np.uint64(members[min(i + FAR, last)]))
    prefetch(rows.indices, np.uint64(rows.indptr[np.uint64(members[min(i + NEAR, last)])]))
    v = np.uint64(members[min(i + NEXT, last)])
    begin, end = np.uint64(rows.indptr[v]), np.uint64(rows.indptr[v + one])
    for k in range(begin, min(end, begin + LABELS)):
        prefetch(labels, np.uint64(rows.indices[k]))


@kernel
def _add_up(
    team: Any,
    rows: Rows,
    inner: Array,
    labels: Array,
    starts: Array,
    members: Array,
    room: Array,
    scratch: Scratch,
    out: Rows,
    diagonal: Array,
) -> None:
    """Row c of the result from room[c] on; out.indptr[c + 1] = its length."""
    count = diagonal.size
    rank = team.rank
    chunk = next_chunk(team, count, CHUNK)
    while chunk >= 0:
        for c in range(chunk, min(chunk + CHUNK, count)):
            found = 0
            short = room[c + 1] - room[c] <= SHORT_RUN
            within = diagonal.dtype.type(0)
            for i in range(np.uint64(starts[c]), np.uint64(starts[c + 1])):
                if interrupted(team, np.int64(i)):
                    return
                _fetch(rows, labels, members, i)
                if short:
                    found = search(scratch, rank, rows, labels, members[i], found)
                else:
                    found = gather(scratch, rank, rows, labels, members[i], found)
                if inner.size > 0:
                    within += inner[members[i]]
            place = room[c]
            for i in range(found):
                if scratch.label[rank, i] == c:
                    within += scratch.weight[rank, i]
                else:
                    out.indices[place] = scratch.label[rank, i]
                    out.data[place] = scratch.weight[rank, i]
                    place += 1
            out.indptr[c + 1] = place - room[c]
            diagonal[c] = within
            if not short:
                clear_list(scratch, rank, found)
        chunk = next_chunk(team, count, CHUNK)


@kernel
def _close_gaps(team: Any, room: Array, loose: Rows, packed: Rows) -> None:
    lo, hi = share_rows(team, packed.indptr)
    for c in range(lo, hi):
        if interrupted(team, c):
            return
        begin = np.uint64(packed.indptr[c])
        length = np.uint64(packed.indptr[c + 1]) - begin
        source = np.uint64(room[c])
        for i in range(length):
            packed.indices[begin + i] = loose.indices[source + i]
            packed.data[begin + i] = loose.data[source + i]


def quotient(
    indptr: Array,
    indices: Array,
    data: Array | None,
    inner: Array | None,
    labels: Array,
    count: int,
    symmetric: bool,
    threads: int | None = None,
    *,
    ordered: bool = True,
) -> tuple[Array, Array, Array, Array]:
    """The matrix of the labels without its diagonal, and the diagonal, to which `inner` adds."""
    n, kind = labels.size, sums_type(data)
    team = crew(threads, work=indices.size + n)
    rows = rows_of(indptr, indices, data, kind)
    named = labels.view(rows.indices.dtype)
    starts, members, _ = transpose(
        np.arange(n + 1, dtype=indptr.dtype), labels, None, count, threads=threads
    )
    members = members.view(rows.indices.dtype)
    room = np.zeros(count + 1, np.int64)
    team.run(_capacities, indptr, starts, members, room)
    longest = min(int(room.max()), count) if count else 0
    np.cumsum(room, out=room)
    scratch = scratch_of(team.size, count, longest, rows, kind)
    lengths = np.zeros(count + 1, indptr.dtype)
    loose = Rows(lengths, np.empty(indices.size, rows.indices.dtype), np.empty(indices.size, kind))
    diagonal = np.empty(count, kind)
    beside = np.empty(0, kind) if inner is None else inner
    team.run(
        _add_up, rows, beside, named, starts, members, room, scratch, loose, diagonal
    )  # fmt: skip
    np.cumsum(lengths, out=lengths)
    m = int(lengths[-1])
    packed = Rows(lengths, np.empty(m, rows.indices.dtype), np.empty(m, kind))
    team.run(_close_gaps, room, loose, packed)
    del loose, scratch
    columns = packed.indices.view(indices.dtype)
    if not ordered:
        return lengths, columns, packed.data, diagonal
    matrix = transpose(lengths, columns, packed.data, count, threads=threads)
    if symmetric and kind.kind == "i":
        return (*matrix, diagonal)
    again = transpose(*matrix, count, threads=threads)
    return (*(_upper_sums(matrix, again) if symmetric else again), diagonal)


def _upper_sums(flipped: Any, matrix: Any) -> Any:
    """The matrix with the sums above its diagonal on both sides: they differ in the last bits."""
    (indptr, indices, below), above = flipped, matrix[2]
    if not np.array_equal(indptr, matrix[0]) or not np.array_equal(indices, matrix[1]):
        raise not_symmetric("contract")
    rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    return indptr, indices, np.where(indices > rows, above, below)
