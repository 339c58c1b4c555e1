"""Memory of a CUDA device through which the rows of a partition pass, or in which they stay."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from matchwood.matching.dominant.devices.rounds import Problem


def new_buffer(problem: Problem, p: int, ledger: Any) -> Any:
    """Room for a batch of partition p."""
    view, kind, take = problem.view, problem.kind, ledger.take
    room = problem.plan.buffer[p]
    return SimpleNamespace(
        ids=take(room.rows, kind),
        places=take(2 * room.rows + 1, view.indptr.dtype),
        columns=take(room.entries, kind),
        weights=take(room.entries, view.data.dtype),
        free=None,  # comes when the kernel that read it has ended
        filled=False,  # with all rows of the partition, by a call that came to its end
        nbytes=room.entries * (kind.itemsize + view.data.dtype.itemsize),
    )


def kept_rows(problem: Problem, p: int, ledger: Any, device: int) -> Any:
    """The buffer in which all rows of the partition stay; a prepared Graph keeps it."""
    key = (device, p, len(problem.plan.partitions))
    found = problem.rows.get(key)
    if found is None:
        return problem.rows.setdefault(key, new_buffer(problem, p, ledger))
    for array in (found.ids, found.places, found.columns, found.weights):
        ledger.hold(array)
    return found
