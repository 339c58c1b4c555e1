"""One step of the elimination in a tile of block rows, and the layout of its scratch buffer.

LANES parts, a tile, are computed at the same time, one per lane, in loops that the compiler turns
into vector instructions.  All data of such a loop lie in one array at distances that the compiler
knows.  Equations are exchanged by selections, since each lane has its own pivots.  What the steps
are for: cpu_parts.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import expanded
from matchwood.tridiagonal.cpu_elements import EPSILON

Array = np.ndarray[Any, Any]

LANES = 8  # parts of a tile: two vectors of AVX2 in double precision, one of AVX-512
ROWS = 64  # block rows of a part
COLUMNS = 8  # right-hand sides that are solved together, at most

# Offsets in a thread's scratch buffer; each item has one number for every lane.
LEFT = 0  # 4 x 4: the carried equations' coefficients of X[s-1], X[s], column by column
MIDDLE = LEFT + 16 * LANES  # 4 x 4: those of X[j-1], X[j], column by column
SIZE = MIDDLE + 16 * LANES  # 6: the largest coefficient that each equation has or had
BAD = SIZE + 6 * LANES  # the row after the first unknown without a pivot; 0 = none
SUM = BAD + LANES  # the sum of the absolute values of all numbers
LEAST = SUM + LANES  # the smallest size of a row
PICK = LEAST + LANES  # 2: which equation is the pivot
FACTOR = PICK + 2 * LANES  # 9: the multipliers of both eliminations
INVERSE = FACTOR + 9 * LANES  # 2: one over the pivots
PICKS = INVERSE + 2 * LANES  # ROWS x 2: all choices
TILE = PICKS + ROWS * 2 * LANES  # ROWS x 12: dl, d, du, four numbers each
PIVOTS = TILE + ROWS * 12 * LANES  # ROWS x 9: the pivot rows, divided by their pivots
CARRIED = PIVOTS + ROWS * 9 * LANES  # COLUMNS x 4: the carried equations' right-hand sides
RIGHT = CARRIED + COLUMNS * 4 * LANES  # COLUMNS x ROWS x 2: right-hand sides
RIGHT_SIZE = ROWS * 2 * LANES  # numbers of one of them
# COLUMNS x (ROWS + 2) x 2: right-hand sides of the pivot rows, then the solutions X[s-1] to X[e+1]
FOUND = RIGHT + COLUMNS * RIGHT_SIZE
FOUND_SIZE = (ROWS + 2) * 2 * LANES  # numbers of one of them
SCRATCH = FOUND + COLUMNS * FOUND_SIZE


@expanded
def known_row(j: int) -> int:
    """j itself; so that the compiler knows its range, without which it makes no vectors."""
    return max(0, min(j, ROWS - 1))


@expanded
def known_side(column: int) -> int:
    """The same for the number of a right-hand side."""
    return max(0, min(column, COLUMNS - 1))


@expanded
def larger(a: Any, b: Any) -> Any:
    return a if a > b else b


@expanded
def _moved_up(v: Any, pick: Any) -> Any:
    """Six equations' entries of one column with equation `pick` and the first one exchanged."""
    v0, v1, v2, v3, v4, v5 = v
    top = v1 if pick == 1.0 else v0
    top = v2 if pick == 2.0 else top
    top = v3 if pick == 3.0 else top
    top = v4 if pick == 4.0 else top
    top = v5 if pick == 5.0 else top
    return (
        top,
        v0 if pick == 1.0 else v1,
        v0 if pick == 2.0 else v2,
        v0 if pick == 3.0 else v3,
        v0 if pick == 4.0 else v4,
        v0 if pick == 5.0 else v5,
    )


@expanded
def _moved_up_second(v: Any, pick: Any) -> Any:
    """The same for the five equations after the first."""
    v0, v1, v2, v3, v4, v5 = v
    top = v2 if pick == 2.0 else v1
    top = v3 if pick == 3.0 else top
    top = v4 if pick == 4.0 else top
    top = v5 if pick == 5.0 else top
    return (
        v0,
        top,
        v1 if pick == 2.0 else v2,
        v1 if pick == 3.0 else v3,
        v1 if pick == 4.0 else v4,
        v1 if pick == 5.0 else v5,
    )


@expanded
def _less_first(v: Any, m: Any) -> Any:
    """Subtract the first equation from the others."""
    v0, v1, v2, v3, v4, v5 = v
    m1, m2, m3, m4, m5 = m
    return v0, v1 - m1 * v0, v2 - m2 * v0, v3 - m3 * v0, v4 - m4 * v0, v5 - m5 * v0


@expanded
def _less_second(v: Any, m: Any) -> Any:
    """Subtract the second equation from those after it."""
    v0, v1, v2, v3, v4, v5 = v
    m2, m3, m4, m5 = m
    return v0, v1, v2 - m2 * v1, v3 - m3 * v1, v4 - m4 * v1, v5 - m5 * v1


@expanded
def _better(so_far: Any, number: Any, entry: Any, size: Any) -> Any:
    """The better pivot of two: (number of the equation, absolute value, size of the row)."""
    best, value, its_size = so_far
    better = abs(entry) * its_size > value * size
    return (
        number if better else best,
        abs(entry) if better else value,
        size if better else its_size,
    )


@expanded
def _pick(v: Any, z: Any) -> Any:
    """Which of six entries is the largest relative to the size of its row."""
    best = _better((0.0, abs(v[0]), z[0]), 1.0, v[1], z[1])
    best = _better(best, 2.0, v[2], z[2])
    best = _better(best, 3.0, v[3], z[3])
    best = _better(best, 4.0, v[4], z[4])
    return _better(best, 5.0, v[5], z[5])[0]


