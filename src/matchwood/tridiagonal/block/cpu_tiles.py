"""Between a tile of block rows in the scratch buffer (cpu_steps.py) and the arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import device
from matchwood.tridiagonal.block.cpu_steps import (
    CARRIED,
    FOUND,
    FOUND_SIZE,
    LANES,
    LEFT,
    MIDDLE,
    PICKS,
    RIGHT,
    RIGHT_SIZE,
    ROWS,
    SIZE,
    TILE,
)
from matchwood.tridiagonal.cpu_elements import Columns

Array = np.ndarray[Any, Any]


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
    """The same for all lanes of a tile without missing rows, row by row."""
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
def store_picks(s: Array, picks: Array) -> None:
    """Keep the pivots of a tile for the second pass."""
    for k in range(4 * LANES, ROWS * 2 * LANES):
        picks[k] = np.int8(s[PICKS + k])


@device
def load_picks(s: Array, picks: Array) -> None:
    """The opposite."""
    for k in range(4 * LANES, ROWS * 2 * LANES):
        s[PICKS + k] = picks[k]


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
