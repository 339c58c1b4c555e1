"""A tile of plain rows with several right-hand sides: what cpu_parts.py does for one.

The matrix is read once, and its elimination is computed once, for all of them.  A step has two
stages.  The first chooses the pivot and eliminates in the coefficients.  It leaves the choice and
the multipliers in the scratch buffer.  The second does the same to each right-hand side, in the
order of operations of cpu_parts.py.  So no bit of a solution depends on how many others are solved
with it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.teams import device, expanded
from matchwood.tridiagonal.cpu_elements import LARGE, Columns, is_off
from matchwood.tridiagonal.mending.cpu_local import RowCheck, clear_marks, set_mark
from matchwood.tridiagonal.plain.cpu_steps import (
    A_L1,
    A_SIZE,
    B_L1,
    B_SIZE,
    BAD,
    CHOICES,
    DIAGONAL,
    LANES,
    LOWER,
    RIGHT,
    ROWS,
    STEPS,
    SUM,
    TILE,
    UPPER,
    WORDS,
    load_matrix,
    reduced,
    repeated,
    right_hand_sides,
    start,
    start_sizes,
)

Array = np.ndarray[Any, Any]

COLUMNS = 8  # right-hand sides that are solved together, at most
WIDTH = COLUMNS * LANES  # numbers of one row of all right-hand sides

# Offsets in the scratch buffer, after the coefficients; one number for each lane, or for each
# right-hand side and lane.
SWAP, NEW, M_A, M_B, INVERSE = (RIGHT + k * LANES for k in range(5))  # of the present step
SECOND = RIGHT + 5 * LANES  # the pivot rows: coefficients of the next two unknowns
THIRD = SECOND + TILE
CARRIED_A = THIRD + TILE
CARRIED_B = CARRIED_A + WIDTH
SIDES = CARRIED_B + WIDTH  # ROWS: right-hand sides
# ROWS + 2: right-hand sides of the pivot rows, then the solutions x[s-1] to x[e+1]
FOUND = SIDES + ROWS * WIDTH
SCRATCH_COLUMNS = FOUND + (ROWS + 2) * WIDTH


class Matrix(NamedTuple):
    """The coefficients; with `perm` row i has the right-hand sides and unknowns of perm[i]."""

    dl: Array
    d: Array
    du: Array
    perm: Array


@expanded
def _known_row(j: int) -> int:
    """j itself; so that the compiler knows its range, without which it makes no vectors."""
    return max(0, min(j, ROWS - 1))


@device
def _load_sides(first: int, rows: int, perm: Array, columns: Columns, s: Array, lane: int) -> None:
    """Copy one lane's part of the right-hand sides; missing rows become 0."""
    b, row, column, count = columns.b, columns.row, columns.column, min(columns.number, COLUMNS)
    to = SIDES + lane
    if perm.size > 0:
        for j in range(rows):
            at = np.uint64(perm[first + j]) * np.uint64(row)
            for c in range(count):
                s[to + j * WIDTH + c * LANES] = b[at + np.uint64(c) * np.uint64(column)]
    elif row == 1:
        for c in range(count):
            part = b[c * column + first :]
            for j in range(rows):
                s[to + j * WIDTH + c * LANES] = part[j]
    else:
        part = b[first * row :]
        for j in range(rows):
            for c in range(count):
                s[to + j * WIDTH + c * LANES] = part[j * row + c]
    for j in range(rows, ROWS):
        for c in range(count):
            s[to + j * WIDTH + c * LANES] = 0.0


@device
def load_columns(tile: int, matrix: Matrix, columns: Columns, s: Array) -> None:
    """Load the rows of a tile; rows past the end are x = 0."""
    n = matrix.d.size
    load_matrix(tile, matrix.dl, matrix.d, matrix.du, s)
    for lane in range(LANES):
        first = (tile * LANES + lane) * ROWS
        _load_sides(first, max(0, min(ROWS, n - first)), matrix.perm, columns, s, lane)


@device
def _start_sides(s: Array, columns: int) -> None:
    for c in range(min(columns, COLUMNS)):
        for t in range(LANES):
            at = c * LANES + t
            s[CARRIED_A + at] = s[SIDES + at]
            s[CARRIED_B + at] = s[SIDES + WIDTH + at]


