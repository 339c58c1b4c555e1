"""The tridiagonal solver on a team.  One part: tiles.py; the ends of parts: ../../elements.

A first pass over the rows computes an element for each part of 128 rows.  The elements are solved
for the ends of the parts.  A second pass computes the inner unknowns.  The parts do not depend on
the number of threads, so neither does any bit of the solution.

Up to COLUMNS right-hand sides are solved in one pass.  The matrix is read once, and its elimination
is computed once, for all of them.  The operations on a right-hand side are in the order of
tiles.py.  So no bit of a solution depends on how many others are solved with it.

Always COLUMNS right-hand sides are computed, in the body of one loop over lanes.  With fewer the
compiler would unroll some loops, and then not turn them into vector instructions, which takes four
times as long.  The surplus ones are zeros, or left over from others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import barrier, crew, device, expanded, interrupted, kernel, share
from matchwood.tridiagonal import check as accuracy
from matchwood.tridiagonal.elements.cpu import (
    LARGE,
    Columns,
    Ends,
    RowSystem,
    in_groups,
    is_off,
    new_ends,
    report,
    row_without_pivot,
    solve_ends,
)
from matchwood.tridiagonal.plain.cpu.tiles import (
    A_L1,
    A_SIZE,
    B_L1,
    B_SIZE,
    BAD,
    CHOICES,
    DIAGONAL,
    LANES,
    LEAST,
    LOWER,
    MOST,
    RIGHT,
    ROWS,
    SCRATCH,
    STEPS,
    TILE,
    UPPER,
    WORDS,
    as_word,
    larger,
    load_ends,
    load_matrix,
    load_tile,
    mark_off,
    reduce_tile,
    reduced,
    reduced_dominant,
    repeated,
    repeated_dominant,
    right_hand_sides,
    start,
    start_choices,
    start_sizes,
    store_elements,
    store_solution,
    substitute_tile,
)
from matchwood.tridiagonal.repair.cpu import (
    Blocks,
    RowCheck,
    clear_marks,
    new_marks,
    repaired,
    set_mark,
)

Array = np.ndarray[Any, Any]

FEW_COLUMNS = 3  # fewer right-hand sides are solved one after the other
WORK_PER_ROW = 4  # work steps per row (engines.cpu.crew)

COLUMNS = 8  # right-hand sides that are solved together, at most
WIDTH = COLUMNS * LANES  # numbers of one row of all right-hand sides
# Offsets in the scratch buffer, after the coefficients; one number for each lane, or for each
# right-hand side and lane.
SECOND = RIGHT  # the pivot rows: coefficients of the next two unknowns
THIRD = SECOND + TILE
CARRIED_A = THIRD + TILE
CARRIED_B = CARRIED_A + WIDTH
OFF = CARRIED_B + WIDTH  # rows that are off
SIDES = OFF + WIDTH  # ROWS: right-hand sides
# ROWS + 2: right-hand sides of the pivot rows, then the solutions x[s-1] to x[e+1]
FOUND = SIDES + ROWS * WIDTH
SCRATCH_COLUMNS = FOUND + (ROWS + 2) * WIDTH  # zeros at first


# A tile with several right-hand sides


class Matrix(NamedTuple):
    """The coefficients; with `perm` row i has the right-hand sides and unknowns of perm[i]."""

    dl: Array
    d: Array
    du: Array
    perm: Array


@device
def _load_sides(first: int, perm: Array, columns: Columns, s: Array, n: int) -> None:
    """Copy the right-hand sides of a tile, a line of s at once; missing rows become 0."""
    b, row, column, count = columns.b, columns.row, columns.column, min(columns.number, COLUMNS)
    if row == 1 and perm.size == 0 and first + TILE <= n:
        for c in range(count):
            part = b[c * column + first :]
            for j in range(ROWS):
                for lane in range(LANES):
                    s[SIDES + j * WIDTH + c * LANES + lane] = part[lane * ROWS + j]
        return
    for j in range(ROWS):
        for lane in range(LANES):
            place = first + lane * ROWS + j
            last = min(place, n - 1)
            at = np.uint64(perm[last] if perm.size > 0 else last) * np.uint64(row)
            for c in range(count):
                value = b[at + np.uint64(c) * np.uint64(column)]
                s[SIDES + j * WIDTH + c * LANES + lane] = value if place < n else 0.0


@device
def load_columns(tile: int, matrix: Matrix, columns: Columns, s: Array) -> None:
    """Load the rows of a tile; rows past the end are x = 0."""
    load_matrix(tile, matrix.dl, matrix.d, matrix.du, s)
    _load_sides(tile * TILE, matrix.perm, columns, s, matrix.d.size)


@device
def _start_sides(s: Array) -> None:
    """Carry the first two rows."""
    for k in range(WIDTH):
        s[CARRIED_A + k] = s[SIDES + k]
        s[CARRIED_B + k] = s[SIDES + WIDTH + k]


@expanded
def _reduce_side(s: Array, side: int, at: int, step: Any) -> Any:
    """Eliminate in the right-hand side at `side`, carried at `at`.  Returns the pivot row's."""
    swap, new, m_a, m_b = step
    a, b = s[CARRIED_A + at], s[CARRIED_B + at]
    k, a, b = right_hand_sides(a, b, s[side], swap, new, m_a, m_b)
    s[CARRIED_A + at] = a
    s[CARRIED_B + at] = b
    return k


