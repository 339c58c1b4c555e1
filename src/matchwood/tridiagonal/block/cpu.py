"""The block tridiagonal solver on a team: as ../plain/cpu.py, with 2x2 blocks for numbers.

One part: cpu_parts.py with cpu_steps.py; its numbers from and to the arrays: cpu_tiles.py; the ends
of parts: ../cpu_elements.py.  Up to COLUMNS right-hand sides are solved in one pass.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import barrier, crew, device, interrupted, kernel, share
from matchwood.tridiagonal import trust
from matchwood.tridiagonal.block.cpu_parts import (
    count_off,
    mark_off,
    reduce_tile,
    round_solution,
    substitute_tile,
)
from matchwood.tridiagonal.block.cpu_steps import (
    BAD,
    COLUMNS,
    LANES,
    LEAST,
    ROWS,
    SCRATCH,
    SUM,
)
from matchwood.tridiagonal.block.cpu_tiles import (
    Matrix,
    load_picks,
    load_tile,
    store_elements,
    store_picks,
    store_solution,
)
from matchwood.tridiagonal.cpu_elements import (
    LARGE,
    Columns,
    Ends,
    in_groups,
    new_ends,
    report,
    row_without_pivot,
    solve_ends,
)
from matchwood.tridiagonal.mending.cpu_local import (
    Blocks,
    RowCheck,
    clear_marks,
    mended,
    new_marks,
)

Array = np.ndarray[Any, Any]

WORK_PER_ROW = 12  # units of work per block row, as `crew` counts them


class Workspace(NamedTuple):
    """What the first pass stores for the second, and the scratch buffer of each thread."""

    picks: Array
    scratch: Array


@device
def _reduce(team: Any, matrix: Matrix, columns: Columns, ends: Ends, room: Workspace) -> None:
    """Compute the element of every part."""
    s, parts = room.scratch[team.rank], ends.ends.shape[1] - 1
    lo, hi = share(team, room.picks.shape[0])
    for tile in range(lo, hi):
        if interrupted(team, tile << 6):
            return
        load_tile(tile, matrix, columns, s)
        reduce_tile(s, columns.number)
        store_elements(tile, s, ends.elements, columns.number, parts)
        store_picks(s, room.picks[tile])
        for lane in range(LANES):
            if s[BAD + lane] > 0:
                report(ends.fault, 0, (tile * LANES + lane) * ROWS + int(s[BAD + lane]) - 1)
            if not (s[SUM + lane] <= LARGE and s[LEAST + lane] >= 1 / LARGE):
                ends.fault[1] = 1


@device
def _mark(tile: int, s: Array, column: int, check: RowCheck) -> int:
    """Mark the rows of a tile that are off; returns how many equations are."""
    count_off(s, column, check.limit)
    marks, total = check.marks[column], 0
    for lane in range(LANES):
        part = tile * LANES + lane
        if part < marks.shape[0]:
            clear_marks(marks[part])
            count = int(s[BAD + lane])
            total += count
            if count > 0:
                mark_off(s, lane, column, check.limit, marks[part])
    return total


@device
def _substitute(
    team: Any, matrix: Matrix, columns: Columns, ends: Array, room: Workspace, check: RowCheck
) -> None:
    """Compute the inner unknowns of every part; with a limit, mark block rows that are off."""
    s = room.scratch[team.rank]
    lo, hi = share(team, room.picks.shape[0])
    for tile in range(lo, hi):
        if interrupted(team, tile << 6):
            return
        load_tile(tile, matrix, columns, s)
        load_picks(s, room.picks[tile])
        substitute_tile(tile, s, ends, columns.number)
        store_solution(tile, matrix, s, columns)
        if check.limit > 0:
            for column in range(columns.number):
                round_solution(s, column, columns.x)
                check.off[column, team.rank] += _mark(tile, s, column, check)


@kernel
def _solve(
    team: Any, matrix: Matrix, columns: Columns, ends: Ends, room: Workspace, check: RowCheck
) -> None:
    """A group of right-hand sides."""
    _reduce(team, matrix, columns, ends, room)
    if barrier(team) or solve_ends(team, ends, 2):
        return
    _substitute(team, matrix, columns, ends.ends, room, check)


def solve(
    dl: Array,
    d: Array,
    du: Array,
    b: Array,
    perm: Array | None = None,
    *,
    threads: int | None = None,
) -> tuple[Array, int, int]:
    """The solution for every row of b; the block row without a pivot or -1; a verdict (trust.py).

    Computed in double precision.  A row of b has one equation of a block row after the other.
    """
    n = d.shape[0]
    b = b if b.flags.f_contiguous else np.ascontiguousarray(b)
    x = np.empty_like(b)
    if n == 0 or b.shape[0] == 0:
        return x, -1, trust.RIGHT
    parts = -(-n // ROWS)
    team = crew(threads, work=WORK_PER_ROW * n)
    order = np.empty(0, np.int64) if perm is None else perm.astype(np.int64, copy=False).reshape(-1)
    matrix = Matrix(dl.reshape(-1), d.reshape(-1), du.reshape(-1), order, n)
    picks = np.empty((-(-parts // LANES), ROWS * 2 * LANES), np.int8)
    room = Workspace(picks, np.empty((team.size, SCRATCH)))
    limit = trust.limit(b.dtype) if perm is None else 0.0
    verdict, lacking = trust.RIGHT, -1
    for columns in in_groups(b, x, COLUMNS):
        ends = new_ends(parts, 2, ROWS, n, team.size, columns.number)
        marks = np.stack([new_marks(parts, ROWS)] * columns.number)
        check = RowCheck(limit, marks, np.zeros((columns.number, team.size), np.int64))
        team.run(_solve, matrix, columns, ends, room, check)
        lacking = row_without_pivot(ends)
        verdict = trust.WRONG if ends.fault[1] else verdict
        for c in np.flatnonzero(check.off.any(axis=1)):
            right, out = (a[c * columns.column :] for a in (columns.b, columns.x))
            blocks = Blocks(dl, d, du, right, out, columns.row)
            one = RowCheck(limit, marks[c], check.off[c])
            verdict = min(verdict, mended(team, blocks, ROWS, one))
    return x, lacking, verdict
