"""One part of a block tridiagonal system: its rows to four equations between its ends, and back.

As ../plain/cpu_parts.py, with 2x2 blocks for numbers.  A part is ROWS consecutive block rows s..e.
The elimination goes down the rows and carries four equations in the unknowns
(X[s-1], X[s] | X[j-1], X[j]).  Block row j adds two equations, in X[j-1], X[j] and X[j+1].  The two
unknowns of X[j-1] are eliminated one after the other, the first with a pivot among all six
equations, the second among the five that are left; four remain.  Which equations were the pivots
is stored, so that `substitute_tile` takes the same ones.

A step has two stages.  `_reduce_row` chooses the pivots and eliminates in the coefficients.  It
leaves the choice and the multipliers in the scratch buffer.  `_reduce_right` then does the same to
each right-hand side.  So several right-hand sides cost little more than one, and no bit of a
solution depends on how many others are solved with it.

LANES parts, a tile, are computed at the same time, one per lane.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import device, expanded
from matchwood.tridiagonal.block.cpu_steps import (
    BAD,
    CARRIED,
    COLUMNS,
    FOUND,
    FOUND_SIZE,
    INVERSE,
    LANES,
    LEAST,
    LEFT,
    MIDDLE,
    PICK,
    PICKS,
    PIVOTS,
    RIGHT,
    RIGHT_SIZE,
    ROWS,
    SIZE,
    SUM,
    TILE,
    eliminated,
    keep,
    known_row,
    known_side,
    larger,
    replayed,
    right_sides,
)
from matchwood.tridiagonal.cpu_elements import LARGE, TINY, is_off
from matchwood.tridiagonal.mending.cpu_local import set_mark

Array = np.ndarray[Any, Any]


@expanded
def _size(s: Array, at: int) -> Any:
    """The largest of the six coefficients of a new equation, in absolute value."""
    left = larger(abs(s[at]), abs(s[at + LANES]))
    middle = larger(abs(s[at + 4 * LANES]), abs(s[at + 5 * LANES]))
    right = larger(abs(s[at + 8 * LANES]), abs(s[at + 9 * LANES]))
    return larger(larger(left, middle), right)


@expanded
def _total(s: Array, at: int) -> Any:
    """The sum of the absolute values of its coefficients."""
    left = abs(s[at]) + abs(s[at + LANES])
    middle = abs(s[at + 4 * LANES]) + abs(s[at + 5 * LANES])
    return (left + middle) + (abs(s[at + 8 * LANES]) + abs(s[at + 9 * LANES]))


@device
def _measure(s: Array, j: int, pair: int) -> None:
    """Sizes of both equations of row j, put to that pair; smallest size, sum of all numbers."""
    j, to = known_row(j), SIZE + 2 * max(0, min(pair, 2)) * LANES
    for t in range(LANES):
        at = TILE + j * 12 * LANES + t
        size, other = _size(s, at), _size(s, at + 2 * LANES)
        least = size if size < other else other
        s[LEAST + t] = least if least < s[LEAST + t] else s[LEAST + t]
        s[SUM + t] += _total(s, at) + _total(s, at + 2 * LANES)
        s[to + t] = size + TINY
        s[to + LANES + t] = other + TINY


@device
def _reduce_row(s: Array, j: int) -> None:
    """Eliminate X[j-1] in the coefficients."""
    zero, j = s.dtype.type(0), known_row(j)
    _measure(s, j, 2)
    row = s.dtype.type(j)
    for t in range(LANES):
        at = TILE + j * 12 * LANES + t
        z = (
            s[SIZE + t],
            s[SIZE + LANES + t],
            s[SIZE + 2 * LANES + t],
            s[SIZE + 3 * LANES + t],
            s[SIZE + 4 * LANES + t],
            s[SIZE + 5 * LANES + t],
        )
        _, c, d, e, f, z, none = eliminated(s, t, at, z, True, zero, zero)
        bad = s[BAD + t]
        first = row if bad == zero else bad
        s[BAD + t] = first if none else bad
        s[SIZE + t] = _largest(z[2], c[2], d[2], e[2], f[2])
        s[SIZE + LANES + t] = _largest(z[3], c[3], d[3], e[3], f[3])
        s[SIZE + 2 * LANES + t] = _largest(z[4], c[4], d[4], e[4], f[4])
        s[SIZE + 3 * LANES + t] = _largest(z[5], c[5], d[5], e[5], f[5])
    for t in range(LANES):
        at = PICKS + j * 2 * LANES + t
        s[at] = s[PICK + t]
        s[at + LANES] = s[PICK + LANES + t]
    for t in range(LANES):
        _reduce_left(s, LEFT + t, t)
        _reduce_left(s, LEFT + 4 * LANES + t, t)
        _reduce_left(s, LEFT + 8 * LANES + t, t)
        _reduce_left(s, LEFT + 12 * LANES + t, t)


@expanded
def _largest(size: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
    return larger(size, larger(larger(abs(c), abs(d)), larger(abs(e), abs(f))))


@expanded
def _without_tiny(value: Any) -> Any:
    """Zero for numbers that would become subnormal, which are slow, after a few more steps."""
    return value if abs(value) > TINY else 0.0


@expanded
def _reduce_left(s: Array, at: int, t: int) -> None:
    """The same elimination in a column of the left unknowns, which the new row does not contain."""
    zero = s.dtype.type(0)
    carried = (s[at], s[at + LANES], s[at + 2 * LANES], s[at + 3 * LANES], zero, zero)
    v = replayed(s, t, carried)
    s[SIZE + t] = larger(s[SIZE + t], abs(v[2]))
    s[SIZE + LANES + t] = larger(s[SIZE + LANES + t], abs(v[3]))
    s[SIZE + 2 * LANES + t] = larger(s[SIZE + 2 * LANES + t], abs(v[4]))
    s[SIZE + 3 * LANES + t] = larger(s[SIZE + 3 * LANES + t], abs(v[5]))
    s[at] = _without_tiny(v[2])
    s[at + LANES] = _without_tiny(v[3])
    s[at + 2 * LANES] = _without_tiny(v[4])
    s[at + 3 * LANES] = _without_tiny(v[5])


@device
def _reduce_right(s: Array, j: int, columns: int) -> None:
    """The same elimination in the right-hand sides."""
    j = known_row(j)
    for column in range(min(columns, COLUMNS)):
        for t in range(LANES):
            carried = CARRIED + column * 4 * LANES + t
            new = RIGHT + column * RIGHT_SIZE + j * 2 * LANES + t
            v = right_sides(s, carried, new)
            s[SUM + t] += abs(v[4]) + abs(v[5])
            keep(s, carried, replayed(s, t, v))


@device
def _start(s: Array, columns: int) -> None:
    """The first two block rows are the carried equations."""
    zero = s.dtype.type(0)
    for t in range(LANES):
        for k in range(2):
            at = TILE + k * LANES + t
            for i in range(2):
                upper, lower = i * LANES, (2 + i) * LANES
                first, second = at + 2 * i * LANES, at + (12 + 2 * i) * LANES
                s[LEFT + k * 4 * LANES + upper + t] = s[first]
                s[LEFT + k * 4 * LANES + lower + t] = zero
                s[LEFT + (2 + k) * 4 * LANES + upper + t] = s[first + 4 * LANES]
                s[LEFT + (2 + k) * 4 * LANES + lower + t] = s[second]
                s[MIDDLE + k * 4 * LANES + upper + t] = s[first + 8 * LANES]
                s[MIDDLE + k * 4 * LANES + lower + t] = s[second + 4 * LANES]
                s[MIDDLE + (2 + k) * 4 * LANES + upper + t] = zero
                s[MIDDLE + (2 + k) * 4 * LANES + lower + t] = s[second + 8 * LANES]
    for column in range(min(columns, COLUMNS)):
        for k in range(4 * LANES):
            s[CARRIED + column * 4 * LANES + k] = s[RIGHT + column * RIGHT_SIZE + k]


@device
def reduce_tile(s: Array, columns: int) -> None:
    """Eliminate the inner unknowns of every lane's part: what is carried then is its element."""
    _start(s, columns)
    for t in range(LANES):
        s[BAD + t] = 0
        s[SUM + t] = 0
        s[LEAST + t] = 1
    _measure(s, 0, 0)
    _measure(s, 1, 1)
    for column in range(min(columns, COLUMNS)):
        for k in range(4):
            for t in range(LANES):
                s[SUM + t] += abs(s[CARRIED + (column * 4 + k) * LANES + t])
    for j in range(2, ROWS):
        _reduce_row(s, j)
        _reduce_right(s, j, columns)