@device
def _reduce_sides(s: Array, j: int, columns: int) -> None:
    """Eliminate in the right-hand sides."""
    j = _known_row(j)
    for c in range(min(columns, COLUMNS)):
        for t in range(LANES):
            at = c * LANES + t
            side = s[SIDES + j * WIDTH + at]
            s[SUM + t] += abs(side)
            swap, new = s[SWAP + t] != 0.0, s[NEW + t] != 0.0
            a, b = s[CARRIED_A + at], s[CARRIED_B + at]
            _, a, b = right_hand_sides(a, b, side, swap, new, s[M_A + t], s[M_B + t])
            s[CARRIED_A + at] = a
            s[CARRIED_B + at] = b


@device
def reduce_columns(s: Array, columns: int) -> None:
    """Eliminate the inner unknowns of every lane's part: A and B are its element afterwards."""
    start(s)
    start_sizes(s)
    _start_sides(s, columns)
    for c in range(min(columns, COLUMNS)):
        for t in range(LANES):
            at = c * LANES + t
            s[SUM + t] += abs(s[CARRIED_A + at]) + abs(s[CARRIED_B + at])
    for word in range(WORDS):
        for t in range(LANES):
            s[CHOICES + word * LANES + t] = 0.0
        scale = 1.0
        for step in range(STEPS):
            j = 2 + word * STEPS + step
            scale /= 4.0
            for t in range(LANES):
                swap, new, m_a, m_b = reduced(s, t, j * LANES + t, word, scale, float(j))
                s[SWAP + t] = 1.0 if swap else 0.0
                s[NEW + t] = 1.0 if new else 0.0
                s[M_A + t] = m_a
                s[M_B + t] = m_b
            _reduce_sides(s, j, columns)


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
            for k in range(WORDS):
                choices[part, k] = s[CHOICES + k * LANES + lane]


@device
def _load_ends(tile: int, s: Array, ends: Array, choices: Array, columns: int) -> None:
    """Put the ends of every part into their places, x[s-1], x[s], x[e] and x[e+1]."""
    parts = choices.shape[0]
    for lane in range(LANES):
        part = min(tile * LANES + lane, parts - 1)
        for c in range(columns):
            to = FOUND + c * LANES + lane
            for k in range(2):
                s[to + k * WIDTH] = ends[c, part, k]
                s[to + (ROWS + k) * WIDTH] = ends[c, part + 1, k]
        for k in range(WORDS):
            s[CHOICES + k * LANES + lane] = choices[part, k]


@device
def _move_known(s: Array, columns: int) -> None:
    """Move the terms of x[s-1] and x[s] to the right-hand sides of the first two rows."""
    for c in range(min(columns, COLUMNS)):
        for t in range(LANES):
            at = c * LANES + t
            before, first = s[FOUND + at], s[FOUND + WIDTH + at]
            s[CARRIED_A + at] -= s[LOWER + t] * before + s[DIAGONAL + t] * first
            s[CARRIED_B + at] -= s[LOWER + LANES + t] * first


@device
def _repeat_sides(s: Array, j: int, columns: int) -> None:
    """Eliminate in the right-hand sides again; those of the pivot rows are kept."""
    j = _known_row(j)
    for c in range(min(columns, COLUMNS)):
        for t in range(LANES):
            at = c * LANES + t
            side = s[SIDES + j * WIDTH + at]
            swap, new = s[SWAP + t] != 0.0, s[NEW + t] != 0.0
            a, b = s[CARRIED_A + at], s[CARRIED_B + at]
            k, a, b = right_hand_sides(a, b, side, swap, new, s[M_A + t], s[M_B + t])
            s[CARRIED_A + at] = a
            s[CARRIED_B + at] = b
            s[FOUND + j * WIDTH + at] = k * s[INVERSE + t]


