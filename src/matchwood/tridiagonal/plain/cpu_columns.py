"""Several right-hand sides of a tridiagonal system in one pass over its matrix.

The first of them is solved with the coefficients, by cpu_parts.py, which records the pivots and
multipliers of the elimination.  Here the same is done to the others, the sides.  So no bit of a
solution depends on how many others are solved with it.

Three rows are treated at a time: the compiler would unroll a shorter loop over the lanes, and then
not turn it into vector instructions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.teams import device, expanded
from matchwood.tridiagonal.cpu_elements import Columns, Rows
from matchwood.tridiagonal.plain.cpu_parts import (
    CHOICE,
    DIAGONAL,
    FACTOR_A,
    FACTOR_B,
    INVERSE,
    LANES,
    LOWER,
    RECORDED,
    RIGHT,
    ROWS,
    SUM,
    TILE,
    UPPER,
    mark_off,
)

Array = np.ndarray[Any, Any]

COLUMNS = 8  # right-hand sides that are solved together, at most
STEP = 3  # rows at a time; ROWS - 2 is a multiple
CARRIED = RECORDED  # COLUMNS x 2: the right-hand sides of A and B
SIDES = CARRIED + COLUMNS * 2 * LANES  # COLUMNS x TILE: right-hand sides, then solutions
SCRATCH = SIDES + COLUMNS * TILE


@device
def load_sides(tile: int, system: Rows, columns: Columns, s: Array) -> None:
    """Load the right-hand sides of a tile; rows past the end have zero."""
    n, perm, row, column = system.d.size, system.perm, columns.row, columns.column
    for lane in range(LANES):
        start = (tile * LANES + lane) * ROWS
        rows = max(0, min(ROWS, n - start))
        to = SIDES + lane
        for j in range(rows):
            place = np.int64(perm[start + j]) if perm.size > 0 else start + j
            for c in range(columns.count):
                s[to + c * TILE + j * LANES] = columns.b[np.uint64(place * row + c * column)]
        for c in range(columns.count):
            for j in range(rows, ROWS):
                s[to + c * TILE + j * LANES] = 0
    for k in range(TILE):
        s[RIGHT + k] = s[SIDES + k]


@expanded
def _known(column: int) -> int:
    """The number itself; without its range the compiler would make no vectors."""
    return max(0, min(column, COLUMNS - 1))


@expanded
def _stepped(s: Array, at: int, new: Any, a: Any, b: Any) -> Any:
    """One row of the recorded elimination: the pivot row's right-hand side, then A's and B's."""
    choice = s[CHOICE + at]
    swap, fresh = choice >= 2.0, (choice == 1.0) | (choice == 3.0)
    p, q = (b if swap else a), (a if swap else b)
    k, o = (new if fresh else p), (p if fresh else new)
    return k, q - s[FACTOR_A + at] * k, o - s[FACTOR_B + at] * k