@device
def _repeat_row(s: Array, j: int) -> None:
    """Eliminate X[j-1] again, with the stored pivots, and store the pivot rows."""
    zero, j = s.dtype.type(0), known_row(j)
    for t in range(LANES):
        at = PICKS + j * 2 * LANES + t
        s[PICK + t] = s[at]
        s[PICK + LANES + t] = s[at + LANES]
    for t in range(LANES):
        at, to = TILE + j * 12 * LANES + t, PIVOTS + (j - 1) * 9 * LANES + t
        no_sizes = (zero, zero, zero, zero, zero, zero)
        first, second = s[PICK + t], s[PICK + LANES + t]
        b, c, d, e, f, _, _ = eliminated(s, t, at, no_sizes, False, first, second)
        inverse, other = s[INVERSE + t], s[INVERSE + LANES + t]
        s[to] = b[0] * inverse
        s[to + LANES] = c[0] * inverse
        s[to + 2 * LANES] = d[0] * inverse
        s[to + 3 * LANES] = e[0] * inverse
        s[to + 4 * LANES] = f[0] * inverse
        s[to + 5 * LANES] = c[1] * other
        s[to + 6 * LANES] = d[1] * other
        s[to + 7 * LANES] = e[1] * other
        s[to + 8 * LANES] = f[1] * other