@expanded
def _size_of_sides(s: Array, side: int) -> Any:
    """The sum of the absolute values of all right-hand sides of a row."""
    low = abs(s[side]) + abs(s[side + LANES])
    low += abs(s[side + 2 * LANES]) + abs(s[side + 3 * LANES])
    high = abs(s[side + 4 * LANES]) + abs(s[side + 5 * LANES])
    return low + (high + (abs(s[side + 6 * LANES]) + abs(s[side + 7 * LANES])))


@device
def reduce_columns(s: Array) -> None:
    """Eliminate the inner unknowns of every lane's part: A and B are its element afterwards."""
    start(s)
    start_sizes(s)
    _start_sides(s)
    for t in range(LANES):
        most = larger(_size_of_sides(s, SIDES + t), _size_of_sides(s, SIDES + WIDTH + t))
        s[MOST + t] = larger(s[MOST + t], most)
    if start_choices(s):
        _reduce_rows(s, True)
    else:
        _reduce_rows(s, False)


@expanded
def _reduce_rows(s: Array, pivoting: bool) -> None:
    for word in range(WORDS):
        for step in range(STEPS):
            j, bit = 2 + word * STEPS + step, np.int64(1) << step
            row = s.dtype.type(j)
            for t in range(LANES):
                side = SIDES + j * WIDTH + t
                s[MOST + t] = larger(s[MOST + t], _size_of_sides(s, side))
                if pivoting:
                    found = reduced(s, t, j * LANES + t, word, bit, row)
                else:
                    found = reduced_dominant(s, t, j * LANES + t, row)
                _reduce_side(s, side, t, found)
                _reduce_side(s, side + LANES, LANES + t, found)
                _reduce_side(s, side + 2 * LANES, 2 * LANES + t, found)
                _reduce_side(s, side + 3 * LANES, 3 * LANES + t, found)
                _reduce_side(s, side + 4 * LANES, 4 * LANES + t, found)
                _reduce_side(s, side + 5 * LANES, 5 * LANES + t, found)
                _reduce_side(s, side + 6 * LANES, 6 * LANES + t, found)
                _reduce_side(s, side + 7 * LANES, 7 * LANES + t, found)


@device
def store_columns(
    tile: int, s: Array, elements: Array, choices: Array, parts: int, columns: int
) -> None:
    """Store A and B as an element (2, 6 + columns): left 2, right 2, b, size, picks."""
    for lane in range(LANES):
        part = tile * LANES + lane
        if part < parts:
            for k in range(4):
                elements[part, 0, k] = s[A_L1 + k * LANES + lane]
                elements[part, 1, k] = s[B_L1 + k * LANES + lane]
            for c in range(columns):
                elements[part, 0, 4 + c] = s[CARRIED_A + c * LANES + lane]
                elements[part, 1, 4 + c] = s[CARRIED_B + c * LANES + lane]
            elements[part, 0, 4 + columns] = s[A_SIZE + lane]
            elements[part, 1, 4 + columns] = s[B_SIZE + lane]
            for k in range(2 * WORDS):
                choices[part, k] = s[CHOICES + k * LANES + lane]


@device
def _load_ends(tile: int, s: Array, ends: Array, choices: Array) -> None:
    """Put the ends of every part into their places, x[s-1], x[s], x[e] and x[e+1]."""
    parts = choices.shape[0]
    for lane in range(LANES):
        part = min(tile * LANES + lane, parts - 1)
        for c in range(ends.shape[0]):
            to = FOUND + c * LANES + lane
            for k in range(2):
                s[to + k * WIDTH] = ends[c, part, k]
                s[to + (ROWS + k) * WIDTH] = ends[c, part + 1, k]
        for k in range(2 * WORDS):
            s[CHOICES + k * LANES + lane] = choices[part, k]


