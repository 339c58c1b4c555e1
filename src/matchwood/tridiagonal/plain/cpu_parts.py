"""One part of a tridiagonal system: its rows to two equations between its ends, and back.

A part is ROWS consecutive rows s..e.  Its inner unknowns s+1..e-1 occur in no other row, so they
can be eliminated by its own rows with row pivoting; there is always a pivot unless the matrix is
singular.  Two equations in x[s-1], x[s], x[e], x[e+1] are left: an element.  cpu_elements.py solves
for the ends; `substitute_tile` then computes the inner unknowns.

The elimination goes down the rows and carries two equations A, B, both in the unknowns
(x[s-1], x[s] | x[j], x[j+1]).  Row j+1 is the third.  The pivot is the one of the three whose
coefficient of x[j] is the largest relative to the size of its row.  The size of a row is the
largest entry that it has or had since the part began.  With its size at the beginning, A and B
could grow by a factor of 1.618 per row.  With its present size alone, rows that have become small
would be taken too often.

Growth: let s(p) be the size of the pivot row p, with pivot k, and s(q) that of another row q, with
entry c.  The rule is |c| / s(q) <= |k| / s(p), so what is subtracted from q is at most
|c / k| s(p) <= s(q).  One step at most doubles a row, relative to its own size, and a row that has
grown is no pivot for small ones.  For all levels see docs/problems/tridiagonal.rst.  The choice of
rows is stored, so that `substitute_tile` takes the same ones.

LANES parts, a tile, are computed at the same time, one per lane, in loops that the compiler turns
into vector instructions.  All data of such a loop lie in one array at constant distances.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.teams import device
from matchwood.tridiagonal.cpu_elements import LARGE, TINY, Rows, is_off
from matchwood.tridiagonal.mending.cpu_local import clear_marks, set_mark

Array = np.ndarray[Any, Any]

LANES = 8  # parts of a tile: two vectors of AVX2 in double precision, one of AVX-512
ROWS = 128  # rows of a part; a tile, 4 arrays x 128 rows x 8 lanes, is 32 KiB
TILE = ROWS * LANES  # numbers of one array of a tile
# Which row was the pivot of each of the 126 inner unknowns: a number 0 to 3, which is a digit to
# base 4 of a fraction.  There are WORDS fractions of STEPS digits.
WORDS, STEPS = 6, 21

# Offsets in a thread's scratch buffer: one number for each lane.
A_L1, A_L2, A_R1, A_R2, A_F, A_SIZE = (k * LANES for k in range(6))
B_L1, B_L2, B_R1, B_R2, B_F, B_SIZE = (k * LANES for k in range(6, 12))
BAD = 12 * LANES  # the row after the first unknown without a pivot; 0 = none
SUM = 13 * LANES  # the sum of the absolute values of all numbers
LEAST = 14 * LANES  # the smallest size of a row
X0, X1, X2 = (k * LANES for k in range(15, 18))
CHOICES = 18 * LANES
LOWER = CHOICES + WORDS * LANES  # the tile: dl, d, du, b; then the pivot rows
DIAGONAL = LOWER + TILE
UPPER = DIAGONAL + TILE
RIGHT = UPPER + TILE
SCRATCH = RIGHT + TILE


@device
def _load_array(values: Array, start: int, rows: int, filler: Any, s: Array, to: int) -> None:
    """Copy one lane's part of an array, from place `to` on; missing rows become `filler`."""
    part = values[start:]
    for j in range(rows):
        s[to + j * LANES] = part[j]
    for j in range(rows, ROWS):
        s[to + j * LANES] = filler


@device
def _load_whole(values: Array, s: Array, to: int) -> None:
    """The same for all lanes of a tile without missing rows: a row of lanes is one vector."""
    for j in range(ROWS):
        for lane in range(LANES):
            s[to + j * LANES + lane] = values[lane * ROWS + j]


@device
def load_tile(tile: int, system: Rows, s: Array) -> None:
    """Load the rows of a tile; rows past the end are x = 0."""
    dl, d, du, b, perm = system
    n, start = d.size, tile * TILE
    whole, gather = start + TILE <= n, perm.size > 0
    if whole:
        _load_whole(dl[start:], s, LOWER)
        _load_whole(d[start:], s, DIAGONAL)
        _load_whole(du[start:], s, UPPER)
    if whole and not gather:
        _load_whole(b[start:], s, RIGHT)
    for lane in range(LANES):
        start = (tile * LANES + lane) * ROWS
        rows = max(0, min(ROWS, n - start))
        if not whole:
            _load_array(dl, start, rows, 0, s, LOWER + lane)
            _load_array(d, start, rows, 1, s, DIAGONAL + lane)
            _load_array(du, start, rows, 0, s, UPPER + lane)
        if gather:
            part = perm[start:]
            for j in range(rows):
                s[RIGHT + j * LANES + lane] = b[np.uint64(part[j])]
            for j in range(rows, ROWS):
                s[RIGHT + j * LANES + lane] = 0
        elif not whole:
            _load_array(b, start, rows, 0, s, RIGHT + lane)
        if start == 0:
            s[LOWER + lane] = 0
        if start < n <= start + ROWS:
            s[UPPER + (n - 1 - start) * LANES + lane] = 0