@device
def reduce_side(s: Array, column: int) -> None:
    """The recorded elimination in one right-hand side."""
    column = _known(column)
    for t in range(LANES):
        to, at = CARRIED + column * 2 * LANES + t, SIDES + column * TILE + t
        s[to], s[to + LANES] = s[at], s[at + LANES]
        s[SUM + t] += abs(s[at]) + abs(s[at + LANES])
    for step in range((ROWS - 2) // STEP):
        for t in range(LANES):
            to, at = CARRIED + column * 2 * LANES + t, (2 + step * STEP) * LANES + t
            side = SIDES + column * TILE + at
            v0, v1, v2 = s[side], s[side + LANES], s[side + 2 * LANES]
            s[SUM + t] += (abs(v0) + abs(v1)) + abs(v2)
            _, a, b = _stepped(s, at, v0, s[to], s[to + LANES])
            _, a, b = _stepped(s, at + LANES, v1, a, b)
            _, a, b = _stepped(s, at + 2 * LANES, v2, a, b)
            s[to], s[to + LANES] = a, b


@device
def store_side(tile: int, s: Array, elements: Array, column: int) -> None:
    """Store the right-hand sides of A and B in the elements, of which `elements` has the first."""
    for lane in range(LANES):
        part = tile * LANES + lane
        if part < elements.shape[0]:
            at = CARRIED + column * 2 * LANES + lane
            elements[part, 0, 6 + column] = s[at]
            elements[part, 1, 6 + column] = s[at + LANES]


@device
def load_side_ends(tile: int, s: Array, ends: Array, column: int) -> None:
    """Move the terms of known unknowns to the first two right-hand sides; `load_ends` for a side.

    The coefficients of the rows must still be there.
    """
    parts = ends.shape[0] - 1
    for lane in range(LANES):
        part = min(tile * LANES + lane, parts - 1)
        before, first = ends[part, 0], ends[part, 1]
        at = SIDES + column * TILE + lane
        s[at] -= s[LOWER + lane] * before + s[DIAGONAL + lane] * first
        s[at + LANES] -= s[LOWER + LANES + lane] * first


@device
def substitute_side(tile: int, s: Array, ends: Array, column: int) -> None:
    """The recorded elimination again, then back substitution: the solution replaces b."""
    column = _known(column)
    for t in range(LANES):
        to, at = CARRIED + column * 2 * LANES + t, SIDES + column * TILE + t
        s[to], s[to + LANES] = s[at], s[at + LANES]
    for step in range((ROWS - 2) // STEP):
        for t in range(LANES):
            to, at = CARRIED + column * 2 * LANES + t, (2 + step * STEP) * LANES + t
            side = SIDES + column * TILE + at
            v0, v1, v2 = s[side], s[side + LANES], s[side + 2 * LANES]
            k, a, b = _stepped(s, at, v0, s[to], s[to + LANES])
            s[side - LANES] = k * s[INVERSE + at]
            k, a, b = _stepped(s, at + LANES, v1, a, b)
            s[side] = k * s[INVERSE + at + LANES]
            k, a, b = _stepped(s, at + 2 * LANES, v2, a, b)
            s[side + LANES] = k * s[INVERSE + at + 2 * LANES]
            s[to], s[to + LANES] = a, b
    _set_ends(tile, s, ends, column)
    _substitute_back(s, column)


@device
def _set_ends(tile: int, s: Array, ends: Array, column: int) -> None:
    """Put the first and the last unknown of each part into their places, that after it aside."""
    parts = ends.shape[0] - 1
    for lane in range(LANES):
        part = min(tile * LANES + lane, parts - 1)
        at = SIDES + column * TILE + lane
        s[at] = ends[part, 1]
        s[at + TILE - LANES] = ends[part + 1, 0]
        s[CARRIED + column * 2 * LANES + lane] = ends[part + 1, 1]


@expanded
def _unknown(s: Array, at: int, right: Any, x1: Any, x2: Any) -> Any:
    return right - s[LOWER + at] * x1 - s[UPPER + at] * x2


@device
def _substitute_back(s: Array, column: int) -> None:
    """x[j] from x[j+1] and x[j+2], with the pivot rows that the first right-hand side left."""
    column = _known(column)
    for step in range((ROWS - 2) // STEP):
        for t in range(LANES):
            at = (ROWS - 2 - step * STEP) * LANES + t
            side, after = SIDES + column * TILE + at, CARRIED + column * 2 * LANES + t
            x1, x2 = s[side + LANES], s[after]
            x0 = _unknown(s, at, s[side], x1, x2)
            s[side] = x0
            x1, x2 = x0, x1
            x0 = _unknown(s, at - LANES, s[side - LANES], x1, x2)
            s[side - LANES] = x0
            x1, x2 = x0, x1
            x0 = _unknown(s, at - 2 * LANES, s[side - 2 * LANES], x1, x2)
            s[side - 2 * LANES] = x0
            s[after] = x1


@device
def store_sides(tile: int, s: Array, system: Rows, columns: Columns) -> None:
    """Store all solutions of the tile's rows."""
    n, perm, row, column = system.d.size, system.perm, columns.row, columns.column
    for k in range(TILE):
        s[SIDES + k] = s[DIAGONAL + k]
    for lane in range(LANES):
        start = (tile * LANES + lane) * ROWS
        at = SIDES + lane
        for j in range(max(0, min(ROWS, n - start))):
            place = np.int64(perm[start + j]) if perm.size > 0 else start + j
            for c in range(columns.count):
                columns.x[np.uint64(place * row + c * column)] = s[at + c * TILE + j * LANES]


@device
def mark_side(
    part: int, system: Rows, columns: Columns, c: int, ends: Array, limit: float, mark: Array
) -> int:
    """Mark the rows of a part that are off in one column; returns how many."""
    start = part * ROWS
    rows = min(ROWS, system.d.size - start)
    first, step = start * columns.row + c * columns.column, columns.row
    last = first + (rows - 1) * step + 1
    b, x = columns.b[first:last:step], columns.x[first:last:step]
    return mark_off(part, system, b, x, ends, limit, mark)