@device
def substitute_columns(tile: int, s: Array, ends: Array, choices: Array, columns: int) -> None:
    """The same elimination without the left unknowns, then back substitution."""
    start(s)
    _start_sides(s, columns)
    _load_ends(tile, s, ends, choices, columns)
    _move_known(s, columns)
    for word in range(WORDS):
        for step in range(STEPS):
            j = 2 + word * STEPS + step
            for t in range(LANES):
                at = j * LANES + t
                swap, new, m_a, m_b, inverse, second, third = repeated(s, t, at, word)
                s[SWAP + t] = 1.0 if swap else 0.0
                s[NEW + t] = 1.0 if new else 0.0
                s[M_A + t] = m_a
                s[M_B + t] = m_b
                s[INVERSE + t] = inverse
                s[SECOND - LANES + at] = second
                s[THIRD - LANES + at] = third
            _repeat_sides(s, j, columns)
    for j in range(ROWS - 2, 0, -1):
        _substitute_row(s, j, columns)


@device
def _substitute_row(s: Array, j: int, columns: int) -> None:
    """x[j] from x[j+1] and x[j+2]."""
    j = _known_row(j)
    for c in range(min(columns, COLUMNS)):
        for t in range(LANES):
            at, here = j * LANES + t, FOUND + (j + 1) * WIDTH + c * LANES + t
            x1, x2 = s[here + WIDTH], s[here + 2 * WIDTH]
            s[here] = s[here] - s[SECOND + at] * x1 - s[THIRD + at] * x2


@device
def store_solutions(tile: int, matrix: Matrix, s: Array, columns: Columns) -> None:
    """Store the solutions of the tile's rows."""
    x, row, column, count = columns.x, columns.row, columns.column, columns.number
    perm = matrix.perm
    for lane in range(LANES):
        first = (tile * LANES + lane) * ROWS
        rows = max(0, min(ROWS, matrix.d.size - first))
        here = FOUND + WIDTH + lane
        if perm.size > 0:
            for j in range(rows):
                at = np.uint64(perm[first + j]) * np.uint64(row)
                for c in range(count):
                    x[at + np.uint64(c) * np.uint64(column)] = s[here + j * WIDTH + c * LANES]
        elif row == 1:
            for c in range(count):
                part = x[c * column + first :]
                for j in range(rows):
                    part[j] = s[here + j * WIDTH + c * LANES]
        else:
            part = x[first * row :]
            for j in range(rows):
                for c in range(count):
                    part[j * row + c] = s[here + j * WIDTH + c * LANES]


@expanded
def _residual(s: Array, at: int, side: int, x: int) -> Any:
    """The residual of a row, and the sum of |terms|."""
    left, middle = s[LOWER + at] * s[x], s[DIAGONAL + at] * s[x + WIDTH]
    right, b = s[UPPER + at] * s[x + 2 * WIDTH], s[side]
    size = (abs(left) + abs(middle)) + (abs(right) + abs(b))
    return abs((left + middle) + (right - b)), size


@device
def _round(s: Array, columns: Columns) -> None:
    """Round the solutions as x does, where they are stored."""
    kind = columns.x.dtype.type
    for k in range(ROWS * WIDTH):
        s[FOUND + WIDTH + k] = kind(s[FOUND + WIDTH + k])


@device
def _count_off(s: Array, c: int, limit: float) -> None:
    """How many rows of each lane are off by more than `limit`; goes to BAD."""
    c = max(0, min(c, COLUMNS - 1))
    for t in range(LANES):
        s[BAD + t] = 0.0
    for j in range(ROWS):
        for t in range(LANES):
            at = j * WIDTH + c * LANES + t
            value, size = _residual(s, j * LANES + t, SIDES + at, FOUND + at)
            good = (value <= limit * size) & (size <= LARGE * LARGE)
            s[BAD + t] += 0.0 if good else 1.0


@device
def mark_columns(tile: int, s: Array, columns: Columns, check: RowCheck, rank: int) -> None:
    """Mark the rows of a tile that are off, and count them."""
    if columns.x.itemsize < s.itemsize:
        _round(s, columns)
    for c in range(columns.number):
        _count_off(s, c, check.limit)
        marks = check.marks[c]
        for lane in range(min(LANES, marks.shape[0] - tile * LANES)):
            mark, count = marks[tile * LANES + lane], int(s[BAD + lane])
            clear_marks(mark)
            check.off[c, rank] += count
            if count > 0:
                for j in range(ROWS):
                    at = j * WIDTH + c * LANES + lane
                    value, size = _residual(s, j * LANES + lane, SIDES + at, FOUND + at)
                    if is_off(value, size, check.limit) > 0:
                        set_mark(mark, j)
