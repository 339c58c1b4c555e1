"""The weights of the labels in a row, with dense arrays for each member of a team.

    labels_around(sums, rank, rows, labels, v)     # sums.label[rank]: the label of each entry
    entries = add_up(sums, rank, rows, v)          # sums.total[rank, c]: the weight of label c

The caller goes through the entries, reads each total, and sets it to 0.  No races: every member has
its own rows of both arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import atomic_add, device, expanded

Array = np.ndarray[Any, Any]


class Rows(NamedTuple):
    """CSR arrays as kernels read them: columns are unsigned; `data` is empty where all weigh 1."""

    indptr: Array
    indices: Array
    data: Array


def unsigned(kind: Any) -> Any:
    """The unsigned type of the same size."""
    return np.uint32 if np.dtype(kind).itemsize == 4 else np.uint64


def word(most: int) -> Any:
    """The smallest type of whole numbers up to `most`: more of them fit into a cache."""
    return np.int32 if most < 1 << 31 else np.int64


def rows_of(indptr: Array, indices: Array, data: Array | None, kind: Any = np.int64) -> Rows:
    """The arrays of a graph as `Rows`."""
    weights = np.empty(0, kind) if data is None else data
    return Rows(indptr, indices.view(unsigned(indices.dtype)), weights)


class Sums(NamedTuple):
    """What each member of a team needs: (members, labels) and (members, longest row).

    A member clears its totals first, by `clear`: all of them together take a tenth of the time of
    one thread, and they may be larger than all the rest.
    """

    total: Array
    label: Array


def sums_of(members: int, labels: int, longest: int, rows: Rows, most: int) -> Sums:
    """Room for labels 0..labels-1 and rows of `longest` entries, which add up to `most` at most."""
    label = np.empty((members, longest), rows.indices.dtype)
    return Sums(np.empty((members, labels), word(most)), label)


@device
def clear(sums: Array, me: int) -> None:
    """All words of this member become 0."""
    mine = sums[me]
    for c in range(mine.size):
        mine[c] = 0


@expanded
def labels_around(sums: Sums, me: int, rows: Rows, labels: Array, v: Any) -> bool:
    """sums.label[rank] = the labels of the entries of row v.  False: they are all the one of v."""
    label = sums.label[me]
    begin = np.uint64(rows.indptr[np.uint64(v)])
    row = rows.indices[begin : np.uint64(rows.indptr[np.uint64(v) + np.uint64(1)])]
    own = labels[np.uint64(v)]
    other = own ^ own
    for k in range(row.size):
        c = labels[row[k]]
        label[k] = c
        other |= c ^ own
    return other != 0


@expanded
def add_up(sums: Sums, me: int, rows: Rows, v: Any) -> int:
    """Add the weights of row v to the totals of its `labels_around`; returns its entries.

    The caller sets each total that it reads to 0: a label that stands in the row twice has 0 then.
    """
    total, label = sums.total[me], sums.label[me]
    begin = np.uint64(rows.indptr[np.uint64(v)])
    length = np.uint64(rows.indptr[np.uint64(v) + np.uint64(1)]) - begin
    if rows.data.size > 0:
        for k in range(length):
            total[label[k]] += rows.data[begin + k]
    else:
        for k in range(length):
            total[label[k]] += 1
    return np.int64(length)


# Sums by label that a team makes together, where many vertices may have the same label.
#
# Members that add to the same word wait for each other: its cache line goes from core to core.  So
# each member has local sums of the labels that it met last, one for each remainder of a label.  A
# local sum is added to the shared words when another label needs its place, and by
# `empty_local_sums`, which a barrier must follow.  Integers: any order gives the same sums.
#
# Races: local sums are their member's own.  Shared words change by atomic additions only; a team of
# one needs neither.

LOCAL_LABELS = 256  # labels of a member: with two sums each they fill 6 KB of the nearest cache
LINE = 16  # words between those of two members, which share no cache line
NO_COUNTS = np.empty(0, np.int32)  # where only one sum is made


def local_sums_of(members: int) -> Array:
    """A row for each member: labels, their sums, their counts."""
    return np.zeros((members, 3 * LOCAL_LABELS + LINE), np.int64)


@device
def _put(mine: Array, slot: Any, sums: Array, counts: Array) -> None:
    """Add what a place holds to the shared words."""
    at, total, count = mine[slot], mine[slot + LOCAL_LABELS], mine[slot + 2 * LOCAL_LABELS]
    if total != 0:
        atomic_add(sums, at, total)
        mine[slot + LOCAL_LABELS] = 0
    if count != 0:
        atomic_add(counts, at, counts.dtype.type(count))
        mine[slot + 2 * LOCAL_LABELS] = 0


@expanded
def add_by_label(
    team: Any, local_sums: Array, sums: Array, counts: Array, label: Any, value: Any, count: Any
) -> None:
    """sums[label] += value, counts[label] += count; a count of 0 where there are no counts."""
    if team.size == 1:
        sums[label] += value
        if count != 0:
            counts[label] += counts.dtype.type(count)
        return
    mine = local_sums[team.me]
    slot = np.uint64(label) & np.uint64(LOCAL_LABELS - 1)
    if mine[slot] != np.int64(label):
        _put(mine, slot, sums, counts)
        mine[slot] = label
    mine[slot + np.uint64(LOCAL_LABELS)] += value
    mine[slot + np.uint64(2 * LOCAL_LABELS)] += count


@device
def empty_local_sums(team: Any, local_sums: Array, sums: Array, counts: Array) -> None:
    """Add all local sums of this member to the shared words."""
    if team.size == 1:
        return
    mine = local_sums[team.me]
    for slot in range(LOCAL_LABELS):
        _put(mine, slot, sums, counts)
