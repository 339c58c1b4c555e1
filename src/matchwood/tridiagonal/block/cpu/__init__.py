"""The block tridiagonal solver on a team: as ../../plain/cpu, with 2x2 blocks for numbers.

One part: tiles.py; the ends of parts: ../../elements.  Up to COLUMNS right-hand sides are solved in
one pass.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import barrier, crew, device, interrupted, kernel, share
from matchwood.tridiagonal import check as accuracy
from matchwood.tridiagonal.block.cpu.tiles import (
    BAD,
    CARRIED,
    COLUMNS,
    FOUND,
    FOUND_SIZE,
    LANES,
    LEAST,
    LEFT,
    MIDDLE,
    PICKS,
    RIGHT,
    RIGHT_SIZE,
    ROWS,
    SCRATCH,
    SIZE,
    SUM,
    TILE,
    count_off,
    mark_off,
    reduce_tile,
    round_solution,
    substitute_tile,
)
from matchwood.tridiagonal.elements.cpu import (
    LARGE,
    Columns,
    Ends,
    in_groups,
    new_ends,
    report,
    row_without_pivot,
    solve_ends,
)
from matchwood.tridiagonal.repair.cpu import Blocks, RowCheck, clear_marks, new_marks, repaired

Array = np.ndarray[Any, Any]

WORK_PER_ROW = 12  # work steps per block row (engines.cpu.crew)


# Between a tile in the scratch buffer and the arrays


class Matrix(NamedTuple):
    """The blocks, flat, and the places of both unknowns of a block row (empty: in order)."""

    dl: Array
    d: Array
    du: Array
    perm: Array
    n: int


@device
def _load_blocks(values: Array, start: int, rows: int, s: Array, to: int, one: float) -> None:
    """Copy one lane's part of an array of blocks; missing blocks become `one` on the diagonal."""
    part = values[4 * start :]
    for j in range(rows):
        for k in range(4):
            s[to + (j * 12 + k) * LANES] = part[4 * j + k]
    for j in range(rows, ROWS):
        for k in range(4):
            s[to + (j * 12 + k) * LANES] = one if k == 0 or k == 3 else 0.0


@device
def _load_whole(values: Array, s: Array, to: int) -> None:
    """`_load_blocks` for all lanes of a tile without missing rows, row by row."""
    for j in range(ROWS):
        for lane in range(LANES):
            at = (lane * ROWS + j) * 4
            here = to + j * 12 * LANES + lane
            s[here] = values[at]
            s[here + LANES] = values[at + 1]
            s[here + 2 * LANES] = values[at + 2]
            s[here + 3 * LANES] = values[at + 3]


@device
def _load_right(start: int, rows: int, perm: Array, columns: Columns, s: Array, to: int) -> None:
    """Copy one lane's part of the right-hand sides; for a dummy unknown it is 1."""
    b, row, column, count = columns.b, columns.row, columns.column, columns.number
    for k in range(2 * rows):
        place = perm[2 * start + k] if perm.size > 0 else 2 * start + k
        for c in range(count):
            value = b[max(place, 0) * row + c * column]
            s[to + c * RIGHT_SIZE + k * LANES] = value if place >= 0 else 1.0
    for c in range(count):
        for k in range(2 * rows, 2 * ROWS):
            s[to + c * RIGHT_SIZE + k * LANES] = 0.0


@device
def load_tile(tile: int, matrix: Matrix, columns: Columns, s: Array) -> None:
    """Load the block rows of a tile; rows past the end are X = 0."""
    n, start = matrix.n, tile * LANES * ROWS
    whole = start + LANES * ROWS <= n
    if whole:
        _load_whole(matrix.dl[4 * start :], s, TILE)
        _load_whole(matrix.d[4 * start :], s, TILE + 4 * LANES)
        _load_whole(matrix.du[4 * start :], s, TILE + 8 * LANES)
    for lane in range(LANES):
        start = (tile * LANES + lane) * ROWS
        rows = max(0, min(ROWS, n - start))
        if not whole:
            _load_blocks(matrix.dl, start, rows, s, TILE + lane, 0.0)
            _load_blocks(matrix.d, start, rows, s, TILE + 4 * LANES + lane, 1.0)
            _load_blocks(matrix.du, start, rows, s, TILE + 8 * LANES + lane, 0.0)
        _load_right(start, rows, matrix.perm, columns, s, RIGHT + lane)
        for k in range(4):
            if start == 0:
                s[TILE + k * LANES + lane] = 0
            if start < n <= start + ROWS:
                s[TILE + ((n - 1 - start) * 12 + 8 + k) * LANES + lane] = 0