@device
def _move_known(s: Array) -> None:
    """Move the terms of x[s-1] and x[s] to the right-hand sides of the first two rows."""
    for c in range(COLUMNS):
        for t in range(LANES):
            at = c * LANES + t
            before, first = s[FOUND + at], s[FOUND + WIDTH + at]
            s[CARRIED_A + at] -= s[LOWER + t] * before + s[DIAGONAL + t] * first
            s[CARRIED_B + at] -= s[LOWER + LANES + t] * first


@device
def substitute_columns(tile: int, s: Array, ends: Array, choices: Array) -> None:
    """The same elimination without the left unknowns, then back substitution."""
    start(s)
    _start_sides(s)
    _load_ends(tile, s, ends, choices)
    _move_known(s)
    if as_word(s[CHOICES]) < 0:
        _repeat_rows(s, False)
    else:
        _repeat_rows(s, True)
    for back in range(ROWS - 2):
        j = ROWS - 2 - back
        for t in range(LANES):
            at, here = j * LANES + t, FOUND + (j + 1) * WIDTH + t
            _unknown(s, at, here)
            _unknown(s, at, here + LANES)
            _unknown(s, at, here + 2 * LANES)
            _unknown(s, at, here + 3 * LANES)
            _unknown(s, at, here + 4 * LANES)
            _unknown(s, at, here + 5 * LANES)
            _unknown(s, at, here + 6 * LANES)
            _unknown(s, at, here + 7 * LANES)


@expanded
def _repeat_rows(s: Array, pivoting: bool) -> None:
    for word in range(WORDS):
        for step in range(STEPS):
            j, bit = 2 + word * STEPS + step, np.int64(1) << step
            for t in range(LANES):
                at = j * LANES + t
                found = repeated(s, t, at, word, bit) if pivoting else repeated_dominant(s, t, at)
                swap, new, m_a, m_b, inverse, second, third = found
                s[SECOND - LANES + at] = second
                s[THIRD - LANES + at] = third
                found = (swap, new, m_a, m_b)
                side, to = SIDES + j * WIDTH + t, FOUND + j * WIDTH + t
                _repeat_side(s, side, t, found, to, inverse)
                _repeat_side(s, side + LANES, LANES + t, found, to + LANES, inverse)
                _repeat_side(s, side + 2 * LANES, 2 * LANES + t, found, to + 2 * LANES, inverse)
                _repeat_side(s, side + 3 * LANES, 3 * LANES + t, found, to + 3 * LANES, inverse)
                _repeat_side(s, side + 4 * LANES, 4 * LANES + t, found, to + 4 * LANES, inverse)
                _repeat_side(s, side + 5 * LANES, 5 * LANES + t, found, to + 5 * LANES, inverse)
                _repeat_side(s, side + 6 * LANES, 6 * LANES + t, found, to + 6 * LANES, inverse)
                _repeat_side(s, side + 7 * LANES, 7 * LANES + t, found, to + 7 * LANES, inverse)


@expanded
def _repeat_side(s: Array, side: int, at: int, step: Any, to: int, inverse: Any) -> None:
    """Eliminate in a right-hand side again; that of the pivot row is kept."""
    s[to] = _reduce_side(s, side, at, step) * inverse


@expanded
def _unknown(s: Array, at: int, here: int) -> None:
    """x[j] from x[j+1] and x[j+2]."""
    s[here] = s[here] - s[SECOND + at] * s[here + WIDTH] - s[THIRD + at] * s[here + 2 * WIDTH]


@device
def store_solutions(tile: int, matrix: Matrix, s: Array, columns: Columns) -> None:
    """Store the solutions of the tile's rows."""
    n, first, perm = matrix.d.size, tile * TILE, matrix.perm
    x, row, column, count = columns.x, columns.row, columns.column, min(columns.number, COLUMNS)
    if row == 1 and perm.size == 0 and first + TILE <= n:
        for c in range(count):
            part = x[c * column + first :]
            for j in range(ROWS):
                for lane in range(LANES):
                    part[lane * ROWS + j] = s[FOUND + (j + 1) * WIDTH + c * LANES + lane]
        return
    for j in range(ROWS):
        for lane in range(LANES):
            place = first + lane * ROWS + j
            if place < n:
                at = np.uint64(perm[place] if perm.size > 0 else place) * np.uint64(row)
                for c in range(count):
                    value = s[FOUND + (j + 1) * WIDTH + c * LANES + lane]
                    x[at + np.uint64(c) * np.uint64(column)] = value


