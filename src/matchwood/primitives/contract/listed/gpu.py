"""Entries between groups, listed and sorted on the GPU; see matchwood.primitives.assemble."""

from __future__ import annotations

from typing import Any

from matchwood.primitives.assemble.gpu import assemble
from matchwood.primitives.compact.gpu import compact
from matchwood.primitives.transpose.gpu import expand_rows


def list_and_sort(
    indptr: Any,
    indices: Any,
    data: Any,
    labels: Any,
    count: int,
    *,
    loops: bool,
    symmetric: bool,
) -> Any:
    """Each place once, sorted; of a symmetric matrix the upper half first, then its mirror too.

    `data` may be None.  With `loops` the diagonal is part of the result.
    """
    i, j = labels[expand_rows(indptr, indices.size)], labels[indices]
    if symmetric:
        listed = i <= j if loops else i < j
    else:
        listed = None if loops else i != j
    if listed is not None:
        kept = compact(listed)
        i, j, data = i[kept], j[kept], None if data is None else data[kept]
    if symmetric and not loops:
        return assemble(count, count, i, j, data, symmetric=True)
    made = assemble(count, count, i, j, data)
    if not symmetric:
        return made
    rows = expand_rows(made[0], made[1].size)
    # a loop is its own mirror: the first of the two stays
    return assemble(count, count, rows, made[1], made[2], symmetric=True, reduce="first")