@expanded
def _pick_second(v: Any, z: Any) -> Any:
    """Which of the five entries after the first is."""
    best = _better((1.0, abs(v[1]), z[1]), 2.0, v[2], z[2])
    best = _better(best, 3.0, v[3], z[3])
    best = _better(best, 4.0, v[4], z[4])
    return _better(best, 5.0, v[5], z[5])[0]


@expanded
def _pivot(value: Any, rest: Any) -> Any:
    """The pivot; in place of zero a number as large as the rounding errors of its row."""
    tiny = EPSILON * rest
    tiny = tiny if tiny > 0.0 else EPSILON
    return tiny if value == 0.0 else value


@expanded
def _column(s: Array, carried: int, new: int) -> Any:
    """The entries of the four carried equations and of the two new ones in one column."""
    return (
        s[carried],
        s[carried + LANES],
        s[carried + 2 * LANES],
        s[carried + 3 * LANES],
        s[new],
        s[new + 2 * LANES],
    )


@expanded
def keep(s: Array, to: int, v: Any) -> None:
    """Store the last four entries of a column: the equations that are carried on."""
    s[to] = v[2]
    s[to + LANES] = v[3]
    s[to + 2 * LANES] = v[4]
    s[to + 3 * LANES] = v[5]


@expanded
def eliminated(s: Array, t: int, at: int, z: Any, choose: bool, first: Any, second: Any) -> Any:
    """Eliminate X[j-1] in the columns of X[j-1], X[j], X[j+1].

    The new rows are at `at`.  Pivots are chosen with the sizes z, or given.
    """
    zero, one = s.dtype.type(0), s.dtype.type(1)
    a = _column(s, MIDDLE + t, at)
    b = _column(s, MIDDLE + 4 * LANES + t, at + LANES)
    c = _column(s, MIDDLE + 8 * LANES + t, at + 4 * LANES)
    d = _column(s, MIDDLE + 12 * LANES + t, at + 5 * LANES)
    e = (zero, zero, zero, zero, s[at + 8 * LANES], s[at + 10 * LANES])
    f = (zero, zero, zero, zero, s[at + 9 * LANES], s[at + 11 * LANES])
    if choose:
        first = _pick(a, z)
    a, b, c = _moved_up(a, first), _moved_up(b, first), _moved_up(c, first)
    d, e, f, z = (
        _moved_up(d, first),
        _moved_up(e, first),
        _moved_up(f, first),
        _moved_up(z, first),
    )
    rest = abs(b[0]) + ((abs(c[0]) + abs(d[0])) + (abs(e[0]) + abs(f[0])))
    none = a[0] == zero
    inverse = one / _pivot(a[0], rest)
    m = (a[1] * inverse, a[2] * inverse, a[3] * inverse, a[4] * inverse, a[5] * inverse)
    b, c, d = _less_first(b, m), _less_first(c, m), _less_first(d, m)
    e, f = _less_first(e, m), _less_first(f, m)
    if choose:
        second = _pick_second(b, z)
    b, c, d = _moved_up_second(b, second), _moved_up_second(c, second), _moved_up_second(d, second)
    e, f, z = _moved_up_second(e, second), _moved_up_second(f, second), _moved_up_second(z, second)
    rest = (abs(c[1]) + abs(d[1])) + (abs(e[1]) + abs(f[1]))
    none = none | (b[1] == zero)
    other = one / _pivot(b[1], rest)
    m2 = (b[2] * other, b[3] * other, b[4] * other, b[5] * other)
    c, d = _less_second(c, m2), _less_second(d, m2)
    e, f = _less_second(e, m2), _less_second(f, m2)
    s[FACTOR + t] = m[0]
    s[FACTOR + LANES + t] = m[1]
    s[FACTOR + 2 * LANES + t] = m[2]
    s[FACTOR + 3 * LANES + t] = m[3]
    s[FACTOR + 4 * LANES + t] = m[4]
    s[FACTOR + 5 * LANES + t] = m2[0]
    s[FACTOR + 6 * LANES + t] = m2[1]
    s[FACTOR + 7 * LANES + t] = m2[2]
    s[FACTOR + 8 * LANES + t] = m2[3]
    s[INVERSE + t] = inverse
    s[INVERSE + LANES + t] = other
    s[PICK + t] = first
    s[PICK + LANES + t] = second
    keep(s, MIDDLE + t, c)
    keep(s, MIDDLE + 4 * LANES + t, d)
    keep(s, MIDDLE + 8 * LANES + t, e)
    keep(s, MIDDLE + 12 * LANES + t, f)
    return b, c, d, e, f, z, none


@expanded
def replayed(s: Array, t: int, v: Any) -> Any:
    """Both eliminations in another column, with the pivots and multipliers of this step."""
    v = _less_first(
        _moved_up(v, s[PICK + t]),
        (
            s[FACTOR + t],
            s[FACTOR + LANES + t],
            s[FACTOR + 2 * LANES + t],
            s[FACTOR + 3 * LANES + t],
            s[FACTOR + 4 * LANES + t],
        ),
    )
    return _less_second(
        _moved_up_second(v, s[PICK + LANES + t]),
        (
            s[FACTOR + 5 * LANES + t],
            s[FACTOR + 6 * LANES + t],
            s[FACTOR + 7 * LANES + t],
            s[FACTOR + 8 * LANES + t],
        ),
    )


@expanded
def right_sides(s: Array, carried: int, new: int) -> Any:
    """The right-hand sides of the four carried equations and of the two new ones."""
    return (
        s[carried],
        s[carried + LANES],
        s[carried + 2 * LANES],
        s[carried + 3 * LANES],
        s[new],
        s[new + LANES],
    )