@expanded
def _residual(s: Array, at: int, side: int, x: int) -> Any:
    """The residual of a row, and the sum of |terms|."""
    left, middle = s[LOWER + at] * s[x], s[DIAGONAL + at] * s[x + WIDTH]
    right, b = s[UPPER + at] * s[x + 2 * WIDTH], s[side]
    size = (abs(left) + abs(middle)) + (abs(right) + abs(b))
    return abs((left + middle) + (right - b)), size


@expanded
def _add_off(s: Array, at: int, to: int, k: int, limit: float) -> None:
    """Count the row at `at` in s[to] where right-hand side k of the row is off."""
    value, size = _residual(s, at, SIDES + k, FOUND + k)
    good = (value <= limit * size) & (size <= LARGE * LARGE)
    s[to] += 0.0 if good else 1.0


@device
def _count_off(s: Array, limit: float) -> None:
    """Count the rows of each right-hand side and lane that are off by more than `limit`."""
    for k in range(WIDTH):
        s[OFF + k] = 0.0
    for j in range(ROWS):
        for t in range(LANES):
            at, to, k = j * LANES + t, OFF + t, j * WIDTH + t
            _add_off(s, at, to, k, limit)
            _add_off(s, at, to + LANES, k + LANES, limit)
            _add_off(s, at, to + 2 * LANES, k + 2 * LANES, limit)
            _add_off(s, at, to + 3 * LANES, k + 3 * LANES, limit)
            _add_off(s, at, to + 4 * LANES, k + 4 * LANES, limit)
            _add_off(s, at, to + 5 * LANES, k + 5 * LANES, limit)
            _add_off(s, at, to + 6 * LANES, k + 6 * LANES, limit)
            _add_off(s, at, to + 7 * LANES, k + 7 * LANES, limit)


@device
def mark_columns(tile: int, s: Array, columns: Columns, check: RowCheck, me: int) -> None:
    """Mark the rows of a tile that are off, and count them."""
    if columns.x.itemsize < s.itemsize:  # round the solutions as x does, where they are stored
        for k in range(ROWS * WIDTH):
            s[FOUND + WIDTH + k] = columns.x.dtype.type(s[FOUND + WIDTH + k])
    _count_off(s, check.limit)
    for c in range(columns.number):
        marks = check.marks[c]
        for lane in range(min(LANES, marks.shape[0] - tile * LANES)):
            mark, count = marks[tile * LANES + lane], int(s[OFF + c * LANES + lane])
            clear_marks(mark)
            check.off[c, me] += count
            if count > 0:
                for j in range(ROWS):
                    at = j * WIDTH + c * LANES + lane
                    value, size = _residual(s, j * LANES + lane, SIDES + at, FOUND + at)
                    if is_off(value, size, check.limit) > 0:
                        set_mark(mark, j)


# All tiles


class Workspace(NamedTuple):
    """What the first pass stores for the second, and the scratch buffer of each thread."""

    choices: Array
    scratch: Array


@device
def _report(tile: int, s: Array, ends: Ends, parts: int) -> None:
    """Report unknowns of a tile without a pivot, and numbers out of range.

    NaN, which `larger` ignores, is in the element of every part that has one.
    """
    for lane in range(min(LANES, parts - tile * LANES)):
        part, total = tile * LANES + lane, 0.0
        if s[BAD + lane] > 0:
            report(ends.fault, 0, part * ROWS + int(s[BAD + lane]) - 1)
        for k in range(ends.elements.shape[2] - 2):
            total += abs(ends.elements[part, 0, k]) + abs(ends.elements[part, 1, k])
        in_range = s[MOST + lane] <= LARGE and s[LEAST + lane] >= 1 / LARGE
        if not (in_range and total < np.inf):
            ends.fault[1] = 1