@device
def _larger(a: Any, b: Any) -> Any:
    return a if a > b else b


@device
def _stand_in(second: Any, third: Any, epsilon: Any) -> Any:
    """The replacement of a zero pivot: as large as the rounding errors of its row."""
    tiny = epsilon * (abs(second) + abs(third))
    return tiny if tiny > 0 else epsilon


@device
def _start(s: Array) -> None:
    """Set A and B to the first two rows of every lane's part."""
    zero = s.dtype.type(0)
    for t in range(LANES):
        s[A_L1 + t] = s[LOWER + t]
        s[A_L2 + t] = s[DIAGONAL + t]
        s[A_R1 + t] = s[UPPER + t]
        s[A_R2 + t] = zero
        s[A_F + t] = s[RIGHT + t]
        s[B_L1 + t] = zero
        s[B_L2 + t] = s[LOWER + LANES + t]
        s[B_R1 + t] = s[DIAGONAL + LANES + t]
        s[B_R2 + t] = s[UPPER + LANES + t]
        s[B_F + t] = s[RIGHT + LANES + t]


@device
def reduce_tile(s: Array) -> None:
    """Eliminate the inner unknowns of every lane's part: A and B are its element afterwards."""
    zero, one, two, four = s.dtype.type(0), s.dtype.type(1), s.dtype.type(2), s.dtype.type(4)
    epsilon, tiny = s.dtype.type(2.0**-52), s.dtype.type(TINY)
    _start(s)
    for t in range(LANES):
        s[BAD + t] = zero
        s[SUM + t] = zero
        s[LEAST + t] = one
    for j in range(2):
        for t in range(LANES):
            at = j * LANES + t
            c1, c2, c3 = abs(s[LOWER + at]), abs(s[DIAGONAL + at]), abs(s[UPPER + at])
            c_size = _larger(_larger(c1, c2), c3)
            s[SUM + t] += (c1 + c2) + (c3 + abs(s[RIGHT + at]))
            s[LEAST + t] = c_size if c_size < s[LEAST + t] else s[LEAST + t]
            s[(A_SIZE if j == 0 else B_SIZE) + t] = c_size + tiny
    for word in range(WORDS):
        for t in range(LANES):
            s[CHOICES + word * LANES + t] = zero
        scale = one
        for step in range(STEPS):
            j = 2 + word * STEPS + step
            row = s.dtype.type(j)
            scale /= four
            for t in range(LANES):
                at = j * LANES + t
                c1, c2, c3, cf = s[LOWER + at], s[DIAGONAL + at], s[UPPER + at], s[RIGHT + at]
                c_size = _larger(_larger(abs(c1), abs(c2)), abs(c3))
                s[SUM + t] += (abs(c1) + abs(c2)) + (abs(c3) + abs(cf))
                s[LEAST + t] = c_size if c_size < s[LEAST + t] else s[LEAST + t]
                a_l1, b_l1 = s[A_L1 + t], s[B_L1 + t]
                a_l2, b_l2 = s[A_L2 + t], s[B_L2 + t]
                a_r1, b_r1 = s[A_R1 + t], s[B_R1 + t]
                a_r2, b_r2 = s[A_R2 + t], s[B_R2 + t]
                a_f, b_f = s[A_F + t], s[B_F + t]
                a_size, b_size = s[A_SIZE + t], s[B_SIZE + t]
                swap = abs(b_r1) * a_size > abs(a_r1) * b_size
                p_l1 = b_l1 if swap else a_l1
                q_l1 = a_l1 if swap else b_l1
                p_l2 = b_l2 if swap else a_l2
                q_l2 = a_l2 if swap else b_l2
                p_r1 = b_r1 if swap else a_r1
                q_r1 = a_r1 if swap else b_r1
                p_r2 = b_r2 if swap else a_r2
                q_r2 = a_r2 if swap else b_r2
                p_f = b_f if swap else a_f
                q_f = a_f if swap else b_f
                p_size = b_size if swap else a_size
                q_size = a_size if swap else b_size
                new = abs(c1) * p_size > abs(p_r1) * c_size  # the new row is the pivot, not p
                choice = (two if swap else zero) + (one if new else zero)
                s[CHOICES + word * LANES + t] += choice * scale
                k_l1 = zero if new else p_l1
                o_l1 = p_l1 if new else zero
                k_l2 = zero if new else p_l2
                o_l2 = p_l2 if new else zero
                k_r1 = c1 if new else p_r1
                o_r1 = p_r1 if new else c1
                k_r2 = c2 if new else p_r2
                o_r2 = p_r2 if new else c2
                k_r3 = c3 if new else zero
                o_r3 = zero if new else c3
                k_f = cf if new else p_f
                o_f = p_f if new else cf
                o_size = p_size if new else c_size
                none = k_r1 == zero
                bad = s[BAD + t]
                first = row if bad == zero else bad
                s[BAD + t] = first if none else bad
                k_r1 = _stand_in(k_r2, k_r3, epsilon) if none else k_r1
                inverse = one / k_r1
                m = q_r1 * inverse
                l1, l2 = q_l1 - m * k_l1, q_l2 - m * k_l2
                s[A_L1 + t] = l1 if abs(l1) > tiny else zero
                s[A_L2 + t] = l2 if abs(l2) > tiny else zero
                r1, r2 = q_r2 - m * k_r2, -m * k_r3
                s[A_R1 + t] = r1
                s[A_R2 + t] = r2
                s[A_F + t] = q_f - m * k_f
                size = _larger(_larger(abs(l1), abs(l2)), _larger(abs(r1), abs(r2)))
                s[A_SIZE + t] = _larger(size, q_size)
                m = o_r1 * inverse
                l1, l2 = o_l1 - m * k_l1, o_l2 - m * k_l2
                s[B_L1 + t] = l1 if abs(l1) > tiny else zero
                s[B_L2 + t] = l2 if abs(l2) > tiny else zero
                r1, r2 = o_r2 - m * k_r2, o_r3 - m * k_r3
                s[B_R1 + t] = r1
                s[B_R2 + t] = r2
                s[B_F + t] = o_f - m * k_f
                size = _larger(_larger(abs(l1), abs(l2)), _larger(abs(r1), abs(r2)))
                s[B_SIZE + t] = _larger(size, o_size)


