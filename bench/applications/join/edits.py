"""Edit similarities of all pairs of elements, as verification makes them: for a rate."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.applications.join import Elements
from matchwood.applications.join.verification.cpu.rows import (
    Scratch,
    edit_rows,
    how,
    mine,
    reset_best,
    scratch,
)
from matchwood.engines.cpu import Team, crew, kernel, stopping

ROWS = 256  # made together; all columns of so many rows fit the scratch


@kernel
def _all_pairs(team: Team, elements: Elements, count: int, space: Scratch, total: Any) -> None:
    for c in range(count):
        space.sides.columns[c] = c
    for first in range(0, count, ROWS):
        if stopping(team):
            return
        rows = min(ROWS, count - first)
        for k in range(rows):
            space.sides.rows[k] = first + k
        reset_best(space.edges, rows, count)
        edit_rows(elements, rows, count, np.int64(1) << 62, space)
        for k in range(rows * count):
            total[0] += space.edges.weights[k]


def all_pairs(prepared: Any) -> Any:
    """A function that works out all similarities and returns their sum in units of 2^-40."""
    elements, (records, *_) = prepared.elements, prepared.records
    count = elements.text_starts.size - 1
    plan = how("bench", "edit", "exact", "weight", True)
    space = scratch(elements, records, records, plan, 1, edges=ROWS * count)
    whole = space._replace(
        sides=type(space.sides)(*(np.zeros((1, count), np.int32) for _ in range(2))),
        edges=space.edges._replace(
            starts=np.zeros((1, count + 1), np.int64),
            row_best=np.zeros((1, count), np.int64),
            row_choice=np.zeros((1, count), np.int32),
            column_best=np.zeros((1, count), np.int64),
            column_choice=np.zeros((1, count), np.int32),
        ),
    )
    total = np.zeros(1, np.int64)

    def call() -> int:
        total[0] = 0
        crew(1, work=1 << 20).run(_all_pairs, elements, count, mine(whole, 0), total)
        return int(total[0])

    return call
