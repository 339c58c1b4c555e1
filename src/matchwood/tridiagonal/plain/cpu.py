"""The tridiagonal solver on a team.  One part: cpu_parts.py; the ends of parts: cpu_elements.py.

A first pass over the rows computes an element for each part of 128 rows.  The elements are solved
for the ends of the parts.  A second pass computes the inner unknowns.  The parts do not depend on
the number of threads, so neither does any bit of the solution.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.teams import barrier, crew, device, interrupted, kernel, share
from matchwood.tridiagonal import trust
from matchwood.tridiagonal.cpu_elements import (
    LARGE,
    Ends,
    Rows,
    new_ends,
    report,
    row_without_pivot,
    solve_ends,
)
from matchwood.tridiagonal.mending.cpu_local import Blocks, RowCheck, mended, new_marks
from matchwood.tridiagonal.plain.cpu_parts import (
    BAD,
    LANES,
    LEAST,
    ROWS,
    SCRATCH,
    SUM,
    WORDS,
    load_ends,
    load_tile,
    mark_off,
    reduce_tile,
    store_elements,
    store_solution,
    substitute_tile,
)

Array = np.ndarray[Any, Any]

WORK_PER_ROW = 4  # units of work per row, as `crew` counts them


class Workspace(NamedTuple):
    """What the first pass stores for the second, and the scratch buffer of each thread."""

    choices: Array
    scratch: Array


@device
def _reduce(team: Any, rows: Rows, ends: Ends, room: Workspace) -> None:
    """Compute the element of every part."""
    s, parts = room.scratch[team.rank], room.choices.shape[0]
    lo, hi = share(team, (parts + LANES - 1) // LANES)
    for tile in range(lo, hi):
        if interrupted(team, tile << 6):
            return
        load_tile(tile, rows, s)
        reduce_tile(s)
        store_elements(tile, s, ends.elements, room.choices, parts)
        for lane in range(LANES):
            if s[BAD + lane] > 0:
                report(ends.fault, 0, (tile * LANES + lane) * ROWS + int(s[BAD + lane]) - 1)
            if not (s[SUM + lane] <= LARGE and s[LEAST + lane] >= 1 / LARGE):
                ends.fault[1] = 1


@device
def _substitute(
    team: Any, rows: Rows, ends: Array, room: Workspace, x: Array, check: RowCheck
) -> None:
    """Compute the inner unknowns of every part; with a limit, mark the rows that are off."""
    s, parts = room.scratch[team.rank], room.choices.shape[0]
    lo, hi = share(team, (parts + LANES - 1) // LANES)
    for tile in range(lo, hi):
        if interrupted(team, tile << 6):
            return
        load_tile(tile, rows, s)
        load_ends(tile, s, ends, room.choices, parts)
        substitute_tile(s)
        store_solution(tile, s, rows.perm, x)
        if check.limit > 0:
            for part in range(tile * LANES, min(tile * LANES + LANES, parts)):
                mark = check.marks[part]
                off = mark_off(part, rows, x, ends, check.limit, mark)
                check.off[team.rank] += off


@kernel
def _solve(team: Any, rows: Rows, ends: Ends, room: Workspace, x: Array, check: RowCheck) -> None:
    """One right-hand side."""
    _reduce(team, rows, ends, room)
    if barrier(team) or solve_ends(team, ends, 1):
        return
    _substitute(team, rows, ends.ends[0], room, x, check)


def solve(
    dl: Array,
    d: Array,
    du: Array,
    b: Array,
    perm: Array | None = None,
    *,
    threads: int | None = None,
) -> tuple[Array, int, int]:
    """The solution for every row of b; the row without a pivot or -1; a verdict (trust.py).

    With `perm` the solution is not checked.
    """
    n = d.size
    x = np.empty_like(b)
    if n == 0 or b.shape[0] == 0:
        return x, -1, trust.RIGHT
    parts = -(-n // ROWS)
    team = crew(threads, work=WORK_PER_ROW * n)
    order = np.empty(0, np.int32) if perm is None else perm
    # double precision for both types; float32 would be no faster
    room = Workspace(np.empty((parts, WORDS)), np.empty((team.size, SCRATCH)))
    ends = new_ends(parts, 1, ROWS, n, team.size, 1)
    limit = trust.limit(b.dtype) if perm is None else 0.0
    check = RowCheck(limit, new_marks(parts, ROWS), np.zeros(team.size, np.int64))
    verdict = trust.RIGHT
    for one, out in zip(b, x, strict=True):
        check.off[:] = 0
        team.run(_solve, Rows(dl, d, du, one, order), ends, room, out, check)
        if check.off.any():
            lower, diagonal, upper = (a.reshape(n, 1, 1) for a in (dl, d, du))
            blocks = Blocks(lower, diagonal, upper, one, out)
            verdict = min(verdict, mended(team, blocks, ROWS, check))
    return x, row_without_pivot(ends), trust.WRONG if ends.fault[1] else verdict
