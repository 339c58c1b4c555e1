"""Weight inside communities and their volumes, on a team.

Each member adds up its own rows; volumes by local sums (primitives/tally), in any order: integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.communities.weights import Level
from matchwood.engines.cpu import crew, interrupted, kernel, share_rows
from matchwood.primitives.tally.cpu import (
    NO_COUNTS,
    Rows,
    add_by_label,
    empty_local_sums,
    local_sums_of,
    rows_of,
)

Array = np.ndarray[Any, Any]


@kernel
def _totals(
    team: Any, rows: Rows, strength: Array, labels: Array, pockets: Array, volumes: Array,
    none: Array, inside: Array,
) -> None:  # fmt: skip
    lo, hi = share_rows(team, rows.indptr)
    total = np.int64(0)
    for v in range(lo, hi):
        if interrupted(team, v):
            return
        own = labels[v]
        add_by_label(team, pockets, volumes, none, own, strength[v], 0)
        if rows.data.size > 0:
            for k in range(np.uint64(rows.indptr[v]), np.uint64(rows.indptr[v + 1])):
                total += rows.data[k] if labels[rows.indices[k]] == own else 0
        else:
            for k in range(np.uint64(rows.indptr[v]), np.uint64(rows.indptr[v + 1])):
                total += labels[rows.indices[k]] == own
    empty_local_sums(team, pockets, volumes, none)
    inside[team.me] = total


def totals(level: Level, labels: Array, count: int, threads: int | None = None) -> tuple[int, Any]:
    """See reference.totals."""
    team = crew(threads, work=level.indices.size + level.n)
    rows = rows_of(level.indptr, level.indices, level.data)
    volumes = np.zeros(count, np.int64)
    inside = np.zeros(team.size, np.int64)
    named = labels.view(rows.indices.dtype)
    pockets = local_sums_of(team.size)
    team.run(_totals, rows, level.strength, named, pockets, volumes, NO_COUNTS, inside)
    return int(inside.sum()), volumes
