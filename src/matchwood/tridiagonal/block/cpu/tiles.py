"""One part of a block tridiagonal system: its rows to four equations between its ends, and back.

As ../../plain/cpu/tiles.py, with 2x2 blocks for numbers.  A part is ROWS consecutive block rows
s..e. The elimination goes down the rows and carries four equations in the unknowns (X[s-1], X[s] |
X[j-1], X[j]).  Block row j adds two equations, in X[j-1], X[j] and X[j+1].  The two unknowns of
X[j-1] are eliminated one after the other, the first with a pivot among all six equations, the
second among the five that are left; four remain.  Which equations were the pivots is stored, so
that `substitute_tile` takes the same ones.

A step has two stages.  `_reduce_row` chooses the pivots and eliminates in the coefficients.  It
leaves the choice and the multipliers in the scratch buffer.  `_reduce_right` then does the same to
each right-hand side.  So several right-hand sides cost little more than one, and no bit of a
solution depends on how many others are solved with it.

LANES parts, a tile, are computed at the same time, one per lane, in loops that the compiler turns
into vector instructions.  All data of such a loop lie in one array at distances that the compiler
knows.  Equations are exchanged by selections, since each lane has its own pivots.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import device, expanded
from matchwood.tridiagonal.elements.cpu import EPSILON, LARGE, TINY, is_off
from matchwood.tridiagonal.repair.cpu import set_mark

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


# One step of the elimination


@expanded
def known_row(j: int) -> int:
    """j itself; so that the compiler knows its range, without which it makes no vectors."""
    return max(0, min(j, ROWS - 1))


@expanded
def known_side(column: int) -> int:
    """As `known_row`, for the number of a right-hand side."""
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
    """As `_moved_up`, for the five equations after the first."""
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
def _column(s: Array, carried: int, new: int, step: int) -> Any:
    """Four numbers of the carried equations and the two of the new ones, which lie `step` apart."""
    a, b, c, d = s[carried], s[carried + LANES], s[carried + 2 * LANES], s[carried + 3 * LANES]
    return a, b, c, d, s[new], s[new + step]


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
    a = _column(s, MIDDLE + t, at, 2 * LANES)
    b = _column(s, MIDDLE + 4 * LANES + t, at + LANES, 2 * LANES)
    c = _column(s, MIDDLE + 8 * LANES + t, at + 4 * LANES, 2 * LANES)
    d = _column(s, MIDDLE + 12 * LANES + t, at + 5 * LANES, 2 * LANES)
    e = (zero, zero, zero, zero, s[at + 8 * LANES], s[at + 10 * LANES])
    f = (zero, zero, zero, zero, s[at + 9 * LANES], s[at + 11 * LANES])
    if choose:
        first = _pick(a, z)
    a, b, c = _moved_up(a, first), _moved_up(b, first), _moved_up(c, first)
    d, e = _moved_up(d, first), _moved_up(e, first)
    f, z = _moved_up(f, first), _moved_up(z, first)
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
    at = FACTOR + t
    m = (s[at], s[at + LANES], s[at + 2 * LANES], s[at + 3 * LANES], s[at + 4 * LANES])
    m2 = (s[at + 5 * LANES], s[at + 6 * LANES], s[at + 7 * LANES], s[at + 8 * LANES])
    v = _less_first(_moved_up(v, s[PICK + t]), m)
    return _less_second(_moved_up_second(v, s[PICK + LANES + t]), m2)


# A tile


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
        z = _column(s, SIZE + t, SIZE + 4 * LANES + t, LANES)
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
            v = _column(s, carried, new, LANES)
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
    """`_repeat_row` in the right-hand sides."""
    j = known_row(j)
    for column in range(min(columns, COLUMNS)):
        for t in range(LANES):
            carried = CARRIED + column * 4 * LANES + t
            new = RIGHT + column * RIGHT_SIZE + j * 2 * LANES + t
            to = FOUND + column * FOUND_SIZE + j * 2 * LANES + t  # row j - 1
            v = replayed(s, t, _column(s, carried, new, LANES))
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
    """Count the equations of each lane that are off by more than `limit`, in BAD."""
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