@device
def store_elements(tile: int, s: Array, elements: Array, choices: Array, parts: int) -> None:
    """Store A and B of every lane as an element (2, 6): left 2, right 2, b, size."""
    for lane in range(LANES):
        part = tile * LANES + lane
        if part < parts:
            for k in range(6):
                elements[part, 0, k] = s[k * LANES + lane]
                elements[part, 1, k] = s[(6 + k) * LANES + lane]
            for k in range(WORDS):
                choices[part, k] = s[CHOICES + k * LANES + lane]


@device
def load_ends(tile: int, s: Array, ends: Array, choices: Array, parts: int) -> None:
    """Load the ends of every part, and move the terms of known unknowns to the right-hand sides."""
    for lane in range(LANES):
        part = min(tile * LANES + lane, parts - 1)
        before, first = s.dtype.type(ends[part, 0]), s.dtype.type(ends[part, 1])
        s[X0 + lane] = first
        s[X1 + lane] = ends[part + 1, 0]
        s[X2 + lane] = ends[part + 1, 1]
        for k in range(WORDS):
            s[CHOICES + k * LANES + lane] = choices[part, k]
        s[RIGHT + lane] -= s[LOWER + lane] * before + s[DIAGONAL + lane] * first
        s[RIGHT + LANES + lane] -= s[LOWER + LANES + lane] * first