@device
def _repeat_right(s: Array, j: int, columns: int) -> None:
    """The same in the right-hand sides."""
    j = known_row(j)
    for column in range(min(columns, COLUMNS)):
        for t in range(LANES):
            carried = CARRIED + column * 4 * LANES + t
            new = RIGHT + column * RIGHT_SIZE + j * 2 * LANES + t
            to = FOUND + column * FOUND_SIZE + j * 2 * LANES + t  # row j - 1
            v = replayed(s, t, right_sides(s, carried, new))
            keep(s, carried, v)
            s[to] = v[0] * s[INVERSE + t]
            s[to + LANES] = v[1] * s[INVERSE + LANES + t]


@expanded
def _unknowns(s: Array, at: int, x: int, following: Any) -> Any:
    """X[j] from X[j+1] and X[j+2]; its pivot rows are at `at`, their right-hand sides at `x`."""
    x1, x2, x3, x4 = following
    lower = s[x + LANES] - (
        (s[at + 5 * LANES] * x1 + s[at + 6 * LANES] * x2)
        + (s[at + 7 * LANES] * x3 + s[at + 8 * LANES] * x4)
    )
    upper = s[x] - (
        (s[at + LANES] * x1 + s[at + 2 * LANES] * x2)
        + (s[at + 3 * LANES] * x3 + s[at + 4 * LANES] * x4)
    )
    return upper - s[at] * lower, lower