@kernel
def _solve(
    team: Any, rows: RowSystem, ends: Ends, room: Workspace, x: Array, check: RowCheck
) -> None:
    """One right-hand side; with a limit, the rows that are off are marked."""
    s, parts = room.scratch[team.me], room.choices.shape[0]
    lo, hi = share(team, (parts + LANES - 1) // LANES)
    for tile in range(lo, hi):
        if interrupted(team, tile << 6):
            return
        load_tile(tile, rows, s)
        reduce_tile(s)
        store_elements(tile, s, ends.elements, room.choices, parts)
        _report(tile, s, ends, parts)
    if barrier(team) or solve_ends(team, ends, 1):
        return
    for tile in range(lo, hi):
        if interrupted(team, tile << 6):
            return
        load_tile(tile, rows, s)
        load_ends(tile, s, ends.ends[0], room.choices, parts)
        substitute_tile(s)
        store_solution(tile, s, rows.perm, x)
        if check.limit > 0:
            for part in range(tile * LANES, min(tile * LANES + LANES, parts)):
                mark = check.marks[part]
                off = mark_off(part, rows, x, ends.ends[0], check.limit, mark)
                check.off[team.me] += off


@kernel
def _solve_columns(
    team: Any, matrix: Matrix, columns: Columns, ends: Ends, room: Workspace, check: RowCheck
) -> None:
    """`_solve` for a group of right-hand sides."""
    s, parts = room.scratch[team.me], room.choices.shape[0]
    lo, hi = share(team, (parts + LANES - 1) // LANES)
    for tile in range(lo, hi):
        if interrupted(team, tile << 6):
            return
        load_columns(tile, matrix, columns, s)
        reduce_columns(s)
        store_columns(tile, s, ends.elements, room.choices, parts, columns.number)
        _report(tile, s, ends, parts)
    if barrier(team) or solve_ends(team, ends, 1):
        return
    for tile in range(lo, hi):
        if interrupted(team, tile << 6):
            return
        load_columns(tile, matrix, columns, s)
        substitute_columns(tile, s, ends.ends, room.choices)
        store_solutions(tile, matrix, s, columns)
        if check.limit > 0:
            mark_columns(tile, s, columns, check, team.me)


def solve(
    dl: Array, d: Array, du: Array, b: Array, perm: Array | None = None, *,
    threads: int | None = None,
) -> tuple[Array, int, int]:  # fmt: skip
    """The solution for every row of b; the row without a pivot or -1; a verdict (check.py).

    With `perm` the solution is not checked.  Rows of b that are to be reordered are solved one
    after the other, unless b is in Fortran order: each number has a cache line of its own.
    """
    n, m = d.size, b.shape[1]
    b = b if b.flags.f_contiguous else np.ascontiguousarray(b)
    alone = b.shape[0] < FEW_COLUMNS or (perm is not None and b.flags.c_contiguous)
    b = np.ascontiguousarray(b) if alone else b
    x = np.empty_like(b)
    if n == 0 or b.shape[0] == 0:
        return x, -1, accuracy.RIGHT
    parts = -(-n // ROWS)
    team = crew(threads, work=WORK_PER_ROW * n)
    order = np.empty(0, np.int32) if perm is None else perm
    # double precision for both types; float32 would be no faster
    scratch = np.zeros((team.size, SCRATCH if alone else SCRATCH_COLUMNS))
    room = Workspace(np.empty((parts, 2 * WORDS)), scratch)
    limit = accuracy.limit(b.dtype) if perm is None else 0.0
    verdict, lacking = accuracy.RIGHT, -1
    lower, diagonal, upper = (a.reshape(n, 1, 1) for a in (dl, d, du))
    for columns in in_groups(b, x, 1 if alone else COLUMNS):
        ends = new_ends(parts, 1, ROWS, n, team.size, columns.number)
        off = np.zeros((columns.number, team.size), np.int64)
        marks = new_marks(columns.number * parts, ROWS).reshape(columns.number, parts, -1)
        if alone:
            check, rows = (
                RowCheck(limit, marks[0], off[0]),
                RowSystem(dl, d, du, columns.b[:m], order),
            )
            team.run(_solve, rows, ends, room, columns.x[:m], check)
        else:
            check, matrix = RowCheck(limit, marks, off), Matrix(dl, d, du, order)
            team.run(_solve_columns, matrix, columns, ends, room, check)
        lacking = row_without_pivot(ends)
        verdict = accuracy.WRONG if ends.fault[1] else verdict
        for c in np.flatnonzero(off.any(axis=1)):
            right, out = (a[c * columns.column :] for a in (columns.b, columns.x))
            blocks = Blocks(lower, diagonal, upper, right, out, columns.row)
            verdict = min(verdict, repaired(team, blocks, ROWS, RowCheck(limit, marks[c], off[c])))
    return x, lacking, verdict
