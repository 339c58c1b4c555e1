"""A small matrix of SciPy as it was given: one kernel checks the arrays and orders it.

A call for each step takes longer than the steps, where a matrix has a thousand rows.  What is
unusual in any way is left to the gate, which says what is wrong, or brings it into order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.gate.sparse_inputs import plain_rows
from matchwood.gate.views import View
from matchwood.ordering.rcm import reference
from matchwood.ordering.rcm.cpu_records import BROKEN, Sorter
from matchwood.ordering.rcm.cpu_sort import BINS
from matchwood.ordering.rcm.serial.cpu_ranked import (
    LONG_ROWS,
    READY_ROWS,
    Way,
    order_ranked,
    words,
)
from matchwood.primitives.inspect.cpu import WIDTH, loops_if_symmetric
from matchwood.primitives.patterns import not_symmetric
from matchwood.teams import crew, kernel

Array = np.ndarray[Any, Any]

ENTRIES = 1 << 17
"""Vertices and entries of a matrix that is taken here: two milliseconds at most, so that Ctrl-C
need not be heard."""


@kernel
def order_raw(
    team: Any,
    indptr: Array,
    indices: Array,
    reverse: bool,
    space: Array,
    keys: Array,
    mark: Array,
    perm: Array,
    table: Array,
) -> None:
    """The order of a small graph, or table[1, 0] stays 0: the gate has to look at the arrays."""
    n, m = perm.size, indices.size
    longest = keys.size - BINS >> 1
    loops = loops_if_symmetric(team, indptr, indices, space[: n + 1], table)
    if loops < 0:
        return
    table[1, 0] = 1
    starts = indptr.view(indices.dtype)
    some = 0 < loops < n
    ready = some or m <= READY_ROWS * n
    way = Way(some, ready, m > LONG_ROWS * n, True, reverse)
    shift = 1
    while 1 << shift < n:
        shift += 1
    sorter = Sorter(
        np.uint64(shift), keys[:longest], keys[longest : 2 * longest], keys[2 * longest :]
    )
    counts = table[2]
    if ready:
        order_ranked(
            team, starts, indices, space[:m], way, sorter, space[m:], mark, perm, counts
        )  # fmt: skip
    else:
        order_ranked(team, starts, indices, indices, way, sorter, space[m:], mark, perm, counts)


def order(A: Any, reverse: bool, caller: str) -> Array | None:
    """The order of a small matrix, or None where it has to pass the gate."""
    rows = plain_rows(A, ENTRIES)
    if rows is None or not reference.is_small(View(*rows)):
        return None
    indptr, indices = rows
    n, m = indptr.size - 1, indices.size
    perm, table = np.empty(n, np.int32), np.zeros((3, WIDTH), np.int64)
    crew(1, work=0).run(
        order_raw, indptr, indices.view(np.uint32), reverse, np.empty(m + words(n), np.uint32),
        np.empty(2 * min(n, m) + BINS, np.uint64), np.empty(n, np.uint8), perm.view(np.uint32),
        table, errors={BROKEN: lambda detail: not_symmetric(caller)},
    )  # fmt: skip
    return perm if table[1, 0] else None