@device
def _substitute_back(s: Array, column: int) -> None:
    """The inner unknowns of every part, from its last.

    Two block rows at a time: the compiler would unroll a shorter loop over lanes, and then not
    turn it into vector instructions.
    """
    column = known_side(column)
    for back in range((ROWS - 2) // 2):
        j = ROWS - 2 - 2 * back
        for t in range(LANES):
            at = PIVOTS + j * 9 * LANES + t
            x = FOUND + column * FOUND_SIZE + (j + 1) * 2 * LANES + t
            following = (s[x + 2 * LANES], s[x + 3 * LANES], s[x + 4 * LANES], s[x + 5 * LANES])
            x1, x2 = _unknowns(s, at, x, following)
            s[x], s[x + LANES] = x1, x2
            following = (x1, x2, following[0], following[1])
            x1, x2 = _unknowns(s, at - 9 * LANES, x - 2 * LANES, following)
            s[x - 2 * LANES], s[x - LANES] = x1, x2


@device
def _set_ends(tile: int, s: Array, ends: Array, column: int) -> None:
    """Put the ends of every part into their places, X[s-1], X[s], X[e] and X[e+1]."""
    parts = ends.shape[0] - 1
    for lane in range(LANES):
        part = min(tile * LANES + lane, parts - 1)
        to = FOUND + column * FOUND_SIZE + lane
        for k in range(4):
            s[to + k * LANES] = ends[part, k]
            s[to + (2 * ROWS + k) * LANES] = ends[part + 1, k]


@device
def _move_known(s: Array, column: int) -> None:
    """Move the terms of X[s-1] and X[s] to the right-hand sides of the first two rows."""
    column = known_side(column)
    for t in range(LANES):
        x = FOUND + column * FOUND_SIZE + t
        for i in range(2):
            to = CARRIED + (column * 4 + i) * LANES + t
            first, second = TILE + 2 * i * LANES + t, TILE + (12 + 2 * i) * LANES + t
            before = s[first] * s[x] + s[first + LANES] * s[x + LANES]
            here, other = s[x + 2 * LANES], s[x + 3 * LANES]
            s[to] -= before + (s[first + 4 * LANES] * here + s[first + 5 * LANES] * other)
            s[to + 2 * LANES] -= s[second] * here + s[second + LANES] * other


@device
def substitute_tile(tile: int, s: Array, ends: Array, columns: int) -> None:
    """The same elimination without the left unknowns, then back substitution."""
    _start(s, columns)
    for column in range(min(columns, COLUMNS)):
        _set_ends(tile, s, ends[column], column)
        _move_known(s, column)
    for j in range(2, ROWS):
        _repeat_row(s, j)
        _repeat_right(s, j, columns)
    for column in range(min(columns, COLUMNS)):
        _substitute_back(s, column)


@device
def round_solution(s: Array, column: int, x: Array) -> None:
    """Round a solution as x does, where it will be stored."""
    for k in range(FOUND_SIZE):
        at = FOUND + column * FOUND_SIZE + k
        s[at] = x.dtype.type(s[at])


@expanded
def _residual(s: Array, at: int, b: int, x: int) -> Any:
    """The residual of an equation, and the sum of |terms|."""
    t0, t1 = s[at] * s[x], s[at + LANES] * s[x + LANES]
    t2, t3 = s[at + 4 * LANES] * s[x + 2 * LANES], s[at + 5 * LANES] * s[x + 3 * LANES]
    t4, t5 = s[at + 8 * LANES] * s[x + 4 * LANES], s[at + 9 * LANES] * s[x + 5 * LANES]
    value = ((t0 + t1) + (t2 + t3)) + ((t4 + t5) - s[b])
    size = ((abs(t0) + abs(t1)) + (abs(t2) + abs(t3))) + ((abs(t4) + abs(t5)) + abs(s[b]))
    return abs(value), size


@device
def count_off(s: Array, column: int, limit: float) -> None:
    """How many equations of each lane are off by more than `limit`; goes to BAD."""
    column = known_side(column)
    for t in range(LANES):
        s[BAD + t] = 0
    for j in range(ROWS):
        for t in range(LANES):
            at = TILE + j * 12 * LANES + t
            b = RIGHT + column * RIGHT_SIZE + j * 2 * LANES + t
            x = FOUND + column * FOUND_SIZE + j * 2 * LANES + t
            value, size = _residual(s, at, b, x)
            good = (value <= limit * size) & (size <= LARGE * LARGE)
            first = 0.0 if good else 1.0
            value, size = _residual(s, at + 2 * LANES, b + LANES, x)
            good = (value <= limit * size) & (size <= LARGE * LARGE)
            s[BAD + t] += first + (0.0 if good else 1.0)


@device
def mark_off(s: Array, lane: int, column: int, limit: float, mark: Array) -> None:
    """Mark the block rows of a lane's part that are off."""
    for j in range(ROWS):
        x = FOUND + column * FOUND_SIZE + j * 2 * LANES + lane
        for i in range(2):
            at = TILE + (j * 12 + 2 * i) * LANES + lane
            b = RIGHT + column * RIGHT_SIZE + (j * 2 + i) * LANES + lane
            value, size = _residual(s, at, b, x)
            if is_off(value, size, limit) > 0:
                set_mark(mark, j)