@device
def store_elements(tile: int, s: Array, elements: Array, columns: int, parts: int) -> None:
    """Store what is carried as an element (4, 10 + columns): left 4, right 4, b, size, picks."""
    for lane in range(LANES):
        part = tile * LANES + lane
        if part < parts:
            for i in range(4):
                for k in range(4):
                    elements[part, i, k] = s[LEFT + (4 * k + i) * LANES + lane]
                    elements[part, i, 4 + k] = s[MIDDLE + (4 * k + i) * LANES + lane]
                for c in range(columns):
                    elements[part, i, 8 + c] = s[CARRIED + (4 * c + i) * LANES + lane]
                elements[part, i, 8 + columns] = s[SIZE + i * LANES + lane]


@device
def store_solution(tile: int, matrix: Matrix, s: Array, columns: Columns) -> None:
    """Store the solution of the tile's rows; that of a dummy unknown has no place."""
    x, row, column, perm = columns.x, columns.row, columns.column, matrix.perm
    for lane in range(LANES):
        start = (tile * LANES + lane) * ROWS
        rows = max(0, min(ROWS, matrix.n - start))
        here = FOUND + 2 * LANES + lane
        for k in range(2 * rows):
            place = perm[2 * start + k] if perm.size > 0 else 2 * start + k
            if place >= 0:
                for c in range(columns.number):
                    x[place * row + c * column] = s[here + c * FOUND_SIZE + k * LANES]


# All tiles


class Workspace(NamedTuple):
    """What the first pass stores for the second, and the scratch buffer of each thread."""

    picks: Array
    scratch: Array


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


@kernel
def _solve(
    team: Any, matrix: Matrix, columns: Columns, ends: Ends, room: Workspace, check: RowCheck
) -> None:
    """A group of right-hand sides; with a limit, the block rows that are off are marked."""
    s, parts = room.scratch[team.me], ends.ends.shape[1] - 1
    lo, hi = share(team, room.picks.shape[0])
    for tile in range(lo, hi):
        if interrupted(team, tile << 6):
            return
        load_tile(tile, matrix, columns, s)
        reduce_tile(s, columns.number)
        store_elements(tile, s, ends.elements, columns.number, parts)
        for k in range(4 * LANES, ROWS * 2 * LANES):
            room.picks[tile, k] = np.int8(s[PICKS + k])
        for lane in range(LANES):
            if s[BAD + lane] > 0:
                report(ends.fault, 0, (tile * LANES + lane) * ROWS + int(s[BAD + lane]) - 1)
            if not (s[SUM + lane] <= LARGE and s[LEAST + lane] >= 1 / LARGE):
                ends.fault[1] = 1
    if barrier(team) or solve_ends(team, ends, 2):
        return
    for tile in range(lo, hi):
        if interrupted(team, tile << 6):
            return
        load_tile(tile, matrix, columns, s)
        for k in range(4 * LANES, ROWS * 2 * LANES):
            s[PICKS + k] = room.picks[tile, k]
        substitute_tile(tile, s, ends.ends, columns.number)
        store_solution(tile, matrix, s, columns)
        if check.limit > 0:
            for column in range(columns.number):
                round_solution(s, column, columns.x)
                check.off[column, team.me] += _mark(tile, s, column, check)


def solve(
    dl: Array, d: Array, du: Array, b: Array, perm: Array | None = None, *,
    threads: int | None = None,
) -> tuple[Array, int, int]:  # fmt: skip
    """The solution for every row of b; the block row without a pivot or -1; a verdict.

    Computed in double precision.  A row of b has one equation of a block row after the other.
    """
    n = d.shape[0]
    b = b if b.flags.f_contiguous else np.ascontiguousarray(b)
    x = np.empty_like(b)
    if n == 0 or b.shape[0] == 0:
        return x, -1, accuracy.RIGHT
    parts = -(-n // ROWS)
    team = crew(threads, work=WORK_PER_ROW * n)
    order = np.empty(0, np.int64) if perm is None else perm.astype(np.int64, copy=False).reshape(-1)
    matrix = Matrix(dl.reshape(-1), d.reshape(-1), du.reshape(-1), order, n)
    picks = np.empty((-(-parts // LANES), ROWS * 2 * LANES), np.int8)
    room = Workspace(picks, np.empty((team.size, SCRATCH)))
    limit = accuracy.limit(b.dtype) if perm is None else 0.0
    verdict, lacking = accuracy.RIGHT, -1
    for columns in in_groups(b, x, COLUMNS):
        ends = new_ends(parts, 2, ROWS, n, team.size, columns.number)
        marks = np.stack([new_marks(parts, ROWS)] * columns.number)
        check = RowCheck(limit, marks, np.zeros((columns.number, team.size), np.int64))
        team.run(_solve, matrix, columns, ends, room, check)
        lacking = row_without_pivot(ends)
        verdict = accuracy.WRONG if ends.fault[1] else verdict
        for c in np.flatnonzero(check.off.any(axis=1)):
            right, out = (a[c * columns.column :] for a in (columns.b, columns.x))
            blocks = Blocks(dl, d, du, right, out, columns.row)
            one = RowCheck(limit, marks[c], check.off[c])
            verdict = min(verdict, repaired(team, blocks, ROWS, one))
    return x, lacking, verdict
