"""Labels whose vertices a rank owns itself: it need not send them anywhere.  See ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import crew, interrupted, kernel

Array = np.ndarray[Any, Any]


@kernel
def _tell_own(
    team: Any, labels: Array, names: Array, p: Any, rank: Any, smallest: Array, own: Array,
    others: Array, count: Array,
) -> None:  # fmt: skip
    """One member.  own[i]: the place of label i, any place where it is not an own vertex."""
    if team.rank > 0:
        return
    tail = np.int64(0)
    for i in range(labels.size):
        if interrupted(team, i):
            return
        x = np.uint64(labels[i])
        place = x // p
        own[i] = 0
        if x - place * p == rank:
            own[i] = place
            smallest[place] = min(smallest[place], names[i])
        else:
            others[tail] = i
            tail += 1
    count[0] = tail


def tell_own(labels: Array, names: Array, grid: Any, smallest: Array) -> tuple[Array, Array]:
    """Lower `smallest` at the places of labels that are own vertices, to the names that have them.

    Returns the places of the labels, and the elements whose labels are not own.
    """
    own, others = np.empty(labels.size, np.int64), np.empty(labels.size, np.int64)
    count = np.zeros(1, np.int64)
    p, rank = np.uint64(grid.p), np.uint64(grid.rank)
    crew(1, work=2 * labels.size).run(
        _tell_own, np.ascontiguousarray(labels), names, p, rank, smallest, own, others, count
    )
    return own, others[: int(count[0])]