@device
def substitute_tile(s: Array) -> None:
    """The same elimination without the left unknowns, then back substitution.

    The pivot row of x[j], divided by its pivot, overwrites row j; then x[j] overwrites d.
    """
    zero, one, two, four = s.dtype.type(0), s.dtype.type(1), s.dtype.type(2), s.dtype.type(4)
    epsilon = s.dtype.type(2.0**-52)
    _start(s)
    for word in range(WORDS):
        for step in range(STEPS):
            j = 2 + word * STEPS + step
            for t in range(LANES):
                at = j * LANES + t
                c1, c2, c3, cf = s[LOWER + at], s[DIAGONAL + at], s[UPPER + at], s[RIGHT + at]
                a_r1, b_r1 = s[A_R1 + t], s[B_R1 + t]
                a_r2, b_r2 = s[A_R2 + t], s[B_R2 + t]
                a_f, b_f = s[A_F + t], s[B_F + t]
                rest = s[CHOICES + word * LANES + t] * four
                swap = rest >= two
                rest = rest - two if swap else rest
                new = rest >= one
                s[CHOICES + word * LANES + t] = rest - one if new else rest
                p_r1 = b_r1 if swap else a_r1
                q_r1 = a_r1 if swap else b_r1
                p_r2 = b_r2 if swap else a_r2
                q_r2 = a_r2 if swap else b_r2
                p_f = b_f if swap else a_f
                q_f = a_f if swap else b_f
                k_r1 = c1 if new else p_r1
                o_r1 = p_r1 if new else c1
                k_r2 = c2 if new else p_r2
                o_r2 = p_r2 if new else c2
                k_r3 = c3 if new else zero
                o_r3 = zero if new else c3
                k_f = cf if new else p_f
                o_f = p_f if new else cf
                k_r1 = _stand_in(k_r2, k_r3, epsilon) if k_r1 == zero else k_r1
                inverse = one / k_r1
                m = q_r1 * inverse
                s[A_R1 + t] = q_r2 - m * k_r2
                s[A_R2 + t] = -m * k_r3
                s[A_F + t] = q_f - m * k_f
                m = o_r1 * inverse
                s[B_R1 + t] = o_r2 - m * k_r2
                s[B_R2 + t] = o_r3 - m * k_r3
                s[B_F + t] = o_f - m * k_f
                s[LOWER - LANES + at] = k_r2 * inverse
                s[UPPER - LANES + at] = k_r3 * inverse
                s[RIGHT - LANES + at] = k_f * inverse
    for t in range(LANES):
        s[DIAGONAL + t] = s[X0 + t]
        s[DIAGONAL + TILE - LANES + t] = s[X1 + t]
    for j in range(ROWS - 2, 0, -1):
        for t in range(LANES):
            at = j * LANES + t
            x = s[RIGHT + at] - s[LOWER + at] * s[X1 + t] - s[UPPER + at] * s[X2 + t]
            s[X2 + t] = s[X1 + t]
            s[X1 + t] = x
            s[DIAGONAL + at] = x


@device
def _terms(part: int, j: int, system: Rows, x: Array, ends: Array) -> tuple[Any, Any]:
    """The residual of row j of a part, and the sum of |terms|; in double precision."""
    number, i = ends.dtype.type, part * ROWS + j
    left, right = number(0), number(0)
    if i > 0:
        left = system.dl[i] * (number(x[i - 1]) if j > 0 else ends[part, 0])
    if i < x.size - 1:
        right = system.du[i] * (number(x[i + 1]) if j < ROWS - 1 else ends[part + 1, 1])
    middle, b = system.d[i] * number(x[i]), number(system.b[i])
    size = (abs(left) + abs(middle)) + (abs(right) + abs(b))
    return abs((left + middle) + (right - b)), size


@device
def _inner_off(part: int, rows: int, system: Rows, x: Array, ends: Array, limit: float) -> int:
    """How many inner rows of a part are off; without branches, so that it is vectorised."""
    start = part * ROWS
    lower, diagonal, upper = system.dl[start:], system.d[start:], system.du[start:]
    b, x = system.b[start:], x[start:]
    number, count = ends.dtype.type, 0
    for j in range(1, rows - 1):
        left = lower[j] * number(x[j - 1])
        middle = diagonal[j] * number(x[j])
        right = upper[j] * number(x[j + 1])
        size = (abs(left) + abs(middle)) + (abs(right) + abs(b[j]))
        good = abs((left + middle) + (right - b[j])) <= limit * size
        count += 0 if good & (size <= LARGE * LARGE) else 1
    return count


@device
def mark_off(part: int, system: Rows, x: Array, ends: Array, limit: float, mark: Array) -> int:
    """Mark the rows of a part that are off by more than `limit`; returns how many."""
    rows = min(ROWS, x.size - part * ROWS)
    clear_marks(mark)
    count = _inner_off(part, rows, system, x, ends, limit)
    for j in range(0, rows, max(1, rows - 1)):  # the first and the last
        residual, size = _terms(part, j, system, x, ends)
        count += is_off(residual, size, limit)
    if count > 0:
        for j in range(rows):
            residual, size = _terms(part, j, system, x, ends)
            if is_off(residual, size, limit) > 0:
                set_mark(mark, j)
    return count


@device
def store_solution(tile: int, s: Array, perm: Array, x: Array) -> None:
    """Store x of the tile's rows; with `perm` the unknown of row i goes to x[perm[i]]."""
    n = x.size
    scatter = perm.size > 0
    for lane in range(LANES):
        start = (tile * LANES + lane) * ROWS
        rows = max(0, min(ROWS, n - start))
        if scatter:
            part_p = perm[start:]
            for j in range(rows):
                x[np.uint64(part_p[j])] = s[DIAGONAL + j * LANES + lane]
        else:
            part_x = x[start:]
            for j in range(rows):
                part_x[j] = s[DIAGONAL + j * LANES + lane]
