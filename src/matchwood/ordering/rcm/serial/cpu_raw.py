"""A small matrix of SciPy as it was given: one kernel checks the arrays and orders it.

A call for each step takes longer than the steps, where a matrix has a thousand rows.  A pattern
that is not symmetric is joined with its mirror.  What is unusual in any other way is left to the
gate, which says what is wrong, or brings it into order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import crew, device, kernel
from matchwood.gate.inputs import plain_rows
from matchwood.gate.views import View
from matchwood.ordering.rcm import reference
from matchwood.ordering.rcm.cpu_records import BROKEN, Sorter
from matchwood.ordering.rcm.cpu_sort import BINS, ONE, ZERO
from matchwood.ordering.rcm.serial.cpu_ranked import (
    LONG_ROWS,
    READY_ROWS,
    Way,
    order_ranked,
    words,
)
from matchwood.primitives.inspect.cpu import WIDTH, loops_if_symmetric
from matchwood.primitives.patterns import not_symmetric

Array = np.ndarray[Any, Any]

ENTRIES = 1 << 17
"""Vertices and entries of a matrix that is taken here: two milliseconds at most, so that Ctrl-C
need not be heard."""


@device
def _join(indptr: Array, indices: Array, space: Array, starts: Array, joined: Array) -> None:
    """The pattern and its mirror in one, without loops; `space` has room for both indptr again."""
    n, m = starts.size - 1, indices.size
    begin, place, mirror = (
        space[: n + 1],
        space[n + 1 : 2 * n + 2],
        space[2 * n + 2 : 2 * n + 2 + m],
    )
    for i in range(n + 1):
        begin[i] = 0
    for k in range(m):
        begin[np.uint64(indices[k]) + ONE] += np.uint32(1)
    for i in range(n):
        begin[i + 1] += begin[i]
        place[i] = begin[i]
    for i in range(n):
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j = np.uint64(indices[k])
            mirror[np.uint64(place[j])] = i
            place[j] += np.uint32(1)
    size = ZERO
    for i in range(n):
        starts[i] = size
        a, a_end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        b, b_end = np.uint64(begin[i]), np.uint64(begin[i + 1])
        while a < a_end or b < b_end:
            if b == b_end or (a < a_end and indices[a] <= mirror[b]):
                v = indices[a]
                if b < b_end and mirror[b] == v:
                    b += ONE
                a += ONE
            else:
                v = mirror[b]
                b += ONE
            if v != np.uint32(i):
                joined[size] = v
                size += ONE
    starts[n] = size


@kernel
def order_raw(
    team: Any,
    indptr: Array,
    indices: Array,
    most: int,
    reverse: bool,
    space: Array,
    keys: Array,
    mark: Array,
    perm: Array,
    table: Array,
) -> None:
    """The order of a small graph, or table[1, 0] stays 0: the gate has to look at the arrays.

    `most`: entries of a small graph.
    """
    n, m = perm.size, indices.size
    starts, joined, rest = space[: n + 1], space[n + 1 : n + 1 + 2 * m], space[n + 1 + 2 * m :]
    loops = loops_if_symmetric(team, indptr, indices, rest[: n + 1], table)
    if loops < -1:
        return
    if loops < 0:
        _join(indptr, indices, rest, starts, joined)
        m = int(starts[n])
        if m > most:
            return
        loops = 0
    else:
        for i in range(n + 1):
            starts[i] = indptr[i]
        for k in range(m):
            joined[k] = indices[k]
    table[1, 0] = 1
    longest = keys.size - BINS >> 1
    some = 0 < loops < n
    ready = some or m <= READY_ROWS * n
    way = Way(some, ready, m > LONG_ROWS * n, True, reverse)
    shift = 1
    while 1 << shift < n:
        shift += 1
    sorter = Sorter(
        np.uint64(shift), keys[:longest], keys[longest : 2 * longest], keys[2 * longest :]
    )
    rows, given = joined[:m], rest[:m] if ready else joined[:m]
    order_ranked(team, starts, rows, given, way, sorter, rest[m:], mark, perm, table[2])


def order(A: Any, reverse: bool, caller: str) -> Array | None:
    """The order of a small matrix, or None where it has to pass the gate."""
    rows = plain_rows(A, ENTRIES)
    if rows is None or not reference.is_small(View(*rows)):
        return None
    indptr, indices = rows
    n, m = indptr.size - 1, indices.size
    perm, table = np.empty(n, np.int32), np.zeros((3, WIDTH), np.int64)
    room = 5 * m + 3 * n + 3 + words(n)
    crew(1, work=0).run(
        order_raw, indptr, indices.view(np.uint32), 2 * reference.SMALL, reverse,
        np.empty(room, np.uint32),
        np.empty(2 * min(n, 2 * m) + BINS, np.uint64), np.empty(n, np.uint8), perm.view(np.uint32),
        table, errors={BROKEN: lambda detail: not_symmetric(caller)},
    )  # fmt: skip
    return perm if table[1, 0] else None
